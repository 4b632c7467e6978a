/* SPDX-License-Identifier: Apache-2.0 */
/* record_rows: the rows of once a second; see record.h. */
#include <math.h>
#include <string.h>

#include "agent/threads.h"
#include "agent/tables/record.h"
#include "base/clock.h"

#define RECORD_MIB 1048576.0

static int64_t record_known(int64_t v) { return v < 0 ? RING_INT_NULL : v; }

static double record_mib(int64_t bytes) { return bytes < 0 ? NAN : (double)bytes / RECORD_MIB; }

static void record_memory(struct record *r, const struct collect_process *p, double timestamp) {
    union ring_value v[RING_MEMORY_COUNT];
    v[RING_MEMORY_TIMESTAMP].f = timestamp;
    v[RING_MEMORY_MB].f = record_mib(p->rss_bytes) + record_mib(p->swap_bytes);
    v[RING_MEMORY_RSS_MB].f = record_mib(p->rss_bytes);
    v[RING_MEMORY_GPU_ALLOCATED_MB].f = v[RING_MEMORY_GPU_RESERVED_MB].f = NAN;
    v[RING_MEMORY_GC_OBJECTS].i = record_known(r->gc_objects);
    record_append(r, RING_MEMORY, v);
}

void record_process(struct record *r, uint64_t now_ns, double timestamp) {
    struct collect_process p;
    union ring_value v[RING_PROCESS_COUNT];
    collect_read_process(&r->collect, now_ns, &p);
    v[RING_PROCESS_TIMESTAMP].f = timestamp;
    v[RING_PROCESS_CPU_PCT].f = p.cpu_pct;
    v[RING_PROCESS_RSS].i = record_known(p.rss_bytes);
    v[RING_PROCESS_PSS].i = record_known(p.pss_bytes);
    v[RING_PROCESS_SWAP].i = record_known(p.swap_bytes);
    v[RING_PROCESS_THREADS].i = record_known(p.threads);
    v[RING_PROCESS_FDS].i = record_known(p.fds);
    v[RING_PROCESS_VOLUNTARY].i = record_known(p.voluntary);
    v[RING_PROCESS_INVOLUNTARY].i = record_known(p.involuntary);
    v[RING_PROCESS_MINOR_FAULTS].i = record_known(p.minor_faults);
    v[RING_PROCESS_MAJOR_FAULTS].i = record_known(p.major_faults);
    v[RING_PROCESS_READ].i = record_known(p.read_bytes);
    v[RING_PROCESS_WRITTEN].i = record_known(p.written_bytes);
    v[RING_PROCESS_CGROUP_MEMORY].i = record_known(p.cgroup_memory);
    v[RING_PROCESS_CGROUP_LIMIT].i = record_known(p.cgroup_limit);
    v[RING_PROCESS_THROTTLED_S].f = p.throttled_s;
    record_append(r, RING_PROCESS_HISTORY, v);
    record_memory(r, &p, timestamp);
}

/* The Python name of a thread, as the sampler knows it; NULL. Threads are asked for in about the same order each time. */
static const char *record_name(struct record *r, const struct thread_sampler *p, int64_t tid) {
    for (size_t k = 0; k < p->n_threads; k++) {
        size_t i = (r->thread_guess + k) % p->n_threads;
        if (p->threads[i].py.tid != tid)
            continue;
        r->thread_guess = i + 1;
        return p->threads[i].name;
    }
    return NULL;
}

void record_threads(struct record *r, const struct thread_sampler *p, uint64_t now_ns, double timestamp) {
    int64_t own[THREADS_MAX];
    size_t n_own = threads_own_tids(own, THREADS_MAX);
    union ring_value v[RING_THREAD_COUNT];
    if (collect_read_threads(&r->collect, now_ns, own, n_own) <= 0)
        return;
    for (size_t i = 0; i < r->collect.n_threads; i++) {
        const struct collect_thread *t = &r->collect.threads[i];
        v[RING_THREAD_TIMESTAMP].f = timestamp;
        v[RING_THREAD_TID].i = t->tid;
        v[RING_THREAD_NAME].s = record_name(r, p, t->tid);
        v[RING_THREAD_NATIVE_NAME].s = t->native_name[0] ? t->native_name : NULL;
        v[RING_THREAD_STATE].i = ring_state_label(t->state);
        v[RING_THREAD_CPU_PCT].f = t->cpu_pct;
        v[RING_THREAD_WCHAN].s = t->wchan[0] ? t->wchan : NULL;
        v[RING_THREAD_VOLUNTARY].i = record_known(t->voluntary);
        v[RING_THREAD_INVOLUNTARY].i = record_known(t->involuntary);
        v[RING_THREAD_MINOR_FAULTS].i = record_known(t->minor_faults);
        v[RING_THREAD_MAJOR_FAULTS].i = record_known(t->major_faults);
        v[RING_THREAD_CPU].i = record_known(t->cpu);
        record_append(r, RING_THREAD_HISTORY, v);
    }
}

void record_status(struct record *r, const struct record_view *view, uint64_t now_ns, double timestamp) {
    union ring_value v[RING_STATUS_COUNT];
    v[RING_STATUS_TIMESTAMP].f = timestamp;
    v[RING_STATUS_UPTIME_S].f = (double)(now_ns - r->began_ns) / 1e9;
    v[RING_STATUS_CPU_S].f = (double)view->cpu_ns / 1e9;
    v[RING_STATUS_OVERHEAD_PCT].f = view->overhead_pct;
    v[RING_STATUS_RSS].i = record_known(view->rss_bytes);
    v[RING_STATUS_RATE_HZ].f = view->rate_hz;
    v[RING_STATUS_SAMPLES].i = (int64_t)view->samples;
    v[RING_STATUS_TORN].i = (int64_t)view->torn;
    v[RING_STATUS_DROPPED].i = (int64_t)view->dropped;
    v[RING_STATUS_US_PER_SAMPLE].f = view->us_per_sample;
    v[RING_STATUS_CLIENTS].i = view->clients;
    record_append(r, RING_STATUS, v);
}
