/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sampler_internal: shared by sampler.c and sampler_fatal.c: the sampler, and its plan.
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
#include "agent/sampler/signal_sampler.h"
#include "agent/server/mailbox.h"
#include "agent/threads.h"
#include "agent/torch/probes.h"
#include "agent/torch/training.h"
#include "agent/sampler/thread_sampler.h"
#include "agent/sampler/spending.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/cost.h"
#include "base/err.h"
#include "pystack/pystack.h"

#define SAMPLER_SLOWEST_NS CLOCK_NS_PER_S /* maximum interval of a stream: a picture must move */
#define SAMPLER_NEVER MAILBOX_FOREVER

struct sampler {
    struct mailbox *mailbox;
    void (*wake)(void *arg);
    void *arg;
    pthread_t thread;
    struct pystack *ps;
    uint64_t opened_ns; /* time of the last attempt */
    struct sampler_liveness {
        uint64_t checked_ns;
        unsigned losses; /* failed checks in a row */
        int file;        /* see pystack_own_file; + 1 */
    } liveness;
    struct err ps_error;
    struct thread_sampler profile;
    struct pending_snapshots complete;
    struct cost snapshot_cost;
    struct spending spending; /* for samples */
    struct cost_meter meter;
    struct cost_pace pace;
    uint64_t tick_due_ns, flush_due_ns; /* SAMPLER_NEVER while nobody samples */
    uint64_t batch_ns;                  /* time between two batches */
    /* ticks before the one at tick_due_ns that are skipped in sleep */
    uint64_t passed_ns[THREAD_SAMPLER_PASSED - 1];
    size_t n_passed;
    uint32_t planned; /* the mailbox's count of changes at the last complete plan */
    bool replan;      /* the plan is out of date for another reason */
    struct threads_stack stack;
    uint64_t snapshots, read_errors, limit_hits;
    struct signal_sampler_stats signals;
    /* threads cannot be asked, for the reason in exact_error; until nobody samples any longer */
    bool exact_off;
    struct err exact_error;
    char timers_off[160]; /* why no timers are used, likewise; "" if they may be */
    uint64_t mean_ns;     /* between ticks, as the budget allows */
    /* with timers: the next tick to be recorded, 0 unknown; and the time of the last drain */
    uint64_t next_tick_ns, drained_ns;
    bool stretched_snapshots, stretched_samples;
    struct background always;
    struct training training;
    struct probes probes;
    struct err config_error; /* of the job's environment */
    double budget_pct;       /* for all work of this thread and the handlers */
    struct cost_meter own_meter;
};

/* A request of a client. */
struct sampler_request {
    uint32_t peer;
    bool looker; /* read-only */
    struct mailbox_ask ask;
};

/* A client whose stream of threads is due. */
struct sampler_stream {
    uint32_t peer;
    bool looker;
};

/* The work to do now, taken from the mailbox. */
struct sampler_plan {
    struct sampler_request requests[MAILBOX_SLOTS * MAILBOX_MAX_ASKS];
    size_t n_requests;
    uint32_t methods; /* of them: a bit each */
    struct sampler_stream streams[MAILBOX_SLOTS];
    size_t n_streams;
    bool threads; /* a snapshot for requests or streams */
    bool tick, flush, poke;
    struct background_plan always;
    /* a snapshot that waits for the python worker is ready or late */
    bool complete;
    bool quiet;                       /* no stream is left: nothing stays armed */
    struct mailbox_reading *readings; /* what the server has read for requests of its own */
    bool probes;                      /* leases are to be checked */
    bool gentle;                      /* a client forbids signals */
    struct snapshot_request wishes;   /* options of the snapshot */
    /* with native frames: for a client's stream, for the tables */
    bool native_samples, native_kept;
    double sample_hz, snapshot_hz; /* the fastest of each stream */
    /* the shortest interval of batches that a client asks for; 0 if none does */
    double batch_s;
    uint64_t next_ns;
};

/* Plan the work at `now`, and the time of the next work. With the mailbox locked; `plan` is the
 * last one. */
void sampler_make_plan(struct sampler *s, struct sampler_plan *plan, uint64_t now);
bool sampler_is_idle(const struct sampler_plan *plan);

/* The interpreter's reader, searched for again if necessary; NULL if there is none. */
struct pystack *sampler_pystack(struct sampler *s);

/* A fatal signal has arrived: record the stacks of every thread. Its thread waits meanwhile, for
 * a bounded time. */
void sampler_keep_fatal(struct sampler *s);
void sampler_note_fatal(void *arg); /* wakes the sampler for that; async-signal-safe */

#endif
