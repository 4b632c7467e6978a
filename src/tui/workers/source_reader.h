/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_reader: reads lines of source files on a thread of its own, because a file system may
 * block its reader for any time. One at a time; a read that is stuck when the reader is freed is
 * abandoned.
 */
#ifndef TUI_WORKERS_SOURCE_READER_H
#define TUI_WORKERS_SOURCE_READER_H

#include <stdbool.h>

#include "client/symbols/source_text.h"

struct source_reader;

/* NULL with the error. */
struct source_reader *source_reader_new(struct err *e);
void source_reader_free(struct source_reader *r);

/* Readable when it is done; until source_reader_take. */
int source_reader_fd(const struct source_reader *r);
bool source_reader_is_busy(const struct source_reader *r);

/* Start; see source_read. Does nothing while it is busy. 0, or -1 with the error. */
int source_reader_start(struct source_reader *r, pid_t pid, const char *path, int from, struct err *e);

/* The result, now the caller's (free); NULL: nothing is done yet. */
struct source_text *source_reader_take(struct source_reader *r);

#endif
