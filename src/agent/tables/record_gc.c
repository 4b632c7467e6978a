/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_gc: the rows of python.gc; see record.h.
 *
 * The collector's own counters are read once a second; a row tells by how much those of a generation have grown since the last row of
 * it. So sums over rows are what gc.get_stats() says, and a collection is told once it has ended. While one goes on
 * the counters are left for the next second, a few times: they may be half written. While Python tells of each collection
 * (hooks.h) there is a row for each, and counters only tell of those that were not told. On the sampler's thread.
 */
#include <math.h>
#include <string.h>

#include "agent/tables/record.h"

#define RECORD_GC_LATE 2  /* looks at which one that was counted may not have been told yet */
#define RECORD_GC_WAITS 3 /* seconds: in a job that does nothing but collect garbage */

static const struct record_gc_seen *gc_find(const struct record_gc *gc, int64_t interpreter) {
    for (size_t i = 0; i < gc->n; i++)
        if (gc->seen[i].at.interpreter == interpreter)
            return &gc->seen[i];
    return NULL;
}

static bool gc_went_back(const struct pystack_gc *before, const struct pystack_gc *now) {
    for (size_t g = 0; g < PYSTACK_GENERATIONS; g++) {
        const struct pystack_gc_generation *b = &before->generations[g], *n = &now->generations[g];
        if (n->collections < b->collections || n->collected < b->collected ||
            n->uncollectable < b->uncollectable || n->duration_s < b->duration_s)
            return true;
    }
    return false;
}

static void gc_take_away(int64_t *from, int64_t n) { *from = *from > n ? *from - n : 0; }

/* What the counters have counted of a generation and nobody has told: then `out`, and `b` is as `n` is. False: it was all told, or
 * is still to be waited for. */
static bool gc_is_untold(struct record_gc_reported *t, bool told, struct pystack_gc_generation *b,
                         const struct pystack_gc_generation *n, struct pystack_gc_generation *out) {
    *out = (struct pystack_gc_generation){.collections = n->collections - b->collections,
                                          .collected = n->collected - b->collected,
                                          .uncollectable = n->uncollectable - b->uncollectable,
                                          .duration_s = n->duration_s - b->duration_s};
    bool more = out->collections > t->collections;
    if (more && told && ++t->waited < RECORD_GC_LATE)
        return false;
    struct record_gc_reported before = *t;
    t->waited = 0;
    gc_take_away(&t->collections, out->collections);
    gc_take_away(&t->collected, out->collected);
    gc_take_away(&t->uncollectable, out->uncollectable);
    t->duration_s = 0;
    gc_take_away(&out->collections, before.collections);
    gc_take_away(&out->collected, before.collected);
    gc_take_away(&out->uncollectable, before.uncollectable);
    out->duration_s = out->duration_s < before.duration_s ? 0 : out->duration_s - before.duration_s;
    *b = *n;
    return more;
}

void record_gc_event(struct record *r, const struct spans_gc *g, double begin_s, int64_t step) {
    union ring_value v[RING_GC_COUNT];
    v[RING_GC_TIMESTAMP].f = begin_s;
    v[RING_GC_GENERATION].i = g->generation;
    v[RING_GC_DURATION_MS].f = (double)g->duration_ns / 1e6;
    v[RING_GC_COLLECTED].i = g->collected < 0 ? RING_INT_NULL : g->collected;
    v[RING_GC_STEP].i = step;
    v[RING_GC_COLLECTIONS].i = 1;
    v[RING_GC_UNCOLLECTABLE].i = g->uncollectable < 0 ? RING_INT_NULL : g->uncollectable;
    record_append(r, RING_GC, v);
    if (g->generation < 0 || g->generation >= PYSTACK_GENERATIONS)
        return;
    struct record_gc_reported *t = &r->gc.told[g->generation];
    t->collections++;
    t->collected += g->collected > 0 ? g->collected : 0;
    t->uncollectable += g->uncollectable > 0 ? g->uncollectable : 0;
    t->duration_s += (double)g->duration_ns / 1e9;
}

/* A row for each generation that has had a collection; what was told is then `told`. */
static void gc_report(struct record *r, struct pystack_gc *told, const struct pystack_gc *now,
                      double timestamp) {
    for (size_t g = 0; g < PYSTACK_GENERATIONS; g++) {
        struct pystack_gc_generation *b = &told->generations[g], more;
        const struct pystack_gc_generation *n = &now->generations[g];
        struct record_gc_reported none = {.collections = 0};
        bool is_main = told->interpreter == 0;
        union ring_value v[RING_GC_COUNT];
        if (n->collections == b->collections ||
            !gc_is_untold(is_main ? &r->gc.told[g] : &none, is_main && r->hooks.gc, b, n, &more))
            continue;
        v[RING_GC_TIMESTAMP].f = timestamp;
        v[RING_GC_GENERATION].i = (int64_t)g;
        v[RING_GC_DURATION_MS].f = more.duration_s * 1e3;
        v[RING_GC_COLLECTED].i = more.collected;
        v[RING_GC_STEP].i = RING_INT_NULL;
        v[RING_GC_COLLECTIONS].i = more.collections;
        v[RING_GC_UNCOLLECTABLE].i = more.uncollectable;
        record_append(r, RING_GC, v);
    }
}

/* What was counted up to now is not told, for nobody knows when it happened. */
static void gc_begin(struct record_gc *gc, const struct pystack_gc *now, size_t n) {
    bool settled = true;
    for (size_t i = 0; i < n; i++)
        settled = settled && now[i].settled;
    if (!settled && gc->waited++ < RECORD_GC_WAITS)
        return;
    for (size_t i = 0; i < n; i++)
        gc->seen[i] = (struct record_gc_seen){.at = now[i]};
    memset(gc->told, 0, sizeof gc->told);
    gc->n = n;
    gc->begun = true;
}

void record_gc_counts(struct record *r, const struct pystack_gc *now, size_t n, double timestamp) {
    struct record_gc next = {.begun = true, .note = r->gc.note};
    if (!r->gc.begun) {
        gc_begin(&r->gc, now, n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const struct record_gc_seen *before = gc_find(&r->gc, now[i].interpreter);
        /* One that was not there has counted from 0 since the last look. */
        struct record_gc_seen *s = &next.seen[next.n++];
        *s = before ? *before : (struct record_gc_seen){.at = {.interpreter = now[i].interpreter}};
        for (size_t g = 0; !before && g < PYSTACK_GENERATIONS; g++)
            s->at.generations[g].duration_s = isnan(now[i].generations[g].duration_s) ? NAN : 0;
        if (!now[i].settled && s->waited++ < RECORD_GC_WAITS)
            continue;
        s->waited = 0;
        if (gc_went_back(&s->at, &now[i])) {
            s->at = now[i];
            memset(r->gc.told, 0, sizeof r->gc.told);
            next.note = "the garbage collector's counters went back: collections of that second are missing";
        } else {
            gc_report(r, &s->at, &now[i], timestamp);
        }
    }
    memcpy(next.told, r->gc.told, sizeof next.told);
    r->gc = next;
}

void record_gc(struct record *r, struct pystack *ps, double timestamp) {
    struct pystack_gc now[PYSTACK_MAX_COUNTERS];
    const char *why = NULL;
    ssize_t n = ps ? pystack_read_gc_stats(ps, now, &why) : 0;
    r->gc_objects = MODEL_UNKNOWN;
    for (ssize_t i = 0; i < n; i++)
        if (now[i].interpreter == 0)
            r->gc_objects = now[i].long_lived;
    if (!ps || why)
        r->gc = (struct record_gc){.note = why}; /* should it be known again, it is from then on */
    else if (n >= 0)
        record_gc_counts(r, now, (size_t)n, timestamp);
}
