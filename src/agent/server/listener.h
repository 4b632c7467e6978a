/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listener: the unix socket that the agent listens on: creation, protection, removal.
 *
 * probing-<uid>/<pid>.sock in /tmp, or in the next place where a folder can be made
 * (endpoint.h). The folder must be ours alone (0700), the socket is 0600, and the kernel reports
 * the user of each connection: only the same user or root is accepted. Used by the server's
 * thread.
 */
#ifndef AGENT_SERVER_LISTENER_H
#define AGENT_SERVER_LISTENER_H

#include <stdint.h>

#include "base/endpoint.h"
#include "base/err.h"

struct listener {
    int fd; /* non-blocking, close-on-exec; -1 when closed */
    char dir[ENDPOINT_PATH_MAX];
    char path[ENDPOINT_PATH_MAX];
};

/* Make the folder and the socket, and listen; a socket left by a dead process is replaced. 0, or
 * -1 with the error; then only the folder may remain. */
int listener_open(struct listener *l, struct err *e);

/* Remove the socket and the folder (if empty) from the file system; the descriptor stays open. */
void listener_remove(struct listener *l);

/* Accept a connection and check its user. Its descriptor (non-blocking, close-on-exec); -1 if
 * there is none (errno EAGAIN), on failure, or if it was a stranger, whose connection is closed
 * (errno EACCES). */
int listener_accept(const struct listener *l);

/* User and process (-1: outside our namespace) at the other end of a connection. 0, or -1 if
 * unknown. */
int listener_who(int fd, int64_t *uid, int64_t *pid);

#endif
