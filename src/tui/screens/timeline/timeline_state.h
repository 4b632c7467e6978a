/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline_state: what the Timeline screen holds, for the files it is made of: timeline.c has the screen and its actions,
 * timeline.c where one is in time and among threads, timeline_draw.c the picture. Pure.
 */
#ifndef TUI_SCREENS_TIMELINE_TIMELINE_STATE_H
#define TUI_SCREENS_TIMELINE_TIMELINE_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/samples/timeline.h"
#include "tui/core/app.h"
#include "tui/core/screen.h"
#include "tui/view/match.h"

#define TIMELINE_FIRST_SAMPLES 10 /* from here on there is something to show */
#define TIMELINE_MAX_COLS 512     /* columns drawn; wider terminals leave the rest free */

struct timeline_state {
    struct timeline *timeline;        /* NULL: there was no memory */
    struct timeline_view view;        /* that it was made for; no columns: not yet */
    const struct sample_store *tally; /* and of which; only compared */
    uint64_t ids;                     /* of that; numbers of functions mean others when it is another */
    bool is_stale;                    /* samples came since */
    int scale;                        /* how long a slice is, of timeline_scales */
    bool follows;                     /* the newest slice is at the right and selected */
    double right_s, cursor_s;         /* else: a time in the slice there, and in the one selected */
    double mark_s;                    /* where the selection of a span began */
    bool selecting;
    bool is_stepped; /* a moment of the past is shown, and was put under the cursor */
    bool followed;   /* before that */
    int64_t tid;     /* the selected thread */
    bool by_depth;   /* the calls of that thread are shown, not all threads */
    int depth_top;   /* first depth shown then */
    enum timeline_time time;
    bool hides_idle;
    struct match filter, search;
    size_t *shown; /* lanes, in the order of rows */
    size_t n_shown, cap_shown;
    int top;          /* first row of them shown */
    struct rect area; /* of the cells, as last drawn; no rows: not drawn */
    unsigned pauses;
    unsigned tag_changes; /* of the tagged threads, that the rows were made with */
    bool tagged_only;
};

/* ---- timeline.c ---- */

/* Length of a slice, in seconds. */
double timeline_scale_s(const struct timeline_state *s);

/* The slice at the right, the selected one, the one where the selection began. */
int64_t timeline_right(const struct timeline_state *s, const struct app *app);
int64_t timeline_cursor(const struct timeline_state *s, const struct app *app);
int64_t timeline_mark(const struct timeline_state *s);

/* First slice of the selection and the one after the last; false while nothing is being selected. */
bool timeline_selection(const struct timeline_state *s, const struct app *app, int64_t *from, int64_t *to);

/* Make the cells that are to be seen, if they are not made; false without memory or samples. */
bool timeline_refresh(struct timeline_state *s, const struct app *app, int cols);

/* Time in the middle of a slice. */
double timeline_middle(const struct timeline_state *s, int64_t slice);

/* The selected thread; 0: none is shown. */
int64_t timeline_tid(const struct timeline_state *s);

/* Row of the selected thread among those shown; -1: none is shown. */
int timeline_row(const struct timeline_state *s);

/* The cell under the cursor; NULL: it is not in view. */
const struct timeline_cell *timeline_selected(const struct timeline_state *s, const struct app *app);

/* Put the cursor on a time, known or not; the view moves as far as it has to. */
void timeline_show_time(struct timeline_state *s, const struct app *app, double time_s);

/* Motion in time and among rows, and zoom; false when the action is none. */
bool timeline_move(struct timeline_state *s, const struct app *app, enum action action);

/* Longer (-1) or shorter (1) slices; what is in column `col` stays there (-1: where the cursor is). */
void timeline_zoom(struct timeline_state *s, const struct app *app, int step, int col);

/* Does what a cell shows match what is searched for? */
bool timeline_is_hit(const struct timeline_state *s, const struct app *app, const struct timeline_cell *c);

/* Select the next (1) or previous (-1) slice that matches, from the cursor on; 0: it may be the selected one. */
bool timeline_search(struct timeline_state *s, const struct app *app, int step);

bool timeline_mouse(void *state, struct app *app, const struct input_event *e);

extern const struct screen_rows timeline_tagged;

bool timeline_pick(const void *state, const struct app *app, struct screen_pick *what, struct strbuf *one,
                   struct strbuf *whole);
bool timeline_show(void *state, struct app *app, const struct screen_pick *what);

/* ---- timeline_draw.c ---- */

void timeline_draw(void *state, struct app *app, struct grid *g, struct rect area);
void timeline_status(const void *state, const struct app *app, struct strbuf *out);

#endif
