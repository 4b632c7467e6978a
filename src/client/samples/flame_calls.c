/* SPDX-License-Identifier: Apache-2.0 */
/* flame_calls: see flame_calls.h. */
#include "client/samples/flame_calls.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define CALLS_MAX_WALK 2048 /* callers looked at for a call that recurs */

void flame_calls_fini(struct flame_calls *c) {
    free(c->callers);
    free(c->callees);
    free(c->lines);
    memset(c, 0, sizeof *c);
}

static void calls_add(struct flame_weight *to, struct flame_weight w) {
    to->ns += w.ns;
    to->samples += w.samples;
}

static int calls_compare_amount(const struct flame *f, struct flame_weight a, struct flame_weight b) {
    int64_t x = flame_amount(f, a), y = flame_amount(f, b);
    return (x < y) - (x > y);
}

static int calls_compare(const void *a, const void *b, void *f) {
    const struct flame_call *x = a, *y = b;
    int order = calls_compare_amount(f, x->weight, y->weight);
    return order ? order : (x->node > y->node) - (x->node < y->node);
}

static int calls_compare_line(const void *a, const void *b, void *f) {
    const struct flame_line *x = a, *y = b;
    int order = calls_compare_amount(f, x->weight, y->weight);
    return order ? order : (x->line > y->line) - (x->line < y->line);
}

static bool calls_has_frame(uint32_t node) { return node != FLAME_ROOT && node != FLAME_FRAMELESS; }

/* Is there a node of `frame` above `node`; with a caller: one that this caller calls? */
static bool calls_recurs(const struct flame *f, uint32_t node, uint32_t frame, uint32_t caller) {
    uint32_t at = flame_node(f, node)->parent;
    for (int i = 0; at != FLAME_NO_NODE && calls_has_frame(at) && i < CALLS_MAX_WALK; i++) {
        const struct flame_node *n = flame_node(f, at);
        bool is_pair = caller == FLAME_NO_NODE ||
                       (calls_has_frame(n->parent) && flame_node(f, n->parent)->frame == caller);
        if (n->frame == frame && is_pair)
            return true;
        at = n->parent;
    }
    return false;
}

/* What is known of frames, by their numbers: one of them is a call's index + 1. */
struct calls_index {
    uint32_t *caller, *callee;
    size_t cap_callers, cap_callees;
};

static int calls_put(struct flame_call **list, size_t *n, size_t *cap, uint32_t *slot,
                     struct flame_call call) {
    if (!*slot) {
        if (grow_array(list, sizeof **list, *n + 1, cap) != 0)
            return -1;
        (*list)[*n] = call;
        *slot = (uint32_t)++ * n;
        return 0;
    }
    calls_add(&(*list)[*slot - 1].weight, call.weight);
    return 0;
}

/* A node of the frame itself: who calls it. */
static int calls_take_own(struct flame_calls *c, const struct flame *f, uint32_t at, struct calls_index *x) {
    const struct flame_node *n = flame_node(f, at);
    uint32_t parent = n->parent;
    bool has_caller = calls_has_frame(parent);
    calls_add(&c->self, n->self);
    if (!calls_recurs(f, at, n->frame, FLAME_NO_NODE))
        calls_add(&c->total, n->total);
    if (has_caller && calls_recurs(f, at, n->frame, flame_node(f, parent)->frame))
        return 0;
    struct flame_call call = {has_caller ? flame_frame(f, parent) : NULL, parent, n->total};
    return calls_put(&c->callers, &c->n_callers, &x->cap_callers,
                     &x->caller[has_caller ? flame_node(f, parent)->frame + 1 : 0], call);
}

/* A node that the frame calls. */
static int calls_take_callee(struct flame_calls *c, const struct flame *f, uint32_t at, uint32_t frame,
                             struct calls_index *x) {
    const struct flame_node *n = flame_node(f, at);
    if (calls_recurs(f, at, n->frame, frame))
        return 0;
    return calls_put(&c->callees, &c->n_callees, &x->cap_callees, &x->callee[n->frame],
                     (struct flame_call){flame_frame(f, at), at, n->total});
}

static int calls_walk(struct flame_calls *c, const struct flame *f, uint32_t frame, struct calls_index *x) {
    for (uint32_t at = FLAME_FRAMELESS + 1; at < flame_count(f); at++) {
        const struct flame_node *n = flame_node(f, at);
        if (flame_amount(f, n->total) <= 0)
            continue;
        if (n->frame == frame && calls_take_own(c, f, at, x) != 0)
            return -1;
        if (calls_has_frame(n->parent) && flame_node(f, n->parent)->frame == frame &&
            calls_take_callee(c, f, at, frame, x) != 0)
            return -1;
    }
    return 0;
}

/* The callees of the root, of which nobody is the caller. */
static int calls_of_root(struct flame_calls *c, const struct flame *f) {
    size_t cap = 0;
    c->self = flame_node(f, FLAME_ROOT)->self;
    c->total = flame_node(f, FLAME_ROOT)->total;
    for (uint32_t at = flame_node(f, FLAME_ROOT)->child; at != FLAME_NO_NODE; at = flame_node(f, at)->next) {
        uint32_t slot = 0;
        const struct flame_node *n = flame_node(f, at);
        if (flame_amount(f, n->total) > 0 &&
            calls_put(&c->callees, &c->n_callees, &cap, &slot,
                      (struct flame_call){flame_frame(f, at), at, n->total}) != 0)
            return -1;
    }
    return 0;
}

static int calls_of_frame(struct flame_calls *c, const struct flame *f, uint32_t frame) {
    size_t n = flame_count_frames(f) + 1;
    struct calls_index x = {.caller = calloc(n, sizeof *x.caller), .callee = calloc(n, sizeof *x.callee)};
    int rc = x.caller && x.callee && calls_walk(c, f, frame, &x) == 0 ? 0 : -1;
    free(x.caller);
    free(x.callee);
    return rc == 0 ? flame_lines(f, frame, &c->lines, &c->n_lines) : -1;
}

int flame_calls_build(struct flame_calls *c, const struct flame *f, uint32_t node) {
    void *arg = (void *)(uintptr_t)f;
    flame_calls_fini(c);
    if (node == FLAME_FRAMELESS) {
        c->self = flame_node(f, node)->self;
        c->total = flame_node(f, node)->total;
        return 0;
    }
    if ((node == FLAME_ROOT ? calls_of_root(c, f) : calls_of_frame(c, f, flame_node(f, node)->frame)) != 0) {
        flame_calls_fini(c);
        return -1;
    }
    if (c->n_callers)
        qsort_r(c->callers, c->n_callers, sizeof *c->callers, calls_compare, arg);
    if (c->n_callees)
        qsort_r(c->callees, c->n_callees, sizeof *c->callees, calls_compare, arg);
    if (c->n_lines)
        qsort_r(c->lines, c->n_lines, sizeof *c->lines, calls_compare_line, arg);
    return 0;
}
