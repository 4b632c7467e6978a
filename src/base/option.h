/* SPDX-License-Identifier: Apache-2.0 */
/*
 * option: command-line options as one table per program or verb; parser and help come from the same rows.
 *
 * Long options take "--name value" or "--name=value", short ones "-o value", "-ovalue"; short flags may be bundled. "--" ends options.
 * Options and operands may be mixed. An unknown option is an error that suggests the nearest one.
 */
#ifndef BASE_OPTION_H
#define BASE_OPTION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/strbuf.h"

enum option_kind { OPTION_FLAG, OPTION_STRING, OPTION_INT, OPTION_SECONDS, OPTION_LIST };

#define OPTION_LIST_MAX 256

/* Of an option that may be given several times: its values, in order. */
struct option_list {
    const char *items[OPTION_LIST_MAX];
    size_t n;
};

struct option_def {
    const char *name; /* long name without dashes */
    char letter;      /* 0 none */
    enum option_kind kind;
    size_t
        offset; /* of the field in the caller's struct: bool, const char *, long, double (seconds), struct option_list */
    const char *arg;  /* name of the value in help; NULL for a flag */
    const char *help; /* one line */
    double min, max;  /* range of numbers; both 0 = any */
};

/* Parse argv[1..] into `into`. Operands are moved to the front of `operands` (room for argc). OPTION_SECONDS takes "2", "2s", "250ms",
 * "1m". Number of operands, or -1 with ERR_USAGE. Table ends with a NULL name. If `stop_at_operand`, parsing ends at the first operand
 * and everything from it on is returned as operands. */
int option_parse(const struct option_def *table, void *into, int argc, char **argv, const char **operands,
                 bool stop_at_operand, struct err *e);

/* "  -o, --output FILE   write there" lines for every row. */
void option_format_help(const struct option_def *table, struct strbuf *out);

/* The candidate nearest to `word` (edit distance at most 2 and less than half of its length), or NULL. List ends with NULL. */
const char *option_suggest(const char *word, const char *const *candidates);

#endif
