/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_filter: copies a selection of a store's samples (a window, a thread, a module, stacks
 * that match, without native frames) into counts of their own, and their order in time: for an
 * export, which may take a while, during which the copy does not change.
 *
 * The selection equals that of the flame graph with the same query. The cost grows with the
 * stacks and entries of the store. One thread.
 */
#ifndef CLIENT_SAMPLES_SAMPLE_FILTER_H
#define CLIENT_SAMPLES_SAMPLE_FILTER_H

#include <stdbool.h>
#include <stddef.h>

#include "client/samples/sample_flame.h"
#include "flame/stack_counts.h"
#include "client/samples/sample_store.h"
#include "client/samples/thread_runs.h"

struct sample_filter_query {
    struct flame_query samples; /* by module: a frame is the one of the first line seen of it */
    /* By module: put the module's name for people into `buf`. */
    void (*name_module)(const struct model_frame *f, char *buf, size_t cap);
    /* Keep only threads, and stacks with a frame, for which these return true; NULL: all. */
    bool (*has_thread)(const void *arg, int64_t tid);
    bool (*has_frame)(const void *arg, const struct model_frame *f);
    const void *arg;
    /* Also copy the order in time: of the samples of this time (samples.window and its kind of
     * time are ignored then). */
    bool in_order;
    double from_s, to_s;
};

struct sample_filter {
    struct stack_counts *counts;
    struct thread_runs *runs; /* NULL: without order */
};

/* 0, or -1 without memory; the caller frees `out` in either case. */
int sample_filter_make(struct sample_filter *out, const struct sample_store *t,
                       const struct sample_filter_query *q);
void sample_filter_fini(struct sample_filter *c);

#endif
