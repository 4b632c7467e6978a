/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame: see flame.h. Weights are whole nanoseconds: what an entry had is taken off as it was put on, so nothing is left of
 * what has gone. Nodes are numbered callers first, so one pass from the last to the first adds up what is below each.
 */
#include "client/samples/flame.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/hash.h"
#include "base/text.h"

#define FLAME_NO_FRAME UINT32_MAX

/* What an entry of the tally has put into the tree. */
struct flame_part {
    struct flame_weight weight;
    int64_t seen; /* samples in the window, whichever count */
};

struct flame {
    const struct sample_store *tally;
    struct flame_query query;
    struct sample_store_mark mark;
    uint64_t identity;
    struct flame_node *nodes;
    size_t n_nodes, cap_nodes;
    uint32_t
        *slots; /* open addressing: node by its parent and frame; 0 free (the root is never looked for) */
    size_t n_slots;
    uint32_t *stack_node; /* per stack of the fold, from 1; 0: the frameless */
    bool *stack_matches;  /* per stack: the filter finds a frame of it */
    bool *stack_kept;     /* per stack: it has a frame that is kept */
    bool *stack_inside;   /* per stack: it is of the module that is looked at, or called by it */
    size_t n_stacks, cap_stack_node, cap_stack_matches, cap_stack_kept, cap_stack_inside;
    uint32_t *module; /* per frame of the fold: the first one of its module */
    size_t n_frames, cap_module;
    uint32_t *module_slots; /* open addressing: 1 + frame that stands for a module; 0 free */
    size_t n_module_slots;
    struct flame_part *parts; /* per entry */
    size_t n_parts, cap_parts;
    struct flame_thread *threads;
    size_t n_threads, cap_threads;
};

struct flame *flame_new(void) {
    return calloc(1, sizeof(struct flame));
}

void flame_clear(struct flame *f) {
    uint64_t identity = f->identity;
    free(f->nodes);
    free(f->slots);
    free(f->stack_node);
    free(f->stack_matches);
    free(f->stack_kept);
    free(f->stack_inside);
    free(f->module);
    free(f->module_slots);
    free(f->parts);
    free(f->threads);
    memset(f, 0, sizeof *f);
    f->identity = identity + 1;
}

void flame_free(struct flame *f) {
    if (!f)
        return;
    flame_clear(f);
    free(f);
}

/* ---- modules ---- */

const char *flame_module_text(const struct model_frame *f) {
    return f->kind == MODEL_FRAME_NATIVE && f->module ? f->module : f->file;
}

static uint32_t *flame_module_slot(const struct flame *f, const struct stack_counts *fold, const char *text) {
    uint64_t h = hash_fnv_text(HASH_FNV_START, text);
    for (uint64_t i = h ^ (h >> 29);; i++) {
        uint32_t *slot = &f->module_slots[i & (f->n_module_slots - 1)];
        if (!*slot)
            return slot;
        const char *other = flame_module_text(stack_counts_frame(fold, *slot - 1));
        if (text == other || (text && other && strcmp(text, other) == 0))
            return slot;
    }
}

static int flame_grow_module_slots(struct flame *f, const struct stack_counts *fold, size_t n) {
    size_t n_slots = f->n_module_slots ? f->n_module_slots : 256;
    while (n_slots < 2 * n)
        n_slots *= 2;
    if (n_slots == f->n_module_slots)
        return 0;
    uint32_t *slots = calloc(n_slots, sizeof *slots);
    if (!slots)
        return -1;
    free(f->module_slots);
    f->module_slots = slots;
    f->n_module_slots = n_slots;
    for (size_t i = 0; i < f->n_frames; i++)
        if (f->module[i] == i)
            *flame_module_slot(f, fold, flame_module_text(stack_counts_frame(fold, i))) = (uint32_t)i + 1;
    return 0;
}

static int flame_grow_modules(struct flame *f) {
    const struct stack_counts *fold = sample_store_fold(f->tally);
    size_t n = sample_store_count_frames(f->tally);
    if (grow_array(&f->module, sizeof *f->module, n, &f->cap_module) != 0 ||
        flame_grow_module_slots(f, fold, n) != 0)
        return -1;
    for (size_t i = f->n_frames; i < n; i++) {
        uint32_t *slot = flame_module_slot(f, fold, flame_module_text(stack_counts_frame(fold, i)));
        if (!*slot)
            *slot = (uint32_t)i + 1;
        f->module[i] = *slot - 1;
    }
    f->n_frames = n;
    return 0;
}

/* ---- nodes ---- */

static uint32_t *flame_slot(const struct flame *f, uint32_t parent, uint32_t frame) {
    uint64_t h = ((uint64_t)parent << 32 | frame) * 0x9E3779B97F4A7C15ULL;
    for (uint64_t i = h ^ (h >> 29);; i++) {
        uint32_t *slot = &f->slots[i & (f->n_slots - 1)];
        if (!*slot || (f->nodes[*slot].parent == parent && f->nodes[*slot].frame == frame))
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
        *flame_slot(f, f->nodes[i].parent, f->nodes[i].frame) = i;
    return 0;
}

/* A new node; room for it is there. */
static uint32_t flame_put_node(struct flame *f, uint32_t parent, uint32_t frame, uint32_t stack) {
    uint32_t at = (uint32_t)f->n_nodes++;
    f->nodes[at] = (struct flame_node){.parent = parent,
                                       .child = FLAME_NO_NODE,
                                       .next = FLAME_NO_NODE,
                                       .frame = frame,
                                       .stack = stack,
                                       .is_sorted = true};
    if (parent != FLAME_NO_NODE) {
        struct flame_node *above = &f->nodes[parent];
        f->nodes[at].depth = above->depth + 1;
        f->nodes[at].next = above->child;
        above->is_sorted = above->child == FLAME_NO_NODE;
        above->child = at;
    }
    return at;
}

/* Node of a frame below `parent`, made when it is new; FLAME_NO_NODE without memory. */
static uint32_t flame_child(struct flame *f, uint32_t parent, uint32_t frame, uint32_t stack) {
    if (grow_array(&f->nodes, sizeof *f->nodes, f->n_nodes + 1, &f->cap_nodes) != 0 ||
        flame_grow_slots(f) != 0)
        return FLAME_NO_NODE;
    uint32_t *slot = flame_slot(f, parent, frame);
    if (!*slot)
        *slot = flame_put_node(f, parent, frame, stack);
    return *slot;
}

/* The root, and the node of what has no frame. */
static int flame_plant(struct flame *f) {
    if (grow_array(&f->nodes, sizeof *f->nodes, 2, &f->cap_nodes) != 0)
        return -1;
    (void)flame_put_node(f, FLAME_NO_NODE, FLAME_NO_FRAME, STACK_COUNTS_NO_STACK);
    return flame_child(f, FLAME_ROOT, FLAME_NO_FRAME, STACK_COUNTS_NO_STACK) == FLAME_FRAMELESS ? 0 : -1;
}

static uint32_t flame_frame_of(const struct flame *f, uint32_t frame) {
    switch (f->query.by) {
    case FLAME_BY_LINE:
        return frame;
    case FLAME_BY_MODULE:
        return f->module[frame];
    default:
        return sample_store_function(f->tally, frame);
    }
}

/* Nodes for stacks that are new; callers have smaller numbers. */
static int flame_grow_stacks(struct flame *f) {
    const struct stack_counts *fold = sample_store_fold(f->tally);
    const struct flame_filter *filter = &f->query.filter, *kept = &f->query.kept;
    size_t n = sample_store_count_stacks(f->tally);
    if (grow_array(&f->stack_node, sizeof *f->stack_node, n + 1, &f->cap_stack_node) != 0 ||
        grow_array(&f->stack_matches, sizeof *f->stack_matches, n + 1, &f->cap_stack_matches) != 0 ||
        grow_array(&f->stack_kept, sizeof *f->stack_kept, n + 1, &f->cap_stack_kept) != 0 ||
        grow_array(&f->stack_inside, sizeof *f->stack_inside, n + 1, &f->cap_stack_inside) != 0)
        return -1;
    f->stack_node[STACK_COUNTS_NO_STACK] = FLAME_FRAMELESS;
    f->stack_matches[STACK_COUNTS_NO_STACK] = f->stack_kept[STACK_COUNTS_NO_STACK] = false;
    f->stack_inside[STACK_COUNTS_NO_STACK] = !f->query.module;
    uint32_t wanted =
        f->query.module && f->query.module <= f->n_frames ? f->module[f->query.module - 1] : FLAME_NO_FRAME;
    for (uint32_t i = (uint32_t)f->n_stacks + 1; i <= n; i++) {
        uint32_t above, frame = stack_counts_stack_frame(fold, i, &above), mine = flame_frame_of(f, frame);
        uint32_t parent = f->stack_node[above] == FLAME_FRAMELESS ? FLAME_ROOT : f->stack_node[above];
        f->stack_inside[i] = f->stack_inside[above] || f->module[frame] == wanted;
        bool is_same =
            !f->stack_inside[i] ||
            (f->query.hides_native && stack_counts_frame(fold, frame)->kind == MODEL_FRAME_NATIVE) ||
            (f->query.by == FLAME_BY_MODULE && parent != FLAME_ROOT && f->nodes[parent].frame == mine);
        uint32_t node = is_same ? f->stack_node[above] : flame_child(f, parent, mine, i);
        if (node == FLAME_NO_NODE)
            return -1;
        f->stack_node[i] = node;
        f->stack_matches[i] =
            f->stack_matches[above] ||
            (filter->matches && filter->matches(filter->arg, stack_counts_frame(fold, frame)));
        f->stack_kept[i] = f->stack_kept[above] ||
                           (kept->matches && kept->matches(kept->arg, stack_counts_frame(fold, frame)));
        f->n_stacks = i;
    }
    return 0;
}

/* ---- weights ---- */

static int flame_compare_tid(const void *a, const void *b) {
    const struct flame_thread *x = a, *y = b;
    return (x->tid > y->tid) - (x->tid < y->tid);
}

/* Samples of a thread in the window are `more` now. */
static int flame_count_thread(struct flame *f, int64_t tid, int64_t more) {
    struct flame_thread key = {tid, more};
    struct flame_thread *t =
        f->n_threads ? bsearch(&key, f->threads, f->n_threads, sizeof key, flame_compare_tid) : NULL;
    if (t) {
        t->samples += more;
        return 0;
    }
    if (!more)
        return 0;
    if (grow_array(&f->threads, sizeof *f->threads, f->n_threads + 1, &f->cap_threads) != 0)
        return -1;
    size_t at = f->n_threads++;
    for (; at > 0 && f->threads[at - 1].tid > tid; at--)
        f->threads[at] = f->threads[at - 1];
    f->threads[at] = key;
    return 0;
}

/* What an entry weighs now. */
static struct flame_part flame_weigh(const struct flame *f, size_t entry) {
    const struct stack_counts_entry *e = stack_counts_get(sample_store_fold(f->tally), entry);
    const struct flame_query *q = &f->query;
    struct sample_store_count c = sample_store_get_count(f->tally, q->window, entry);
    struct flame_part part = {.seen = (int64_t)c.samples};
    bool is_left_out = (q->tid && q->tid != e->tid) || !f->stack_inside[e->stack] ||
                       (q->filter.matches && f->stack_matches[e->stack] == q->filter.negated) ||
                       (q->kept.matches && !f->stack_kept[e->stack]);
    if (is_left_out)
        return part;
    uint64_t samples = q->time == FLAME_ON_CPU ? c.on_cpu : q->time == FLAME_GIL_HOLDING ? c.gil : c.samples;
    double us = q->time == FLAME_ON_CPU ? c.on_cpu_us : q->time == FLAME_GIL_HOLDING ? c.gil_us : c.us;
    part.weight = (struct flame_weight){samples ? llround(us * 1000) : 0, (int64_t)samples};
    return part;
}

static void flame_weight_add(struct flame_weight *to, struct flame_weight w) {
    to->ns += w.ns;
    to->samples += w.samples;
}

/* An entry again: the difference goes to its node, and (`up`) to all above. */
static int flame_take_entry(struct flame *f, size_t entry, bool up) {
    const struct stack_counts_entry *e = stack_counts_get(sample_store_fold(f->tally), entry);
    struct flame_part now = flame_weigh(f, entry), *before = &f->parts[entry];
    struct flame_weight more = {now.weight.ns - before->weight.ns,
                                now.weight.samples - before->weight.samples};
    if (now.seen != before->seen && flame_count_thread(f, e->tid, now.seen - before->seen) != 0)
        return -1;
    *before = now;
    if (!more.ns && !more.samples)
        return 0;
    uint32_t at = f->stack_node[e->stack];
    flame_weight_add(&f->nodes[at].self, more);
    for (; up && at != FLAME_NO_NODE; at = f->nodes[at].parent)
        flame_weight_add(&f->nodes[at].total, more);
    return 0;
}

static int flame_grow_parts(struct flame *f) {
    size_t n = sample_store_count_entries(f->tally);
    if (grow_array(&f->parts, sizeof *f->parts, n, &f->cap_parts) != 0)
        return -1;
    if (n > f->n_parts) {
        memset(f->parts + f->n_parts, 0, (n - f->n_parts) * sizeof *f->parts);
        f->n_parts = n;
    }
    return 0;
}

/* All entries anew: each at its node, then what is below each. */
static int flame_recount(struct flame *f) {
    if (f->n_parts)
        memset(f->parts, 0, f->n_parts * sizeof *f->parts);
    f->n_threads = 0;
    for (size_t i = 0; i < f->n_nodes; i++)
        f->nodes[i].self = f->nodes[i].total = (struct flame_weight){0, 0};
    for (size_t i = 0; i < sample_store_count_entries(f->tally); i++)
        if (flame_take_entry(f, i, false) != 0)
            return -1;
    for (size_t i = f->n_nodes; i-- > 0;) {
        struct flame_node *n = &f->nodes[i];
        flame_weight_add(&n->total, n->self);
        if (n->parent != FLAME_NO_NODE)
            flame_weight_add(&f->nodes[n->parent].total, n->total);
    }
    return 0;
}

/* The entries that changed since the last update. */
static int flame_follow(struct flame *f, const struct sample_store_mark *now) {
    for (uint64_t at = f->mark.changes; at < now->changes; at++) {
        uint32_t entry = sample_store_get_change(f->tally, at);
        if (entry < f->n_parts && flame_take_entry(f, entry, true) != 0)
            return -1;
    }
    return 0;
}

/* ---- updates ---- */

static bool flame_same_filter(const struct flame_filter *a, const struct flame_filter *b) {
    return a->matches == b->matches && a->arg == b->arg && a->negated == b->negated &&
           a->version == b->version;
}

static bool flame_same_choice(const struct flame_query *a, const struct flame_query *b) {
    return flame_same_filter(&a->filter, &b->filter) && flame_same_filter(&a->kept, &b->kept);
}

static bool flame_same_nodes(const struct flame_query *a, const struct flame_query *b) {
    return a->by == b->by && a->module == b->module && a->hides_native == b->hides_native;
}

/* Forget what was made for another query: nodes where the granularity is another, matches where the filter is. */
static void flame_set_query(struct flame *f, const struct sample_store *t, const struct flame_query *q,
                            const struct sample_store_mark *now) {
    const struct sample_store *before = f->tally;
    if (before != t || f->mark.ids != now->ids || !flame_same_nodes(&f->query, q))
        flame_clear(f);
    else if (!flame_same_choice(&f->query, q))
        f->n_stacks = 0; /* their nodes are found again */
    f->tally = t;
    f->query = *q;
}

int flame_update(struct flame *f, const struct sample_store *t, const struct flame_query *query) {
    struct sample_store_mark now = sample_store_get_mark(t);
    const struct flame_query old = f->query;
    bool is_known = f->tally == t && f->mark.ids == now.ids && f->mark.counts == now.counts &&
                    now.changes - f->mark.changes <= SAMPLE_STORE_CHANGES && flame_same_nodes(&old, query) &&
                    old.window == query->window && old.time == query->time && old.tid == query->tid &&
                    flame_same_choice(&old, query);
    flame_set_query(f, t, query, &now);
    if ((!f->n_nodes && flame_plant(f) != 0) || flame_grow_modules(f) != 0 || flame_grow_stacks(f) != 0 ||
        flame_grow_parts(f) != 0 || (is_known ? flame_follow(f, &now) : flame_recount(f)) != 0) {
        flame_clear(f);
        return -1;
    }
    f->mark = now;
    return 0;
}

/* ---- reading ---- */

uint64_t flame_identity(const struct flame *f) { return f->identity; }

size_t flame_count(const struct flame *f) { return f->n_nodes; }

const struct flame_node *flame_node(const struct flame *f, uint32_t node) { return &f->nodes[node]; }

const struct model_frame *flame_frame(const struct flame *f, uint32_t node) {
    uint32_t frame = f->nodes[node].frame;
    return frame == FLAME_NO_FRAME ? NULL : stack_counts_frame(sample_store_fold(f->tally), frame);
}

size_t flame_count_frames(const struct flame *f) { return f->n_frames; }

const struct model_frame *flame_known_frame(const struct flame *f, uint32_t frame) {
    return stack_counts_frame(sample_store_fold(f->tally), frame);
}

/* What each stack has with what it calls, from 1. */
static struct flame_weight *flame_stack_weights(const struct flame *f) {
    const struct stack_counts *fold = sample_store_fold(f->tally);
    struct flame_weight *below = calloc(f->n_stacks + 1, sizeof *below);
    for (size_t i = 0; below && i < f->n_parts; i++) {
        uint32_t stack = stack_counts_get(fold, i)->stack;
        if (stack <= f->n_stacks)
            flame_weight_add(&below[stack], f->parts[i].weight);
    }
    for (size_t i = f->n_stacks; below && i > 0; i--) {
        uint32_t above;
        (void)stack_counts_stack_frame(fold, (uint32_t)i, &above);
        flame_weight_add(&below[above], below[i]);
    }
    return below;
}

int flame_lines(const struct flame *f, uint32_t frame, struct flame_line **lines, size_t *n) {
    const struct stack_counts *fold = sample_store_fold(f->tally);
    size_t cap = 0;
    *lines = NULL;
    *n = 0;
    if (f->query.by == FLAME_BY_MODULE)
        return 0;
    struct flame_weight *below = flame_stack_weights(f);
    int rc = below ? 0 : -1;
    for (uint32_t i = 1; rc == 0 && i <= f->n_stacks; i++) {
        uint32_t above, mine = stack_counts_stack_frame(fold, i, &above);
        size_t at = 0;
        if (flame_amount(f, below[i]) <= 0 ||
            sample_store_function(f->tally, mine) != sample_store_function(f->tally, frame) ||
            sample_store_recurs(f->tally, i, false))
            continue;
        while (at < *n && (*lines)[at].line != stack_counts_frame(fold, mine)->line)
            at++;
        if (at == *n && (rc = grow_array(lines, sizeof **lines, *n + 1, &cap)) == 0)
            (*lines)[(*n)++] = (struct flame_line){.line = stack_counts_frame(fold, mine)->line};
        if (rc == 0)
            flame_weight_add(&(*lines)[at].weight, below[i]);
    }
    free(below);
    return rc;
}

const struct flame_thread *flame_threads(const struct flame *f, size_t *n) {
    *n = f->n_threads;
    return f->threads;
}

int64_t flame_amount(const struct flame *f, struct flame_weight w) {
    return f->n_nodes && f->nodes[FLAME_ROOT].total.ns > 0 ? w.ns : w.samples;
}

uint32_t flame_find_stack(const struct flame *f, uint32_t stack) {
    return f->n_nodes && stack <= f->n_stacks ? f->stack_node[stack] : FLAME_NO_NODE;
}

bool flame_is_above(const struct flame *f, uint32_t above, uint32_t node) {
    while (node != FLAME_NO_NODE && f->nodes[node].depth > f->nodes[above].depth)
        node = f->nodes[node].parent;
    return node == above;
}

/* ---- order ---- */

struct flame_name {
    const char *first, *second;
    int line;
    uint32_t node;
};

static int flame_compare_names(const struct flame_name *x, const struct flame_name *y) {
    int order = text_compare(x->first, y->first);
    if (!order)
        order = text_compare(x->second, y->second);
    return order ? order : (x->line > y->line) - (x->line < y->line);
}

static int flame_compare_name(const void *a, const void *b) {
    const struct flame_name *x = a, *y = b;
    int order = flame_compare_names(x, y);
    return order ? order : (x->node > y->node) - (x->node < y->node);
}

/* What a node is sorted by. */
static struct flame_name flame_name_of(const struct flame *f, uint32_t node) {
    const struct model_frame *frame = flame_frame(f, node);
    struct flame_name name = {.node = node};
    if (!frame)
        return name;
    bool by_module = f->query.by == FLAME_BY_MODULE;
    name.first = by_module ? flame_module_text(frame) : frame->func;
    name.second = by_module ? NULL : flame_module_text(frame);
    name.line = f->query.by == FLAME_BY_LINE ? frame->line : 0;
    return name;
}

int flame_compare_nodes(const struct flame *f, uint32_t node, const struct flame *g, uint32_t other) {
    struct flame_name x = flame_name_of(f, node), y = flame_name_of(g, other);
    return flame_compare_names(&x, &y);
}

/* Without memory the order stays as it is. */
static void flame_sort_children(struct flame *f, uint32_t node) {
    size_t n = 0;
    for (uint32_t c = f->nodes[node].child; c != FLAME_NO_NODE; c = f->nodes[c].next)
        n++;
    struct flame_name *names = calloc(n + 1, sizeof *names);
    if (!names)
        return;
    n = 0;
    for (uint32_t c = f->nodes[node].child; c != FLAME_NO_NODE; c = f->nodes[c].next)
        names[n++] = flame_name_of(f, c);
    qsort(names, n, sizeof *names, flame_compare_name);
    for (size_t i = 0; i < n; i++)
        f->nodes[names[i].node].next = i + 1 < n ? names[i + 1].node : FLAME_NO_NODE;
    f->nodes[node].child = n ? names[0].node : FLAME_NO_NODE;
    f->nodes[node].is_sorted = true;
    free(names);
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
