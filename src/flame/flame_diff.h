/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame_diff: two trees of calls side by side: which node of the older one is the same calls as a node of the newer one,
 * and what only the older one has.
 *
 * Nodes are the same when the frames on the way to them say the same, so the trees may be of one store or of two. What was
 * found is kept as long as no nodes come. One thread.
 */
#ifndef FLAME_FLAME_DIFF_H
#define FLAME_FLAME_DIFF_H

#include <stddef.h>
#include <stdint.h>

#include "flame/flame.h"

struct flame_diff {
    struct flame *now, *before; /* the caller's */
    uint64_t now_identity, before_identity;
    size_t n_now, n_before; /* nodes of them that were looked at */
    uint32_t *match;        /* per node of `now`: the same of `before`; FLAME_NO_NODE */
    size_t cap_match;
    uint32_t *back; /* per node of `before`: the same of `now` */
    size_t cap_back;
};

/* Callees that only the older tree has time of. */
struct flame_gone {
    uint32_t node; /* of `before` */
    double before_pct;
};

/* Find again what is the same; the trees must be read with this only until one of them is updated. `*d` is zeroed at first.
 * 0, or -1 without memory: then nothing is the same. */
int flame_diff_update(struct flame_diff *d, struct flame *now, struct flame *before);
void flame_diff_fini(struct flame_diff *d);

/* Shares of a node of `now`, of all there is in each tree: 0 to 100; NAN: there is nothing at all in that tree. */
double flame_diff_now(const struct flame_diff *d, uint32_t node);
double flame_diff_before(const struct flame_diff *d, uint32_t node);

/* The same of what is in the node itself. */
double flame_diff_self_before(const struct flame_diff *d, uint32_t node);

/* Callees of a node of `now` that had time in the older tree and have none now, those with most time first; at most `cap`
 * of them. How many there are. */
size_t flame_diff_gone(const struct flame_diff *d, uint32_t node, struct flame_gone *out, size_t cap);

#endif
