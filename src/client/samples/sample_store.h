/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_store: the stream of samples as it comes in, with a memory: what was counted since the start or the last reset, and in
 * the last seconds.
 *
 * A counts holds frames, stacks and running counts; once a second what changed is put into a ring, from which it is taken off
 * a window when its time is over: a window slides at the cost of what comes and goes. Held, the counts that are read stand still while samples go on being counted. Bounded: when there is no room
 * for more stacks it starts anew and says so. Time is what the caller says it is. One thread.
 */
#ifndef CLIENT_SAMPLES_SAMPLE_STORE_H
#define CLIENT_SAMPLES_SAMPLE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/model.h"
#include "flame/stack_counts.h"
#include "client/samples/thread_runs.h"

#define SAMPLE_STORE_SECONDS 60                    /* the longest window */
#define SAMPLE_STORE_MAX_ENTRIES ((size_t)1 << 18) /* of each kind; then it starts anew, */
#define SAMPLE_STORE_MAX_BYTES                                                                               \
    ((size_t)96 * 1024 * 1024) /* and when it takes more than that, held counts apart */

#define SAMPLE_STORE_CHANGES ((size_t)1 << 15) /* kept for readers of changes */

/* Two that slide; what came since sample_store_mark; and two between times that are set. */
enum sample_store_window {
    SAMPLE_STORE_ALL = 0,
    SAMPLE_STORE_10S,
    SAMPLE_STORE_60S,
    SAMPLE_STORE_MARK,
    SAMPLE_STORE_SPAN,
    SAMPLE_STORE_OTHER,
    SAMPLE_STORE_WINDOWS
};

/* For readers that keep what they made of the counts. When `ids` differs from what it was, numbers of frames, stacks and
 * entries mean others now; when `counts` does, any count may have changed; else only those of the entries told by
 * sample_store_get_change for the changes from the old `changes` on, of which the last SAMPLE_STORE_CHANGES are kept. Never the same for
 * two stores. */
struct sample_store_mark {
    uint64_t ids, counts, changes;
};

/* About the stream, since the start or the last reset. */
struct sample_store_health {
    uint64_t samples; /* that were counted */
    uint64_t torn, undefined, dropped, left_out;
    double got_hz;               /* looks a second at every thread, in the newest batches; NAN unknown */
    enum model_sampling mode;    /* of the newest batch too: gentle: stacks of threads that run may be torn */
    double cost_pct, budget_pct; /* what sampling costs and may cost, of one core; NAN unknown */
    double since_s;              /* caller's clock: when counting began; NAN before the first batch */
    double newest_s;             /* and when the newest batch came; NAN the same */
    uint32_t restarts;           /* how often it was full and started anew */
};

/* What is known of a span, on the samples' own clock. */
struct sample_store_span_health {
    double from_s, to_s;  /* as it was set */
    double known_from_s;  /* the oldest look in it that was still known then; NAN: there was none */
    double known_until_s; /* the newest look before its end; NAN: none came yet */
};

struct sample_store;
struct thread_runs;

struct sample_store *sample_store_new(void); /* NULL without memory */

/* One with other bounds of its runs than THREAD_RUNS_TICKS and THREAD_RUNS_RUNS. */
struct sample_store *sample_store_new_sized(size_t max_ticks, size_t max_runs);
void sample_store_free(struct sample_store *t);

/* Count a batch that came now. False when it had to start anew: the counts is another one, what was read of it is invalid,
 * and definitions have to come again (a new subscription). */
bool sample_store_add(struct sample_store *t, const struct model_sample_batch *b, double now_s);

/* Count from zero. What is held is let go. */
void sample_store_reset(struct sample_store *t, double now_s);

/* SAMPLE_STORE_MARK is what comes from now on. 0, or -1 without memory: then it is what it was. Without a mark it is as SAMPLE_STORE_ALL. */
int sample_store_mark(struct sample_store *t, double now_s);

/* The caller's clock then; NAN: there is no mark. */
double sample_store_marked_s(const struct sample_store *t);

/* SAMPLE_STORE_SPAN or SAMPLE_STORE_OTHER is the samples with from_s <= their time < to_s, those to come too: on the samples' own clock,
 * model_sample.timestamp, of which the newest minutes are known. While it is held, of those that had come before. 0, or -1
 * without memory or when from_s is not before to_s: then it is what it was. Without one, nothing is in it. */
int sample_store_set_span(struct sample_store *t, enum sample_store_window which, double from_s, double to_s);
void sample_store_clear_span(struct sample_store *t, enum sample_store_window which);

/* False when none is set. */
bool sample_store_get_span(const struct sample_store *t, enum sample_store_window which, double *from_s,
                           double *to_s);
bool sample_store_get_span_health(const struct sample_store *t, enum sample_store_window which,
                                  struct sample_store_span_health *out);

/* Who did what when; goes on while it is held. Its entries are those of the counts. */
const struct thread_runs *sample_store_runs(const struct sample_store *t);

/* Time of the newest look that may be shown: where it is held, that of then; NAN none yet. */
double sample_store_newest_tick_s(const struct sample_store *t);

/* Let what is read stand still, or go on. 0, or -1 without memory: it goes on. */
int sample_store_freeze(struct sample_store *t, bool held);

void sample_store_get_health(const struct sample_store *t, struct sample_store_health *out);

/* Frames, stacks and threads; its entries are what the counts are of. Grows only, until sample_store_add says false. What is
 * beyond the numbers given here was not taken in. */
const struct stack_counts *sample_store_counts(const struct sample_store *t);
size_t sample_store_count_frames(const struct sample_store *t);
size_t sample_store_count_stacks(const struct sample_store *t);

/* Counts of all entries in a window; `out` has room for sample_store_count_entries. */
size_t sample_store_count_entries(const struct sample_store *t);
void sample_store_get_counts(const struct sample_store *t, enum sample_store_window window,
                             struct stack_counts_sums *out);

/* The same of one entry, if it is one of them. */
struct stack_counts_sums sample_store_get_count(const struct sample_store *t, enum sample_store_window window,
                                                size_t entry);

/* Where counting is; and the entry that a change was of, some more than once: mark.changes - SAMPLE_STORE_CHANGES <= at <
 * mark.changes. */
struct sample_store_mark sample_store_get_mark(const struct sample_store *t);
uint32_t sample_store_get_change(const struct sample_store *t, uint64_t at);

/* Number of the frame that stands for a frame's function: the first one seen of the same function, file and kind. */
uint32_t sample_store_function(const struct sample_store *t, uint32_t frame);

/* The stack itself, or the nearest above it whose frame is not native; STACK_COUNTS_NO_STACK there is none. */
uint32_t sample_store_python_stack(const struct sample_store *t, uint32_t stack);

/* Does a stack's frame, or (by_function) its function, occur among its callers too? */
bool sample_store_recurs(const struct sample_store *t, uint32_t stack, bool by_function);

struct sample_store_span {
    bool is_set;
    double from_s, to_s;
    double begins_s; /* of the looks known when it was set: the oldest that is in it; NAN none */
    struct stack_counts_sums *counts; /* per entry, as many as there were */
    size_t n, cap;
};

void sample_store_span_clear(struct sample_store_span *s);

/* Count samples with from_s <= time < to_s. 0, or -1 without memory, or when the times are none: then all is as it was. */
int sample_store_span_make(struct sample_store_span *s, const struct thread_runs *t, double from_s,
                           double to_s);

/* A sample that runs have just taken in. 0, or -1 without memory. */
int sample_store_span_add(struct sample_store_span *s, const struct thread_runs *t,
                          const struct thread_runs_sample *sample);

#endif
