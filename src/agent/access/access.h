/* SPDX-License-Identifier: Apache-2.0 */
/*
 * access: the users of TCP connections, and whether they are admitted: no sockets, no messages.
 *
 * For a peer on this machine the kernel knows the user (/proc/net/tcp); the peer's process is
 * searched for in our namespaces. A uid alone identifies nobody where containers share a
 * network, because each has its own root. Headers reveal requests that a browser sends for a web
 * page. Peers with wrong tokens wait, longer each time. All of it is bounded. Used by the
 * server's thread.
 */
#ifndef AGENT_ACCESS_ACCESS_H
#define AGENT_ACCESS_ACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/address.h"

#define ACCESS_ROWS 64
#define ACCESS_UNKNOWN (-1)
#define ACCESS_NOT_NOW (-2)

/* A host with failed attempts. */
struct access_row {
    unsigned char host[16]; /* of IPv6 the network, 64 bits: its owner has all of its addresses */
    int64_t uid;
    unsigned tries; /* 0 if the row is free */
    uint64_t last_ns, until_ns;
};

/* The user at the other end of a connection within this machine. */
struct access_peer {
    /* ACCESS_UNKNOWN, also if the kernel has too many connections to search; ACCESS_NOT_NOW: the
     * search has used up its time, try again later */
    int64_t uid;
    uint64_t inode; /* of the socket; 0 if unknown */
};

/* CPU time that a search has used since then. */
struct access_spent {
    uint64_t ns, since_ns;
};

struct access {
    struct access_row rows[ACCESS_ROWS];
    /* for the two searches; separate, because strangers cost most in the second */
    struct access_spent users, neighbours;
    int neighbour; /* the process that was found last; 0 if none */
};

/* Both ends of a connection: ours and the other one. 0 or -1. */
int access_ends(int fd, struct address *near, struct address *far);

/* The owner of the socket at the other end, `far`, of our socket `near`, both on this machine. */
struct access_peer access_find_peer(struct access *a, const struct address *near, const struct address *far);

/* True if it is the job's user or root. That does not identify a user of another container. */
bool access_is_known(const struct access_peer *peer);

/* True if it is the job's user in the job's own namespaces (user, pid and mount), so that it
 * could use the agent's unix socket, too. 1 yes; 0 no, or unknown: a job of another user cannot
 * see root; ACCESS_NOT_NOW as above. */
int access_is_neighbour(struct access *a, const struct access_peer *peer);

/* Is a socket held by a process of our user in our own namespaces? `last`: the process that was
 * found the last time, 0 none; it is asked first. Any thread. */
bool access_has_socket(uint64_t inode, int *last);

/* From the lines of /proc/net/tcp or tcp6, the user of the connection from `local` to `remote`
 * (in their format) whose socket has an owner: a closed socket shows root. `inode` (may be
 * NULL): of its socket. -1 if there is none. Modifies `text`. */
int64_t access_uid_in(char *text, const char *local, const char *remote, uint64_t *inode);

/* True if the host must wait; counts one more failed attempt. Times are monotonic. */
bool access_must_wait(const struct access *a, const struct address *far, int64_t uid, uint64_t now_ns);
void access_note_failure(struct access *a, const struct address *far, int64_t uid, uint64_t now_ns);

/* True if `host` (the header; NULL if there was none) is this end, `near`, as a number, or a
 * name that every machine has for itself. A web page may make any other name lead here (DNS
 * rebinding). */
bool access_is_host(const char *host, const struct address *near);

/* True if `origin` (the header; NULL or "": none) is a page of this server. */
bool access_is_origin(const char *origin, const char *host);

#endif
