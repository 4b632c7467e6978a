/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events: the recent past of a target in numbers, and the events in it: pauses, losses, long
 * garbage collections.
 *
 * Fed with all data of a target, shown or hidden; keeps series of numbers for the Overview screen
 * and writes the events to the log. The caller gives times. One thread.
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
#include "tui/model/data.h"

#define EVENTS_GC_LONG_S 0.050 /* a garbage collection as long as that is an event */
#define EVENTS_DROPS_S 10.0    /* between two events about losses, which are added up */
#define EVENTS_SILENT_S 5.0    /* no data for so long, although connected: an event */
#define EVENTS_RATE_LOW 0.5    /* of the requested rate: less is an event, ... */
#define EVENTS_RATE_WELL 0.9   /* ... and reaching this again is another */
#define EVENTS_STATUS_S 5.0    /* how often the agent is asked for its status */
/* While samples arrive, collections are taken from them, not from snapshots. */
#define EVENTS_RUNS_STAY_S 2.0
#define EVENTS_LOW_BATCHES 8 /* a rate is low after so many batches in a row */

/* Where events go, and the time. `pid`: of the target if it is one of several, else 0. */
struct events_place {
    struct log *log;
    int64_t pid;
    double now_s, epoch_s;
};

/* New data, after `d` has taken them. */
void events_see_state(struct data *d, enum session_state before, const struct events_place *p);
void events_see_target(struct data *d, bool is_first, const struct events_place *p);
void events_see_snapshot(struct data *d, const struct events_place *p);
void events_see_samples(struct data *d, const struct model_sample_batch *b, double asked_hz,
                        const struct events_place *p);
void events_see_status(struct data *d, const struct model_status *s, const struct events_place *p);
void events_see_proc_stats(struct data *d, const struct proc_stats *v, const struct events_place *p);

/* Time has passed: is the target silent? `delay_s`: between two snapshots. */
void events_see_time(struct data *d, double delay_s, const struct events_place *p);

/* The class of a thread: EVENTS_CPU_MAIN, EVENTS_CPU_PYTHON (it has a Python thread state) or
 * EVENTS_CPU_NATIVE. */
enum events_meter events_class(const struct data *d, const struct model_thread *t);

/* CPU of all threads of a class in a snapshot, % of one core, as far as it is known; NAN: of none.
 * `*n` threads. */
double events_class_cpu(const struct data *d, const struct model_snapshot *s, enum events_meter class,
                        size_t *n);

#endif
