/* SPDX-License-Identifier: Apache-2.0 */
/* sql_command: runs the query of the editor, once or repeatedly, and the commands of this screen;
 * see sql_state.h. */
#include "tui/screens/sql/sql_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "client/output.h"
#include "client/sql/saved.h"
#include "tui/workers/querier.h"
#include "tui/core/app.h"
#include "tui/core/app_query.h"
#include "tui/core/app_screen.h"
#include "tui/core/command.h"

#define SQL_WATCH_MIN_S 1.0
#define SQL_WATCH_MAX_S 3600.0

void sql_run(struct sql_state *s, struct app *app) {
    if (!s->typing.editor.text[strspn(s->typing.editor.text, " \t\n")]) {
        app_message(app, false, "there is nothing to run: type a query, or F2 has some");
        return;
    }
    sql_close_completion(s);
    s->typing.history_at = -1;
    s->again = false;
    app_ask(app, s->typing.editor.text, false);
}

void sql_watch(struct sql_state *s, struct app *app, double every_s) {
    bool was_on = app->query.watch_s > 0;
    if (every_s > 0 && !app->query.text) {
        if (!s->typing.editor.len) {
            app_message(app, false, "there is nothing to watch: run a query first");
            return;
        }
        sql_run(s, app);
    }
    app->query.watch_s = every_s;
    app->query.due_s = app->now_s + every_s;
    if (every_s > 0)
        app_message(app, false, "the query runs every %g s; F9 ends it", every_s);
    else if (was_on)
        app_message(app, false, "the query no longer repeats");
}

/* ---- commands ---- */

/* What is shown: the visible columns of the rows in their order, or only of the tagged ones if
 * there are any. 0, or -1: out of memory. */
static int sql_copy_shown(const struct sheet *sheet, struct querier_export *x) {
    const struct result *r = sheet->rows;
    size_t n = sheet_rows(sheet);
    x->hidden = calloc(r->n_columns + 1, 1);
    x->order = malloc((n + 1) * sizeof *x->order);
    if (!x->hidden || !x->order)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (!sheet->tags.n || tags_has(&sheet->tags, sheet_row(sheet, (int)i)))
            x->order[x->n_order++] = (uint32_t)sheet_row(sheet, (int)i);
    for (size_t i = 0; i < r->n_columns; i++)
        x->hidden[i] = sheet->columns[i].hidden;
    x->rows = result_ref(sheet->rows);
    return 0;
}

static void sql_command_export(struct app *app, const char *path) {
    struct sql_state *s = app_screen_top(app)->state;
    struct querier_export x = {0};
    struct err e;
    struct sql_view *v = sql_top_view(s);
    const char *format = querier_export_format(path, &e);
    if (!format) {
        app_message(app, true, "%s", e.text);
        return;
    }
    if (!sql_view_is_sheet(v)) {
        app_message(app, true, "there is no result to export: run a query first");
        return;
    }
    snprintf(x.format, sizeof x.format, "%s", format);
    if (!output_expand(path, x.path, sizeof x.path) || sql_copy_shown(&v->sheet, &x) != 0) {
        querier_export_fini(&x);
        app_message(app, true, "the export cannot be started: the name is too long, or memory is short");
        return;
    }
    app_write(app, &x);
}

static void sql_command_watch(struct app *app, const char *text) {
    struct sql_state *s = app_screen_top(app)->state;
    char *end;
    if (strcmp(text, "off") == 0) {
        sql_watch(s, app, 0);
        return;
    }
    double every = *text ? strtod(text, &end) : SQL_WATCH_S;
    if (*text && strcmp(end, "s") == 0)
        end++;
    if (*text && (end == text || *end || !(every >= SQL_WATCH_MIN_S && every <= SQL_WATCH_MAX_S))) {
        app_message(app, true, ":watch takes seconds, from 1 to 3600, or off");
        return;
    }
    sql_watch(s, app, every);
}

static void sql_command_save(struct app *app, const char *name) {
    const struct sql_state *s = app_screen_top(app)->state;
    struct err e;
    if (!s->typing.editor.text[strspn(s->typing.editor.text, " \t\n")])
        app_message(app, true, "there is nothing to save: type a query");
    else if (saved_write(app->query.saved_dir, name, s->typing.editor.text, &e) != 0)
        app_message(app, true, "%s", e.text);
    else
        app_message(app, false, "saved: F2 has it; it is %s/%s.sql", app->query.saved_dir, name);
}

static void sql_complete_watch(struct app *app, struct command_choices *out) {
    (void)app;
    command_offer(out, "off", "stop");
    command_offer(out, "2", "every 2 s");
    command_offer(out, "10", "every 10 s");
    command_offer(out, "60", "every minute");
}

static void sql_command_run(struct app *app, const char *argument) {
    if (!*argument) {
        app_message(app, true, "what query? :sql SELECT ..., or F2 of the SQL screen has some");
        return;
    }
    if (app_screen_top(app)->def != &screen_sql && !app_screen_open(app, ACTION_SHOW_SQL))
        return;
    struct sql_state *s = app_screen_top(app)->state;
    editor_set(&s->typing.editor, argument);
    sql_run(s, app);
    s->in_sheet = true;
}

#define SQL (ACTION_IN(CONTEXT_SQL) | ACTION_IN(CONTEXT_SQL_SHEET) | ACTION_IN(CONTEXT_SQL_COMPLETE))

/* clang-format off */
const struct command_def sql_commands[] = {
    {"export", "FILE", "write the result; FILE ends in .csv, .json or .ndjson", SQL,
     sql_command_export, NULL},
    {"watch", "[SECONDS|off]", "run the query again and again", SQL, sql_command_watch, sql_complete_watch},
    {"save", "NAME", "keep the query; F2 has it", SQL, sql_command_save, NULL},
    {"sql", "QUERY", "run a query in the SQL screen", ACTION_EVERYWHERE, sql_command_run, NULL},
    {NULL, NULL, NULL, 0, NULL, NULL},
};
/* clang-format on */
