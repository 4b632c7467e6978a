/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold: samples added up per thread and stack.
 *
 * Takes batches of the stream of samples (whose ids mean something only within an epoch) and single snapshots; keeps
 * frames and stacks once each, under ids of its own that stay. Ids that were never defined are dropped and counted: what
 * came over the wire is foreign. One thread.
 */
#ifndef CLIENT_FOLD_H
#define CLIENT_FOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/model.h"

#define FOLD_MAX_ENTRIES ((size_t)1 << 22) /* of each kind */
#define FOLD_MAX_BYTES ((size_t)64 * 1024 * 1024)
#define FOLD_NO_STACK 0U /* a thread without a Python frame */
#define FOLD_NO_ENTRY UINT32_MAX
#define FOLD_MAX_PERIOD_US 1e9 /* a longer time between looks, or none, is nonsense and counts as no time */

struct fold;

/* One thread in one stack. */
struct fold_entry {
    int64_t tid;
    uint32_t stack; /* for fold_path; FOLD_NO_STACK */
    uint64_t samples;
    uint64_t on_cpu;  /* of these, how many were on the CPU */
    double us;        /* time the samples stand for */
    double on_cpu_us; /* of it, what those on the CPU stand for */
    uint64_t gc;      /* samples in which the thread collected garbage */
    double gc_us;
    uint64_t gc_on_cpu; /* and was on the CPU */
    double gc_on_cpu_us;
    uint64_t gil; /* samples in which it held the GIL */
    double gil_us;
    bool is_changed; /* it is among fold_changed */
    /* Where they are told apart (fold_tell_apart) what all its samples say, else unknown. */
    uint8_t gil_state; /* enum model_gil */
    int8_t gc_state;   /* 1 it collects garbage, 0 not, MODEL_UNKNOWN */
};

struct fold_totals {
    uint64_t samples;
    uint64_t torn;      /* left out: two moments mixed */
    uint64_t undefined; /* left out: unknown ids */
    uint64_t dropped;   /* lost on the way, as the agent says */
    double
        first_s; /* times of the first and the last that were counted, seconds since the epoch; NAN unknown */
    double last_s;
    /* Of the newest batch. */
    enum model_sampling mode; /* gentle: stacks of threads that run may be torn */
    double kept_hz;           /* looks a second; NAN unknown */
    double cost_pct;          /* what they cost, of one core; NAN unknown */
    double budget_pct;        /* and may cost; NAN unknown */
};

struct fold *fold_new(void); /* NULL without memory */
void fold_free(struct fold *f);

/* From here on one thread in one stack is as many entries as it was in states of the GIL and of collecting garbage. Before
 * the first batch. */
void fold_tell_apart(struct fold *f);

/* Add a batch, or one look at every thread with weight 1. 0, or -1 when memory, FOLD_MAX_ENTRIES or FOLD_MAX_BYTES ended. */
int fold_add_batch(struct fold *f, const struct model_sample_batch *b);
int fold_add_snapshot(struct fold *f, const struct model_snapshot *s);

/* Time that sample number `i` of a batch stands for, in microseconds; 0 where what it says is nonsense. */
double fold_sample_us(const struct model_sample_batch *b, size_t i);

const struct fold_totals *fold_get_totals(const struct fold *f);

/* Entries in order of their first sample. */
size_t fold_count(const struct fold *f);
const struct fold_entry *fold_get(const struct fold *f, size_t i);

/* Entries whose counts have changed since they were last forgotten, each once; valid until the next call that adds. */
size_t fold_changed(const struct fold *f, const uint32_t **entries);
void fold_forget_changed(struct fold *f);

/* Entries that the samples of the newest batch were counted as, in their order; FOLD_NO_ENTRY: left out. Valid until the
 * next call that adds. */
const uint32_t *fold_batch_entries(const struct fold *f);

/* Stacks are a forest: each is a frame called by the stack above it, which has a smaller number. Numbers count from 1
 * (stacks) and 0 (frames), and are never given anew. */
/* What is pointed to stays where it is as long as the fold. */
size_t fold_stacks(const struct fold *f);
size_t fold_frames(const struct fold *f);
/* NULL: there is no such frame. */
const struct model_frame *fold_frame(const struct fold *f, size_t frame);

/* Frame of a stack (1 <= stack <= fold_stacks); `*above` is its caller's stack, FOLD_NO_STACK for an outermost one. */
uint32_t fold_stack_frame(const struct fold *f, uint32_t stack, uint32_t *above);

/* Frames of a stack, root first, at most `cap` (the outermost). Number of frames the stack has. */
size_t fold_path(const struct fold *f, uint32_t stack, const struct model_frame **out, size_t cap);

/* One that is made of parts of another: empty, but with the names of its threads, and its totals without the samples; NULL without memory. Then
 * a frame, a stack (of a frame called by the stack `above`, FOLD_NO_STACK for an outermost one: its number is one more than what is
 * returned) and counts of a thread in a stack, which are added to those that it has. The number, or -1 without memory. */
struct fold *fold_new_like(const struct fold *f);
int64_t fold_put_frame(struct fold *f, const struct model_frame *frame);
int64_t fold_put_stack(struct fold *f, uint32_t above, uint32_t frame);
int64_t fold_put_counts(struct fold *f, const struct fold_entry *counts);

/* Memory held, in bytes. */
size_t fold_bytes(const struct fold *f);

/* Name of a thread: Python's, else the native one, else NULL. */
const char *fold_thread_name(const struct fold *f, int64_t tid);

#endif
