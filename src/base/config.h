/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config: what can be set, one row a key: name, variable of the environment, range, default, help.
 *
 * Keys are "probing.NAME", their variables PROBING_NAME. A row's number is its place in struct config. Values are numbers,
 * checked against the row's range wherever they come from. Plain data; whoever owns a struct config uses it.
 */
#ifndef BASE_CONFIG_H
#define BASE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

enum config_key {
    CONFIG_BUDGET = 0,
    CONFIG_KEYS,
};

struct config_def {
    const char *key;  /* "probing.budget" */
    const char *env;  /* "PROBING_BUDGET" */
    const char *unit; /* of the number, as it is printed */
    const char *help; /* one line */
    double otherwise; /* the default */
    double min, max;
};

/* CONFIG_KEYS rows. */
extern const struct config_def config_defs[];

struct config {
    double values[CONFIG_KEYS];
    bool given[CONFIG_KEYS]; /* somebody has set it: it is not the default */
};

/* Everything as by default. */
void config_init(struct config *c);

/* Set a key to what `text` says. 0, or -1 with ERR_USAGE, which begins with `name` (what the user knows it by): it is no number,
 * or out of range; then nothing is changed. */
int config_set(struct config *c, enum config_key key, const char *name, const char *text, struct err *e);

/* Take what the environment of process `pid` (0: this one) said when it was started, not what it says now: reading that while
 * another thread changes it is not safe. Values that are refused are left as they are. 0, or -1 with the error of the first. */
int config_read_environ(struct config *c, pid_t pid, struct err *e);

#endif
