/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols_serve: the helper's side: answers questions until the client is gone. Private to it.
 */
#ifndef CLIENT_SYMBOLS_SYMBOLS_SERVE_H
#define CLIENT_SYMBOLS_SYMBOLS_SERVE_H

#include "client/symbols/symbols_protocol.h"

/* argv[0] of a helper; argv[1] and argv[2] are the user and the group it becomes, -1: unchanged. */
#define SYMBOLS_SERVE_NAME "probing-symbols"

/* Does not return. */
_Noreturn void symbols_serve(const char *uid, const char *gid);

/* Ask the client for a file of debug information during an answer (see symbols_want). A
 * descriptor that the caller owns, or -1 if there is no other. */
int symbols_serve_want(enum symbols_what what, const void *id, size_t id_len, const char *name,
                       uint32_t number);

#endif
