/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config: the agent's settings, one row a key: name, variable of the environment, range,
 * default, help.
 *
 * Keys are "probing.NAME", their variables PROBING_NAME. A row's number is its place in struct
 * config. Values are numbers, with or without a unit ("64MB", "250ms", "5%"), or texts, checked
 * against the row wherever they come from. Plain data; whoever owns a struct config uses it. How
 * to add one: docs/dev/adding-an-option.md.
 */
#ifndef BASE_CONFIG_H
#define BASE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/option.h"

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
    CONFIG_MEMORY_TRACE,
    CONFIG_MEMORY_EVERY,
    CONFIG_EVAL,
    CONFIG_MAX_MEMORY,
    CONFIG_RETENTION,
    CONFIG_RETENTION_DAYS,
    CONFIG_DATA_DIR,
    CONFIG_ENV_ALLOW,
    CONFIG_LISTEN,
    CONFIG_KEYS,
};

/* CONFIG_KEYS rows. */
extern const struct option_def config_defs[];

struct config {
    double values[CONFIG_KEYS];
    bool given[CONFIG_KEYS]; /* true if a user has set it */
    char data_dir[CONFIG_TEXT_MAX];
    char env_allow[CONFIG_TEXT_MAX];
    char address[CONFIG_TEXT_MAX];
    char torch_profiling[CONFIG_TEXT_MAX];
};

/* Set every key to its default. */
void config_init(struct config *c);

/* The key of "probing.NAME" or NAME, or -1 with ERR_USAGE, which suggests the nearest one. */
int config_find(const char *name, struct err *e);

/* Set a key from `text`. 0, or -1 with ERR_USAGE if it is not a valid value or out of range;
 * then nothing changes. The error begins with `name`, the name that the user knows. */
int config_set(struct config *c, enum config_key key, const char *name, const char *text, struct err *e);

/* A key's value as text that config_set accepts: "32MB", "0.5", "on". With `def`, the default
 * instead. */
void config_format(const struct config *c, enum config_key key, bool def, char *buf, size_t cap);

/* Read the environment with which process `pid` (0: this one) was started. The present one is
 * not safe to read: another thread may be changing it. Invalid values are skipped. 0, or -1 with
 * the error of the first. */
int config_read_environ(struct config *c, pid_t pid, struct err *e);

#endif
