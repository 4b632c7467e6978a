/* SPDX-License-Identifier: Apache-2.0 */
/* steps_table: the last steps, a row each, with their parts; see steps_state.h. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tui/screens/steps/steps_state.h"

static const struct steps_row *steps_of(const void *node) { return ((const struct outline_node *)node)->row; }

static void steps_cell_ms(struct table_cell *c, double ms, bool is_cause) {
    steps_put_ms(c->text, sizeof c->text, ms);
    c->role = isnan(ms) ? ROLE_MUTED : is_cause ? ROLE_CPU_HIGH : ROLE_VALUE;
}

static void steps_cell_number(struct table_cell *c, double v, bool is_bad) {
    steps_put_number(c->text, sizeof c->text, v);
    c->role = isnan(v) ? ROLE_MUTED : ROLE_VALUE;
    if (is_bad) {
        (void)snprintf(c->text, sizeof c->text, "nan!");
        c->role = ROLE_CONN_LOST;
    }
}

static void steps_cell_step(const void *node, struct table_cell *c) {
    const struct steps_row *r = steps_of(node);
    c->role = ROLE_TEXT;
    if (r->step == APP_FEED_UNKNOWN)
        (void)snprintf(c->text, sizeof c->text, "?");
    else
        (void)snprintf(c->text, sizeof c->text, "%" PRId64, r->step);
}
static void steps_cell_time(const void *node, struct table_cell *c) {
    const struct steps_row *r = steps_of(node);
    steps_cell_ms(c, r->ms, r->cause >= 0);
}
static void steps_cell_slowness(const void *node, struct table_cell *c) {
    const struct steps_row *r = steps_of(node);
    c->role = r->cause >= 0 ? ROLE_CPU_HIGH : ROLE_MUTED;
    if (isnan(r->slowness))
        (void)snprintf(c->text, sizeof c->text, "\xe2\x80\x94");
    else
        (void)snprintf(c->text, sizeof c->text, "%.2fx%s", r->slowness, r->cause >= 0 ? "!" : " ");
}
static void steps_cell_why(const void *node, struct table_cell *c) {
    const struct steps_row *r = steps_of(node);
    c->role = ROLE_TEXT;
    (void)snprintf(c->text, sizeof c->text, "%s",
                   r->cause >= 0 ? steps_part_name((enum steps_part)r->cause) : "");
}
static void steps_cell_loss(const void *node, struct table_cell *c) {
    const struct steps_row *r = steps_of(node);
    steps_cell_number(c, r->loss, r->bad == 'l' || r->bad == 'b');
}
static void steps_cell_grad(const void *node, struct table_cell *c) {
    const struct steps_row *r = steps_of(node);
    steps_cell_number(c, r->grad_norm, r->bad == 'g' || r->bad == 'b');
}
static void steps_cell_lr(const void *node, struct table_cell *c) {
    steps_cell_number(c, steps_of(node)->lr, false);
}

static int steps_compare_numbers(double a, double b) {
    a = isnan(a) ? -INFINITY : a;
    b = isnan(b) ? -INFINITY : b;
    return (a > b) - (a < b);
}

static int steps_compare_time(const void *a, const void *b) {
    return steps_compare_numbers(steps_of(a)->at_s, steps_of(b)->at_s);
}
static int steps_compare_why(const void *a, const void *b) { return steps_of(a)->cause - steps_of(b)->cause; }

#define STEPS_COMPARE(name, field)                                                                           \
    static int steps_compare_##name(const void *a, const void *b) {                                          \
        return steps_compare_numbers(steps_of(a)->field, steps_of(b)->field);                                \
    }
STEPS_COMPARE(ms, ms)
STEPS_COMPARE(slowness, slowness)
STEPS_COMPARE(loss, loss)
STEPS_COMPARE(grad, grad_norm)
STEPS_COMPARE(lr, lr)

#define STEPS_PART(name, part)                                                                               \
    static void steps_cell_##name(const void *node, struct table_cell *c) {                                  \
        steps_cell_ms(c, steps_of(node)->parts[part], steps_of(node)->cause == (int)(part));                 \
    }                                                                                                        \
    STEPS_COMPARE(name, parts[part])
STEPS_PART(data, STEPS_DATA)
STEPS_PART(forward, STEPS_FORWARD)
STEPS_PART(backward, STEPS_BACKWARD)
STEPS_PART(optimizer, STEPS_OPTIMIZER)
STEPS_PART(comm, STEPS_COMM)
STEPS_PART(gc, STEPS_GC)
STEPS_PART(other, STEPS_OTHER)

/* clang-format off */
static const struct table_column steps_columns[] = {
    {"STEP", "its number, counted from the first that the agent saw", {6, 0, 0}, GRID_RIGHT, true, steps_cell_step, steps_compare_time},
    {"TIME", "from the end of the step before to its own", {8, 0, 0}, GRID_RIGHT, true, steps_cell_time, steps_compare_ms},
    {"X", "times the median; ! it is slow", {7, 0, 3}, GRID_RIGHT, true, steps_cell_slowness, steps_compare_slowness},
    {"DATA", "fetching batches", {8, 0, 1}, GRID_RIGHT, true, steps_cell_data, steps_compare_data},
    {"FORWARD", "of steps that were looked into", {8, 0, 4}, GRID_RIGHT, true, steps_cell_forward, steps_compare_forward},
    {"BACKWARD", "of steps that were looked into", {8, 0, 4}, GRID_RIGHT, true, steps_cell_backward, steps_compare_backward},
    {"OPTIM", "Optimizer.step and zero_grad", {8, 0, 4}, GRID_RIGHT, true, steps_cell_optimizer, steps_compare_optimizer},
    {"COMM", "while a collective went on", {8, 0, 5}, GRID_RIGHT, true, steps_cell_comm, steps_compare_comm},
    {"GC", "collecting garbage, within the others", {8, 0, 2}, GRID_RIGHT, true, steps_cell_gc, steps_compare_gc},
    {"OTHER", "the rest", {8, 0, 6}, GRID_RIGHT, true, steps_cell_other, steps_compare_other},
    {"LOSS", "where it is found", {8, 0, 2}, GRID_RIGHT, true, steps_cell_loss, steps_compare_loss},
    {"GRAD", "norm of the gradients", {8, 0, 5}, GRID_RIGHT, true, steps_cell_grad, steps_compare_grad},
    {"LR", "learning rate", {8, 0, 6}, GRID_RIGHT, true, steps_cell_lr, steps_compare_lr},
    {"WHY", "the part that most of what a slow one took more is of", {9, 1, 1}, GRID_LEFT, true, steps_cell_why, steps_compare_why},
};
/* clang-format on */

_Static_assert(sizeof steps_columns / sizeof steps_columns[0] <= TABLE_MAX_COLUMNS, "columns of steps");

static bool steps_matches(const void *row, const struct match *m) {
    const struct steps_row *r = row;
    char number[32];
    (void)snprintf(number, sizeof number, "%" PRId64, r->step);
    return match_text(m, number) ||
           (r->cause >= 0 &&
            (match_text(m, "slow") || match_text(m, steps_part_name((enum steps_part)r->cause)))) ||
           (r->bad && match_text(m, "nan"));
}

static void steps_put_name(const void *row, struct strbuf *out) {
    (void)strbuf_addf(out, "%" PRId64, ((const struct steps_row *)row)->step);
}

const struct outline_def steps_outline = {
    .columns = steps_columns,
    .n_columns = sizeof steps_columns / sizeof steps_columns[0],
    .matches = steps_matches,
    .put_name = steps_put_name,
};

void steps_table_take(struct steps_state *s) {
    struct outline_node *nodes = calloc(s->model.n + 1, sizeof *nodes);
    for (size_t i = 0; nodes && i < s->model.n; i++)
        nodes[i] = (struct outline_node){
            .row = &s->model.rows[i], .parent = -1, .key = (uint64_t)s->model.rows[i].step};
    outline_take(&s->table, nodes, s->model.n);
}

size_t steps_selected(const struct steps_state *s) {
    const struct outline_node *n = outline_selected(&s->table);
    return n ? (size_t)((const struct steps_row *)n->row - s->model.rows) : 0;
}
