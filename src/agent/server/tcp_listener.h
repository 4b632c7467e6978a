/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp_listener: the TCP socket that the agent listens on if asked to, with its tokens and their
 * file.
 *
 * Closed unless somebody has asked for it. Used by the server's thread.
 */
#ifndef AGENT_SERVER_TCP_LISTENER_H
#define AGENT_SERVER_TCP_LISTENER_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/access/token.h"
#include "base/address.h"
#include "base/err.h"

struct tcp_listener {
    int fd;                    /* non-blocking, close-on-exec; -1 if closed */
    bool looking;              /* its clients are read-only */
    char address[ADDRESS_MAX]; /* where it is */
    struct token all, looker;
    char file[ENDPOINT_PATH_MAX];   /* with the tokens; "" if none */
    char header[ENDPOINT_PATH_MAX]; /* with the token that gives most access, for curl */
};

/* Listen at `address` (base/address.h; "": a free port of 127.0.0.1), with new tokens in a file
 * beside `socket`. `d` is closed before. 0, or -1 with the error; then nothing remains. */
int tcp_listener_open(struct tcp_listener *d, const char *address, bool looking, const char *socket,
                      struct err *e);

/* Remove the file and stop listening; the caller closes the descriptor. */
void tcp_listener_remove(struct tcp_listener *d);

/* Accept a connection: its descriptor (non-blocking, close-on-exec), whose connection the kernel
 * ends if the other end is gone; -1 with errno. */
int tcp_listener_accept(int fd);

#endif
