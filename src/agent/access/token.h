/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token: a secret that identifies a TCP client: made from the kernel's randomness, in a file
 * that only its user can read.
 *
 * There are two: the first gives the access of a client on this machine, the second is
 * read-only. The file is beside the agent's socket, PID.door: the address, the first token and
 * the second, a line each; PID.curl has the better of them as a header. Used by the server's
 * thread.
 */
#ifndef AGENT_ACCESS_TOKEN_H
#define AGENT_ACCESS_TOKEN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/endpoint.h"
#include "base/err.h"

#define TOKEN_BYTES 24
#define TOKEN_LEN ((size_t)2 * TOKEN_BYTES) /* as text, in hexadecimal digits */

struct token {
    char text[TOKEN_LEN + 1]; /* "" if there is none; then nobody has it */
};

/* Make a new token. 0, or -1 with the error: the kernel has no randomness yet. */
int token_make(struct token *t, struct err *e);

/* True if `given` (of `len` bytes) is the token. The time does not depend on the difference. */
bool token_is(const struct token *t, const char *given, size_t len);

/* Write the file, mode 0600; it replaces an existing one. `all` NULL: there is no token for full
 * access. 0, or -1 with the error. */
int token_write(const char *path, const char *address, const struct token *all, const struct token *looking,
                struct err *e);

/* Write a file with the token as a request header, for `curl -H @FILE`; mode and result as
 * above. */
int token_write_header(const char *path, const struct token *t, struct err *e);

#endif
