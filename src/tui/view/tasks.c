/* SPDX-License-Identifier: Apache-2.0 */
/* tasks: see tasks.h. A line for each task, and below it one for each frame that it is in or waits in, innermost first. */
#include "tui/view/tasks.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "tui/view/stack.h"

#define TASKS_FUNC_COLS 28
#define TASKS_INDENT 3

/* The tasks of one thread within an answer: they stand in a row. */
struct tasks_view {
    const struct model_snapshot *answer;
    const struct model_task *tasks;
    size_t n;
    const char *why; /* there is nothing to show */
};

static struct tasks_view tasks_find(const struct data *d, const struct model_thread *t) {
    struct tasks_view v = {.why = "reading ..."};
    const struct model_snapshot *s = t ? data_tasks_for(d, t->tid) : NULL;
    if (!t || !t->has_python)
        v.why = "this thread runs no Python";
    if (!s) {
        if (t && t->has_python && d->paused)
            v.why = data_is_stepped(d) ? "unknown: tasks of that moment were not kept"
                                       : "paused: tasks are read while the view moves";
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

static int tasks_lines(const struct tasks_view *v) {
    size_t n = v->n;
    for (size_t i = 0; i < v->n; i++)
        n += v->tasks[i].n_frames;
    return (int)n;
}

/* The task and frame of a line; frame -1: the task's own line. */
static const struct model_task *tasks_line(const struct tasks_view *v, int line, int *frame) {
    for (size_t i = 0; i < v->n; i++) {
        int lines = 1 + (int)v->tasks[i].n_frames;
        *frame = line - 1;
        if (line < lines)
            return &v->tasks[i];
        line -= lines;
    }
    return NULL;
}

static const char *tasks_name(const struct model_task *t) {
    return t->name ? t->name : t->coro ? t->coro : "?";
}

static void tasks_draw_task(const struct tasks_view *v, const struct model_task *t, struct grid *g,
                            struct rect area, int row) {
    char text[128];
    text_sanitize(text, sizeof text, tasks_name(t));
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
        text_sanitize(text, sizeof text, by ? tasks_name(by) : "?");
        col += grid_printf(g, area, row, col, ROLE_MUTED, "%s%s", i ? ", " : "  awaited by ", text);
    }
}

void tasks_draw(struct locals_pane *p, const struct data *d, const struct model_thread *t, bool of_child,
                const struct match *search, struct grid *g, struct rect area) {
    struct tasks_view v = {.why = "the tasks of a child process: C opens it"};
    if (!of_child)
        v = tasks_find(d, t);
    enum theme_role role = p->focused ? ROLE_TITLE_FOCUS : ROLE_TITLE;
    list_fit(&p->list, tasks_lines(&v), area.rows - 1);
    grid_fill(g, (struct rect){area.row, area.col, 1, area.cols}, ROLE_TABLE_HEAD);
    int col = v.n ? grid_printf(g, area, 0, 0, role, " Tasks: %zu ", v.n)
                  : grid_text(g, area, 0, 0, role, " Tasks ");
    if (v.answer && v.answer->incomplete)
        (void)grid_text(g, area, 0, col, ROLE_STATUS_ON, " some left out ");
    if (v.n == 0)
        (void)grid_text(g, area, 1, 1, ROLE_MUTED, v.why);
    for (int i = 0; i < p->list.page && p->list.top + i < p->list.count; i++) {
        int frame;
        const struct model_task *task = tasks_line(&v, p->list.top + i, &frame);
        struct rect row = {area.row + i + 1, area.col, 1, area.cols};
        struct rect inner = {row.row, row.col + TASKS_INDENT, 1, row.cols - TASKS_INDENT};
        if (task && frame < 0)
            tasks_draw_task(&v, task, g, area, i + 1);
        else if (task)
            stack_draw_frame(&task->frames[frame], frame, TASKS_FUNC_COLS, p->scroll, g, inner, 0);
        if (p->focused && p->list.top + i == p->list.selected)
            grid_restyle(g, row, ROLE_SELECTION);
        match_highlight(search, g, row, 0);
    }
}
