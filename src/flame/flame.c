/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame: see flame.h. Weights are whole nanoseconds, so subtracting an added weight leaves
 * exactly nothing.
 */
#include "flame/flame.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/hash.h"
#include "base/text.h"

struct flame {
    const struct stack_counts *counts;
    flame_name_fn name;
    const void *name_arg;
    uint64_t identity;
    struct flame_node *nodes;
    size_t n_nodes, cap_nodes;
    /* open addressing: node by its parent and key; 0 free (the root is never searched for) */
    uint32_t *slots;
    size_t n_slots;
};

struct flame *flame_new(void) {
    return calloc(1, sizeof(struct flame));
}

void flame_clear(struct flame *f) {
    free(f->nodes);
    free(f->slots);
    *f = (struct flame){.identity = f->identity + 1};
}

void flame_free(struct flame *f) {
    if (!f)
        return;
    flame_clear(f);
    free(f);
}

/* ---- nodes ---- */

static uint32_t *flame_slot(const struct flame *f, uint32_t parent, uint32_t key) {
    for (uint64_t i = hash_mix((uint64_t)parent << 32 | key);; i++) {
        uint32_t *slot = &f->slots[i & (f->n_slots - 1)];
        if (!*slot || (f->nodes[*slot].parent == parent && f->nodes[*slot].key == key))
            return slot;
    }
}

static int flame_grow_slots(struct flame *f) {
    size_t n_slots = f->n_slots ? 2 * f->n_slots : 512;
    if (2 * (f->n_nodes + 1) <= f->n_slots)
        return 0;
    uint32_t *slots = calloc(n_slots, sizeof *slots);
    if (!slots)
        return -1;
    free(f->slots);
    f->slots = slots;
    f->n_slots = n_slots;
    for (uint32_t i = 1; i < f->n_nodes; i++)
        *flame_slot(f, f->nodes[i].parent, f->nodes[i].key) = i;
    return 0;
}

int flame_begin(struct flame *f, const struct stack_counts *counts, flame_name_fn name, const void *arg) {
    flame_clear(f);
    if (grow_array(&f->nodes, sizeof *f->nodes, 1, &f->cap_nodes) != 0)
        return -1;
    f->counts = counts;
    f->name = name;
    f->name_arg = arg;
    f->nodes[f->n_nodes++] = (struct flame_node){.parent = FLAME_NO_NODE,
                                                 .child = FLAME_NO_NODE,
                                                 .next = FLAME_NO_NODE,
                                                 .frame = FLAME_NO_FRAME,
                                                 .stack = STACK_COUNTS_NO_STACK,
                                                 .is_sorted = true};
    return 0;
}

uint32_t flame_put_node(struct flame *f, uint32_t parent, uint32_t key, uint32_t frame, uint32_t stack) {
    if (f->n_nodes >= FLAME_MAX_NODES || flame_grow_slots(f) != 0 ||
        grow_array(&f->nodes, sizeof *f->nodes, f->n_nodes + 1, &f->cap_nodes) != 0)
        return FLAME_NO_NODE;
    uint32_t *slot = flame_slot(f, parent, key);
    if (*slot)
        return *slot;
    uint32_t at = (uint32_t)f->n_nodes++;
    struct flame_node *above = &f->nodes[parent];
    f->nodes[at] = (struct flame_node){.parent = parent,
                                       .child = FLAME_NO_NODE,
                                       .next = above->child,
                                       .key = key,
                                       .frame = frame,
                                       .stack = stack,
                                       .depth = above->depth + 1,
                                       .is_sorted = true};
    above->is_sorted = above->child == FLAME_NO_NODE;
    above->child = at;
    return *slot = at;
}

/* ---- weights ---- */

static void flame_weight_add(struct flame_weight *to, struct flame_weight w) {
    to->ns += w.ns;
    to->samples += w.samples;
}

void flame_add(struct flame *f, uint32_t node, struct flame_weight more, bool up) {
    flame_weight_add(&f->nodes[node].self, more);
    for (; up && node != FLAME_NO_NODE; node = f->nodes[node].parent)
        flame_weight_add(&f->nodes[node].total, more);
}

void flame_clear_weights(struct flame *f) {
    for (size_t i = 0; i < f->n_nodes; i++)
        f->nodes[i].self = f->nodes[i].total = (struct flame_weight){0, 0};
}

/* Callers have smaller numbers: one pass from the last to the first. */
void flame_sum(struct flame *f) {
    for (size_t i = f->n_nodes; i-- > 0;) {
        struct flame_node *n = &f->nodes[i];
        flame_weight_add(&n->total, n->self);
        if (n->parent != FLAME_NO_NODE)
            flame_weight_add(&f->nodes[n->parent].total, n->total);
    }
}

/* ---- reading ---- */

uint64_t flame_identity(const struct flame *f) { return f->identity; }

size_t flame_count(const struct flame *f) { return f->n_nodes; }

const struct flame_node *flame_node(const struct flame *f, uint32_t node) { return &f->nodes[node]; }

const struct model_frame *flame_frame(const struct flame *f, uint32_t node) {
    uint32_t frame = f->nodes[node].frame;
    return frame == FLAME_NO_FRAME ? NULL : stack_counts_frame(f->counts, frame);
}

int64_t flame_amount(const struct flame *f, struct flame_weight w) {
    return f->n_nodes && f->nodes[FLAME_ROOT].total.ns > 0 ? w.ns : w.samples;
}

bool flame_is_above(const struct flame *f, uint32_t above, uint32_t node) {
    while (node != FLAME_NO_NODE && f->nodes[node].depth > f->nodes[above].depth)
        node = f->nodes[node].parent;
    return node == above;
}

/* ---- order ---- */

/* A child with its name, which is read once. */
struct flame_child {
    struct flame_name name;
    uint32_t node;
};

static int flame_compare_names(const struct flame_name *x, const struct flame_name *y) {
    int order = text_compare(x->first, y->first);
    if (!order)
        order = text_compare(x->second, y->second);
    return order ? order : (x->line > y->line) - (x->line < y->line);
}

static int flame_compare_children(const void *a, const void *b) {
    const struct flame_child *x = a, *y = b;
    int order = flame_compare_names(&x->name, &y->name);
    return order ? order : (x->node > y->node) - (x->node < y->node);
}

int flame_compare_nodes(const struct flame *f, uint32_t node, const struct flame *g, uint32_t other) {
    struct flame_name x = f->name(f->name_arg, f, node), y = g->name(g->name_arg, g, other);
    return flame_compare_names(&x, &y);
}

static void flame_sort_children(struct flame *f, uint32_t node) {
    size_t n = 0;
    for (uint32_t c = f->nodes[node].child; c != FLAME_NO_NODE; c = f->nodes[c].next)
        n++;
    struct flame_child *children = calloc(n + 1, sizeof *children);
    if (!children)
        return;
    n = 0;
    for (uint32_t c = f->nodes[node].child; c != FLAME_NO_NODE; c = f->nodes[c].next)
        children[n++] = (struct flame_child){f->name(f->name_arg, f, c), c};
    qsort(children, n, sizeof *children, flame_compare_children);
    for (size_t i = 0; i < n; i++)
        f->nodes[children[i].node].next = i + 1 < n ? children[i + 1].node : FLAME_NO_NODE;
    f->nodes[node].child = n ? children[0].node : FLAME_NO_NODE;
    f->nodes[node].is_sorted = true;
    free(children);
}

uint32_t flame_first_child(struct flame *f, uint32_t node) {
    if (!f->nodes[node].is_sorted)
        flame_sort_children(f, node);
    return f->nodes[node].child;
}

uint32_t flame_walk(struct flame *f, uint32_t top, uint32_t node, bool skip_callees) {
    uint32_t child = skip_callees ? FLAME_NO_NODE : flame_first_child(f, node);
    if (child != FLAME_NO_NODE)
        return child;
    for (; node != top && node != FLAME_NO_NODE; node = f->nodes[node].parent)
        if (f->nodes[node].next != FLAME_NO_NODE)
            return f->nodes[node].next;
    return FLAME_NO_NODE;
}
