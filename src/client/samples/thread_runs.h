/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread_runs: what each thread did when, of the newest samples: a lane for each thread, of runs of ticks in a row that saw the
 * same.
 *
 * All threads are looked at together, so ticks are kept once, by the samples' own clock, and a run is some of them: what
 * lies between two times is counted exactly, wherever they cut a run. Samples may come late (those of threads that rest
 * do) and are put where they belong. Bounded in ticks, runs and lanes: the oldest go first, and from when on all is known
 * can be asked. A sample costs the same however much there is. One thread.
 */
#ifndef CLIENT_SAMPLES_THREAD_RUNS_H
#define CLIENT_SAMPLES_THREAD_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/model.h"

#define THREAD_RUNS_TICKS ((size_t)1 << 15) /* five minutes of 100 a second */
#define THREAD_RUNS_RUNS ((size_t)1 << 18)
#define THREAD_RUNS_LANES ((size_t)4096)
#define THREAD_RUNS_LATE                                                                                     \
    512 /* ticks that a sample may come later than the newest one, when its own tick is new */

#define THREAD_RUNS_NO_ENTRY UINT32_MAX /* the sample was torn, or its stack is not known */

/* What is known of a thread in a run beside its stack. */
enum thread_runs_flag {
    THREAD_RUNS_ON_CPU = 1,
    THREAD_RUNS_CPU_KNOWN = 2,
    THREAD_RUNS_GIL_HOLDING = 4,
    THREAD_RUNS_GIL_WAITING = 8,
    THREAD_RUNS_GIL_KNOWN = 16,
    THREAD_RUNS_GC = 32,
    THREAD_RUNS_GC_KNOWN = 64,
};

/* Looks [first, first + n) at a thread, in each of which it was seen. */
struct thread_runs_run {
    uint32_t first;
    uint32_t entry; /* of the counts: the thread in a stack; THREAD_RUNS_NO_ENTRY */
    uint16_t n;
    uint8_t flags; /* THREAD_RUNS_ON_CPU | ... */
};

/* One sample. */
struct thread_runs_sample {
    double time_s; /* of the tick, seconds since the epoch */
    double us;     /* time that it stands for; of the first sample of a tick, for all of them */
    int64_t tid;
    uint32_t entry;
    uint8_t flags;
};

struct thread_runs;

struct thread_runs *thread_runs_new(void); /* NULL without memory */

/* With other bounds than THREAD_RUNS_TICKS and THREAD_RUNS_RUNS; at least 2 of each. */
struct thread_runs *thread_runs_new_sized(size_t max_ticks, size_t max_runs);
void thread_runs_free(struct thread_runs *t);

/* Looks of a time, from_s <= it < to_s, as runs of their own: an entry is what `map` (of `n`) says of it, THREAD_RUNS_NO_ENTRY for what is to be
 * left out; threads with nothing else have no lane. NULL without memory. */
struct thread_runs *thread_runs_trim(const struct thread_runs *t, double from_s, double to_s,
                                     const uint32_t *map, size_t n);

/* Forget all. */
void thread_runs_clear(struct thread_runs *t);

/* What a sample says of its thread, as a run has it. */
uint8_t thread_runs_flags(const struct model_sample *s);

/* Take a sample in. 1; 0 when it has no place (the thread was seen in this tick already, it is too late, there are too many
 * threads): it is left out; -1 without memory. */
int thread_runs_add(struct thread_runs *t, const struct thread_runs_sample *s);

/* Samples that were left out, and those of ticks that have gone. */
uint64_t thread_runs_left_out(const struct thread_runs *t);

/* Memory held, in bytes. */
size_t thread_runs_bytes(const struct thread_runs *t);

/* Another number than before: all was forgotten, numbers of ticks and lanes mean others. */
uint64_t thread_runs_identity(const struct thread_runs *t);

/* ---- ticks: numbers that rise with time; one that comes late moves those after it up by one ---- */

/* Looks from which on all is known, and the one after the newest: the same when there are none. */
uint32_t thread_runs_first_tick(const struct thread_runs *t);
uint32_t thread_runs_end_tick(const struct thread_runs *t);

/* The first tick that is not before a time; the end when there is none. */
uint32_t thread_runs_find_tick(const struct thread_runs *t, double time_s);

/* Time of a tick of these; time that ticks [from, to) stand for, in microseconds. */
double thread_runs_tick_time(const struct thread_runs *t, uint32_t tick);
double thread_runs_tick_us(const struct thread_runs *t, uint32_t from, uint32_t to);

/* Time of the oldest tick that was forgotten; what was before it is not known any more. NAN: nothing was forgotten. */
double thread_runs_forgotten_s(const struct thread_runs *t);

/* ---- lanes, in order of the threads' first samples; numbers change when a thread has gone ---- */

size_t thread_runs_count_lanes(const struct thread_runs *t);
int64_t thread_runs_lane_tid(const struct thread_runs *t, size_t lane);

/* Lane of a thread, or -1. */
long thread_runs_find_lane(const struct thread_runs *t, int64_t tid);

/* Runs of a lane, oldest first, none of which overlap; some may begin before thread_runs_first_tick. Valid until the next
 * sample. */
const struct thread_runs_run *thread_runs_runs(const struct thread_runs *t, size_t lane, size_t *n);

/* The first run of a lane that ends after a tick; `n` (of thread_runs_runs) when there is none. */
size_t thread_runs_find_run(const struct thread_runs *t, size_t lane, uint32_t tick);

#endif
