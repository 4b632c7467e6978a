/* SPDX-License-Identifier: Apache-2.0 */
/*
 * access: who comes by TCP, and whether they are listened to: no sockets, no messages.
 *
 * For a peer on this machine the kernel knows the user (/proc/net/tcp); access_is_neighbour finds out whether it lives in our namespaces. A uid
 * alone identifies nobody where containers share a network, because each has its own root. Headers show what a browser sends for a web
 * page. Peers with wrong tokens wait, longer each time. All of it is bounded. Used by the server's thread.
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

/* Somebody who has tried in vain. */
struct access_row {
    unsigned char host[16]; /* of IPv6 the network, 64 bits: who has one has all of it */
    int64_t uid;
    unsigned tries; /* 0: the row is free */
    uint64_t last_ns, until_ns;
};

/* Who is at the other end of a connection within this machine. */
struct access_peer {
    int64_t
        uid; /* ACCESS_UNKNOWN, also when the kernel has too many connections to look through; ACCESS_NOT_NOW: finding out has
                       taken too long lately, it is to be tried again */
    uint64_t inode; /* of their socket; 0 not known */
};

/* What something has taken of a processor since then. */
struct access_spent {
    uint64_t ns, since_ns;
};

struct access {
    struct access_row rows[ACCESS_ROWS];
    struct access_spent users, neighbours; /* finding them out; apart, for who is no neighbour costs most */
    int neighbour;                         /* the process that was found last; 0 none */
};

/* Both ends of a connection: ours and the other one. 0 or -1. */
int access_ends(int fd, struct address *near, struct address *far);

/* Whose socket is at the other end, `far`, of one of ours on this machine, `near`. */
struct access_peer access_find_peer(struct access *a, const struct address *near, const struct address *far);

/* Is it the job's user, or root? No more than that: who they are in a container of their own is not said. */
bool access_is_known(const struct access_peer *peer);

/* Is it the job's user in the job's own namespaces (user, pid and mount), so one who could have the agent's unix socket, too? 1 yes; 0 no,
 * or it cannot be known: root is not seen by a job of somebody else's; ACCESS_NOT_NOW as above. */
int access_is_neighbour(struct access *a, const struct access_peer *peer);

/* Is a socket held by a process of our user in our own namespaces? `last`: the process that was found the last time, 0 none; it is asked
 * first. Any thread. */
bool access_has_socket(uint64_t inode, int *last);

/* Of the lines of /proc/net/tcp or tcp6, the user of the connection from `local` to `remote` (as they stand there) that somebody
 * holds: one whose socket was given up stands there as root's. `inode` (may be NULL): of its socket. -1: none is. `text` is cut to
 * pieces. */
int64_t access_uid_in(char *text, const char *local, const char *remote, uint64_t *inode);

/* Must they wait? And one more try in vain. Times are monotonic. */
bool access_must_wait(const struct access *a, const struct address *far, int64_t uid, uint64_t now_ns);
void access_note_failure(struct access *a, const struct address *far, int64_t uid, uint64_t now_ns);

/* Is `host` (the header; NULL there was none) this end, `near`, by its number, or a name that is always this machine? Any other name
 * may be one that leads here by the will of a web page (DNS rebinding). */
bool access_is_host(const char *host, const struct address *near);

/* Is `origin` (the header; NULL or "": none) a page of this very server? */
bool access_is_origin(const char *origin, const char *host);

#endif
