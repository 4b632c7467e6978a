/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main_options: the options of `probing-top`, a row each: the parser, --help, the manual page and
 * the shells' completion are made from them.
 */
#ifndef TUI_MAIN_OPTIONS_H
#define TUI_MAIN_OPTIONS_H

#include <stdbool.h>

#include "base/option.h"
#include "client/hosts/fleet_reach.h"

/* The values of the options; main_table has the order of the help. */
struct main_options {
    const char *delay, *theme, *color, *filter, *export, *output, *unit, *sql, *budget, *rate, *screen, *diff,
        *token;
    bool ascii, no_color, no_mouse, list_keys, print_config, info, once, threads, process, by_function,
        gentle, locals, native, version, help;
    double duration_s;
    long rows, cols;
    struct option_list targets; /* given as options */
    bool no_inject, block, readonly, tour;
    struct fleet_reach_options reach; /* the hosts of a job */
};

/* Ends with a NULL name. */
extern const struct option_def main_table[];

/* Options that people know from other programs, and what to do here. Ends with a NULL flag. */
extern const struct main_hint { const char *flag, *hint; } main_hints[];

#endif
