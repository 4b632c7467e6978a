/* SPDX-License-Identifier: Apache-2.0 */
/* overview_state: the lines of the Overview screen, and the functions that are listed there. */
#ifndef TUI_SCREENS_OVERVIEW_OVERVIEW_STATE_H
#define TUI_SCREENS_OVERVIEW_OVERVIEW_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/model.h"
#include "tui/keys/action.h"
#include "tui/model/log.h"
#include "tui/model/meter.h"
#include "tui/theme/theme.h"

#define OVERVIEW_FUNCTIONS 10 /* that are listed */
#define OVERVIEW_EVENTS 8     /* that are listed */
#define OVERVIEW_LINES 64
#define OVERVIEW_LABEL_COLS 15
#define OVERVIEW_NARROW 60 /* from here on there is room for histories, and for text beside names */
#define OVERVIEW_TEXT 200

enum overview_kind {
    OVERVIEW_VERDICT, /* label, text */
    OVERVIEW_METER,   /* label, value, history, text */
    OVERVIEW_TITLE,
    OVERVIEW_FUNCTION,
    OVERVIEW_EVENT,
};

/* A function with its shares of the samples. */
struct overview_function {
    char func[128], file[96];
    const struct model_frame *frame; /* the tally's; NULL: threads without one */
    enum theme_role role;
    double own_pct, total_pct; /* NAN: unknown */
};

struct overview_functions {
    struct overview_function items[OVERVIEW_FUNCTIONS];
    int n;
    bool on_cpu;      /* of time on the CPU; else of all time, because nothing was on it */
    uint64_t samples; /* that shares refer to */
};

struct overview_line {
    enum overview_kind kind;
    bool is_right; /* in the second column, if there are two */
    const char *label;
    char value[24], text[OVERVIEW_TEXT];
    enum theme_role role;
    const struct meter *meter; /* NULL: no history */
    struct meter_scale scale;
    enum theme_role meter_role;
    const struct overview_function *function;
    const struct log_entry *event;
    int64_t tid;       /* of the thread it is about; 0: none */
    enum action opens; /* what Enter does there; ACTION_NONE: nothing */
};

struct overview {
    struct overview_line lines[OVERVIEW_LINES];
    int n, n_verdicts; /* the first lines */
};

#endif
