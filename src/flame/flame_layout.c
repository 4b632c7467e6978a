/* SPDX-License-Identifier: Apache-2.0 */
/* flame_layout: see flame_layout.h. Row by row: the frames of one row give those of the next. */
#include "flame/flame_layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

/* A frame with its drawn width, and the start of its time, counted from the start of the zoomed
 * node. */
struct flame_span {
    uint32_t node;
    int64_t begin;
    int col, width;
};

struct flame_row {
    struct flame_span *spans;
    size_t n, cap;
};

struct flame_layer {
    struct flame_layout *layout;
    struct flame *flame;
    int64_t whole; /* weight of the zoomed node */
    struct flame_row now, next;
};

void flame_layout_fini(struct flame_layout *l) {
    free(l->cells);
    memset(l, 0, sizeof *l);
}

/* The column of a position in the zoomed node's time: the nearest border between two columns. */
static int flame_layout_col(const struct flame_layer *y, int64_t place) {
    __int128 cols = y->layout->view.cols;
    return (int)((2 * cols * place + y->whole) / (2 * (__int128)y->whole));
}

static bool flame_layout_small(const struct flame_view *v, int64_t whole, int64_t amount) {
    return (__int128)amount * v->cols < whole || (__int128)amount * 1000 < (__int128)whole * v->permille;
}

bool flame_layout_is_small(const struct flame *f, const struct flame_view *view, uint32_t node) {
    return flame_layout_small(view, flame_amount(f, flame_node(f, view->zoom)->total),
                              flame_amount(f, flame_node(f, node)->total));
}

/* Add a cell at depth `depth`, if that is in view. */
static int flame_layout_put(struct flame_layout *l, int depth, struct flame_cell cell) {
    cell.row = depth - l->view.top;
    if (cell.row >= l->view.rows)
        l->has_more = true;
    if (cell.row < 0 || cell.row >= l->view.rows)
        return 0;
    if (grow_array(&l->cells, sizeof *l->cells, l->n + 1, &l->cap) != 0)
        return -1;
    l->cells[l->n++] = cell;
    return 0;
}

static int flame_layout_put_span(struct flame_layer *y, int depth, struct flame_span span) {
    if (grow_array(&y->next.spans, sizeof *y->next.spans, y->next.n + 1, &y->next.cap) != 0)
        return -1;
    y->next.spans[y->next.n++] = span;
    const struct flame_node *n = flame_node(y->flame, span.node);
    return flame_layout_put(y->layout, depth,
                            (struct flame_cell){.node = span.node,
                                                .parent = n->parent,
                                                .n = 1,
                                                .col = span.col,
                                                .width = span.width,
                                                .weight = n->total});
}

/* Lay out the callees of a frame: the visible ones, then one cell for the others. That cell gets
 * at least one column if the frame has one left. */
static int flame_layout_callees(struct flame_layer *y, const struct flame_span *span, int depth) {
    const struct flame_view *v = &y->layout->view;
    struct flame_cell small = {.node = FLAME_NO_NODE, .parent = span->node, .n = 0};
    int64_t at = span->begin, small_amount = 0;
    uint32_t c = flame_first_child(y->flame, span->node);
    for (; c != FLAME_NO_NODE; c = flame_node(y->flame, c)->next) {
        struct flame_weight w = flame_node(y->flame, c)->total;
        int64_t amount = flame_amount(y->flame, w);
        if (amount <= 0)
            continue;
        if (flame_layout_small(v, y->whole, amount)) {
            small.n++;
            small.weight.ns += w.ns;
            small.weight.samples += w.samples;
            small_amount += amount;
            continue;
        }
        int col = flame_layout_col(y, at), end = flame_layout_col(y, at + amount);
        if (flame_layout_put_span(y, depth, (struct flame_span){c, at, col, end - col}) != 0)
            return -1;
        at += amount;
    }
    if (!small.n)
        return 0;
    int end = flame_layout_col(y, at + small_amount);
    small.col = flame_layout_col(y, at);
    if (end == small.col && end < span->col + span->width)
        end++;
    small.width = end - small.col;
    return small.width ? flame_layout_put(y->layout, depth, small) : 0;
}

/* Lay out the zoomed node and its callers, each as wide as the view. */
static int flame_layout_callers(struct flame_layer *y) {
    const struct flame_view *v = &y->layout->view;
    uint32_t zoomed = flame_node(y->flame, v->zoom)->depth;
    for (uint32_t depth = 0; depth <= zoomed; depth++) {
        uint32_t node = v->zoom;
        if ((int)depth < v->top && depth < zoomed)
            continue;
        if ((int)depth >= v->top + v->rows) { /* the zoomed node is below the view */
            y->layout->has_more = true;
            return 0;
        }
        while (flame_node(y->flame, node)->depth > depth)
            node = flame_node(y->flame, node)->parent;
        y->next.n = 0;
        if (flame_layout_put_span(y, (int)depth, (struct flame_span){node, 0, 0, v->cols}) != 0)
            return -1;
    }
    return 0;
}

static int flame_layout_rows(struct flame_layer *y) {
    struct flame_layout *l = y->layout;
    uint32_t depth = flame_node(y->flame, l->view.zoom)->depth;
    if (flame_layout_callers(y) != 0)
        return -1;
    while (y->next.n && y->whole > 0 && !l->has_more) {
        struct flame_row before = y->now;
        y->now = y->next;
        y->next = before;
        y->next.n = 0;
        depth++;
        for (size_t i = 0; i < y->now.n; i++)
            if (flame_layout_callees(y, &y->now.spans[i], (int)depth) != 0)
                return -1;
    }
    return 0;
}

int flame_layout_build(struct flame_layout *l, struct flame *f, const struct flame_view *view) {
    struct flame_layer y = {.layout = l, .flame = f};
    l->n = 0;
    l->has_more = false;
    l->view = *view;
    if (view->zoom >= flame_count(f) || view->cols < 1 || view->cols > FLAME_MAX_COLS)
        return 0;
    y.whole = flame_amount(f, flame_node(f, view->zoom)->total);
    int rc = flame_layout_rows(&y);
    free(y.now.spans);
    free(y.next.spans);
    if (rc != 0)
        flame_layout_fini(l);
    return rc;
}

const struct flame_cell *flame_layout_find(const struct flame_layout *l, const struct flame *f,
                                           uint32_t node) {
    for (size_t i = 0; i < l->n; i++) {
        const struct flame_cell *c = &l->cells[i];
        if (c->node == node)
            return c;
        if (c->node != FLAME_NO_NODE || c->parent == node || !flame_is_above(f, c->parent, node))
            continue;
        uint32_t branch = node;
        while (flame_node(f, branch)->parent != c->parent)
            branch = flame_node(f, branch)->parent;
        if (flame_amount(f, flame_node(f, branch)->total) > 0 && flame_layout_is_small(f, &l->view, branch))
            return c;
    }
    return NULL;
}

const struct flame_cell *flame_layout_at(const struct flame_layout *l, int row, int col) {
    for (size_t i = 0; i < l->n; i++) {
        const struct flame_cell *c = &l->cells[i];
        if (c->row == row && col >= c->col && col < c->col + c->width)
            return c;
    }
    return NULL;
}
