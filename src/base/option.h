/* SPDX-License-Identifier: Apache-2.0 */
/*
 * option: what can be set, one row an option: a flag of a program or verb, a variable of the
 * environment, a line of the settings file.
 *
 * Parsers, help, man pages, completion and the lists of settings are made from the rows. Of
 * flags, long ones take "--name value" or "--name=value", short ones "-o value", "-ovalue";
 * short flags may be bundled. "--" ends options. Options and operands may be mixed. An unknown
 * option is an error that suggests the nearest one.
 */
#ifndef BASE_OPTION_H
#define BASE_OPTION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/strbuf.h"

enum option_kind {
    /* Of flags; with the C type of the field at the row's offset. */
    OPTION_FLAG,    /* bool: takes no value */
    OPTION_STRING,  /* const char *, in argv */
    OPTION_LIST,    /* struct option_list: may be given several times */
    OPTION_INT,     /* long */
    OPTION_SECONDS, /* double: "2", "2s", "250ms", "1m" */
    /* Of settings, and of flags (double); units in any case, and behind a space. */
    OPTION_PERCENT,  /* "5%" */
    OPTION_RATE,     /* "10Hz" */
    OPTION_BYTES,    /* "64MB", units of 1024 */
    OPTION_DURATION, /* seconds: "250ms", "2h" */
    OPTION_DAYS,     /* "7d", "12h" */
    OPTION_SWITCH,   /* "on", "off" and their like */
    OPTION_TEXT,
    /* Of settings that are kept as text. */
    OPTION_DELAY,  /* seconds: "250ms", "2s"; a number alone: tenths of a second */
    OPTION_CHOICE, /* one of some words */
};

#define OPTION_LIST_MAX 256

/* The values of an option that may be repeated, in order. */
struct option_list {
    const char *items[OPTION_LIST_MAX];
    size_t n;
};

struct option_def {
    const char *name; /* long name without dashes; NULL ends a table */
    char letter;      /* of a flag; 0 none */
    enum option_kind kind;
    size_t offset;    /* of the field in the caller's struct; of a setting, if it is a text there */
    const char *arg;  /* name of a flag's value in help; NULL if it takes none */
    const char *help; /* one line */
    double min, max;  /* range of numbers; both 0 = any */

    /* A flag that sets one of the settings. */
    const char *setting; /* its name; NULL none */
    const char *value;   /* what OPTION_FLAG sets it to */

    /* A setting. */
    const char *env;  /* variable of the environment; NULL none */
    const char *unit; /* of a number, as it is printed; of a flag too */
    double default_number;
    const char *default_value; /* of a setting that is kept as text */
    const char *takes;         /* what it takes, in words; NULL: by kind and range */
    const char *takes_long;    /* the same where a value was refused; NULL: as `takes` */
    /* The words of OPTION_CHOICE, and those of a flag that takes only some; NULL after the last */
    const char *(*choice)(int i);
    bool (*check)(const char *text); /* what a value has to be beyond its kind; NULL nothing */
    bool at_start;                   /* a change is for the next start */
};

/* Parse argv[1..] into `into`. Operands are moved to the front of `operands` (room for argc).
 * Number of operands, or -1 with ERR_USAGE. If `stop_at_operand`, parsing ends at the first
 * operand and everything from it on is returned as operands. */
int option_parse(const struct option_def *table, void *into, int argc, char **argv, const char **operands,
                 bool stop_at_operand, struct err *e);

/* "  -o, --output FILE   write there" lines for every row. */
void option_format_help(const struct option_def *table, struct strbuf *out);

/* Check the value of a setting; `*number` is what it says, if it is a number (a switch: 0 or 1).
 * 0, or -1 with ERR_USAGE, which begins with `name` (what the user knows it by). */
int option_read(const struct option_def *d, const char *name, const char *text, double *number,
                struct err *e);

/* The error of option_read. Always -1. */
int option_refuse(const struct option_def *d, const char *name, const char *text, struct err *e);

/* Is it kept as a number? */
bool option_is_number(const struct option_def *d);

/* A number as text that option_read takes: "32M", "0.5", "on". */
void option_format(const struct option_def *d, double number, char *buf, size_t cap);

/* The candidate nearest to `word` (edit distance at most 2 and less than half of its length), or
 * NULL. The list ends with NULL. */
const char *option_suggest(const char *word, const char *const *candidates);

#endif
