/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline_pick: what is selected in the Timeline screen, a thread and what it did in a slice of time, and which threads are tagged, for
 * other parts of the program; and going to a thread that they have selected.
 */
#include <inttypes.h>

#include "tui/core/pick.h"
#include "tui/screens/timeline/timeline_state.h"

#define TIMELINE_PICK_DEPTH 2048 /* frames of a stack; the innermost when there are more */

/* The cell of a row under the cursor, if it is of a function; NULL. */
static const struct timeline_cell *timeline_cell_of(const struct timeline_state *s, const struct app *app,
                                                    int row) {
    int64_t col = timeline_cursor(s, app) - s->view.first;
    if (!app->data.tally || s->tally != app->data.tally || row < 0 || row >= (int)s->n_shown || col < 0 ||
        col >= s->view.cols)
        return NULL;
    const struct timeline_cell *c = timeline_cell(s->timeline, s->shown[row], (int)col);
    return c->state >= TIMELINE_IDLE && c->function != TIMELINE_NO_FRAME ? c : NULL;
}

/* The thread's line, and its stack in the slice, innermost first. */
static void timeline_put_stack(const struct app *app, int64_t tid, const struct timeline_cell *c,
                               struct strbuf *out) {
    const struct stack_counts *fold = sample_store_fold(app->data.tally);
    const char *name = stack_counts_thread_name(fold, tid);
    (void)strbuf_addf(out, "%" PRId64 " ", tid);
    pick_put_text(out, name ? name : "?");
    (void)strbuf_addc(out, '\n');
    uint32_t stack = c ? c->stack : STACK_COUNTS_NO_STACK, above;
    for (int i = 0; stack != STACK_COUNTS_NO_STACK && i < TIMELINE_PICK_DEPTH; i++, stack = above) {
        const struct model_frame *f = stack_counts_frame(fold, stack_counts_stack_frame(fold, stack, &above));
        if (!app_shows_native(app, CONTEXT_TIMELINE))
            above = sample_store_python_stack(app->data.tally, above);
        (void)strbuf_adds(out, "  ");
        if (f)
            pick_put_frame(out, f);
        (void)strbuf_addc(out, '\n');
    }
}

static const struct model_frame *timeline_put_row(const struct timeline_state *s, const struct app *app,
                                                  int row, struct strbuf *whole) {
    const struct timeline_cell *c = timeline_cell_of(s, app, row);
    timeline_put_stack(app, timeline_lane(s->timeline, s->shown[row])->tid, c, whole);
    return c ? stack_counts_frame(sample_store_fold(app->data.tally), c->function) : NULL;
}

bool timeline_pick(const void *state, const struct app *app, struct screen_pick *what, struct strbuf *one,
                   struct strbuf *whole) {
    const struct timeline_state *s = state;
    int row = timeline_row(s);
    if (row < 0 || !app->data.tally || s->tally != app->data.tally)
        return false;
    const char *name = stack_counts_thread_name(sample_store_fold(app->data.tally), timeline_tid(s));
    what->tid = timeline_tid(s);
    what->frame = timeline_put_row(s, app, row, whole);
    if (what->frame)
        pick_put_frame(one, what->frame);
    else
        pick_put_text(one, name ? name : "?");
    return true;
}

bool timeline_show(void *state, struct app *app, const struct screen_pick *what) {
    struct timeline_state *s = state;
    (void)app;
    for (size_t i = 0; i < s->n_shown; i++)
        if (timeline_lane(s->timeline, s->shown[i])->tid == what->tid) {
            s->tid = what->tid;
            return true;
        }
    return false;
}

/* ---- tagged rows ---- */

static struct tags *timeline_tags(void *state, struct app *app) {
    (void)state;
    return &app->threads;
}

static int timeline_count_rows(const void *state, const struct app *app) {
    const struct timeline_state *s = state;
    return s->tally == app->data.tally ? (int)s->n_shown : 0;
}

static int timeline_selected_row(const void *state, const struct app *app) {
    const struct timeline_state *s = state;
    return s->tally == app->data.tally && !s->by_depth ? timeline_row(s) : -1;
}

static uint64_t timeline_key(const void *state, const struct app *app, int row) {
    const struct timeline_state *s = state;
    (void)app;
    return (uint64_t)timeline_lane(s->timeline, s->shown[row])->tid;
}

static void timeline_put(const void *state, const struct app *app, int row, struct screen_pick *what,
                         struct strbuf *one, struct strbuf *whole) {
    const struct timeline_state *s = state;
    int64_t tid = timeline_lane(s->timeline, s->shown[row])->tid;
    const char *name = stack_counts_thread_name(sample_store_fold(app->data.tally), tid);
    const struct model_frame *f = timeline_put_row(s, app, row, whole);
    *what = (struct screen_pick){.tid = tid};
    (void)strbuf_addf(one, "%" PRId64 " ", tid);
    pick_put_text(one, name ? name : "?");
    if (f) {
        (void)strbuf_addc(one, ' ');
        pick_put_frame(one, f);
    }
}

static void timeline_renew(void *state, struct app *app) {
    struct timeline_state *s = state;
    s->is_stale = true;
    (void)timeline_refresh(s, app, s->view.cols);
}

const struct screen_rows timeline_tagged = {.tags = timeline_tags,
                                            .count = timeline_count_rows,
                                            .selected = timeline_selected_row,
                                            .key = timeline_key,
                                            .put = timeline_put,
                                            .renew = timeline_renew};
