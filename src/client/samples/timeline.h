/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline: what each thread did in each slice of time: cells, a row a thread, a column a slice; made from a store's runs.
 *
 * Columns have numbers: column k is the time from k lengths of one on, however the view moves. What has been made of a column that
 * nothing can be added to any more is kept while it is in view, so an update costs by the cells and by what came since.
 * One thread.
 */
#ifndef CLIENT_SAMPLES_TIMELINE_H
#define CLIENT_SAMPLES_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/samples/sample_store.h"

#define TIMELINE_MAX_LANES ((size_t)1024)
#define TIMELINE_NO_FRAME UINT32_MAX /* function of a thread without a Python frame */
#define TIMELINE_UNKNOWN 255         /* a share that is not known */
#define TIMELINE_SETTLE_S 3.0        /* samples do not come later than that */

enum timeline_does {
    TIMELINE_UNSAMPLED = 0, /* nobody was looked at, or that is not known any more */
    TIMELINE_ABSENT,        /* others were, this thread was not there */
    TIMELINE_TORN,          /* it was, but never what it did could be read */
    TIMELINE_IDLE,          /* most of the time it did not do what is asked for: it was not on the CPU .. */
    TIMELINE_ACTIVE,        /* it did */
};

/* A thread in a slice: what it did most. Shares are percent of the looks at it. */
struct timeline_cell {
    uint32_t
        function; /* frame that stands for the innermost function (sample_store_function); TIMELINE_NO_FRAME */
    uint32_t stack; /* of the counts: the one seen most with it */
    uint16_t looks; /* in which it was seen, at most 65535 */
    uint8_t state;  /* enum timeline_does */
    uint8_t cpu, gil, waiting, gc;
};

/* All threads together: share of the looks in which one of them held the GIL, collected garbage. */
struct timeline_share {
    uint8_t gil, gc;
};

struct timeline_lane {
    int64_t tid;
    bool seen; /* in the view */
    bool ran;  /* on the CPU, in the view */
};

/* What a slice has to have most of for a thread to be active in it. */
enum timeline_time { TIMELINE_ON_CPU = 0, TIMELINE_ALL_TIME, TIMELINE_GIL_HOLDING, TIMELINE_TIMES };

struct timeline_view {
    double column_s;
    int64_t first; /* column at the left */
    int cols;
    enum timeline_time time;
    bool hides_native; /* native frames are their callers' */
};

/* When a column begins; the one that a time is in. Lengths of columns are whole seconds or whole parts of one: so both are
 * as exact as a time can be. */
double timeline_begin(double column_s, int64_t column);
int64_t timeline_column(double column_s, double time_s);

struct timeline;

struct timeline *timeline_new(void); /* NULL without memory */
void timeline_free(struct timeline *t);

/* Forget the store and all that was made of it. */
void timeline_clear(struct timeline *t);

/* Make the cells of a view, of the store as it is read now (where it is held: as it was then). 0, or -1 without memory: then
 * there are none. */
int timeline_update(struct timeline *t, const struct sample_store *store, const struct timeline_view *view);

/* Lanes by tid, and how many threads there was no room for. */
size_t timeline_count_lanes(const struct timeline *t);
size_t timeline_left_out(const struct timeline *t);
const struct timeline_lane *timeline_lane(const struct timeline *t, size_t lane);

/* Cell and share of a column of the view, from 0. */
const struct timeline_cell *timeline_cell(const struct timeline *t, size_t lane, int col);
struct timeline_share timeline_share(const struct timeline *t, int col);

/* Columns that were made by the last update, not kept: for those who measure. */
int timeline_computed(const struct timeline *t);

#endif
