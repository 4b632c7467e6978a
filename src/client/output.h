/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output: what was built in memory goes out whole, or not at all.
 */
#ifndef CLIENT_OUTPUT_H
#define CLIENT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/strbuf.h"

/* Is `path` standard output (NULL or "-")? */
bool output_is_stdout(const char *path);

/* "~/x" is in the home folder, all else as it is. False when it is too long. */
bool output_expand(const char *path, char *out, size_t cap);

/* Can `path` be written? Asked before the work is done. Makes nothing. 0, or -1 with ERR_FAILED. */
int output_check(const char *path, struct err *e);

/* Write `content` to standard output, or to a file: a temporary one beside it that takes its name when it is complete.
 * Devices and pipes are written in place. A reader that closed its end early has seen enough: that is no error. 0, or -1. */
int output_write(const char *path, const struct strbuf *content, struct err *e);

#endif
