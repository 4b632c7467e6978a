/* SPDX-License-Identifier: Apache-2.0 */
/*
 * browser: an outline with a pane beside or below it for details of the selected row, and the lines
 * above them. Shared by the screens of tensors, modules and loaders. Pure.
 */
#ifndef TUI_SCREENS_BROWSER_H
#define TUI_SCREENS_BROWSER_H

#include "tui/core/app.h"
#include "tui/view/facts.h"
#include "tui/view/outline.h"

struct browser {
    bool open, zoomed;     /* the pane is visible; the focused one fills the screen */
    bool in_pane;          /* the pane has the focus */
    struct facts facts;    /* its content; the screen makes it before it is drawn */
    struct rect pane_area; /* as last drawn */
};

/* Columns that every table has and no pane shows; ends with NULL. */
extern const char *const browser_not_facts[];

/* Draw the lines above: `line`, then the state of the feed and `more` (NULL: nothing); reduces
 * `area`. */
void browser_draw_head(struct app *app, enum app_feed_id id, const char *line, const char *more,
                       struct grid *g, struct rect *area);

/* Draw both; `empty` is the text in place of rows. */
void browser_draw(struct browser *b, struct outline *o, const char *title, const char *empty, struct grid *g,
                  struct rect area);

/* The view of the outline, which knows what has the focus; as screen_def.view. */
struct view *browser_view(const struct browser *b, struct outline *o);

/* Enter (`opens`: a group opens or folds; for other rows the pane opens, then gets the focus),
 * panes, a step back in them, motions in the pane, folding. False: leave the action to the view. */
bool browser_act(struct browser *b, struct outline *o, enum action action, enum action opens);

bool browser_mouse(struct browser *b, struct outline *o, struct app *app, const struct input_event *e);

#endif
