/* SPDX-License-Identifier: Apache-2.0 */
/* record: see record.h. */
#include "agent/tables/record.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/fds.h"
#include "agent/threads.h"
#include "base/clock.h"
#include "base/procfs.h"
#include "base/strbuf.h"
#include "pystack/native.h"
#include "pystack/pystack.h"
#include "store/ring/ring_dir.h"
#include "version.h"

#define RECORD_SECOND_NS CLOCK_NS_PER_S
/* minimum time between two; ticks are mostly further apart */
#define RECORD_FLUSH_NS (150 * CLOCK_NS_PER_MS)
#define RECORD_EXPIRE_NS CLOCK_NS_PER_S
#define RECORD_DAY_S 86400.0
/* maximum for dead processes together, as a multiple of the limit of one */
#define RECORD_KEEP_DEAD 8
/* tries to get the lock, a millisecond apart, where nobody may wait without end */
#define RECORD_LOCK_TRIES 200

static void record_lock(struct record *r) { pthread_mutex_lock(&r->shared.lock); }

/* False: another thread keeps the lock. It may be the one that has crashed, or wait for a disk. */
static bool record_lock_soon(struct record *r) {
    const struct timespec pause = {.tv_nsec = (long)CLOCK_NS_PER_MS};
    for (int i = 0; i < RECORD_LOCK_TRIES; i++) {
        if (pthread_mutex_trylock(&r->shared.lock) == 0)
            return true;
        nanosleep(&pause, NULL);
    }
    return false;
}

static void record_unlock(struct record *r) { pthread_mutex_unlock(&r->shared.lock); }

static void record_set_unflushed(struct record *r, bool unflushed) {
    __atomic_store_n(&r->unflushed, unflushed, __ATOMIC_RELAXED);
}

void record_init(struct record *r, const struct config *config) {
    *r = (struct record){.shared = {.lock = PTHREAD_MUTEX_INITIALIZER},
                         .config = *config,
                         .cost_pct = NAN,
                         .began_ns = clock_mono_ns()};
    r->second_due_ns = r->began_ns;
}

size_t record_bytes(const struct record *r) {
    return (r->ids.stacks.n + r->ids.frames.n) / 8 + collect_bytes(&r->collect) +
           standstill_bytes(&r->standstill);
}

void record_add_producer(struct record *r, const struct record_producer *producer, void *arg) {
    r->producer = producer;
    r->producer_arg = arg;
}

void record_append(struct record *r, enum ring_table table, const union ring_value *row) {
    struct ring *ring = ring_set_get(r->set, table);
    if (ring && ring_append(ring, row) == 0)
        record_set_unflushed(r, true);
}

/* ---- stacks ---- */

/* Rows and ids of stacks and frames. */

#define RECORD_MAX_DEPTH ((size_t)PYSTACK_MAX_FRAMES + NATIVE_MAX_FRAMES + 8)
#define RECORD_MAX_ID ((uint64_t)UINT32_MAX - 1) /* maximum of a column */

static bool record_is_seen(const struct record_seen *s, uint32_t number) {
    return number < s->n && (s->bits[number / 8] >> number % 8 & 1);
}

/* 0, or -1 without memory. */
static int record_set_seen(struct record_seen *s, uint32_t number) {
    if (number >= s->n) {
        size_t n = s->n ? s->n : 1024;
        while (n <= number)
            n *= 2;
        uint8_t *bits = realloc(s->bits, n / 8);
        if (!bits)
            return -1;
        memset(bits + s->n / 8, 0, (n - s->n) / 8);
        s->bits = bits;
        s->n = n;
    }
    s->bits[number / 8] |= (uint8_t)(1U << number % 8);
    return 0;
}

static void record_forget(struct record_seen *s) {
    if (s->bits)
        memset(s->bits, 0, s->n / 8);
}

static void record_ids_fini(struct record_ids *ids) {
    free(ids->stacks.bits);
    free(ids->frames.bits);
    *ids = (struct record_ids){.epoch = 0};
}

static uint64_t record_rows(const struct record *r, enum ring_table table, uint64_t *oldest) {
    struct ring_counts counts = {.rows = 0};
    struct ring *ring = r->set ? ring_set_get(r->set, table) : NULL;
    if (ring)
        ring_get_counts(ring, &counts);
    if (oldest)
        *oldest = counts.oldest_seq;
    return counts.rows;
}

static void record_epoch(struct record *r, uint32_t epoch) {
    struct record_ids *ids = &r->ids;
    ids->epoch = epoch;
    ids->stack_base += ids->stack_last;
    ids->frame_base += ids->frame_last;
    ids->stack_last = ids->frame_last = 0;
    record_forget(&ids->stacks);
    record_forget(&ids->frames);
    ids->stack_rows = record_rows(r, RING_STACKS, NULL);
    ids->frame_rows = record_rows(r, RING_FRAMES, NULL);
}

static bool record_outgrown(const struct record *r) {
    uint64_t stacks, frames;
    record_rows(r, RING_STACKS, &stacks);
    record_rows(r, RING_FRAMES, &frames);
    return stacks > r->ids.stack_rows || frames > r->ids.frame_rows;
}

static int record_frame(struct record *r, const struct trie *t, uint32_t number) {
    struct record_ids *ids = &r->ids;
    union ring_value v[RING_FRAMES_COUNT];
    if (record_is_seen(&ids->frames, number))
        return 0;
    if (record_set_seen(&ids->frames, number) != 0)
        return -1;
    const struct model_frame *f = &t->frames[number - 1].frame;
    ids->frame_last = number > ids->frame_last ? number : ids->frame_last;
    v[RING_FRAMES_ID].i = (int64_t)(ids->frame_base + number);
    v[RING_FRAMES_FUNC].s = f->func;
    v[RING_FRAMES_FILE].s = f->file;
    v[RING_FRAMES_LINENO].i = f->line > 0 ? f->line : RING_INT_NULL;
    v[RING_FRAMES_KIND].i = f->kind == MODEL_FRAME_NATIVE;
    record_append(r, RING_FRAMES, v);
    return 0;
}

/* Write one node after its caller, which is written already. 0, or -1 without memory. */
static int record_node(struct record *r, const struct trie *t, uint32_t number, size_t depth) {
    struct record_ids *ids = &r->ids;
    const struct model_stack_def *s = &t->stacks[number - 1];
    union ring_value v[RING_STACKS_COUNT];
    if (record_frame(r, t, s->frame_id) != 0 || record_set_seen(&ids->stacks, number) != 0)
        return -1;
    ids->stack_last = number > ids->stack_last ? number : ids->stack_last;
    v[RING_STACKS_ID].i = (int64_t)(ids->stack_base + number);
    v[RING_STACKS_PARENT].i = s->parent_id ? (int64_t)(ids->stack_base + s->parent_id) : RING_INT_NULL;
    v[RING_STACKS_FRAME].i = (int64_t)(ids->frame_base + s->frame_id);
    v[RING_STACKS_DEPTH].i = (int64_t)depth;
    record_append(r, RING_STACKS, v);
    return 0;
}

static int64_t record_stack(struct record *r, const struct trie *t, uint32_t stack_id) {
    uint32_t path[RECORD_MAX_DEPTH];
    struct record_ids *ids = &r->ids;
    size_t n = 0, depth = 0;
    if (stack_id == 0 || stack_id > t->n_stacks || ids->stack_base + t->n_stacks > RECORD_MAX_ID ||
        ids->frame_base + t->n_frames > RECORD_MAX_ID)
        return RING_INT_NULL;
    if (record_is_seen(&ids->stacks, stack_id))
        return (int64_t)(ids->stack_base + stack_id);
    uint32_t at = stack_id;
    for (; at && !record_is_seen(&ids->stacks, at); at = t->stacks[at - 1].parent_id) {
        if (n == RECORD_MAX_DEPTH)
            return RING_INT_NULL;
        path[n++] = at;
    }
    for (; at; at = t->stacks[at - 1].parent_id)
        depth++;
    while (n > 0)
        if (record_node(r, t, path[--n], depth++) != 0)
            return RING_INT_NULL;
    return (int64_t)(ids->stack_base + stack_id);
}

/* ---- life cycle ---- */

static size_t record_limit(const struct record *r) { return (size_t)r->config.values[CONFIG_MAX_MEMORY]; }

/* Remove the files of dead processes in each of the places. */
static void record_prune(const struct record *r) {
    double before = clock_epoch_s() - r->config.values[CONFIG_RETENTION_DAYS] * RECORD_DAY_S;
    char base[RING_DIR_PATH];
    for (int i = 0; i < RING_DIR_BASES; i++)
        if (ring_dir_base(base, i, r->config.data_dir, geteuid(), 0) == 0)
            ring_dir_prune(base, geteuid(), before, RECORD_KEEP_DEAD * (uint64_t)record_limit(r));
}

static void record_owner(struct ring_owner *owner, char *host, size_t cap) {
    struct procfs_stat st = {.start_ticks = 0};
    host[0] = '\0';
    if (gethostname(host, cap) == 0)
        host[cap - 1] = '\0';
    procfs_read_stat(0, 0, &st);
    *owner = (struct ring_owner){.pid = getpid(),
                                 .start_ticks = st.start_ticks,
                                 .rank = RING_INT_NULL,
                                 .host = host[0] ? host : NULL,
                                 .started_at = procfs_started_at(0)};
    int32_t rank = pystack_rank_of(0);
    if (rank >= 0)
        owner->rank = rank;
}

/* Whoever has set 1 MB keeps the tables when there is one more. */
_Static_assert(RING_TABLE_KEPT *RING_SET_TABLE_MIN <= (size_t)1024 * 1024, "1 MB holds all tables");

/* With the lock: make the tables, unless that was tried before. */
static void record_open(struct record *r) {
    struct record_shared *t = &r->shared;
    struct ring_owner owner;
    struct err e = {0};
    char host[256];
    if (t->opened)
        return;
    t->opened = true;
    if (record_limit(r) == 0) {
        snprintf(t->note, sizeof t->note, "there are no tables: %s is 0",
                 config_defs[CONFIG_MAX_MEMORY].name);
        return;
    }
    record_owner(&owner, host, sizeof host);
    t->set = ring_set_open(RING_TABLES, RING_TABLE_KEPT, &owner, r->config.data_dir, record_limit(r), &e);
    snprintf(t->note, sizeof t->note, "%s", t->set ? ring_set_note(t->set) : e.text);
    if (t->set)
        ring_set_each_fd(t->set, fds_note);
}

/* With the lock: the same for the first tables of this run. */
static void record_open_first(struct record *r) {
    if (!r->shared.opened)
        record_prune(r);
    record_open(r);
}

/* With the lock: the sampler's thread starts to write to the tables. */
static void record_use(struct record *r) {
    r->facts = (struct record_facts){.told = false};
    r->gc = (struct record_gc){.begun = false};
    r->set = r->shared.set;
    memcpy(r->note, r->shared.note, sizeof r->note);
}

/* With the lock, after the producer's close. */
static void record_close_tables(struct record *r, bool remove) {
    if (r->shared.set) {
        ring_set_each_fd(r->shared.set, fds_forget);
        ring_set_close(r->shared.set, remove);
    }
    r->shared.set = r->set = NULL;
    record_set_unflushed(r, false);
    record_ids_fini(&r->ids);
}

void record_begin(struct record *r) {
    if (r->begun)
        return;
    r->begun = true;
    r->collect.keep = fds_is_private();
    record_lock(r);
    record_open_first(r);
    record_use(r);
    record_unlock(r);
}

void record_end(struct record *r, bool remove) {
    if (r->producer)
        r->producer->close(r->producer_arg);
    record_lock(r);
    record_close_tables(r, remove);
    record_unlock(r);
    collect_fini(&r->collect);
    standstill_fini(&r->standstill);
}

void record_configure(struct record *r, const struct config *config) {
    bool changed = config->values[CONFIG_MAX_MEMORY] != r->config.values[CONFIG_MAX_MEMORY];
    if (changed && r->begun && r->producer)
        r->producer->close(r->producer_arg);
    /* In one section, so that no event finds the tables closed, or half of the settings. */
    record_lock(r);
    bool anew = changed && r->shared.opened;
    if (anew)
        record_close_tables(r, true);
    if (anew)
        standstill_fini(&r->standstill);
    r->config = *config;
    r->shared.opened &= !anew;
    if (anew && r->begun) {
        record_open(r);
        record_use(r);
    }
    record_unlock(r);
}

uint64_t record_due_ns(const struct record *r) {
    return r->begun && !r->set ? RECORD_NEVER : r->second_due_ns;
}

/* ---- samples ---- */

static void record_sample(struct record *r, struct record_samples *p, const struct model_sample *s) {
    union ring_value v[RING_SAMPLES_COUNT];
    v[RING_SAMPLES_TIMESTAMP].f = s->timestamp;
    v[RING_SAMPLES_TID].i = s->tid;
    v[RING_SAMPLES_THREAD].s = p->thread_name(p, s->tid, true);
    v[RING_SAMPLES_STACK_ID].i = record_stack(r, p->trie, s->merged_id ? s->merged_id : s->stack_id);
    v[RING_SAMPLES_ON_CPU].i = s->on_cpu;
    v[RING_SAMPLES_GIL].i = (int64_t)s->gil - 1;
    v[RING_SAMPLES_GC].i = s->gc;
    v[RING_SAMPLES_TORN].i = s->torn;
    r->missed += s->stack_id && v[RING_SAMPLES_STACK_ID].i == RING_INT_NULL;
    record_append(r, RING_SAMPLES, v);
    if (r->producer)
        r->producer->on_sample(r->producer_arg, p, s);
}

bool record_take(struct record *r, struct record_samples *p) {
    uint64_t fresh = p->total - r->taken;
    r->taken = p->total;
    if (!r->set || (fresh == 0 && !(r->producer && r->producer->is_on(r->producer_arg))))
        return false;
    uint64_t cpu = clock_self_cpu_ns();
    if (r->producer)
        r->producer->take(r->producer_arg);
    if (r->ids.epoch != p->epoch)
        record_epoch(r, p->epoch);
    if (fresh > p->n) {
        r->missed += fresh - p->n;
        fresh = p->n;
    }
    for (size_t i = p->n - (size_t)fresh; i < p->n; i++)
        record_sample(r, p, &p->samples[i]);
    bool outgrown = record_outgrown(r);
    r->cost_ns += clock_self_cpu_ns() - cpu;
    return outgrown;
}

int64_t record_number_stack(struct record *r, const struct record_samples *p, uint32_t stack_id) {
    if (!r->set)
        return RING_INT_NULL;
    if (r->ids.epoch != p->epoch)
        record_epoch(r, p->epoch);
    return record_stack(r, p->trie, stack_id);
}

/* ---- facts ---- */

/*
 * Facts about the process, for readers of its tables after it is gone. A fact is written when it
 * becomes known and when it changes; without a value when it no longer holds.
 */

#define RECORD_CMDLINE ((size_t)64 * 1024)
/* Between two searches for torch, which may be imported late: each reads the list of mappings. */
#define RECORD_TORCH_NS (4 * CLOCK_NS_PER_S)
/* the same once Python has a module with that name */
#define RECORD_TORCH_FIRST_NS (CLOCK_NS_PER_S - 1)
#define RECORD_TORCH_MAX_NS (64 * CLOCK_NS_PER_S)

static void record_fact(struct record *r, double timestamp, const char *key, const char *value) {
    union ring_value v[RING_FACTS_COUNT];
    v[RING_FACTS_TIMESTAMP].f = timestamp;
    v[RING_FACTS_KEY].s = key;
    v[RING_FACTS_VALUE].s = value;
    record_append(r, RING_FACTS, v);
}

/* Facts that do not change. */
static void record_process_facts(struct record *r, double timestamp) {
    char text[4096];
    struct strbuf cmdline;
    double started = procfs_started_at(0);
    strbuf_init(&cmdline, RECORD_CMDLINE);
    if (procfs_read_cmdline(0, &cmdline) == 0 && strbuf_str(&cmdline)[0])
        record_fact(r, timestamp, RING_FACT_CMD, strbuf_str(&cmdline));
    strbuf_fini(&cmdline);
    if (procfs_read_exe(0, text, sizeof text) == 0)
        record_fact(r, timestamp, RING_FACT_EXE, text);
    if (isfinite(started)) {
        snprintf(text, sizeof text, "%.3f", started);
        record_fact(r, timestamp, RING_FACT_STARTED_AT, text);
    }
    record_fact(r, timestamp, RING_FACT_AGENT, PROBING_VERSION);
}

/* Variables of the environment at the start of the process, if the configuration names them;
 * there may be secrets among the others. */
static void record_allowed(struct record *r, double timestamp) {
    char key[CONFIG_TEXT_MAX + sizeof RING_FACT_ENV], value[RING_MAX_TEXT + 1];
    for (const char *p = r->config.env_allow; *p;) {
        int n = (int)strcspn(p, ",");
        snprintf(key, sizeof key, "%s%.*s", RING_FACT_ENV, n, p);
        if (procfs_read_environ(0, key + strlen(RING_FACT_ENV), value, sizeof value) == 0)
            record_fact(r, timestamp, key, value);
        p += n + (p[n] == ',');
    }
}

/* True if it is time to search for torch. The list of mappings is read rarely, but soon after
 * torch may have been imported. */
static bool record_torch_due(struct record_facts *f, struct pystack *ps, uint64_t now_ns) {
    bool is_there = ps && pystack_has_module(ps, "torch", &f->modules);
    bool came = is_there && !f->torch_module;
    f->torch_module = is_there;
    if (!came && now_ns < f->torch_due_ns)
        return false;
    if (came)
        f->torch_every_ns = RECORD_TORCH_FIRST_NS / 2;
    f->torch_every_ns = f->torch_every_ns ? f->torch_every_ns * 2 : RECORD_TORCH_NS;
    if (f->torch_every_ns > RECORD_TORCH_MAX_NS)
        f->torch_every_ns = RECORD_TORCH_MAX_NS;
    f->torch_due_ns = now_ns + f->torch_every_ns;
    return true;
}

static void record_facts(struct record *r, const struct record_view *view, uint64_t now_ns,
                         double timestamp) {
    struct record_facts *f = &r->facts;
    const char *python = view->python;
    if (!f->told) {
        record_process_facts(r, timestamp);
        record_allowed(r, timestamp);
    }
    f->told = true;
    if (strcmp(f->python, python ? python : "") != 0) {
        snprintf(f->python, sizeof f->python, "%s", python ? python : "");
        record_fact(r, timestamp, RING_FACT_PYTHON, python);
    }
    bool same = view->nobody_ran && now_ns < f->torch_due_ns;
    if (f->torch[0] || same || !record_torch_due(f, view->pystack, now_ns))
        return;
    if (pystack_find_torch(0, f->torch, sizeof f->torch) == 0)
        record_fact(r, timestamp, RING_FACT_TORCH, f->torch);
    else
        f->torch[0] = '\0';
}

void record_event(struct record *r, const char *kind, int64_t uid, int64_t pid, const char *text) {
    union ring_value v[RING_EVENTS_COUNT];
    v[RING_EVENTS_TIMESTAMP].f = clock_epoch_s();
    v[RING_EVENTS_KIND].s = kind;
    v[RING_EVENTS_CLIENT_UID].i = uid < 0 ? RING_INT_NULL : uid;
    v[RING_EVENTS_CLIENT_PID].i = pid < 0 ? RING_INT_NULL : pid;
    v[RING_EVENTS_TEXT].s = text;
    record_lock(r);
    record_open_first(r);
    struct ring *ring = r->shared.set ? ring_set_get(r->shared.set, RING_EVENTS) : NULL;
    /* the next event may be the end of the process */
    if (ring && ring_append(ring, v) == 0 && ring_flush(ring) != 0)
        record_set_unflushed(r, true);
    record_unlock(r);
}

/* ---- gc ---- */

/*
 * The rows of python.gc. The collector's own counters are read once a second in which somebody ran;
 * a row has their increase for one generation since the previous row. So sums over rows equal
 * gc.get_stats(), and a collection is recorded after it has ended. While one is running the counters are left
 * for the next second, a few times, because they may be half written. While Python reports each
 * collection (gc_events) each has a row, and the counters only add rows for unreported ones. On
 * the sampler's thread.
 */

#define RECORD_GC_LATE 2  /* readings after which a counted collection must have been reported */
#define RECORD_GC_WAITS 3 /* seconds: for a job that does nothing but collect garbage */

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

/* The collections of a generation that were counted but not reported: then they are in `out`,
 * and `b` becomes equal to `n`. False: all were reported, or some are still to be waited for. */
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

void record_gc_event(struct record *r, const struct record_gc_row *g) {
    union ring_value v[RING_GC_COUNT];
    v[RING_GC_TIMESTAMP].f = g->begin_s;
    v[RING_GC_GENERATION].i = g->generation;
    v[RING_GC_DURATION_MS].f = (double)g->duration_ns / 1e6;
    v[RING_GC_COLLECTED].i = g->collected < 0 ? RING_INT_NULL : g->collected;
    v[RING_GC_STEP].i = g->step;
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

/* Write a row for each generation with collections; `told` are the reported ones. */
static void gc_report(struct record *r, struct pystack_gc *told, const struct pystack_gc *now,
                      double timestamp) {
    for (size_t g = 0; g < PYSTACK_GENERATIONS; g++) {
        struct pystack_gc_generation *b = &told->generations[g], more;
        const struct pystack_gc_generation *n = &now->generations[g];
        struct record_gc_reported none = {.collections = 0};
        bool is_main = told->interpreter == 0;
        union ring_value v[RING_GC_COUNT];
        if (n->collections == b->collections ||
            !gc_is_untold(is_main ? &r->gc.told[g] : &none, is_main && r->gc_events, b, n, &more))
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

/* Collections counted so far get no row, because their times are unknown. */
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
        /* A new interpreter has counted from 0 since the last reading. */
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
            next.note = "the garbage collector's counters were reset: collections of that second are missing";
        } else {
            gc_report(r, &s->at, &now[i], timestamp);
        }
    }
    memcpy(next.told, r->gc.told, sizeof next.told);
    r->gc = next;
}

/* True if another reading may say more although nothing has changed: a collection was under way,
 * one that was counted was not reported yet, or nothing was read at all. */
static bool record_gc_waits(const struct record_gc *gc) {
    bool waits = !gc->begun || gc->failed;
    for (size_t i = 0; i < gc->n; i++)
        waits = waits || gc->seen[i].waited;
    for (size_t g = 0; g < PYSTACK_GENERATIONS; g++)
        waits = waits || gc->told[g].waited;
    return waits;
}

void record_gc(struct record *r, struct pystack *ps, double timestamp) {
    struct pystack_gc now[PYSTACK_MAX_COUNTERS];
    const char *why = NULL;
    ssize_t n = ps ? pystack_read_gc_stats(ps, now, &why) : 0;
    r->gc_objects = MODEL_UNKNOWN;
    for (ssize_t i = 0; i < n; i++)
        if (now[i].interpreter == 0)
            r->gc_objects = now[i].long_lived;
    /* if it becomes known again, rows start from then on */
    if (!ps || why)
        r->gc = (struct record_gc){.note = why};
    else if (n >= 0)
        record_gc_counts(r, now, (size_t)n, timestamp);
    r->gc.failed = n < 0;
}

/* ---- rows ---- */

/* The rows of each second. */

#define RECORD_MIB 1048576.0
#define RECORD_KIB 1024.0                   /* in a MiB */
#define RECORD_GPU_NS (15 * CLOCK_NS_PER_S) /* for which a reading of torch's allocator counts */

static int64_t record_known(int64_t v) { return v < 0 ? RING_INT_NULL : v; }

static double record_mib(int64_t bytes) { return bytes < 0 ? NAN : (double)bytes / RECORD_MIB; }

void record_set_gpu(struct record *r, double allocated_mb, double reserved_mb) {
    __atomic_store_n(&r->gpu_allocated, (int64_t)(allocated_mb * RECORD_KIB), __ATOMIC_RELAXED);
    __atomic_store_n(&r->gpu_reserved, (int64_t)(reserved_mb * RECORD_KIB), __ATOMIC_RELAXED);
    __atomic_store_n(&r->gpu_ns, clock_mono_ns(), __ATOMIC_RELEASE);
}

static void record_memory(struct record *r, const struct collect_process *p, double timestamp) {
    union ring_value v[RING_MEMORY_COUNT];
    v[RING_MEMORY_TIMESTAMP].f = timestamp;
    v[RING_MEMORY_MB].f = record_mib(p->rss_bytes) + record_mib(p->swap_bytes);
    v[RING_MEMORY_RSS_MB].f = record_mib(p->rss_bytes);
    v[RING_MEMORY_GPU_ALLOCATED_MB].f = v[RING_MEMORY_GPU_RESERVED_MB].f = NAN;
    uint64_t at_ns = __atomic_load_n(&r->gpu_ns, __ATOMIC_ACQUIRE);
    if (at_ns && clock_mono_ns() - at_ns < RECORD_GPU_NS) {
        v[RING_MEMORY_GPU_ALLOCATED_MB].f =
            (double)__atomic_load_n(&r->gpu_allocated, __ATOMIC_RELAXED) / RECORD_KIB;
        v[RING_MEMORY_GPU_RESERVED_MB].f =
            (double)__atomic_load_n(&r->gpu_reserved, __ATOMIC_RELAXED) / RECORD_KIB;
    }
    v[RING_MEMORY_GC_OBJECTS].i = record_known(r->gc_objects);
    record_append(r, RING_MEMORY, v);
}

static void record_process(struct record *r, uint64_t now_ns, double timestamp) {
    struct collect_process p;
    union ring_value v[RING_PROCESS_HISTORY_COUNT];
    collect_read_process(&r->collect, now_ns, &p);
    v[RING_PROCESS_HISTORY_TIMESTAMP].f = timestamp;
    v[RING_PROCESS_HISTORY_CPU_PCT].f = p.cpu_pct;
    v[RING_PROCESS_HISTORY_RSS].i = record_known(p.rss_bytes);
    v[RING_PROCESS_HISTORY_PSS].i = record_known(p.pss_bytes);
    v[RING_PROCESS_HISTORY_SWAP].i = record_known(p.swap_bytes);
    v[RING_PROCESS_HISTORY_THREADS].i = record_known(p.threads);
    v[RING_PROCESS_HISTORY_FDS].i = record_known(p.fds);
    v[RING_PROCESS_HISTORY_VOLUNTARY].i = record_known(p.voluntary);
    v[RING_PROCESS_HISTORY_INVOLUNTARY].i = record_known(p.involuntary);
    v[RING_PROCESS_HISTORY_MINOR_FAULTS].i = record_known(p.minor_faults);
    v[RING_PROCESS_HISTORY_MAJOR_FAULTS].i = record_known(p.major_faults);
    v[RING_PROCESS_HISTORY_READ].i = record_known(p.read_bytes);
    v[RING_PROCESS_HISTORY_WRITTEN].i = record_known(p.written_bytes);
    v[RING_PROCESS_HISTORY_CGROUP_MEMORY].i = record_known(p.cgroup_memory);
    v[RING_PROCESS_HISTORY_CGROUP_LIMIT].i = record_known(p.cgroup_limit);
    v[RING_PROCESS_HISTORY_THROTTLED_S].f = p.throttled_s;
    v[RING_PROCESS_HISTORY_CPUS].f = p.cpus;
    v[RING_PROCESS_HISTORY_MEMORY_PRESSURE_S].f = p.memory_pressure_s;
    v[RING_PROCESS_HISTORY_IO_PRESSURE_S].f = p.io_pressure_s;
    v[RING_PROCESS_HISTORY_STEAL_PCT].f = p.steal_pct;
    record_append(r, RING_PROCESS_HISTORY, v);
    record_memory(r, &p, timestamp);
}

static void record_threads(struct record *r, struct record_samples *p, uint64_t now_ns, double timestamp) {
    int64_t own[THREADS_MAX];
    size_t n_own = threads_own_tids(own, THREADS_MAX);
    union ring_value v[RING_THREAD_HISTORY_COUNT];
    r->collect.nobody_ran = !r->ran;
    if (collect_read_threads(&r->collect, now_ns, own, n_own) <= 0)
        return;
    r->ran = false;
    standstill_take(&r->standstill, r->collect.threads, r->collect.n_threads, now_ns);
    for (size_t i = 0; i < r->collect.n_threads; i++) {
        const struct collect_thread *t = &r->collect.threads[i];
        v[RING_THREAD_HISTORY_TIMESTAMP].f = timestamp;
        v[RING_THREAD_HISTORY_TID].i = t->tid;
        v[RING_THREAD_HISTORY_NAME].s = p->thread_name(p, t->tid, false);
        v[RING_THREAD_HISTORY_NATIVE_NAME].s = t->native_name[0] ? t->native_name : NULL;
        v[RING_THREAD_HISTORY_STATE].i = ring_state_label(t->state);
        v[RING_THREAD_HISTORY_CPU_PCT].f = t->cpu_pct;
        v[RING_THREAD_HISTORY_WCHAN].s = t->wchan[0] ? t->wchan : NULL;
        v[RING_THREAD_HISTORY_VOLUNTARY].i = record_known(t->voluntary);
        v[RING_THREAD_HISTORY_INVOLUNTARY].i = record_known(t->involuntary);
        v[RING_THREAD_HISTORY_MINOR_FAULTS].i = record_known(t->minor_faults);
        v[RING_THREAD_HISTORY_MAJOR_FAULTS].i = record_known(t->major_faults);
        v[RING_THREAD_HISTORY_CPU].i = record_known(t->cpu);
        v[RING_THREAD_HISTORY_CPU_WAIT_S].f = t->cpu_wait_s;
        record_append(r, RING_THREAD_HISTORY, v);
    }
}

static void record_wait(void *arg, const union ring_value *row) { record_append(arg, RING_WAITS, row); }

/* What threads wait for that stand still. */
static void record_waits(struct record *r, struct pystack *ps, uint64_t now_ns) {
    int64_t own[THREADS_MAX];
    if (ps && standstill_is_due(&r->standstill, now_ns))
        standstill_read(&r->standstill, ps, own, threads_own_tids(own, THREADS_MAX), now_ns, record_wait, r);
}

static void record_status(struct record *r, const struct record_view *view, uint64_t now_ns,
                          double timestamp) {
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

/* ---- once a second ---- */

static void record_expire(struct record *r, uint64_t now_ns, double now) {
    double age = r->config.values[CONFIG_RETENTION];
    if (now_ns - r->expired_ns < RECORD_EXPIRE_NS)
        return;
    r->expired_ns = now_ns;
    record_lock(r);
    ring_set_expire(r->set, now);
    for (size_t i = 0; age > 0 && i < RING_TABLE_KEPT; i++)
        if (RING_TABLES[i].retention_s > 0 && ring_set_get(r->set, i))
            ring_expire(ring_set_get(r->set, i), now - age);
    record_unlock(r);
}

void record_second(struct record *r, struct record_samples *p, const struct record_view *view) {
    uint64_t now_ns = clock_mono_ns();
    double now = clock_epoch_s();
    if (!r->set)
        return;
    record_facts(r, view, now_ns, now);
    if (!view->nobody_ran || record_gc_waits(&r->gc))
        record_gc(r, view->pystack, now);
    record_process(r, now_ns, now);
    r->ran |= !view->nobody_ran;
    record_threads(r, p, now_ns, now);
    record_waits(r, view->pystack, now_ns);
    record_status(r, view, now_ns, now);
    if (r->producer)
        r->producer->second(r->producer_arg, p, view->pystack, now_ns, now);
    record_expire(r, now_ns, now);
    /* On a grid, so that there is a row for each second; after a pause the grid starts again. */
    r->second_due_ns += RECORD_SECOND_NS;
    if (r->second_due_ns <= now_ns)
        r->second_due_ns = now_ns + RECORD_SECOND_NS;
    r->flushed_ns = 0; /* now: the next wake-up may be half a second away, and the job dead by then */
    r->cost_ns += clock_self_cpu_ns() - view->self_cpu_ns;
    r->cost_pct = cost_meter_add(&r->meter, now_ns, r->cost_ns);
}

bool record_is_due(const struct record *r) {
    return r->set && clock_mono_ns() - r->flushed_ns >= RECORD_FLUSH_NS;
}

void record_flush_now(struct record *r) {
    if (!r->set || !record_lock_soon(r))
        return;
    record_set_unflushed(r, ring_set_flush(r->set) != 0);
    record_unlock(r);
}

void record_flush(struct record *r) {
    if (!__atomic_load_n(&r->unflushed, __ATOMIC_RELAXED) || !record_is_due(r))
        return;
    uint64_t cpu = clock_self_cpu_ns();
    record_flush_now(r);
    r->flushed_ns = clock_mono_ns();
    r->cost_ns += clock_self_cpu_ns() - cpu;
}

size_t record_list(struct record *r, struct model_table *out) {
    size_t n = 0;
    record_lock(r);
    for (size_t i = 0; r->set && i < RING_TABLE_KEPT; i++) {
        struct ring_counts counts;
        struct ring *ring = ring_set_get(r->set, i);
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
    record_unlock(r);
    return n;
}
