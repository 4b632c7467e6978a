/* SPDX-License-Identifier: Apache-2.0 */
/* sql_command: running what is in the editor, again and again too, and the commands behind the colon. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "client/saved.h"
#include "tui/querier_export.h"
#include "tui/screens/sql_state.h"

#define SQL_WATCH_MIN_S 1.0
#define SQL_WATCH_MAX_S 3600.0

void sql_run(struct sql_state *s, struct app *app) {
    if (!s->editor.text[strspn(s->editor.text, " \t\n")]) {
        app_message(app, false, "there is nothing to run: type a query, or F2 has some");
        return;
    }
    sql_close_completion(s);
    s->history_at = -1;
    s->again = false;
    (void)app_ask(app, s->editor.text, false);
}

void sql_watch(struct sql_state *s, struct app *app, double every_s) {
    bool was_on = app->query.watch_s > 0;
    if (every_s > 0 && !app->query.text) {
        if (!s->editor.len) {
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
        app_message(app, false, "the query is run no more by itself");
}

/* ---- commands ---- */

/* "~/x" is in the home folder. False when it is too long. */
static bool sql_expand_path(const char *path, char *out, size_t cap) {
    const char *home = path[0] == '~' && path[1] == '/' ? getenv("HOME") : NULL;
    int n = home ? snprintf(out, cap, "%s%s", home, path + 1) : snprintf(out, cap, "%s", path);
    return n > 0 && (size_t)n < cap;
}

/* What is shown: rows in their order, columns that are not hidden. 0, or -1: out of memory. */
static int sql_copy_shown(const struct sheet *sheet, struct querier_export *x) {
    const struct rowset *r = sheet->rows;
    x->hidden = calloc(r->n_columns + 1, 1);
    x->order = sheet->order && r->n_rows ? malloc(r->n_rows * sizeof *x->order) : NULL;
    if (!x->hidden || (sheet->order && r->n_rows && !x->order))
        return -1;
    for (size_t i = 0; i < r->n_columns; i++)
        x->hidden[i] = sheet->columns[i].hidden;
    if (x->order)
        memcpy(x->order, sheet->order, r->n_rows * sizeof *x->order);
    x->rows = rowset_ref(sheet->rows);
    return 0;
}

static void sql_export(struct sql_state *s, struct app *app, const char *path) {
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
    (void)snprintf(x.format, sizeof x.format, "%s", format);
    if (!sql_expand_path(path, x.path, sizeof x.path) || sql_copy_shown(&v->sheet, &x) != 0) {
        querier_export_fini(&x);
        app_message(app, true, "the export cannot be begun: the name is too long, or memory is short");
        return;
    }
    (void)app_write(app, &x);
}

static void sql_watch_command(struct sql_state *s, struct app *app, const char *text) {
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

static void sql_save(struct sql_state *s, struct app *app, const char *name) {
    struct err e;
    if (!s->editor.text[strspn(s->editor.text, " \t\n")])
        app_message(app, true, "there is nothing to save: type a query");
    else if (saved_write(app->query.saved_dir, name, s->editor.text, &e) != 0)
        app_message(app, true, "%s", e.text);
    else
        app_message(app, false, "saved: F2 has it; it is %s/%s.sql", app->query.saved_dir, name);
}

static void sql_quit_command(struct sql_state *s, struct app *app, const char *text) {
    (void)s;
    (void)text;
    app->wishes.quit = true;
}

static const struct {
    const char *name;
    void (*run)(struct sql_state *s, struct app *app, const char *argument);
} sql_commands[] = {
    {"export", sql_export},
    {"watch", sql_watch_command},
    {"save", sql_save},
    {"q", sql_quit_command},
};

void sql_command(struct sql_state *s, struct app *app, const char *line) {
    line += strspn(line, " :");
    size_t len = strcspn(line, " ");
    const char *argument = line + len + strspn(line + len, " ");
    char word[256];
    (void)snprintf(word, sizeof word, "%s", argument);
    for (size_t n = strlen(word); n > 0 && word[n - 1] == ' ';)
        word[--n] = '\0';
    if (len == 0)
        return;
    for (size_t i = 0; i < sizeof sql_commands / sizeof sql_commands[0]; i++)
        if (strlen(sql_commands[i].name) == len && strncmp(sql_commands[i].name, line, len) == 0) {
            sql_commands[i].run(s, app, word);
            return;
        }
    app_message(app, true, "there is no command '%.*s': export FILE, watch SECONDS, save NAME, q",
                (int)(len < 40 ? len : 40), line);
}
