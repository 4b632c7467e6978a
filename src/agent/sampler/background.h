/* SPDX-License-Identifier: Apache-2.0 */
/*
 * background: the sampler's work without any client: a few ticks per second, and the tables.
 *
 * An agent that was started by a client waits a little for the client to choose whether signals
 * may be sent. The rows of each second are written at a tick, if there is one soon. All
 * functions but background_init are called by the sampler's thread; those with a mailbox, with
 * its lock, unless they take it themselves, which their comment then mentions.
 */
#ifndef AGENT_SAMPLER_BACKGROUND_H
#define AGENT_SAMPLER_BACKGROUND_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/sampler/thread_sampler.h"
#include "agent/server/mailbox.h"
#include "agent/tables/record.h"
#include "agent/torch/training.h"

/* Longest time between two ticks while nobody runs: rows of a second that wait for the tick after
 * them */
#define BACKGROUND_SLEEP_NS (1300 * CLOCK_NS_PER_MS)

struct background {
    struct record record;
    struct config config;
    uint32_t config_changes;
    uint64_t patient_until_ns; /* how long to wait for a client's choice */
    double hz;                 /* of all samples, as last planned */
    bool listened;             /* a client receives them */
    bool outgrown;             /* see record_take */
    uint64_t epoch_ns;         /* time of the last epoch started for the tables */
    uint64_t second_ns;        /* time of the last rows of a second */
    uint64_t second_others_ns; /* CPU time of the agent's other threads then */
    struct cost_meter meter;
};

/* The part of it to do now. */
struct background_plan {
    bool configure; /* the settings have changed */
    /* samples are taken at another rate, or for other clients: a new batch starts */
    bool retune;
    bool soon;  /* and the next tick is due now */
    bool fresh; /* a client begins to listen */
    bool second;
};

/* `m`: contains the configuration; it is not shared yet. */
void background_init(struct background *a, struct mailbox *m, bool invited);

/* Read the changed settings, before the plan is made. */
void background_read(struct background *a, const struct mailbox *m, struct background_plan *plan);

/* Ticks per second that are taken in any case; `*next_ns` is lowered to the time when that
 * changes. */
double background_rate(const struct background *a, const struct mailbox *m, uint64_t now_ns,
                       uint64_t *next_ns);

/* True if these ticks, while nobody else samples, are to be taken without signals. */
bool background_gentle(const struct background *a, const struct mailbox *m);

/* Samples are taken at `hz` (0: none), for a client (`listened`) or only for the tables. */
void background_tune(struct background *a, double hz, bool listened, struct background_plan *plan);

/* Plan the rows of each second if they are due. `tick`: there is one now; `ticking`: there are
 * ticks. */
void background_plan_second(const struct background *a, bool tick, bool ticking, uint64_t now_ns,
                            struct background_plan *plan, uint64_t *next_ns);

/* The time until which the rows of the second after `now_ns` may wait for a tick; RECORD_NEVER
 * without tables. */
uint64_t background_latest_ns(const struct background *a, uint64_t now_ns);

/* The samples being collected, for the writers of rows. Borrowed until the next tick. */
struct record_samples background_samples(const struct thread_sampler *p);

/* Put the tables' state into the mailbox's status; takes the lock. */
void background_publish(struct background *a, const struct training *training, struct mailbox *m);

/* Fill the part of a row of status about clients: their number, their drops; takes the lock.
 * Returns the memory of the server's thread. */
size_t background_view(const struct background *a, struct mailbox *m, struct record_view *view);

/* True if stacks should start again: because the tables no longer have their definitions, or
 * because a new client would have to be sent very many. */
bool background_wants_epoch(struct background *a, const struct thread_sampler *p,
                            const struct background_plan *plan);

#endif
