/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack_classes: the stacks of many ranks merged: one tree of calls with the ranks that are in each,
 * and classes of ranks that stand at the same place. Pure.
 *
 * Two frames are one if their function and the end of their file's path are equal, and, in the job's own
 * code, their line: a thread that spins within a library stays in its class. The beginnings of paths
 * differ from host to host and do not count.
 *
 * The ranks of a node are a slice of one list, those of its callees within it, so a tree of 10,000
 * classes needs no sets. Texts are borrowed from the frames.
 */
#ifndef CLIENT_FLEET_STACK_CLASSES_H
#define CLIENT_FLEET_STACK_CLASSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/model.h"
#include "base/table.h"
#include "client/jobs/rank_set.h"

#define STACK_CLASSES_NONE UINT32_MAX
#define STACK_CLASSES_ROOT 0U
/* frames of a stack that count, from the outermost, and nodes: what is beyond belongs to its caller */
#define STACK_CLASSES_DEPTH 512
#define STACK_CLASSES_NODES ((size_t)1 << 20)

/* The stack of one rank. Without frames it ends at the root. */
struct rank_stack {
    int32_t rank;
    const struct model_frame *frames; /* innermost first */
    size_t n;
};

/* A frame below its caller. */
struct stack_node {
    /* the caller, the first callee and the next one of the same caller; STACK_CLASSES_NONE. Those
     * with most ranks are first */
    uint32_t parent, child, next;
    uint32_t depth;        /* 0: the root, which has no frame */
    const char *func;      /* "" unknown */
    const char *file;      /* the part of the path that counts; "" unknown */
    int line;              /* 0 outside the job's own code, or unknown */
    bool own;              /* the job's own code */
    uint32_t first, n;     /* its ranks, from `ranks` of the classes on; first those that end here */
    uint32_t n_here;       /* ranks whose stack ends here */
    uint32_t class_number; /* of those; STACK_CLASSES_NONE: no stack ends here */
    uint64_t id;           /* a hash of the frames down to here: the same for equal stacks everywhere */
};

struct stack_classes {
    struct stack_node *nodes; /* callers before their callees; the first is the root */
    size_t n_nodes, cap_nodes;
    uint32_t *classes; /* the nodes in which stacks end: the rarest first, then by their first rank */
    size_t n_classes;
    int32_t *ranks;   /* slices of the nodes; ascending within those that end in one node */
    uint32_t *inputs; /* the number in the list of each of these */
    size_t n_ranks;
    struct table table;
};

/* Merge the stacks of `n` ranks. What was merged before is replaced; a zeroed struct is empty. 0, or -1
 * without memory: then it is empty. */
int stack_classes_build(struct stack_classes *c, const struct rank_stack *list, size_t n);
void stack_classes_fini(struct stack_classes *c);

/* Put the ranks of a node into an empty set; with `here` those whose stack ends there. 0, or -1 without
 * memory. */
int stack_classes_ranks(const struct stack_classes *c, uint32_t node, bool here, struct rank_set *out);

/* The innermost frame of the job's own code of a stack that ends in a node; without one its innermost
 * frame. STACK_CLASSES_ROOT: it has no frame. */
uint32_t stack_classes_own(const struct stack_classes *c, uint32_t node);

/* The last node of a line of calls that all ranks of `node` have in common: from there on they part, or
 * some end. */
uint32_t stack_classes_line_end(const struct stack_classes *c, uint32_t node);

/* The next node in the order of a printed tree: after `node` its callees, unless `skip`. NONE at the end. */
uint32_t stack_classes_walk(const struct stack_classes *c, uint32_t node, bool skip);

/* The part of a file's path that is the same on all hosts: from the package or the standard library on,
 * else the last three names. Points into `path`. */
const char *stack_classes_file(const char *path);

/* A hash of such frames: stacks of one class have the same. */
uint64_t stack_classes_hash(const struct model_frame *frames, size_t n);

#endif
