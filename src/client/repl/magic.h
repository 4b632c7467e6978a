/* SPDX-License-Identifier: Apache-2.0 */
/*
 * magic: lines that begin with %, at a prompt for the job's code: one row each, for `probing
 * TARGET repl` and for the Repl screen.
 *
 * This file only parses a line. The owner of the prompt runs the result: code over the
 * connection that keeps `_`, queries by magic_query.h, which may wait. Pure.
 */
#ifndef CLIENT_REPL_MAGIC_H
#define CLIENT_REPL_MAGIC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "client/sql/catalog.h"
#include "wire/wire.h"

enum magic_kind {
    MAGIC_SAY = 0, /* `text` is the whole answer; "": it has changed a setting */
    MAGIC_RUN,     /* `text` is code to run */
    MAGIC_QUERY,   /* `text` is SQL: show the rows of its first statement */
    MAGIC_STACKS,  /* those of all threads */
    MAGIC_STATUS,  /* the agent's status */
};

/* The parsed line. */
struct magic {
    enum magic_kind kind;
    bool timed;         /* MAGIC_RUN: and print the time that it took */
    struct strbuf text; /* owned */
};

/* The kind of an operand, for completion. */
enum magic_takes { MAGIC_TAKES_WORDS = 0, MAGIC_TAKES_CODE, MAGIC_TAKES_SQL };

struct magic_def {
    const char *name;    /* including the % */
    const char *operand; /* for help: "SQL"; "[TID]" if it is optional; NULL: none */
    const char *help;
    enum magic_takes takes;
    enum magic_kind kind;
    bool timed;
    const char *text; /* `text` of the result; NULL: the operand */
    /* Or: fill `out` (its text is initialised), and change the options that all code is run
     * with. 0, or -1 with the error. */
    int (*read)(struct magic *out, const char *operand, struct wire_eval *want, struct err *e);
};

/* All of them; the last has no name. */
extern const struct magic_def magics[];

/* True for a magic line. No line of Python begins like that. */
bool magic_is(const char *line);

/* The row of the first word; NULL if there is none. */
const struct magic_def *magic_find(const char *line);

/* Parse the line; `want` has the options that all code is run with from here on. `out` is
 * initialised here, and freed by magic_fini, on failure too. 0, or -1 with the error. */
int magic_read(struct magic *out, const char *line, struct wire_eval *want, struct err *e);
void magic_fini(struct magic *m);

/* Parse TID:DEPTH into `want`. False if the text is not a frame; then `want` is unchanged. */
bool magic_read_frame(const char *text, struct wire_eval *want);

/* How to complete a line that ends at the cursor. */
enum magic_completion {
    MAGIC_COMPLETES_NOT,
    MAGIC_COMPLETES_CODE,  /* as the code that begins at byte `*from`: the job knows how */
    MAGIC_COMPLETES_WORDS, /* with one of `words`, which replaces the text behind byte `*from` */
};

/* Put one line for each word into `words`, which is initialised: the word, a tab, a help that
 * may be empty. `c`: for SQL; NULL: it is not completed. */
enum magic_completion magic_complete(const char *before, const struct catalog *c, struct strbuf *words,
                                     size_t *from);

#endif
