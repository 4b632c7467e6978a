/* SPDX-License-Identifier: Apache-2.0 */
/*
 * past: the last that is known of a process from its tables: its threads with their stacks, and the samples of the minute before.
 *
 * Read by SQL from a database over one target; may take a while: not for the thread that draws. Then plain data, which snapshots and batches
 * are made from as often as they are wanted. What the tables do not say is unknown.
 */
#ifndef CLIENT_PAST_H
#define CLIENT_PAST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/model.h"
#include "client/database.h"

#define PAST_WINDOW_S 60.0 /* of samples */

struct past_thread {
    struct model_thread thread; /* without frames */
    uint32_t stack_id;          /* 0 unknown, or none */
};

struct past {
    int64_t pid, rank; /* MODEL_UNKNOWN */
    const char *host;  /* NULL unknown */
    double seen_until; /* time of the newest row; NAN there is none */
    double from;       /* time of the first sample of the window; NAN none */
    double period_us;  /* mean time between two looks at a thread */
    struct model_process process;
    const char *cmdline, *exe, *python, *torch, *agent; /* NULL unknown */
    bool finalized;                                     /* its interpreter had ended before it did */
    double started_at;                                  /* NAN unknown */
    struct past_thread *threads;
    size_t n_threads;
    struct model_frame_def *frames; /* in the order of their ids, each once; so stacks */
    size_t n_frames;
    struct model_stack_def *stacks;
    size_t n_stacks;
    struct model_sample *samples; /* in the order of their times */
    size_t n_samples;
    struct arena arena;
};

/* Read it. `out` is initialised here and given back by past_fini, on failure too. 0, or -1 with the error. */
int past_load(struct past *out, struct database *d, struct err *e);
void past_fini(struct past *p);

/* Take native frames (probing.native) out of the stacks: those who want none see stacks as they are without. 0, or -1 without
 * memory. Part of past_load. */
int past_strip_native(struct past *p);

/* The last state. `out` is the caller's, on failure too. 0, or -1 without memory. */
int past_make_snapshot(const struct past *p, struct model_snapshot *out);

/* The samples of second number `i` of the window (from 0), with all definitions if `define`. As above. */
int past_make_batch(const struct past *p, size_t i, bool define, struct model_sample_batch *out);
size_t past_seconds(const struct past *p);

/* Facts of the target. As above. */
int past_make_target(const struct past *p, const char *why, struct model_target *out);

#endif
