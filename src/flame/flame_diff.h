/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame_diff: compares two trees of calls: which node of the older tree matches a node of the
 * newer one, and which calls only the older tree has.
 *
 * Nodes match if the frames on the path to them have the same names, so the trees may be of one
 * store or of two. The result is kept until nodes are added. One thread.
 */
#ifndef FLAME_FLAME_DIFF_H
#define FLAME_FLAME_DIFF_H

#include <stddef.h>
#include <stdint.h>

#include "flame/flame.h"

struct flame_diff {
    struct flame *now, *before; /* owned by the caller */
    uint64_t now_identity, before_identity;
    size_t n_now, n_before; /* number of their nodes that were compared */
    uint32_t *match;        /* per node of `now`: the matching one of `before`; or FLAME_NO_NODE */
    size_t cap_match;
    uint32_t *back; /* per node of `before`: the matching one of `now` */
    size_t cap_back;
};

/* A callee that has time only in the older tree. */
struct flame_gone {
    uint32_t node; /* of `before` */
    double before_pct;
};

/* Match the nodes again; until one of the trees is updated, read them only together with this
 * result. `*d` is zeroed at first. 0, or -1 without memory: then nothing matches. */
int flame_diff_update(struct flame_diff *d, struct flame *now, struct flame *before);
void flame_diff_fini(struct flame_diff *d);

/* Shares of a node of `now`, in percent of each whole tree: 0 to 100; NAN if that tree is empty. */
double flame_diff_now(const struct flame_diff *d, uint32_t node);
double flame_diff_before(const struct flame_diff *d, uint32_t node);

/* The same for the node's own weight. */
double flame_diff_self_before(const struct flame_diff *d, uint32_t node);

/* Callees of a node of `now` that had time in the older tree and have none now, largest first;
 * at most `cap` of them. Returns their number. */
size_t flame_diff_gone(const struct flame_diff *d, uint32_t node, struct flame_gone *out, size_t cap);

#endif
