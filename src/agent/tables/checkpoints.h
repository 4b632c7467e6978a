/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoints: the times at which threads of the job saved checkpoints, derived from the samples
 * of their stacks.
 *
 * A save is not announced, and nothing of the job may be patched. So a save is a run of samples
 * of one thread whose stacks contain a function that saves. Its times are exact to about one
 * interval between samples, and a shorter save may not be seen at all. Pure: no clock, no table.
 * One thread.
 */
#ifndef AGENT_TABLES_CHECKPOINTS_H
#define AGENT_TABLES_CHECKPOINTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/model.h"
#include "base/trie.h"

#define CHECKPOINTS_THREADS 16 /* threads that are followed while they save at the same time */

/* A save that has ended. */
struct checkpoints_save {
    const char *name; /* static: "torch.save" */
    int64_t tid;
    int64_t step; /* of the training when it began */
    /* seconds since the epoch; `began` is NAN if it had begun before the agent */
    double began, ended;
};

struct checkpoints_open {
    int64_t tid; /* 0 if free */
    int64_t step;
    size_t row;         /* index of the function that saves */
    double began, last; /* NAN if unknown */
};

struct checkpoints {
    struct checkpoints_open open[CHECKPOINTS_THREADS];
    double from, last; /* samples without a gap cover this time; 0 if there were none */
    uint32_t epoch;    /* of the trie, for the next samples */
    /* for each stack: 0 not checked, 1 does not save, otherwise 2 + index of the function */
    uint8_t *known;
    size_t n_known;
};

struct checkpoints_handler {
    void (*on_save)(void *arg, const struct checkpoints_save *s);
    void *arg;
};

/* Take a sample; the samples of a thread in their order. `period_s`: the mean time between two
 * ticks; `step`: the current step of the training. */
void checkpoints_take(struct checkpoints *s, const struct trie *t, uint32_t epoch,
                      const struct model_sample *sample, double period_s, int64_t step,
                      const struct checkpoints_handler *h);

/* It is `now`: threads without samples for a long time have ended. */
void checkpoints_settle(struct checkpoints *s, double now, double period_s,
                        const struct checkpoints_handler *h);

/* Memory in use. */
size_t checkpoints_bytes(const struct checkpoints *s);

/* Free and forget everything; usable again. */
void checkpoints_fini(struct checkpoints *s);

#endif
