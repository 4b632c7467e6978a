/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame: a tree of calls: a node is a frame below its caller, with the time in it and below it.
 *
 * Whoever makes a tree says which node a stack ends in and what nodes are called; here nodes are found, added up, put in
 * order and walked. Callers have smaller numbers than their callees, and a node keeps its number. One thread.
 */
#ifndef FLAME_FLAME_H
#define FLAME_FLAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/model.h"
#include "flame/stack_counts.h"

#define FLAME_MAX_NODES ((size_t)1 << 19)
#define FLAME_ROOT 0U /* all of it */
#define FLAME_NO_NODE UINT32_MAX
#define FLAME_NO_FRAME UINT32_MAX

struct flame_weight {
    int64_t ns; /* time that the samples stand for; 0 too where it is not known */
    int64_t samples;
};

struct flame_node {
    uint32_t parent; /* FLAME_NO_NODE of the root */
    uint32_t child;  /* the first; FLAME_NO_NODE */
    uint32_t next;   /* sibling; FLAME_NO_NODE */
    uint32_t key;    /* tells it from its siblings; its maker's */
    uint32_t frame;  /* of the counts, that stands for it; FLAME_NO_FRAME */
    uint32_t stack;  /* of the counts, that ends here; its maker's */
    uint32_t depth;  /* of the root 0 */
    bool is_sorted;  /* its children are */
    struct flame_weight self, total;
};

/* What nodes are sorted by. Texts are borrowed, NULL is as "". */
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

/* An empty tree with its root, of frames of `counts`, which stay the caller's. 0, or -1 without memory. */
int flame_begin(struct flame *f, const struct stack_counts *counts, flame_name_fn name, const void *arg);

/* Forget all nodes. */
void flame_clear(struct flame *f);

/* The node `key` below `parent`, made when it is new (only then `frame` and `stack` count). FLAME_NO_NODE without memory, or
 * when there are FLAME_MAX_NODES. */
uint32_t flame_put_node(struct flame *f, uint32_t parent, uint32_t key, uint32_t frame, uint32_t stack);

/* Add to a node's own weight, and with `up` to the totals of it and of all above. */
void flame_add(struct flame *f, uint32_t node, struct flame_weight more, bool up);

/* All weights become 0; all totals become the sums of what is in them. */
void flame_clear_weights(struct flame *f);
void flame_sum(struct flame *f);

/* ---- reading ---- */

/* Another number than before: nodes are others now. */
uint64_t flame_identity(const struct flame *f);

size_t flame_count(const struct flame *f); /* nodes; 0: there is no tree */
const struct flame_node *flame_node(const struct flame *f, uint32_t node);

/* Function, file and line of a node, as far as its maker tells them apart. NULL: it has no frame. */
const struct model_frame *flame_frame(const struct flame *f, uint32_t node);

/* First of a node's children by name; `next` leads on. Without memory they stay in another order. */
uint32_t flame_first_child(struct flame *f, uint32_t node);

/* Order of two nodes by name, as children stand; of two trees maybe, made by the same. */
int flame_compare_nodes(const struct flame *f, uint32_t node, const struct flame *g, uint32_t other);

/* Callers before their callees, siblings by name: the node after `node` below `top`, or (`skip_callees`) the one after all
 * that it calls; FLAME_NO_NODE when there is none. */
uint32_t flame_walk(struct flame *f, uint32_t top, uint32_t node, bool skip_callees);

/* What widths are made of: time, or samples where no time is known. */
int64_t flame_amount(const struct flame *f, struct flame_weight w);

/* Is `above` the node itself or one of its callers? */
bool flame_is_above(const struct flame *f, uint32_t above, uint32_t node);

#endif
