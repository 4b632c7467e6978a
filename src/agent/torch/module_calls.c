/* SPDX-License-Identifier: Apache-2.0 */
/* module_calls: see module_calls.h. */
#include "agent/torch/module_calls.h"

#include <stdlib.h>
#include <string.h>

#define MODULE_CALLS_HASH ((size_t)4 * MODULE_CALLS_SUMS) /* a power of two */

void module_calls_clear(struct module_calls *c) { c->n = c->lost = c->depth = c->n_passes = c->own_ns = 0; }

static struct module_time module_calls_now(const struct module_calls *c, uint64_t ns) {
    return (struct module_time){.ns = ns, .own_ns = c->own_ns};
}

static struct module_call *module_calls_at(struct module_calls *c, int32_t call) {
    return call >= 0 && (size_t)call < c->n ? &c->calls[call] : NULL;
}

int32_t module_calls_begin(struct module_calls *c, uint64_t module, uint64_t type, uint64_t ns) {
    if (c->n == MODULE_CALLS_MAX || c->depth == MODULE_CALLS_DEPTH) {
        c->lost++;
        return -1;
    }
    int32_t call = (int32_t)c->n++;
    c->calls[call] = (struct module_call){.module = module,
                                          .type = type,
                                          .begin = module_calls_now(c, ns),
                                          .bytes = -1,
                                          .parent = c->depth ? c->stack[c->depth - 1] : -1};
    c->stack[c->depth++] = call;
    return call;
}

int32_t module_calls_end(struct module_calls *c, uint64_t module, uint64_t ns) {
    for (size_t i = c->depth; i-- > 0;) {
        if (c->calls[c->stack[i]].module != module)
            continue;
        c->depth = i;
        c->calls[c->stack[i]].end = module_calls_now(c, ns);
        return c->stack[i];
    }
    return -1;
}

void module_calls_back_begin(struct module_calls *c, int32_t call, uint64_t ns) {
    struct module_call *k = module_calls_at(c, call);
    if (k && !k->back_begin.ns)
        k->back_begin = module_calls_now(c, ns);
}

void module_calls_back_end(struct module_calls *c, int32_t call, uint64_t ns) {
    struct module_call *k = module_calls_at(c, call);
    if (k)
        k->back_end = module_calls_now(c, ns);
}

void module_calls_own(struct module_calls *c, uint64_t ns) { c->own_ns += ns; }

/* ---- results ---- */

static int module_calls_compare(const void *a, const void *b) {
    const struct module_call *x = *(struct module_call *const *)a, *y = *(struct module_call *const *)b;
    if (x->back_begin.ns != y->back_begin.ns)
        return (x->back_begin.ns > y->back_begin.ns) - (x->back_begin.ns < y->back_begin.ns);
    return (x > y) - (x < y); /* the outer one first */
}

static bool module_calls_is_within(const struct module_calls *c, const struct module_call *k,
                                   const struct module_call *outer) {
    int32_t parent = k->parent;
    while (parent >= 0 && &c->calls[parent] != outer)
        parent = c->calls[parent].parent;
    return parent >= 0;
}

void module_calls_pass(struct module_calls *c, uint64_t ns) {
    if (c->n_passes < MODULE_CALLS_PASSES)
        c->passes[c->n_passes++] = module_calls_now(c, ns);
}

/* The end of the pass that was in progress at `ns`; zeros if unknown. */
static struct module_time module_calls_pass_end(const struct module_calls *c, uint64_t ns) {
    for (size_t i = 0; i < c->n_passes; i++)
        if (c->passes[i].ns > ns)
            return c->passes[i];
    return (struct module_time){.ns = 0};
}

bool module_calls_finish(struct module_calls *c) {
    struct module_call **order = calloc(c->n ? c->n : 1, sizeof(struct module_call *));
    size_t n = 0;
    if (!order)
        return false;
    for (size_t i = 0; i < c->n; i++)
        if (c->calls[i].back_begin.ns)
            order[n++] = &c->calls[i];
    qsort(order, n, sizeof(struct module_call *), module_calls_compare);
    for (size_t i = 0; i < n; i++) {
        struct module_call *k = order[i];
        struct module_time last = module_calls_pass_end(c, k->back_begin.ns);
        size_t next = i + 1;
        while (next < n &&
               (module_calls_is_within(c, order[next], k) || module_calls_is_within(c, k, order[next])))
            next++;
        if (next < n && (!last.ns || order[next]->back_begin.ns < last.ns))
            last = order[next]->back_begin;
        if (last.ns && (!k->back_end.ns || k->back_end.ns > last.ns))
            k->back_end = last;
    }
    free(order);
    return true;
}

static uint64_t module_calls_time(struct module_time from, struct module_time to) {
    uint64_t own = to.own_ns - from.own_ns, ns = to.ns > from.ns ? to.ns - from.ns : 0;
    return ns > own ? ns - own : 0;
}

static void module_calls_add(struct module_sum *s, const struct module_call *k) {
    if (!k->end.ns)
        return;
    s->bytes = k->bytes < 0 || (s->bytes < 0 && s->calls) ? -1 : (s->calls ? s->bytes : 0) + k->bytes;
    s->calls++;
    s->forward_ns += module_calls_time(k->begin, k->end);
    if (!k->back_begin.ns || k->back_end.ns <= k->back_begin.ns)
        return;
    s->backwards++;
    s->backward_ns += module_calls_time(k->back_begin, k->back_end);
}

size_t module_calls_sum(const struct module_calls *c, struct module_sum *out, size_t cap) {
    /* index of the sum, and one; only one thread calls this */
    static uint16_t places[MODULE_CALLS_HASH];
    size_t n = 0;
    memset(places, 0, sizeof places);
    for (size_t i = 0; i < c->n; i++) {
        const struct module_call *k = &c->calls[i];
        size_t at = (size_t)(k->module * 0x9e3779b97f4a7c15ULL >> 40) % MODULE_CALLS_HASH;
        while (places[at] && out[places[at] - 1].module != k->module)
            at = (at + 1) % MODULE_CALLS_HASH;
        if (!places[at] && (n == cap || n == MODULE_CALLS_SUMS))
            continue;
        if (!places[at]) {
            out[n] = (struct module_sum){.module = k->module, .type = k->type, .bytes = -1};
            places[at] = (uint16_t)++n;
        }
        module_calls_add(&out[places[at] - 1], k);
    }
    return n;
}
