/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads: the table of threads and the whole stack of the selected one.
 *
 * The selection belongs to a thread (its tid), not to a row. Rows are made again whenever the data,
 * the filter or the order change; they point into the shot that is shown.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/core/app.h"
#include "tui/core/app_life.h"
#include "tui/core/app_history.h"
#include "tui/core/app_arm.h"
#include "tui/core/screen.h"
#include "tui/core/targets.h"
#include "tui/view/pick.h"
#include "tui/screens/threads/threads_rows.h"
#include "tui/view/layout.h"
#include "tui/view/locals.h"
#include "tui/view/stack.h"
#include "tui/view/view.h"

struct threads_state {
    struct thread_rows rows;
    struct thread_filter filter;
    struct view view;    /* of the rows; its pane is the stack */
    uint64_t key_before; /* the selection when a prompt was opened */
    bool in_prompt;
    const struct data *data; /* the app's */
    struct stack_pane stack;
    bool native; /* the stack includes native frames */
    /* Below the stack; it can have the focus only while the stack has it. */
    struct locals_pane locals;
    bool opened;                         /* it was, by itself or by a key: from then on keys decide */
    bool tasks;                          /* it shows tasks, not variables */
    bool repr;                           /* variables by the repr() of the job's own classes */
    bool zoomed;                         /* the focused pane fills the body */
    struct rect stack_area, locals_area; /* as last drawn; no rows: not drawn */
};

static bool threads_pick(const void *state, const struct app *app, struct screen_pick *what,
                         struct strbuf *one, struct strbuf *whole);
static bool threads_show(void *state, struct app *app, const struct screen_pick *what);
static bool threads_mouse(void *state, struct app *app, const struct input_event *e);

#define THREADS_SCROLL 8
#define THREADS_LOCALS_COLS 160 /* from here on the variables are open from the start */

/* The selected row; NULL: none. */
static const struct thread_row *threads_row(const struct threads_state *s) {
    return thread_rows_at(&s->rows, (size_t)s->view.list.selected);
}

static const struct model_thread *threads_selected(const struct threads_state *s) {
    const struct thread_row *row = threads_row(s);
    return row ? row->thread : NULL;
}

/* The child that the selected thread belongs to; NULL: none. */
static const struct data_child *threads_child(const struct threads_state *s) {
    const struct thread_row *row = threads_row(s);
    return row ? row->child : NULL;
}

/* The selected thread for its stack: with native frames it comes from an answer of its own. */
static const struct model_thread *threads_shown(const struct threads_state *s) {
    const struct model_thread *t = threads_selected(s);
    bool native_shown = s->native && t && !threads_child(s);
    const struct model_thread *native = native_shown ? data_native_of(s->data, t->tid) : NULL;
    return native ? native : t;
}

static void threads_settle(struct threads_state *s) {
    view_settle(&s->view);
    stack_follow(&s->stack, threads_shown(s));
}

/* Request what the pane with variables or tasks shows, if it is due. */
static void threads_want_details(const struct threads_state *s, struct app *app) {
    const struct model_thread *t = threads_selected(s);
    bool open = s->locals.open && t && t->has_python;
    if (!t || threads_child(s) || !(s->native || open))
        return;
    struct wire_threads want = {.tid = t->tid,
                                .locals = open && !s->tasks,
                                .repr = open && s->repr && !s->tasks,
                                .tasks = open && s->tasks,
                                .native = s->native};
    if (data_want_details(&app->data, &want, app->now_s))
        app_ask_details(app, &want);
}

/* Make the rows again. */
static void threads_rebuild(void *state, struct app *app) {
    struct threads_state *s = state;
    const struct data_shot *shot = data_shown(&app->data);
    thread_rows_build(&s->rows, shot, &s->filter, s->view.sort);
    thread_rows_add_children(&s->rows, data_shown_children(&app->data), &s->filter, s->view.sort,
                             app->config.ascii);
    if (!data_is_stepped(&app->data)) /* of another moment */
        thread_rows_add_others(&s->rows, &app->targets.rows, &s->filter, s->view.sort, app->config.ascii);
    if (!s->view.has_key && shot && shot->snapshot.n_threads) {
        s->view.has_key = true; /* the main thread */
        s->view.key = (uint64_t)shot->snapshot.threads[0].tid;
    }
    threads_settle(s);
    threads_want_details(s, app);
}

static void threads_follow(void *state, struct app *app) {
    struct threads_state *s = state;
    stack_follow(&s->stack, threads_shown(s));
    threads_want_details(s, app);
}

/* ---- rows, for the view ---- */

static int threads_count(const void *state) { return (int)((const struct threads_state *)state)->rows.n; }

static const void *threads_at(const void *state, int row) {
    return thread_rows_at(&((const struct threads_state *)state)->rows, (size_t)row);
}

static uint64_t threads_key(const void *row) { return (uint64_t)thread_row_key(row); }

static bool threads_match(const void *row, const struct match *m) {
    return thread_matches(((const struct thread_row *)row)->thread, m);
}

/* The innermost frame, as the table has it. */
static void threads_put(const void *state, const void *row, struct screen_pick *what, struct strbuf *one,
                        struct strbuf *whole) {
    const struct thread_row *r = row;
    const struct model_thread *t = r->thread;
    (void)state;
    *what = (struct screen_pick){.tid = t->tid, .pid = r->child ? r->child->pid : 0};
    strbuf_addf(one, "%" PRId64 " ", t->tid);
    pick_put_text(one, data_thread_name(t));
    if (thread_top(t)) {
        strbuf_addc(one, ' ');
        pick_put_frame(one, thread_top(t));
    }
    pick_put_stack(whole, t);
}

static const struct view_def threads_rows = {.count = threads_count,
                                             .row = threads_at,
                                             .key = threads_key,
                                             .matches = threads_match,
                                             .put = threads_put,
                                             .rebuild = threads_rebuild,
                                             .selected = threads_follow,
                                             .forgets = true};

static struct view *threads_view(void *state) { return &((struct threads_state *)state)->view; }

static void threads_update(void *state, struct app *app) {
    struct threads_state *s = state;
    s->native = s->native && !app->data.native_refused;
    threads_rebuild(s, app);
}

static void threads_init(void *state, struct app *app) {
    struct threads_state *s = state;
    s->data = &app->data;
    view_init(&s->view, &threads_rows, s, &app->threads);
    view_set_columns(&s->view, thread_columns, thread_n_columns);
    s->filter.match = &s->view.filter;
    s->filter.tags = &app->threads;
    s->view.sort.column = thread_column_cpu();
    s->view.sort.descends = thread_columns[s->view.sort.column].descends;
    if (app->config.filter)
        match_set(&s->view.filter, app->config.filter, true);
    s->filter.hide_idle = app->config.hide_idle;
    threads_rebuild(s, app);
}

static void threads_fini(void *state) { thread_rows_fini(&((struct threads_state *)state)->rows); }

static enum action_context threads_context(const void *state) {
    return ((const struct threads_state *)state)->view.in_pane ? CONTEXT_STACK : CONTEXT_THREADS;
}

/* ---- drawing ---- */

static const char *threads_empty_text(const struct threads_state *s, const struct app *app) {
    if (data_shown(&app->data))
        return s->rows.total ? "no thread matches: A shows all" : "the target has no threads to show";
    switch (app->data.state) {
    case SESSION_CONNECTING:
        return "connecting to the agent ...";
    case SESSION_CONNECTED:
        return "waiting for the first snapshot ...";
    case SESSION_RECONNECTING:
        return "the connection broke; trying again ...";
    case SESSION_LOST:
    case SESSION_FAILED:
        break;
    }
    return "no data received";
}

static void threads_draw(void *state, struct app *app, struct grid *g, struct rect area) {
    struct threads_state *s = state;
    struct rect table, stack, line;
    bool reads = app->data.state == SESSION_CONNECTED && app->data.has_target &&
                 app->data.target.mode == MODEL_MODE_AGENT;
    if (!s->opened && reads && area.cols >= THREADS_LOCALS_COLS)
        s->opened = s->locals.open = true;
    layout_panes(area, (int)s->rows.n + 1, &table, &stack, &line);
    if (s->zoomed || !layout_has_panes(area)) {
        table = stack = area;
        (s->view.in_pane ? &table : &stack)->rows = 0;
        line.rows = 0;
    }
    s->view.area = table;
    /* Else the line above the stack has room for it, and the table has none. */
    bool is_wide = area.cols >= LAYOUT_WIDE_COLS && table.cols >= THREAD_WIDE_COLS;
    view_set_columns(&s->view, thread_columns, thread_n_columns - !is_wide);
    s->locals_area = locals_take_rect(&s->locals, &stack);
    s->stack_area = stack;
    if (table.rows > 0)
        view_draw(&s->view, g, table, threads_empty_text(s, app));
    for (int i = 0; i < line.rows; i++)
        grid_text(g, line, i, 0, ROLE_BORDER, glyph(g, GLYPH_VLINE));
    if (stack.rows > 0) {
        char waits[512] = "";
        if (threads_row(s))
            thread_put_wait(threads_row(s), false, waits, sizeof waits);
        stack_draw(&s->stack, threads_shown(s), waits, &s->view.search, s->view.in_pane && !s->locals.focused,
                   g, stack);
    }
    bool of_child = threads_child(s) != NULL;
    if (s->locals_area.rows > 0 && s->tasks)
        locals_draw_tasks(&s->locals, &app->data, threads_shown(s), of_child, &s->view.search, g,
                          s->locals_area);
    else if (s->locals_area.rows > 0)
        locals_draw(&s->locals, &app->data, threads_shown(s), of_child, s->stack.list.selected,
                    &s->view.search, g, s->locals_area);
}

static void threads_status(const void *state, const struct app *app, struct strbuf *out) {
    const struct threads_state *s = state;
    const struct data_child *child = threads_child(s);
    if (child) {
        strbuf_addf(out, "process %ld%s: %s", (long)child->pid, child->attached ? " [agent]" : "",
                    child->why.code ? child->why.text : data_short_command(child->cmdline));
        return;
    }
    strbuf_addf(out, "Threads %zu", s->rows.n);
    if (s->rows.n != s->rows.total)
        strbuf_addf(out, " of %zu", s->rows.total);
    view_put_filter(&s->view, out);
    if (s->filter.hide_idle)
        strbuf_adds(out, "   idle hidden");
    if (s->filter.hide_native)
        strbuf_adds(out, "   native hidden");
    if (data_is_stepped(&app->data) && app->data.children.n)
        strbuf_adds(out, "   children unknown");
    view_put_sort(&s->view, out);
    if (s->view.search.active) {
        int hits = view_hits(&s->view);
        strbuf_addf(out, "   /%s: %d thread%s", s->view.search.text, hits, hits == 1 ? "" : "s");
    }
}

/* ---- search and filter ---- */

/* Select the next match from `from` on: with the focus in the stack its frames, else threads.
 * False: none. */
static bool threads_search(struct threads_state *s, struct app *app, int from, int step) {
    if (s->view.in_pane) {
        int at = stack_search(threads_shown(s), &s->view.search, from, step);
        if (at >= 0)
            list_select(&s->stack.list, at);
        return at >= 0;
    }
    if (!view_search(&s->view, app, from, step))
        return false;
    int frame = stack_search(threads_selected(s), &s->view.search, 0, 1);
    if (frame >= 0)
        list_select(&s->stack.list, frame);
    return true;
}

static void threads_search_on(struct threads_state *s, struct app *app, int step) {
    if (!s->view.search.active) {
        app_message(app, false, "no search yet: / searches");
        return;
    }
    int from = s->view.in_pane ? s->stack.list.selected : s->view.list.selected;
    if (!threads_search(s, app, from + step, step))
        app_refuse(app, "nothing matches '%s'", s->view.search.text);
}

/* While a text is typed, the search starts from the original selection. */
static bool threads_typed(void *state, struct app *app, enum action what, const char *text,
                          enum screen_typed phase) {
    struct threads_state *s = state;
    if (!s->in_prompt)
        s->key_before = s->view.key;
    s->in_prompt = phase == SCREEN_TYPING;
    if (phase == SCREEN_CANCEL)
        text = "";
    if (phase != SCREEN_ACCEPT)
        s->view.key = s->key_before;
    if (what == ACTION_FILTER)
        return view_typed(&s->view, app, what, text);
    match_set(&s->view.search, text, false);
    threads_settle(s);
    return !s->view.search.active ||
           threads_search(s, app, s->view.in_pane ? s->stack.list.selected : s->view.list.selected, 1);
}

/* ---- actions ---- */

static void threads_back(struct threads_state *s, struct app *app) {
    if (s->view.search.active)
        match_clear(&s->view.search);
    else if (s->zoomed)
        s->zoomed = false;
    else if (s->locals.focused)
        s->locals.focused = false;
    else if (s->view.in_pane)
        s->view.in_pane = false;
    else if (s->view.filter.active)
        match_clear(&s->view.filter);
    threads_rebuild(s, app);
}

static void threads_pause(struct threads_state *s, struct app *app) {
    if (!data_shown(&app->data))
        return;
    app_set_paused(app, !app->data.paused);
    threads_rebuild(s, app);
}

/* From the table to the stack, to the variables if they are shown, and back to the table. */
static void threads_next_pane(struct threads_state *s) {
    bool to_locals = s->view.in_pane && !s->locals.focused && s->locals_area.rows > 0;
    s->view.in_pane = to_locals || !s->view.in_pane;
    s->locals.focused = to_locals;
}

/* Open the pane below the stack with variables or tasks; again: close it. */
static void threads_show_locals(struct threads_state *s, struct app *app, bool tasks) {
    s->locals.open = !s->locals.open || s->tasks != tasks;
    s->opened = true;
    s->tasks = tasks;
    s->locals.focused = false;
    s->locals.scroll = 0;
    s->locals.list.selected = s->locals.list.top = 0;
    bool is_drawn = s->view.area.rows + s->stack_area.rows > 0;
    int rows = s->stack_area.rows + s->locals_area.rows; /* one of the two may be open already */
    if (s->locals.open && is_drawn && rows < 2 * LOCALS_MIN_ROWS)
        app_message(app, false, "no room for %s here: alt-o gives the stack the whole body",
                    tasks ? "tasks" : "the variables");
}

static void threads_show_native(struct threads_state *s, struct app *app) {
    s->native = !s->native;
    app->data.native_refused = false;
    threads_settle(s);
    if (s->native && app->data.paused)
        app_message(app, false, "paused: native frames are read while the view moves");
}

/* Actions that hide rows; false: another one. */
static bool threads_hide(struct threads_state *s, struct app *app, enum action action) {
    switch ((int)action) {
    case ACTION_SORT_CPU:
        s->view.sort = (struct table_sort){thread_column_cpu(), true};
        break;
    case ACTION_HIDE_IDLE:
        s->filter.hide_idle = !s->filter.hide_idle;
        break;
    case ACTION_HIDE_NATIVE:
        s->filter.hide_native = !s->filter.hide_native;
        break;
    case ACTION_SHOW_ALL:
        s->filter.hide_idle = s->filter.hide_native = false;
        return false; /* the view does the rest */
    default:
        return false;
    }
    threads_rebuild(s, app);
    return true;
}

/* In the focused pane: the stack, or variables or tasks below it. */
static bool threads_act_pane(struct threads_state *s, enum action action) {
    int *scroll = s->locals.focused ? &s->locals.scroll : &s->stack.scroll;
    switch ((int)action) {
    case ACTION_LEFT:
        *scroll = *scroll > THREADS_SCROLL ? *scroll - THREADS_SCROLL : 0;
        return true;
    case ACTION_RIGHT:
        *scroll += *scroll < 1000 ? THREADS_SCROLL : 0;
        return true;
    default:
        return list_move(s->locals.focused ? &s->locals.list : &s->stack.list, action);
    }
}

/* Open the child whose thread is selected, or return to the process that this one was opened
 * from. */
static void threads_open_child(struct threads_state *s, struct app *app) {
    const struct data_child *child = threads_child(s);
    pid_t pid = child ? child->pid : app->came_from;
    if (app->attaching)
        return;
    if (targets_find(app, pid) >= 0) {
        app->host.show_target(app->host.arg, targets_find(app, pid));
        return;
    }
    if (pid <= 0) {
        app_message(app, false, "this thread is the target's own: C is for those of its child processes");
        return;
    }
    app_message(app, false, "attaching to %ld ...", (long)pid);
    app_attach(app, pid);
}

/* Toggle watching the selected variable. */
static void threads_watch(const struct threads_state *s, struct app *app) {
    const char *name, *func;
    bool shown = !s->tasks && !threads_child(s);
    if (shown && locals_pick(&s->locals, &app->data, threads_shown(s), s->stack.list.selected, &name, &func))
        app_arm_watch(app, name, func);
    else
        app_message(app, false, "no variable is selected: v shows them, o goes there");
}

static bool threads_do(struct threads_state *s, struct app *app, enum action action) {
    switch ((int)action) {
    case ACTION_PAUSE:
        threads_pause(s, app);
        return true;
    case ACTION_FOCUS:
        threads_next_pane(s);
        return true;
    case ACTION_LOCALS:
    case ACTION_TASKS:
        threads_show_locals(s, app, action == ACTION_TASKS);
        return true;
    case ACTION_REPR:
        s->repr = !s->repr;
        app_message(app, false,
                    s->repr ? "variables: by the job's own repr(), which runs its code"
                            : "variables: without running code of the job");
        return true;
    case ACTION_NATIVE:
        threads_show_native(s, app);
        return true;
    case ACTION_OPEN_STACK:
        s->view.in_pane = true;
        return true;
    case ACTION_OPEN_CHILD:
        threads_open_child(s, app);
        return true;
    case ACTION_ZOOM:
        s->zoomed = !s->zoomed;
        return true;
    case ACTION_BACK:
        threads_back(s, app);
        return true;
    case ACTION_THREAD_PREV:
    case ACTION_THREAD_NEXT:
        view_select(&s->view, app, s->view.list.selected + (action == ACTION_THREAD_NEXT ? 1 : -1));
        return true;
    case ACTION_SEARCH_NEXT:
    case ACTION_SEARCH_PREV:
        threads_search_on(s, app, action == ACTION_SEARCH_NEXT ? 1 : -1);
        return true;
    default:
        return threads_hide(s, app, action) || (s->view.in_pane && threads_act_pane(s, action));
    }
}

static bool threads_act(void *state, struct app *app, enum action action) {
    bool done = true;
    if (action == ACTION_WATCH_LOCAL)
        threads_watch(state, app);
    else
        done = threads_do(state, app, action);
    threads_want_details(state, app);
    return done;
}

const struct screen_def screen_threads = {
    .name = "threads",
    .title = "Threads",
    .is_tab = true,
    .opens = {SCREEN_TAB_KEY(THREADS, "threads", "2", "the Threads screen: what each thread does")},
    .contexts = {{CONTEXT_THREADS, "threads", "Threads"}, {CONTEXT_STACK, "stack", "Stack of a thread"}},
    .shows_children = true,
    .state_size = sizeof(struct threads_state),
    .init = threads_init,
    .fini = threads_fini,
    .context = threads_context,
    .view = threads_view,
    .draw = threads_draw,
    .act = threads_act,
    .mouse = threads_mouse,
    .update = threads_update,
    .typed = threads_typed,
    .pick = threads_pick,
    .show = threads_show,
    .status = threads_status,
};

/* ---- pick ---- */

/*
 * The selection and the tags of the Threads screen, for other parts of the program; and the mouse.
 */

#define THREADS_WHEEL 3

static bool threads_pick(const void *state, const struct app *app, struct screen_pick *what,
                         struct strbuf *one, struct strbuf *whole) {
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

static bool threads_show(void *state, struct app *app, const struct screen_pick *what) {
    struct threads_state *s = state;
    if (what->tid && thread_rows_find(&s->rows, what->tid) < 0) {
        match_clear(&s->view.filter); /* it may be hidden */
        s->filter.hide_idle = s->filter.hide_native = false;
        threads_rebuild(s, app);
    }
    int at = what->tid ? thread_rows_find(&s->rows, what->tid) : -1;
    if (at >= 0)
        view_select(&s->view, app, at);
    return at >= 0;
}

/* ---- the mouse ---- */

static bool threads_inside(struct rect r, int row, int col) {
    return row >= r.row && row < r.row + r.rows && col >= r.col && col < r.col + r.cols;
}

static bool threads_mouse(void *state, struct app *app, const struct input_event *e) {
    struct threads_state *s = state;
    int wheel = e->button == INPUT_WHEEL_UP     ? -THREADS_WHEEL
                : e->button == INPUT_WHEEL_DOWN ? THREADS_WHEEL
                                                : 0;
    if (threads_inside(s->locals_area, e->row, e->col)) {
        if (wheel)
            list_wheel(&s->locals.list, wheel);
        else {
            s->view.in_pane = s->locals.focused = true;
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
            s->view.in_pane = true;
            if (e->row >= s->stack_area.row + s->stack.head)
                list_select(&s->stack.list, s->stack.list.top + e->row - s->stack_area.row - s->stack.head);
        }
        return true;
    }
    if (!threads_inside(s->view.area, e->row, e->col))
        return false;
    if (!wheel)
        s->view.in_pane = s->locals.focused = false;
    return view_mouse(&s->view, app, e, NULL);
}
