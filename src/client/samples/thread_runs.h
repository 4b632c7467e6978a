/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread_runs: the newest samples of each thread in the order of time: one lane a thread, of
 * runs of consecutive ticks with the same state.
 *
 * All threads are sampled together, so ticks are stored once, by the samples' own clock, and a
 * run refers to some of them: sums between two times are exact, even if a time is inside a run.
 * Late samples (of idle threads) are inserted in their place. Bounded in ticks, runs and lanes:
 * the oldest are dropped first, and thread_runs_first_tick returns the start of the complete
 * part. The cost of a sample does not depend on the amount of data. One thread.
 */
#ifndef CLIENT_SAMPLES_THREAD_RUNS_H
#define CLIENT_SAMPLES_THREAD_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/model.h"

#define THREAD_RUNS_TICKS ((size_t)1 << 15) /* five minutes at 100 a second */
#define THREAD_RUNS_RUNS ((size_t)1 << 18)
#define THREAD_RUNS_LANES ((size_t)4096)
/* ticks that a sample may be older than the newest one, if its own tick is new */
#define THREAD_RUNS_LATE 512

#define THREAD_RUNS_NO_ENTRY UINT32_MAX /* the sample was torn, or its stack is unknown */

/* State of a thread in a run beside its stack. */
enum thread_runs_flag {
    THREAD_RUNS_ON_CPU = 1,
    THREAD_RUNS_CPU_KNOWN = 2,
    THREAD_RUNS_GIL_HOLDING = 4,
    THREAD_RUNS_GIL_WAITING = 8,
    THREAD_RUNS_GIL_KNOWN = 16,
    THREAD_RUNS_GC = 32,
    THREAD_RUNS_GC_KNOWN = 64,
};

/* Ticks [first, first + n), in each of which the thread was seen. */
struct thread_runs_run {
    uint32_t first;
    uint32_t entry; /* of the counts: the thread in a stack; or THREAD_RUNS_NO_ENTRY */
    uint16_t n;
    uint8_t flags; /* THREAD_RUNS_ON_CPU | ... */
};

/* One sample. */
struct thread_runs_sample {
    double time_s; /* of the tick, seconds since the epoch */
    double us;     /* time that it stands for; the first sample of a tick sets it for all of them */
    int64_t tid;
    uint32_t entry;
    uint8_t flags;
};

struct thread_runs;

struct thread_runs *thread_runs_new(void); /* NULL without memory */

/* With other limits than THREAD_RUNS_TICKS and THREAD_RUNS_RUNS; at least 2 of each. */
struct thread_runs *thread_runs_new_sized(size_t max_ticks, size_t max_runs);
void thread_runs_free(struct thread_runs *t);

/* Copy the ticks with from_s <= time < to_s into new runs: `map` (of `n`) has the new number of
 * each entry, THREAD_RUNS_NO_ENTRY for those to omit; threads without other entries have no
 * lane. NULL without memory. */
struct thread_runs *thread_runs_trim(const struct thread_runs *t, double from_s, double to_s,
                                     const uint32_t *map, size_t n);

/* Forget all. */
void thread_runs_clear(struct thread_runs *t);

/* The flags of a run for the state in a sample. */
uint8_t thread_runs_flags(const struct model_sample *s);

/* Add a sample. 1; 0 if it is left out (the thread was already seen in this tick, it is too
 * late, or there are too many threads); -1 without memory. */
int thread_runs_add(struct thread_runs *t, const struct thread_runs_sample *s);

/* Number of samples left out, and of those forgotten because the clock was set back. */
uint64_t thread_runs_left_out(const struct thread_runs *t);

/* Used memory, in bytes. */
size_t thread_runs_bytes(const struct thread_runs *t);

/* A number that changes when all was forgotten: then numbers of ticks and lanes have new
 * meanings. */
uint64_t thread_runs_identity(const struct thread_runs *t);

/* ---- ticks: numbers in the order of time; a late tick shifts the later numbers by one ---- */

/* The first tick of the complete part, and the one after the newest: equal if there are none. */
uint32_t thread_runs_first_tick(const struct thread_runs *t);
uint32_t thread_runs_end_tick(const struct thread_runs *t);

/* The first tick that is not before a time; the end if there is none. */
uint32_t thread_runs_find_tick(const struct thread_runs *t, double time_s);

/* Time of one of these ticks; time that ticks [from, to) stand for, in microseconds. */
double thread_runs_tick_time(const struct thread_runs *t, uint32_t tick);
double thread_runs_tick_us(const struct thread_runs *t, uint32_t from, uint32_t to);

/* Time of the newest tick that was dropped: everything before it is unknown. NAN: nothing was
 * dropped. */
double thread_runs_forgotten_s(const struct thread_runs *t);

/* ---- lanes, in order of the threads' first samples; numbers change when a thread ends ---- */

size_t thread_runs_count_lanes(const struct thread_runs *t);
int64_t thread_runs_lane_tid(const struct thread_runs *t, size_t lane);

/* Lane of a thread, or -1. */
long thread_runs_find_lane(const struct thread_runs *t, int64_t tid);

/* Runs of a lane, oldest first, without overlaps; some may begin before thread_runs_first_tick.
 * Valid until the next sample. */
const struct thread_runs_run *thread_runs_runs(const struct thread_runs *t, size_t lane, size_t *n);

/* The first run of a lane that ends after a tick; `n` (of thread_runs_runs) if there is none. */
size_t thread_runs_find_run(const struct thread_runs *t, size_t lane, uint32_t tick);

#endif
