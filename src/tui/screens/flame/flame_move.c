/* SPDX-License-Identifier: Apache-2.0 */
/* flame_move: where one is in the tree of the Flame screen, and how one gets on; see flame_state.h. Pure. */
#include "tui/screens/flame/flame_state.h"

#include <limits.h>

#define FLAME_CALLERS_SHOWN 3 /* above what is zoomed, where there is no room for all */

static int64_t flame_amount_of(const struct flame_state *s, uint32_t node) {
    return flame_amount(s->flame, flame_node(s->flame, node)->total);
}

static void flame_view_of(const struct flame_state *s, struct flame_view *v) {
    *v = s->layout.view;
    v->zoom = s->zoom;
    v->permille = (int)(flame_threshold_pct(s) * 10 + 0.5);
    v->cols = s->area.cols > 0 ? s->area.cols : 1;
}

void flame_select(struct flame_state *s, uint32_t node) {
    s->selected = node;
    if (!flame_is_there(s) || !flame_is_above(s->flame, node, s->trail))
        s->trail = node;
    int depth = flame_is_there(s) ? (int)flame_node(s->flame, node)->depth : 0, rows = s->area.rows;
    if (depth < s->top)
        s->top = depth;
    else if (rows > 0 && depth >= s->top + rows)
        s->top = depth - rows + 1;
}

void flame_zoom_to(struct flame_state *s, uint32_t node) {
    int depth = (int)flame_node(s->flame, node)->depth;
    s->zoom = node;
    s->top = depth > FLAME_CALLERS_SHOWN ? depth - FLAME_CALLERS_SHOWN : 0;
    flame_find_hits(s);
    flame_select(s, s->selected);
}

bool flame_zoom_out(struct flame_state *s) {
    if (!flame_is_there(s) || s->zoom == FLAME_ROOT)
        return false;
    uint32_t to = flame_node(s->flame, s->zoom)->parent;
    while (to != FLAME_ROOT && flame_amount_of(s, to) == flame_amount_of(s, s->zoom))
        to = flame_node(s->flame, to)->parent;
    flame_zoom_to(s, to);
    return true;
}

/* The callee to go down to: the one that one came from, that leads to what is zoomed, else the one with the most. */
static uint32_t flame_callee(struct flame_state *s, uint32_t node) {
    uint32_t to = s->trail != node && flame_is_above(s->flame, node, s->trail) ? s->trail
                  : s->zoom != node && flame_is_above(s->flame, node, s->zoom) ? s->zoom
                                                                               : FLAME_NO_NODE;
    if (to != FLAME_NO_NODE) {
        while (flame_node(s->flame, to)->parent != node)
            to = flame_node(s->flame, to)->parent;
        return to;
    }
    int64_t most = 0;
    for (uint32_t c = flame_first_child(s->flame, node); c != FLAME_NO_NODE;
         c = flame_node(s->flame, c)->next)
        if (flame_amount_of(s, c) > most) {
            most = flame_amount_of(s, c);
            to = c;
        }
    return to;
}

/* Siblings in the order of their cells: those that can be seen, then the small ones. What stands before (step -1) or after
 * (1) a node; FLAME_NO_NODE nothing. */
static uint32_t flame_sibling(struct flame_state *s, uint32_t node, int step) {
    struct flame_view view;
    uint32_t parent = flame_node(s->flame, node)->parent, before = FLAME_NO_NODE;
    bool is_next = false;
    flame_view_of(s, &view);
    if (parent == FLAME_NO_NODE || flame_is_above(s->flame, node, s->zoom))
        return FLAME_NO_NODE;
    for (int small = 0; small < 2; small++)
        for (uint32_t c = flame_first_child(s->flame, parent); c != FLAME_NO_NODE;
             c = flame_node(s->flame, c)->next) {
            bool is_small = flame_layout_is_small(s->flame, &view, c);
            if (is_small != (small == 1) || (c != node && flame_amount_of(s, c) <= 0))
                continue;
            if (is_next)
                return c;
            if (c == node && step < 0)
                return before;
            is_next = c == node;
            before = c;
        }
    return FLAME_NO_NODE;
}

/* The next frame in the same row as what is selected, of another caller; FLAME_NO_NODE there is none. */
static uint32_t flame_neighbour(const struct flame_state *s, int step) {
    const struct flame_cell *at = flame_layout_find(&s->layout, s->flame, s->selected), *best = NULL;
    for (size_t i = 0; at && i < s->layout.n; i++) {
        const struct flame_cell *c = &s->layout.cells[i];
        bool is_there = step > 0 ? c->col > at->col : c->col < at->col;
        if (c->row != at->row || c->node == FLAME_NO_NODE || !is_there)
            continue;
        if (!best || (step > 0 ? c->col < best->col : c->col > best->col))
            best = c;
    }
    return best ? best->node : FLAME_NO_NODE;
}

/* Up to `n` steps to callers (negative) or callees. */
static void flame_step_depth(struct flame_state *s, int n) {
    uint32_t at = s->selected;
    for (; n < 0 && flame_node(s->flame, at)->parent != FLAME_NO_NODE; n++)
        at = flame_node(s->flame, at)->parent;
    for (; n > 0; n--) {
        uint32_t to = flame_callee(s, at);
        if (to == FLAME_NO_NODE)
            break;
        at = to;
    }
    flame_select(s, at);
}

static void flame_step_side(struct flame_state *s, int step) {
    uint32_t to = flame_sibling(s, s->selected, step);
    if (to == FLAME_NO_NODE)
        to = flame_neighbour(s, step);
    if (to != FLAME_NO_NODE)
        flame_select(s, to);
}

bool flame_move(struct flame_state *s, enum action action) {
    int down = s->flipped ? -1 : 1, page = s->area.rows > 1 ? s->area.rows - 1 : 1, n = 0;
    switch ((int)action) {
    case ACTION_UP:
        n = -down;
        break;
    case ACTION_DOWN:
        n = down;
        break;
    case ACTION_HALF_UP:
    case ACTION_HALF_DOWN:
        n = (action == ACTION_HALF_UP ? -down : down) * (page / 2 + 1);
        break;
    case ACTION_PAGE_UP:
    case ACTION_PAGE_DOWN:
        n = (action == ACTION_PAGE_UP ? -down : down) * page;
        break;
    case ACTION_FIRST:
        n = -INT_MAX;
        break;
    case ACTION_LAST:
        n = INT_MAX;
        break;
    case ACTION_LEFT:
    case ACTION_RIGHT:
        break;
    default:
        return false;
    }
    if (flame_is_there(s) && n)
        flame_step_depth(s, n);
    else if (flame_is_there(s))
        flame_step_side(s, action == ACTION_LEFT ? -1 : 1);
    return true;
}

/* Of the callees that share a cell, the one with the most. */
static uint32_t flame_largest_small(struct flame_state *s, uint32_t parent) {
    uint32_t found = FLAME_NO_NODE;
    for (uint32_t c = flame_first_child(s->flame, parent); c != FLAME_NO_NODE;
         c = flame_node(s->flame, c)->next)
        if (flame_layout_is_small(s->flame, &s->layout.view, c) && flame_amount_of(s, c) > 0 &&
            (found == FLAME_NO_NODE || flame_amount_of(s, c) > flame_amount_of(s, found)))
            found = c;
    return found;
}

bool flame_mouse(void *state, struct app *app, const struct input_event *e) {
    struct flame_state *s = state;
    int row = e->row - s->area.row;
    if (!flame_is_there(s) || row < 0 || row >= s->area.rows)
        return false;
    if (e->button == INPUT_WHEEL_UP || e->button == INPUT_WHEEL_DOWN)
        return flame_move(s, e->button == INPUT_WHEEL_UP ? ACTION_UP : ACTION_DOWN);
    if (s->flipped)
        row = s->area.rows - 1 - row;
    const struct flame_cell *cell = flame_layout_at(&s->layout, row, e->col - s->area.col);
    uint32_t node = !cell                         ? FLAME_NO_NODE
                    : cell->node == FLAME_NO_NODE ? flame_largest_small(s, cell->parent)
                                                  : cell->node;
    if (node == FLAME_NO_NODE)
        return false;
    if (node == s->selected && e->button == INPUT_CLICK)
        flame_zoom_to(s, node);
    else
        flame_select(s, node);
    flame_follow_details(s, app);
    return true;
}
