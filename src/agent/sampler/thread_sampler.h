/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread_sampler: looks at every Python thread at each tick and collects what it saw.
 *
 * A thread whose CPU clock has not moved since the last look has the stack it had then: nothing is read. That is also known
 * afterwards, so with many idle threads several ticks share a look, and their samples are recorded then. One that runs is
 * asked for its own frames (signal_sampler.h), and its sample is there at the next tick; one that ran and sleeps is read from here,
 * because it does not move. Stacks become numbers of a trie; when that is full, what was collected is sent, all numbers are
 * forgotten and the epoch counts up.
 * Belongs to the sampler's thread.
 */
#ifndef AGENT_SAMPLER_THREAD_SAMPLER_H
#define AGENT_SAMPLER_THREAD_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/server/queue.h"
#include "base/clock.h"
#include "base/model.h"
#include "base/trie.h"
#include "pystack/pystack.h"

#define THREAD_SAMPLER_PENDING 4 /* ticks in a row at which nobody looks whether idle threads ran, */
#define THREAD_SAMPLER_WAIT_NS (50 * CLOCK_NS_PER_MS) /* and the time that they may take */
#define THREAD_SAMPLER_BATCH 8000                     /* samples */

struct thread_sampler_thread {
    struct pystack_thread py; /* name is NULL: see below */
    uint64_t cpu_ns;          /* its clock at the last look */
    uint64_t cpu_now_ns;      /* and at this one */
    bool kept;                /* it is in the new list of threads too */
    bool looked;              /* stack_id, gil and torn are of the last look */
    bool moved;
    bool rested; /* it was not active at the ticks that are pending */
    bool active; /* it moved lately: its clock is read at every tick */
    bool torn;
    bool asked;      /* for its own frames, at asked_at; no sample of that tick yet */
    uint8_t broken;  /* copies in a row that did not hang together */
    bool late;       /* asked, and read from here meanwhile: the answer is not needed any more */
    double asked_at; /* timestamp */
    enum model_gil gil;
    int8_t gc;
    uint32_t stack_id;
    uint64_t changed_ns;           /* when it was first found to be this one */
    uint32_t native_id, merged_id; /* as struct model_sample */
    char *name;                    /* owned; NULL unknown */
    char native_name[16];
    uint64_t names_at_ns; /* when the native name was read */
    uint64_t names;       /* value of profile.names when a name changed last */
};

struct thread_sampler {
    struct trie trie;
    uint32_t epoch;
    uint64_t names; /* counts changes of names */
    struct thread_sampler_thread *threads;
    size_t n_threads;
    uint64_t listed_ns, list_cpu_ns;     /* when the list was read, and what that took */
    struct thread_sampler_thread *ended; /* threads that are gone but have samples in this batch */
    size_t n_ended, cap_ended;
    struct model_sample *samples;
    size_t n_samples;
    uint64_t idle_cpu_ns;   /* CPU time of all that is not active, as of the last look at every clock */
    uint64_t others_cpu_ns; /* of the agent's other threads, as of the last look at theirs */
    uint64_t moved_ns;      /* when one had run last that we looked at */
    uint64_t marked_ns,
        restless_ns;         /* when the list's marks were looked at last, and were others than before */
    uint64_t idle_looked_ns; /* when that was compared last */
    double pending
        [THREAD_SAMPLER_PENDING]; /* timestamps of ticks since, at which idle threads have no sample yet */
    size_t n_pending;
    bool waiting;                               /* this tick is one of them */
    uint64_t last_tick_ns, elapsed_ns, n_ticks; /* of this batch */
    double period_us;                           /* mean time between its ticks */
    bool exact;                                 /* threads that run are asked */
    bool native;                                /* native frames are collected too: */
    bool native_sent;                           /* as they are, for those who can merge them, */
    bool native_kept;                           /* and merged, for the tables */
    struct model_frame *joined;                 /* THREAD_SAMPLER_NATIVE_FRAMES; NULL: they never were */
    struct thread_sampler_merge *merge;         /* NULL: nothing was ever merged */
    struct pystack_known *known;
    uint64_t total_samples, total_torn, total_exact, total_retried, unknown_frames, read_errors;
    uint64_t total_cut;       /* stacks read whose outermost frames were left out */
    uint64_t total_swept;     /* ticks at which every thread's clock was read */
    void (*flush)(void *arg); /* send what is collected; then thread_sampler_clear_batch is called */
    void *arg;
};

/* 0, or -1 without memory. */
int thread_sampler_init(struct thread_sampler *p, void (*flush)(void *arg), void *arg);
void thread_sampler_fini(struct thread_sampler *p);

/* Nobody samples any more: forget the threads and the batch, keep the numbers. */
void thread_sampler_pause(struct thread_sampler *p);

/* Collect stacks with native frames too, to be sent or to be kept, or not any more. */
void thread_sampler_set_native(struct thread_sampler *p, struct pystack *ps, bool sent, bool kept);

/* Begin with no stacks: what is collected is sent, all numbers are forgotten, every stack is looked at again. */
void thread_sampler_new_epoch(struct thread_sampler *p);

/* Look at all Python threads, `wanted_ns` being the mean time between ticks. */
void thread_sampler_tick(struct thread_sampler *p, struct pystack *ps, uint64_t wanted_ns);

/* Has nobody run for a while? Then ticks may be slept through, which thread_sampler_pass notes afterwards. */
bool thread_sampler_is_idle(const struct thread_sampler *p);

/* A tick at which nobody looked, before the next thread_sampler_tick. */
void thread_sampler_pass(struct thread_sampler *p, double timestamp);

/* Look whether idle threads ran at the ticks that are pending, and record those. Before a batch is sent. */
void thread_sampler_settle(struct thread_sampler *p);

/* Tell in a snapshot for how long the samples of each thread have found the same stack. */
void thread_sampler_put_same(const struct thread_sampler *p, struct model_snapshot *s);

/* Record what threads that were asked have answered since. */
void thread_sampler_collect(struct thread_sampler *p, struct pystack *ps);

/* What a client that has seen `seen` gets of this batch from sample `first_sample` on; `*now` is what it has seen then. Rows
 * are borrowed from the profile but for out->threads; freed by model_sample_batch_fini. 0, or -1 without memory. */
int thread_sampler_get_batch(const struct thread_sampler *p, const struct queue_mark *seen,
                             size_t first_sample, struct model_sample_batch *out, struct queue_mark *now);

void thread_sampler_clear_batch(struct thread_sampler *p);

/* Memory held. */
size_t thread_sampler_bytes(const struct thread_sampler *p);

#endif
