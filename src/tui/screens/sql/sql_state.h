/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sql_state: what the files of the SQL screen share: the editor at the top, a stack of views below
 * it.
 *
 * The result is the lowest view; details of it, the error of a later query, and lists to choose
 * from are above it and are closed again.
 */
#ifndef TUI_SCREENS_SQL_SQL_STATE_H
#define TUI_SCREENS_SQL_SQL_STATE_H

#include "client/sql/sql_complete.h"
#include "tui/core/app.h"
#include "tui/core/command.h"
#include "tui/screens/typing.h"
#include "tui/view/pager.h"
#include "tui/view/sheet.h"

#define SQL_MAX_VIEWS 6
#define SQL_WATCH_S 2.0

enum sql_view_kind {
    SQL_VIEW_RESULT = 0,
    SQL_VIEW_FIGURES, /* of a column of the view below, or how often it has each value */
    SQL_VIEW_TABLES,
    SQL_VIEW_COLUMNS, /* of a table */
    SQL_VIEW_SAVED,   /* queries to choose from */
    SQL_VIEW_TEXT,    /* a whole value, or that a query has no rows */
    SQL_VIEW_ERROR,
};

struct sql_view {
    enum sql_view_kind kind;
    char title[160];
    struct sheet sheet; /* of all kinds but TEXT and ERROR */
    struct pager pager; /* of these two */
    bool from_editor;   /* when it is closed the editor gets the focus */
};

struct sql_state {
    struct typing typing;
    bool in_sheet; /* the view has the focus, not the editor */
    bool zoomed;   /* the view fills the whole body */
    struct sql_view views[SQL_MAX_VIEWS];
    int n_views;
    unsigned answers; /* of the app, when they were last read */
    bool again;       /* the answer is that of a repeated query: it renews the rows */

    struct sql_completion completion; /* while typing.completing */
    unsigned catalogs;                /* of the app, when the completion was made */

    struct rect view_area; /* as last drawn */
};

/* sql_views.c: the view on top; NULL: none. Whether one is a sheet with columns. */
struct sql_view *sql_top_view(struct sql_state *s);
bool sql_view_is_sheet(const struct sql_view *v);
void sql_pop_view(struct sql_state *s);
void sql_drop_views(struct sql_state *s);

/* Show the app's answer, if it is a new one. */
void sql_take_answer(struct sql_state *s, struct app *app);

/* Open a list above what is shown; it gets the focus. Close it if it is on top already. */
void sql_open_saved(struct sql_state *s, struct app *app);
void sql_open_tables(struct sql_state *s, struct app *app);

/* An action of the view on top; false: another action. */
bool sql_act_view(struct sql_state *s, struct app *app, enum action action);

/* sql.c: an action of the editor; false: another action. What is typed or pasted there. */
bool sql_act_edit(struct sql_state *s, struct app *app, enum action action);
void sql_edited(struct sql_state *s, struct app *app);
void sql_close_completion(struct sql_state *s);
void sql_complete_refresh(struct sql_state *s, struct app *app);

/* Search the history for what is typed. */
bool sql_search_history(struct sql_state *s, struct app *app, const char *text, enum screen_typed phase);

/* sql_command.c: run what is in the editor. */
void sql_run(struct sql_state *s, struct app *app);

/* Repeat the query every so many seconds; 0: stop that. */
void sql_watch(struct sql_state *s, struct app *app, double every_s);

extern const struct command_def sql_commands[];

/* sql.c: see screen_def. */
extern const struct screen_rows sql_tagged;
bool sql_pick(const void *state, const struct app *app, struct screen_pick *what, struct strbuf *one,
              struct strbuf *whole);

/* sql_draw.c */
void sql_draw(void *state, struct app *app, struct grid *g, struct rect area);
void sql_status(const void *state, const struct app *app, struct strbuf *out);

#endif
