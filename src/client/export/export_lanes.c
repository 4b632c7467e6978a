/* SPDX-License-Identifier: Apache-2.0 */
/* export_lanes: see export_lanes.h. */
#include "client/export/export_lanes.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define LANES_PAUSE 3 /* a gap of so many weights between two ticks is a pause */

static int64_t lanes_ns(double s) { return (int64_t)llround(s * 1e9); }

/* The begin of a tick at time `at`, so long after the previous one, whose begin and end are
 * given and which may be cut. */
static int64_t lanes_place(int64_t at, int64_t apart, int64_t begin, int64_t *end) {
    if (*end < at && apart > LANES_PAUSE * (*end - begin))
        return at;
    /* still after its beginning, which was at most that late */
    if (*end > at + LANES_STRAY_NS)
        *end = at + LANES_STRAY_NS;
    return *end < at - LANES_STRAY_NS ? at - LANES_STRAY_NS : *end;
}

int export_lanes_init(struct export_lanes *l, const struct stack_counts *counts,
                      const struct thread_runs *runs) {
    uint32_t first = thread_runs_first_tick(runs);
    *l = (struct export_lanes){.counts = counts, .runs = runs, .n_looks = thread_runs_end_tick(runs) - first};
    l->begin_ns = calloc(l->n_looks + 1, sizeof *l->begin_ns);
    l->end_ns = calloc(l->n_looks + 1, sizeof *l->end_ns);
    if (!l->begin_ns || !l->end_ns)
        return -1;
    double from_s = l->n_looks ? thread_runs_tick_time(runs, first) : 0;
    int64_t before = 0;
    l->from_ns = lanes_ns(from_s);
    for (size_t i = 0; i < l->n_looks; i++) {
        uint32_t look = first + (uint32_t)i;
        int64_t at = lanes_ns(thread_runs_tick_time(runs, look) - from_s);
        int64_t weight = lanes_ns(thread_runs_tick_us(runs, look, look + 1) / 1e6);
        if (i > 0)
            l->begin_ns[i] = lanes_place(at, at - before, l->begin_ns[i - 1], &l->end_ns[i - 1]);
        l->end_ns[i] = l->begin_ns[i] + weight;
        before = at;
    }
    return 0;
}

void export_lanes_fini(struct export_lanes *l) {
    free(l->begin_ns);
    free(l->end_ns);
    *l = (struct export_lanes){.n_looks = 0};
}

int64_t export_lanes_length(const struct export_lanes *l) {
    return l->n_looks ? l->end_ns[l->n_looks - 1] : 0;
}

/* The present ticks of a run, as spans; one equal to the previous extends it. */
static int lanes_walk_run(const struct export_lanes *l, const struct thread_runs_run *run,
                          struct export_span *open, int (*fn)(void *arg, const struct export_span *span),
                          void *arg) {
    uint32_t first = thread_runs_first_tick(l->runs);
    uint32_t stack = stack_counts_get(l->counts, run->entry)->stack;
    for (uint32_t i = run->first < first ? first - run->first : 0; i < run->n; i++) {
        size_t look = run->first + i - first;
        if (l->end_ns[look] <= l->begin_ns[look])
            continue;
        if (open->end_ns != l->begin_ns[look] || open->stack != stack || open->flags != run->flags) {
            int rc = open->end_ns > open->begin_ns ? fn(arg, open) : 0;
            if (rc != 0)
                return rc;
            *open = (struct export_span){l->begin_ns[look], l->end_ns[look], stack, run->flags};
        }
        open->end_ns = l->end_ns[look];
    }
    return 0;
}

int export_lanes_walk(const struct export_lanes *l, size_t lane,
                      int (*fn)(void *arg, const struct export_span *span), void *arg) {
    size_t n;
    const struct thread_runs_run *runs = thread_runs_runs(l->runs, lane, &n);
    struct export_span open = {0};
    for (size_t i = 0; i < n; i++) {
        int rc = runs[i].entry == THREAD_RUNS_NO_ENTRY ? 0 : lanes_walk_run(l, &runs[i], &open, fn, arg);
        if (rc != 0)
            return rc;
    }
    return open.end_ns > open.begin_ns ? fn(arg, &open) : 0;
}

void export_lanes_note(const struct thread_runs *runs, const struct stack_counts *counts,
                       struct strbuf *note) {
    uint64_t missing = thread_runs_left_out(runs);
    uint32_t first = thread_runs_first_tick(runs), end = thread_runs_end_tick(runs);
    if (!isnan(thread_runs_forgotten_s(runs)) && end > first)
        strbuf_addf(note, "%sonly the last %.0f s are included: older samples have no time",
                    note->len ? "; " : "",
                    thread_runs_tick_time(runs, end - 1) - thread_runs_tick_time(runs, first));
    else if (missing > 0)
        strbuf_addf(note, "%s%" PRIu64 " of %" PRIu64 " samples had no place in the order of time",
                    note->len ? "; " : "", missing, stack_counts_get_totals(counts)->samples);
}
