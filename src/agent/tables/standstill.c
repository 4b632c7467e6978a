/* SPDX-License-Identifier: Apache-2.0 */
/* standstill: see standstill.h. */
#include "agent/tables/standstill.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "store/ring/ring_tables.h"

#define STANDSTILL_NS (2 * CLOCK_NS_PER_S) /* a thread that has not run for so long waits */
#define STANDSTILL_REPEAT_NS (60 * CLOCK_NS_PER_S)
#define STANDSTILL_PCT 0.03 /* of a core, at most */

/* Of the column "holder". */
enum standstill_holder { STANDSTILL_SURE = 0, STANDSTILL_LIKELY, STANDSTILL_PERHAPS };

void standstill_fini(struct standstill *w) {
    free(w->threads);
    *w = (struct standstill){.n = 0};
}

size_t standstill_bytes(const struct standstill *w) { return w->n * sizeof *w->threads; }

void standstill_take(struct standstill *w, const struct collect_thread *threads, size_t n, uint64_t now_ns) {
    struct standstill_thread *now = calloc(n + 1, sizeof *now);
    size_t from = 0;
    for (size_t i = 0; now && i < n; i++) {
        while (from < w->n && w->threads[from].tid < threads[i].tid)
            from++;
        const struct standstill_thread *before =
            from < w->n && w->threads[from].tid == threads[i].tid ? &w->threads[from] : NULL;
        if (before && before->cpu_ns == threads[i].cpu_ns)
            now[i] = *before;
        else
            now[i] = (struct standstill_thread){
                .tid = threads[i].tid, .cpu_ns = threads[i].cpu_ns, .still_ns = now_ns};
    }
    free(w->threads);
    w->threads = now;
    w->n = now ? n : 0;
}

static bool standstill_stands(const struct standstill_thread *t, uint64_t now_ns) {
    return t->cpu_ns > 0 && now_ns - t->still_ns >= STANDSTILL_NS;
}

bool standstill_is_due(const struct standstill *w, uint64_t now_ns) {
    bool again = now_ns - w->looked_ns >= STANDSTILL_REPEAT_NS;
    if (now_ns < w->due_ns)
        return false;
    for (size_t i = 0; i < w->n; i++)
        if (standstill_stands(&w->threads[i], now_ns) && (again || !w->threads[i].looked))
            return true;
    return false;
}

static int standstill_compare(const void *key, const void *at) {
    pid_t tid = *(const pid_t *)key, other = ((const struct standstill_thread *)at)->tid;
    return (tid > other) - (tid < other);
}

/* What a row says, but for its times; not 0. */
static uint64_t standstill_hash(const struct model_wait *w) {
    uint64_t hash = hash_mix(w->tid << 8 ^ (uint64_t)w->kind ^ (uint64_t)w->flags << 40) ^ hash_mix(w->pid);
    if (w->what)
        hash ^= hash_bytes(w->what, strlen(w->what));
    if (w->detail)
        hash ^= hash_mix(hash_bytes(w->detail, strlen(w->detail)));
    return hash ? hash : 1;
}

static void standstill_fill(union ring_value *v, const struct model_thread *t, double timestamp) {
    const struct model_wait *w = &t->wait;
    v[RING_WAITS_TIMESTAMP].f = timestamp;
    v[RING_WAITS_TID].i = t->tid;
    v[RING_WAITS_THREAD].s = t->name ? t->name : t->native_name;
    v[RING_WAITS_KIND].s = model_wait_kind_name(w->kind);
    v[RING_WAITS_WHAT].s = w->what;
    v[RING_WAITS_DETAIL].s = w->detail;
    v[RING_WAITS_WAITS_TID].i = w->tid ? (int64_t)w->tid : RING_INT_NULL;
    v[RING_WAITS_HOLDER].i = !w->tid                         ? RING_INT_NULL
                             : w->flags & MODEL_WAIT_GUESSED ? STANDSTILL_PERHAPS
                             : w->flags & MODEL_WAIT_LIKELY  ? STANDSTILL_LIKELY
                                                             : STANDSTILL_SURE;
    v[RING_WAITS_WAITS_PID].i = w->pid ? (int64_t)w->pid : RING_INT_NULL;
    v[RING_WAITS_GIVES_UP].i = (w->flags & MODEL_WAIT_TIMED) != 0;
    v[RING_WAITS_WAITS_S].f = (double)w->for_us / 1e6;
    v[RING_WAITS_DEADLOCK].i = (w->flags & MODEL_WAIT_DEADLOCK) != 0;
}

void standstill_put_rows(struct standstill *w, const struct model_snapshot *s, uint64_t now_ns, bool again,
                         void (*put)(void *arg, const union ring_value *row), void *arg) {
    for (size_t i = 0; i < w->n; i++)
        w->threads[i].looked = w->threads[i].looked || standstill_stands(&w->threads[i], now_ns);
    for (size_t i = 0; i < s->n_threads; i++) {
        const struct model_thread *t = &s->threads[i];
        pid_t tid = (pid_t)t->tid;
        struct standstill_thread *known =
            w->n ? bsearch(&tid, w->threads, w->n, sizeof *w->threads, standstill_compare) : NULL;
        if (!known || !standstill_stands(known, now_ns) || !model_wait_is_known(&t->wait))
            continue;
        uint64_t hash = standstill_hash(&t->wait);
        if (hash == known->written && !again)
            continue;
        union ring_value v[RING_WAITS_COUNT];
        standstill_fill(v, t, s->timestamp);
        /* it has not run since its clock was found to stand */
        v[RING_WAITS_WAITS_S].f = fmax(v[RING_WAITS_WAITS_S].f, (double)(now_ns - known->still_ns) / 1e9);
        put(arg, v);
        known->written = hash;
    }
}

void standstill_read(struct standstill *w, struct pystack *ps, const int64_t *skip, size_t n_skip,
                     uint64_t now_ns, void (*put)(void *arg, const union ring_value *row), void *arg) {
    struct model_snapshot s;
    struct err ignored;
    bool stretched, again = now_ns - w->looked_ns >= STANDSTILL_REPEAT_NS;
    uint64_t cpu = clock_self_cpu_ns();
    if (pystack_snapshot(ps, skip, n_skip, &s, &ignored) == 0) {
        /* one that has run meanwhile waits for something else */
        for (size_t i = 0; i < w->n; i++)
            if (standstill_stands(&w->threads[i], now_ns) &&
                clock_thread_cpu_ns(w->threads[i].tid) != w->threads[i].cpu_ns)
                w->threads[i].cpu_ns = 0;
        standstill_put_rows(w, &s, now_ns, again, put, arg);
    }
    model_snapshot_fini(&s);
    w->looked_ns = again ? now_ns : w->looked_ns;
    cost_add(&w->cost, clock_self_cpu_ns() - cpu);
    w->due_ns = now_ns + cost_interval_ns(&w->cost, CLOCK_NS_PER_S / 2, STANDSTILL_PCT, &stretched);
}
