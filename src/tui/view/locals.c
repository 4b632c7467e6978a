/* SPDX-License-Identifier: Apache-2.0 */
/* locals: see locals.h. */
#include "tui/view/locals.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "tui/view/stack.h"

#define LOCALS_NAME_PCT 30 /* of the width, at most, for names and for types */
#define LOCALS_TYPE_PCT 25
#define LOCALS_LEAST_COLS 6

struct rect locals_take_rect(const struct locals_pane *p, struct rect *stack) {
    struct rect part = *stack;
    part.rows = 0;
    if (!p->open || stack->rows < 2 * LOCALS_MIN_ROWS)
        return part;
    part.rows = stack->rows / 2;
    stack->rows -= part.rows;
    part.row = stack->row + stack->rows;
    return part;
}

/* The frame of the answer that is frame `depth` of the thread shown; -1: it has none. */
static int locals_find_frame(const struct model_thread *answer, const struct model_thread *t, int depth) {
    int at = (int)answer->n_frames - ((int)t->n_frames - depth);
    if (depth >= (int)t->n_frames || at < 0 || at >= (int)answer->n_frames)
        return -1;
    const struct model_frame *a = &answer->frames[at], *b = &t->frames[depth];
    return text_same(a->func, b->func) && text_same(a->file, b->file) ? at : -1;
}

/* What to show, or why there is nothing. */
struct locals_view {
    const struct model_frame *frame; /* of the answer; NULL: none */
    const struct model_locals *locals;
    bool torn;
    const char *why;
};

static struct locals_view locals_find(const struct data *d, const struct model_thread *t, int depth) {
    struct locals_view v = {.why = "reading ..."};
    if (!t || t->n_frames == 0) {
        v.why = "no frame";
        return v;
    }
    const struct model_thread *answer = data_locals_of(d, t->tid);
    if (!answer) {
        v.why = data_is_stepped(d) ? "unknown: values of that moment were not kept"
                : d->paused        ? "frozen: values are read while the view moves"
                                   : v.why;
        return v;
    }
    int at = locals_find_frame(answer, t, depth);
    if (at < 0) {
        v.why = "this frame had ended when the values were read";
        return v;
    }
    v.frame = &answer->frames[at];
    v.torn = answer->torn;
    v.locals = answer->locals ? answer->locals[at] : NULL;
    v.why = !v.locals ? "its values could not be read" : v.locals->n == 0 ? "no variable has a value" : NULL;
    return v;
}

static void locals_draw_title(const struct locals_pane *p, const struct locals_view *v, struct grid *g,
                              struct rect area) {
    enum theme_role role = p->focused ? ROLE_TITLE_FOCUS : ROLE_TITLE;
    char func[128];
    grid_fill(g, (struct rect){area.row, area.col, 1, area.cols}, ROLE_TABLE_HEAD);
    if (!v->frame) {
        grid_text(g, area, 0, 0, role, " Locals ");
        return;
    }
    text_sanitize(func, sizeof func, v->frame->func ? v->frame->func : "?");
    func[text_fit(func, 48)] = '\0';
    int col = v->frame->line > 0
                  ? grid_printf(g, area, 0, 0, role, " Locals of %s, line %d ", func, v->frame->line)
                  : grid_printf(g, area, 0, 0, role, " Locals of %s ", func);
    if (v->torn)
        col += grid_text(g, area, 0, col, ROLE_STATUS_ON, " moved while it was read ");
    if (v->locals && v->locals->truncated)
        col += grid_text(g, area, 0, col, ROLE_STATUS_ON, " some left out ");
    if (p->list.count > p->list.page) {
        char place[48];
        snprintf(place, sizeof place, "%d-%d of %d ", p->list.top + 1, p->list.top + p->list.page,
                 p->list.count);
        int width = text_width(place);
        if (col + width < area.cols)
            grid_text(g, area, 0, area.cols - width, ROLE_TABLE_HEAD, place);
    }
}

/* Columns for a part of all rows: the widest, up to a limit. */
static int locals_cols(const struct model_locals *l, bool types, int most) {
    int width = LOCALS_LEAST_COLS;
    for (size_t i = 0; i < l->n && width < most; i++) {
        const char *s = types ? l->items[i].type : l->items[i].name;
        int w = s ? text_width(s) : 1;
        width = w > width ? w : width;
    }
    return width > most ? most : width;
}

static void locals_draw_row(const struct model_local *l, int name_cols, int type_cols, int scroll,
                            struct grid *g, struct rect area, int row) {
    int col = 1;
    enum theme_role role = l->kind == MODEL_LOCAL_ARGUMENT ? ROLE_FUNC : ROLE_TEXT;
    grid_text_fit(g, area, row, col, name_cols, role, GRID_LEFT, l->name);
    col += name_cols + 2;
    grid_text_fit(g, area, row, col, type_cols, ROLE_MUTED, GRID_LEFT, l->type ? l->type : "?");
    col += type_cols + 2;
    if (col >= area.cols)
        return;
    grid_text_scroll(g, area, row, col, area.cols - col, scroll, l->text ? ROLE_VALUE : ROLE_MUTED, GRID_LEFT,
                     l->text ? l->text : "?");
}

void locals_draw(struct locals_pane *p, const struct data *d, const struct model_thread *t, bool of_child,
                 int depth, const struct match *search, struct grid *g, struct rect area) {
    struct locals_view v = {.why = "the variables of a child process: C opens it"};
    if (!of_child)
        v = locals_find(d, t, depth);
    /* The last line says what was not available. */
    const char *note = v.frame && area.rows >= 2 * LOCALS_MIN_ROWS ? d->locals.note : NULL;
    list_fit(&p->list, v.locals ? (int)v.locals->n : 0, area.rows - 1 - (note != NULL));
    if (note)
        grid_text(g, area, area.rows - 1, 1, ROLE_MUTED, note);
    locals_draw_title(p, &v, g, area);
    if (v.why)
        grid_text(g, area, 1, 1, ROLE_MUTED, v.why);
    if (!v.locals)
        return;
    int name_cols = locals_cols(v.locals, false, area.cols * LOCALS_NAME_PCT / 100),
        type_cols = locals_cols(v.locals, true, area.cols * LOCALS_TYPE_PCT / 100);
    for (int i = 0; i < p->list.page && p->list.top + i < p->list.count; i++) {
        int at = p->list.top + i;
        locals_draw_row(&v.locals->items[at], name_cols, type_cols, p->scroll, g, area, i + 1);
        struct rect row = {area.row + i + 1, area.col, 1, area.cols};
        if (p->focused && at == p->list.selected)
            grid_restyle(g, row, ROLE_SELECTION);
        match_highlight(search, g, row, 0);
    }
}

bool locals_pick(const struct locals_pane *p, const struct data *d, const struct model_thread *t, int depth,
                 const char **name, const char **func) {
    struct locals_view v = locals_find(d, t, depth);
    size_t at = (size_t)p->list.selected;
    if (!p->open || !p->focused || !v.locals || at >= v.locals->n || !v.frame->func ||
        !v.locals->items[at].name)
        return false;
    *name = v.locals->items[at].name;
    *func = v.frame->func;
    return true;
}

/* ---- tasks of asyncio ---- */

/* A line for each task, and below it one for each frame that it is in or waits in, innermost
 * first. */

#define LOCALS_TASKS_FUNC_COLS 28
#define LOCALS_TASKS_INDENT 3

/* The tasks of one thread within an answer: they are adjacent. */
struct locals_tasks_view {
    const struct model_snapshot *answer;
    const struct model_task *tasks;
    size_t n;
    const char *why; /* there is nothing to show */
};

static struct locals_tasks_view locals_tasks_find(const struct data *d, const struct model_thread *t) {
    struct locals_tasks_view v = {.why = "reading ..."};
    const struct model_snapshot *s = t ? data_tasks_for(d, t->tid) : NULL;
    if (!t || !t->has_python)
        v.why = "this thread runs no Python";
    if (!s) {
        if (t && t->has_python && d->paused)
            v.why = data_is_stepped(d) ? "unknown: tasks of that moment were not kept"
                                       : "frozen: tasks are read while the view moves";
        return v;
    }
    v.answer = s;
    v.why = s->tasks ? "it runs no loop with tasks" : s->note ? s->note : "its tasks are not known";
    for (size_t i = 0; i < s->n_tasks; i++) {
        if (s->tasks[i].tid != t->tid)
            continue;
        v.tasks = v.tasks ? v.tasks : &s->tasks[i];
        v.n++;
    }
    return v;
}

static int locals_tasks_lines(const struct locals_tasks_view *v) {
    size_t n = v->n;
    for (size_t i = 0; i < v->n; i++)
        n += v->tasks[i].n_frames;
    return (int)n;
}

/* The task and frame of a line; frame -1: the task's own line. */
static const struct model_task *locals_tasks_line(const struct locals_tasks_view *v, int line, int *frame) {
    for (size_t i = 0; i < v->n; i++) {
        int lines = 1 + (int)v->tasks[i].n_frames;
        *frame = line - 1;
        if (line < lines)
            return &v->tasks[i];
        line -= lines;
    }
    return NULL;
}

static const char *locals_tasks_name(const struct model_task *t) {
    return t->name ? t->name : t->coro ? t->coro : "?";
}

static void locals_tasks_draw_task(const struct locals_tasks_view *v, const struct model_task *t,
                                   struct grid *g, struct rect area, int row) {
    char text[128];
    text_sanitize(text, sizeof text, locals_tasks_name(t));
    int col = 1 + grid_text(g, area, row, 1, ROLE_VALUE, text);
    if (t->name) {
        text_sanitize(text, sizeof text, t->coro ? t->coro : "?");
        col += 1 + grid_text(g, area, row, col + 1, ROLE_FUNC, text);
    }
    const char *state = model_task_state_name(t->state);
    col += 2 + grid_text(g, area, row, col + 2, t->state == MODEL_TASK_RUNNING ? ROLE_STATE_RUN : ROLE_MUTED,
                         state ? state : "state unknown");
    for (size_t i = 0; i < t->n_awaited_by && col < area.cols; i++) {
        const struct model_task *by = NULL;
        for (size_t k = 0; k < v->answer->n_tasks && !by; k++)
            if (v->answer->tasks[k].id == t->awaited_by[i])
                by = &v->answer->tasks[k];
        text_sanitize(text, sizeof text, by ? locals_tasks_name(by) : "?");
        col += grid_printf(g, area, row, col, ROLE_MUTED, "%s%s", i ? ", " : "  awaited by ", text);
    }
}

void locals_draw_tasks(struct locals_pane *p, const struct data *d, const struct model_thread *t,
                       bool of_child, const struct match *search, struct grid *g, struct rect area) {
    struct locals_tasks_view v = {.why = "the tasks of a child process: C opens it"};
    if (!of_child)
        v = locals_tasks_find(d, t);
    enum theme_role role = p->focused ? ROLE_TITLE_FOCUS : ROLE_TITLE;
    list_fit(&p->list, locals_tasks_lines(&v), area.rows - 1);
    grid_fill(g, (struct rect){area.row, area.col, 1, area.cols}, ROLE_TABLE_HEAD);
    int col = v.n ? grid_printf(g, area, 0, 0, role, " Tasks: %zu ", v.n)
                  : grid_text(g, area, 0, 0, role, " Tasks ");
    if (v.answer && v.answer->incomplete)
        grid_text(g, area, 0, col, ROLE_STATUS_ON, " some left out ");
    if (v.n == 0)
        grid_text(g, area, 1, 1, ROLE_MUTED, v.why);
    for (int i = 0; i < p->list.page && p->list.top + i < p->list.count; i++) {
        int frame;
        const struct model_task *task = locals_tasks_line(&v, p->list.top + i, &frame);
        struct rect row = {area.row + i + 1, area.col, 1, area.cols};
        struct rect inner = {row.row, row.col + LOCALS_TASKS_INDENT, 1, row.cols - LOCALS_TASKS_INDENT};
        if (task && frame < 0)
            locals_tasks_draw_task(&v, task, g, area, i + 1);
        else if (task)
            stack_draw_frame(&task->frames[frame], frame, LOCALS_TASKS_FUNC_COLS, p->scroll, g, inner, 0);
        if (p->focused && p->list.top + i == p->list.selected)
            grid_restyle(g, row, ROLE_SELECTION);
        match_highlight(search, g, row, 0);
    }
}
