/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verdict: what is the matter with a training job, in plain words, each with the numbers that it is said for.
 *
 * One row of verdict_rules is one thing to be said: the SQL that gets its evidence, from where on it holds, the words. Nothing but
 * SQL over tables: so the same for a living job, a recording, and tables that a test has made. What is not known leads to no verdict.
 * Belongs to the thread that has the database.
 */
#ifndef CLIENT_VERDICT_VERDICT_H
#define CLIENT_VERDICT_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "client/sql/database.h"

#define VERDICT_VALUES 12 /* of the evidence of one, at most */
#define VERDICT_TEXT 320
#define VERDICT_BRIEF 96

enum verdict_level {
    VERDICT_FINE = 0, /* as it should be */
    VERDICT_NOTE,     /* worth knowing */
    VERDICT_WARN,     /* time or memory is lost */
    VERDICT_BAD,      /* it does not get on, or for nothing */
};

struct verdict_rule {
    const char *code; /* "INPUT-BOUND"; of several rows with one code the first that holds is said */
    enum verdict_level level;
    bool is_state;    /* how it gets on: of these the first that holds is said, and no other */
    bool moves;       /* of a state: steps come. Of the others: it is said only while they come */
    bool is_alone;    /* not said where something else is the matter */
    const char *help; /* what it means, and what to do about it */
    /* One row: the first column is what is measured, NULL when it is not known, the others are the evidence. Named values: verdict.c. */
    const char *sql;
    double threshold;  /* it holds from here on */
    const char *needs; /* a table that there may not be; NULL: those of sql and more are always there */
    /* The same for more of the evidence, asked only when it holds. If a column is called "holds", it says so or not. NULL none. */
    const char *more, *more_needs;
    /* With {column} or {column:kind}, see verdict_put_words; what stands in [brackets] is left out when one of its values is not known. */
    const char *words;
    /* The same in few, for a line that has little room; NULL: the code. */
    const char *brief;
    const char *screen; /* that shows more of it: name of a screen; NULL none */
};

/* All of them; the last row has no code. */
extern const struct verdict_rule verdict_rules[];

/* A value of the evidence. */
struct verdict_value {
    char name[24];
    enum sql_kind kind; /* SQL_INTEGER and SQL_REAL both have their value in `number` */
    double number;
    char text[128];
};

struct verdict {
    const struct verdict_rule *rule;
    int64_t pid, rank;            /* of whom; RING_INT_NULL unknown */
    struct verdict_value *values; /* the first is what was measured */
    size_t n_values;
    char text[VERDICT_TEXT];   /* the words, as drawable text */
    char brief[VERDICT_BRIEF]; /* the few, code and all */
};

struct verdicts {
    struct verdict *items; /* the worst first; of a target that is fine, too */
    size_t n;
};

void verdicts_fini(struct verdicts *v);

struct verdict_judge; /* what is kept from one time to the next, to be quick */

/* Over a database, which must outlive it. NULL: out of memory. */
struct verdict_judge *verdict_judge_new(struct database *d);
void verdict_judge_free(struct verdict_judge *j);

/* What is to be said of each target now. `out` is initialised here. 0, or -1 with the error. */
int verdict_judge_ask(struct verdict_judge *j, struct verdicts *out, struct err *e);

/* verdict_words.c: the words of a rule with their values, appended. Kinds: none as it is, "%" a share, "ms" milliseconds, "s" seconds,
 * "MiB" mebibytes, "rate" a second, "file" without its folders, "n" a whole number. */
void verdict_put_words(const char *words, const struct verdict_value *values, size_t n, struct strbuf *out);

/* The name of a level: "fine", "note", "warning", "bad". */
const char *verdict_level_name(enum verdict_level level);

#endif
