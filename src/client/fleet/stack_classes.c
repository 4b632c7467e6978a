/* SPDX-License-Identifier: Apache-2.0 */
/* stack_classes: see stack_classes.h. */
#include "client/fleet/stack_classes.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/hash.h"
#include "base/path.h"
#include "base/text.h"

#define STACK_CLASSES_TAIL 3 /* names of a path outside of libraries */

const char *stack_classes_file(const char *path) {
    static const char *const folders[] = {"/lib/python", "/lib64/python"};
    const char *installed = path_short(path);
    if (strstr(path, "/site-packages/") || strstr(path, "/dist-packages/"))
        return installed;
    /* .../lib/python3.11/threading.py */
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        const char *root = strstr(path, folders[i]);
        const char *end = root ? strchr(root + strlen(folders[i]), '/') : NULL;
        if (end)
            return end + 1;
    }
    const char *at = path + strlen(path);
    for (int names = 0; at > path; at--)
        if (at[-1] == '/' && ++names == STACK_CLASSES_TAIL)
            return at;
    return path;
}

/* What makes two frames one. */
struct stack_key {
    const char *func, *file;
    int line;
    bool own;
    uint64_t hash;
};

/* A file by its path: what counts of it. */
struct stack_file {
    const char *path, *file;
    bool own;
    uint64_t hash;
};

static struct stack_file stack_file_of(const char *path) {
    struct stack_file f = {.path = path, .file = stack_classes_file(path)};
    f.own = *path && !path_is_library(path);
    f.hash = hash_bytes(f.file, strlen(f.file)) ^ f.own;
    return f;
}

static struct stack_key stack_key_of(const struct model_frame *f, const struct stack_file *file) {
    struct stack_key key = {.func = f->func ? f->func : "", .file = file->file};
    key.own = file->own && f->kind == MODEL_FRAME_PYTHON;
    key.line = key.own && f->line > 0 ? f->line : 0;
    key.hash = hash_mix(hash_bytes(key.func, strlen(key.func)) ^ hash_mix(file->hash + (uint64_t)key.line));
    return key;
}

static uint64_t stack_id_below(uint64_t above, const struct stack_key *key) {
    return hash_mix(above * 3 ^ key->hash);
}

/* Files that were seen: a job has some hundred of them, and looking at a path is what takes time. */
struct stack_files {
    struct stack_file *items;
    size_t n, cap;
    struct table table;
};

/* NULL without memory. */
static const struct stack_file *stack_files_get(struct stack_files *s, const char *path) {
    uint64_t hash = hash_bytes(path, strlen(path));
    size_t at = TABLE_BEGIN;
    for (uint32_t i; (i = table_next(&s->table, hash, &at)) != TABLE_NONE;)
        if (s->items[i].path == path || strcmp(s->items[i].path, path) == 0)
            return &s->items[i];
    if (grow_array(&s->items, sizeof *s->items, s->n + 1, &s->cap) != 0 ||
        table_add(&s->table, hash, (uint32_t)s->n) != 0)
        return NULL;
    s->items[s->n] = stack_file_of(path);
    return &s->items[s->n++];
}

/* The frames of a stack that count: the outermost, without the marks of the interpreter. */
static size_t stack_outermost(const struct model_frame *frames, size_t n) {
    size_t first = n, counted = 0;
    while (first > 0 && counted < STACK_CLASSES_DEPTH)
        counted += frames[--first].kind != MODEL_FRAME_ENTRY;
    return first;
}

uint64_t stack_classes_hash(const struct model_frame *frames, size_t n) {
    uint64_t id = 0;
    for (size_t i = n, first = stack_outermost(frames, n); i > first; i--)
        if (frames[i - 1].kind != MODEL_FRAME_ENTRY) {
            struct stack_file file = stack_file_of(frames[i - 1].file ? frames[i - 1].file : "");
            struct stack_key key = stack_key_of(&frames[i - 1], &file);
            id = stack_id_below(id, &key);
        }
    return id;
}

/* ---- the tree ---- */

static bool stack_is_same(const struct stack_node *n, uint32_t parent, const struct stack_key *key) {
    return n->parent == parent && n->line == key->line && n->own == key->own &&
           (n->func == key->func || strcmp(n->func, key->func) == 0) &&
           (n->file == key->file || strcmp(n->file, key->file) == 0);
}

/* The callee of `parent` with this frame; a new one if there is room, else `parent`. NONE without memory. */
static uint32_t stack_node_put(struct stack_classes *c, uint32_t parent, const struct stack_key *key) {
    uint64_t id = stack_id_below(c->nodes[parent].id, key);
    size_t at = TABLE_BEGIN;
    for (uint32_t i; (i = table_next(&c->table, id, &at)) != TABLE_NONE;)
        if (stack_is_same(&c->nodes[i], parent, key))
            return i;
    if (c->n_nodes == STACK_CLASSES_NODES)
        return parent;
    uint32_t node = (uint32_t)c->n_nodes;
    if (grow_array(&c->nodes, sizeof *c->nodes, c->n_nodes + 1, &c->cap_nodes) != 0 ||
        table_add(&c->table, id, node) != 0)
        return STACK_CLASSES_NONE;
    c->nodes[node] = (struct stack_node){.parent = parent,
                                         .child = STACK_CLASSES_NONE,
                                         .next = STACK_CLASSES_NONE,
                                         .depth = c->nodes[parent].depth + 1,
                                         .func = key->func,
                                         .file = key->file,
                                         .line = key->line,
                                         .own = key->own,
                                         .class_number = STACK_CLASSES_NONE,
                                         .id = id};
    c->n_nodes++;
    return node;
}

/* The node in which a stack ends; NONE without memory. */
static uint32_t stack_put(struct stack_classes *c, struct stack_files *files, const struct rank_stack *s) {
    uint32_t node = STACK_CLASSES_ROOT;
    for (size_t i = s->n, first = stack_outermost(s->frames, s->n); i > first && node != STACK_CLASSES_NONE;
         i--)
        if (s->frames[i - 1].kind != MODEL_FRAME_ENTRY) {
            const char *path = s->frames[i - 1].file ? s->frames[i - 1].file : "";
            const struct stack_file *file = stack_files_get(files, path);
            if (!file)
                return STACK_CLASSES_NONE;
            struct stack_key key = stack_key_of(&s->frames[i - 1], file);
            node = stack_node_put(c, node, &key);
        }
    return node;
}

static int stack_compare_siblings(const void *a, const void *b, void *arg) {
    const struct stack_classes *c = arg;
    const struct stack_node *x = &c->nodes[*(const uint32_t *)a], *y = &c->nodes[*(const uint32_t *)b];
    if (x->n != y->n)
        return x->n < y->n ? 1 : -1;
    int by_name = strcmp(x->func, y->func);
    by_name = by_name ? by_name : strcmp(x->file, y->file);
    return by_name ? by_name : (x->line > y->line) - (x->line < y->line);
}

/* Sort by caller, then as siblings are printed, and link them. 0, or -1 without memory. */
static int stack_link(struct stack_classes *c) {
    uint32_t *order = malloc(c->n_nodes * sizeof *order), *begin = calloc(c->n_nodes + 1, sizeof *begin);
    if (order && begin) {
        for (size_t i = 1; i < c->n_nodes; i++)
            begin[c->nodes[i].parent + 1]++;
        for (size_t i = 0; i < c->n_nodes; i++)
            begin[i + 1] += begin[i];
        for (size_t i = 1; i < c->n_nodes; i++)
            order[begin[c->nodes[i].parent]++] = (uint32_t)i;
        /* now begin[i] is the end of the callees of i */
        for (size_t i = 0, first = 0; i < c->n_nodes; first = begin[i++]) {
            qsort_r(order + first, begin[i] - first, sizeof *order, stack_compare_siblings, c);
            for (size_t k = begin[i]; k > first; k--) {
                c->nodes[order[k - 1]].next = c->nodes[i].child;
                c->nodes[i].child = order[k - 1];
            }
        }
    }
    int rc = order && begin ? 0 : -1;
    free(order);
    free(begin);
    return rc;
}

uint32_t stack_classes_walk(const struct stack_classes *c, uint32_t node, bool skip) {
    if (!skip && c->nodes[node].child != STACK_CLASSES_NONE)
        return c->nodes[node].child;
    while (node != STACK_CLASSES_ROOT && c->nodes[node].next == STACK_CLASSES_NONE)
        node = c->nodes[node].parent;
    return node == STACK_CLASSES_ROOT ? STACK_CLASSES_NONE : c->nodes[node].next;
}

/* Give each node its slice: in the order of the printed tree those of callees follow each other. */
static void stack_slice(struct stack_classes *c) {
    uint32_t at = 0;
    for (uint32_t i = STACK_CLASSES_ROOT; i != STACK_CLASSES_NONE; i = stack_classes_walk(c, i, false)) {
        c->nodes[i].first = at;
        at += c->nodes[i].n_here;
    }
}

static int stack_compare_classes(const void *a, const void *b, void *arg) {
    const struct stack_classes *c = arg;
    const struct stack_node *x = &c->nodes[*(const uint32_t *)a], *y = &c->nodes[*(const uint32_t *)b];
    if (x->n_here != y->n_here)
        return x->n_here < y->n_here ? -1 : 1;
    int32_t first = c->ranks[x->first], other = c->ranks[y->first];
    return (first > other) - (first < other);
}

static int stack_list_classes(struct stack_classes *c) {
    size_t n = 0;
    for (size_t i = 0; i < c->n_nodes; i++)
        n += c->nodes[i].n_here > 0;
    c->classes = malloc((n + 1) * sizeof *c->classes);
    if (!c->classes)
        return -1;
    for (size_t i = 0; i < c->n_nodes; i++)
        if (c->nodes[i].n_here > 0)
            c->classes[c->n_classes++] = (uint32_t)i;
    qsort_r(c->classes, n, sizeof *c->classes, stack_compare_classes, c);
    for (size_t i = 0; i < n; i++)
        c->nodes[c->classes[i]].class_number = (uint32_t)i;
    return 0;
}

/* The rank of an item of the list, and the node in which its stack ends. */
struct stack_end {
    int32_t rank;
    uint32_t input, node;
};

static int stack_compare_ranks(const void *a, const void *b) {
    const struct stack_end *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return (x->input > y->input) - (x->input < y->input);
}

static int stack_build(struct stack_classes *c, struct stack_files *files, const struct rank_stack *list,
                       size_t n, struct stack_end *ends) {
    if (grow_array(&c->nodes, sizeof *c->nodes, 1, &c->cap_nodes) != 0)
        return -1;
    c->nodes[c->n_nodes++] = (struct stack_node){.parent = STACK_CLASSES_NONE,
                                                 .child = STACK_CLASSES_NONE,
                                                 .next = STACK_CLASSES_NONE,
                                                 .func = "",
                                                 .file = "",
                                                 .class_number = STACK_CLASSES_NONE};
    if (table_add(&c->table, 0, STACK_CLASSES_ROOT) != 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        ends[i] = (struct stack_end){list[i].rank, (uint32_t)i, stack_put(c, files, &list[i])};
        if (ends[i].node == STACK_CLASSES_NONE)
            return -1;
        c->nodes[ends[i].node].n_here++;
    }
    for (size_t i = c->n_nodes; i-- > 0;) {
        c->nodes[i].n += c->nodes[i].n_here;
        if (i != STACK_CLASSES_ROOT)
            c->nodes[c->nodes[i].parent].n += c->nodes[i].n;
    }
    if (stack_link(c) != 0)
        return -1;
    stack_slice(c);
    qsort(ends, n, sizeof *ends, stack_compare_ranks);
    for (size_t i = 0; i < n; i++) {
        struct stack_node *node = &c->nodes[ends[i].node];
        /* `first` runs through the slice, and is put back below */
        c->inputs[node->first] = ends[i].input;
        c->ranks[node->first++] = ends[i].rank;
    }
    for (size_t i = 0; i < c->n_nodes; i++)
        c->nodes[i].first -= c->nodes[i].n_here;
    c->n_ranks = n;
    return stack_list_classes(c);
}

int stack_classes_build(struct stack_classes *c, const struct rank_stack *list, size_t n) {
    stack_classes_fini(c);
    struct stack_end *ends = malloc((n + 1) * sizeof *ends);
    struct stack_files files = {.n = 0};
    c->ranks = malloc((n + 1) * sizeof *c->ranks);
    c->inputs = malloc((n + 1) * sizeof *c->inputs);
    int rc =
        n < STACK_CLASSES_NONE && ends && c->ranks && c->inputs ? stack_build(c, &files, list, n, ends) : -1;
    free(ends);
    free(files.items);
    table_fini(&files.table);
    table_fini(&c->table);
    if (rc != 0)
        stack_classes_fini(c);
    return rc;
}

void stack_classes_fini(struct stack_classes *c) {
    free(c->nodes);
    free(c->classes);
    free(c->ranks);
    free(c->inputs);
    table_fini(&c->table);
    *c = (struct stack_classes){.n_nodes = 0};
}

static int stack_compare_numbers(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

int stack_classes_ranks(const struct stack_classes *c, uint32_t node, bool here, struct rank_set *out) {
    const struct stack_node *s = &c->nodes[node];
    size_t n = here ? s->n_here : s->n;
    int32_t *sorted = malloc((n + 1) * sizeof *sorted);
    int rc = sorted ? 0 : -1;
    if (sorted) {
        memcpy(sorted, c->ranks + s->first, n * sizeof *sorted);
        qsort(sorted, n, sizeof *sorted, stack_compare_numbers);
    }
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = rank_set_add(out, sorted[i], sorted[i]);
    free(sorted);
    return rc;
}

uint32_t stack_classes_line_end(const struct stack_classes *c, uint32_t node) {
    while (c->nodes[node].n_here == 0 && c->nodes[node].child != STACK_CLASSES_NONE &&
           c->nodes[c->nodes[node].child].next == STACK_CLASSES_NONE)
        node = c->nodes[node].child;
    return node;
}

uint32_t stack_classes_own(const struct stack_classes *c, uint32_t node) {
    uint32_t own = node;
    while (own != STACK_CLASSES_ROOT && !c->nodes[own].own)
        own = c->nodes[own].parent;
    return own == STACK_CLASSES_ROOT ? node : own;
}
