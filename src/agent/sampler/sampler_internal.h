/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sampler_internal: what sampler.c and sampler.c share: the sampler, and what there is for it to do.
 *
 * Everything belongs to the sampler's thread.
 */
#ifndef AGENT_SAMPLER_SAMPLER_INTERNAL_H
#define AGENT_SAMPLER_SAMPLER_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/background.h"
#include "agent/sampler/snapshot_request.h"
#include "agent/sampler/pending_snapshots.h"
#include "agent/server/evals.h"
#include "agent/sampler/signal_sampler.h"
#include "agent/server/mailbox.h"
#include "agent/threads.h"
#include "agent/torch/probes.h"
#include "agent/torch/training.h"
#include "agent/sampler/thread_sampler.h"
#include "agent/python/virtual_tables.h"
#include "agent/sampler/spending.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/cost.h"
#include "base/err.h"
#include "pystack/pystack.h"

#define SAMPLER_SLOWEST_NS CLOCK_NS_PER_S /* a stream is never stretched beyond: a picture must move */
#define SAMPLER_NEVER MAILBOX_FOREVER

struct sampler {
    struct mailbox *mailbox;
    void (*wake)(void *arg);
    void *arg;
    pthread_t thread;
    struct pystack *ps;
    uint64_t opened_ns; /* last try */
    struct sampler_liveness {
        uint64_t checked_ns;
        unsigned losses; /* looks in a row that did not find the interpreter */
        int file;        /* see pystack_own_file; + 1 */
    } liveness;
    struct err ps_error;
    struct thread_sampler profile;
    struct pending_snapshots complete;
    struct virtual_tables made;
    struct evals evals;
    struct cost snapshot_cost;
    struct spending spending; /* on samples */
    struct cost_meter meter;
    struct cost_pace pace;
    uint64_t tick_due_ns, flush_due_ns; /* SAMPLER_NEVER when nobody samples */
    uint64_t batch_ns;                  /* time between two batches */
    uint64_t
        passed_ns[THREAD_SAMPLER_PENDING - 1]; /* ticks before that at tick_due_ns, at which nobody looks */
    size_t n_passed;
    uint32_t planned; /* the mailbox's count of changes at the last whole plan, */
    bool replan;      /* which does not hold any more for a reason of our own */
    struct threads_stack stack;
    uint64_t snapshots, read_errors, limit_hits;
    struct signal_sampler_stats signals;
    bool
        exact_off; /* threads cannot be asked, for the reason in exact_error; until nobody samples any more */
    struct err exact_error;
    bool stretched_snapshots, stretched_samples;
    struct background always;
    struct training training;
    struct probes probes;
    struct err config_error; /* of the job's environment */
    double budget_pct;       /* for everything this thread and the handlers do */
    struct cost_meter own_meter;
};

/* What there is to do now, copied from the mailbox. */
struct sampler_plan {
    struct mailbox_slot slots[MAILBOX_SLOTS]; /* peer 0: nothing for it */
    bool hello, threads, tick, flush, poke;
    struct background_plan always;
    bool complete;                    /* something that waits for the python worker is ready or late */
    bool quiet;                       /* no stream is left: nothing stays armed */
    bool leave;                       /* somebody wants no more samples */
    bool tables;                      /* somebody wants the tables, or rows of one */
    bool rows;                        /* somebody wants rows that Python makes */
    bool evals;                       /* somebody wants code to be run */
    bool probes;                      /* what is armed for somebody is to be looked after */
    bool gentle;                      /* somebody wants no signals to be sent */
    struct snapshot_request wishes;   /* for the snapshot */
    bool native_samples, native_kept; /* with native frames: somebody's stream, the tables */
    double sample_hz, snapshot_hz;    /* the fastest of each stream */
    double batch_s;                   /* the shortest time between batches that is wanted; 0: nobody minds */
    uint64_t next_ns;
};

/* What there is to do at `now`, and when there is something next. With the mailbox locked; `plan` is the last one. */
void sampler_make_plan(struct sampler *s, struct sampler_plan *plan, uint64_t now);
bool sampler_is_idle(const struct sampler_plan *plan);

/* The interpreter's reader, found anew if it has to be; NULL: there is none. */
struct pystack *sampler_pystack(struct sampler *s);

/* A fatal signal has come: keep what every thread does. Its thread waits meanwhile, for a bounded time. */
void sampler_keep_fatal(struct sampler *s);
void sampler_note_fatal(void *arg); /* wakes the sampler for that; async-signal-safe */

/* Rows that Python makes, and code that is to be run. */
void sampler_answer_virtual(struct sampler *s, const struct sampler_plan *plan);
void sampler_answer_evals(struct sampler *s, const struct sampler_plan *plan);

#endif
