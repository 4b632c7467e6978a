/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view: a list of rows, and everything that is done with rows of any kind: selecting, scrolling,
 * sorting, searching, filtering, tagging, by keys and by mouse.
 *
 * A screen owns one, describes its rows (view_def) and makes them again when the view asks for it
 * (rebuild): those that view_shows accepts, in the order of `sort`. The selection belongs to a
 * thing, not to a row: it stays when rows move. Pure; `owner` is what owns the rows: the screen's
 * state, or an outline.
 */
#ifndef TUI_VIEW_VIEW_H
#define TUI_VIEW_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "tui/keys/action.h"
#include "tui/keys/input.h"
#include "tui/view/grid.h"
#include "tui/view/list.h"
#include "tui/view/match.h"
#include "tui/view/table.h"
#include "tui/view/tags.h"

struct app;
struct screen_pick;

struct view_def {
    /* If rows have no columns and no head. */
    void (*draw_row)(const void *owner, const void *row, int scroll, struct grid *g, struct rect area);

    int (*count)(const void *owner);
    /* The argument of columns and of the functions below. */
    const void *(*row)(const void *owner, int at);
    /* Identifies its thing (NULL: the selection is a position), and its tag (NULL: by the same
     * key). */
    uint64_t (*key)(const void *row);
    uint64_t (*tag_key)(const void *row);
    /* Ignores negation; NULL: rows cannot be searched. */
    bool (*matches)(const void *row, const struct match *m);

    /* What it is, and its texts, as of screen_def.pick; appended. NULL: rows cannot be picked. */
    void (*put)(const void *owner, const void *row, struct screen_pick *what, struct strbuf *one,
                struct strbuf *whole);

    /* Order, filter or tags have changed: make the rows again and settle the view. May be NULL,
     * like the next one. */
    void (*rebuild)(void *owner, struct app *app);
    void (*selected)(void *owner, struct app *app); /* the selection has changed */

    /* No visible row matches: select one that is hidden in a folded one. False: none matches. NULL:
     * all rows are visible. */
    bool (*reveal)(void *owner, struct app *app);

    /* A search goes from the end to the beginning. */
    bool newest_last;
    /* A selected thing that disappears is not selected when it returns: its successor is. */
    bool forgets;
};

struct view {
    const struct view_def *def;
    void *owner;
    const struct table_column *columns; /* NULL: rows have none */
    int n_columns;
    struct list list;
    struct match filter, search;
    struct table_sort sort;
    /* `own_tags`, or those shared by several screens; NULL: rows cannot be tagged. */
    struct tags *tags, own_tags;
    bool has_key;
    uint64_t key; /* of the selected thing */
    bool in_pane; /* a pane beside the rows has the focus */
    int scroll;
    int widths[TABLE_MAX_COLUMNS];
    struct rect area; /* as last drawn, including the head; no rows: not drawn */
};

/* `v` is zeroed; `tags`: as in struct view. */
void view_init(struct view *v, const struct view_def *def, void *owner, struct tags *tags);
void view_fini(struct view *v);

/* The columns from here on. */
void view_set_columns(struct view *v, const struct table_column *columns, int n);

/* ---- for rebuild ---- */

/* Is a row shown: by the filter, and by tags if only tagged ones are? */
bool view_shows(const struct view *v, const void *row);

/* Is a row tagged; the key of its tag. */
bool view_has_tag(const struct view *v, const void *row);
uint64_t view_tag_key(const struct view *v, const void *row);

/* The rows are made: select the row of the selected thing. */
void view_settle(struct view *v);

/* ---- what is done ---- */

/* The selected row; NULL: none. */
const void *view_row(const struct view *v);

void view_select(struct view *v, struct app *app, int at);

/* What to say after an action. */
enum view_result {
    VIEW_IGNORED, /* not an action of a view */
    VIEW_DONE,
    VIEW_NO_SEARCH, /* nothing was searched for */
    VIEW_NO_MATCH,  /* nothing matches */
};

/* Motion, order, search, a step back (search, then filter), showing all rows, scrolling long
 * lines. */
enum view_result view_act(struct view *v, struct app *app, enum action action);

/* Text of a filter (ACTION_FILTER) or search; true if something matches or there is no text. */
bool view_typed(struct view *v, struct app *app, enum action what, const char *text);

/* Select the next row that matches, from one on (`step` 1) or backwards (-1). False: none. */
bool view_search(struct view *v, struct app *app, int from, int step);

/* The wheel, anywhere; a click on a row or on the title of a column. False: no meaning. `again`, if
 * not NULL: the row was selected already. */
bool view_mouse(struct view *v, struct app *app, const struct input_event *e, bool *again);

/* ---- what is shown ---- */

/* Head and rows; `empty` is the text in place of rows. */
void view_draw(struct view *v, struct grid *g, struct rect area, const char *empty);

/* Is there a search or a filter that a step back would end? */
bool view_can_go_back(const struct view *v);

/* Parts of a status line: "   FILTER x   2 tagged", "   sorted by NAME", "   /y: 3" for the rows
 * that are shown. */
void view_put_filter(const struct view *v, struct strbuf *out);
void view_put_sort(const struct view *v, struct strbuf *out);
int view_hits(const struct view *v);

#endif
