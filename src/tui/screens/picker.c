/* SPDX-License-Identifier: Apache-2.0 */
/*
 * picker: the Python processes of this machine, to choose one. Those that this user may not attach
 * to are grey and say why.
 */
#include "tui/core/app.h"
#include "tui/core/app_life.h"
#include "tui/core/screen.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "client/target/target_tree.h"
#include "tui/view/view.h"

/* A process of the app's list, and the branches that lead to it from its parent. */
struct picker_row {
    const struct target_process *process;
    char prefix[TARGET_TREE_PREFIX];
};

struct picker_state {
    const void **rows; /* of struct picker_row, visible, sorted */
    struct picker_row *kept;
    int n;
    struct view view;
};

static const struct target_process *picker_of(const void *row) {
    return ((const struct picker_row *)row)->process;
}

static enum theme_role picker_role(const void *row, enum theme_role role) {
    return picker_of(row)->inspectable || picker_of(row)->readable ? role : ROLE_MUTED;
}

static void picker_cell_pid(const void *row, struct table_cell *c) {
    snprintf(c->text, sizeof c->text, "%ld", (long)picker_of(row)->pid);
    c->role = picker_role(row, ROLE_VALUE);
}

static int picker_compare_pid(const void *a, const void *b) {
    return (picker_of(a)->pid > picker_of(b)->pid) - (picker_of(a)->pid < picker_of(b)->pid);
}

static void picker_cell_user(const void *row, struct table_cell *c) {
    snprintf(c->text, sizeof c->text, "%s", picker_of(row)->user);
    c->role = picker_role(row, ROLE_TEXT);
}

static int picker_compare_user(const void *a, const void *b) {
    return strcmp(picker_of(a)->user, picker_of(b)->user);
}

static void picker_cell_cpu(const void *row, struct table_cell *c) {
    double v = picker_of(row)->cpu_pct;
    if (isnan(v))
        snprintf(c->text, sizeof c->text, "?");
    else
        snprintf(c->text, sizeof c->text, "%.*f", v < 999.95 ? 1 : 0, v);
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
    snprintf(c->text, sizeof c->text, "%s", *picker_of(row)->python ? picker_of(row)->python : "?");
    c->role = picker_role(row, ROLE_TEXT);
}

static int picker_compare_python(const void *a, const void *b) {
    return strcmp(picker_of(a)->python, picker_of(b)->python);
}

static void picker_cell_torch(const void *row, struct table_cell *c) {
    snprintf(c->text, sizeof c->text, "%s", picker_of(row)->torch);
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
    snprintf(c->text, sizeof c->text, "%s%s%s", ((const struct picker_row *)row)->prefix,
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

static int picker_count_rows(const void *state) { return ((const struct picker_state *)state)->n; }

static const void *picker_row(const void *state, int at) {
    return ((const struct picker_state *)state)->rows[at];
}

static uint64_t picker_key(const void *row) { return (uint64_t)picker_of(row)->pid; }

static bool picker_matches(const void *row, const struct match *m) {
    const struct target_process *p = picker_of(row);
    char pid[24];
    snprintf(pid, sizeof pid, "%ld", (long)p->pid);
    return match_text(m, pid) || match_text(m, p->user) || match_text(m, p->cmdline) ||
           match_text(m, p->python);
}

static void picker_put(const void *state, const void *row, struct screen_pick *what, struct strbuf *one,
                       struct strbuf *whole) {
    (void)state;
    (void)what;
    strbuf_addf(one, "%ld", (long)picker_of(row)->pid);
    table_put_row(picker_columns, PICKER_COLUMNS, row, whole);
}

static const struct target_process *picker_selected(const struct picker_state *s) {
    const void *row = view_row(&s->view);
    return row ? picker_of(row) : NULL;
}

/* Each process below its parent; siblings are sorted. */
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
        s->kept[s->n].process = &app->processes[i];
        if (!view_shows(&s->view, &s->kept[s->n]))
            continue;
        s->rows[s->n] = &s->kept[s->n];
        s->n++;
    }
    if (s->n > 0) {
        table_sort_rows(picker_columns, s->view.sort, s->rows, (size_t)s->n);
        picker_arrange(s, app->config.ascii);
    }
    view_settle(&s->view);
}

static const struct view_def picker_rows = {.count = picker_count_rows,
                                            .row = picker_row,
                                            .key = picker_key,
                                            .matches = picker_matches,
                                            .put = picker_put,
                                            .rebuild = picker_update,
                                            .forgets = true};

static struct view *picker_view(void *state) { return &((struct picker_state *)state)->view; }

static void picker_init(void *state, struct app *app) {
    struct picker_state *s = state;
    view_init(&s->view, &picker_rows, s, &s->view.own_tags);
    view_set_columns(&s->view, picker_columns, PICKER_COLUMNS);
    s->view.sort = (struct table_sort){PICKER_CPU_COLUMN, true};
    if (app->config.filter)
        match_set(&s->view.filter, app->config.filter, true);
    app->host.list_processes(app->host.arg);
    picker_update(s, app);
}

static void picker_fini(void *state) {
    struct picker_state *s = state;
    free(s->rows);
    free(s->kept);
    view_fini(&s->view);
}

static void picker_draw(void *state, struct app *app, struct grid *g, struct rect area) {
    struct picker_state *s = state;
    grid_text(g, area, 0, 1, ROLE_TEXT,
              s->view.own_tags.n       ? "Which Python processes? Enter attaches to the tagged ones."
              : layout_has_panes(area) ? "Which Python process? Enter attaches; the job is not disturbed."
                                       : "Which Python process? Enter attaches.");
    if (*app->hidden)
        grid_text_fit(g, area, 1, 1, area.cols - 1, ROLE_CONN_WAIT, GRID_LEFT, app->hidden);
    area.row += 2;
    area.rows -= 2;
    view_draw(&s->view, g, area,
              !app->has_processes ? "looking ..."
              : app->n_processes  ? "no process matches: A shows all"
                                  : "no Python process is running: start a job, r refreshes");
}

/* ---- actions ---- */

/* The tagged ones are to be attached to next. False, with a message: one of them may not be, so none is. */
static bool picker_queue_tagged(struct picker_state *s, struct app *app) {
    app->n_attach_more = 0;
    for (int i = 0; i < s->n; i++) {
        const struct target_process *p = picker_of(s->rows[i]);
        if (!tags_has(&s->view.own_tags, (uint64_t)p->pid))
            continue;
        if (!p->inspectable && !p->readable) {
            app_message(app, true, "%ld: %s", (long)p->pid, p->why_not);
            app->n_attach_more = 0;
            return false;
        }
        if (app->n_attach_more == TARGETS_MAX) {
            app_refuse(app, "at most %d targets at a time", TARGETS_MAX);
            app->n_attach_more = 0;
            return false;
        }
        app->attach_more[app->n_attach_more++] = p->pid;
    }
    return true;
}

/* Attach to all tagged ones, one after the other: each becomes a target. */
static void picker_attach_tagged(struct picker_state *s, struct app *app) {
    if (!picker_queue_tagged(s, app))
        return;
    if (app->n_attach_more == 0) {
        app_message(app, false, "none of the tagged rows is shown: A shows all");
        return;
    }
    app_message(app, false, "attaching to %d processes ...", app->n_attach_more);
    app->attaches_several = app->n_attach_more > 1;
    app_attach(app, app_attach_next(app));
}

static void picker_attach(struct picker_state *s, struct app *app) {
    const struct target_process *p = picker_selected(s);
    if (!p || app->attaching)
        return;
    if (s->view.own_tags.n > 0) {
        picker_attach_tagged(s, app);
        return;
    }
    if (!p->inspectable && !p->readable) {
        app_message(app, true, "%ld: %s", (long)p->pid, p->why_not);
        return;
    }
    app_message(app, false, "attaching to %ld ...", (long)p->pid);
    app_attach(app, p->pid);
}

static bool picker_typed(void *state, struct app *app, enum action what, const char *text,
                         enum screen_typed phase) {
    struct picker_state *s = state;
    bool found = view_typed(&s->view, app, what, phase == SCREEN_CANCEL ? "" : text);
    /* The list may match when it arrives. */
    return found || (what == ACTION_FILTER && !app->has_processes);
}

static bool picker_act(void *state, struct app *app, enum action action) {
    struct picker_state *s = state;
    switch ((int)action) {
    case ACTION_ATTACH:
        picker_attach(s, app);
        return true;
    case ACTION_REFRESH:
        app->host.list_processes(app->host.arg);
        return true;
    case ACTION_SORT_CPU:
        s->view.sort = (struct table_sort){PICKER_CPU_COLUMN, true};
        picker_update(s, app);
        return true;
    default:
        return false;
    }
}

static void picker_status(const void *state, const struct app *app, struct strbuf *out) {
    const struct picker_state *s = state;
    const struct target_process *p = picker_selected(s);
    strbuf_addf(out, "Python processes %d", s->n);
    if ((size_t)s->n != app->n_processes)
        strbuf_addf(out, " of %zu", app->n_processes);
    view_put_filter(&s->view, out);
    if (p && !p->inspectable)
        strbuf_addf(out, "   %s %ld: %s", p->readable ? "only from outside" : "cannot attach to",
                    (long)p->pid, p->why_not);
    else
        view_put_sort(&s->view, out);
}

const struct screen_def screen_picker = {
    .name = "picker",
    .title = "Choose a process",
    .state_size = sizeof(struct picker_state),
    .init = picker_init,
    .fini = picker_fini,
    .keys = CONTEXT_PICKER,
    .view = picker_view,
    .draw = picker_draw,
    .act = picker_act,
    .update = picker_update,
    .typed = picker_typed,
    .status = picker_status,
};
