/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc_samples: which allocations are samples, and whether they still live: for the hooks, on the
 * job's threads.
 *
 * Each thread counts its bytes down to its next sample; the distances are exponentially distributed,
 * so an allocation of `size` bytes is a sample with probability 1 - exp(-size / mean), whatever
 * the job's rhythm. The thread copies its own Python frames, puts the block's address into a table of
 * live samples and a record into a ring, which the sampler's thread reads. A free is searched for in
 * that table only where a small filter says that it may be there. Everything is fixed memory, which
 * is given back to the kernel when tracing ends but stays mapped, because hooks may outlive the agent.
 * Nothing here allocates, waits or locks.
 */
#ifndef AGENT_ALLOC_ALLOC_SAMPLES_H
#define AGENT_ALLOC_ALLOC_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cost.h"
#include "pystack/self.h"

#define ALLOC_SAMPLES_LIVE 65536 /* samples whose end is awaited */
#define ALLOC_SAMPLES_WAYS 8
#define ALLOC_SAMPLES_THREADS 4096
#define ALLOC_SAMPLES_FRAMES 256 /* of a stack; the outermost ones are left out */
#define ALLOC_SAMPLES_NONE UINT32_MAX
#define ALLOC_SAMPLES_FILTER_BITS 15 /* so that it stays in the first cache */

enum alloc_domain {
    ALLOC_PYTHON = 0, /* an allocator of Python's */
    ALLOC_NATIVE,     /* malloc and its kin */
    ALLOC_TORCH,      /* the same, called by torch's CPU allocator */
    ALLOC_DOMAINS,
};

/* A thread that allocates. Found by its thread pointer: thread-local variables of a library that is
 * loaded late are themselves allocated, or take what little room the loader has left. */
struct alloc_thread {
    uint64_t self;  /* atomic: its thread pointer; 0 free */
    int64_t left;   /* bytes until its next sample */
    uint64_t mean;  /* with which that was drawn */
    uint64_t calls; /* of hooks */
    struct cost_pace pace;
    uint32_t depth; /* 1: within a hook; what is allocated meanwhile is part of the same */
} __attribute__((aligned(64)));

/* What lies in front of the frames and keys of a record. */
struct alloc_record {
    uint32_t length;   /* atomic: with everything; 0 not complete */
    uint32_t n_frames; /* UINT32_MAX: nothing, up to the end of the ring */
    uint32_t n_keys;
    /* of the table of live samples; a sample that had it before has ended; ALLOC_SAMPLES_NONE: not
     * followed */
    uint32_t entry;
    uint64_t size, mean;
    uint64_t serial; /* of the sample, never 0 */
    uint64_t caller; /* address of an instruction of who called malloc; 0 for Python's */
    uint64_t taken_ns;
    uint8_t domain, end; /* enum alloc_domain, enum pystack_self_end */
};

struct alloc_samples_stats {
    uint64_t calls;                     /* of hooks */
    uint64_t samples;                   /* that were taken */
    uint64_t lost;                      /* without room in the ring */
    uint64_t lost_bytes[ALLOC_DOMAINS]; /* that these stand for */
    uint64_t unknown;                   /* without a stack: it could not be copied */
    uint64_t unfollowed;                /* whose end will not be seen: the table was full there */
    uint64_t strangers;                 /* calls by threads without a place in the table of threads */
    uint64_t spent_ns;                  /* CPU time of taking samples, of all threads together */
};

/* ---- for the hooks ---- */

extern uint32_t alloc_samples_on; /* atomic */
extern uint8_t alloc_samples_filter[1 << ALLOC_SAMPLES_FILTER_BITS];
extern struct alloc_thread alloc_samples_threads[ALLOC_SAMPLES_THREADS];

/* Those of alloc_samples.c that are rarely needed. */
struct alloc_thread *alloc_samples_join(uint64_t self);
void alloc_samples_take(struct alloc_thread *t, const void *block, size_t size, enum alloc_domain domain,
                        const void *caller);
void alloc_samples_remove(const void *block);

static inline uint64_t alloc_samples_hash(const void *block) {
    return ((uint64_t)(uintptr_t)block >> 4) * 0x9E3779B97F4A7C15ULL;
}

static inline size_t alloc_samples_place(uint64_t self) {
    return (size_t)((self >> 6) * 0x9E3779B97F4A7C15ULL >> 52);
}

/* pthread_self without a call: the thread pointer, which lies where it points to (x86-64 psABI, ELF
 * Handling For Thread-Local Storage, 3.4.6). */
static inline uint64_t alloc_samples_self(void) {
    uint64_t self;
    __asm__("movq %%fs:0, %0" : "=r"(self));
    return self;
}

/* The calling thread begins an allocation: to be followed by alloc_samples_leave. NULL: it does not
 * count, because nothing is traced or because it is part of another one. */
static inline struct alloc_thread *alloc_samples_enter(void) {
    if (__builtin_expect(!__atomic_load_n(&alloc_samples_on, __ATOMIC_RELAXED), 0))
        return NULL;
    uint64_t self = alloc_samples_self();
    struct alloc_thread *t = &alloc_samples_threads[alloc_samples_place(self)];
    if (__builtin_expect(__atomic_load_n(&t->self, __ATOMIC_RELAXED) != self, 0))
        t = alloc_samples_join(self);
    if (!t || t->depth)
        return NULL;
    t->depth = 1;
    return t;
}

/* It has got `block` of `size` bytes, or NULL. */
static inline void alloc_samples_leave(struct alloc_thread *t, const void *block, size_t size,
                                       enum alloc_domain domain, const void *caller) {
    t->calls++;
    t->left -= block ? (int64_t)size : 0;
    if (__builtin_expect(t->left < 0, 0))
        alloc_samples_take(t, block, size, domain, caller);
    t->depth = 0;
}

/* A block is about to be freed, or was given out: no sample lives there any longer. */
static inline void alloc_samples_forget(const void *block) {
    if (__builtin_expect(
            __atomic_load_n(
                &alloc_samples_filter[alloc_samples_hash(block) >> (64 - ALLOC_SAMPLES_FILTER_BITS)],
                __ATOMIC_RELAXED),
            0))
        alloc_samples_remove(block);
}

/* ---- for the agent ---- */

/* From now on hooks take samples, `mean` bytes apart. `ps` and `current`, which returns the calling
 * thread's thread state: both NULL if there is no Python. 0, or -1 if a thread of the job has not
 * yet left the last tracing. Called by the sampler's thread, like all that follow. */
int alloc_samples_begin(struct pystack *ps, void *(*current)(void), uint64_t mean);

/* From now on hooks do nothing. False: a thread is still taking a sample. Any thread. */
bool alloc_samples_stop(void);

/* The same, and everything is forgotten. */
void alloc_samples_end(void);

/* The mean from the next sample of each thread on. */
void alloc_samples_set_mean(uint64_t mean);

/* Take the oldest record: valid until the next call. Its frames and keys are in `*copy`, for
 * pystack_self_decode. NULL if there is none. */
const struct alloc_record *alloc_samples_next(struct pystack_self **copy);

/* The code objects that the decoder has seen. */
struct pystack_known *alloc_samples_known(void);

/* Call `gone` for each sample that was freed, until it returns false: then that one is reported
 * again. */
void alloc_samples_each_free(bool (*gone)(void *arg, uint32_t entry, uint64_t serial), void *arg);

void alloc_samples_get_stats(struct alloc_samples_stats *out);

/* What a call of a hook costs beside the samples, measured on the calling thread. */
double alloc_samples_call_ns(void);

/* In the child of a fork: hooks do nothing there. Async-signal-safe. */
void alloc_samples_in_child(void);

#endif
