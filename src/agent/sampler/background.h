/* SPDX-License-Identifier: Apache-2.0 */
/*
 * background: what the sampler does whether or not somebody asks for it: a few looks a second, and the tables.
 *
 * An agent that was brought in by a client waits for a moment until that has said whether signals may be sent. Rows of once a
 * second are written at a tick, if there is one soon. All functions but background_init are called by the sampler's thread; those
 * that take a mailbox, with it locked unless they say that they do that themselves.
 */
#ifndef AGENT_SAMPLER_BACKGROUND_H
#define AGENT_SAMPLER_BACKGROUND_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/sampler/thread_sampler.h"
#include "agent/server/mailbox.h"
#include "agent/tables/record.h"
#include "agent/torch/training.h"

struct background {
    struct record record;
    struct config config;
    uint32_t config_changes;
    uint64_t patient_until_ns; /* for a client's wish */
    double hz;                 /* of all samples, as planned last */
    bool listened;             /* somebody gets them */
    bool outgrown;             /* see record_take */
    uint64_t epoch_ns;         /* when stacks were begun anew for the tables */
    struct cost_meter meter;
};

/* What of it there is to do now. */
struct background_plan {
    bool configure; /* the settings have changed */
    bool retune;    /* samples are taken at another rate, or for others: the batch is another */
    bool soon;      /* and the next look is due now */
    bool fresh;     /* somebody begins to listen */
    bool second;
};

/* `m`: with the configuration; nobody else knows it yet. */
void background_init(struct background *a, struct mailbox *m, bool invited);

/* Before the plan is made: take in what was set. */
void background_read(struct background *a, const struct mailbox *m, struct background_plan *plan);

/* Looks a second that are to be taken in any case; `*next_ns` is lowered to when that changes. */
double background_rate(const struct background *a, const struct mailbox *m, uint64_t now_ns,
                       uint64_t *next_ns);

/* Are they, when nobody else samples, to be taken without signals? */
bool background_gentle(const struct background *a, const struct mailbox *m);

/* Samples are taken at `hz` (0: none), for somebody (`listened`) or for the tables alone. */
void background_tune(struct background *a, double hz, bool listened, struct background_plan *plan);

/* Is it time for once a second's rows? `tick`: there is one now; `ticking`: there are some. */
void background_plan_second(const struct background *a, bool tick, bool ticking, uint64_t now_ns,
                            struct background_plan *plan, uint64_t *next_ns);

/* What is being collected, for those who write rows of it. Borrowed until the next tick. */
struct record_samples background_samples(const struct thread_sampler *p);

/* Put the tables' state into the mailbox's status; takes the lock. */
void background_publish(const struct background *a, const struct training *training, struct mailbox *m);

/* Begin a row of status with what concerns clients: how many there are, what they lost; takes the lock. What the server's thread
 * holds of memory. */
size_t background_view(const struct background *a, struct mailbox *m, struct record_view *view);

/* Should stacks begin anew: because their definitions are gone from the tables, or somebody new would have to be told very many? */
bool background_wants_epoch(struct background *a, const struct thread_sampler *p,
                            const struct background_plan *plan);

#endif
