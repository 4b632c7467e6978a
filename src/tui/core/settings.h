/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings: what the user can set, one row a setting: name, kind, default, values, help.
 *
 * The rows feed the settings file, --print-config, the Setup screen and :set. Values are kept as
 * text in one form ("250ms", "on"), with their origin. What they do in a running app is in
 * app_settings.h. How to add one: docs/dev/adding-an-option.md. Used by the thread that draws.
 */
#ifndef TUI_CORE_SETTINGS_H
#define TUI_CORE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/option.h"

#define SETTINGS_TEXT 256          /* of a value, including its NUL */
#define SETTINGS_MIN_DELAY_S 0.033 /* the rate of painting */
#define SETTINGS_MAX_DELAY_S 60.0

enum settings_key {
    SETTINGS_DELAY = 0,
    SETTINGS_THEME,
    SETTINGS_COLOR,
    SETTINGS_ASCII,
    SETTINGS_MOUSE,
    SETTINGS_SCREEN,
    SETTINGS_FILTER,
    SETTINGS_HIDE_IDLE,
    SETTINGS_HEADER,
    SETTINGS_GENTLE,
    SETTINGS_BUDGET,
    SETTINGS_RATE,
    SETTINGS_READONLY,
    SETTINGS_COUNT,
};

enum settings_origin {
    SETTINGS_BY_DEFAULT = 0,
    SETTINGS_BY_FILE,
    SETTINGS_BY_COMMAND_LINE,
    SETTINGS_BY_KEY, /* changed while it is running */
};

/* SETTINGS_COUNT rows. */
extern const struct option_def settings_table[];

struct settings {
    char values[SETTINGS_COUNT][SETTINGS_TEXT];
    enum settings_origin origins[SETTINGS_COUNT];
};

/* All defaults. */
void settings_init(struct settings *s);

/* The key of a name, or -1 with ERR_USAGE, which suggests the nearest one. */
int settings_find(const char *name, struct err *e);

/* Set a value. -1 with ERR_USAGE, which begins with `name` (the name that the user typed); nothing
 * is changed then. */
int settings_put(struct settings *s, enum settings_key key, const char *name, const char *text,
                 enum settings_origin origin, struct err *e);

bool settings_is_on(const struct settings *s, enum settings_key key);

/* Of a number; of an OPTION_DELAY in seconds. */
double settings_number(const struct settings *s, enum settings_key key);

/* "default", "file", ... */
const char *settings_origin_name(enum settings_origin origin);

#endif
