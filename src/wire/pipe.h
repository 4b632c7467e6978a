/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipe: messages through a pipe, as between a client and a relay: each with its length before it, in
 * four bytes, the highest first.
 *
 * Whoever answers begins with the line PIPE_MAGIC: what a login shell prints before it is skipped, and
 * its end is kept for an error. No state beyond the struct; any thread.
 */
#ifndef WIRE_PIPE_H
#define WIRE_PIPE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/strbuf.h"

#define PIPE_MAGIC "probing.v1 relay\n"
#define PIPE_BANNER_MAX 16384 /* bytes before it */

/* Append a message with its length. 0, or -1: it is empty, longer than WIRE_MAX_MESSAGE, or there is no
 * memory. */
int pipe_put(struct strbuf *out, const void *message, size_t len);

/* Bytes that were read, and are to be messages. */
struct pipe_reader {
    struct strbuf bytes;
    size_t from;     /* of the bytes that no message was made of yet */
    bool is_begun;   /* the line was seen */
    char banner[80]; /* the end of what came before it, safe for a terminal */
};

/* `begun`: no line is expected. */
void pipe_reader_init(struct pipe_reader *r, bool begun);
void pipe_reader_fini(struct pipe_reader *r);

/* Append what was read. 0, or -1 without memory. */
int pipe_reader_add(struct pipe_reader *r, const void *data, size_t len);

/* The next message, which lives until the next call of either. 1; 0: more bytes are needed; -1 with the
 * error, after which the pipe is of no use. */
int pipe_reader_next(struct pipe_reader *r, const void **message, size_t *len, struct err *e);

#endif
