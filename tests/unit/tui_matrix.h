/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tui_matrix: every screen of the program in the states that a screen can be in.
 *
 * test_tui_matrix paints each at three sizes, in three depths of colour, in UTF-8 and in ASCII.
 */
#ifndef TESTS_TUI_MATRIX_H
#define TESTS_TUI_MATRIX_H

#include "tui/core/app.h"

/* What the target and the connection are like, and what the user has done. */
enum matrix_state {
    MATRIX_NORMAL,
    MATRIX_PAUSED,       /* and newer data came */
    MATRIX_FILTERED,     /* by the row's keys */
    MATRIX_EMPTY,        /* connected, nothing came yet */
    MATRIX_DISCONNECTED, /* the target has ended */
    MATRIX_HUGE,         /* 200 threads of 60 frames, large numbers */
    MATRIX_HOSTILE,      /* CJK, combining characters, escape sequences, broken bytes */
    MATRIX_STATES,
};

#define MATRIX_IN(state) (1U << (state))
#define MATRIX_ALL (MATRIX_IN(MATRIX_STATES) - 1U)

struct matrix_row {
    const char *symbol; /* of the descriptor, without "screen_" */
    const struct screen_def *screen;
    const char
        *keys; /* that open it from Threads (fixture_press); "" it is open; NULL in a row: its first one */
    const char *filter; /* and that filter, or search, in it; NULL: it has neither, and not that state */
    unsigned states;    /* MATRIX_IN(...); 0 all */
    /* For one that needs more than a target and its samples: the app with the screen open in a state; else NULL. */
    struct app *(*make)(enum matrix_state state, bool ascii);
};

/* All rows; ends with a symbol of NULL. */
#define MATRIX_MAX_ROWS 60
const struct matrix_row *matrix_rows(void);

const char *matrix_state_name(enum matrix_state state);

/* Is the screen drawn in that state? */
bool matrix_has(const struct matrix_row *row, enum matrix_state state);

/* An app with the row's screen on top, in that state; app_free gives it back. */
struct app *matrix_make(const struct matrix_row *row, enum matrix_state state, bool ascii);

#endif
