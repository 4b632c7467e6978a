/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracks: what each thread did when, of the newest samples: a lane for each thread, of runs of looks in a row that saw the
 * same.
 *
 * All threads are looked at together, so looks are kept once, by the samples' own clock, and a run is some of them: what
 * lies between two times is counted exactly, wherever they cut a run. Samples may come late (those of threads that rest
 * do) and are put where they belong. Bounded in looks, runs and lanes: the oldest go first, and from when on all is known
 * can be asked. A sample costs the same however much there is. One thread.
 */
#ifndef CLIENT_TRACKS_H
#define CLIENT_TRACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/model.h"

#define TRACKS_LOOKS ((size_t)1 << 15) /* five minutes of 100 a second */
#define TRACKS_RUNS ((size_t)1 << 18)
#define TRACKS_LANES ((size_t)4096)
#define TRACKS_LATE 512 /* looks that a sample may come later than the newest one, when its own look is new */

#define TRACKS_NO_ENTRY UINT32_MAX /* the sample was torn, or its stack is not known */

/* What is known of a thread in a run beside its stack. */
enum tracks_flag {
    TRACKS_ON_CPU = 1,
    TRACKS_CPU_KNOWN = 2,
    TRACKS_GIL_HELD = 4,
    TRACKS_GIL_WAITING = 8,
    TRACKS_GIL_KNOWN = 16,
    TRACKS_GC = 32,
    TRACKS_GC_KNOWN = 64,
};

/* Looks [first, first + n) at a thread, in each of which it was seen. */
struct tracks_run {
    uint32_t first;
    uint32_t entry; /* of the fold: the thread in a stack; TRACKS_NO_ENTRY */
    uint16_t n;
    uint8_t flags; /* TRACKS_ON_CPU | ... */
};

/* One sample. */
struct tracks_sample {
    double time_s; /* of the look, seconds since the epoch */
    double us;     /* time that it stands for; of the first sample of a look, for all of them */
    int64_t tid;
    uint32_t entry;
    uint8_t flags;
};

struct tracks;

struct tracks *tracks_new(void); /* NULL without memory */

/* With other bounds than TRACKS_LOOKS and TRACKS_RUNS; at least 2 of each. */
struct tracks *tracks_new_sized(size_t max_looks, size_t max_runs);
void tracks_free(struct tracks *t);

/* Looks of a time, from_s <= it < to_s, as tracks of their own: an entry is what `map` (of `n`) says of it, TRACKS_NO_ENTRY for what is to be
 * left out; threads with nothing else have no lane. NULL without memory. */
struct tracks *tracks_cut(const struct tracks *t, double from_s, double to_s, const uint32_t *map, size_t n);

/* Forget all. */
void tracks_clear(struct tracks *t);

/* What a sample says of its thread, as a run has it. */
uint8_t tracks_flags(const struct model_sample *s);

/* Take a sample in. 1; 0 when it has no place (the thread was seen in this look already, it is too late, there are too many
 * threads): it is left out; -1 without memory. */
int tracks_add(struct tracks *t, const struct tracks_sample *s);

/* Samples that were left out, and those of looks that have gone. */
uint64_t tracks_left_out(const struct tracks *t);

/* Memory held, in bytes. */
size_t tracks_bytes(const struct tracks *t);

/* Another number than before: all was forgotten, numbers of looks and lanes mean others. */
uint64_t tracks_identity(const struct tracks *t);

/* ---- looks: numbers that rise with time; one that comes late moves those after it up by one ---- */

/* Looks from which on all is known, and the one after the newest: the same when there are none. */
uint32_t tracks_first_look(const struct tracks *t);
uint32_t tracks_end_look(const struct tracks *t);

/* The first look that is not before a time; the end when there is none. */
uint32_t tracks_find_look(const struct tracks *t, double time_s);

/* Time of a look of these; time that looks [from, to) stand for, in microseconds. */
double tracks_look_time(const struct tracks *t, uint32_t look);
double tracks_look_us(const struct tracks *t, uint32_t from, uint32_t to);

/* Time of the oldest look that was forgotten; what was before it is not known any more. NAN: nothing was forgotten. */
double tracks_forgotten_s(const struct tracks *t);

/* ---- lanes, in order of the threads' first samples; numbers change when a thread has gone ---- */

size_t tracks_count_lanes(const struct tracks *t);
int64_t tracks_lane_tid(const struct tracks *t, size_t lane);

/* Lane of a thread, or -1. */
long tracks_find_lane(const struct tracks *t, int64_t tid);

/* Runs of a lane, oldest first, none of which overlap; some may begin before tracks_first_look. Valid until the next
 * sample. */
const struct tracks_run *tracks_runs(const struct tracks *t, size_t lane, size_t *n);

/* The first run of a lane that ends after a look; `n` (of tracks_runs) when there is none. */
size_t tracks_find_run(const struct tracks *t, size_t lane, uint32_t look);

#endif
