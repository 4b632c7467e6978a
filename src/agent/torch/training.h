/* SPDX-License-Identifier: Apache-2.0 */
/*
 * training: rows from the reports of torch and Python about a training job: its steps and
 * operations, checkpoints, watched values, data loaders.
 *
 * Torch reports its operations (torch_spans.h) once it is loaded, Python reports collections and
 * returns (hooks.h). Backward passes are watched while somebody looks at steps, and as long as it
 * costs next to nothing, otherwise now and then (backward_watch.h): forward and backward are known
 * for those steps. Writes python.steps, profiling_data, python.collectives, python.variables,
 * python.loaders, and single collections of python.gc. All functions are called by the sampler's thread.
 */
#ifndef AGENT_TORCH_TRAINING_H
#define AGENT_TORCH_TRAINING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/python/worker.h"
#include "agent/server/mailbox.h"
#include "agent/tables/checkpoints.h"
#include "agent/tables/record.h"
#include "agent/torch/backward_watch.h"
#include "agent/torch/hooks.h"
#include "agent/torch/steps.h"
#include "pystack/loaders.h"

#define TRAINING_STEP_ENDS 256
#define TRAINING_STEPS_KEPT 32

/* The end of a step, monotonic; step 0: there was none. */
struct training_step_end {
    uint64_t end_ns;
    int64_t step;
};

/* An iterator of a DataLoader. */
struct training_loader {
    uint64_t addr;
    int64_t yielded; /* at the last reading; MODEL_UNKNOWN if there was none */
    bool processes;
};

struct training_waits {
    uint64_t ns, n;
};

struct training_loaders {
    struct training_loader known[PYSTACK_LOADERS];
    size_t n;
    uint64_t found_ns; /* when they were searched for */
    bool used;         /* batches were fetched since the agent's start */
    bool complete;     /* the known iterators gave all batches of the last second, and there were some */
    /* in this second, for loaders without and with worker processes */
    struct training_waits waits[2];
};

struct training {
    struct record *record;
    struct worker *worker;
    struct hooks hooks;
    bool reports; /* torch reports its operations */
    bool refused; /* it cannot: `note` has the reason */
    struct backward_watch backward;
    /* that backward passes are watched: for a trace of modules, and for who looks at steps */
    bool needs_backward, wants_phases;
    uint64_t phased; /* steps of which forward and backward are known */
    uint64_t events, lost;
    struct training_step_end ends[TRAINING_STEP_ENDS]; /* of the last steps, by their numbers */
    /* of the first steps that have ended since then; 0: none are kept */
    uint64_t kept_since_ns;
    struct training_step_end kept[TRAINING_STEPS_KEPT];
    size_t n_kept;
    char note[160];
    struct steps steps;
    struct checkpoints checkpoints;
    struct training_loaders loaders;
};

/* Its rows go to `record`, which calls it from now on; `worker` takes the GIL to install hooks
 * in Python. */
void training_init(struct training *t, struct record *record, struct worker *worker);
void training_fini(struct training *t); /* after record_end */

/* Take the reports since the last call. */
void training_take(struct training *t);

/* Durations of the last steps that began at `since_ns` or later and have ended by `until_ns`,
 * monotonic, the latest first; at most `cap`. Those with a missing step before them are left
 * out. */
size_t training_durations(const struct training *t, uint64_t since_ns, uint64_t until_ns, double *ns,
                          size_t cap);

/* The step that ended at `ns`, monotonic, or the next one to end after that, which may be the
 * current one. -1: unknown, or no longer known: TRAINING_STEP_ENDS others have ended since. */
int64_t training_step_at(const struct training *t, uint64_t ns);

/* The first TRAINING_STEPS_KEPT steps that end at `since_ns` or later, monotonic, stay known, even
 * if many come after them. Steps that ended earlier may still wait to be taken: they do not
 * count. */
void training_keep_ends(struct training *t, uint64_t since_ns);
void training_drop_ends(struct training *t); /* no longer */

/* Put its state into the mailbox's status, which is locked. */
void training_publish(const struct training *t, struct mailbox_status *st);

/* Memory in use. */
size_t training_bytes(const struct training *t);

#endif
