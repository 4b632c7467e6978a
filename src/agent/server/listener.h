/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listener: the unix socket the agent listens on: made, guarded, taken away.
 *
 * probing-<uid>/<pid>.sock in /tmp, or in the next place where a folder can be made (endpoint.h). The folder must be ours alone (0700), the socket is 0600, and who connects is asked
 * of the kernel: the same user or root. Used by the server's thread.
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

/* Make folder and socket and listen; a socket left by a dead process is replaced. 0, or -1 with the error; nothing is left
 * then but perhaps the folder. */
int listener_open(struct listener *l, struct err *e);

/* Take socket and folder (if it is empty) out of the file system; the descriptor stays. */
void listener_remove(struct listener *l);

/* Accept a connection and ask who it is. Its descriptor (non-blocking, close-on-exec); -1 nobody is there (errno EAGAIN), it
 * failed, or it was a stranger, who is turned away (errno EACCES). */
int listener_accept(const struct listener *l);

/* User and process (-1: not of our namespace) at the other end of a connection. 0, or -1: that is not known. */
int listener_who(int fd, int64_t *uid, int64_t *pid);

#endif
