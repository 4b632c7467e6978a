/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps_model: training steps as the Steps screen and reports show them: rows of python.steps,
 * statistics, and what slow steps had in common. Pure.
 *
 * The newest step comes first. Unknown values are NAN, in columns of the strips, too.
 */
#ifndef CLIENT_SQL_STEPS_MODEL_H
#define CLIENT_SQL_STEPS_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "client/sql/result.h"
#include "client/sql/steps_sites.h"

#define STEPS_SLOW 1.2 /* times the median: from here on a step is slow */
#define STEPS_NUMBER 8 /* columns of a number, in the table and beside the strips */
#define STEPS_RATE 100 /* newest steps that the rate is computed from */

/* Parts of a step. */
enum steps_part {
    STEPS_DATA = 0,
    STEPS_FORWARD,
    STEPS_BACKWARD,
    STEPS_OPTIMIZER,
    STEPS_COMM, /* overlaps others: its time is no longer theirs */
    STEPS_GC,   /* within others, the same */
    STEPS_OTHER,
    STEPS_PARTS,
    STEPS_REST = STEPS_PARTS, /* of the excess: unknown */
    STEPS_SITE,               /* of the excess: at the site of the row */
    STEPS_CAUSES,
};

/* "data", "forward", ..., "not known", "a function". */
const char *steps_part_name(enum steps_part part);

struct steps_row {
    double at_s; /* when it ended */
    int64_t step;
    double ms, parts[STEPS_PARTS];
    double loss, lr, grad_norm;
    /* Loss or grad_norm was not finite: 'l', 'g', 'b' both; 0: neither, or unknown. */
    char bad;
    double slowness; /* times the median */
    /* Of a slow one: the enum steps_part with most of the excess; -1: it is not slow. */
    int cause;
    struct steps_site site; /* of a slow one, as far as it is known */
    /* of samples of the training thread in its time */
    unsigned looks, waits, gcs;
};

/* The name of its cause: that of a part; "nothing stands out": it was sampled, but neither parts nor
 * samples explain it; "": it was not slow. */
const char *steps_cause_name(const struct steps_row *row);

/* A site of slow steps, and its share of their excess. */
struct steps_model_site {
    struct steps_site site; /* its more_ms is that of all of them */
    size_t steps;
};

#define STEPS_SITES 32

struct steps_model {
    struct steps_row *rows; /* owned */
    size_t n;
    double rate;                                /* steps a second */
    double p50, p90, p99;                       /* of ms */
    double trend;                               /* the newest quarter's median over the oldest's, minus 1 */
    size_t slow;                                /* how many are slow */
    double excess_ms;                           /* their total excess over the median */
    double causes[STEPS_CAUSES];                /* shares of that; NAN: none is slow */
    struct steps_model_site sites[STEPS_SITES]; /* the largest first */
    size_t n_sites;
    struct result *stacks; /* has the texts of sites; NULL none */
    bool has_loss, has_grad, has_lr, has_data, has_gc, has_looks;
};

void steps_model_fini(struct steps_model *m);

/* Make it from rows of python.steps and, of the thread that trains, of samples and their stacks
 * (steps_sites.h), all newest first; each may be NULL. Out of memory: it is empty. */
void steps_model_build(struct steps_model *m, const struct result *steps, const struct result *samples,
                       struct result *stacks);

/* What one column of the strips shows: `count` rows from number `first` on, as far as they
 * exist. */
struct steps_column {
    size_t n;                       /* steps; 0: none */
    double ms, loss, lr, grad_norm; /* the longest; means of the others */
    double data, gc, gil;           /* shares of the time */
    bool is_slow, bad_loss, bad_grad;
    double ranks[3]; /* the least, median and most of all ranks, where the screen knows them; NAN */
};

void steps_model_column(const struct steps_model *m, size_t first, size_t count, struct steps_column *out);

/* "198 ms", "12.3 s"; "—": unknown. */
void steps_put_ms(char *buf, size_t cap, double ms);

/* Four digits, or as many as fit into STEPS_NUMBER columns: "0.3153", "5.24e-05"; "—": unknown. */
void steps_put_number(char *buf, size_t cap, double v);

/* "save (train.py:88)"; drawable text. */
void steps_put_site(const struct steps_site *site, char *buf, size_t cap);

/* Why a step was slow: its site with the time more, or the part; "" if it was not. */
void steps_put_why(const struct steps_row *row, char *buf, size_t cap);

/* What slow steps had in common, in words; "": none is slow. */
void steps_put_causes(const struct steps_model *m, struct strbuf *out);

#endif
