/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame_diff: see flame_diff.h. Callers have smaller numbers than their callees, and callees are
 * sorted by name: so one pass over the nodes finds all pairs, merging the callees of each.
 */
#include "flame/flame_diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

void flame_diff_fini(struct flame_diff *d) {
    free(d->match);
    free(d->back);
    memset(d, 0, sizeof *d);
}

static void flame_diff_pair(struct flame_diff *d, uint32_t node, uint32_t other) {
    d->match[node] = other;
    d->back[other] = node;
}

/* Pair the callees of two matching nodes. */
static void flame_diff_merge(struct flame_diff *d, uint32_t node, uint32_t other) {
    uint32_t a = flame_first_child(d->now, node), b = flame_first_child(d->before, other);
    while (a != FLAME_NO_NODE && b != FLAME_NO_NODE) {
        int order = flame_compare_nodes(d->now, a, d->before, b);
        if (order == 0)
            flame_diff_pair(d, a, b);
        a = order <= 0 ? flame_node(d->now, a)->next : a;
        b = order >= 0 ? flame_node(d->before, b)->next : b;
    }
}

static bool flame_diff_is_known(const struct flame_diff *d, const struct flame *now,
                                const struct flame *before) {
    return d->now == now && d->before == before && d->now_identity == flame_identity(now) &&
           d->before_identity == flame_identity(before) && d->n_now == flame_count(now) &&
           d->n_before == flame_count(before);
}

int flame_diff_update(struct flame_diff *d, struct flame *now, struct flame *before) {
    if (flame_diff_is_known(d, now, before))
        return 0;
    size_t n_now = flame_count(now), n_before = flame_count(before);
    if (grow_array(&d->match, sizeof *d->match, n_now + 1, &d->cap_match) != 0 ||
        grow_array(&d->back, sizeof *d->back, n_before + 1, &d->cap_back) != 0) {
        flame_diff_fini(d);
        return -1;
    }
    d->now = now;
    d->before = before;
    d->now_identity = flame_identity(now);
    d->before_identity = flame_identity(before);
    d->n_now = n_now;
    d->n_before = n_before;
    for (size_t i = 0; i < n_now; i++)
        d->match[i] = FLAME_NO_NODE;
    for (size_t i = 0; i < n_before; i++)
        d->back[i] = FLAME_NO_NODE;
    if (n_now && n_before)
        flame_diff_pair(d, FLAME_ROOT, FLAME_ROOT);
    for (uint32_t i = 0; i < n_now; i++)
        if (d->match[i] != FLAME_NO_NODE)
            flame_diff_merge(d, i, d->match[i]);
    return 0;
}

/* A weight as a percentage of the whole tree. */
static double flame_diff_share(const struct flame *f, struct flame_weight part) {
    int64_t all = flame_count(f) ? flame_amount(f, flame_node(f, FLAME_ROOT)->total) : 0;
    return all > 0 ? (double)flame_amount(f, part) / (double)all * 100 : NAN;
}

double flame_diff_now(const struct flame_diff *d, uint32_t node) {
    return node < d->n_now ? flame_diff_share(d->now, flame_node(d->now, node)->total) : NAN;
}

static double flame_diff_of_before(const struct flame_diff *d, uint32_t node, bool self) {
    uint32_t other = node < d->n_now ? d->match[node] : FLAME_NO_NODE;
    if (!d->before)
        return NAN;
    if (other == FLAME_NO_NODE)
        return flame_diff_share(d->before, (struct flame_weight){0, 0});
    const struct flame_node *n = flame_node(d->before, other);
    return flame_diff_share(d->before, self ? n->self : n->total);
}

double flame_diff_before(const struct flame_diff *d, uint32_t node) {
    return flame_diff_of_before(d, node, false);
}

double flame_diff_self_before(const struct flame_diff *d, uint32_t node) {
    return flame_diff_of_before(d, node, true);
}

size_t flame_diff_gone(const struct flame_diff *d, uint32_t node, struct flame_gone *out, size_t cap) {
    uint32_t other = node < d->n_now ? d->match[node] : FLAME_NO_NODE;
    size_t n = 0, kept = 0;
    if (other == FLAME_NO_NODE)
        return 0;
    for (uint32_t c = flame_first_child(d->before, other); c != FLAME_NO_NODE;
         c = flame_node(d->before, c)->next) {
        const struct flame_node *callee = flame_node(d->before, c);
        uint32_t same = d->back[c];
        bool is_gone = flame_amount(d->before, callee->total) > 0 &&
                       (same == FLAME_NO_NODE || flame_amount(d->now, flame_node(d->now, same)->total) <= 0);
        if (!is_gone)
            continue;
        struct flame_gone g = {c, flame_diff_share(d->before, callee->total)};
        size_t at = kept;
        for (; at > 0 && out[at - 1].before_pct < g.before_pct; at--)
            if (at < cap)
                out[at] = out[at - 1];
        if (at < cap)
            out[at] = g;
        kept += kept < cap;
        n++;
    }
    return n;
}
