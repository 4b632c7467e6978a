/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack_counts: samples added up per thread and stack.
 *
 * Takes batches of the stream of samples (whose ids mean something only within an epoch) and single snapshots; keeps
 * frames and stacks once each, under ids of its own that stay. Ids that were never defined are dropped and counted: what
 * came over the wire is foreign. One thread.
 */
#ifndef FLAME_STACK_COUNTS_H
#define FLAME_STACK_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/model.h"

#define STACK_COUNTS_MAX_ENTRIES ((size_t)1 << 22) /* of each kind */
#define STACK_COUNTS_MAX_BYTES ((size_t)64 * 1024 * 1024)
#define STACK_COUNTS_NO_STACK 0U /* a thread without a Python frame */
#define STACK_COUNTS_NO_ENTRY UINT32_MAX
#define STACK_COUNTS_MAX_PERIOD_US                                                                           \
    1e9 /* a longer time between looks, or none, is nonsense and counts as no time */

struct stack_counts;

/* Samples, added up: how many, and the time that they stand for. */
struct stack_counts_sums {
    uint64_t samples;
    uint64_t on_cpu; /* of these, how many were on the CPU */
    double us;
    double on_cpu_us;
    uint64_t gc; /* in which the thread collected garbage */
    double gc_us;
    uint64_t gc_on_cpu; /* and was on the CPU */
    double gc_on_cpu_us;
    uint64_t gil; /* in which it held the GIL */
    double gil_us;
};

/* What is known of a sample beside its thread and stack. */
struct stack_counts_state {
    bool on_cpu, gc, gil;
};

/* Add `n` samples that stand for `us` together; what others add up to; the difference to what it was before. */
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
    bool is_changed; /* it is among stack_counts_changed */
    /* The common value of its samples if they are split (stack_counts_split), otherwise unknown. */
    uint8_t gil_state; /* enum model_gil */
    int8_t gc_state;   /* 1 it collects garbage, 0 not, MODEL_UNKNOWN */
};

struct stack_counts_totals {
    uint64_t samples;
    uint64_t torn;      /* left out: two moments mixed */
    uint64_t undefined; /* left out: unknown ids */
    uint64_t left_out;  /* left out: there was no room for their stacks (stack_counts_limits) */
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

struct stack_counts *stack_counts_new(void); /* NULL without memory */

/* For code inside a job: small, and what finds no room, or no memory, is left out and counted as such. */
struct stack_counts_limits {
    size_t items;     /* frames, stacks, entries: of each */
    size_t bytes;     /* of all */
    int64_t tid;      /* only samples of this thread; 0: of all */
    bool by_function; /* frames have no lines */
};
struct stack_counts *stack_counts_new_limited(const struct stack_counts_limits *limits);
void stack_counts_free(struct stack_counts *f);

/* From here on one thread in one stack is as many entries as it was in states of the GIL and of collecting garbage. Before
 * the first batch. */
void stack_counts_split(struct stack_counts *f);

/* Add a batch, or one look at every thread with weight 1. 0, or -1 when memory, STACK_COUNTS_MAX_ENTRIES or STACK_COUNTS_MAX_BYTES ended. */
int stack_counts_add_batch(struct stack_counts *f, const struct model_sample_batch *b);
int stack_counts_add_snapshot(struct stack_counts *f, const struct model_snapshot *s);

/* Time that sample number `i` of a batch stands for, in microseconds; 0 where what it says is nonsense. */
double stack_counts_sample_us(const struct model_sample_batch *b, size_t i);

const struct stack_counts_totals *stack_counts_get_totals(const struct stack_counts *f);

/* Entries in order of their first sample. */
size_t stack_counts_count(const struct stack_counts *f);
const struct stack_counts_entry *stack_counts_get(const struct stack_counts *f, size_t i);

/* Entries whose counts have changed since they were last forgotten, each once; valid until the next call that adds. */
size_t stack_counts_changed(const struct stack_counts *f, const uint32_t **entries);
void stack_counts_forget_changed(struct stack_counts *f);

/* Entries that the samples of the newest batch were counted as, in their order; STACK_COUNTS_NO_ENTRY: left out. Valid until the
 * next call that adds. */
const uint32_t *stack_counts_batch_entries(const struct stack_counts *f);

/* Stacks are a forest: each is a frame called by the stack above it, which has a smaller number. Numbers count from 1
 * (stacks) and 0 (frames), and are never reused. */
/* What is pointed to stays where it is as long as these. */
size_t stack_counts_stacks(const struct stack_counts *f);
size_t stack_counts_frames(const struct stack_counts *f);
/* NULL: there is no such frame. */
const struct model_frame *stack_counts_frame(const struct stack_counts *f, size_t frame);

/* Frame of a stack (1 <= stack <= stack_counts_stacks); `*above` is its caller's stack, STACK_COUNTS_NO_STACK for an outermost one. */
uint32_t stack_counts_stack_frame(const struct stack_counts *f, uint32_t stack, uint32_t *above);

/* Frames of a stack, root first, at most `cap` (the outermost). Number of frames the stack has. */
size_t stack_counts_path(const struct stack_counts *f, uint32_t stack, const struct model_frame **out,
                         size_t cap);

/* One that is made of parts of another: empty, but with the names of its threads, and its totals without the samples; NULL without memory. Then
 * a frame, a stack (of a frame called by the stack `above`, STACK_COUNTS_NO_STACK for an outermost one: its number is one more than what is
 * returned) and counts of a thread in a stack, which are added to those that it has. The number, or -1 without memory. */
struct stack_counts *stack_counts_new_like(const struct stack_counts *f);
int64_t stack_counts_put_frame(struct stack_counts *f, const struct model_frame *frame);
int64_t stack_counts_put_stack(struct stack_counts *f, uint32_t above, uint32_t frame);
int64_t stack_counts_put_counts(struct stack_counts *f, const struct stack_counts_entry *counts);

/* Memory held, in bytes. */
size_t stack_counts_bytes(const struct stack_counts *f);

/* Name of a thread: Python's, else the native one, else NULL. */
const char *stack_counts_thread_name(const struct stack_counts *f, int64_t tid);

#endif
