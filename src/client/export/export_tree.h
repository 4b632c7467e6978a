/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export_tree: the samples of an export as one tree of calls: the same frame below the same caller once, with what all
 * threads spent there.
 *
 * Made of a fold, as it is written down: by line or by function, with a frame for the process and the thread where the
 * request has them. Siblings are in the order of their names. Pure; allocates; one thread.
 */
#ifndef CLIENT_EXPORT_EXPORT_TREE_H
#define CLIENT_EXPORT_EXPORT_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/model.h"
#include "client/export/export.h"

#define EXPORT_TREE_ROOT 0U
#define EXPORT_TREE_NONE UINT32_MAX

struct export_node {
    uint32_t parent; /* EXPORT_TREE_NONE of the root; smaller than the node's own number */
    uint32_t child, next;
    uint32_t depth;
    const struct model_frame
        *frame;         /* of the fold; NULL of the root, a process, a thread and what has no frame */
    char *name;         /* as a line of the folded export has it; owned */
    double self, total; /* in the unit of the tree */
};

struct export_tree {
    struct export_node *nodes;
    size_t n, cap;
    size_t bytes;    /* of nodes and names, so far */
    size_t steps;    /* frames of all stacks, so far */
    uint32_t *slots; /* number + 1, by parent and name */
    size_t n_slots;
    bool in_us;     /* weights are microseconds; else samples */
    size_t threads; /* that have samples */
    double
        frameless; /* weight of threads without a Python frame, where no frame of a thread could stand for it */
};

/* 0, or -1 without memory. export_tree_fini frees, on failure too. */
int export_tree_build(struct export_tree *t, const struct export_data *data);

/* Callers before their callees, siblings by name: the node after `node`, or (`skip_callees`) the one after all that it calls;
 * EXPORT_TREE_NONE at the end. */
uint32_t export_tree_next(const struct export_tree *t, uint32_t node, bool skip_callees);
void export_tree_fini(struct export_tree *t);

#endif
