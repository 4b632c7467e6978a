/* SPDX-License-Identifier: Apache-2.0 */
/*
 * picker: the Python processes of this machine, to choose one. Those this user may not attach to are grey and say why.
 */
#include "tui/core/app.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "client/target/target_tree.h"
#include "tui/view/table.h"
#include "tui/view/list.h"

#define PICKER_WHEEL 3
#define PICKER_SCROLL 8

/* A process of the app's list, and the branches that lead to it from the one that has started it. */
struct picker_row {
    const struct target_process *process;
    char prefix[TARGET_TREE_PREFIX];
};

struct picker_state {
    const void **rows; /* of struct picker_row, shown and in order */
    struct picker_row *kept;
    int n;
    struct list list;
    pid_t pid; /* selected */
    struct match filter, search;
    struct tags tags; /* by pid */
    struct table_sort sort;
    int scroll;
    int widths[TABLE_MAX_COLUMNS];
    struct rect area;
};

static const struct target_process *picker_of(const void *row) {
    return ((const struct picker_row *)row)->process;
}

static enum theme_role picker_role(const void *row, enum theme_role role) {
    return picker_of(row)->inspectable || picker_of(row)->readable ? role : ROLE_MUTED;
}

static void picker_cell_pid(const void *row, struct table_cell *c) {
    (void)snprintf(c->text, sizeof c->text, "%ld", (long)picker_of(row)->pid);
    c->role = picker_role(row, ROLE_VALUE);
}

static int picker_compare_pid(const void *a, const void *b) {
    return (picker_of(a)->pid > picker_of(b)->pid) - (picker_of(a)->pid < picker_of(b)->pid);
}

static void picker_cell_user(const void *row, struct table_cell *c) {
    (void)snprintf(c->text, sizeof c->text, "%s", picker_of(row)->user);
    c->role = picker_role(row, ROLE_TEXT);
}

static int picker_compare_user(const void *a, const void *b) {
    return strcmp(picker_of(a)->user, picker_of(b)->user);
}

static void picker_cell_cpu(const void *row, struct table_cell *c) {
    double v = picker_of(row)->cpu_pct;
    if (isnan(v))
        (void)snprintf(c->text, sizeof c->text, "?");
    else
        (void)snprintf(c->text, sizeof c->text, "%.*f", v < 999.95 ? 1 : 0, v);
    c->role = picker_role(row, isnan(v) || v < 1 ? ROLE_CPU_LOW : v < 60 ? ROLE_CPU_MID : ROLE_CPU_HIGH);
}

static int picker_compare_cpu(const void *a, const void *b) {
    return table_compare_number(picker_of(a)->cpu_pct, picker_of(b)->cpu_pct);
}

static void picker_cell_rss(const void *row, struct table_cell *c) {
    text_human_bytes(c->text, sizeof c->text, picker_of(row)->rss_bytes);
    c->role = picker_role(row, ROLE_TEXT);
}

static int picker_compare_rss(const void *a, const void *b) {
    return (picker_of(a)->rss_bytes > picker_of(b)->rss_bytes) -
           (picker_of(a)->rss_bytes < picker_of(b)->rss_bytes);
}

static void picker_cell_python(const void *row, struct table_cell *c) {
    (void)snprintf(c->text, sizeof c->text, "%s", *picker_of(row)->python ? picker_of(row)->python : "?");
    c->role = picker_role(row, ROLE_TEXT);
}

static int picker_compare_python(const void *a, const void *b) {
    return strcmp(picker_of(a)->python, picker_of(b)->python);
}

static void picker_cell_torch(const void *row, struct table_cell *c) {
    (void)snprintf(c->text, sizeof c->text, "%s", picker_of(row)->torch);
    c->role = picker_role(row, ROLE_GIL_WAITING);
}

static int picker_compare_torch(const void *a, const void *b) {
    return strcmp(picker_of(a)->torch, picker_of(b)->torch);
}

static void picker_cell_uptime(const void *row, struct table_cell *c) {
    text_human_duration(c->text, sizeof c->text, picker_of(row)->uptime_s);
    c->role = picker_role(row, ROLE_TEXT);
}

static int picker_compare_uptime(const void *a, const void *b) {
    return table_compare_number(picker_of(a)->uptime_s, picker_of(b)->uptime_s);
}

static void picker_cell_command(const void *row, struct table_cell *c) {
    const struct target_process *p = picker_of(row);
    (void)snprintf(c->text, sizeof c->text, "%s%s%s", ((const struct picker_row *)row)->prefix,
                   p->attached ? "[agent] " : "", p->cmdline ? data_short_command(p->cmdline) : "?");
    c->role = picker_role(row, ROLE_TEXT);
}

static int picker_compare_command(const void *a, const void *b) {
    return text_compare(picker_of(a)->cmdline, picker_of(b)->cmdline);
}

#define PICKER_CPU_COLUMN 2

static const struct table_column picker_columns[] = {
    {"PID", "", {7, 0, 0}, GRID_RIGHT, false, picker_cell_pid, picker_compare_pid},
    {"USER", "", {8, 0, 4}, GRID_LEFT, false, picker_cell_user, picker_compare_user},
    [PICKER_CPU_COLUMN] = {"CPU%", "", {5, 0, 0}, GRID_RIGHT, true, picker_cell_cpu, picker_compare_cpu},
    {"RSS", "", {8, 0, 1}, GRID_RIGHT, true, picker_cell_rss, picker_compare_rss},
    {"PYTHON", "", {7, 0, 3}, GRID_LEFT, false, picker_cell_python, picker_compare_python},
    {"TORCH", "", {10, 0, 5}, GRID_LEFT, true, picker_cell_torch, picker_compare_torch},
    {"UP", "", {7, 0, 2}, GRID_RIGHT, true, picker_cell_uptime, picker_compare_uptime},
    {"COMMAND", "", {16, 1, 0}, GRID_LEFT, false, picker_cell_command, picker_compare_command},
};
#define PICKER_COLUMNS ((int)(sizeof picker_columns / sizeof picker_columns[0]))

/* ---- rows ---- */

static bool picker_matches(const struct target_process *p, const struct match *m) {
    char pid[24];
    (void)snprintf(pid, sizeof pid, "%ld", (long)p->pid);
    return match_text(m, pid) || match_text(m, p->user) || match_text(m, p->cmdline) ||
           match_text(m, p->python);
}

static const struct target_process *picker_selected(const struct picker_state *s) {
    return s->list.selected < s->n ? picker_of(s->rows[s->list.selected]) : NULL;
}

/* Each process below the one that has started it; among siblings the order is as sorted. */
static void picker_arrange(struct picker_state *s, bool ascii) {
    size_t n = (size_t)s->n;
    const struct target_process **sorted = calloc(n + 1, sizeof *sorted);
    struct target_tree_row *tree = calloc(n + 1, sizeof *tree);
    for (size_t i = 0; sorted && i < n; i++)
        sorted[i] = picker_of(s->rows[i]);
    if (sorted && tree) {
        target_tree_arrange(sorted, n, tree);
        for (size_t i = 0; i < n; i++) {
            s->kept[i].process = tree[i].process;
            target_tree_prefix(&tree[i], ascii, s->kept[i].prefix);
            s->rows[i] = &s->kept[i];
        }
    }
    free(sorted);
    free(tree);
}

static void picker_update(void *state, struct app *app) {
    struct picker_state *s = state;
    free(s->rows);
    free(s->kept);
    s->n = 0;
    s->rows = calloc(app->n_processes + 1, sizeof *s->rows);
    s->kept = calloc(app->n_processes + 1, sizeof *s->kept);
    for (size_t i = 0; s->rows && s->kept && i < app->n_processes; i++) {
        const struct target_process *p = &app->processes[i];
        if ((s->filter.active && picker_matches(p, &s->filter) == s->filter.negated) ||
            !tags_shows(&s->tags, (uint64_t)p->pid))
            continue;
        s->kept[s->n].process = p;
        s->rows[s->n] = &s->kept[s->n];
        s->n++;
    }
    if (s->n > 0) {
        table_sort_rows(picker_columns, s->sort, s->rows, (size_t)s->n);
        picker_arrange(s, app->config.ascii);
    }
    list_fit(&s->list, s->n, s->list.page);
    for (int i = 0; i < s->n; i++)
        if (picker_of(s->rows[i])->pid == s->pid)
            list_select(&s->list, i);
    s->pid = picker_selected(s) ? picker_selected(s)->pid : 0;
}

static void picker_init(void *state, struct app *app) {
    struct picker_state *s = state;
    s->sort = (struct table_sort){PICKER_CPU_COLUMN, true};
    if (app->config.filter)
        match_set(&s->filter, app->config.filter, true);
    app->requests.list = true;
    picker_update(s, app);
}

static void picker_fini(void *state) {
    struct picker_state *s = state;
    free(s->rows);
    free(s->kept);
    tags_fini(&s->tags);
}

static void picker_draw(void *state, struct app *app, struct grid *g, struct rect area) {
    struct picker_state *s = state;
    (void)grid_text(g, area, 0, 1, ROLE_TEXT,
                    s->tags.n ? "Which Python processes? Enter attaches to those that are tagged."
                    : layout_has_panes(area)
                        ? "Which Python process? Enter attaches; the job is not disturbed."
                        : "Which Python process? Enter attaches.");
    if (*app->hidden)
        grid_text_fit(g, area, 1, 1, area.cols - 1, ROLE_CONN_WAIT, GRID_LEFT, app->hidden);
    area.row += 2;
    area.rows -= 2;
    tags_take_rect(&s->tags, &area);
    s->area = area;
    list_fit(&s->list, s->n, area.rows - 1);
    table_layout(picker_columns, PICKER_COLUMNS, area.cols, s->widths);
    table_draw_head(picker_columns, PICKER_COLUMNS, s->widths, s->sort, g, area);
    if (s->n == 0) {
        const char *why = !app->has_processes ? "looking ..."
                          : app->n_processes  ? "no process matches: A shows all"
                                              : "no Python process is running: start a job, F5 looks again";
        (void)grid_text(g, area, 2, 2, ROLE_MUTED, why);
    }
    for (int i = 0; i < s->list.page && s->list.top + i < s->n; i++) {
        int at = s->list.top + i;
        struct rect row = {area.row + i + 1, area.col, 1, area.cols};
        table_draw_row(picker_columns, PICKER_COLUMNS, s->widths, s->rows[at], s->scroll, g, area, i + 1);
        tags_draw(&s->tags, (uint64_t)picker_of(s->rows[at])->pid, g, area, i + 1);
        if (at == s->list.selected)
            grid_restyle(g, row, ROLE_SELECTION);
        match_highlight(&s->search, g, row, 0);
    }
}

/* ---- actions ---- */

/* To all that are tagged and may be attached to, one after the other: each becomes a target. */
static void picker_attach_tagged(struct picker_state *s, struct app *app) {
    app->n_attach_more = 0;
    for (int i = 0; i < s->n; i++) {
        const struct target_process *p = picker_of(s->rows[i]);
        if (!tags_has(&s->tags, (uint64_t)p->pid))
            continue;
        if (!p->inspectable && !p->readable) {
            app_message(app, true, "%ld: %s", (long)p->pid, p->why_not);
            return;
        }
        if (app->n_attach_more == TARGETS_MAX) {
            app_refuse(app, "no more than %d targets at a time", TARGETS_MAX);
            return;
        }
        app->attach_more[app->n_attach_more++] = p->pid;
    }
    if (app->n_attach_more == 0) {
        app_message(app, false, "none of the tagged rows is shown: A shows all");
        return;
    }
    app_message(app, false, "attaching to %d processes ...", app->n_attach_more);
    app->attaches_several = app->n_attach_more > 1;
    app->attaching = app->requests.attach = app_attach_next(app);
}

static void picker_attach(struct picker_state *s, struct app *app) {
    const struct target_process *p = picker_selected(s);
    if (!p || app->attaching)
        return;
    if (s->tags.n > 0) {
        picker_attach_tagged(s, app);
        return;
    }
    if (!p->inspectable && !p->readable) {
        app_message(app, true, "%ld: %s", (long)p->pid, p->why_not);
        return;
    }
    app->attaching = app->requests.attach = p->pid;
    app_message(app, false, "attaching to %ld ...", (long)p->pid);
}

static bool picker_search(struct picker_state *s, int from, int step) {
    for (int i = 0; i < s->n; i++) {
        int at = ((from + i * step) % s->n + s->n) % s->n;
        if (picker_matches(picker_of(s->rows[at]), &s->search)) {
            list_select(&s->list, at);
            s->pid = picker_of(s->rows[at])->pid;
            return true;
        }
    }
    return false;
}

static bool picker_typed(void *state, struct app *app, enum action what, const char *text,
                         enum screen_typed phase) {
    struct picker_state *s = state;
    if (phase == SCREEN_CANCEL)
        text = "";
    match_set(what == ACTION_FILTER ? &s->filter : &s->search, text, what == ACTION_FILTER);
    if (what == ACTION_SEARCH)
        return !s->search.active || picker_search(s, s->list.selected, 1);
    picker_update(s, app);
    return s->n > 0 || !app->has_processes; /* what is not there yet may match */
}

static const char *picker_typed_before(const void *state, enum action what) {
    const struct picker_state *s = state;
    return what == ACTION_FILTER ? s->filter.text : s->search.text;
}

static bool picker_act_search(struct picker_state *s, struct app *app, enum action action) {
    int step = action == ACTION_SEARCH_NEXT ? 1 : -1;
    if (!s->search.active || !picker_search(s, s->list.selected + step, step))
        app_message(app, false, "nothing was searched for, or nothing matches");
    return true;
}

static bool picker_act(void *state, struct app *app, enum action action) {
    struct picker_state *s = state;
    switch ((int)action) {
    case ACTION_ATTACH:
        picker_attach(s, app);
        return true;
    case ACTION_REFRESH:
        app->requests.list = true;
        return true;
    case ACTION_SORT_NEXT:
    case ACTION_SORT_PREV:
        table_sort_step(&s->sort, picker_columns, PICKER_COLUMNS, action == ACTION_SORT_NEXT ? 1 : -1);
        break;
    case ACTION_SORT_INVERT:
        s->sort.descends = !s->sort.descends;
        break;
    case ACTION_SORT_CPU:
        s->sort = (struct table_sort){PICKER_CPU_COLUMN, true};
        break;
    case ACTION_SHOW_ALL:
        match_clear(&s->filter);
        s->tags.only = false;
        break;
    case ACTION_BACK:
        match_clear(s->search.active ? &s->search : &s->filter);
        break;
    case ACTION_LEFT:
        s->scroll = s->scroll > PICKER_SCROLL ? s->scroll - PICKER_SCROLL : 0;
        break;
    case ACTION_RIGHT:
        s->scroll += s->scroll < 1000 ? PICKER_SCROLL : 0;
        break;
    case ACTION_SEARCH_NEXT:
    case ACTION_SEARCH_PREV:
        return picker_act_search(s, app, action);
    default:
        if (!list_move(&s->list, action))
            return false;
        s->pid = picker_selected(s) ? picker_selected(s)->pid : 0;
        return true;
    }
    picker_update(s, app);
    return true;
}

static bool picker_mouse(void *state, struct app *app, const struct input_event *e) {
    struct picker_state *s = state;
    int row = e->row - s->area.row - 1;
    if (e->button != INPUT_CLICK)
        list_wheel(&s->list, e->button == INPUT_WHEEL_UP ? -PICKER_WHEEL : PICKER_WHEEL);
    else if (row == -1) {
        int column = table_column_at(s->widths, PICKER_COLUMNS, e->col - s->area.col);
        if (column >= 0)
            table_sort_by(&s->sort, picker_columns, column);
        picker_update(s, app);
    } else if (row >= 0 && s->list.top + row < s->n)
        list_select(&s->list, s->list.top + row);
    s->pid = picker_selected(s) ? picker_selected(s)->pid : 0;
    return true;
}

/* ---- for other parts of the program ---- */

static void picker_put(const void *state, const struct app *app, int row, struct screen_pick *what,
                       struct strbuf *one, struct strbuf *whole) {
    const struct picker_state *s = state;
    (void)app;
    *what = (struct screen_pick){.tid = 0};
    (void)strbuf_addf(one, "%ld", (long)picker_of(s->rows[row])->pid);
    table_put_row(picker_columns, PICKER_COLUMNS, s->rows[row], whole);
}

static bool picker_pick(const void *state, const struct app *app, struct screen_pick *what,
                        struct strbuf *one, struct strbuf *whole) {
    const struct picker_state *s = state;
    if (picker_selected(s))
        picker_put(s, app, s->list.selected, what, one, whole);
    return picker_selected(s) != NULL;
}

static struct tags *picker_tags(void *state, struct app *app) {
    (void)app;
    return &((struct picker_state *)state)->tags;
}

static int picker_count_rows(const void *state, const struct app *app) {
    (void)app;
    return ((const struct picker_state *)state)->n;
}

static int picker_selected_row(const void *state, const struct app *app) {
    const struct picker_state *s = state;
    (void)app;
    return picker_selected(s) ? s->list.selected : -1;
}

static uint64_t picker_key(const void *state, const struct app *app, int row) {
    (void)app;
    return (uint64_t)picker_of(((const struct picker_state *)state)->rows[row])->pid;
}

static const struct screen_rows picker_tagged = {.tags = picker_tags,
                                                 .count = picker_count_rows,
                                                 .selected = picker_selected_row,
                                                 .key = picker_key,
                                                 .put = picker_put,
                                                 .renew = picker_update};

static bool picker_is_on(const void *state, const struct app *app, enum action action) {
    (void)app;
    return action == ACTION_FILTER && ((const struct picker_state *)state)->filter.active;
}

static void picker_status(const void *state, const struct app *app, struct strbuf *out) {
    const struct picker_state *s = state;
    const struct target_process *p = picker_selected(s);
    (void)strbuf_addf(out, "Python processes %d", s->n);
    if ((size_t)s->n != app->n_processes)
        (void)strbuf_addf(out, " of %zu", app->n_processes);
    if (s->filter.active)
        (void)strbuf_addf(out, "   FILTER %s", s->filter.text);
    tags_put_text(&s->tags, out);
    if (p && !p->inspectable)
        (void)strbuf_addf(out, "   %s %ld: %s", p->readable ? "only from outside" : "cannot attach to",
                          (long)p->pid, p->why_not);
    else
        (void)strbuf_addf(out, "   sorted by %s", picker_columns[s->sort.column].title);
}

const struct screen_def screen_picker = {
    .name = "picker",
    .title = "Choice of a process",
    .state_size = sizeof(struct picker_state),
    .init = picker_init,
    .fini = picker_fini,
    .keys = CONTEXT_PICKER,
    .draw = picker_draw,
    .act = picker_act,
    .mouse = picker_mouse,
    .update = picker_update,
    .pick = picker_pick,
    .rows = &picker_tagged,
    .typed = picker_typed,
    .typed_before = picker_typed_before,
    .is_on = picker_is_on,
    .status = picker_status,
};
