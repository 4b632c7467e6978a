/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame_stacks: see flame_stacks.h. A line of the folded format is a node of the tree with
 * samples of its own. A name is built once for each frame, and the node of a stack is
 * remembered, so a stack with known callers costs only its additional frames.
 */
#include "flame/flame_stacks.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/hash.h"
#include "base/path.h"
#include "base/text.h"

#define STACKS_NAME_MAX 512                        /* bytes of a part of a name */
#define STACKS_TEXT_MAX ((size_t)64 * 1024 * 1024) /* of all names */
/* outermost frames of a stack; the others share one, whose name explains this */
#define STACKS_DEPTH 2048
#define STACKS_STEPS ((size_t)1 << 24) /* takes some seconds: 8,000 stacks of 2,000 frames */
#define STACKS_LINE 32                 /* bytes of a line beside its text */
#define STACKS_NO_NAME UINT32_MAX

/* ---- names ---- */

static void stacks_put_part(struct strbuf *out, const char *part) {
    char clean[STACKS_NAME_MAX];
    text_sanitize(clean, sizeof clean, part);
    for (char *p = clean; *p; p++)
        if (*p == ';')
            *p = ':';
    strbuf_adds(out, clean);
}

/* "func (module)" or "func (file.c:12)"; "module+0x12ab" if the function is unknown. */
static void stacks_put_native(struct strbuf *out, const struct model_frame *f, bool by_function) {
    const char *module = f->module ? path_short(f->module) : NULL;
    if (!f->func && (module || f->address)) {
        if (module)
            stacks_put_part(out, module);
        if (!by_function || !module)
            strbuf_addf(out, "%s0x%" PRIx64, module ? "+" : "", f->address);
        return;
    }
    stacks_put_part(out, f->func ? f->func : "?");
    if (!f->file && !module)
        return;
    strbuf_adds(out, " (");
    stacks_put_part(out, f->file ? path_short(f->file) : module);
    if (!by_function && f->file && f->line > 0)
        strbuf_addf(out, ":%d", f->line);
    strbuf_addc(out, ')');
}

static void stacks_put_frame(struct strbuf *out, const struct model_frame *f, bool by_function) {
    if (f->kind == MODEL_FRAME_NATIVE) {
        stacks_put_native(out, f, by_function);
        return;
    }
    stacks_put_part(out, f->func ? f->func : "?");
    strbuf_adds(out, " (");
    stacks_put_part(out, f->file ? path_short(f->file) : "?");
    if (!by_function && f->line > 0)
        strbuf_addf(out, ":%d", f->line);
    strbuf_addc(out, ')');
}

static void stacks_put_thread(struct strbuf *out, const struct stack_counts *counts, int64_t tid) {
    const char *name = stack_counts_thread_name(counts, tid);
    strbuf_adds(out, "thread ");
    stacks_put_part(out, name ? name : "?");
    strbuf_addf(out, " (%" PRId64 ")", tid);
}

static uint32_t *stacks_slot(const struct flame_stacks_tree *t, const char *name) {
    for (uint64_t i = hash_mix(hash_bytes(name, strlen(name)));; i++) {
        uint32_t *slot = &t->slots[i & (t->n_slots - 1)];
        if (!*slot || strcmp(t->names[*slot - 1], name) == 0)
            return slot;
    }
}

static int stacks_grow_slots(struct flame_stacks_tree *t) {
    size_t n_slots = t->n_slots ? 2 * t->n_slots : 256;
    if (2 * (t->n_names + 1) <= t->n_slots)
        return 0;
    uint32_t *slots = calloc(n_slots, sizeof *slots);
    if (!slots)
        return -1;
    free(t->slots);
    t->slots = slots;
    t->n_slots = n_slots;
    for (uint32_t i = 0; i < t->n_names; i++)
        *stacks_slot(t, t->names[i]) = i + 1;
    return 0;
}

/* The number of a name; its text is cleared afterwards. STACKS_NO_NAME without memory. */
static uint32_t stacks_intern(struct flame_stacks_tree *t, struct strbuf *name) {
    if (name->failed || stacks_grow_slots(t) != 0)
        return STACKS_NO_NAME;
    uint32_t *slot = stacks_slot(t, strbuf_str(name));
    if (!*slot) {
        const char *text = arena_strdup(&t->text, strbuf_str(name));
        if (!text || grow_array(&t->names, sizeof *t->names, t->n_names + 1, &t->cap_names) != 0)
            return STACKS_NO_NAME;
        t->names[t->n_names] = text;
        *slot = (uint32_t)++t->n_names;
    }
    strbuf_clear(name);
    return *slot - 1;
}

static struct flame_name stacks_node_name(const void *arg, const struct flame *tree, uint32_t node) {
    const struct flame_stacks_tree *t = arg;
    return (struct flame_name){.first = t->names[flame_node(tree, node)->key]};
}

/* ---- the tree ---- */

/* The node of a stack in the tree, below the node `root`. */
struct stacks_place {
    uint32_t root, node;
};

struct stacks_builder {
    const struct flame_stacks *s;
    struct flame_stacks_tree *t;
    struct strbuf name;
    struct stacks_place *places; /* per stack, from 1; root FLAME_NO_NODE: no node yet */
    uint32_t *path;              /* stacks to add to the tree, the innermost first */
    size_t cap_path, steps;
};

/* The callee with the name just written; FLAME_NO_NODE without memory. */
static uint32_t stacks_put_named(struct stacks_builder *b, uint32_t parent) {
    uint32_t name = stacks_intern(b->t, &b->name);
    return name == STACKS_NO_NAME
               ? FLAME_NO_NODE
               : flame_put_node(b->t->tree, parent, name, FLAME_NO_FRAME, STACK_COUNTS_NO_STACK);
}

static uint32_t stacks_put_callee(struct stacks_builder *b, uint32_t parent, uint32_t frame, uint32_t stack) {
    uint32_t *name = &b->t->of_frame[frame];
    if (!*name) {
        stacks_put_frame(&b->name, stack_counts_frame(b->s->counts, frame), b->s->by_function);
        *name = stacks_intern(b->t, &b->name) + 1;
        if (!*name)
            return FLAME_NO_NODE;
    }
    return flame_put_node(b->t->tree, parent, *name - 1, frame, stack);
}

/* The node that a stack ends in; FLAME_NO_NODE without memory. */
static uint32_t stacks_put_stack(struct stacks_builder *b, uint32_t root, uint32_t stack) {
    const struct flame *tree = b->t->tree;
    size_t n = 0;
    uint32_t top = flame_node(tree, root)->depth, node = root, above;
    for (; stack != STACK_COUNTS_NO_STACK && b->places[stack].root != root; stack = above) {
        if (grow_array(&b->path, sizeof *b->path, n + 1, &b->cap_path) != 0 || ++b->steps > STACKS_STEPS)
            return FLAME_NO_NODE;
        b->path[n++] = stack;
        stack_counts_stack_frame(b->s->counts, stack, &above);
    }
    if (stack != STACK_COUNTS_NO_STACK)
        node = b->places[stack].node;
    while (n > 0 && node != FLAME_NO_NODE) {
        uint32_t depth = flame_node(tree, node)->depth - top;
        stack = b->path[--n];
        if (depth < STACKS_DEPTH)
            node = stacks_put_callee(b, node, stack_counts_stack_frame(b->s->counts, stack, &above), stack);
        else if (depth == STACKS_DEPTH) {
            strbuf_adds(&b->name, "...");
            node = stacks_put_named(b, node);
        }
        b->places[stack] = (struct stacks_place){root, node};
    }
    return node;
}

static int stacks_put_entry(struct stacks_builder *b, const struct stack_counts_entry *entry) {
    struct flame_weight weight = {llround(entry->sums.us * 1000), (int64_t)entry->sums.samples};
    uint32_t node = FLAME_ROOT;
    if (entry->stack == STACK_COUNTS_NO_STACK && !b->s->threads) {
        b->t->frameless.ns += weight.ns;
        b->t->frameless.samples += weight.samples;
        return 0;
    }
    if (b->s->process) {
        strbuf_addf(&b->name, "process %" PRId64, b->s->pid);
        node = stacks_put_named(b, node);
    }
    if (b->s->threads && node != FLAME_NO_NODE) {
        stacks_put_thread(&b->name, b->s->counts, entry->tid);
        node = stacks_put_named(b, node);
    }
    if (node != FLAME_NO_NODE)
        node = stacks_put_stack(b, node, entry->stack);
    if (node == FLAME_NO_NODE)
        return -1;
    flame_add(b->t->tree, node, weight, false);
    return 0;
}

static int stacks_compare_tid(const void *a, const void *b) {
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static int stacks_count_threads(struct flame_stacks_tree *t, const struct stack_counts *counts) {
    size_t n = stack_counts_count(counts);
    int64_t *tids = calloc(n + 1, sizeof *tids);
    if (!tids)
        return -1;
    for (size_t i = 0; i < n; i++)
        tids[i] = stack_counts_get(counts, i)->tid;
    qsort(tids, n, sizeof *tids, stacks_compare_tid);
    for (size_t i = 0; i < n; i++)
        t->threads += i == 0 || tids[i] != tids[i - 1];
    free(tids);
    return 0;
}

static int stacks_put_entries(struct stacks_builder *b) {
    const struct stack_counts *counts = b->s->counts;
    size_t n_stacks = stack_counts_stacks(counts);
    struct flame_stacks_tree *t = b->t;
    t->tree = flame_new();
    t->of_frame = calloc(stack_counts_frames(counts) + 1, sizeof *t->of_frame);
    b->places = calloc(n_stacks + 1, sizeof *b->places);
    if (!t->tree || !t->of_frame || !b->places || strbuf_adds(&b->name, "all") != 0 ||
        stacks_intern(t, &b->name) != 0 || flame_begin(t->tree, counts, stacks_node_name, t) != 0)
        return -1;
    for (size_t i = 0; i <= n_stacks; i++)
        b->places[i].root = FLAME_NO_NODE;
    for (size_t i = 0; i < stack_counts_count(counts); i++)
        if (stacks_put_entry(b, stack_counts_get(counts, i)) != 0)
            return -1;
    flame_sum(t->tree);
    return stacks_count_threads(t, counts);
}

int flame_stacks_build(struct flame_stacks_tree *t, const struct flame_stacks *s) {
    struct stacks_builder b = {.s = s, .t = t};
    bool has_us = false;
    *t = (struct flame_stacks_tree){.tree = NULL};
    arena_init(&t->text, STACKS_TEXT_MAX);
    for (size_t i = 0; i < stack_counts_count(s->counts) && !has_us; i++)
        has_us = stack_counts_get(s->counts, i)->sums.us > 0;
    t->in_us = s->in_us && has_us;
    strbuf_init(&b.name, 0);
    int rc = stacks_put_entries(&b);
    strbuf_fini(&b.name);
    free(b.places);
    free(b.path);
    return rc;
}

void flame_stacks_fini(struct flame_stacks_tree *t) {
    flame_free(t->tree);
    arena_fini(&t->text);
    free(t->names);
    free(t->slots);
    free(t->of_frame);
    *t = (struct flame_stacks_tree){.tree = NULL};
}

const char *flame_stacks_name(const struct flame_stacks_tree *t, uint32_t node) {
    return t->names[flame_node(t->tree, node)->key];
}

double flame_stacks_weight(const struct flame_stacks_tree *t, struct flame_weight w) {
    return t->in_us ? (double)w.ns / 1000 : (double)w.samples;
}

/* ---- lines ---- */

/* Names from the one below the root to the node's own. */
struct stacks_path {
    uint32_t names[STACKS_DEPTH + 3]; /* process, thread, frames, and one for the omitted frames */
    size_t n;
};

static void stacks_get_path(const struct flame_stacks_tree *t, uint32_t node, struct stacks_path *path) {
    path->n = flame_node(t->tree, node)->depth;
    for (size_t i = path->n; i > 0; i--) {
        path->names[i - 1] = flame_node(t->tree, node)->key;
        node = flame_node(t->tree, node)->parent;
    }
}

/* Same order as strcmp of their lines: after a name comes a ';', or nothing at the end; no name
 * contains a ';'. */
static int stacks_compare_paths(const struct flame_stacks_tree *t, const struct stacks_path *x,
                                const struct stacks_path *y) {
    size_t i = 0, k = 0;
    while (i < x->n && i < y->n && x->names[i] == y->names[i])
        i++;
    if (i == x->n || i == y->n)
        return (x->n > y->n) - (x->n < y->n);
    const char *a = t->names[x->names[i]], *b = t->names[y->names[i]];
    while (a[k] && a[k] == b[k])
        k++;
    unsigned char c = (unsigned char)(a[k]           ? a[k]
                                      : i + 1 < x->n ? ';'
                                                     : '\0'),
                  d = (unsigned char)(b[k]           ? b[k]
                                      : i + 1 < y->n ? ';'
                                                     : '\0');
    return c - d;
}

static int stacks_compare_lines(const void *a, const void *b, void *tree) {
    struct stacks_path x, y;
    stacks_get_path(tree, *(const uint32_t *)a, &x);
    stacks_get_path(tree, *(const uint32_t *)b, &y);
    return stacks_compare_paths(tree, &x, &y);
}

static void stacks_put_line(const struct flame_stacks_tree *t, bool in_us, uint32_t node,
                            struct strbuf *out) {
    struct flame_weight own = flame_node(t->tree, node)->self;
    struct stacks_path path;
    stacks_get_path(t, node, &path);
    for (size_t i = 0; i < path.n; i++) {
        if (i)
            strbuf_addc(out, ';');
        strbuf_adds(out, t->names[path.names[i]]);
    }
    strbuf_addf(out, " %.0f\n", in_us ? (double)own.ns / 1000 : (double)own.samples);
}

int flame_stacks_put_folded(const struct flame_stacks *s, struct strbuf *out) {
    struct flame_stacks_tree t;
    uint32_t *lines = NULL; /* nodes with samples of their own */
    size_t n = 0;
    int rc = flame_stacks_build(&t, s);
    if (rc == 0 && !(lines = calloc(flame_count(t.tree), sizeof *lines)))
        rc = -1;
    for (uint32_t i = FLAME_ROOT + 1; rc == 0 && i < flame_count(t.tree); i++)
        if (flame_node(t.tree, i)->self.samples)
            lines[n++] = i;
    if (n)
        qsort_r(lines, n, sizeof *lines, stacks_compare_lines, &t);
    for (size_t i = 0; i < n && !out->failed; i++)
        stacks_put_line(&t, s->in_us, lines[i], out);
    free(lines);
    flame_stacks_fini(&t);
    return rc == 0 && !out->failed ? 0 : -1;
}
