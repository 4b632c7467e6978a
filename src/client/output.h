/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output: the one place where this program writes, to a terminal or a file.
 *
 * A text built in memory is written completely, or not at all. A terminal gets nothing that it
 * obeys: texts are made harmless where they come from (base/text.h), and again here in case that
 * was forgotten. Of escape sequences only text colours and weights pass, which is all that our
 * own use. Files and pipes get the bytes unchanged, except stderr: a log of that is read on a
 * terminal some day. Files are private to this user.
 */
#ifndef CLIENT_OUTPUT_H
#define CLIENT_OUTPUT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/strbuf.h"

/* True if `path` means standard output (NULL or "-"). */
bool output_is_stdout(const char *path);

/* Columns of the terminal that standard output is, or 0 if it is none. */
int output_columns(void);

/* True if standard output is a terminal that wants colours: NO_COLOR is not set, TERM not dumb. */
bool output_has_colour(void);

/* Expand "~/x" to the home folder; anything else is unchanged. False if it is too long. */
bool output_expand(const char *path, char *out, size_t cap);

/* Check that `path` can be written, before the work is done. Makes nothing. 0, or -1 with
 * ERR_FAILED. */
int output_check(const char *path, struct err *e);

/* Write `content` to standard output, or to a file: a temporary one beside it that takes its
 * name when it is complete. Devices and pipes are written in place. A reader that closes its end
 * early has seen enough: that is not an error. 0, or -1. */
int output_write(const char *path, const struct strbuf *content, struct err *e);

/* From here on standard output is the file at `path`, which takes its name at output_redirect_end;
 * "-" changes nothing. 0, or -1 with the error. */
int output_redirect(const char *path, struct err *e);

/* Give the file its name, or with `keep` false remove it. 0 (also if nothing was redirected), or
 * -1 with the error. */
int output_redirect_end(bool keep, struct err *e);

/* Lines for users, to standard error: formatted like printf(3), or as they were built. */
void output_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void output_say_text(const struct strbuf *text);

/* True if standard error is a terminal. */
bool output_is_watched(void);

/* Show a line at the cursor of that terminal, in place of the last one; "" removes it. What is said
 * otherwise removes it, too. Any thread. */
void output_progress(const char *line);

/* Append the part of `text` that is safe for a terminal. 0, or -1 if it did not fit. */
int output_guard(struct strbuf *out, const char *text, size_t len);

/* ---- a file that is written in parts ---- */

/* A file that takes its name when it is complete: made exclusively, with a random name beside
 * it. Only this user may read it, or, if it replaces a file of this user's, whoever could read
 * that one. */
struct output_file {
    int fd;
    char temp[PATH_MAX], final[PATH_MAX];
};

/* Start; the file at `path` is not touched yet. 0, or -1 with the error. output_file_end or
 * output_file_drop must follow. */
int output_file_begin(struct output_file *f, const char *path, struct err *e);

/* Give it its name, after everything was written to f->fd. 0, or -1 with the error, and nothing
 * is left. */
int output_file_end(struct output_file *f, const char *path, struct err *e);

/* Remove it. */
void output_file_drop(struct output_file *f);

#endif
