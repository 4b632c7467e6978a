/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline: the state of each thread in each slice of time: a row a thread, a column a slice;
 * made from a store's runs.
 *
 * Columns have numbers: column k is the time from k column lengths on, however the view moves. A
 * column to which no sample can be added is kept while it is in view, so an update costs only
 * its cells and the new samples. One thread.
 */
#ifndef CLIENT_SAMPLES_TIMELINE_H
#define CLIENT_SAMPLES_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/samples/sample_store.h"

#define TIMELINE_MAX_LANES ((size_t)1024)
#define TIMELINE_NO_FRAME UINT32_MAX /* function of a thread without a Python frame */
#define TIMELINE_UNKNOWN 255         /* an unknown share */
#define TIMELINE_SETTLE_S 3.0        /* no sample arrives later than that */

enum timeline_does {
    TIMELINE_UNSAMPLED = 0, /* no thread was sampled, or that is no longer known */
    TIMELINE_ABSENT,        /* other threads were sampled, this one did not exist */
    TIMELINE_TORN,          /* it was sampled, but could never be read */
    TIMELINE_IDLE,          /* most of the time it was not in the wanted state: on the CPU .. */
    TIMELINE_ACTIVE,        /* most of the time it was */
};

/* A thread in a slice: its most frequent state. Shares are percent of its ticks. */
struct timeline_cell {
    /* frame that stands for the innermost function (sample_store_function); or TIMELINE_NO_FRAME */
    uint32_t function;
    uint32_t stack; /* of the counts: the most frequent one with that function */
    uint16_t looks; /* in which it was seen, at most 65535 */
    uint8_t state;  /* enum timeline_does */
    uint8_t cpu, gil, waiting, gc;
};

/* All threads together: share of the ticks in which one of them held the GIL, or collected
 * garbage. */
struct timeline_share {
    uint8_t gil, gc;
};

struct timeline_lane {
    int64_t tid;
    bool seen; /* in the view */
    bool ran;  /* on the CPU, in the view */
};

/* The most frequent state in a slice that makes a thread active in it. */
enum timeline_time { TIMELINE_ON_CPU = 0, TIMELINE_ALL_TIME, TIMELINE_GIL_HOLDING, TIMELINE_TIMES };

struct timeline_view {
    double column_s;
    int64_t first; /* column at the left */
    int cols;
    enum timeline_time time;
    bool hides_native; /* native frames count as their callers */
};

/* The start of a column; the column of a time. Column lengths are whole seconds or whole
 * fractions of one, so both are as exact as a time can be. */
double timeline_begin(double column_s, int64_t column);
int64_t timeline_column(double column_s, double time_s);

struct timeline;

struct timeline *timeline_new(void); /* NULL without memory */
void timeline_free(struct timeline *t);

/* Forget the store and all results from it. */
void timeline_clear(struct timeline *t);

/* Make the cells of a view, from the store as its readers see it (frozen or not). 0, or -1
 * without memory: then there are none. */
int timeline_update(struct timeline *t, const struct sample_store *store, const struct timeline_view *view);

/* Lanes by tid, and the number of threads without room. */
size_t timeline_count_lanes(const struct timeline *t);
size_t timeline_left_out(const struct timeline *t);
const struct timeline_lane *timeline_lane(const struct timeline *t, size_t lane);

/* Cell and share of a column of the view, from 0. */
const struct timeline_cell *timeline_cell(const struct timeline *t, size_t lane, int col);
struct timeline_share timeline_share(const struct timeline *t, int col);

/* Number of columns that the last update made, not kept: for benchmarks. */
int timeline_computed(const struct timeline *t);

#endif
