/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verdict: what is wrong with a training job, in plain words, each with its numbers.
 *
 * One row of verdict_rules is one statement: the SQL for its evidence, its threshold, the words.
 * Nothing but SQL over tables, so it is the same for a live job, a recording, and tables that a
 * test has made. Unknown values lead to no verdict. Belongs to the thread that has the database.
 */
#ifndef CLIENT_VERDICT_VERDICT_H
#define CLIENT_VERDICT_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "client/sql/database.h"

#define VERDICT_VALUES 20 /* of the evidence of one verdict */
#define VERDICT_TEXT 512
#define VERDICT_BRIEF 96

enum verdict_level {
    VERDICT_FINE = 0, /* as it should be */
    VERDICT_NOTE,     /* worth knowing */
    VERDICT_WARN,     /* time or memory is wasted */
    VERDICT_BAD,      /* it makes no progress, or useless progress */
};

struct verdict_rule {
    /* "INPUT-BOUND"; of several rows with one code the first that holds is used */
    const char *code;
    enum verdict_level level;
    bool is_state;    /* how the job progresses: only the first state that holds is used */
    bool moves;       /* of a state: steps end. Of the others: used only while steps end */
    bool is_alone;    /* left out if something else is wrong */
    const char *help; /* its meaning and remedy */
    /* What is measured, and its kind as in the words, for `--why`; NULL: the code alone, a number. */
    const char *checks, *kind;
    /* One row: the first column is the measure, NULL if unknown, the others are the evidence.
     * Named values: verdict.c. */
    const char *sql;
    double threshold;  /* the least measure at which it holds */
    const char *needs; /* a table that may be missing; NULL: those of sql and more always exist */
    /* More evidence, queried only if the rule holds. A column called "holds" may still refuse; one
     * called "again" asks for another look at the job, in a second or two. NULL none. */
    const char *more, *more_needs;
    /* The same beyond that, if there is any; NULL none. */
    const char *also, *also_needs;
    /* With {column} or {column:kind}, see verdict_put_words; text in [brackets] is left out if
     * one of its values is unknown. */
    const char *words;
    /* How it is known, if not by counters and clocks of the job and the kernel: "sampled" from
     * stacks, "inferred" from where threads wait; NULL: measured. */
    const char *sure;
    /* A short form, for a line with little room; NULL: the code. */
    const char *brief;
    const char *screen; /* name of the screen that shows more of it; NULL none */
};

/* All rules; the last row has no code. */
extern const struct verdict_rule verdict_rules[];

/* A value of the evidence. */
struct verdict_value {
    char name[24];
    enum sql_kind kind; /* SQL_INTEGER and SQL_REAL both have their value in `number` */
    double number;
    char text[224];
};

struct verdict {
    const struct verdict_rule *rule;
    int64_t pid, rank;            /* of the target; RING_INT_NULL unknown */
    struct verdict_value *values; /* the first is the measure */
    size_t n_values;
    char text[VERDICT_TEXT];   /* the words, as drawable text */
    char brief[VERDICT_BRIEF]; /* the short form, with the code */
};

#define VERDICT_WHY 120

/* What came of a rule. */
enum verdict_result {
    VERDICT_SAID = 0,
    VERDICT_NOT_SAID,  /* measured, and below its threshold */
    VERDICT_DENIED,    /* measured, and above it, but other evidence is against it */
    VERDICT_FAILED,    /* measured, and above it, but other evidence could not be read */
    VERDICT_UNKNOWN,   /* too little is known */
    VERDICT_NO_DATA,   /* there is nothing to look at */
    VERDICT_NO_TABLE,  /* the table that it needs is missing */
    VERDICT_NOT_ASKED, /* it is only for jobs whose steps end, or that nothing else is said of */
};

/* A rule that was looked at. */
struct verdict_check {
    const struct verdict_rule *rule;
    enum verdict_result result;
    int64_t pid, rank;
    double measured;       /* NAN: not known, or too little is */
    char why[VERDICT_WHY]; /* of VERDICT_FAILED */
};

struct verdicts {
    struct verdict *items; /* the worst first, including targets that are fine */
    size_t n;
    /* States that were looked at, up to the one that holds, then all others, in the order of the
     * rules, but those of one code together; a second rule of a code that was said is left out. */
    struct verdict_check *checks;
    size_t n_checks;
    bool again; /* more is known after another look, in a second or two */
};

void verdicts_fini(struct verdicts *v);

struct verdict_judge; /* kept from one time to the next, to be quick */

/* Over a database, which must outlive it. NULL: out of memory. */
struct verdict_judge *verdict_judge_new(struct database *d);
void verdict_judge_free(struct verdict_judge *j);

/* The present verdicts about each target. Initialises `out`. 0, or -1 with the error. */
int verdict_judge_ask(struct verdict_judge *j, struct verdicts *out, struct err *e);

/* True if it is known how a target progresses. */
bool verdicts_have_state(const struct verdicts *v);

/* The same again and again, until it is known how the job progresses and no evidence needs another
 * look, and for `wait_s` at most;
 * < 0: for VERDICT_WAIT_S, 0: once. Waiting does not help with recordings. */
#define VERDICT_WAIT_S 10.0
int verdict_judge_wait(struct verdict_judge *j, double wait_s, struct verdicts *out, struct err *e);

/* verdict_words.c: append the words of a rule with their values. Kinds: none as it is, "%" a
 * share, "ms" milliseconds, "s" seconds, "MiB" mebibytes, "rate" a second, "file" without its
 * folders, "n" a whole number, "cpus" one with a tenth, "x" how many times, "yes" yes or no. */
void verdict_put_words(const char *words, const struct verdict_value *values, size_t n, struct strbuf *out);

/* How a verdict is known: "measured", "sampled", "inferred". */
const char *verdict_sure(const struct verdict_rule *rule);

/* The name of a level: "fine", "note", "warning", "bad". */
const char *verdict_level_name(enum verdict_level level);

/* "said", "fine", "unknown", "not asked". */
const char *verdict_result_name(enum verdict_result result);

/* Append why it came to that, where the numbers do not show it; or nothing. */
void verdict_put_reason(const struct verdict_check *check, struct strbuf *out);

/* Append a measure or threshold of a rule, "-" for NAN. */
void verdict_put_measure(const struct verdict_rule *rule, double measured, struct strbuf *out);

#endif
