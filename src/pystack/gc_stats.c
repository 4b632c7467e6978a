/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gc_stats: the counters of CPython's garbage collector: collections and what they freed, per
 * generation.
 *
 * Source: struct gc_generation_stats and gc_stats (Modules/gcmodule.c up to 3.6,
 * Include/internal/pycore_gc.h and others, from 3.14 on pycore_interp_structs.h). The collector
 * writes them at the end of a collection, without a lock: they are read twice, together with
 * whether a collection is under way. Impossible counts are refused. On the thread that owns the
 * pystack.
 */
#include "pystack/pystack_internal.h"

#include <math.h>

#define GC_STATS_TRIES 4
#define GC_STATS_BYTES 2048
#define GC_STATS_COUNT_MAX ((int64_t)1 << 48)
#define GC_STATS_DURATION_MAX 1e9
/* after a generation's items: index of the latest, which only writers need */
#define GC_STATS_TAIL 8

/* Address of the counters, or of the pointer to them; 0 unknown. */
static uint64_t gc_stats_at(const struct pystack *ps, uint64_t interp) {
    const struct pystack_offsets *o = &ps->reader.off;
    if (o->gc_item_size == 0)
        return 0;
    switch ((enum pystack_gc_place)o->gc_place) {
    case PYSTACK_GC_INTERPRETER:
        return interp + (uint64_t)o->gc_stats;
    case PYSTACK_GC_RUNTIME:
        return ps->info.runtime + (uint64_t)o->gc_stats;
    case PYSTACK_GC_STATIC:
        break;
    }
    return ps->static_gc_stats;
}

/* Copy them when two readings are equal. Returns bytes, or 0. */
static size_t gc_stats_copy(struct pystack *ps, uint64_t at, uint8_t *bytes) {
    const struct pystack_offsets *o = &ps->reader.off;
    size_t n = (size_t)(o->gc_stats_size ? o->gc_stats_size : PYSTACK_GENERATIONS * o->gc_item_size);
    uint8_t again[GC_STATS_BYTES];
    if (n > GC_STATS_BYTES || (o->gc_stats_size && (mem_read_u64(&ps->reader.mem, at, &at) != 0 || !at)))
        return 0;
    for (int i = 0; i < GC_STATS_TRIES; i++)
        if (mem_read(&ps->reader.mem, at, bytes, n) == 0 && mem_read(&ps->reader.mem, at, again, n) == 0 &&
            memcmp(bytes, again, n) == 0)
            return n;
    return 0;
}

static int64_t gc_stats_get(const uint8_t *bytes, size_t at) {
    return (int64_t)pystack_get_u64(bytes, (int32_t)at);
}

/* One item. 0, or -1 if it is impossible. */
static int gc_stats_item(const struct pystack_offsets *o, const uint8_t *bytes, size_t at,
                         struct pystack_gc_generation *out) {
    size_t counts = at + (size_t)o->gc_item_collections;
    out->collections = gc_stats_get(bytes, counts);
    out->collected = gc_stats_get(bytes, counts + 8);
    out->uncollectable = gc_stats_get(bytes, counts + 16);
    out->duration_s = NAN;
    if (o->gc_item_duration) {
        memcpy(&out->duration_s, bytes + at + o->gc_item_duration, sizeof out->duration_s);
        if (!(out->duration_s >= 0 && out->duration_s < GC_STATS_DURATION_MAX))
            return -1;
    }
    return out->collections >= 0 && out->collections < GC_STATS_COUNT_MAX && out->collected >= 0 &&
                   out->collected < GC_STATS_COUNT_MAX && out->uncollectable >= 0 &&
                   out->uncollectable < GC_STATS_COUNT_MAX
               ? 0
               : -1;
}

/* The latest item of each generation. 0 or -1. */
static int gc_stats_parse(const struct pystack_offsets *o, const uint8_t *bytes, size_t n,
                          struct pystack_gc *out) {
    size_t at = 0, size = (size_t)o->gc_item_size;
    for (size_t g = 0; g < PYSTACK_GENERATIONS; g++) {
        size_t items = o->gc_stats_size == 0 ? 1 : (size_t)(g == 0 ? o->gc_young_items : o->gc_old_items);
        size_t tail = o->gc_stats_size == 0 ? 0 : GC_STATS_TAIL;
        if (items == 0 || items * size + tail > n - at)
            return -1;
        for (size_t i = 0; i < items; i++) {
            struct pystack_gc_generation item;
            if (gc_stats_item(o, bytes, at + i * size, &item) != 0)
                return -1;
            if (i == 0 || item.collections > out->generations[g].collections)
                out->generations[g] = item;
        }
        at += items * size + tail;
    }
    return 0;
}

/* Objects left by the last full collection; 0 before the first. `stats`: address of the
 * counters. */
static int64_t gc_stats_long_lived(struct pystack *ps, uint64_t stats) {
    const struct pystack_offsets *o = &ps->reader.off;
    uint64_t n;
    if (!o->gc_long_lived ||
        mem_read_u64(&ps->reader.mem, stats + (uint64_t)(o->gc_long_lived - o->gc_stats), &n) != 0)
        return MODEL_UNKNOWN;
    return n > 0 && n < GC_STATS_COUNT_MAX ? (int64_t)n : MODEL_UNKNOWN;
}

struct gc_stats_list {
    struct pystack_gc *items;
    size_t n;
    const char *why;
};

static int gc_stats_read(struct pystack *ps, uint64_t interp, int64_t id, void *arg) {
    struct gc_stats_list *l = arg;
    uint8_t bytes[GC_STATS_BYTES];
    uint64_t at = gc_stats_at(ps, interp);
    if (!at) {
        l->why = "where this Python counts garbage collections is unknown";
        return 1;
    }
    if (l->n == PYSTACK_MAX_COUNTERS) {
        l->why = "there are too many interpreters to read what their garbage collectors count";
        return 1;
    }
    struct pystack_gc *out = &l->items[l->n];
    int8_t before = pystack_read_collecting(ps, interp);
    size_t n = gc_stats_copy(ps, at, bytes);
    *out = (struct pystack_gc){.interpreter = id, .long_lived = gc_stats_long_lived(ps, at)};
    if (n == 0)
        return -1;
    if (gc_stats_parse(&ps->reader.off, bytes, n, out) != 0) {
        l->why = "the garbage collector's counters are implausible";
        return 1;
    }
    out->settled = before == 0 && pystack_read_collecting(ps, interp) == 0;
    l->n++;
    return 0;
}

ssize_t pystack_read_gc_stats(struct pystack *ps, struct pystack_gc *out, const char **why) {
    struct gc_stats_list l = {.items = out};
    int rc = ps->reader.off.gc_place == PYSTACK_GC_INTERPRETER
                 ? pystack_each_interpreter(ps, gc_stats_read, &l)
                 : gc_stats_read(ps, 0, 0, &l);
    *why = l.why;
    return rc == 0 ? (ssize_t)l.n : -1;
}
