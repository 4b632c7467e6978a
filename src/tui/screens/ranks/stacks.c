/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stacks: the stacks of all ranks of a job as one tree. A row is a chain of calls that its ranks
 * share; where they go different ways there is a row for each. Ranks without a stack are rows below it.
 * Enter shows the ranks of a row.
 */
#include "tui/core/app.h"
#include "tui/core/app_screen.h"
#include "tui/core/job_state.h"
#include "tui/core/screen.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/hash.h"
#include "tui/screens/ranks/rank_stack.h"
#include "tui/view/rank_filter.h"
#include "tui/view/rank_others.h"
#include "tui/view/rank_text.h"
#include "tui/view/time_text.h"
#include "tui/view/view.h"

#define STACKS_MAX_ROWS ((size_t)20000)
#define STACKS_INDENT 2
#define STACKS_RANGES 4 /* of ranks in a row */
#define STACKS_MUCH 20  /* rows from which on the stack has a part, though rows are left out */

/* A chain of nodes, the last of which is `end`; or ranks without a stack. */
struct stacks_row {
    const struct job_shot *shot;
    uint32_t start, end;
    int indent;
    bool here;      /* only those whose stack ends there */
    uint32_t n;     /* ranks */
    int32_t number; /* of the class that they are; -1: several, or none */
    /* without a stack: what is known of them, of the state's `others`; NULL */
    const struct rank_others *others;
};

struct stacks_state {
    const struct job_shot *shot; /* that the rows are of */
    struct stacks_row *pool;     /* owned; all of them, */
    size_t n_pool, cap_pool;
    struct rank_others *others; /* owned */
    struct stacks_row *rows;    /* and those that are shown. Owned */
    size_t cap_rows;
    int n;
    struct view view;
    bool compares; /* the stack of the selected row is beside another one */
};

static const struct stacks_row *stacks_of(const void *row) { return row; }

static const struct stack_node *stacks_node(const struct stacks_row *r, uint32_t node) {
    return &r->shot->stacks.nodes[node];
}

/* The ranks of a row, into an empty set. */
static void stacks_put_ranks(const struct stacks_row *r, struct rank_set *out) {
    if (r->others)
        rank_others_ranks(r->shot, r->others, out);
    else
        stack_classes_ranks(&r->shot->stacks, r->end, r->here, out);
}

/* ---- what a row shows ---- */

/* Is a frame of the chain named? The job's own ones are; where a stack ends what they call, and the
 * innermost one. A chain without any of these is named by its last. */
static bool stacks_names(const struct stacks_row *r, uint32_t node, bool has_own) {
    bool is_leaf = stacks_node(r, r->end)->child == STACK_CLASSES_NONE;
    return stacks_node(r, node)->own || (node == r->end && (is_leaf || !has_own)) ||
           (is_leaf && node == rank_text_called(&r->shot->stacks, r->end));
}

static void stacks_put_calls(const struct stacks_row *r, struct strbuf *out) {
    uint32_t chain[STACK_CLASSES_DEPTH + 1];
    size_t n = 0;
    bool has_own = false, is_first = true;
    if (r->others) {
        rank_others_put(r->shot, r->others, out);
        return;
    }
    if (r->here && r->start == STACK_CLASSES_NONE) {
        strbuf_adds(out, r->end == STACK_CLASSES_ROOT ? "(no stack)" : "(here)");
        return;
    }
    for (uint32_t at = r->end; n <= STACK_CLASSES_DEPTH; at = stacks_node(r, at)->parent) {
        chain[n++] = at;
        has_own = has_own || stacks_node(r, at)->own;
        if (at == r->start)
            break;
    }
    while (n-- > 0) {
        if (!stacks_names(r, chain[n], has_own))
            continue;
        strbuf_adds(out, is_first ? "" : " > ");
        rank_text_put_call(stacks_node(r, chain[n]), out);
        is_first = false;
    }
}

static void stacks_cell_n(const void *row, struct table_cell *c) {
    snprintf(c->text, sizeof c->text, "%" PRIu32, stacks_of(row)->n);
    c->role = ROLE_VALUE;
}

static void stacks_cell_ranks(const void *row, struct table_cell *c) {
    struct rank_set ranks = {.n = 0};
    struct strbuf text;
    strbuf_init(&text, sizeof c->text - 1);
    stacks_put_ranks(stacks_of(row), &ranks);
    rank_set_put(&ranks, STACKS_RANGES, &text);
    snprintf(c->text, sizeof c->text, "%s", strbuf_str(&text));
    c->role = ROLE_VALUE;
    strbuf_fini(&text);
    rank_set_fini(&ranks);
}

static void stacks_cell_since(const void *row, struct table_cell *c) {
    const struct stacks_row *r = stacks_of(row);
    c->text[0] = '\0';
    if (r->number >= 0)
        rank_text_since(r->shot->classes[r->number].since_s, c->text, sizeof c->text);
    else if (r->others)
        rank_text_since(r->others->since_s, c->text, sizeof c->text);
    c->role = ROLE_TEXT;
}

/* The heaviest of its ranks. */
static void stacks_cell_sign(const void *row, struct table_cell *c) {
    const struct stacks_row *r = stacks_of(row);
    const struct rank_text_sign *sign = NULL;
    struct rank_set ranks = {.n = 0};
    c->text[0] = '\0';
    stacks_put_ranks(r, &ranks);
    for (size_t i = 0; (r->number >= 0 || r->others) && i < r->shot->n_ranks; i++) {
        const struct rank_text_sign *of = rank_text_sign(&r->shot->ranks[i]);
        if ((!sign || of->weight > sign->weight) && rank_set_has(&ranks, r->shot->ranks[i].rank))
            sign = of;
    }
    if (sign) {
        snprintf(c->text, sizeof c->text, "%c", sign->sign);
        c->role = sign->role;
    }
    rank_set_fini(&ranks);
}

static void stacks_cell_calls(const void *row, struct table_cell *c) {
    const struct stacks_row *r = stacks_of(row);
    struct strbuf text;
    strbuf_init(&text, sizeof c->text - 1);
    for (int i = 0; i < r->indent * STACKS_INDENT; i++)
        strbuf_addc(&text, ' ');
    strbuf_adds(&text, r->indent ? "> " : "");
    stacks_put_calls(r, &text);
    if (r->number >= 0 && r->shot->classes[r->number].is_majority)
        strbuf_adds(&text, "   majority");
    snprintf(c->text, sizeof c->text, "%s", strbuf_str(&text));
    c->role = r->others ? ROLE_MUTED : ROLE_FUNC;
    strbuf_fini(&text);
}

static const struct table_column stacks_columns[] = {
    {"N", "ranks that are in these calls", {5, 0, 0}, GRID_RIGHT, true, stacks_cell_n, NULL},
    {"RANKS", "which", {9, 1, 0}, GRID_LEFT, false, stacks_cell_ranks, NULL},
    {"SINCE", "for how long no rank has come or gone", {5, 0, 1}, GRID_RIGHT, true, stacks_cell_since, NULL},
    {"",
     "what its ranks do: the signs of the Ranks screen",
     {1, 0, 0},
     GRID_LEFT,
     false,
     stacks_cell_sign,
     NULL},
    {"CALLS",
     "outermost first: lines of the job's own code, and what it calls at the end",
     {16, 4, 0},
     GRID_LEFT,
     false,
     stacks_cell_calls,
     NULL},
};
#define STACKS_COLUMNS ((int)(sizeof stacks_columns / sizeof stacks_columns[0]))

/* ---- rows ---- */

static int stacks_count(const void *state) { return ((const struct stacks_state *)state)->n; }

static const void *stacks_row(const void *state, int at) {
    return &((const struct stacks_state *)state)->rows[at];
}

static uint64_t stacks_key(const void *row) {
    const struct stacks_row *r = stacks_of(row);
    if (r->others)
        return hash_mix((uint64_t)r->others->state << 32 | (uint32_t)r->others->silent);
    return stacks_node(r, r->end)->id * 2 + r->here + 1;
}

static bool stacks_matches(const void *row, const struct match *m) {
    struct strbuf text;
    struct rank_set ranks = {.n = 0}, wanted = {.n = 0};
    struct err e;
    bool has = false;
    strbuf_init(&text, 1 << 16);
    stacks_put_calls(stacks_of(row), &text);
    stacks_put_ranks(stacks_of(row), &ranks);
    for (size_t i = 0; !has && i < m->n; i++) {
        struct match one = {.active = true, .exact_case = m->exact_case, .n = 1};
        one.alternatives[0] = m->alternatives[i];
        bool is_ranks = strncmp(m->alternatives[i].text, "rank:", 5) == 0;
        if (!is_ranks)
            has = match_text(&one, strbuf_str(&text));
        else if (rank_set_parse(&wanted, m->alternatives[i].text + 5, &e) == 0)
            for (size_t k = 0; !has && k < ranks.n; k++)
                for (size_t j = 0; !has && j < wanted.n; j++)
                    has = ranks.ranges[k].first <= wanted.ranges[j].last &&
                          wanted.ranges[j].first <= ranks.ranges[k].last;
    }
    rank_set_fini(&ranks);
    rank_set_fini(&wanted);
    strbuf_fini(&text);
    return has;
}

static void stacks_put(const void *state, const void *row, struct screen_pick *what, struct strbuf *one,
                       struct strbuf *whole) {
    struct rank_set ranks = {.n = 0};
    (void)state;
    (void)what;
    stacks_put_ranks(stacks_of(row), &ranks);
    rank_set_put(&ranks, 0, one);
    rank_set_fini(&ranks);
    table_put_row(stacks_columns, STACKS_COLUMNS, row, whole);
}

static struct stacks_row *stacks_add(struct stacks_state *s) {
    if (s->n_pool == STACKS_MAX_ROWS ||
        grow_array(&s->pool, sizeof *s->pool, s->n_pool + 1, &s->cap_pool) != 0)
        return NULL;
    return &s->pool[s->n_pool++];
}

/* The ranks whose stack ends in a node that has callees, too. */
static void stacks_add_here(struct stacks_state *s, uint32_t node, int indent) {
    const struct stack_node *n = &s->shot->stacks.nodes[node];
    struct stacks_row *row = stacks_add(s);
    if (row)
        *row = (struct stacks_row){.shot = s->shot,
                                   .start = STACK_CLASSES_NONE,
                                   .end = node,
                                   .indent = indent,
                                   .here = true,
                                   .n = n->n_here,
                                   .number = (int32_t)n->class_number};
}

/* The chain that begins with a node, and all below it. Each turn of this function is a way that ranks
 * part, so it goes at most as deep as a stack. */
static void stacks_add_chain(struct stacks_state *s, uint32_t start, int indent) {
    const struct stack_node *nodes = s->shot->stacks.nodes;
    uint32_t end = start;
    while (nodes[end].n_here == 0 && nodes[end].child != STACK_CLASSES_NONE &&
           nodes[nodes[end].child].next == STACK_CLASSES_NONE)
        end = nodes[end].child;
    bool is_leaf = nodes[end].child == STACK_CLASSES_NONE;
    struct stacks_row *row = stacks_add(s);
    if (!row)
        return;
    *row = (struct stacks_row){.shot = s->shot,
                               .start = start,
                               .end = end,
                               .indent = indent,
                               .n = nodes[end].n,
                               .number = is_leaf ? (int32_t)nodes[end].class_number : -1};
    for (uint32_t at = nodes[end].child; at != STACK_CLASSES_NONE; at = nodes[at].next)
        stacks_add_chain(s, at, indent + 1);
    if (!is_leaf && nodes[end].n_here)
        stacks_add_here(s, end, indent + 1);
}

/* The ranks without a stack, which are in no node. */
static void stacks_add_others(struct stacks_state *s) {
    free(s->others);
    size_t n = rank_others_list(s->shot, &s->others);
    for (size_t i = 0; i < n; i++) {
        struct stacks_row *row = stacks_add(s);
        if (row)
            *row = (struct stacks_row){.shot = s->shot,
                                       .start = STACK_CLASSES_NONE,
                                       .end = STACK_CLASSES_ROOT,
                                       .n = s->others[i].n,
                                       .number = -1,
                                       .others = &s->others[i]};
    }
}

static void stacks_make(struct stacks_state *s) {
    const struct stack_classes *c = &s->shot->stacks;
    s->n_pool = 0;
    if (c->n_nodes > 0) {
        uint32_t at = c->nodes[STACK_CLASSES_ROOT].child;
        for (; at != STACK_CLASSES_NONE; at = c->nodes[at].next)
            stacks_add_chain(s, at, 0);
        if (c->nodes[STACK_CLASSES_ROOT].n_here)
            stacks_add_here(s, STACK_CLASSES_ROOT, 0);
    }
    stacks_add_others(s);
}

static void stacks_update(void *state, struct app *app) {
    struct stacks_state *s = state;
    const struct job_shot *f = job_state_shown(app);
    s->n = 0;
    s->shot = f;
    if (f)
        stacks_make(s);
    else
        s->n_pool = 0;
    if (grow_array(&s->rows, sizeof *s->rows, s->n_pool + 1, &s->cap_rows) != 0)
        s->n_pool = 0;
    for (size_t i = 0; i < s->n_pool; i++)
        if (view_shows(&s->view, &s->pool[i]))
            s->rows[s->n++] = s->pool[i];
    view_settle(&s->view);
}

static const struct view_def stacks_rows = {.count = stacks_count,
                                            .row = stacks_row,
                                            .key = stacks_key,
                                            .matches = stacks_matches,
                                            .put = stacks_put,
                                            .rebuild = stacks_update};

static struct view *stacks_view(void *state) { return &((struct stacks_state *)state)->view; }

static void stacks_init(void *state, struct app *app) {
    struct stacks_state *s = state;
    view_init(&s->view, &stacks_rows, s, &s->view.own_tags);
    view_set_columns(&s->view, stacks_columns, STACKS_COLUMNS);
    s->view.sort.column = -1;
    if (app->config.filter)
        match_set(&s->view.filter, app->config.filter, true);
    stacks_update(s, app);
}

static void stacks_fini(void *state) {
    struct stacks_state *s = state;
    view_fini(&s->view);
    free(s->pool);
    free(s->others);
    free(s->rows);
}

/* ---- drawing ---- */

static struct rank_stack_shown stacks_stack_of(uint32_t node, uint32_t n) {
    struct rank_stack_shown out = {.node = node};
    snprintf(out.title, sizeof out.title, "Stack of %" PRIu32 " rank%s", n, n == 1 ? "" : "s");
    return out;
}

/* The stack of the most ranks that is another one. False: there is none. */
static bool stacks_find_other(const struct stacks_row *r, struct rank_stack_shown *out) {
    uint32_t node = rank_stack_find_other(r->shot, r->end, true);
    if (node == STACK_CLASSES_NONE)
        return false;
    *out = stacks_stack_of(node, stacks_node(r, node)->n_here);
    return true;
}

static void stacks_draw(void *state, struct app *app, struct grid *g, struct rect area) {
    struct stacks_state *s = state;
    if (s->shot != job_state_shown(app)) /* it was frozen, or is no longer */
        stacks_update(s, app);
    struct rect table = area, stack = area;
    const struct stacks_row *r = view_row(&s->view);
    int needed = s->n + 1, wanted = r ? rank_stack_rows(s->shot, r->end) : 0;
    if (wanted > area.rows / 3)
        wanted = area.rows / 3;
    bool halves = s->compares && area.rows >= 2 * RANK_STACK_ROWS && area.rows - needed < area.rows / 2;
    table.rows = halves                                       ? area.rows / 2
                 : r && area.rows - needed >= RANK_STACK_ROWS ? needed
                 : area.rows >= STACKS_MUCH                   ? area.rows - wanted
                                                              : area.rows;
    stack.row += table.rows;
    stack.rows -= table.rows;
    view_draw(&s->view, g, table,
              !s->shot ? "looking for the ranks of the job" : "no stack is shown: A shows all");
    if (!r || stack.rows < RANK_STACK_ROWS)
        return;
    struct rank_stack_shown one = stacks_stack_of(r->end, r->n), other;
    bool is_compared = s->compares && stacks_find_other(r, &other);
    rank_stack_draw(s->shot, &one, is_compared ? &other : NULL, g, stack);
}

/* ---- actions ---- */

/* Show the ranks of the selected row. */
static void stacks_enter(const struct stacks_state *s, struct app *app) {
    const struct stacks_row *r = view_row(&s->view);
    struct rank_set ranks = {.n = 0};
    if (!r)
        return;
    stacks_put_ranks(r, &ranks);
    rank_filter_put(&ranks, r->shot, r->number, app->job.filter, sizeof app->job.filter);
    rank_set_fini(&ranks);
    app_screen_open(app, ACTION_SHOW_RANKS); /* s is freed */
}

static bool stacks_act(void *state, struct app *app, enum action action) {
    struct stacks_state *s = state;
    const struct stacks_row *r = view_row(&s->view);
    struct rank_stack_shown other;
    bool can;
    switch ((int)action) {
    case ACTION_OPEN_CLASS:
        stacks_enter(s, app);
        return true;
    case ACTION_COMPARE:
        can = r && stacks_find_other(r, &other);
        s->compares = !s->compares && can;
        if (!can)
            app_message(app, false,
                        !r                             ? "no stack is selected"
                        : r->end == STACK_CLASSES_ROOT ? "no stack of these ranks is known"
                                                       : "all ranks go through this");
        return true;
    case ACTION_BACK:
        if (!s->compares)
            return false;
        s->compares = false;
        return true;
    default:
        return false;
    }
}

static bool stacks_is_on(const void *state, const struct app *app, enum action action) {
    (void)app;
    return action == ACTION_COMPARE && ((const struct stacks_state *)state)->compares;
}

static bool stacks_mouse(void *state, struct app *app, const struct input_event *e) {
    struct stacks_state *s = state;
    bool again, done = view_mouse(&s->view, app, e, &again);
    if (again && e->button == INPUT_CLICK)
        stacks_enter(s, app);
    return done;
}

static void stacks_status(const void *state, const struct app *app, struct strbuf *out) {
    const struct stacks_state *s = state;
    (void)app;
    strbuf_adds(out, "Stacks");
    if (s->shot) {
        char when[32];
        size_t n = s->shot->stacks.n_classes, n_ranks = s->shot->stacks.n_ranks;
        time_text_clock(s->shot->at_s, when, sizeof when);
        when[strcspn(when, ".")] = '\0'; /* without tenths */
        strbuf_addf(out, "   %zu %s of %zu %s at %s", n, n == 1 ? "stack" : "stacks", n_ranks,
                    n_ranks == 1 ? "rank" : "ranks", when);
    }
    view_put_filter(&s->view, out);
    if (s->view.search.active)
        strbuf_addf(out, "   /%s: %d", s->view.search.text, view_hits(&s->view));
}

const struct screen_def screen_stacks = {
    .name = "stacks",
    .title = "Stacks",
    .is_tab = true,
    .of_job = true,
    .opens = {SCREEN_TAB_KEY(STACKS, "stacks", "O", "the stacks of all ranks of the job as one tree")},
    .state_size = sizeof(struct stacks_state),
    .init = stacks_init,
    .fini = stacks_fini,
    .keys = CONTEXT_STACKS,
    .view = stacks_view,
    .draw = stacks_draw,
    .act = stacks_act,
    .mouse = stacks_mouse,
    .update = stacks_update,
    .is_on = stacks_is_on,
    .status = stacks_status,
};
