/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_store: stores the stream of samples: the counts since the start or the last reset, and
 * those of the last seconds.
 *
 * The counts have frames, stacks and running sums. Once a second the changes go into a ring,
 * from which they are subtracted when they leave a window, so sliding a window costs only its
 * changes. After a freeze the counts that readers see stand still while new samples are counted.
 * Bounded: if there is no room for more stacks, counting starts again, which `restarts` shows.
 * The caller provides the time. One thread.
 */
#ifndef CLIENT_SAMPLES_SAMPLE_STORE_H
#define CLIENT_SAMPLES_SAMPLE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/model.h"
#include "flame/stack_counts.h"
#include "client/samples/thread_runs.h"

#define SAMPLE_STORE_SECONDS 60 /* the longest window */
/* of each kind; beyond this the store starts again */
#define SAMPLE_STORE_MAX_ENTRIES ((size_t)1 << 18)
/* of memory, without frozen counts; the same */
#define SAMPLE_STORE_MAX_BYTES ((size_t)96 * 1024 * 1024)

#define SAMPLE_STORE_CHANGES ((size_t)1 << 15) /* kept for readers of changes */

/* Two that slide; the samples since sample_store_mark; and two between times that are set. */
enum sample_store_window {
    SAMPLE_STORE_ALL = 0,
    SAMPLE_STORE_10S,
    SAMPLE_STORE_60S,
    SAMPLE_STORE_MARK,
    SAMPLE_STORE_SPAN,
    SAMPLE_STORE_OTHER,
    SAMPLE_STORE_WINDOWS
};

/* For readers that keep results from the counts. If `ids` differs from its old value, the
 * numbers of frames, stacks and entries have new meanings; if `counts` differs, any count may
 * have changed; otherwise only those of the entries that sample_store_get_change returns for the
 * changes from the old `changes` on, of which the last SAMPLE_STORE_CHANGES are kept. Never the
 * same for two stores. */
struct sample_store_mark {
    uint64_t ids, counts, changes;
};

/* State of the stream, since the start or the last reset. */
struct sample_store_health {
    uint64_t samples; /* counted samples */
    uint64_t torn, undefined, dropped, left_out;
    /* ticks a second over all threads, in the newest batches; NAN unknown */
    double got_hz;
    /* also of the newest batch: gentle: stacks of running threads may be torn */
    enum model_sampling mode;
    double cost_pct, budget_pct; /* overhead of sampling and its limit, of one core; NAN unknown */
    /* caller's clock: the start of counting; NAN before the first batch */
    double since_s;
    double newest_s;   /* arrival of the newest batch; NAN the same */
    uint32_t restarts; /* how often it was full and started again */
};

/* State of a span, on the samples' own clock. */
struct sample_store_span_health {
    double from_s, to_s;  /* as set */
    double known_from_s;  /* the oldest tick in it that was still known then; NAN: none */
    double known_until_s; /* the newest tick before its end; NAN: none yet */
};

struct sample_store;
struct thread_runs;

struct sample_store *sample_store_new(void); /* NULL without memory */

/* A store with other limits of its runs than THREAD_RUNS_TICKS and THREAD_RUNS_RUNS. */
struct sample_store *sample_store_new_sized(size_t max_ticks, size_t max_runs);
void sample_store_free(struct sample_store *t);

/* Count a batch that has just arrived. False if the store had to start again: it has new counts,
 * pointers into the old ones are invalid, and definitions have to come again (a new
 * subscription). */
bool sample_store_add(struct sample_store *t, const struct model_sample_batch *b, double now_s);

/* Count from zero. A freeze ends. */
void sample_store_reset(struct sample_store *t, double now_s);

/* SAMPLE_STORE_MARK begins now. 0, or -1 without memory: then it is unchanged. Without a mark it
 * equals SAMPLE_STORE_ALL. */
int sample_store_mark(struct sample_store *t, double now_s);

/* The time of the mark on the caller's clock; NAN: there is none. */
double sample_store_marked_s(const struct sample_store *t);

/* Set SAMPLE_STORE_SPAN or SAMPLE_STORE_OTHER to the samples with from_s <= their time < to_s,
 * also future ones: on the samples' own clock, model_sample.timestamp, of which the newest
 * minutes are known. After a freeze only to those that had arrived before. 0, or -1 without
 * memory or if from_s is not before to_s: then it is unchanged. A span that is not set is empty. */
int sample_store_set_span(struct sample_store *t, enum sample_store_window which, double from_s, double to_s);
void sample_store_clear_span(struct sample_store *t, enum sample_store_window which);

/* False if none is set. */
bool sample_store_get_span(const struct sample_store *t, enum sample_store_window which, double *from_s,
                           double *to_s);
bool sample_store_get_span_health(const struct sample_store *t, enum sample_store_window which,
                                  struct sample_store_span_health *out);

/* The samples of each thread in the order of time; a freeze does not stop them. Their entries
 * are those of the counts. */
const struct thread_runs *sample_store_runs(const struct sample_store *t);

/* Time of the newest tick that may be shown: after a freeze, the newest at that time; NAN none
 * yet. */
double sample_store_newest_tick_s(const struct sample_store *t);

/* Freeze the counts that readers see, or let them follow again. 0, or -1 without memory: they
 * follow. */
int sample_store_freeze(struct sample_store *t, bool held);

void sample_store_get_health(const struct sample_store *t, struct sample_store_health *out);

/* Frames, stacks and threads, and the entries of the sums. They only grow, until
 * sample_store_add returns false. Items beyond the numbers given here are not part of the
 * store's state. */
const struct stack_counts *sample_store_counts(const struct sample_store *t);
size_t sample_store_count_frames(const struct sample_store *t);
size_t sample_store_count_stacks(const struct sample_store *t);

/* Sums of all entries in a window; `out` has room for sample_store_count_entries. */
size_t sample_store_count_entries(const struct sample_store *t);
void sample_store_get_counts(const struct sample_store *t, enum sample_store_window window,
                             struct stack_counts_sums *out);

/* The same for one of these entries. */
struct stack_counts_sums sample_store_get_count(const struct sample_store *t, enum sample_store_window window,
                                                size_t entry);

/* The current mark; and the entry of a change, which may occur more than once: mark.changes -
 * SAMPLE_STORE_CHANGES <= at < mark.changes. */
struct sample_store_mark sample_store_get_mark(const struct sample_store *t);
uint32_t sample_store_get_change(const struct sample_store *t, uint64_t at);

/* Number of the frame that stands for a frame's function: the first one seen of the same
 * function, file and kind. */
uint32_t sample_store_function(const struct sample_store *t, uint32_t frame);

/* The stack itself, or the nearest above it with a frame that is not native;
 * STACK_COUNTS_NO_STACK if there is none. */
uint32_t sample_store_python_stack(const struct sample_store *t, uint32_t stack);

/* True if a stack's frame, or (by_function) its function, also occurs among its callers. */
bool sample_store_recurs(const struct sample_store *t, uint32_t stack, bool by_function);

struct sample_store_span {
    bool is_set;
    double from_s, to_s;
    double begins_s;                  /* the oldest tick in it when it was set; NAN none */
    struct stack_counts_sums *counts; /* per entry, as many as there were */
    size_t n, cap;
};

void sample_store_span_clear(struct sample_store_span *s);

/* Count samples with from_s <= time < to_s. 0, or -1 without memory, or if the times are not
 * valid: then all is unchanged. */
int sample_store_span_make(struct sample_store_span *s, const struct thread_runs *t, double from_s,
                           double to_s);

/* Count a sample that the runs have just accepted. 0, or -1 without memory. */
int sample_store_span_add(struct sample_store_span *s, const struct thread_runs *t,
                          const struct thread_runs_sample *sample);

#endif
