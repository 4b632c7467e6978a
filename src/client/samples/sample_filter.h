/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_filter: what was chosen of a store's samples (a window, a thread, a module, stacks that match, without native frames) as a counts of
 * its own, and in the order of time: for an export, which may take a while; nothing of it changes meanwhile.
 *
 * It has what the flame graph of the same query has. Costs by the stacks and entries of the store. One thread.
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
    struct flame_query samples; /* by module: a frame is that of the first line that was seen of it */
    /* By module: what it is called, for people. */
    void (*name_module)(const struct model_frame *f, char *buf, size_t cap);
    /* Only threads, and stacks with a frame, of which these say yes; NULL: all. */
    bool (*has_thread)(const void *arg, int64_t tid);
    bool (*has_frame)(const void *arg, const struct model_frame *f);
    const void *arg;
    /* What threads did when, too: of the samples of this time (samples.window is not looked at then, nor its kind of time). */
    bool in_order;
    double from_s, to_s;
};

struct sample_filter {
    struct stack_counts *counts;
    struct thread_runs *runs; /* NULL: not in order */
};

/* 0, or -1 without memory; `out` is the caller's, to be given back in either case. */
int sample_filter_make(struct sample_filter *out, const struct sample_store *t,
                       const struct sample_filter_query *q);
void sample_filter_fini(struct sample_filter *c);

#endif
