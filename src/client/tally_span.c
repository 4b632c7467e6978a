/* SPDX-License-Identifier: Apache-2.0 */
/* tally_span: see tally_span.h. */
#include "client/tally_span.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

void tally_span_clear(struct tally_span *s) {
    free(s->counts);
    memset(s, 0, sizeof *s);
    s->begins_s = NAN;
}

/* Samples of an entry with the same flags. */
static void tally_span_count(struct tally_count *c, unsigned flags, uint64_t n, double us) {
    bool on_cpu = flags & TRACKS_ON_CPU, gc = flags & TRACKS_GC;
    c->samples += n;
    c->us += us;
    c->on_cpu += on_cpu ? n : 0;
    c->on_cpu_us += on_cpu ? us : 0;
    c->gc += gc ? n : 0;
    c->gc_us += gc ? us : 0;
    c->gc_on_cpu += gc && on_cpu ? n : 0;
    c->gc_on_cpu_us += gc && on_cpu ? us : 0;
    c->gil += flags & TRACKS_GIL_HELD ? n : 0;
    c->gil_us += flags & TRACKS_GIL_HELD ? us : 0;
}

/* Room for the counts of an entry; those that are new are zero. */
static int tally_span_reach(struct tally_span *s, size_t entry) {
    if (entry < s->n)
        return 0;
    if (grow_array(&s->counts, sizeof *s->counts, entry + 1, &s->cap) != 0)
        return -1;
    memset(s->counts + s->n, 0, (entry + 1 - s->n) * sizeof *s->counts);
    s->n = entry + 1;
    return 0;
}

/* Looks [from, to) of a lane. */
static int tally_span_sum(struct tally_span *s, const struct tracks *t, size_t lane, uint32_t from,
                          uint32_t to) {
    size_t n;
    const struct tracks_run *runs = tracks_runs(t, lane, &n);
    for (size_t i = tracks_find_run(t, lane, from); i < n && runs[i].first < to; i++) {
        uint32_t begin = runs[i].first > from ? runs[i].first : from, end = runs[i].first + runs[i].n;
        end = end < to ? end : to;
        if (runs[i].entry == TRACKS_NO_ENTRY)
            continue;
        if (tally_span_reach(s, runs[i].entry) != 0)
            return -1;
        tally_span_count(&s->counts[runs[i].entry], runs[i].flags, end - begin,
                         tracks_look_us(t, begin, end));
    }
    return 0;
}

int tally_span_make(struct tally_span *s, const struct tracks *t, double from_s, double to_s) {
    struct tally_span made = {.is_set = true, .from_s = from_s, .to_s = to_s, .begins_s = NAN};
    if (!(from_s < to_s) || !isfinite(from_s) || !isfinite(to_s))
        return -1;
    uint32_t from = tracks_find_look(t, from_s), to = tracks_find_look(t, to_s);
    if (from < to)
        made.begins_s = tracks_look_time(t, from);
    for (size_t i = 0; from < to && i < tracks_count_lanes(t); i++)
        if (tally_span_sum(&made, t, i, from, to) != 0) {
            tally_span_clear(&made);
            return -1;
        }
    free(s->counts);
    *s = made;
    return 0;
}

int tally_span_add(struct tally_span *s, const struct tracks *t, const struct tracks_sample *sample) {
    if (!s->is_set || sample->entry == TRACKS_NO_ENTRY || sample->time_s < s->from_s ||
        sample->time_s >= s->to_s)
        return 0;
    if (tally_span_reach(s, sample->entry) != 0)
        return -1;
    if (isnan(s->begins_s) || sample->time_s < s->begins_s)
        s->begins_s = sample->time_s;
    uint32_t look = tracks_find_look(t, sample->time_s);
    tally_span_count(&s->counts[sample->entry], sample->flags, 1, tracks_look_us(t, look, look + 1));
    return 0;
}
