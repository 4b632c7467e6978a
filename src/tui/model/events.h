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
#include "tui/model/data.h"

#define EVENTS_GC_LONG_S 0.050 /* a collection of garbage that is an event */
#define EVENTS_DROPS_S 10.0    /* between two events of losses: they are added up */
#define EVENTS_SILENT_S 5.0    /* no data for so long, though the connection stands: an event */
#define EVENTS_RATE_LOW 0.8    /* of the rate asked for: less is an event, ... */
#define EVENTS_RATE_WELL 0.9   /* ... and so much again is another */
#define EVENTS_STATUS_S 5.0    /* the agent is asked about itself so seldom */
#define EVENTS_RUNS_STAY_S 2.0 /* while samples come, snapshots do not tell of collections */
#define EVENTS_LOW_BATCHES 8   /* a rate is low after so many batches in a row */

/* Where events go, and when it is. `pid`: of the target if it is one of several, else 0. */
struct events_place {
    struct log *log;
    int64_t pid;
    double now_s, epoch_s;
};

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
