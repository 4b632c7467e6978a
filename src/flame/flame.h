/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame: a tree of calls: a node is a frame below its caller, with the time in it and below it.
 *
 * The maker of a tree decides which node a stack ends in and how nodes are named; this file
 * finds, sums, sorts and walks the nodes. Callers have smaller numbers than their callees, and a
 * node keeps its number. One thread.
 */
#ifndef FLAME_FLAME_H
#define FLAME_FLAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/model.h"
#include "flame/stack_counts.h"

#define FLAME_MAX_NODES ((size_t)1 << 19)
#define FLAME_ROOT 0U /* the whole tree */
#define FLAME_NO_NODE UINT32_MAX
#define FLAME_NO_FRAME UINT32_MAX

struct flame_weight {
    int64_t ns; /* time that the samples stand for; 0 if unknown */
    int64_t samples;
};

struct flame_node {
    uint32_t parent; /* FLAME_NO_NODE for the root */
    uint32_t child;  /* the first; or FLAME_NO_NODE */
    uint32_t next;   /* sibling; or FLAME_NO_NODE */
    uint32_t key;    /* distinguishes it from its siblings; set by the maker of the tree */
    uint32_t frame;  /* the frame of the counts that it stands for; or FLAME_NO_FRAME */
    uint32_t stack;  /* the stack of the counts that ends here; set by the maker of the tree */
    uint32_t depth;  /* 0 for the root */
    bool is_sorted;  /* its children are sorted */
    struct flame_weight self, total;
};

/* The sort key of a node. Texts are borrowed, NULL is the same as "". */
struct flame_name {
    const char *first, *second;
    int line;
};

struct flame;

/* The name of a node, for `arg` of flame_begin. */
typedef struct flame_name (*flame_name_fn)(const void *arg, const struct flame *f, uint32_t node);

struct flame *flame_new(void); /* NULL without memory */
void flame_free(struct flame *f);

/* ---- making one ---- */

/* Begin an empty tree with its root, for frames of `counts`, which the caller owns. 0, or -1
 * without memory. */
int flame_begin(struct flame *f, const struct stack_counts *counts, flame_name_fn name, const void *arg);

/* Remove all nodes. */
void flame_clear(struct flame *f);

/* The node `key` below `parent`; a new one is made with `frame` and `stack`. FLAME_NO_NODE
 * without memory, or at FLAME_MAX_NODES. */
uint32_t flame_put_node(struct flame *f, uint32_t parent, uint32_t key, uint32_t frame, uint32_t stack);

/* Add to a node's own weight, and with `up` to the totals of the node and all its callers. */
void flame_add(struct flame *f, uint32_t node, struct flame_weight more, bool up);

/* Set all weights to 0; compute all totals from the nodes' own weights. */
void flame_clear_weights(struct flame *f);
void flame_sum(struct flame *f);

/* ---- reading ---- */

/* A number that changes when the nodes of the tree are replaced. */
uint64_t flame_identity(const struct flame *f);

size_t flame_count(const struct flame *f); /* nodes; 0: there is no tree */
const struct flame_node *flame_node(const struct flame *f, uint32_t node);

/* Function, file and line of a node, as far as the maker of the tree distinguishes them. NULL if
 * it has no frame. */
const struct model_frame *flame_frame(const struct flame *f, uint32_t node);

/* First of a node's children by name; `next` leads to the others. Without memory they are not
 * sorted. */
uint32_t flame_first_child(struct flame *f, uint32_t node);

/* Compare two nodes by name, in the order of children. They may be of two trees with the same
 * maker. */
int flame_compare_nodes(const struct flame *f, uint32_t node, const struct flame *g, uint32_t other);

/* Callers before their callees, siblings by name: the node after `node` below `top`, or with
 * `skip_callees` the one after all its callees. FLAME_NO_NODE at the end. */
uint32_t flame_walk(struct flame *f, uint32_t top, uint32_t node, bool skip_callees);

/* The amount that widths are computed from: time, or samples if no time is known. */
int64_t flame_amount(const struct flame *f, struct flame_weight w);

/* True if `above` is the node itself or one of its callers. */
bool flame_is_above(const struct flame *f, uint32_t above, uint32_t node);

#endif
