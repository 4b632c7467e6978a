/* SPDX-License-Identifier: Apache-2.0 */
/* data_shot: a snapshot with what only a row of snapshots tells: since when a stack is the same, shares of the GIL. */
#ifndef TUI_MODEL_DATA_SHOT_H
#define TUI_MODEL_DATA_SHOT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/model.h"

#define DATA_GIL_TICKS 40 /* snapshots that shares of the GIL are taken over; at most 64 */

/* A thread and the GIL in the newest snapshots, a bit each, the newest lowest. */
struct data_gil {
    uint64_t known, held, waiting;
};

/* A snapshot with what only a row of them tells. */
struct data_shot {
    struct model_snapshot snapshot;
    uint64_t *stack_hash; /* per thread */
    double
        *stack_since; /* per thread: since when every snapshot, and every sample, has shown the same stack */
    struct data_gil *gil; /* per thread */
    double arrived_s;     /* when it came, on the caller's clock */
    uint64_t number;      /* counts up with each snapshot of the target; 0 a child's */
    bool valid;
};

/* Give back what a shot holds. */
void data_shot_fini(struct data_shot *s);

#endif
