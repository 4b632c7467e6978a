/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output: the one place by which this program's words leave it, for a terminal or a file.
 *
 * What was built in memory goes out whole, or not at all. A terminal is given nothing that it obeys: texts are made harmless
 * where they come from (base/text.h), and once more here, whoever forgot it. Of escape sequences only colours and weights of the
 * text pass, which is all that our own may be. Into files and pipes bytes go as they are, but for what is
 * said on stderr: a log of that is read on a terminal some day. Files are made for this user alone.
 */
#ifndef CLIENT_OUTPUT_H
#define CLIENT_OUTPUT_H

#include <limits.h>
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

/* Lines for people, to standard error: as printf(3), or as they were built. */
void output_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void output_say_text(const struct strbuf *text);

/* Append what a terminal may be given of `text`. 0, or -1 when it did not fit. */
int output_guard(struct strbuf *out, const char *text, size_t len);

/* ---- a file that is written in parts ---- */

/* One that takes its name when it is complete: made exclusively, with a random name beside it. It may be read by this user alone;
 * where it replaces a file of this user's, by whoever might read that one. */
struct output_file {
    int fd;
    char temp[PATH_MAX], final[PATH_MAX];
};

/* Begin; what is at `path` is not touched yet. 0, or -1 with the error. output_file_end or output_file_drop must follow. */
int output_file_begin(struct output_file *f, const char *path, struct err *e);

/* Everything was written to f->fd: it takes its name. 0, or -1 with the error, and nothing is left. */
int output_file_end(struct output_file *f, const char *path, struct err *e);

/* Leave nothing. */
void output_file_drop(struct output_file *f);

#endif
