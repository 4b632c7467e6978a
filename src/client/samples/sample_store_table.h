/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_store_table: how much of the samples each function or line has, alone and with what it calls; who calls it and whom it
 * calls. Made from a tally, whose texts it points to. One thread.
 */
#ifndef CLIENT_SAMPLES_SAMPLE_STORE_TABLE_H
#define CLIENT_SAMPLES_SAMPLE_STORE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/samples/sample_store.h"

#define SAMPLE_STORE_NO_FRAME UINT32_MAX /* id of what has no Python frame */

/* Which samples, added up how. */
struct sample_store_query {
    enum sample_store_window window;
    bool by_line;
    bool on_cpu;       /* only samples of threads on the CPU */
    int64_t tid;       /* 0: all threads */
    bool hides_native; /* native frames are their callers' time */
};

struct sample_store_row {
    uint32_t id; /* number of a frame of the fold that stands for it, or SAMPLE_STORE_NO_FRAME */
    const struct model_frame *frame; /* its function and file; the line means something by_line */
    double own_us, total_us;         /* a stack in which it recurs counts once */
    uint64_t own, total;             /* samples */
};

/* A function (or line) that calls the one in question, is it itself, or is called by it. */
enum sample_store_way { SAMPLE_STORE_CALLER, SAMPLE_STORE_ITSELF, SAMPLE_STORE_CALLEE };

struct sample_store_call {
    enum sample_store_way way;
    uint32_t id; /* of the other; SAMPLE_STORE_NO_FRAME: nobody, it is the outermost */
    const struct model_frame *frame;
    double us;
    uint64_t samples;
};

struct sample_store_table {
    struct sample_store_query query;
    struct sample_store_row *rows; /* of no particular order; only those with samples */
    size_t n;
    double us; /* of all samples in question: what is 100 % */
    uint64_t samples;
    double gc_us; /* and of them, those in which the thread collected garbage */
    uint64_t gc;
    int64_t *tids; /* threads that have samples in the window, ascending */
    size_t n_tids;
    struct sample_store_count *below; /* per stack, from 1: with what it calls */
    struct sample_store_count *own;   /* per stack, from 1; from 0: without a frame */
    size_t n_stacks;
};

/* Made from a tally as it is now. 0, or -1 without memory (then empty). Replaces what was there. */
int sample_store_table_build(struct sample_store_table *t, const struct sample_store *tally,
                             const struct sample_store_query *query);
void sample_store_table_fini(struct sample_store_table *t);

/* A share of all samples in question, by time (by number where no time is known): 0 to 100; NAN when there are none. */
double sample_store_table_share(const struct sample_store_table *t, double us, uint64_t samples);

/* Who calls `id`, its own share, and whom it calls: callers first, each part by time. A stack counts once for each pair.
 * Array of `*n`, freed by the caller; NULL without memory or when it is not there. */
struct sample_store_call *sample_store_table_calls(const struct sample_store_table *t,
                                                   const struct sample_store *tally, uint32_t id, size_t *n);

#endif
