/* SPDX-License-Identifier: Apache-2.0 */
/* flame_state: what the files of the Flame screen share: its state, and the functions of each. */
#ifndef TUI_SCREENS_FLAME_FLAME_STATE_H
#define TUI_SCREENS_FLAME_FLAME_STATE_H

#include "client/samples/sample_flame.h"
#include "flame/flame_diff.h"
#include "flame/flame_layout.h"
#include "tui/core/app.h"
#include "tui/core/screen.h"
#include "tui/view/match.h"

#define FLAME_FIRST_SAMPLES 10 /* rows from which on there is something to show */

/* Search matches in the zoomed part of the tree. */
struct flame_hits {
    unsigned char *known; /* FLAME_HIT_..., by the number of a frame */
    size_t cap;
    size_t n;                    /* nodes */
    struct flame_weight covered; /* their total, with what is below one of them counted once */
};

/* Frames of the tree that have time now: the rows that can be tagged. */
struct flame_shown {
    uint32_t *frames; /* their numbers, ascending */
    size_t n;
};

struct flame_state {
    struct sample_flame *samples; /* NULL: out of memory */
    struct flame *flame;          /* its tree */
    struct sample_flame *before;  /* the tree that is compared with; NULL: none */
    /* Of the two; `now` is NULL while there is nothing to compare with. */
    struct flame_diff diff;
    bool compared; /* cells are coloured by it, known or not */
    struct flame_query query;
    struct match filter, search;
    uint32_t selected, zoom;
    uint32_t trail; /* what was selected before going up: down returns to it */
    int top;        /* first visible depth */
    bool flipped;   /* the root is at the bottom */
    int threshold;
    struct flame_layout layout;
    struct rect area; /* of the cells, as last drawn; no rows: not drawn */
    struct flame_hits hits;
    double built_s;           /* when the tree was last updated; 0: not yet */
    uint64_t built_samples;   /* of the stream at that time */
    uint64_t ids;             /* of the tally that the tree was made from; 0: none */
    unsigned pauses;          /* data.pauses at that time */
    unsigned version;         /* counts updates of the tree */
    bool details;             /* the pane with details of the selected frame is shown */
    struct flame_calls calls; /* of the node calls_of in the tree of calls_version */
    uint32_t calls_of;
    unsigned calls_version;
    unsigned window; /* version of the window that is shown */
    struct flame_shown shown;
    const struct tags *tags; /* the app's */
    unsigned tag_changes;    /* of the tags that the tree was made with */
    bool tagged_only;
};

/* ---- flame.c: the tree, its position on the screen ---- */

/* Is there a tree to show? */
bool flame_is_there(const struct flame_state *s);

/* A weight as a share of another: 0 to 100, NAN of nothing. */
double flame_share(const struct flame_state *s, struct flame_weight part, struct flame_weight whole);

/* Threshold in % of the zoomed node; 0: none. */
double flame_threshold_pct(const struct flame_state *s);

/* Update the tree. */
void flame_rebuild(struct flame_state *s, struct app *app);

/* Update the tree that is compared with, or end comparing, as the app wants now. */
void flame_compare(struct flame_state *s, struct app *app);
void flame_compare_end(struct flame_state *s);

/* By how many percentage points the share of a cell differs; NAN: unknown. */
double flame_delta(const struct flame_state *s, const struct flame_cell *c);

/* A line about the selected frame in place of the usual facts: both shares, their difference, and
 * callees that are gone. */
void flame_draw_compared(const struct flame_state *s, const struct app *app, struct grid *g, struct rect area,
                         int row, int col);

/* Select a node; scroll to it if it is too deep to be visible. */
void flame_select(struct flame_state *s, uint32_t node);

/* Zoom into a node: it gets the whole width. */
void flame_zoom_to(struct flame_state *s, uint32_t node);

/* Zoom out to the nearest caller that has more; false at the root. */
bool flame_zoom_out(struct flame_state *s);

/* Motion actions; false: another action. */
bool flame_move(struct flame_state *s, enum action action);

bool flame_mouse(void *state, struct app *app, const struct input_event *e);

/* ---- flame_draw.c: details ---- */

/* Take the part of the pane with details from the cells; no rows: it is not shown. */
struct rect flame_take_details(const struct flame_state *s, struct rect *cells);
void flame_draw_details(const struct flame_state *s, const struct app *app, struct grid *g, struct rect area);

/* The selection or the tree may have changed: find the calls and request the source of the selected
 * frame. */
void flame_follow_details(struct flame_state *s, struct app *app);

/* ---- flame.c: search and tags ---- */

extern const struct screen_rows flame_tagged; /* see screen_def */

/* Is a node's function, line or module tagged? */
bool flame_is_tagged(const struct flame_state *s, uint32_t node);

/* Which stacks are kept for their tags, if only tagged ones are shown. */
void flame_choose_tagged(struct flame_state *s);

/* Have the tags changed since the tree was made? */
bool flame_has_other_tags(const struct flame_state *s);

/* Does a node match the search? */
bool flame_is_hit(const struct flame_state *s, uint32_t node);

/* Search all zoomed nodes again. */
void flame_find_hits(struct flame_state *s);

/* The text of the search, or what the numbers of frames mean, has changed. */
void flame_forget_hits(struct flame_state *s);

/* Select the next match (`step` 1) or the one before (-1); or (0) stay on one. False: none. */
bool flame_search_step(struct flame_state *s, int step);

/* Does a stack's frame match the filter? `arg` is a struct match. */
bool flame_filter_matches(const void *arg, const struct model_frame *frame);

bool flame_pick(const void *state, const struct app *app, struct screen_pick *what, struct strbuf *one,
                struct strbuf *whole);
void flame_choose(const void *state, struct screen_choice *out);
bool flame_show(void *state, struct app *app, const struct screen_pick *what);

/* ---- flame_draw.c: cells ---- */

void flame_draw(void *state, struct app *app, struct grid *g, struct rect area);
void flame_status(const void *state, const struct app *app, struct strbuf *out);

/* ---- the cells alone, within another screen: nothing is selected, searched or tagged there ---- */

void flame_picture_init(struct flame_state *s);
void flame_picture_fini(struct flame_state *s);

/* Update the tree of that kind of time, if it is due. */
void flame_picture_follow(struct flame_state *s, struct app *app, enum flame_time time);
void flame_picture_draw(struct flame_state *s, const struct app *app, struct grid *g, struct rect area);

/* The frame at a place of the terminal; NULL: none is drawn there. Borrowed from the samples. */
const struct model_frame *flame_picture_at(const struct flame_state *s, int row, int col);

/* Name of a module for people, from one of its frames. */
void flame_module_name(const struct model_frame *f, char *buf, size_t cap);

/* Name of a node as a cell shows it, sanitised. */
void flame_label(const struct flame_state *s, const struct app *app, uint32_t node, char *buf, size_t cap);

/* "label value" at *col, which moves on past a gap. Left out if it does not fit whole. */
void flame_fact(struct grid *g, struct rect area, int row, int *col, const char *label, const char *value);

#endif
