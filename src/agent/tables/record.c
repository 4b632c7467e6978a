/* SPDX-License-Identifier: Apache-2.0 */
/* record: see record.h. */
#include "agent/tables/record.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/fds.h"
#include "base/clock.h"
#include "base/procfs.h"
#include "store/ring/ring_dir.h"

#define RECORD_SECOND_NS CLOCK_NS_PER_S
#define RECORD_FLUSH_NS                                                                                      \
    (150 * CLOCK_NS_PER_MS) /* shortest time between two; ticks are mostly further apart */
#define RECORD_EXPIRE_NS CLOCK_NS_PER_S
#define RECORD_DAY_S 86400.0
#define RECORD_KEEP_DEAD 8 /* dead processes together may keep so many times what one may have */

void record_init(struct record *r, const struct config *config) {
    *r = (struct record){.config = *config, .cost_pct = NAN, .began_ns = clock_mono_ns()};
    r->second_due_ns = r->began_ns;
}

size_t record_bytes(const struct record *r) {
    return (r->ids.stacks.n + r->ids.frames.n) / 8 + collect_bytes(&r->collect) +
           checkpoints_bytes(&r->saves);
}

void record_append(struct record *r, enum ring_table table, const union ring_value *row) {
    struct ring *ring = ring_set_get(r->set, table);
    if (ring && ring_append(ring, row) == 0)
        r->unflushed = true;
}

/* ---- life ---- */

static size_t record_limit(const struct record *r) { return (size_t)r->config.values[CONFIG_MAX_MEMORY]; }

/* Remove what dead processes have left in each of the places. */
static void record_prune(const struct record *r) {
    double before = clock_epoch_s() - r->config.values[CONFIG_RETENTION_DAYS] * RECORD_DAY_S;
    char base[RING_DIR_PATH];
    for (int i = 0; i < RING_DIR_BASES; i++)
        if (ring_dir_base(base, i, r->config.data_dir, geteuid(), 0) == 0)
            (void)ring_dir_prune(base, geteuid(), before, RECORD_KEEP_DEAD * (uint64_t)record_limit(r));
}

static void record_owner(struct ring_owner *owner, char *host, size_t cap) {
    struct procfs_stat st = {.start_ticks = 0};
    char text[32], *end;
    host[0] = '\0';
    if (gethostname(host, cap) == 0)
        host[cap - 1] = '\0';
    (void)procfs_read_stat(0, 0, &st);
    *owner = (struct ring_owner){.pid = getpid(),
                                 .start_ticks = st.start_ticks,
                                 .rank = RING_INT_NULL,
                                 .host = host[0] ? host : NULL,
                                 .started_at = procfs_started_at(0)};
    if (procfs_read_environ(0, "RANK", text, sizeof text) == 0) {
        long long rank = strtoll(text, &end, 10);
        owner->rank = end != text && !*end && rank >= 0 ? rank : RING_INT_NULL;
    }
}

static void record_open(struct record *r) {
    struct ring_owner owner;
    struct err e = {0};
    char host[256];
    if (record_limit(r) == 0) {
        (void)snprintf(r->note, sizeof r->note, "there are no tables: %s is 0",
                       config_defs[CONFIG_MAX_MEMORY].key);
        return;
    }
    record_owner(&owner, host, sizeof host);
    r->facts = (struct record_facts){.told = false};
    r->gc = (struct record_gc){.begun = false};
    r->set = ring_set_open(RING_TABLES, RING_TABLE_KEPT, &owner, r->config.data_dir, record_limit(r), &e);
    (void)snprintf(r->note, sizeof r->note, "%s", r->set ? ring_set_note(r->set) : e.text);
    if (r->set)
        ring_set_each_fd(r->set, fds_note);
}

static void record_close(struct record *r, bool remove) {
    hooks_end(&r->hooks);
    record_steps_end(r);
    if (!r->set)
        return;
    ring_set_each_fd(r->set, fds_forget);
    ring_set_close(r->set, remove);
    r->set = NULL;
    r->unflushed = false;
    record_ids_fini(&r->ids);
}

void record_begin(struct record *r) {
    if (r->begun)
        return;
    uint64_t cpu = clock_self_cpu_ns();
    r->begun = true;
    record_prune(r);
    record_open(r);
    r->cost_ns += clock_self_cpu_ns() - cpu;
}

void record_end(struct record *r, bool remove) {
    record_close(r, remove);
    record_ids_fini(&r->ids);
    collect_fini(&r->collect);
    checkpoints_fini(&r->saves);
}

void record_configure(struct record *r, const struct config *config) {
    bool anew = r->begun && config->values[CONFIG_MAX_MEMORY] != r->config.values[CONFIG_MAX_MEMORY];
    r->config = *config;
    if (!anew)
        return;
    record_close(r, true);
    record_open(r);
}

uint64_t record_due_ns(const struct record *r) {
    return r->begun && !r->set ? RECORD_NEVER : r->second_due_ns;
}

/* ---- samples ---- */

/* Its own name, else the kernel's; NULL unknown. */
static const char *record_either(const struct thread_sampler_thread *t) {
    return t->name ? t->name : t->native_name[0] ? t->native_name : NULL;
}

/* Name of the thread of a sample. */
static const char *record_sample_name(struct record *r, const struct thread_sampler *p, int64_t tid) {
    for (size_t k = 0; k < p->n_threads; k++) {
        size_t i = (r->thread_guess + k) % p->n_threads;
        const struct thread_sampler_thread *t = &p->threads[i];
        if (t->py.tid != tid)
            continue;
        r->thread_guess = i + 1;
        return record_either(t);
    }
    for (size_t i = 0; i < p->n_ended; i++)
        if (p->ended[i].py.tid == tid)
            return record_either(&p->ended[i]);
    return NULL;
}

static void record_sample(struct record *r, const struct thread_sampler *p, const struct model_sample *s) {
    union ring_value v[RING_SAMPLES_COUNT];
    v[RING_SAMPLES_TIMESTAMP].f = s->timestamp;
    v[RING_SAMPLES_TID].i = s->tid;
    v[RING_SAMPLES_THREAD].s = record_sample_name(r, p, s->tid);
    v[RING_SAMPLES_STACK_ID].i = record_stack(r, &p->trie, s->merged_id ? s->merged_id : s->stack_id);
    v[RING_SAMPLES_ON_CPU].i = s->on_cpu;
    v[RING_SAMPLES_GIL].i = (int64_t)s->gil - 1;
    v[RING_SAMPLES_GC].i = s->gc;
    v[RING_SAMPLES_TORN].i = s->torn;
    r->missed += s->stack_id && v[RING_SAMPLES_STACK_ID].i == RING_INT_NULL;
    record_append(r, RING_SAMPLES, v);
    record_saves_sample(r, p, s);
}

bool record_take(struct record *r, const struct thread_sampler *p) {
    uint64_t fresh = p->total_samples - r->taken;
    r->taken = p->total_samples;
    if (!r->set || (fresh == 0 && !r->steps.told && !r->hooks.on))
        return false;
    uint64_t cpu = clock_self_cpu_ns();
    record_steps_take(r);
    if (r->ids.epoch != p->epoch)
        record_epoch(r, p);
    if (fresh > p->n_samples) {
        r->missed += fresh - p->n_samples;
        fresh = p->n_samples;
    }
    for (size_t i = p->n_samples - (size_t)fresh; i < p->n_samples; i++)
        record_sample(r, p, &p->samples[i]);
    bool outgrown = record_outgrown(r);
    r->cost_ns += clock_self_cpu_ns() - cpu;
    return outgrown;
}

/* ---- once a second ---- */

static void record_expire(struct record *r, uint64_t now_ns, double now) {
    double age = r->config.values[CONFIG_RETENTION];
    if (now_ns - r->expired_ns < RECORD_EXPIRE_NS)
        return;
    r->expired_ns = now_ns;
    ring_set_expire(r->set, now);
    for (size_t i = 0; age > 0 && i < RING_TABLE_KEPT; i++)
        if (RING_TABLES[i].retention_s > 0 && ring_set_get(r->set, i))
            ring_expire(ring_set_get(r->set, i), now - age);
}

void record_second(struct record *r, const struct thread_sampler *p, const struct record_view *view) {
    uint64_t now_ns = clock_mono_ns(), cpu = clock_self_cpu_ns();
    double now = clock_epoch_s();
    if (!r->set)
        return;
    record_facts(r, view->python, view->pystack, now_ns, now);
    record_gc(r, view->pystack, now);
    record_process(r, now_ns, now);
    record_threads(r, p, now_ns, now);
    record_status(r, view, now_ns, now);
    hooks_second(&r->hooks, view->worker,
                 &(struct hooks_request){.steps = r->config.values[CONFIG_STEPS] != 0,
                                         .look_share = r->config.values[CONFIG_TRACE_SHARE] / 100,
                                         .torch = r->facts.torch,
                                         .watch = r->config.torch_profiling});
    record_steps_second(r);
    record_saves_second(r, p, now);
    record_loaders_second(r, view->pystack, now_ns);
    record_expire(r, now_ns, now);
    /* On a grid, so that there is a row for each second; after a stop it begins anew. */
    r->second_due_ns += RECORD_SECOND_NS;
    if (r->second_due_ns <= now_ns)
        r->second_due_ns = now_ns + RECORD_SECOND_NS;
    r->cost_ns += clock_self_cpu_ns() - cpu;
    r->cost_pct = cost_meter_add(&r->meter, now_ns, r->cost_ns);
}

bool record_is_due(const struct record *r) {
    return r->set && clock_mono_ns() - r->flushed_ns >= RECORD_FLUSH_NS;
}

void record_flush(struct record *r) {
    if (!r->unflushed || !record_is_due(r))
        return;
    uint64_t cpu = clock_self_cpu_ns();
    r->unflushed = ring_set_flush(r->set) != 0;
    r->flushed_ns = clock_mono_ns();
    r->cost_ns += clock_self_cpu_ns() - cpu;
}

size_t record_list(const struct record *r, struct model_table *out) {
    size_t n = 0;
    for (size_t i = 0; r->set && i < RING_TABLE_KEPT; i++) {
        struct ring_counts counts;
        const struct ring *ring = ring_set_get(r->set, i);
        if (!ring)
            continue;
        ring_get_counts(ring, &counts);
        out[n++] = (struct model_table){.name = RING_TABLES[i].name,
                                        .rows = counts.rows - counts.oldest_seq,
                                        .bytes = counts.file_bytes,
                                        .oldest = counts.oldest_at,
                                        .newest = counts.newest_at,
                                        .lost = counts.lost};
    }
    return n;
}
