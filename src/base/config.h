/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config: what can be set, one row a key: name, variable of the environment, range, default, help.
 *
 * Keys are "probing.NAME", their variables PROBING_NAME. A row's number is its place in struct config. Values are numbers, with or
 * without a unit ("64MB", "250ms", "5%"), or texts, checked against the row wherever they come from. Plain data; whoever owns a
 * struct config uses it.
 */
#ifndef BASE_CONFIG_H
#define BASE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

#define CONFIG_TEXT_MAX 256 /* of a value as text, with its NUL */

enum config_key {
    CONFIG_BUDGET = 0,
    CONFIG_SAMPLE_RATE,
    CONFIG_GENTLE,
    CONFIG_NATIVE,
    CONFIG_STEPS,
    CONFIG_TRACE_SHARE,
    CONFIG_TORCH_PROFILING,
    CONFIG_TRACE_RATE,
    CONFIG_EVAL,
    CONFIG_MAX_MEMORY,
    CONFIG_RETENTION,
    CONFIG_RETENTION_DAYS,
    CONFIG_DATA_DIR,
    CONFIG_ENV_ALLOW,
    CONFIG_LISTEN,
    CONFIG_KEYS,
};

enum config_type {
    CONFIG_NUMBER = 0,
    CONFIG_PERCENT, /* "5%" */
    CONFIG_RATE,    /* "10Hz" */
    CONFIG_BYTES,   /* "64MB", units of 1024 */
    CONFIG_SECONDS, /* "250ms", "2h" */
    CONFIG_DAYS,    /* "7d", "12h" */
    CONFIG_SWITCH,  /* "on", "off" */
    CONFIG_PATH,    /* absolute */
    CONFIG_NAMES,   /* of variables of the environment: "A,B" */
    CONFIG_ADDRESS, /* of a TCP door: see address.h */
    CONFIG_WATCH,   /* "on,exprs=loss@train": see watch.h */
};

struct config_def {
    const char *key;      /* "probing.budget" */
    const char *env;      /* "PROBING_BUDGET" */
    const char *unit;     /* of the number, as it is printed */
    const char *help;     /* one line */
    double default_value; /* the default */
    double min, max;
    enum config_type type;
    const char *text; /* CONFIG_PATH, CONFIG_NAMES, CONFIG_ADDRESS, CONFIG_WATCH: the default */
    bool at_start;    /* what is running does not take it any more */
};

/* CONFIG_KEYS rows. */
extern const struct config_def config_defs[];

struct config {
    double values[CONFIG_KEYS];
    bool given[CONFIG_KEYS]; /* somebody has set it: it is not the default */
    char data_dir[CONFIG_TEXT_MAX];
    char env_allow[CONFIG_TEXT_MAX];
    char address[CONFIG_TEXT_MAX];
    char torch_profiling[CONFIG_TEXT_MAX];
};

/* Everything as by default. */
void config_init(struct config *c);

/* The number of a key, known by "probing.NAME" or NAME. Or -1 with ERR_USAGE, which suggests the nearest one. */
int config_find(const char *name, struct err *e);

/* Set a key to what `text` says. 0, or -1 with ERR_USAGE, which begins with `name` (what the user knows it by): it is no number,
 * or out of range; then nothing is changed. */
int config_set(struct config *c, enum config_key key, const char *name, const char *text, struct err *e);

/* A key's value as text that config_set takes: "32MB", "0.5", "on". `def`: the default instead. */
void config_format(const struct config *c, enum config_key key, bool def, char *buf, size_t cap);

/* Take what the environment of process `pid` (0: this one) said when it was started, not what it says now: reading that while
 * another thread changes it is not safe. Values that are refused are left as they are. 0, or -1 with the error of the first. */
int config_read_environ(struct config *c, pid_t pid, struct err *e);

#endif
