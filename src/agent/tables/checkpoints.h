/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoints: when threads of the job saved checkpoints, made out of the samples of their stacks as they come.
 *
 * Saving tells nobody of itself, and nothing of the job is to be patched. So a save is a run of samples of one thread
 * whose stacks hold a function that saves; it is known to about one interval between samples, and one shorter than that may
 * not be seen at all. Pure: no clock, no table. One thread.
 */
#ifndef AGENT_TABLES_CHECKPOINTS_H
#define AGENT_TABLES_CHECKPOINTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/model.h"
#include "base/trie.h"

#define CHECKPOINTS_THREADS 16 /* threads that save at once and are followed */

/* One that is over. */
struct checkpoints_save {
    const char *name; /* static: "torch.save" */
    int64_t tid;
    int64_t step;        /* as was said when it began */
    double began, ended; /* seconds since the epoch; `began` is NAN when it went on as we came */
};

struct checkpoints_open {
    int64_t tid; /* 0 free */
    int64_t step;
    size_t row;         /* which function saves */
    double began, last; /* NAN not known */
};

struct checkpoints {
    struct checkpoints_open open[CHECKPOINTS_THREADS];
    double from, last; /* there are samples without a gap from then to then; 0 there were none */
    uint32_t epoch;    /* of the trie that the next are about */
    uint8_t *known; /* of each stack: 0 not looked at, 1 it does not save, else 2 + number of the function */
    size_t n_known;
};

struct checkpoints_handler {
    void (*on_save)(void *arg, const struct checkpoints_save *s);
    void *arg;
};

/* Take a sample; those of a thread in their order. `period_s`: the mean time between two looks; `step`: of the training, now. */
void checkpoints_take(struct checkpoints *s, const struct trie *t, uint32_t epoch,
                      const struct model_sample *sample, double period_s, int64_t step,
                      const struct checkpoints_handler *h);

/* It is `now`: threads that were not looked at for long have ended. */
void checkpoints_settle(struct checkpoints *s, double now, double period_s,
                        const struct checkpoints_handler *h);

/* Memory held. */
size_t checkpoints_bytes(const struct checkpoints *s);

/* Free and forget everything; usable again. */
void checkpoints_fini(struct checkpoints *s);

#endif
