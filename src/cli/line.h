/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line: a line is typed at a terminal, with the keys, the history and the completion that people know from shells.
 *
 * libedit's, which is hidden here, so that what they have set in ~/.editrc holds. ^C gives the line up; the program that reads lines
 * has its handler of SIGINT, which is not called again after the signal. One a program, one thread.
 */
#ifndef CLI_LINE_H
#define CLI_LINE_H

#include <stdbool.h>

#include "base/err.h"
#include "base/strbuf.h"

#define LINE_HISTORY 1000 /* lines that arrow-up finds */

struct line;

struct line_hooks {
    /* Once a second while nothing is typed. */
    void (*idle)(void *arg);
    /* Has there been a SIGINT? The answer is true once for each. */
    bool (*interrupted)(void *arg);
    /* Words that the end of `before` may become, a line each; false: it can become none. `*typed`: how many bytes of that end they begin
     * with. */
    bool (*complete)(void *arg, const char *before, struct strbuf *words, size_t *typed);
    void *arg;
};

enum line_end { LINE_READ, LINE_CLEARED, LINE_CLOSED };

/* NULL with the error: it is no terminal that can be used. */
struct line *line_new(const struct line_hooks *hooks, struct err *e);
void line_free(struct line *l);

/* A line without its end, into `out`; LINE_CLEARED: by ^C; LINE_CLOSED: by ^D, or nobody is there to type. */
enum line_end line_read(struct line *l, const char *prompt, struct strbuf *out);

/* What arrow-up finds first. */
void line_remember(struct line *l, const char *text);

#endif
