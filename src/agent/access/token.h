/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token: what somebody says who comes by TCP and is not known otherwise: made of the kernel's randomness, kept in a file that its
 * user alone can read.
 *
 * Two of them: who has the first may do what a client on the machine may, who has the second may look. The file lies beside the
 * agent's socket, PID.door: the address, the first and the second, a line each; and PID.curl has the best of them as a header. Used by the server's thread.
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
    char text[TOKEN_LEN + 1]; /* "": there is none, and nobody has it */
};

/* A new one. 0, or -1 with the error: the kernel has no randomness yet. */
int token_make(struct token *t, struct err *e);

/* Is `given` (of `len` bytes) it? Takes as long whatever differs. */
bool token_is(const struct token *t, const char *given, size_t len);

/* Write the file, mode 0600, in place of one that is there. `all` NULL: nobody may do all. 0, or -1 with the error. */
int token_write(const char *path, const char *address, const struct token *all, const struct token *looking,
                struct err *e);

/* Write a file with the header of a request that has the token, for `curl -H @FILE`; mode and answer as above. */
int token_write_header(const char *path, const struct token *t, struct err *e);

#endif
