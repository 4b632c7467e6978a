/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line: read a line from a terminal, with the keys, the history and the completion that people
 * know from shells.
 *
 * The implementation is libedit, hidden here, so people's ~/.editrc is used. ^C drops the line.
 * The program that reads lines has its own handler of SIGINT, which is not called again after
 * the signal. One a program, one thread.
 */
#ifndef CLI_LINE_H
#define CLI_LINE_H

#include <stdbool.h>

#include "base/err.h"
#include "base/strbuf.h"

#define LINE_HISTORY 1000 /* lines that arrow-up finds */

struct line;

struct line_hooks {
    /* Called once a second while nothing is typed. */
    void (*idle)(void *arg);
    /* True once for each SIGINT. */
    bool (*interrupted)(void *arg);
    /* Put the words that the end of `before` may become into `words`, one a line. False if there
     * are none. `*typed`: the number of bytes of that end with which they begin. */
    bool (*complete)(void *arg, const char *before, struct strbuf *words, size_t *typed);
    void *arg;
};

enum line_end { LINE_READ, LINE_CLEARED, LINE_CLOSED };

/* NULL with the error if the terminal cannot be used. */
struct line *line_new(const struct line_hooks *hooks, struct err *e);
void line_free(struct line *l);

/* Read a line without its newline into `out`. LINE_CLEARED: by ^C; LINE_CLOSED: by ^D, or the
 * terminal is gone. */
enum line_end line_read(struct line *l, const char *prompt, struct strbuf *out);

/* Add a line to the history. */
void line_remember(struct line *l, const char *text);

#endif
