/* SPDX-License-Identifier: Apache-2.0 */
/* threads_pick: what is selected and what is tagged in the Threads screen, for other parts of the program; and the mouse. */
#include <inttypes.h>
#include <string.h>

#include "tui/core/pick.h"
#include "tui/screens/threads/threads_state.h"

#define THREADS_WHEEL 3

bool threads_pick(const void *state, const struct app *app, struct screen_pick *what, struct strbuf *one,
                  struct strbuf *whole) {
    const struct threads_state *s = state;
    const struct model_thread *t = threads_shown(s);
    const struct data_child *child = threads_child(s);
    int at = s->stack.list.selected;
    (void)app;
    if (!t)
        return false;
    what->tid = t->tid;
    what->pid = child ? child->pid : 0;
    what->frame = at >= 0 && (size_t)at < t->n_frames ? &t->frames[at] : NULL;
    if (what->frame)
        pick_put_frame(one, what->frame);
    else
        pick_put_text(one, data_thread_name(t));
    pick_put_stack(whole, t);
    return true;
}

bool threads_show(void *state, struct app *app, const struct screen_pick *what) {
    struct threads_state *s = state;
    if (what->tid && thread_rows_find(&s->rows, what->tid) < 0) {
        memset(&s->filter, 0, sizeof s->filter); /* it may be hidden */
        threads_rebuild(s, app);
    }
    int at = what->tid ? thread_rows_find(&s->rows, what->tid) : -1;
    if (at >= 0)
        threads_select_row(s, at);
    return at >= 0;
}

/* ---- tagged rows ---- */

static struct tags *threads_tags(void *state, struct app *app) {
    (void)state;
    return &app->threads;
}

static int threads_count_rows(const void *state, const struct app *app) {
    (void)app;
    return (int)((const struct threads_state *)state)->rows.n;
}

static int threads_selected_row(const void *state, const struct app *app) {
    const struct threads_state *s = state;
    (void)app;
    return threads_row(s) ? s->list.selected : -1;
}

static uint64_t threads_key(const void *state, const struct app *app, int row) {
    const struct threads_state *s = state;
    (void)app;
    return (uint64_t)thread_row_key(thread_rows_at(&s->rows, (size_t)row));
}

/* The innermost frame, as the table has it. */
static void threads_put(const void *state, const struct app *app, int row, struct screen_pick *what,
                        struct strbuf *one, struct strbuf *whole) {
    const struct threads_state *s = state;
    const struct thread_row *r = thread_rows_at(&s->rows, (size_t)row);
    const struct model_thread *t = r->thread;
    (void)app;
    *what = (struct screen_pick){.tid = t->tid, .pid = r->child ? r->child->pid : 0};
    (void)strbuf_addf(one, "%" PRId64 " ", t->tid);
    pick_put_text(one, data_thread_name(t));
    if (thread_top(t)) {
        (void)strbuf_addc(one, ' ');
        pick_put_frame(one, thread_top(t));
    }
    pick_put_stack(whole, t);
}

static void threads_renew(void *state, struct app *app) { threads_rebuild(state, app); }

const struct screen_rows threads_tagged = {.tags = threads_tags,
                                           .count = threads_count_rows,
                                           .selected = threads_selected_row,
                                           .key = threads_key,
                                           .put = threads_put,
                                           .renew = threads_renew};

/* ---- the mouse ---- */

static bool threads_inside(struct rect r, int row, int col) {
    return row >= r.row && row < r.row + r.rows && col >= r.col && col < r.col + r.cols;
}

bool threads_mouse(void *state, struct app *app, const struct input_event *e) {
    struct threads_state *s = state;
    int wheel = e->button == INPUT_WHEEL_UP     ? -THREADS_WHEEL
                : e->button == INPUT_WHEEL_DOWN ? THREADS_WHEEL
                                                : 0;
    if (threads_inside(s->locals_area, e->row, e->col)) {
        if (wheel)
            list_wheel(&s->locals.list, wheel);
        else {
            s->in_stack = s->locals.focused = true;
            if (e->row > s->locals_area.row)
                list_select(&s->locals.list, s->locals.list.top + e->row - s->locals_area.row - 1);
        }
        return true;
    }
    if (threads_inside(s->stack_area, e->row, e->col)) {
        s->locals.focused = s->locals.focused && wheel;
        if (wheel)
            list_wheel(&s->stack.list, wheel);
        else {
            s->in_stack = true;
            if (e->row > s->stack_area.row)
                list_select(&s->stack.list, s->stack.list.top + e->row - s->stack_area.row - 1);
        }
        return true;
    }
    if (!threads_inside(s->table_area, e->row, e->col))
        return false;
    if (wheel) {
        list_wheel(&s->list, wheel);
        threads_select_row(s, s->list.selected);
        return true;
    }
    s->in_stack = s->locals.focused = false;
    if (e->row == s->table_area.row && e->button == INPUT_MENU)
        return false;
    if (e->row == s->table_area.row) {
        struct rect head = s->table_area;
        tags_take_rect(&app->threads, &head);
        int column = table_column_at(s->widths, thread_n_columns, e->col - head.col);
        if (column >= 0)
            table_sort_by(&s->sort, thread_columns, column);
        threads_rebuild(s, app);
    } else if (s->list.top + e->row - s->table_area.row - 1 < s->list.count)
        threads_select_row(s, s->list.top + e->row - s->table_area.row - 1);
    return true;
}
