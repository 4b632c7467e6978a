/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_store_table: how much of the samples each function or line has, alone and with what it calls; who calls it and whom it
 * calls; and two such tables side by side. Made from a store, whose texts it points to. One thread.
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
    uint32_t id; /* number of a frame of the counts that stands for it, or SAMPLE_STORE_NO_FRAME */
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
    struct stack_counts_sums *below; /* per stack, from 1: with what it calls */
    struct stack_counts_sums *own;   /* per stack, from 1; from 0: without a frame */
    size_t n_stacks;
};

/* Made from a store as it is now. 0, or -1 without memory (then empty). Replaces what was there. */
int sample_store_table_build(struct sample_store_table *t, const struct sample_store *store,
                             const struct sample_store_query *query);
void sample_store_table_fini(struct sample_store_table *t);

/* A share of all samples in question, by time (by number where no time is known): 0 to 100; NAN when there are none. */
double sample_store_table_share(const struct sample_store_table *t, double us, uint64_t samples);

/* Who calls `id`, its own share, and whom it calls: callers first, each part by time. A stack counts once for each pair.
 * Array of `*n`, freed by the caller; NULL without memory or when it is not there. */
struct sample_store_call *sample_store_table_calls(const struct sample_store_table *t,
                                                   const struct sample_store *store, uint32_t id, size_t *n);

/* ---- two tables side by side ---- */

/* The share of each function or line in the newer one and in the older one: shares, not times, for what is compared may be
 * of different length. What only one of them has is there with a share of 0 of the other. The tables may be of one store, or of
 * two, whose frames are told by what they say. */

#define SAMPLE_STORE_DIFF_FOREIGN                                                                            \
    0x80000000U /* set in the id of a frame that only the older table's own store has */

struct sample_store_diff_row {
    struct sample_store_row row;     /* of the newer table; of what it has not, without samples */
    double own_pct, total_pct;       /* of it; NAN: it has no samples at all */
    double own_before, total_before; /* of the older one; the same */
};

struct sample_store_diff {
    struct sample_store_diff_row *rows; /* those of the newer table first */
    size_t n;
};

/* Replaces what was there. Texts are those of the stores; `is_foreign`: they are two. 0, or -1 without memory: then it is
 * empty. */
int sample_store_diff_build(struct sample_store_diff *d, const struct sample_store_table *now,
                            const struct sample_store_table *before, bool is_foreign);
void sample_store_diff_fini(struct sample_store_diff *d);

#endif
