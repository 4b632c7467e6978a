/* SPDX-License-Identifier: Apache-2.0 */
/* sample_store_span: see sample_store_span.h. */
#include "client/samples/sample_store_span.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

void sample_store_span_clear(struct sample_store_span *s) {
    free(s->counts);
    memset(s, 0, sizeof *s);
    s->begins_s = NAN;
}

/* Samples of an entry with the same flags. */
static void sample_store_span_count(struct sample_store_count *c, unsigned flags, uint64_t n, double us) {
    bool on_cpu = flags & THREAD_RUNS_ON_CPU, gc = flags & THREAD_RUNS_GC;
    c->samples += n;
    c->us += us;
    c->on_cpu += on_cpu ? n : 0;
    c->on_cpu_us += on_cpu ? us : 0;
    c->gc += gc ? n : 0;
    c->gc_us += gc ? us : 0;
    c->gc_on_cpu += gc && on_cpu ? n : 0;
    c->gc_on_cpu_us += gc && on_cpu ? us : 0;
    c->gil += flags & THREAD_RUNS_GIL_HOLDING ? n : 0;
    c->gil_us += flags & THREAD_RUNS_GIL_HOLDING ? us : 0;
}

/* Room for the counts of an entry; those that are new are zero. */
static int sample_store_span_reach(struct sample_store_span *s, size_t entry) {
    if (entry < s->n)
        return 0;
    if (grow_array(&s->counts, sizeof *s->counts, entry + 1, &s->cap) != 0)
        return -1;
    memset(s->counts + s->n, 0, (entry + 1 - s->n) * sizeof *s->counts);
    s->n = entry + 1;
    return 0;
}

/* Looks [from, to) of a lane. */
static int sample_store_span_sum(struct sample_store_span *s, const struct thread_runs *t, size_t lane,
                                 uint32_t from, uint32_t to) {
    size_t n;
    const struct thread_runs_run *runs = thread_runs_runs(t, lane, &n);
    for (size_t i = thread_runs_find_run(t, lane, from); i < n && runs[i].first < to; i++) {
        uint32_t begin = runs[i].first > from ? runs[i].first : from, end = runs[i].first + runs[i].n;
        end = end < to ? end : to;
        if (runs[i].entry == THREAD_RUNS_NO_ENTRY)
            continue;
        if (sample_store_span_reach(s, runs[i].entry) != 0)
            return -1;
        sample_store_span_count(&s->counts[runs[i].entry], runs[i].flags, end - begin,
                                thread_runs_tick_us(t, begin, end));
    }
    return 0;
}

int sample_store_span_make(struct sample_store_span *s, const struct thread_runs *t, double from_s,
                           double to_s) {
    struct sample_store_span made = {.is_set = true, .from_s = from_s, .to_s = to_s, .begins_s = NAN};
    if (!(from_s < to_s) || !isfinite(from_s) || !isfinite(to_s))
        return -1;
    uint32_t from = thread_runs_find_tick(t, from_s), to = thread_runs_find_tick(t, to_s);
    if (from < to)
        made.begins_s = thread_runs_tick_time(t, from);
    for (size_t i = 0; from < to && i < thread_runs_count_lanes(t); i++)
        if (sample_store_span_sum(&made, t, i, from, to) != 0) {
            sample_store_span_clear(&made);
            return -1;
        }
    free(s->counts);
    *s = made;
    return 0;
}

int sample_store_span_add(struct sample_store_span *s, const struct thread_runs *t,
                          const struct thread_runs_sample *sample) {
    if (!s->is_set || sample->entry == THREAD_RUNS_NO_ENTRY || sample->time_s < s->from_s ||
        sample->time_s >= s->to_s)
        return 0;
    if (sample_store_span_reach(s, sample->entry) != 0)
        return -1;
    if (isnan(s->begins_s) || sample->time_s < s->begins_s)
        s->begins_s = sample->time_s;
    uint32_t look = thread_runs_find_tick(t, sample->time_s);
    sample_store_span_count(&s->counts[sample->entry], sample->flags, 1,
                            thread_runs_tick_us(t, look, look + 1));
    return 0;
}
