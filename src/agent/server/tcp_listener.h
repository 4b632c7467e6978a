/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp_listener: the TCP socket that the agent listens on when it is told to, and what goes with it: its tokens and their file.
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
    int fd;                    /* non-blocking, close-on-exec; -1 closed */
    bool looking;              /* who comes by it may look, and no more */
    char address[ADDRESS_MAX]; /* where it is */
    struct token all, looker;
    char file[ENDPOINT_PATH_MAX];   /* of the tokens; "" none */
    char header[ENDPOINT_PATH_MAX]; /* of the one that may do most, for curl */
};

/* Listen at `address` (base/address.h; "": a free port of 127.0.0.1), with new tokens in a file beside `socket`. `d` is closed. 0,
 * or -1 with the error; nothing is left then. */
int tcp_listener_open(struct tcp_listener *d, const char *address, bool looking, const char *socket,
                      struct err *e);

/* Take the file away and stop listening; the descriptor is the caller's to close. */
void tcp_listener_remove(struct tcp_listener *d);

/* Accept a connection: its descriptor (non-blocking, close-on-exec), which is given up when nobody is there any more; -1 with
 * errno. */
int tcp_listener_accept(int fd);

#endif
