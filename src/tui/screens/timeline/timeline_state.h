/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline_state: what the files of the Timeline screen share: timeline.c has the screen, its
 * actions and the position in time and among threads, timeline_draw.c the picture. Pure.
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

#define TIMELINE_FIRST_SAMPLES 10 /* rows from which on there is something to show */
#define TIMELINE_MAX_COLS 512     /* columns that are drawn; wider terminals leave the rest free */

struct timeline_state {
    struct timeline *timeline;        /* NULL: out of memory */
    struct timeline_view view;        /* that it was made for; no columns: not yet */
    const struct sample_store *tally; /* what it was made from; only compared */
    uint64_t ids;                     /* of that; a change gives functions other numbers */
    bool is_stale;                    /* samples have arrived since */
    int scale;                        /* length of a slice, an index of timeline_scales */
    bool follows;                     /* the newest slice is at the right and selected */
    /* Otherwise: a time in the slice at the right, and in the selected one. */
    double right_s, cursor_s;
    double mark_s; /* where the selection of a span began */
    bool selecting;
    bool is_stepped; /* an earlier moment is shown, and the cursor was moved to it */
    bool followed;   /* before that */
    int64_t tid;     /* the selected thread */
    bool by_depth;   /* show the calls of that thread instead of all threads */
    int depth_top;   /* first visible depth then */
    enum timeline_time time;
    bool hides_idle;
    struct match filter, search;
    size_t *shown; /* lanes, in the order of rows */
    size_t n_shown, cap_shown;
    int top;          /* first visible row of them */
    struct rect area; /* of the cells, as last drawn; no rows: not drawn */
    unsigned pauses;
    unsigned tag_changes; /* of the tagged threads, when the rows were made */
    bool tagged_only;
};

/* ---- timeline.c ---- */

/* Length of a slice, in seconds. */
double timeline_scale_s(const struct timeline_state *s);

/* The slice at the right, the selected one, and the one where the selection began. */
int64_t timeline_right(const struct timeline_state *s, const struct app *app);
int64_t timeline_cursor(const struct timeline_state *s, const struct app *app);
int64_t timeline_mark(const struct timeline_state *s);

/* The first slice of the selection and the one after its last; false: nothing is being selected. */
bool timeline_selection(const struct timeline_state *s, const struct app *app, int64_t *from, int64_t *to);

/* Make the visible cells, if they are not made; false: out of memory, or no samples. */
bool timeline_refresh(struct timeline_state *s, const struct app *app, int cols);

/* Time in the middle of a slice. */
double timeline_middle(const struct timeline_state *s, int64_t slice);

/* The selected thread; 0: none is visible. */
int64_t timeline_tid(const struct timeline_state *s);

/* Row of the selected thread among those shown; -1: none. */
int timeline_row(const struct timeline_state *s);

/* The cell under the cursor; NULL: it is not visible. */
const struct timeline_cell *timeline_selected(const struct timeline_state *s, const struct app *app);

/* Move the cursor to a time, known or not; scrolls only as far as necessary. */
void timeline_show_time(struct timeline_state *s, const struct app *app, double time_s);

/* Motion in time and among rows, and zoom; false: another action. */
bool timeline_move(struct timeline_state *s, const struct app *app, enum action action);

/* Longer (-1) or shorter (1) slices; what is in column `col` stays there (-1: at the cursor). */
void timeline_zoom(struct timeline_state *s, const struct app *app, int step, int col);

/* Does a cell match the search? */
bool timeline_is_hit(const struct timeline_state *s, const struct app *app, const struct timeline_cell *c);

/* Select the next (1) or previous (-1) slice that matches, from the cursor on; 0: it may be the
 * selected one. */
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
