/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_loaders: the rows of python.loaders; see record.h. Iterators of DataLoaders are read from memory (pystack/loaders.h),
 * those that are known each second; what waiting for batches took is known from torch's own operations (steps.h).
 */
#include <math.h>
#include <string.h>

#include "agent/tables/record.h"
#include "base/clock.h"

#define RECORD_FIND_NS (5 * CLOCK_NS_PER_S) /* between two searches, when some are known */
#define RECORD_LOADER_MANY "enumerate(DataLoader)#_MultiProcessing"

void record_loaders_span(struct record *r, const struct steps_span *s) {
    bool many = strncmp(s->name, RECORD_LOADER_MANY, sizeof RECORD_LOADER_MANY - 1) == 0;
    struct record_waits *w = &r->loaders.waits[many];
    w->ns += s->end_ns - s->begin_ns;
    w->n++;
    r->loaders.used = true;
}

/* Is it time to look for more? In a job in which torch tells its operations and none was of a loader there is nothing to be found. */
static bool loaders_is_due(const struct record *r, uint64_t now_ns) {
    const struct record_loaders *l = &r->loaders;
    if (!r->facts.torch[0] || (r->steps.told && !l->used))
        return false;
    return (l->n == 0 && l->used) || now_ns - l->found_ns >= RECORD_FIND_NS;
}

static void loaders_find(struct record_loaders *l, struct pystack *ps) {
    uint64_t addrs[PYSTACK_LOADERS];
    ssize_t n = pystack_find_loaders(ps, addrs);
    for (ssize_t i = 0; i < n; i++) {
        size_t k = 0;
        while (k < l->n && l->known[k].addr != addrs[i])
            k++;
        if (k == l->n && l->n < PYSTACK_LOADERS)
            l->known[l->n++] = (struct record_loader){.addr = addrs[i], .yielded = MODEL_UNKNOWN};
    }
}

static int64_t loaders_known(int64_t v) { return v < 0 ? RING_INT_NULL : v; }

static void loaders_put(struct record *r, struct record_loader *known, const struct pystack_loader *l,
                        size_t alike) {
    union ring_value v[RING_LOADERS_COUNT];
    const struct record_waits *w = &r->loaders.waits[l->processes];
    int64_t batches = known->yielded < 0 ? MODEL_UNKNOWN : l->yielded - known->yielded;
    v[RING_LOADERS_TIMESTAMP].f = clock_epoch_s();
    v[RING_LOADERS_LOADER].i = (int64_t)l->addr;
    v[RING_LOADERS_WORKERS].i = loaders_known(l->workers);
    v[RING_LOADERS_PREFETCH].i = loaders_known(l->prefetch);
    v[RING_LOADERS_OUTSTANDING].i = loaders_known(l->outstanding);
    v[RING_LOADERS_READY].i = loaders_known(l->ready);
    v[RING_LOADERS_SENT].i = loaders_known(l->sent);
    v[RING_LOADERS_RECEIVED].i = loaders_known(l->received);
    v[RING_LOADERS_WAIT_MS].f = alike == 1 && w->n ? (double)w->ns / (double)w->n / 1e6 : NAN;
    v[RING_LOADERS_BATCHES].i = loaders_known(batches < 0 && known->yielded >= 0 ? l->yielded : batches);
    v[RING_LOADERS_DATASET].s = l->dataset[0] ? l->dataset : NULL;
    known->yielded = l->yielded;
    known->processes = l->processes;
    record_append(r, RING_LOADERS, v);
}

void record_loaders_second(struct record *r, struct pystack *ps, uint64_t now_ns) {
    struct record_loaders *l = &r->loaders;
    struct pystack_loader loader;
    size_t kept = 0, alike[2] = {0};
    if (!ps)
        return;
    if (loaders_is_due(r, now_ns)) {
        l->found_ns = now_ns;
        loaders_find(l, ps);
    }
    for (size_t i = 0; i < l->n; i++)
        if (pystack_read_loader(ps, l->known[i].addr, &loader) == 0) {
            alike[loader.processes]++;
            l->known[kept++] = l->known[i];
        }
    l->n = kept;
    for (size_t i = 0; i < l->n; i++)
        if (pystack_read_loader(ps, l->known[i].addr, &loader) == 0)
            loaders_put(r, &l->known[i], &loader, alike[loader.processes]);
    memset(l->waits, 0, sizeof l->waits);
}
