/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp: agents behind a TCP port: their names in place of a socket's path, and their tokens.
 *
 * In place of a socket's path there may be "tcp:HOST:PORT", with a numeric host. Any thread,
 * except for tcp_set_token.
 */
#ifndef CLIENT_TARGET_TCP_H
#define CLIENT_TARGET_TCP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/address.h"
#include "base/err.h"

#define TCP_TOKEN_MAX 128

/* True if `path` names a TCP port. */
bool tcp_is(const char *path);

/* The same for users: without the prefix. */
const char *tcp_name(const char *path);

/* Its address. 0, or -1 with the error. */
int tcp_address(const char *path, struct address *out, struct err *e);

/* The path for HOST:PORT as typed, whose name is resolved. 0, or -1 with the error. */
int tcp_resolve(const char *text, char *path, size_t cap, struct err *e);

/* Set the token of this run (--token); borrowed; NULL or "": none. Before there are threads. */
void tcp_set_token(const char *token);

/* The token for a port: the one that was set, $PROBING_TOKEN, or, for a port of this machine,
 * the one that the agent of a process of this user (for root: of any) has left beside its
 * socket. That one is sent only to a listener of the user who has left it. 0, or -1 if there is
 * none. */
int tcp_find_token(const char *path, char *buf, size_t cap);

/* The TCP address of the agent at a unix socket, from the file beside it, and whether its
 * clients are read-only. 0, or -1 if there is none, or this user may not know. */
int tcp_find_endpoint(const char *socket, char *address, size_t cap, bool *looking);

/* The text of a small `file` that the agent at `socket` has left beside it: it must belong to
 * the socket's user, and nobody else may write it. Root may read those of others. 0 or -1. */
int tcp_read_beside(const char *socket, const char *file, char *text, size_t cap);

#endif
