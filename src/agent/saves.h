/* SPDX-License-Identifier: Apache-2.0 */
/*
 * saves: when threads of the job saved checkpoints, made out of the samples of their stacks as they come.
 *
 * Saving tells nobody of itself, and nothing of the job is to be patched. So a save is a run of samples of one thread
 * whose stacks hold a function that saves; it is known to about one interval between samples, and one shorter than that may
 * not be seen at all. Pure: no clock, no table. One thread.
 */
#ifndef AGENT_SAVES_H
#define AGENT_SAVES_H

#include <stddef.h>
#include <stdint.h>

#include "base/model.h"
#include "base/trie.h"

#define SAVES_THREADS 16 /* threads that save at once and are followed */

/* One that is over. */
struct saves_save {
    const char *name; /* static: "torch.save" */
    int64_t tid;
    int64_t step;        /* as was said when it began */
    double began, ended; /* seconds since the epoch; `began` is NAN when it went on as we came */
};

struct saves_open {
    int64_t tid; /* 0 free */
    int64_t step;
    size_t row;         /* which function saves */
    double began, last; /* NAN not known */
};

struct saves {
    struct saves_open open[SAVES_THREADS];
    double from, last; /* there are samples without a gap from then to then; 0 there were none */
    uint32_t epoch;    /* of the trie that the next are about */
    uint8_t *known; /* of each stack: 0 not looked at, 1 it does not save, else 2 + number of the function */
    size_t n_known;
};

struct saves_handler {
    void (*on_save)(void *arg, const struct saves_save *s);
    void *arg;
};

/* Take a sample; those of a thread in their order. `period_s`: the mean time between two looks; `step`: of the training, now. */
void saves_take(struct saves *s, const struct trie *t, uint32_t epoch, const struct model_sample *sample,
                double period_s, int64_t step, const struct saves_handler *h);

/* It is `now`: threads that were not looked at for long have ended. */
void saves_settle(struct saves *s, double now, double period_s, const struct saves_handler *h);

/* Memory held. */
size_t saves_bytes(const struct saves *s);

/* Free and forget everything; usable again. */
void saves_fini(struct saves *s);

#endif
