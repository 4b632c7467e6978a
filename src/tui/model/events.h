/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events: the recent past of a target in numbers, and what of it is an event: pauses, losses, long collections of garbage.
 *
 * Fed with everything that comes of a target, shown or not; keeps rows of numbers for the Overview screen and writes the events to
 * the log. Part of struct data. Times are the caller's. One thread.
 */
#ifndef TUI_MODEL_EVENTS_H
#define TUI_MODEL_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/model.h"
#include "client/session/session.h"
#include "client/target/proc_stats.h"
#include "tui/model/log.h"
#include "tui/model/meter.h"

#define EVENTS_GC_LONG_S 0.050 /* a collection of garbage that is an event */
#define EVENTS_DROPS_S 10.0    /* between two events of losses: they are added up */
#define EVENTS_SILENT_S 5.0    /* no data for so long, though the connection stands: an event */
#define EVENTS_RATE_LOW 0.8    /* of the rate asked for: less is an event, ... */
#define EVENTS_RATE_WELL 0.9   /* ... and so much again is another */
#define EVENTS_GC_RUNS 8       /* threads that collect at the same time */
#define EVENTS_STATUS_S 5.0    /* the agent is asked about itself so seldom */
#define EVENTS_RUNS_STAY_S 2.0 /* while samples come, snapshots do not tell of collections */
#define EVENTS_LOW_BATCHES 8   /* a rate is low after so many batches in a row */

/* Numbers with a history, one value a snapshot; of the rate: a batch. */
enum events_meter {
    EVENTS_CPU_MAIN,   /* % of one core: the main thread, */
    EVENTS_CPU_PYTHON, /* other threads that run Python, */
    EVENTS_CPU_NATIVE, /* and those that do not: OpenMP, autograd, CUDA */
    EVENTS_GIL_WAIT,   /* 100 somebody waits for the GIL, 0 nobody */
    EVENTS_RSS,        /* bytes */
    EVENTS_AGENT,      /* % of one core */
    EVENTS_RATE,       /* looks a second at every thread */
    EVENTS_METERS,
};

/* A thread that collects garbage, as far as it was seen. */
struct events_run {
    int64_t tid; /* 0: free */
    double first_s, last_s;
    unsigned looks;
};

struct events {
    struct meter meters[EVENTS_METERS];
    struct proc_stats vitals; /* valid where vitals_at_s > 0 */
    double vitals_at_s;       /* when they were read, on the caller's clock */
    double budget_pct;        /* what looking may cost, of one core; 0 not known */
    double status_at_s;       /* when the agent was last asked about itself; 0 never */
    int64_t others;           /* processes that are connected to the agent, too; as far as it tells */
    bool steps_told;          /* torch tells of training steps */
    char steps_note[160];     /* why it does not; "" it does, or that is not known */
    uint64_t holds;           /* how often the agent had the GIL, */
    double hold_us;           /* and for how long at most; NAN never, or not known */
    char way[64];             /* by which way the agent came in; "" not known */
    double gc_s;              /* the last long collection: how long, 0: none was seen */
    double gc_at_s;           /* and when it ended, seconds since the epoch */
    char gc_who[64];
    /* for the events */
    double began_s;   /* the attach began, on the caller's clock; 0 not known */
    char reason[128]; /* why it reconnects, as last told */
    bool was_connected, silent, stopped, is_low;
    double stopped_at_s, newest_s;
    uint64_t missed, dropped;               /* as last told */
    uint64_t missed_before, dropped_before; /* as last counted */
    uint64_t missed_all, dropped_all;
    double losses_at_s;
    struct events_run runs[EVENTS_GC_RUNS], looks[EVENTS_GC_RUNS]; /* by samples, and by snapshots */
    double samples_at_s;
    double rate_told;
    unsigned low_batches;
};

/* Where events go, and when it is. `pid`: of the target if it is one of several, else 0. */
struct events_place {
    struct log *log;
    int64_t pid;
    double now_s, epoch_s;
};

struct data;

/* What came, after `d` has taken it. */
void events_see_state(struct data *d, enum session_state before, const struct events_place *p);
void events_see_target(struct data *d, bool is_first, const struct events_place *p);
void events_see_snapshot(struct data *d, const struct events_place *p);
void events_see_samples(struct data *d, const struct model_sample_batch *b, double asked_hz,
                        const struct events_place *p);
void events_see_status(struct data *d, const struct model_status *s, const struct events_place *p);
void events_see_proc_stats(struct data *d, const struct proc_stats *v, const struct events_place *p);

/* Time went by: is the target silent? `delay_s`: between two snapshots. */
void events_see_time(struct data *d, double delay_s, const struct events_place *p);

/* What a thread counts as: EVENTS_CPU_MAIN, EVENTS_CPU_PYTHON (it has a Python thread state) or EVENTS_CPU_NATIVE. */
enum events_meter events_class(const struct data *d, const struct model_thread *t);

/* CPU of all threads of a class in a snapshot, % of one core: of those of which it is known; NAN of none. `*n` threads. */
double events_class_cpu(const struct data *d, const struct model_snapshot *s, enum events_meter class,
                        size_t *n);

#endif
