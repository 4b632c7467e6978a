/* SPDX-License-Identifier: Apache-2.0 */
/*
 * straggler: which rank makes the others wait, in a job that moves: by the order in which ranks come
 * to their collectives, because the others' steps take as long as its own.
 *
 * Ranks that end their steps at one cadence have one role, and are compared with each other alone. In
 * a step, `own` is its duration without the waits for the last one in collectives that block it; `lag`
 * is how much less than the first rank it waits, and the one that waits least comes last.
 * In each of five windows of 50 to 100 steps, or 10 s (fewer steps, if all windows take 10 s), the slow
 * ranks are those whose median `own` is above the role's by more than 3 % of a step and 5 median
 * deviations, and of whom one came last in at least 60 % of the steps. Ranks that are slow in four windows
 * are named, if one of them came last more often in all windows than chance explains (three standard
 * deviations). Where ranks wait long, and nobody can be named, it is an imbalance. Pure.
 */
#ifndef CLIENT_FLEET_STRAGGLER_H
#define CLIENT_FLEET_STRAGGLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STRAGGLER_WINDOWS 5
#define STRAGGLER_ROLES 16

/* Parts of a step. X(id, its name) */
#define STRAGGLER_PARTS(X)                                                                                   \
    X(DATA, "data")                                                                                          \
    X(FORWARD, "forward")                                                                                    \
    X(BACKWARD, "backward")                                                                                  \
    X(OPTIMIZER, "optimizer")                                                                                \
    X(GC, "gc")                                                                                              \
    X(OTHER, "other")

#define STRAGGLER_PART(id, name) STRAGGLER_##id,
enum straggler_part {
    STRAGGLER_PARTS(STRAGGLER_PART) STRAGGLER_PART_COUNT,
    STRAGGLER_COMPUTE = STRAGGLER_PART_COUNT, /* forward or backward: they are not known apart */
};

const char *straggler_part_name(enum straggler_part part);

struct straggler_step {
    int64_t step;
    double at;                             /* when it ended */
    float ms, parts[STRAGGLER_PART_COUNT]; /* NAN unknown; backward and other with their waits */
};

struct straggler_collective {
    double begin, end;
    uint32_t op; /* the same number in all ranks */
};

struct straggler_rank {
    int32_t host;
    double ahead_s;                     /* its clock is ahead by so much: what its times are corrected by */
    const struct straggler_step *steps; /* by number */
    size_t n_steps;
    const struct straggler_collective *collectives; /* in any order */
    size_t n_collectives;
    /* result */
    int32_t role;          /* -1: it fits no other rank, or has too few steps */
    int64_t shift;         /* step s of it is step s + shift of the first rank of its role */
    double own_ms, lag_ms; /* medians of the newest window; NAN unknown */
    double last;           /* share of the steps of all windows in which it came last; NAN unknown */
    bool is_named;
};

enum straggler_code { STRAGGLER_SLOW, STRAGGLER_IMBALANCE };

struct straggler_verdict {
    enum straggler_code code;
    int32_t role;
    int32_t host;             /* all its ranks are named, and none of another; -1: it is not the host */
    double own_ms, others_ms; /* of those that are named, of the others; of an imbalance NAN */
    double step_ms;
    double cost_ms; /* a step would be shorter by this, were the last as fast as the next */
    double last;    /* share of steps in which one of the named, or the most frequent one, came last */
    bool has_part;
    enum straggler_part part; /* that has most of the difference */
    double part_ms;           /* how much */
    size_t steps;             /* that were compared */
};

/* Step `step` of the rank, as the first rank of its role numbers it; NULL: it does not have it. */
const struct straggler_step *straggler_find_step(const struct straggler_rank *r, int64_t step);

/* Judge. Corrected times are of one clock, give or take `error_s`: what is smaller than that is left out. 0
 * with the number of verdicts, one for a role at most; -1 without memory: all is unknown. */
int straggler_find(struct straggler_rank *ranks, size_t n, double error_s,
                   struct straggler_verdict out[STRAGGLER_ROLES], size_t *n_out);

#endif
