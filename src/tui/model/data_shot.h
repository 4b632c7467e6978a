/* SPDX-License-Identifier: Apache-2.0 */
/* data_shot: a snapshot with what only a series of snapshots shows: since when a stack is the same,
 * shares of the GIL. */
#ifndef TUI_MODEL_DATA_SHOT_H
#define TUI_MODEL_DATA_SHOT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/model.h"

#define DATA_GIL_TICKS 40 /* snapshots that shares of the GIL are computed from; at most 64 */

/* A thread and the GIL in the newest snapshots, a bit each, the newest lowest. */
struct data_gil {
    uint64_t known, held, waiting;
};

/* A snapshot with what only a series of them shows. */
struct data_shot {
    struct model_snapshot snapshot;
    uint64_t *stack_hash; /* per thread */
    /* Per thread: since when every snapshot and every sample has shown the same stack. */
    double *stack_since;
    struct data_gil *gil; /* per thread */
    double arrived_s;     /* when it arrived, on the caller's clock */
    uint64_t number;      /* counts the snapshots of the target; 0: a child's */
    bool valid;
};

/* Free what a shot holds. */
void data_shot_fini(struct data_shot *s);

#endif
