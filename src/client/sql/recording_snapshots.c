/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recording_snapshots: moments before the last state, to be stepped through; see recording_find_snapshots in recording.h.
 *
 * A moment is what the last sample and the last row of each thread's history say that are not older than RECORDING_RECENT_S then: as the last
 * state is made. Only their times are kept; each is made when it is asked for, by reading on from the one before.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/sql/recording.h"

void recording_put_sample(struct recording_thread *t, const struct model_sample *s) {
    t->stack_id = s->stack_id;
    t->thread.has_python = true;
    t->thread.on_cpu = s->on_cpu;
    t->thread.gil = s->gil;
    t->thread.gc = s->gc;
    t->thread.torn = s->torn;
}

void recording_keep_holder(struct recording_thread *threads, size_t n, const double *at) {
    const struct recording_thread *last = NULL;
    double last_at = 0;
    for (size_t i = 0; i < n; i++)
        if (threads[i].thread.gil == MODEL_GIL_HOLDING && at[i] > last_at) {
            last = &threads[i];
            last_at = at[i];
        }
    for (size_t i = 0; i < n; i++)
        if (threads[i].thread.gil == MODEL_GIL_HOLDING && &threads[i] != last)
            threads[i].thread.gil = MODEL_GIL_UNKNOWN;
}

/* Where reading is, and the newest of each thread up to there. */
struct recording_reader {
    size_t sample, look, process;
    double until_s;
    const struct model_sample **samples; /* per name */
    const struct recording_tick **looks;
    struct recording_thread *threads; /* of the moment that was made last, */
    double *at;                       /* and when the sample of each was taken */
};

static size_t recording_name(const struct recording *p, int64_t tid) {
    size_t low = 0, high = p->n_names;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->names[middle].tid < tid)
            low = middle + 1;
        else
            high = middle;
    }
    return low < p->n_names && p->names[low].tid == tid ? low : SIZE_MAX;
}

/* Read all that is not after a time. */
static void recording_read_until(const struct recording *p, struct recording_reader *r, double time_s) {
    for (; r->sample < p->n_samples && p->samples[r->sample].timestamp <= time_s; r->sample++) {
        size_t i = recording_name(p, p->samples[r->sample].tid);
        if (i != SIZE_MAX)
            r->samples[i] = &p->samples[r->sample];
    }
    for (; r->look < p->n_looks && p->looks[r->look].time_s <= time_s; r->look++) {
        size_t i = recording_name(p, p->looks[r->look].tid);
        if (i != SIZE_MAX)
            r->looks[i] = &p->looks[r->look];
    }
    while (r->process < p->n_processes && p->processes[r->process].time_s <= time_s)
        r->process++;
}

static void recording_put_process(const struct recording *p, const struct recording_reader *r,
                                  struct recording_snapshot *m) {
    m->process = p->process;
    m->process.cpu_pct = NAN;
    m->process.rss_bytes = m->process.n_threads = MODEL_UNKNOWN;
    if (m->time_s > p->started_at)
        m->process.uptime_s = m->time_s - p->started_at;
    if (r->process == 0 || m->time_s - p->processes[r->process - 1].time_s > RECORDING_RECENT_S)
        return;
    const struct recording_process *last = &p->processes[r->process - 1];
    m->process.cpu_pct = last->cpu_pct;
    m->process.rss_bytes = last->rss_bytes;
    m->process.n_threads = last->n_threads;
}

/* Begin at the first row again. */
static void recording_rewind(const struct recording *p, struct recording_reader *r) {
    r->sample = r->look = r->process = 0;
    memset(r->samples, 0, p->n_names * sizeof *r->samples);
    memset(r->looks, 0, p->n_names * sizeof *r->looks);
}

static struct recording_thread recording_make_thread(const struct recording_name *name,
                                                     const struct model_sample *s,
                                                     const struct recording_tick *l) {
    struct recording_thread t = {.thread = {.tid = name->tid,
                                            .name = name->name,
                                            .native_name = name->native_name,
                                            .state = l ? l->state : '?',
                                            .on_cpu = MODEL_UNKNOWN,
                                            .gil_for_us = NAN,
                                            .gc = MODEL_UNKNOWN,
                                            .cpu_pct = l ? l->cpu_pct : NAN}};
    if (s)
        recording_put_sample(&t, s);
    return t;
}

struct recording_snapshot recording_read_snapshot(struct recording *p, size_t moment) {
    struct recording_reader *r = p->reader;
    struct recording_snapshot m = {.time_s = p->moments[moment], .threads = r->threads};
    if (m.time_s < r->until_s)
        recording_rewind(p, r);
    r->until_s = m.time_s;
    recording_read_until(p, r, m.time_s);
    for (size_t i = 0; i < p->n_names; i++) {
        const struct model_sample *s = r->samples[i];
        const struct recording_tick *l = r->looks[i];
        s = s && m.time_s - s->timestamp <= RECORDING_RECENT_S ? s : NULL;
        l = l && m.time_s - l->time_s <= RECORDING_RECENT_S ? l : NULL;
        if (!s && !l)
            continue;
        r->at[m.n_threads] = s ? s->timestamp : 0;
        m.threads[m.n_threads++] = recording_make_thread(&p->names[i], s, l);
    }
    recording_keep_holder(m.threads, m.n_threads, r->at);
    recording_put_process(p, r, &m);
    return m;
}

/* Where a search for moments is. */
struct recording_place {
    size_t sample, look;
};

static double recording_quarter(const struct recording *p, double time_s) {
    return floor((p->seen_until - time_s) / RECORDING_SNAPSHOT_S);
}

/* The last time in the next quarter of a second before the end in which something was written; NAN there is none. */
static double recording_next_time(const struct recording *p, struct recording_place *at) {
    double last = NAN;
    for (;;) {
        double sample = at->sample < p->n_samples ? p->samples[at->sample].timestamp : INFINITY,
               look = at->look < p->n_looks ? p->looks[at->look].time_s : INFINITY, next = fmin(sample, look);
        if (!(p->seen_until - next >= RECORDING_SNAPSHOT_S / 2) ||
            (!isnan(last) && recording_quarter(p, next) != recording_quarter(p, last)))
            return last;
        last = next;
        ++*(sample <= look ? &at->sample : &at->look);
    }
}

int recording_find_snapshots(struct recording *p) {
    size_t n = 0;
    for (struct recording_place at = {0}; !isnan(recording_next_time(p, &at));)
        n++;
    size_t every = n / RECORDING_SNAPSHOTS + 1;
    struct recording_reader *r = arena_calloc(&p->arena, 1, sizeof *r);
    if (!r)
        return -1;
    *r = (struct recording_reader){.until_s = -INFINITY,
                                   .samples = arena_calloc(&p->arena, p->n_names + 1, sizeof *r->samples),
                                   .looks = arena_calloc(&p->arena, p->n_names + 1, sizeof *r->looks),
                                   .threads = arena_calloc(&p->arena, p->n_names + 1, sizeof *r->threads),
                                   .at = arena_calloc(&p->arena, p->n_names + 1, sizeof *r->at)};
    p->reader = r;
    p->moments = arena_calloc(&p->arena, n / every + 2, sizeof *p->moments);
    if (!r->samples || !r->looks || !r->threads || !r->at || !p->moments)
        return -1;
    struct recording_place at = {0};
    for (size_t i = 0; i < n; i++) {
        double time_s = recording_next_time(p, &at);
        if (i == 0 || (n - 1 - i) % every == 0) /* the first there is, and the newest */
            p->moments[p->n_moments++] = time_s;
    }
    return 0;
}
