/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread_sampler: reads every Python thread at each tick and collects the samples.
 *
 * A thread whose CPU clock has not moved since the last reading still has the same stack: nothing
 * is read. That also holds in retrospect, so with many idle threads several ticks share a reading,
 * and their samples are recorded then. A running thread is asked for its own frames
 * (signal_sampler.h), and its sample is available at the next tick; a thread that ran and sleeps
 * is read from here, because it does not move.
 *
 * With timers on the threads' CPU clocks (`timed`) running threads copy themselves, and ticks need no
 * wake-up: all since the last drain are recorded at the next one. How many of them a thread spent
 * on a CPU is what its clock says, and its stacks at those are its copies; at the others it has
 * the stack in which the nearest drain found it off the CPU. A thread that others keep off the CPU
 * is where it last ran: the kernel counts for how long, and so many ticks that no drain can vouch
 * for have the stack of the nearest copy.
 *
 * Stacks become numbers of a trie; when that is full, or nearly so after a drain, the collected
 * samples are sent, all numbers are forgotten and the epoch counts up. Belongs to the sampler's thread.
 */
#ifndef AGENT_SAMPLER_THREAD_SAMPLER_H
#define AGENT_SAMPLER_THREAD_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/server/queue.h"
#include "agent/sampler/signal_sampler.h"
#include "base/clock.h"
#include "base/cost.h"
#include "base/model.h"
#include "base/trie.h"
#include "pystack/pystack.h"

/* ticks in a row without a check of idle threads */
#define THREAD_SAMPLER_PENDING 4
#define THREAD_SAMPLER_WAIT_NS (50 * CLOCK_NS_PER_MS) /* and their maximum duration */
#define THREAD_SAMPLER_PASSED 256                     /* ticks in a row that are skipped in sleep */
#define THREAD_SAMPLER_BATCH 8000                     /* samples */

/* What a thread did at one time. */
struct thread_sampler_state {
    double timestamp; /* 0: there is none */
    uint32_t stack_id;
    uint32_t weight; /* of a copy: expiries of the timer */
    enum model_gil gil;
    int8_t gc;
};

/* A thread at one tick. */
struct thread_sampler_cell {
    uint32_t stack_id;
    int8_t on_cpu;
    uint8_t gil;
    int8_t gc;
    bool torn;
};

struct thread_sampler_thread {
    struct pystack_thread py; /* name is NULL: see below */
    uint64_t cpu_ns;          /* its clock at the last reading */
    uint64_t cpu_now_ns;      /* and at this one */
    bool kept;                /* it is in the new list of threads, too */
    bool looked;              /* stack_id, gil and torn are from the last reading */
    bool moved;
    bool rested; /* it was not active at the pending ticks */
    bool active; /* it moved recently: its clock is read at every tick */
    bool torn;
    bool asked;      /* for its own frames, at asked_at; that tick has no sample yet */
    uint8_t broken;  /* inconsistent copies in a row */
    bool late;       /* asked, and read from here meanwhile: the answer is no longer needed */
    double asked_at; /* timestamp */
    enum model_gil gil;
    int8_t gc;
    uint32_t stack_id;
    uint64_t changed_ns;           /* when it was first found in this state */
    uint32_t native_id, merged_id; /* as in struct model_sample */
    /* with timers: */
    enum signal_sampler_timer timer;
    uint64_t timer_ns, timer_drawn_ns; /* its interval, and when that was drawn */
    uint64_t timer_wanted_ns;          /* the mean from which */
    uint64_t untimed_ns;               /* when it was first found to run without one */
    bool rests;                        /* it was off the CPU at the last drain */
    bool runs;                         /* its clock went on during the last drain */
    struct thread_sampler_state rest;  /* the last drain that found it off the CPU */
    unsigned alike;                    /* drains before that in a row that found it in the same stack */
    struct thread_sampler_state spare; /* a copy for which there was no tick yet */
    double owed;                       /* ticks on a CPU by its clock, less those recorded */
    double slept_s;                    /* neither ran nor waited for a CPU, within about a second */
    bool wait_known;                   /* how long it had waited for a CPU by the last drain: */
    uint64_t wait_ns, got_cpu;         /* and how often it had got one */
    double wait_owed;                  /* ticks of wait_ns, less those recorded */
    long cells;                        /* its row of cells at this drain; -1: it slept all the time */
    char *name;                        /* owned; NULL if unknown */
    char native_name[16];
    uint64_t names_at_ns; /* when the native name was read */
    uint64_t names;       /* value of profile.names at the last change of a name */
};

struct thread_sampler {
    struct trie trie;
    uint32_t epoch;
    size_t kept_stacks; /* numbers that the stacks of now took when the epoch began at a drain; or 0 */
    uint64_t names;     /* counts changes of names */
    struct thread_sampler_thread *threads;
    size_t n_threads;
    uint64_t listed_ns, list_cpu_ns;     /* when the list was read, and the duration of that */
    struct thread_sampler_thread *ended; /* threads that are gone but have samples in this batch */
    size_t n_ended, cap_ended;
    struct model_sample *samples;
    size_t n_samples;
    /* CPU time of everything not active, at the last reading at every clock */
    uint64_t idle_cpu_ns;
    uint64_t others_cpu_ns;          /* of the agent's other threads, at the last reading */
    uint64_t moved_ns;               /* time of the last run that a reading found */
    uint64_t marked_ns, restless_ns; /* when the list's marks were last checked and had changed */
    uint64_t idle_looked_ns;         /* when that was last compared */
    /* timestamps of the ticks since then, for which idle threads have no sample yet */
    double pending[THREAD_SAMPLER_PASSED];
    size_t n_pending;
    bool waiting;                               /* this tick is one of them */
    uint64_t last_tick_ns, elapsed_ns, n_ticks; /* of this batch */
    double period_us;                           /* mean time between its ticks */
    bool exact;                                 /* running threads are asked */
    bool timed;                                 /* or copy themselves by timers */
    uint64_t drain_ns;                          /* time until the next drain should be made */
    uint64_t batch_ns;                          /* between batches; set by who sends them */
    uint64_t drained_ns;                        /* when all clocks were read for the last drain */
    double epoch_s;                             /* at that drain: see clock_mono_to_epoch_s */
    struct cost_pace pace;                      /* draws the intervals of timers */
    struct thread_sampler_state *states;        /* of one thread, since the last drain */
    size_t n_states, cap_states;
    struct thread_sampler_cell *cells; /* threads that ran x ticks, of one drain */
    size_t cap_cells;
    /* of the present drain: copies by timers, and how many of them describe new code */
    size_t n_copies, n_describing;
    bool crowded;     /* a thread's copies used more than half of their room */
    bool native;      /* native frames are collected too: */
    bool native_sent; /* unmerged, for clients that can merge them */
    bool native_kept; /* and merged, for the tables */
    /* THREAD_SAMPLER_NATIVE_FRAMES; NULL if never used */
    struct model_frame *joined;
    struct thread_sampler_merge *merge; /* NULL if nothing was ever merged */
    struct pystack_known *known;
    uint64_t total_samples, total_torn, total_exact, total_retried, unknown_frames, read_errors;
    uint64_t total_cut;   /* stacks read without their outermost frames */
    uint64_t total_swept; /* ticks at which every thread's clock was read */
    /* send the collected samples; then thread_sampler_clear_batch is called */
    void (*flush)(void *arg);
    void *arg;
};

/* 0, or -1 without memory. */
int thread_sampler_init(struct thread_sampler *p, void (*flush)(void *arg), void *arg);
void thread_sampler_fini(struct thread_sampler *p);

/* Sampling ends: forget the threads and the batch, keep the numbers. */
void thread_sampler_pause(struct thread_sampler *p);

/* Whether stacks are collected with native frames, to be sent or to be stored. */
void thread_sampler_set_native(struct thread_sampler *p, struct pystack *ps, bool sent, bool kept);

/* Start without stacks: the collected samples are sent, all numbers are forgotten, every stack
 * is read again. */
void thread_sampler_new_epoch(struct thread_sampler *p, struct pystack *ps);

/* The number of a stack that is not a sample's, innermost frame first; TRIE_FULL without memory. */
uint32_t thread_sampler_number(struct thread_sampler *p, struct pystack *ps, const struct model_frame *frames,
                               size_t n);

/* Sample all Python threads; `wanted_ns` is the mean time between ticks. */
void thread_sampler_tick(struct thread_sampler *p, struct pystack *ps, uint64_t wanted_ns);

/* Use timers, or no longer. The ticks that were passed are recorded first. */
void thread_sampler_set_timed(struct thread_sampler *p, struct pystack *ps, bool timed);

/* With timers: record the ticks passed since the last drain. `wanted_ns` is the mean time between
 * ticks, and between the copies of a thread that runs. p->drain_ns is then the time until the next
 * drain. */
void thread_sampler_drain(struct thread_sampler *p, struct pystack *ps, uint64_t wanted_ns);

/* For how long nobody has run; 0 if somebody did lately. Otherwise ticks may be skipped in sleep
 * and recorded later by thread_sampler_pass. */
uint64_t thread_sampler_idle_ns(const struct thread_sampler *p);

/* True if nobody is known to have run since then; clocks were compared just now. */
bool thread_sampler_nobody_ran(const struct thread_sampler *p, uint64_t since_ns);

/* Record a skipped tick, before the next thread_sampler_tick. */
void thread_sampler_pass(struct thread_sampler *p, struct pystack *ps, double timestamp);

/* Check whether threads ran at the pending ticks, and record these ticks. Called before a batch
 * is sent. `ps` NULL: the ticks are lost. */
void thread_sampler_settle(struct thread_sampler *p, struct pystack *ps);

/* Put into a snapshot for how long the samples of each thread have found the same stack. */
void thread_sampler_put_same(const struct thread_sampler *p, struct model_snapshot *s);

/* Record the answers of threads that were asked. */
void thread_sampler_collect(struct thread_sampler *p, struct pystack *ps);

/* The part of this batch for a client that has seen `seen`, from sample `first_sample` on;
 * `*now` is what it has seen afterwards. Rows are borrowed from the profile except for
 * out->threads; freed by model_sample_batch_fini. 0, or -1 without memory. */
int thread_sampler_get_batch(const struct thread_sampler *p, const struct queue_mark *seen,
                             size_t first_sample, struct model_sample_batch *out, struct queue_mark *now);

void thread_sampler_clear_batch(struct thread_sampler *p);

/* Memory in use. */
size_t thread_sampler_bytes(const struct thread_sampler *p);

#endif
