/* SPDX-License-Identifier: Apache-2.0 */
/* screen_text: see screen_text.h. */
#include "tui/screen_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "tui/model/data.h"
#include "tui/core/app.h"
#include "tui/core/app_draw.h"
#include "tui/core/screen.h"
#include "tui/core/app_life.h"
#include "tui/core/header.h"
#include "tui/view/stack.h"
#include "tui/view/table.h"
#include "tui/screens/threads/threads_rows.h"
#include "tui/view/layout.h"

#define SCREEN_TEXT_HEADER 4
#define SCREEN_TEXT_MAX_ROW 8192

static void screen_text_put(const struct grid *g, int rows, struct strbuf *out) {
    char line[SCREEN_TEXT_MAX_ROW];
    for (int y = 0; y < rows; y++) {
        grid_row_text(g, grid_rect(g), y, line, sizeof line, NULL);
        strbuf_adds(out, line);
        strbuf_addc(out, '\n');
    }
}

/* Draw one thread's title and frames row by row: a stack may be longer than any screen. */
static void screen_text_stack(const struct model_thread *t, struct grid *g, struct strbuf *out) {
    struct rect row = {0, 0, 1, g->cols};
    char name[256];
    text_sanitize(name, sizeof name, data_thread_name(t));
    grid_clear(g);
    grid_printf(g, row, 0, 0, ROLE_TITLE, "Stack of %s (%lld)%s%s", name, (long long)t->tid,
                t->torn ? ", moved while it was read" : "",
                t->truncated ? ", outermost frames left out" : "");
    screen_text_put(g, 1, out);
    int func_cols = stack_func_cols(t, g->cols);
    for (size_t i = 0; i < t->n_frames; i++) {
        grid_clear(g);
        stack_draw_frame(&t->frames[i], (int)i, func_cols, 0, g, row, 0);
        screen_text_put(g, 1, out);
    }
    strbuf_addc(out, '\n');
}

static void screen_text_threads(const struct app *app, const struct screen_text_config *config,
                                struct grid *g, struct strbuf *out) {
    struct thread_rows rows = {0};
    struct match match = {0};
    struct thread_filter filter = {.match = &match};
    struct table_sort sort = {thread_column_cpu(), true};
    int widths[TABLE_MAX_COLUMNS];
    struct rect row = {0, 0, 1, g->cols};
    if (config->filter)
        match_set(&match, config->filter, true);
    thread_rows_build(&rows, data_shown(&app->data), &filter, sort);
    table_layout(thread_columns, thread_n_columns, g->cols, widths);
    grid_clear(g);
    table_draw_head(thread_columns, thread_n_columns, widths, sort, g, row);
    screen_text_put(g, 1, out);
    for (size_t i = 0; i < rows.n; i++) {
        grid_clear(g);
        table_draw_row(thread_columns, thread_n_columns, widths, thread_rows_at(&rows, i), 0, g, row, 0);
        screen_text_put(g, 1, out);
    }
    strbuf_addc(out, '\n');
    for (size_t i = 0; i < rows.n; i++)
        if (thread_rows_at(&rows, i)->thread->n_frames)
            screen_text_stack(thread_rows_at(&rows, i)->thread, g, out);
    thread_rows_fini(&rows);
}

/* Uncut: no screen limits it. */
static void screen_text_banner(const struct app *app, struct strbuf *out) {
    char banner[512], clean[512];
    if (!app_draw_banner(app, banner, sizeof banner))
        return;
    text_sanitize(clean, sizeof clean, banner);
    strbuf_addf(out, " %s\n", clean);
}

int screen_text_render(void *arg, const struct target_address *addr, const struct model_target *target,
                       const struct model_snapshot *snapshot, struct strbuf *out, struct err *e) {
    (void)addr; /* the export has nothing from the tables */
    const struct screen_text_config *config = arg;
    struct app_config app_config = {.ascii = config->ascii, .delay_s = 0, .screen = &screen_threads};
    struct app *app = app_new(&app_config);
    struct grid g;
    if (!app || grid_init(&g, SCREEN_TEXT_HEADER,
                          config->cols < LAYOUT_MIN_COLS ? LAYOUT_MIN_COLS : config->cols) != 0) {
        app_free(app);
        return err_set(e, ERR_FAILED, "out of memory for the screen");
    }
    g.ascii = config->ascii;
    /* The data belong to the caller: they are lent for the drawing and given back before the app is
     * freed. */
    struct data *d = &app->data;
    d->target = *target;
    d->live.snapshot = *snapshot;
    d->has_target = d->live.valid = true;
    d->state = SESSION_CONNECTED;
    d->received = 1;
    d->missed = snapshot->dropped;
    meter_add(&d->cpu, snapshot->process.cpu_pct);
    meter_add(&d->gil, data_gil_level(snapshot));
    header_draw(app, &g, grid_rect(&g));
    screen_text_put(&g, SCREEN_TEXT_HEADER, out);
    screen_text_banner(app, out);
    strbuf_addc(out, '\n');
    screen_text_threads(app, config, &g, out);
    memset(&d->target, 0, sizeof d->target);
    memset(&d->live, 0, sizeof d->live);
    d->has_target = false;
    grid_fini(&g);
    app_free(app);
    return out->failed ? err_set(e, ERR_FAILED, "out of memory for the screen") : 0;
}
