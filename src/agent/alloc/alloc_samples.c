/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc_samples: see alloc_samples.h. Sampling by bytes: gperftools, docs/heapprofile.html, and
 * tcmalloc's docs/sampling.md.
 */
#include "agent/alloc/alloc_samples.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "agent/alloc/alloc_sites.h"
#include "base/clock.h"

#define ALLOC_SAMPLES_PAGE 4096
#define ALLOC_SAMPLES_RING ((size_t)2 * 1024 * 1024)
#define ALLOC_SAMPLES_UNIT 64 /* records begin at multiples of it */
#define ALLOC_SAMPLES_BUCKETS (ALLOC_SAMPLES_LIVE / ALLOC_SAMPLES_WAYS)
#define ALLOC_SAMPLES_SCRATCH 8    /* threads that copy their frames at the same time */
#define ALLOC_SAMPLES_TRIES 16     /* places that a thread may have */
#define ALLOC_SAMPLES_END_TRIES 20 /* a millisecond apart: to wait for a thread that takes a sample */
#define ALLOC_SAMPLES_PAD UINT32_MAX
/* of an entry's block: */
#define ALLOC_SAMPLES_FREE 0
#define ALLOC_SAMPLES_BUSY 1 /* being filled */
#define ALLOC_SAMPLES_GONE 2 /* freed, and not reported yet */

struct alloc_samples_entry {
    uint64_t block; /* atomic: its address, or one of the above */
    uint64_t serial;
};

uint32_t alloc_samples_on;
uint8_t alloc_samples_filter[1 << ALLOC_SAMPLES_FILTER_BITS] __attribute__((aligned(ALLOC_SAMPLES_PAGE)));
struct alloc_thread alloc_samples_threads[ALLOC_SAMPLES_THREADS] __attribute__((aligned(ALLOC_SAMPLES_PAGE)));
static struct alloc_samples_entry alloc_samples_live[ALLOC_SAMPLES_BUCKETS][ALLOC_SAMPLES_WAYS]
    __attribute__((aligned(ALLOC_SAMPLES_PAGE)));
static uint8_t alloc_samples_ring[ALLOC_SAMPLES_RING] __attribute__((aligned(ALLOC_SAMPLES_PAGE)));
static struct alloc_samples_scratch {
    struct pystack_self self;
    uint32_t busy; /* atomic */
} alloc_samples_scratch[ALLOC_SAMPLES_SCRATCH] __attribute__((aligned(ALLOC_SAMPLES_PAGE)));
static struct pystack_self alloc_samples_copy; /* of the reader */
static struct pystack_known alloc_samples_codes;

static uint64_t alloc_samples_dirty[ALLOC_SAMPLES_BUCKETS / 64]; /* atomic: buckets with freed entries */
static uint64_t alloc_samples_head, alloc_samples_tail;          /* atomic: bytes written, and read */
static uint32_t alloc_samples_last;                              /* length of the record that was read last */
static uint64_t alloc_samples_mean, alloc_samples_serial;        /* atomic */
static uint32_t alloc_samples_inside;                            /* atomic: threads that take a sample */
static void *(*alloc_samples_current)(void);
static struct alloc_samples_stats alloc_samples_stats; /* atomic, but for calls */

static void alloc_samples_count(uint64_t *counter, uint64_t n) {
    __atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

/* ---- threads ---- */

/* Distances are drawn in bytes; the last byte of one is the sample. */
static void alloc_samples_draw(struct alloc_thread *t) {
    t->mean = __atomic_load_n(&alloc_samples_mean, __ATOMIC_RELAXED);
    t->left = (int64_t)cost_pace_next_ns(&t->pace, t->mean);
}

struct alloc_thread *alloc_samples_join(uint64_t self) {
    size_t at = alloc_samples_place(self);
    for (size_t i = 0; i < ALLOC_SAMPLES_TRIES; i++) {
        struct alloc_thread *t = &alloc_samples_threads[(at + i) % ALLOC_SAMPLES_THREADS];
        uint64_t owner = __atomic_load_n(&t->self, __ATOMIC_RELAXED);
        if (owner == self)
            return t;
        if (owner ||
            !__atomic_compare_exchange_n(&t->self, &owner, self, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            continue;
        cost_pace_init(&t->pace, self ^ clock_mono_ns());
        alloc_samples_draw(t);
        return t;
    }
    alloc_samples_count(&alloc_samples_stats.strangers, 1);
    return NULL;
}

/* ---- live samples ---- */

static uint8_t *alloc_samples_filter_of(const void *block) {
    return &alloc_samples_filter[alloc_samples_hash(block) >> (64 - ALLOC_SAMPLES_FILTER_BITS)];
}

static size_t alloc_samples_bucket_of(const void *block) {
    return (size_t)(alloc_samples_hash(block) >> 16) % ALLOC_SAMPLES_BUCKETS;
}

/* A list that grows, or a buffer made again and again, is sampled often at one address before the
 * agent reads once. So where no entry of the bucket is free, one is taken over whose block is gone:
 * `*ended` is its sample (0 none), whose end the new one's record reports. */
static uint32_t alloc_samples_insert(const void *block, uint64_t serial, uint64_t *ended) {
    size_t bucket = alloc_samples_bucket_of(block);
    for (size_t i = 0; i < (size_t)2 * ALLOC_SAMPLES_WAYS; i++) {
        struct alloc_samples_entry *e = &alloc_samples_live[bucket][i % ALLOC_SAMPLES_WAYS];
        uint64_t was = i < ALLOC_SAMPLES_WAYS ? ALLOC_SAMPLES_FREE : ALLOC_SAMPLES_GONE;
        if (!__atomic_compare_exchange_n(&e->block, &was, ALLOC_SAMPLES_BUSY, false, __ATOMIC_ACQUIRE,
                                         __ATOMIC_RELAXED))
            continue;
        *ended = was == ALLOC_SAMPLES_GONE ? e->serial : 0;
        e->serial = serial;
        __atomic_fetch_add(alloc_samples_filter_of(block), 1, __ATOMIC_RELAXED);
        __atomic_store_n(&e->block, (uint64_t)(uintptr_t)block, __ATOMIC_RELEASE);
        return (uint32_t)(bucket * ALLOC_SAMPLES_WAYS + i % ALLOC_SAMPLES_WAYS);
    }
    alloc_samples_count(&alloc_samples_stats.unfollowed, 1);
    return ALLOC_SAMPLES_NONE;
}

void alloc_samples_remove(const void *block) {
    uint64_t address = (uint64_t)(uintptr_t)block;
    size_t bucket = alloc_samples_bucket_of(block);
    for (size_t i = 0; address > ALLOC_SAMPLES_GONE && i < ALLOC_SAMPLES_WAYS; i++) {
        uint64_t there = address;
        if (__atomic_load_n(&alloc_samples_live[bucket][i].block, __ATOMIC_RELAXED) != address ||
            !__atomic_compare_exchange_n(&alloc_samples_live[bucket][i].block, &there, ALLOC_SAMPLES_GONE,
                                         false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            continue;
        __atomic_fetch_sub(alloc_samples_filter_of(block), 1, __ATOMIC_RELAXED);
        __atomic_fetch_or(&alloc_samples_dirty[bucket / 64], 1ULL << bucket % 64, __ATOMIC_RELEASE);
    }
}

void alloc_samples_each_free(bool (*gone)(void *arg, uint32_t entry, uint64_t serial), void *arg) {
    for (size_t word = 0; word < ALLOC_SAMPLES_BUCKETS / 64; word++) {
        if (!__atomic_load_n(&alloc_samples_dirty[word], __ATOMIC_RELAXED))
            continue;
        uint64_t bits = __atomic_exchange_n(&alloc_samples_dirty[word], 0, __ATOMIC_ACQUIRE);
        for (; bits; bits &= bits - 1) {
            size_t bucket = word * 64 + (size_t)__builtin_ctzll(bits);
            for (size_t i = 0; i < ALLOC_SAMPLES_WAYS; i++) {
                struct alloc_samples_entry *e = &alloc_samples_live[bucket][i];
                uint64_t was = ALLOC_SAMPLES_GONE;
                if (!__atomic_compare_exchange_n(&e->block, &was, ALLOC_SAMPLES_BUSY, false, __ATOMIC_ACQUIRE,
                                                 __ATOMIC_RELAXED))
                    continue;
                bool done = gone(arg, (uint32_t)(bucket * ALLOC_SAMPLES_WAYS + i), e->serial);
                __atomic_store_n(&e->block, done ? ALLOC_SAMPLES_FREE : ALLOC_SAMPLES_GONE, __ATOMIC_RELEASE);
                if (!done)
                    __atomic_fetch_or(&alloc_samples_dirty[word], 1ULL << bucket % 64, __ATOMIC_RELAXED);
            }
        }
    }
}

/* ---- the ring ---- */

static struct alloc_record *alloc_samples_record(uint64_t at) {
    return (struct alloc_record *)(void *)&alloc_samples_ring[at % ALLOC_SAMPLES_RING];
}

static void alloc_samples_publish(struct alloc_record *r, uint32_t length) {
    __atomic_store_n(&r->length, length, __ATOMIC_RELEASE);
}

/* Room for a record of `length` bytes; NULL if there is none. */
static struct alloc_record *alloc_samples_reserve(uint32_t length) {
    uint64_t at = __atomic_load_n(&alloc_samples_head, __ATOMIC_RELAXED), pad;
    do {
        uint64_t rest = ALLOC_SAMPLES_RING - at % ALLOC_SAMPLES_RING;
        pad = rest < length ? rest : 0;
        if (at + pad + length - __atomic_load_n(&alloc_samples_tail, __ATOMIC_ACQUIRE) > ALLOC_SAMPLES_RING)
            return NULL;
    } while (!__atomic_compare_exchange_n(&alloc_samples_head, &at, at + pad + length, true, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    if (pad) {
        alloc_samples_record(at)->n_frames = ALLOC_SAMPLES_PAD;
        alloc_samples_publish(alloc_samples_record(at), (uint32_t)pad);
    }
    return alloc_samples_record(at + pad);
}

/* Nobody knows the block yet. The end of `ended`, which had the entry before (0 none), is still to
 * be reported. */
static void alloc_samples_withdraw(uint32_t entry, const void *block, uint64_t ended) {
    if (entry == ALLOC_SAMPLES_NONE)
        return;
    size_t bucket = entry / ALLOC_SAMPLES_WAYS;
    struct alloc_samples_entry *e = &alloc_samples_live[bucket][entry % ALLOC_SAMPLES_WAYS];
    __atomic_fetch_sub(alloc_samples_filter_of(block), 1, __ATOMIC_RELAXED);
    e->serial = ended;
    __atomic_store_n(&e->block, ended ? ALLOC_SAMPLES_GONE : ALLOC_SAMPLES_FREE, __ATOMIC_RELEASE);
    if (ended)
        __atomic_fetch_or(&alloc_samples_dirty[bucket / 64], 1ULL << bucket % 64, __ATOMIC_RELEASE);
}

/* 0, or -1 if there is no room. */
static int alloc_samples_put(const struct alloc_record *head, const struct pystack_self *s) {
    _Static_assert(sizeof(struct alloc_record) % 8 == 0, "frames are aligned");
    size_t frames = s ? head->n_frames * sizeof s->frames[0] : 0;
    size_t keys = s ? head->n_keys * sizeof s->keys[0] : 0;
    size_t length =
        (sizeof *head + frames + keys + ALLOC_SAMPLES_UNIT - 1) / ALLOC_SAMPLES_UNIT * ALLOC_SAMPLES_UNIT;
    struct alloc_record *r = alloc_samples_reserve((uint32_t)length);
    if (!r)
        return -1;
    uint8_t *at = (uint8_t *)r + sizeof *r;
    memcpy(&r->n_frames, &head->n_frames, sizeof *r - offsetof(struct alloc_record, n_frames));
    if (frames)
        memcpy(at, s->frames, frames);
    if (keys)
        memcpy(at + frames, s->keys, keys);
    alloc_samples_publish(r, (uint32_t)length);
    return 0;
}

const struct alloc_record *alloc_samples_next(struct pystack_self **copy) {
    for (;;) {
        if (alloc_samples_last) {
            memset(alloc_samples_record(alloc_samples_tail), 0, alloc_samples_last);
            __atomic_store_n(&alloc_samples_tail, alloc_samples_tail + alloc_samples_last, __ATOMIC_RELEASE);
        }
        const struct alloc_record *r = alloc_samples_record(alloc_samples_tail);
        alloc_samples_last = __atomic_load_n(&r->length, __ATOMIC_ACQUIRE);
        if (!alloc_samples_last)
            return NULL;
        if (r->n_frames == ALLOC_SAMPLES_PAD)
            continue;
        struct pystack_self *s = &alloc_samples_copy;
        const uint8_t *at = (const uint8_t *)r + sizeof *r;
        s->end = (enum pystack_self_end)r->end;
        s->taken_ns = r->taken_ns;
        s->n_frames = r->n_frames;
        s->n_keys = r->n_keys;
        memcpy(s->frames, at, s->n_frames * sizeof s->frames[0]);
        memcpy(s->keys, at + s->n_frames * sizeof s->frames[0], s->n_keys * sizeof s->keys[0]);
        *copy = s;
        return r;
    }
}

/* ---- a sample ---- */

static struct alloc_samples_scratch *alloc_samples_claim(const struct alloc_thread *t) {
    size_t first = (size_t)(t - alloc_samples_threads);
    for (size_t i = 0; i < ALLOC_SAMPLES_SCRATCH; i++) {
        struct alloc_samples_scratch *s = &alloc_samples_scratch[(first + i) % ALLOC_SAMPLES_SCRATCH];
        uint32_t free = 0;
        if (__atomic_compare_exchange_n(&s->busy, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return s;
    }
    return NULL;
}

static void alloc_samples_copy_frames(struct alloc_samples_scratch *s, struct alloc_record *r) {
    void *tstate = alloc_samples_current ? alloc_samples_current() : NULL;
    r->end = PYSTACK_SELF_WHOLE;
    if (!tstate)
        return;
    r->end = PYSTACK_SELF_GONE;
    if (s) {
        pystack_self_copy_own(&s->self, (uint64_t)(uintptr_t)tstate);
        r->end = (uint8_t)s->self.end;
        r->n_frames = (uint32_t)s->self.n_frames;
        r->n_keys = (uint32_t)s->self.n_keys;
        r->taken_ns = s->self.taken_ns;
    }
    if (r->end != PYSTACK_SELF_WHOLE && r->end != PYSTACK_SELF_TRUNCATED) {
        r->n_frames = r->n_keys = 0;
        alloc_samples_count(&alloc_samples_stats.unknown, 1);
    }
    if (r->n_frames > ALLOC_SAMPLES_FRAMES) {
        r->n_frames = ALLOC_SAMPLES_FRAMES;
        r->end = PYSTACK_SELF_TRUNCATED;
    }
}

void alloc_samples_take(struct alloc_thread *t, const void *block, size_t size, enum alloc_domain domain,
                        const void *caller) {
    int error = errno;
    __atomic_fetch_add(&alloc_samples_inside, 1, __ATOMIC_ACQUIRE);
    if (__atomic_load_n(&alloc_samples_on, __ATOMIC_ACQUIRE)) {
        /* not the time for which others had its CPU meanwhile */
        uint64_t begin_ns = clock_self_cpu_ns();
        struct alloc_record r = {.size = size,
                                 .mean = t->mean,
                                 .serial = __atomic_add_fetch(&alloc_samples_serial, 1, __ATOMIC_RELAXED),
                                 .caller = (uint64_t)(uintptr_t)caller,
                                 .taken_ns = clock_mono_ns(),
                                 .domain = (uint8_t)domain};
        struct alloc_samples_scratch *s = alloc_samples_claim(t);
        alloc_samples_draw(t);
        alloc_samples_copy_frames(s, &r);
        uint64_t ended = 0;
        r.entry = alloc_samples_insert(block, r.serial, &ended);
        if (alloc_samples_put(&r, s ? &s->self : NULL) != 0) {
            alloc_samples_withdraw(r.entry, block, ended);
            alloc_samples_count(&alloc_samples_stats.lost, 1);
            alloc_samples_count(
                &alloc_samples_stats.lost_bytes[domain],
                (uint64_t)(alloc_sites_weight((struct alloc_sites_size){.size = size, .mean = r.mean}) *
                           (double)size));
        }
        if (s)
            __atomic_store_n(&s->busy, 0, __ATOMIC_RELEASE);
        alloc_samples_count(&alloc_samples_stats.samples, 1);
        alloc_samples_count(&alloc_samples_stats.spent_ns, clock_self_cpu_ns() - begin_ns);
    }
    __atomic_fetch_sub(&alloc_samples_inside, 1, __ATOMIC_RELEASE);
    errno = error;
}

/* ---- for the agent ---- */

/* Zeros, and the memory goes back to the kernel. */
static void alloc_samples_clear(void *memory, size_t size) {
    if (madvise(memory, size, MADV_DONTNEED) != 0)
        memset(memory, 0, size);
}

static void alloc_samples_clear_all(void) {
    _Static_assert(sizeof alloc_samples_live % ALLOC_SAMPLES_PAGE == 0 &&
                       sizeof alloc_samples_threads % ALLOC_SAMPLES_PAGE == 0 &&
                       sizeof alloc_samples_filter % ALLOC_SAMPLES_PAGE == 0,
                   "whole pages are given back");
    alloc_samples_clear(alloc_samples_live, sizeof alloc_samples_live);
    alloc_samples_clear(alloc_samples_ring, sizeof alloc_samples_ring);
    alloc_samples_clear(alloc_samples_scratch,
                        sizeof alloc_samples_scratch / ALLOC_SAMPLES_PAGE * ALLOC_SAMPLES_PAGE);
    alloc_samples_clear(alloc_samples_threads, sizeof alloc_samples_threads);
    alloc_samples_clear(alloc_samples_filter, sizeof alloc_samples_filter);
    memset(alloc_samples_dirty, 0, sizeof alloc_samples_dirty);
    for (size_t i = 0; i < ALLOC_SAMPLES_SCRATCH; i++)
        alloc_samples_scratch[i].busy = 0;
    alloc_samples_head = alloc_samples_tail = alloc_samples_last = 0;
}

int alloc_samples_begin(struct pystack *ps, void *(*current)(void), uint64_t mean) {
    if (!alloc_samples_stop())
        return -1;
    alloc_samples_clear_all();
    alloc_samples_stats = (struct alloc_samples_stats){.calls = 0};
    memset(&alloc_samples_codes, 0, sizeof alloc_samples_codes);
    for (size_t i = 0; ps && i < ALLOC_SAMPLES_SCRATCH; i++)
        pystack_self_prepare_own(ps, &alloc_samples_scratch[i].self, &alloc_samples_codes);
    alloc_samples_current = ps ? current : NULL;
    alloc_samples_set_mean(mean);
    __atomic_store_n(&alloc_samples_on, 1, __ATOMIC_RELEASE);
    return 0;
}

bool alloc_samples_stop(void) {
    __atomic_store_n(&alloc_samples_on, 0, __ATOMIC_SEQ_CST);
    for (int i = 0; __atomic_load_n(&alloc_samples_inside, __ATOMIC_SEQ_CST); i++) {
        const struct timespec pause = {.tv_nsec = (long)CLOCK_NS_PER_MS};
        if (i == ALLOC_SAMPLES_END_TRIES)
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

void alloc_samples_end(void) {
    if (alloc_samples_stop())
        alloc_samples_clear_all();
}

void alloc_samples_set_mean(uint64_t mean) { __atomic_store_n(&alloc_samples_mean, mean, __ATOMIC_RELAXED); }

struct pystack_known *alloc_samples_known(void) {
    return &alloc_samples_codes;
}

void alloc_samples_get_stats(struct alloc_samples_stats *out) {
    *out = alloc_samples_stats;
    for (size_t i = 0; i < ALLOC_SAMPLES_THREADS; i++)
        if (__atomic_load_n(&alloc_samples_threads[i].self, __ATOMIC_RELAXED))
            out->calls += alloc_samples_threads[i].calls;
}

#define ALLOC_SAMPLES_MEASURED 20000

double alloc_samples_call_ns(void) {
    uint32_t block = 0;
    uint64_t begin_ns = clock_self_cpu_ns();
    for (int i = 0; i < ALLOC_SAMPLES_MEASURED; i++) {
        struct alloc_thread *t = alloc_samples_enter();
        if (t)
            alloc_samples_leave(t, &block, 0, ALLOC_NATIVE, NULL);
        alloc_samples_forget(&block);
    }
    return (double)(clock_self_cpu_ns() - begin_ns) / ALLOC_SAMPLES_MEASURED;
}

void alloc_samples_in_child(void) {
    __atomic_store_n(&alloc_samples_on, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&alloc_samples_inside, 0, __ATOMIC_RELAXED);
}
