/* SPDX-License-Identifier: Apache-2.0 */
/* app_query: see app_query.h. */
#include "tui/core/app_query.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/core/app.h"
#include "tui/core/app_screen.h"

void app_query_init(struct app_query *q) { memset(q, 0, sizeof *q); }

void app_query_fini(struct app_query *q) {
    free(q->text);
    querier_export_fini(&q->exported);
    querier_answer_fini(&q->answer);
    catalog_free(q->catalog);
    history_fini(&q->history);
    memset(q, 0, sizeof *q);
}

void app_query_forget(struct app_query *q) {
    struct history kept = q->history;
    bool has_history = q->has_history;
    char dir[sizeof q->saved_dir];
    memcpy(dir, q->saved_dir, sizeof dir);
    unsigned answers = q->answers, catalogs = q->catalogs;
    memset(&q->history, 0, sizeof q->history);
    app_query_fini(q);
    q->history = kept;
    q->has_history = has_history;
    memcpy(q->saved_dir, dir, sizeof dir);
    q->answers = answers;
    q->catalogs = catalogs + 1;
}

static bool app_begin(struct app *a, enum app_query_request what) {
    struct app_query *q = &a->query;
    if (q->running && !(q->is_listing && q->pending <= APP_QUERY_TABLES)) {
        app_message(a, true,
                    q->exporting ? "an export is being written: ctrl-c ends it"
                                 : "a query runs: ctrl-c ends it");
        return false;
    }
    app_open_history(a, "history", &q->history, &q->has_history);
    q->is_listing = what == APP_QUERY_TABLES || (q->is_listing && q->pending == APP_QUERY_NONE);
    q->pending = what;
    q->running = true;
    q->exporting = what == APP_QUERY_EXPORT;
    q->began_s = a->now_s;
    a->dirty = true;
    return true;
}

void app_query_tables(struct app *a) {
    if (!a->query.running && app_begin(a, APP_QUERY_TABLES))
        a->host.run_query(a->host.arg);
}

bool app_ask(struct app *a, const char *text, bool again) {
    struct err e;
    char *copy = strdup(text);
    if (!copy || !app_begin(a, APP_QUERY_RUN)) {
        free(copy);
        return false;
    }
    free(a->query.text);
    a->query.text = copy;
    a->host.run_query(a->host.arg);
    if (!again && history_add(&a->query.history, text, &e) != 0)
        app_message(a, true, "%s", e.text);
    return true;
}

bool app_write(struct app *a, struct querier_export *x) {
    if (!app_begin(a, APP_QUERY_EXPORT)) {
        querier_export_fini(x);
        return false;
    }
    querier_export_fini(&a->query.exported);
    a->query.exported = *x;
    memset(x, 0, sizeof *x);
    a->host.run_query(a->host.arg);
    return true;
}

void app_cancel(struct app *a) {
    if (a->query.running)
        a->host.cancel_query(a->host.arg);
    a->dirty = true;
}

static void app_take_export(struct app *a, const struct querier_answer *answer, const char *path) {
    if (answer->error.code != ERR_OK)
        app_message(a, true, "%s", answer->error.text);
    else
        app_message(a, false, "%zu row%s written to %s", answer->exported, answer->exported == 1 ? "" : "s",
                    path);
}

void app_take_answer(struct app *a, struct querier_answer *answer) {
    struct app_query *q = &a->query;
    bool waits = q->pending != APP_QUERY_NONE && answer->kind == QUERIER_LIST_TABLES && !answer->cancelled;
    q->pending = waits ? q->pending : APP_QUERY_NONE;
    q->running = waits;
    q->exporting = waits && q->exporting;
    q->is_listing = false;
    if (answer->catalog) {
        catalog_free(q->catalog);
        q->catalog = answer->catalog;
        q->catalogs++;
        answer->catalog = NULL;
        snprintf(q->note, sizeof q->note, "%s", answer->note);
    }
    if (answer->kind == QUERIER_EXPORT)
        app_take_export(a, answer, q->exported.path);
    else if (answer->kind == QUERIER_LIST_TABLES && answer->error.code != ERR_OK)
        snprintf(q->note, sizeof q->note, "%s", answer->error.text);
    if (answer->kind == QUERIER_RUN) {
        querier_answer_fini(&q->answer);
        q->answer = *answer;
        memset(answer, 0, sizeof *answer);
        q->answers++;
        q->due_s = a->now_s + q->watch_s;
    }
    if (!waits)
        querier_export_fini(&q->exported);
    querier_answer_fini(answer);
    app_screen_update_all(a);
}

const struct catalog *app_catalog(struct app *a) {
    if (!a->query.catalog)
        a->query.catalog = catalog_of_definitions();
    return a->query.catalog;
}

bool app_query_needs_tick(const struct app *a) {
    if (a->query.running)
        return true;
    for (int i = 0; a->query.watch_s > 0 && i < a->n_screens; i++)
        if (a->screens[i].def->tick)
            return true;
    return false;
}
