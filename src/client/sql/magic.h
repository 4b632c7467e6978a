/* SPDX-License-Identifier: Apache-2.0 */
/*
 * magic: lines that begin with %, at a prompt for the job's code: a row each, for `probing TARGET repl` and for the Repl screen.
 *
 * A line is read here without asking anybody; who has the prompt does what it wants: code by the connection that keeps `_`, looks by
 * magic_query.h, where one may wait. Pure.
 */
#ifndef CLIENT_SQL_MAGIC_H
#define CLIENT_SQL_MAGIC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "client/sql/catalog.h"
#include "wire/wire.h"

enum magic_kind {
    MAGIC_SAY = 0, /* `text` is all there is to it; "": it has set something */
    MAGIC_RUN,     /* `text` is code to be run */
    MAGIC_QUERY,   /* `text` is SQL: the rows of its first statement */
    MAGIC_STACKS,  /* those of all threads */
    MAGIC_STATUS,  /* the agent about itself */
};

/* What a line wants. */
struct magic {
    enum magic_kind kind;
    bool timed;         /* MAGIC_RUN: and say how long it took */
    struct strbuf text; /* owned */
};

/* What an operand is, for those who complete it. */
enum magic_takes { MAGIC_TAKES_WORDS = 0, MAGIC_TAKES_CODE, MAGIC_TAKES_SQL };

struct magic_def {
    const char *name;    /* with its % */
    const char *operand; /* for help: "SQL"; "[TID]" where it may be missing; NULL: it takes none */
    const char *help;
    enum magic_takes takes;
    enum magic_kind kind;
    bool timed;
    const char *text; /* of what it wants; NULL: that is the operand */
    /* Or: fill `out` (its text is begun), and change what all code is run with. 0, or -1 with the error. */
    int (*read)(struct magic *out, const char *operand, struct wire_eval *want, struct err *e);
};

/* All of them; the last has no name. */
extern const struct magic_def magics[];

/* Is it one? Python has no line that begins so. */
bool magic_is(const char *line);

/* The row of its first word; NULL: there is none. */
const struct magic_def *magic_find(const char *line);

/* What it wants; `want` is what all code is run with from here on. `out` is begun here, and given back by magic_fini, on failure too.
 * 0, or -1 with the error. */
int magic_read(struct magic *out, const char *line, struct wire_eval *want, struct err *e);
void magic_fini(struct magic *m);

/* TID:DEPTH, into `want`. False: it is no frame, and `want` is as it was. */
bool magic_read_frame(const char *text, struct wire_eval *want);

/* How a line may go on that ends where the cursor is. */
enum magic_completion {
    MAGIC_COMPLETES_NOT,
    MAGIC_COMPLETES_CODE,  /* as the code that begins at byte `*from` does: the job knows */
    MAGIC_COMPLETES_WORDS, /* with `words`, which take the place of what is behind byte `*from` */
};

/* A line each: the word, a tab, a help that may be empty; into `words`, which is begun. `c`: for SQL; NULL: it is not completed. */
enum magic_completion magic_complete(const char *before, const struct catalog *c, struct strbuf *words,
                                     size_t *from);

#endif
