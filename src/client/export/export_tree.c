/* SPDX-License-Identifier: Apache-2.0 */
/* export_tree: see export_tree.h. */
#include "client/export/export_tree.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/hash.h"
#include "client/export/export_formats.h"
#include "flame/stack_counts.h"

#define EXPORT_TREE_BYTES ((size_t)64 * 1024 * 1024)
#define EXPORT_TREE_STEPS ((size_t)1 << 24) /* some seconds; 8,000 stacks of 2,000 frames */
#define EXPORT_TREE_FRAMES 2048             /* of one stack, the outermost; more share one that says so */

static uint32_t *export_tree_slot(const struct export_tree *t, uint32_t parent, const char *name) {
    uint64_t h = hash_mix(hash_bytes(name, strlen(name)) + parent);
    for (uint64_t i = h;; i++) {
        uint32_t *slot = &t->slots[i & (t->n_slots - 1)];
        if (!*slot || (t->nodes[*slot - 1].parent == parent && strcmp(t->nodes[*slot - 1].name, name) == 0))
            return slot;
    }
}

static int export_tree_grow(struct export_tree *t) {
    if (grow_array(&t->nodes, sizeof *t->nodes, t->n + 1, &t->cap) != 0)
        return -1;
    if (2 * (t->n + 1) <= t->n_slots)
        return 0;
    size_t n_slots = t->n_slots ? 2 * t->n_slots : 512;
    uint32_t *slots = calloc(n_slots, sizeof *slots);
    if (!slots)
        return -1;
    free(t->slots);
    t->slots = slots;
    t->n_slots = n_slots;
    for (uint32_t i = 0; i < t->n; i++)
        *export_tree_slot(t, t->nodes[i].parent, t->nodes[i].name) = i + 1;
    return 0;
}

/* The callee of that name, made when it is new; EXPORT_TREE_NONE without memory. */
static uint32_t export_tree_child(struct export_tree *t, uint32_t parent, const char *name,
                                  const struct model_frame *frame) {
    if (export_tree_grow(t) != 0)
        return EXPORT_TREE_NONE;
    uint32_t *slot = export_tree_slot(t, parent, name);
    if (*slot)
        return *slot - 1;
    size_t more = sizeof *t->nodes + strlen(name) + 16;
    char *copy = more <= EXPORT_TREE_BYTES - t->bytes ? strdup(name) : NULL;
    if (!copy)
        return EXPORT_TREE_NONE;
    t->bytes += more;
    uint32_t at = (uint32_t)t->n++;
    t->nodes[at] = (struct export_node){
        .parent = parent, .child = EXPORT_TREE_NONE, .next = EXPORT_TREE_NONE, .frame = frame, .name = copy};
    if (parent != EXPORT_TREE_NONE)
        t->nodes[at].depth = t->nodes[parent].depth + 1;
    *slot = at + 1;
    return at;
}

/* ---- of the fold ---- */

/* Down from `at` by the frames of an entry; the node it ends in, or EXPORT_TREE_NONE without memory. */
static uint32_t export_tree_walk(struct export_tree *t, const struct export_data *d,
                                 const struct stack_counts_entry *entry, struct strbuf *name) {
    const struct model_frame *frames[EXPORT_TREE_FRAMES];
    size_t depth = stack_counts_path(d->fold, entry->stack, frames, EXPORT_TREE_FRAMES);
    size_t have = depth < EXPORT_TREE_FRAMES ? depth : EXPORT_TREE_FRAMES;
    uint32_t at = EXPORT_TREE_ROOT;
    t->steps += have;
    if (t->steps > EXPORT_TREE_STEPS)
        return EXPORT_TREE_NONE;
    for (int kind = 0; kind < 2 && at != EXPORT_TREE_NONE; kind++) {
        if (kind == 0 ? !d->request->process : !d->request->threads)
            continue;
        strbuf_clear(name);
        if (kind == 0)
            export_put_process(name, d);
        else
            export_put_thread(name, d, entry->tid);
        at = export_tree_child(t, at, strbuf_str(name), NULL);
    }
    for (size_t i = 0; i < have && at != EXPORT_TREE_NONE; i++) {
        strbuf_clear(name);
        export_put_frame(name, frames[i], d->request->by_function);
        at = export_tree_child(t, at, strbuf_str(name), frames[i]);
    }
    if (depth > have && at != EXPORT_TREE_NONE)
        at = export_tree_child(t, at, "...", NULL);
    return name->failed ? EXPORT_TREE_NONE : at;
}

static int export_tree_take(struct export_tree *t, const struct export_data *d) {
    struct strbuf name;
    strbuf_init(&name, 0);
    int rc = export_tree_child(t, EXPORT_TREE_NONE, "all", NULL) == EXPORT_TREE_ROOT ? 0 : -1;
    for (size_t i = 0; i < stack_counts_count(d->fold) && rc == 0; i++) {
        const struct stack_counts_entry *entry = stack_counts_get(d->fold, i);
        double weight = t->in_us ? entry->us : (double)entry->samples;
        if (entry->stack == STACK_COUNTS_NO_STACK && !d->request->threads) {
            t->frameless += weight; /* as in the folded export: only a thread's own frame can stand for it */
            continue;
        }
        uint32_t at = export_tree_walk(t, d, entry, &name);
        if (at == EXPORT_TREE_NONE)
            rc = -1;
        else
            t->nodes[at].self += weight;
    }
    strbuf_fini(&name);
    return rc;
}

static int export_tree_compare_tid(const void *a, const void *b) {
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static int export_tree_count_threads(struct export_tree *t, const struct stack_counts *f) {
    size_t n = stack_counts_count(f);
    int64_t *tids = calloc(n + 1, sizeof *tids);
    if (!tids)
        return -1;
    for (size_t i = 0; i < n; i++)
        tids[i] = stack_counts_get(f, i)->tid;
    qsort(tids, n, sizeof *tids, export_tree_compare_tid);
    for (size_t i = 0; i < n; i++)
        t->threads += i == 0 || tids[i] != tids[i - 1];
    free(tids);
    return 0;
}

/* ---- sums and order ---- */

struct export_tree_key {
    const char *name;
    uint32_t parent, node;
};

static int export_tree_compare(const void *a, const void *b) {
    const struct export_tree_key *x = a, *y = b;
    if (x->parent != y->parent)
        return x->parent < y->parent ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Callers come before their callees, so one pass from the end adds up. */
static int export_tree_link(struct export_tree *t) {
    struct export_tree_key *keys = calloc(t->n, sizeof *keys);
    if (!keys)
        return -1;
    for (uint32_t i = (uint32_t)t->n; i-- > 0;) {
        struct export_node *n = &t->nodes[i];
        keys[i] = (struct export_tree_key){n->name, n->parent, i};
        n->total += n->self;
        if (i != EXPORT_TREE_ROOT)
            t->nodes[n->parent].total += n->total;
    }
    qsort(keys, t->n, sizeof *keys, export_tree_compare);
    for (size_t i = t->n; i-- > 0;) {
        if (keys[i].node == EXPORT_TREE_ROOT)
            continue;
        t->nodes[keys[i].node].next = t->nodes[keys[i].parent].child;
        t->nodes[keys[i].parent].child = keys[i].node;
    }
    free(keys);
    return 0;
}

int export_tree_build(struct export_tree *t, const struct export_data *data) {
    *t = (struct export_tree){0};
    bool has_us = false;
    for (size_t i = 0; i < stack_counts_count(data->fold) && !has_us; i++)
        has_us = stack_counts_get(data->fold, i)->us > 0;
    t->in_us = data->request->unit != EXPORT_SAMPLES && has_us;
    if (export_tree_take(t, data) != 0 || export_tree_count_threads(t, data->fold) != 0)
        return -1;
    return export_tree_link(t);
}

uint32_t export_tree_next(const struct export_tree *t, uint32_t node, bool skip_callees) {
    if (!skip_callees && t->nodes[node].child != EXPORT_TREE_NONE)
        return t->nodes[node].child;
    while (node != EXPORT_TREE_NONE && t->nodes[node].next == EXPORT_TREE_NONE)
        node = t->nodes[node].parent;
    return node == EXPORT_TREE_NONE ? node : t->nodes[node].next;
}

void export_tree_fini(struct export_tree *t) {
    for (size_t i = 0; i < t->n; i++)
        free(t->nodes[i].name);
    free(t->nodes);
    free(t->slots);
    *t = (struct export_tree){0};
}
