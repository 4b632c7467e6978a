/* SPDX-License-Identifier: Apache-2.0 */
/* top_pick: what is selected and what is tagged in the Top screen, for other parts of the program; and the mouse. */
#include "tui/core/pick.h"
#include "tui/screens/top/top_state.h"

#define TOP_WHEEL 3

bool top_pick(const void *state, const struct app *app, struct screen_pick *what, struct strbuf *one,
              struct strbuf *whole) {
    const struct top_state *s = state;
    const struct sample_store_row *row = top_selected(s);
    size_t at = (size_t)s->calls_list.selected;
    const struct sample_store_call *call = s->in_calls && at < s->n_calls ? &s->calls[at] : NULL;
    const struct model_frame *f = call ? call->frame : row ? row->frame : NULL;
    (void)app;
    if (!f)
        return false;
    what->tid = s->query.tid;
    what->frame = f;
    pick_put_frame(one, f);
    if (call)
        pick_put_frame(whole, f);
    else
        top_put_row(whole, top_rows_at(&s->rows, (size_t)s->list.selected));
    return true;
}

/* A function that is hidden by a filter or the threshold is shown again. */
bool top_show(void *state, struct app *app, const struct screen_pick *what) {
    struct top_state *s = state;
    s->query.tid = what->tid;
    top_rebuild(s, app);
    int at = what->frame ? top_rows_find_function(&s->rows, what->frame) : 0;
    if (at < 0) {
        match_clear(&s->filter.match);
        app->functions.only = false;
        s->threshold = 0;
        s->query.on_cpu = false;
        top_rebuild(s, app);
        at = top_rows_find_function(&s->rows, what->frame);
    }
    if (at >= 0 && what->frame)
        top_select_row(s, app, at);
    return at >= 0;
}

/* ---- tagged rows ---- */

static struct tags *top_tags(void *state, struct app *app) {
    (void)state;
    return &app->functions;
}

static int top_count_rows(const void *state, const struct app *app) {
    (void)app;
    return (int)((const struct top_state *)state)->rows.n;
}

static int top_selected_row(const void *state, const struct app *app) {
    const struct top_state *s = state;
    (void)app;
    return top_selected(s) && !s->in_calls ? s->list.selected : -1;
}

static uint64_t top_key(const void *state, const struct app *app, int row) {
    const struct top_row *r = top_rows_at(&((const struct top_state *)state)->rows, (size_t)row);
    (void)app;
    return top_row_key(r->row, r->by_line);
}

static void top_put(const void *state, const struct app *app, int row, struct screen_pick *what,
                    struct strbuf *one, struct strbuf *whole) {
    const struct top_state *s = state;
    const struct top_row *r = top_rows_at(&s->rows, (size_t)row);
    (void)app;
    *what =
        (struct screen_pick){.frame = r->row->frame, .by = r->by_line ? FLAME_BY_LINE : FLAME_BY_FUNCTION};
    pick_put_frame(one, r->row->frame);
    top_put_row(whole, r);
}

static void top_renew(void *state, struct app *app) { top_order(state, app); }

const struct screen_rows top_tagged = {.tags = top_tags,
                                       .count = top_count_rows,
                                       .selected = top_selected_row,
                                       .key = top_key,
                                       .put = top_put,
                                       .renew = top_renew};

/* ---- the mouse ---- */

static bool top_inside(struct rect r, int row, int col) {
    return row >= r.row && row < r.row + r.rows && col >= r.col && col < r.col + r.cols;
}

bool top_mouse(void *state, struct app *app, const struct input_event *e) {
    struct top_state *s = state;
    int wheel = e->button == INPUT_WHEEL_UP ? -TOP_WHEEL : e->button == INPUT_WHEEL_DOWN ? TOP_WHEEL : 0;
    bool in_calls = top_inside(s->calls_area, e->row, e->col);
    if (!in_calls && !top_inside(s->table_area, e->row, e->col))
        return false;
    struct list *list = in_calls ? &s->calls_list : &s->list;
    int row = e->row - (in_calls ? s->calls_area.row : s->table_area.row) - 1;
    if (wheel)
        list_wheel(list, wheel);
    else {
        s->in_calls = in_calls;
        if (row >= 0 && list->top + row < list->count)
            list_select(list, list->top + row);
    }
    if (!wheel && !in_calls && row < 0 && e->button == INPUT_MENU)
        return false;
    if (!wheel && !in_calls && row < 0) {
        int n, column;
        const struct table_column *columns = top_compare_columns(&s->compare, &n);
        struct rect head = s->table_area;
        tags_take_rect(&app->functions, &head);
        if ((column = table_column_at(s->widths, n, e->col - head.col)) >= 0)
            table_sort_by(&s->sort, columns, column);
        top_order(s, app);
    } else if (!in_calls)
        top_select_row(s, app, s->list.selected);
    return true;
}
