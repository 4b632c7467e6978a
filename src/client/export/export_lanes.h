/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export_lanes: what each thread did when, for formats that show time: lanes of runs, laid out
 * so that no time overlaps and each sample is as long as it weighs.
 *
 * Looks come at times that are spread on purpose, but a sample weighs the mean time between two.
 * So looks stand one behind the other, each as long as it weighs, as long as they go on; where
 * none were taken, or a thread was not seen, is a gap. They stray from their clock by the spread
 * alone: never by more than LANES_STRAY_NS, after which they are set right. One thread.
 */
#ifndef CLIENT_EXPORT_EXPORT_LANES_H
#define CLIENT_EXPORT_EXPORT_LANES_H

#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "flame/stack_counts.h"
#include "client/samples/thread_runs.h"

#define LANES_STRAY_NS 500000000LL

struct export_lanes {
    const struct stack_counts *counts;
    const struct thread_runs *runs;
    int64_t *begin_ns, *end_ns; /* of each tick, since the first */
    size_t n_looks;
    int64_t from_ns; /* time of the first, since the epoch */
};

/* A thread in a stack, in one state, without a break. */
struct export_span {
    int64_t begin_ns, end_ns; /* since the first tick */
    uint32_t stack;           /* STACK_COUNTS_NO_STACK: without a Python frame */
    uint8_t flags;            /* enum thread_runs_flag */
};

/* 0, or -1 without memory; free it in either case. */
int export_lanes_init(struct export_lanes *l, const struct stack_counts *counts,
                      const struct thread_runs *runs);
void export_lanes_fini(struct export_lanes *l);

/* Spans of a lane (of runs), in the order of time, each handed to `fn` until that does not
 * return 0, which is then returned. What was torn or is not known is in none. */
int export_lanes_walk(const struct export_lanes *l, size_t lane,
                      int (*fn)(void *arg, const struct export_span *span), void *arg);

/* Length of it all. */
int64_t export_lanes_length(const struct export_lanes *l);

/* Says in `note` what is missing because there was more than runs keep. */
void export_lanes_note(const struct thread_runs *runs, const struct stack_counts *counts,
                       struct strbuf *note);

#endif
