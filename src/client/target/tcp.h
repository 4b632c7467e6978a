/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp: agents behind a TCP port: how they are named among sockets, and the token that is shown them.
 *
 * Where the path of a socket is wanted, "tcp:HOST:PORT" may stand, with a number for the host. Any thread, but for tcp_set_token.
 */
#ifndef CLIENT_TARGET_TCP_H
#define CLIENT_TARGET_TCP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/address.h"
#include "base/err.h"

#define TCP_TOKEN_MAX 128

/* Does `path` name a TCP port? */
bool tcp_is(const char *path);

/* The same for people: without the prefix. */
const char *tcp_name(const char *path);

/* Its address. 0, or -1 with the error. */
int tcp_address(const char *path, struct address *out, struct err *e);

/* The path of what was typed as HOST:PORT, whose name is looked up. 0, or -1 with the error. */
int tcp_resolve(const char *text, char *path, size_t cap, struct err *e);

/* The token that was given for this run (--token); borrowed; NULL or "": none. Before there are threads. */
void tcp_set_token(const char *token);

/* The token for a port: the one that was given, $PROBING_TOKEN, or, of a port of this machine, what the agent of a process of this user
 * (for root: of any) has left beside its socket. One that was left is shown to a listener of the user who has left it, and to no other. 0,
 * or -1: there is none. */
int tcp_find_token(const char *path, char *buf, size_t cap);

/* Where the agent at a unix socket listens, from the file beside it, and whether who comes in there may only look. 0, or -1: nowhere, or
 * that is not for this user to know. */
int tcp_find_endpoint(const char *socket, char *address, size_t cap, bool *looking);

/* The text of a small `file` that the agent at `socket` has left beside it: of the socket's user, and nobody else may write it. Root may look at
 * those of others. 0 or -1. */
int tcp_read_beside(const char *socket, const char *file, char *text, size_t cap);

#endif
