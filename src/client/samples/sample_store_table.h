/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_store_table: the samples of each function or line, by itself and with its callees; its
 * callers and callees; and two such tables side by side. Made from a store, whose texts it
 * points to. One thread.
 */
#ifndef CLIENT_SAMPLES_SAMPLE_STORE_TABLE_H
#define CLIENT_SAMPLES_SAMPLE_STORE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/samples/sample_store.h"

#define SAMPLE_STORE_NO_FRAME UINT32_MAX /* id of samples without a Python frame */

/* The wanted samples and how they are summed up. */
struct sample_store_query {
    enum sample_store_window window;
    bool by_line;
    bool on_cpu;       /* only samples of threads on the CPU */
    int64_t tid;       /* 0: all threads */
    bool hides_native; /* native frames count as their callers */
};

struct sample_store_row {
    uint32_t id; /* number of a frame of the counts that stands for it, or SAMPLE_STORE_NO_FRAME */
    const struct model_frame *frame; /* its function and file; the line is valid by_line */
    double own_us, total_us;         /* a stack in which it recurs counts once */
    uint64_t own, total;             /* samples */
};

/* A function (or line) that calls the selected one, is itself that one, or is called by it. */
enum sample_store_way { SAMPLE_STORE_CALLER, SAMPLE_STORE_ITSELF, SAMPLE_STORE_CALLEE };

struct sample_store_call {
    enum sample_store_way way;
    uint32_t id; /* of the other; SAMPLE_STORE_NO_FRAME: none, it is the outermost */
    const struct model_frame *frame;
    double us;
    uint64_t samples;
};

struct sample_store_table {
    struct sample_store_query query;
    struct sample_store_row *rows; /* in no particular order; only those with samples */
    size_t n;
    double us; /* of all wanted samples: 100 % */
    uint64_t samples;
    double gc_us; /* of these, with the thread collecting garbage */
    uint64_t gc;
    int64_t *tids; /* threads with samples in the window, ascending */
    size_t n_tids;
    struct stack_counts_sums *below; /* per stack, from 1: with its callees */
    struct stack_counts_sums *own;   /* per stack, from 1; from 0: without a frame */
    size_t n_stacks;
};

/* Build the table from the store's current state. 0, or -1 without memory (then empty). Replaces
 * the old contents. */
int sample_store_table_build(struct sample_store_table *t, const struct sample_store *store,
                             const struct sample_store_query *query);
void sample_store_table_fini(struct sample_store_table *t);

/* A share of all wanted samples, by time (by number if no time is known): 0 to 100; NAN if there
 * are none. */
double sample_store_table_share(const struct sample_store_table *t, double us, uint64_t samples);

/* The callers of `id`, its own share, and its callees: callers first, each part by time. A stack
 * counts once for each pair. Array of `*n`, freed by the caller; NULL without memory or if it is
 * not in the table. */
struct sample_store_call *sample_store_table_calls(const struct sample_store_table *t,
                                                   const struct sample_store *store, uint32_t id, size_t *n);

/* ---- two tables side by side ---- */

/* The share of each function or line in the newer and in the older table: shares, not times,
 * because their durations may differ. A row that only one of them has gets a share of 0 in the
 * other. The tables may be of one store, or of two, whose frames are compared by name. */

/* set in the id of a frame that only the older table's own store has */
#define SAMPLE_STORE_DIFF_FOREIGN 0x80000000U

struct sample_store_diff_row {
    /* of the newer table; a row that only the older one has is without samples */
    struct sample_store_row row;
    double own_pct, total_pct;       /* of the newer table; NAN: it has no samples at all */
    double own_before, total_before; /* of the older table; the same */
};

struct sample_store_diff {
    struct sample_store_diff_row *rows; /* those of the newer table first */
    size_t n;
};

/* Replaces the old contents. Texts belong to the stores; `is_foreign`: there are two stores. 0,
 * or -1 without memory: then it is empty. */
int sample_store_diff_build(struct sample_store_diff *d, const struct sample_store_table *now,
                            const struct sample_store_table *before, bool is_foreign);
void sample_store_diff_fini(struct sample_store_diff *d);

#endif
