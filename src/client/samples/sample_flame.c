/* SPDX-License-Identifier: Apache-2.0 */
/* sample_flame: see sample_flame.h. */
#include "client/samples/sample_flame.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/hash.h"
#include "base/text.h"

#define CALLS_MAX_WALK 2048 /* callers checked for a recursive call */

/* An entry's contribution to the tree. */
struct flame_part {
    struct flame_weight weight;
    int64_t seen; /* samples in the window, of any kind of time */
};

struct sample_flame {
    const struct sample_store *store;
    struct flame_query query;
    struct sample_store_mark mark;
    struct flame *tree;
    uint32_t *stack_node; /* per stack of the counts, from 1; 0: without a frame */
    bool *stack_matches;  /* per stack: the filter matches one of its frames */
    bool *stack_kept;     /* per stack: it has a kept frame */
    bool *stack_inside;   /* per stack: it is in the selected module, or called by it */
    size_t n_stacks, cap_stack_node, cap_stack_matches, cap_stack_kept, cap_stack_inside;
    uint32_t *module; /* per frame of the counts: the first frame of its module */
    size_t n_frames, cap_module;
    uint32_t *module_slots; /* open addressing: 1 + frame that stands for a module; 0 free */
    size_t n_module_slots;
    struct flame_part *parts; /* per entry */
    size_t n_parts, cap_parts;
    struct flame_thread *threads;
    size_t n_threads, cap_threads;
};

struct sample_flame *sample_flame_new(void) {
    struct sample_flame *f = calloc(1, sizeof *f);
    if (f && !(f->tree = flame_new())) {
        free(f);
        return NULL;
    }
    return f;
}

void sample_flame_clear(struct sample_flame *f) {
    struct flame *tree = f->tree;
    flame_clear(tree);
    free(f->stack_node);
    free(f->stack_matches);
    free(f->stack_kept);
    free(f->stack_inside);
    free(f->module);
    free(f->module_slots);
    free(f->parts);
    free(f->threads);
    *f = (struct sample_flame){.tree = tree};
}

void sample_flame_free(struct sample_flame *f) {
    if (!f)
        return;
    sample_flame_clear(f);
    flame_free(f->tree);
    free(f);
}

struct flame *sample_flame_tree(const struct sample_flame *f) {
    return f->tree;
}

/* ---- modules ---- */

const char *sample_flame_module(const struct model_frame *f) {
    return f->kind == MODEL_FRAME_NATIVE && f->module ? f->module : f->file;
}

static uint32_t *flame_module_slot(const struct sample_flame *f, const struct stack_counts *counts,
                                   const char *text) {
    uint64_t h = hash_fnv_text(HASH_FNV_START, text);
    for (uint64_t i = h ^ (h >> 29);; i++) {
        uint32_t *slot = &f->module_slots[i & (f->n_module_slots - 1)];
        if (!*slot)
            return slot;
        const char *other = sample_flame_module(stack_counts_frame(counts, *slot - 1));
        if (text == other || (text && other && strcmp(text, other) == 0))
            return slot;
    }
}

static int flame_grow_module_slots(struct sample_flame *f, const struct stack_counts *counts, size_t n) {
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
            *flame_module_slot(f, counts, sample_flame_module(stack_counts_frame(counts, i))) =
                (uint32_t)i + 1;
    return 0;
}

static int flame_grow_modules(struct sample_flame *f) {
    const struct stack_counts *counts = sample_store_counts(f->store);
    size_t n = sample_store_count_frames(f->store);
    if (grow_array(&f->module, sizeof *f->module, n, &f->cap_module) != 0 ||
        flame_grow_module_slots(f, counts, n) != 0)
        return -1;
    for (size_t i = f->n_frames; i < n; i++) {
        uint32_t *slot = flame_module_slot(f, counts, sample_flame_module(stack_counts_frame(counts, i)));
        if (!*slot)
            *slot = (uint32_t)i + 1;
        f->module[i] = *slot - 1;
    }
    f->n_frames = n;
    return 0;
}

/* ---- nodes ---- */

static struct flame_name sample_flame_name(const void *arg, const struct flame *tree, uint32_t node) {
    const struct sample_flame *f = arg;
    const struct model_frame *frame = flame_frame(tree, node);
    if (!frame)
        return (struct flame_name){.first = NULL};
    if (f->query.by == FLAME_BY_MODULE)
        return (struct flame_name){.first = sample_flame_module(frame)};
    return (struct flame_name){.first = frame->func,
                               .second = sample_flame_module(frame),
                               .line = f->query.by == FLAME_BY_LINE ? frame->line : 0};
}

/* Add the root, and the node of samples without a frame. */
static int flame_plant(struct sample_flame *f) {
    if (flame_begin(f->tree, sample_store_counts(f->store), sample_flame_name, f) != 0)
        return -1;
    uint32_t node =
        flame_put_node(f->tree, FLAME_ROOT, FLAME_NO_FRAME, FLAME_NO_FRAME, STACK_COUNTS_NO_STACK);
    return node == FLAME_FRAMELESS ? 0 : -1;
}

static uint32_t flame_frame_of(const struct sample_flame *f, uint32_t frame) {
    switch (f->query.by) {
    case FLAME_BY_LINE:
        return frame;
    case FLAME_BY_MODULE:
        return f->module[frame];
    default:
        return sample_store_function(f->store, frame);
    }
}

/* Add nodes for new stacks; callers have smaller numbers. */
static int flame_grow_stacks(struct sample_flame *f) {
    const struct stack_counts *counts = sample_store_counts(f->store);
    const struct flame_filter *filter = &f->query.filter, *kept = &f->query.kept;
    size_t n = sample_store_count_stacks(f->store);
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
        uint32_t above, frame = stack_counts_stack_frame(counts, i, &above), mine = flame_frame_of(f, frame);
        uint32_t parent = f->stack_node[above] == FLAME_FRAMELESS ? FLAME_ROOT : f->stack_node[above];
        f->stack_inside[i] = f->stack_inside[above] || f->module[frame] == wanted;
        bool is_same =
            !f->stack_inside[i] ||
            (f->query.hides_native && stack_counts_frame(counts, frame)->kind == MODEL_FRAME_NATIVE) ||
            (f->query.by == FLAME_BY_MODULE && parent != FLAME_ROOT &&
             flame_node(f->tree, parent)->key == mine);
        uint32_t node = is_same ? f->stack_node[above] : flame_put_node(f->tree, parent, mine, mine, i);
        if (node == FLAME_NO_NODE)
            return -1;
        f->stack_node[i] = node;
        f->stack_matches[i] =
            f->stack_matches[above] ||
            (filter->matches && filter->matches(filter->arg, stack_counts_frame(counts, frame)));
        f->stack_kept[i] = f->stack_kept[above] ||
                           (kept->matches && kept->matches(kept->arg, stack_counts_frame(counts, frame)));
        f->n_stacks = i;
    }
    return 0;
}

/* ---- weights ---- */

static int flame_compare_tid(const void *a, const void *b) {
    const struct flame_thread *x = a, *y = b;
    return (x->tid > y->tid) - (x->tid < y->tid);
}

/* Add `more` samples in the window to a thread. */
static int flame_count_thread(struct sample_flame *f, int64_t tid, int64_t more) {
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

/* The current contribution of an entry. */
static struct flame_part flame_weigh(const struct sample_flame *f, size_t entry) {
    const struct stack_counts_entry *e = stack_counts_get(sample_store_counts(f->store), entry);
    const struct flame_query *q = &f->query;
    struct stack_counts_sums c = sample_store_get_count(f->store, q->window, entry);
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

/* Count an entry again: its node, and with `up` all nodes above, get the difference. */
static int flame_take_entry(struct sample_flame *f, size_t entry, bool up) {
    const struct stack_counts_entry *e = stack_counts_get(sample_store_counts(f->store), entry);
    struct flame_part now = flame_weigh(f, entry), *before = &f->parts[entry];
    struct flame_weight more = {now.weight.ns - before->weight.ns,
                                now.weight.samples - before->weight.samples};
    if (now.seen != before->seen && flame_count_thread(f, e->tid, now.seen - before->seen) != 0)
        return -1;
    *before = now;
    if (!more.ns && !more.samples)
        return 0;
    flame_add(f->tree, f->stack_node[e->stack], more, up);
    return 0;
}

static int flame_grow_parts(struct sample_flame *f) {
    size_t n = sample_store_count_entries(f->store);
    if (grow_array(&f->parts, sizeof *f->parts, n, &f->cap_parts) != 0)
        return -1;
    if (n > f->n_parts) {
        memset(f->parts + f->n_parts, 0, (n - f->n_parts) * sizeof *f->parts);
        f->n_parts = n;
    }
    return 0;
}

/* Count all entries again: each at its node, then the totals. */
static int flame_recount(struct sample_flame *f) {
    if (f->n_parts)
        memset(f->parts, 0, f->n_parts * sizeof *f->parts);
    f->n_threads = 0;
    flame_clear_weights(f->tree);
    for (size_t i = 0; i < sample_store_count_entries(f->store); i++)
        if (flame_take_entry(f, i, false) != 0)
            return -1;
    flame_sum(f->tree);
    return 0;
}

/* Count the entries that have changed since the last update. */
static int flame_follow(struct sample_flame *f, const struct sample_store_mark *now) {
    for (uint64_t at = f->mark.changes; at < now->changes; at++) {
        uint32_t entry = sample_store_get_change(f->store, at);
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

/* Remove results of another query: nodes if the granularity differs, matches if the filter
 * differs. */
static void flame_set_query(struct sample_flame *f, const struct sample_store *t, const struct flame_query *q,
                            const struct sample_store_mark *now) {
    const struct sample_store *before = f->store;
    if (before != t || f->mark.ids != now->ids || !flame_same_nodes(&f->query, q))
        sample_flame_clear(f);
    /* their nodes are found again */
    else if (!flame_same_choice(&f->query, q))
        f->n_stacks = 0;
    f->store = t;
    f->query = *q;
}

int sample_flame_update(struct sample_flame *f, const struct sample_store *t,
                        const struct flame_query *query) {
    struct sample_store_mark now = sample_store_get_mark(t);
    const struct flame_query old = f->query;
    bool is_known = f->store == t && f->mark.ids == now.ids && f->mark.counts == now.counts &&
                    now.changes - f->mark.changes <= SAMPLE_STORE_CHANGES && flame_same_nodes(&old, query) &&
                    old.window == query->window && old.time == query->time && old.tid == query->tid &&
                    flame_same_choice(&old, query);
    flame_set_query(f, t, query, &now);
    if ((!flame_count(f->tree) && flame_plant(f) != 0) || flame_grow_modules(f) != 0 ||
        flame_grow_stacks(f) != 0 || flame_grow_parts(f) != 0 ||
        (is_known ? flame_follow(f, &now) : flame_recount(f)) != 0) {
        sample_flame_clear(f);
        return -1;
    }
    f->mark = now;
    return 0;
}

/* ---- reading ---- */

size_t sample_flame_count_frames(const struct sample_flame *f) { return f->n_frames; }

const struct model_frame *sample_flame_frame(const struct sample_flame *f, uint32_t frame) {
    return stack_counts_frame(sample_store_counts(f->store), frame);
}

const struct flame_thread *sample_flame_threads(const struct sample_flame *f, size_t *n) {
    *n = f->n_threads;
    return f->threads;
}

uint32_t sample_flame_find_stack(const struct sample_flame *f, uint32_t stack) {
    return flame_count(f->tree) && stack <= f->n_stacks ? f->stack_node[stack] : FLAME_NO_NODE;
}

/* ---- one frame, wherever it is ---- */

static void flame_weight_add(struct flame_weight *to, struct flame_weight w) {
    to->ns += w.ns;
    to->samples += w.samples;
}

void flame_calls_fini(struct flame_calls *c) {
    free(c->callers);
    free(c->callees);
    free(c->lines);
    memset(c, 0, sizeof *c);
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

/* True if a node of `frame` is above `node`; with a caller: one called by that caller. */
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

/* Per frame number: the index of its call + 1. */
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
    flame_weight_add(&(*list)[*slot - 1].weight, call.weight);
    return 0;
}

/* Count a node of the frame itself: its caller. */
static int calls_take_own(struct flame_calls *c, const struct flame *f, uint32_t at, struct calls_index *x) {
    const struct flame_node *n = flame_node(f, at);
    uint32_t parent = n->parent;
    bool has_caller = calls_has_frame(parent);
    flame_weight_add(&c->self, n->self);
    if (!calls_recurs(f, at, n->frame, FLAME_NO_NODE))
        flame_weight_add(&c->total, n->total);
    if (has_caller && calls_recurs(f, at, n->frame, flame_node(f, parent)->frame))
        return 0;
    struct flame_call call = {has_caller ? flame_frame(f, parent) : NULL, parent, n->total};
    return calls_put(&c->callers, &c->n_callers, &x->cap_callers,
                     &x->caller[has_caller ? flame_node(f, parent)->frame + 1 : 0], call);
}

/* Count a node called by the frame. */
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

/* Count the callees of the root, which have no caller. */
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

/* The weight of each stack with its callees, from 1. */
static struct flame_weight *flame_stack_weights(const struct sample_flame *f) {
    const struct stack_counts *counts = sample_store_counts(f->store);
    struct flame_weight *below = calloc(f->n_stacks + 1, sizeof *below);
    for (size_t i = 0; below && i < f->n_parts; i++) {
        uint32_t stack = stack_counts_get(counts, i)->stack;
        if (stack <= f->n_stacks)
            flame_weight_add(&below[stack], f->parts[i].weight);
    }
    for (size_t i = f->n_stacks; below && i > 0; i--) {
        uint32_t above;
        stack_counts_stack_frame(counts, (uint32_t)i, &above);
        flame_weight_add(&below[above], below[i]);
    }
    return below;
}

static int calls_lines(const struct sample_flame *f, uint32_t frame, struct flame_line **lines, size_t *n) {
    const struct stack_counts *counts = sample_store_counts(f->store);
    size_t cap = 0;
    *lines = NULL;
    *n = 0;
    if (f->query.by == FLAME_BY_MODULE)
        return 0;
    struct flame_weight *below = flame_stack_weights(f);
    int rc = below ? 0 : -1;
    for (uint32_t i = 1; rc == 0 && i <= f->n_stacks; i++) {
        uint32_t above, mine = stack_counts_stack_frame(counts, i, &above);
        size_t at = 0;
        if (flame_amount(f->tree, below[i]) <= 0 ||
            sample_store_function(f->store, mine) != sample_store_function(f->store, frame) ||
            sample_store_recurs(f->store, i, false))
            continue;
        while (at < *n && (*lines)[at].line != stack_counts_frame(counts, mine)->line)
            at++;
        if (at == *n && (rc = grow_array(lines, sizeof **lines, *n + 1, &cap)) == 0)
            (*lines)[(*n)++] = (struct flame_line){.line = stack_counts_frame(counts, mine)->line};
        if (rc == 0)
            flame_weight_add(&(*lines)[at].weight, below[i]);
    }
    free(below);
    return rc;
}

static int calls_of_frame(struct flame_calls *c, const struct sample_flame *f, uint32_t frame) {
    size_t n = f->n_frames + 1;
    struct calls_index x = {.caller = calloc(n, sizeof *x.caller), .callee = calloc(n, sizeof *x.callee)};
    int rc = x.caller && x.callee && calls_walk(c, f->tree, frame, &x) == 0 ? 0 : -1;
    free(x.caller);
    free(x.callee);
    return rc == 0 ? calls_lines(f, frame, &c->lines, &c->n_lines) : -1;
}

int flame_calls_build(struct flame_calls *c, const struct sample_flame *f, uint32_t node) {
    const struct flame *tree = f->tree;
    void *arg = f->tree;
    flame_calls_fini(c);
    if (node == FLAME_FRAMELESS) {
        c->self = flame_node(tree, node)->self;
        c->total = flame_node(tree, node)->total;
        return 0;
    }
    if ((node == FLAME_ROOT ? calls_of_root(c, tree) : calls_of_frame(c, f, flame_node(tree, node)->frame)) !=
        0) {
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
