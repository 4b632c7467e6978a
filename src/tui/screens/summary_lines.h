/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary_lines: what the Overview screen says, line by line: meters, threads, functions, events. Pure.
 *
 * Every number has its unit; what is not known is "?", what there is none of is said in words.
 */
#ifndef TUI_SCREENS_SUMMARY_LINES_H
#define TUI_SCREENS_SUMMARY_LINES_H

#include "client/sample_store_table.h"
#include "tui/app.h"

#define SUMMARY_FUNCTIONS 10 /* that are listed */
#define SUMMARY_EVENTS 8     /* the same, at most */
#define SUMMARY_LINES 56
#define SUMMARY_LABEL_COLS 15
#define SUMMARY_TEXT 200

enum summary_kind {
    SUMMARY_VERDICT, /* label, text */
    SUMMARY_METER,   /* label, value, history, text */
    SUMMARY_TITLE,
    SUMMARY_FUNCTION,
    SUMMARY_EVENT,
};

/* A function with its shares of the samples. */
struct summary_function {
    char func[128], file[96];
    const struct model_frame *frame; /* of the tally's; NULL: threads without one */
    enum theme_role role;
    double own_pct, total_pct; /* NAN unknown */
};

struct summary_functions {
    struct summary_function items[SUMMARY_FUNCTIONS];
    int n;
    bool on_cpu;      /* of time on the CPU; else of all time, for nothing was on it */
    uint64_t samples; /* that shares are of */
};

struct summary_line {
    enum summary_kind kind;
    bool is_right; /* in the second column, where there are two */
    const char *label;
    char value[24], text[SUMMARY_TEXT];
    enum theme_role role;
    const struct meter *meter; /* NULL: no history */
    double full;               /* of a full bar */
    enum theme_role meter_role;
    const struct summary_function *function;
    const struct log_entry *event;
    int64_t tid;       /* of the thread it is about; 0 none */
    enum action opens; /* what Enter does there; ACTION_NONE nothing */
};

struct summary {
    struct summary_line lines[SUMMARY_LINES];
    int n, n_verdicts; /* of them, the first */
};

/* The first functions of a table by their own time. The texts are copied. */
void summary_pick_functions(struct summary_functions *out, const struct sample_store *tally,
                            enum sample_store_window window);

/* All lines, from what is known now, for a column that is so wide. */
void summary_build(struct summary *out, const struct app *app, const struct summary_functions *functions,
                   int cols);

#endif
