/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps_state: what the Steps screen holds, for the files it is made of: steps.c has the screen and its actions, steps_draw.c strips and
 * lanes, steps.c the table of steps, steps_model.c what is shown in both. Pure.
 */
#ifndef TUI_SCREENS_STEPS_STEPS_STATE_H
#define TUI_SCREENS_STEPS_STEPS_STATE_H

#include "tui/core/app.h"
#include "tui/view/outline.h"
#include "tui/screens/steps/steps_model.h"

#define STEPS_MAX_ZOOM 64 /* steps a column */

struct steps_state {
    struct steps_model model;
    struct outline table;
    bool has_looks;
    unsigned version, looks_version, pauses; /* of the feeds, as shown */
    unsigned zoom;                           /* steps a column */
    double window_s, looks_s;                /* how long ago steps and looks are asked for */
    size_t first;                            /* the newest column drawn */
    int cols;                                /* of the strips, as last drawn */
    struct rect chart_area;                  /* where they are */
};

/* steps.c */
extern const struct outline_def steps_outline;
enum { STEPS_COLUMN_STEP = 0 };

/* The table shows the model's rows. */
void steps_table_take(struct steps_state *s);

/* Number of the selected row in the model; 0 without any. */
size_t steps_selected(const struct steps_state *s);

/* steps_draw.c */
void steps_draw(void *state, struct app *app, struct grid *g, struct rect area);
void steps_status(const void *state, const struct app *app, struct strbuf *out);

#endif
