/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps_model: training steps as the Steps screen shows them: rows of python.steps, figures of them, what slow ones had in common. Pure.
 *
 * The newest step comes first. What is not known is NAN, and of columns of the strips too.
 */
#ifndef TUI_SCREENS_STEPS_STEPS_MODEL_H
#define TUI_SCREENS_STEPS_STEPS_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "client/sql/result.h"

#define STEPS_SLOW 1.2 /* times the median: from here on a step is slow */
#define STEPS_NUMBER 8 /* columns for a number, in the table and beside the strips */
#define STEPS_RATE 100 /* newest steps that the rate is of */

/* Parts of a step. */
enum steps_part {
    STEPS_DATA = 0,
    STEPS_FORWARD,
    STEPS_BACKWARD,
    STEPS_OPTIMIZER,
    STEPS_COMM, /* beside others: what is of it is no longer of them */
    STEPS_GC,   /* within others, the same */
    STEPS_OTHER,
    STEPS_PARTS,
    STEPS_REST = STEPS_PARTS, /* of what is more: nobody knows */
    STEPS_CAUSES,
};

/* "data", "forward", ..., "not known". */
const char *steps_part_name(enum steps_part part);

struct steps_row {
    double at_s; /* when it ended */
    int64_t step;
    double ms, parts[STEPS_PARTS];
    double loss, lr, grad_norm;
    char bad;        /* loss or grad_norm was no finite number: 'l', 'g', 'b' both; 0 neither, or not known */
    double slowness; /* times the median */
    int cause;       /* of a slow one: enum steps_part that has most of what is more; -1 it is not slow */
    /* of looks at the thread that trains in its time */
    unsigned looks, waits, gcs;
};

struct steps_model {
    struct steps_row *rows; /* owned */
    size_t n;
    double rate;                 /* steps a second */
    double p50, p90, p99;        /* of ms */
    double trend;                /* the newest quarter's median over the oldest's, less 1 */
    size_t slow;                 /* how many are */
    double excess_ms;            /* what those took more than the median, together */
    double causes[STEPS_CAUSES]; /* shares of that; NAN: none is slow */
    bool has_loss, has_grad, has_lr, has_data, has_gc, has_looks;
};

void steps_model_fini(struct steps_model *m);

/* Make it of rows of FEED_STEPS (may be NULL) and of FEED_STEP_SAMPLES (may be NULL), both newest first. Without memory it is empty. */
void steps_model_build(struct steps_model *m, const struct result *steps, const struct result *looks);

/* What is drawn in one column of the strips: `count` rows from number `first` on, as far as there are any. */
struct steps_column {
    size_t n;                       /* steps; 0 nothing is there */
    double ms, loss, lr, grad_norm; /* the longest; means of the others */
    double data, gc, gil;           /* shares of the time */
    bool is_slow, bad_loss, bad_grad;
};

void steps_model_column(const struct steps_model *m, size_t first, size_t count, struct steps_column *out);

/* "198 ms", "12.3 s"; "—" unknown. */
void steps_put_ms(char *buf, size_t cap, double ms);

/* Four digits, or as many as STEPS_NUMBER columns have room for: "0.3153", "5.24e-05"; "—" unknown. */
void steps_put_number(char *buf, size_t cap, double v);

/* What slow steps had in common, in words; "" none is slow. */
void steps_put_causes(const struct steps_model *m, struct strbuf *out);

#endif
