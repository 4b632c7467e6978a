/* SPDX-License-Identifier: Apache-2.0 */
/*
 * browser: an outline with a pane beside or below it, in which the screen says what is known of the selected row; and the lines above.
 * What the screens of tensors, modules and loaders have in common. Pure.
 */
#ifndef TUI_SCREENS_BROWSER_H
#define TUI_SCREENS_BROWSER_H

#include "tui/core/app.h"
#include "tui/view/facts.h"
#include "tui/view/outline.h"

struct browser {
    bool open, zoomed;     /* the pane: it is there; that which has the keys has all the room */
    bool in_pane;          /* it has the keys */
    struct facts facts;    /* what it says; made by the screen before it is drawn */
    struct rect pane_area; /* as last drawn */
};

/* Columns that every table has and no row needs to be told; ends with NULL. */
extern const char *const browser_not_facts[];

/* What stands above: a line, and what is to be known of the feed; cuts `area`. `more` is said after that; NULL nothing. */
void browser_draw_head(struct app *app, enum app_feed_id id, const char *line, const char *more,
                       struct grid *g, struct rect *area);

/* Both; `empty` stands where rows would be. */
void browser_draw(struct browser *b, struct outline *o, const char *title, const char *empty, struct grid *g,
                  struct rect area);

/* The view of the outline, which knows who has the keys; as screen_def.view. */
struct view *browser_view(const struct browser *b, struct outline *o);

/* Enter (`opens`: a row that holds others opens or folds, of others the pane opens, then has the keys), panes, a step back in
 * them, motions in the pane, folding. False when the action is none of them: then it is the view's. */
bool browser_act(struct browser *b, struct outline *o, enum action action, enum action opens);

bool browser_mouse(struct browser *b, struct outline *o, struct app *app, const struct input_event *e);

#endif
