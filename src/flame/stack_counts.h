/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack_counts: sums of samples per thread and stack.
 *
 * Accepts batches of the sample stream (whose ids are valid only within an epoch) and single
 * snapshots; keeps each frame and stack once, under permanent ids of its own. Samples with
 * undefined ids are dropped and counted: data from the wire is not trusted. One thread.
 */
#ifndef FLAME_STACK_COUNTS_H
#define FLAME_STACK_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/model.h"

#define STACK_COUNTS_MAX_ENTRIES ((size_t)1 << 22) /* of each kind */
#define STACK_COUNTS_MAX_BYTES ((size_t)64 * 1024 * 1024)
#define STACK_COUNTS_NO_STACK 0U /* for a thread without a Python frame */
#define STACK_COUNTS_NO_ENTRY UINT32_MAX
/* a longer time between samples, or none, is invalid and counts as no time */
#define STACK_COUNTS_MAX_PERIOD_US 1e9

struct stack_counts;

/* Sums of samples: their number, and the time that they stand for. */
struct stack_counts_sums {
    uint64_t samples;
    uint64_t on_cpu; /* number of these on the CPU */
    double us;
    double on_cpu_us;
    uint64_t gc; /* samples in which the thread collected garbage */
    double gc_us;
    uint64_t gc_on_cpu; /* and was on the CPU */
    double gc_on_cpu_us;
    uint64_t gil; /* samples in which it held the GIL */
    double gil_us;
};

/* The state of a sample beside its thread and stack. */
struct stack_counts_state {
    bool on_cpu, gc, gil;
};

/* Add `n` samples that stand for `us` together; add other sums; subtract earlier sums. */
void stack_counts_sums_count(struct stack_counts_sums *to, struct stack_counts_state state, uint64_t n,
                             double us);
void stack_counts_sums_add(struct stack_counts_sums *to, const struct stack_counts_sums *more);
struct stack_counts_sums stack_counts_sums_since(const struct stack_counts_sums *now,
                                                 const struct stack_counts_sums *before);

/* One thread in one stack. */
struct stack_counts_entry {
    int64_t tid;
    uint32_t stack; /* for stack_counts_path; STACK_COUNTS_NO_STACK */
    struct stack_counts_sums sums;
    bool is_changed; /* it is in stack_counts_changed */
    /* The common value of its samples if they are split (stack_counts_split), otherwise unknown. */
    uint8_t gil_state; /* enum model_gil */
    int8_t gc_state;   /* 1 collecting garbage, 0 not, MODEL_UNKNOWN */
};

struct stack_counts_totals {
    uint64_t samples;
    uint64_t torn;      /* omitted: mixed from two moments */
    uint64_t undefined; /* omitted: unknown ids */
    uint64_t left_out;  /* omitted: no room for their stacks (stack_counts_limits) */
    uint64_t dropped;   /* dropped on the way, as reported by the agent */
    /* times of the first and the last counted sample, seconds since the epoch; NAN unknown */
    double first_s;
    double last_s;
    /* Of the newest batch. */
    enum model_sampling mode; /* gentle: stacks of running threads may be torn */
    double kept_hz;           /* samples a second; NAN unknown */
    double cost_pct;          /* their overhead, of one core; NAN unknown */
    double budget_pct;        /* the allowed overhead; NAN unknown */
};

struct stack_counts *stack_counts_new(void); /* NULL without memory */

/* For code inside a job: small; items for which there is no room, or no memory, are omitted and
 * counted as such. */
struct stack_counts_limits {
    size_t items;     /* of each: frames, stacks, entries */
    size_t bytes;     /* of all together */
    int64_t tid;      /* only samples of this thread; 0: of all */
    bool by_function; /* frames have no lines */
};
struct stack_counts *stack_counts_new_limited(const struct stack_counts_limits *limits);
void stack_counts_free(struct stack_counts *f);

/* From here on a thread in a stack has one entry for each combination of GIL and garbage
 * collection states. Call it before the first batch. */
void stack_counts_split(struct stack_counts *f);

/* Add a batch, or one snapshot of every thread with weight 1. 0, or -1 without memory or at
 * STACK_COUNTS_MAX_ENTRIES or STACK_COUNTS_MAX_BYTES. */
int stack_counts_add_batch(struct stack_counts *f, const struct model_sample_batch *b);
int stack_counts_add_snapshot(struct stack_counts *f, const struct model_snapshot *s);

/* Time that sample number `i` of a batch stands for, in microseconds; 0 if the batch's value is
 * invalid. */
double stack_counts_sample_us(const struct model_sample_batch *b, size_t i);

const struct stack_counts_totals *stack_counts_get_totals(const struct stack_counts *f);

/* Entries in order of their first sample. */
size_t stack_counts_count(const struct stack_counts *f);
const struct stack_counts_entry *stack_counts_get(const struct stack_counts *f, size_t i);

/* Entries whose counts have changed since the changes were last cleared, each once; valid until
 * the next call that adds. */
size_t stack_counts_changed(const struct stack_counts *f, const uint32_t **entries);
void stack_counts_forget_changed(struct stack_counts *f);

/* The entries that counted the samples of the newest batch, in their order;
 * STACK_COUNTS_NO_ENTRY: omitted. Valid until the next call that adds. */
const uint32_t *stack_counts_batch_entries(const struct stack_counts *f);

/* Stacks are a forest: each is a frame called by the stack above it, which has a smaller number.
 * Numbers count from 1 (stacks) and 0 (frames), and are never reused. */
/* A returned frame stays valid, and in its place, as long as the counts. */
size_t stack_counts_stacks(const struct stack_counts *f);
size_t stack_counts_frames(const struct stack_counts *f);
/* NULL if there is no such frame. */
const struct model_frame *stack_counts_frame(const struct stack_counts *f, size_t frame);

/* Frame of a stack (1 <= stack <= stack_counts_stacks); `*above` is its caller's stack,
 * STACK_COUNTS_NO_STACK for an outermost one. */
uint32_t stack_counts_stack_frame(const struct stack_counts *f, uint32_t stack, uint32_t *above);

/* Frames of a stack, root first, at most `cap` (the outermost). Returns the number of frames of
 * the stack. */
size_t stack_counts_path(const struct stack_counts *f, uint32_t stack, const struct model_frame **out,
                         size_t cap);

/* New counts for parts of others: empty, but with the names of the threads, and the totals
 * without the samples; NULL without memory. Then add a frame; a stack of a frame called by the
 * stack `above` (STACK_COUNTS_NO_STACK for an outermost one; its number is one more than the
 * result); and counts of a thread in a stack, which are added to the existing ones. The number,
 * or -1 without memory. */
struct stack_counts *stack_counts_new_like(const struct stack_counts *f);
int64_t stack_counts_put_frame(struct stack_counts *f, const struct model_frame *frame);
int64_t stack_counts_put_stack(struct stack_counts *f, uint32_t above, uint32_t frame);
int64_t stack_counts_put_counts(struct stack_counts *f, const struct stack_counts_entry *counts);

/* Used memory, in bytes. */
size_t stack_counts_bytes(const struct stack_counts *f);

/* Name of a thread: Python's, otherwise the native one, otherwise NULL. */
const char *stack_counts_thread_name(const struct stack_counts *f, int64_t tid);

#endif
