/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recording: the data of a process from its tables: its threads with their stacks at the end and
 * at moments before, and its samples.
 *
 * All rows of the tables, or, for those that are too large, as much of the time before the end
 * as has RECORDING_MAX_ROWS rows; `is_cut` shows this. Read by SQL from a database over one
 * target; may take a while: not for the thread that draws. After that the data belong to one
 * thread, which makes snapshots and batches from them, any number of times. Missing data are
 * unknown.
 */
#ifndef CLIENT_SQL_RECORDING_H
#define CLIENT_SQL_RECORDING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/model.h"
#include "client/sql/database.h"

#define RECORDING_MAX_ROWS 2000000 /* read from any table: 80 MB of samples */
#define RECORDING_LEAST_S 1.0      /* first guess of a time that fits */
#define RECORDING_RECENT_S 3.0     /* older rows do not count as the state of a moment */
#define RECORDING_SNAPSHOT_S 0.25  /* between two moments */
/* maximum number of moments: for a longer time they are further apart */
#define RECORDING_SNAPSHOTS 4000

struct recording_thread {
    struct model_thread thread; /* without frames */
    uint32_t stack_id;          /* 0 unknown, or none */
};

/* The names of a thread, living or ended. */
struct recording_name {
    int64_t tid;
    const char *name, *native_name; /* NULL unknown */
};

/* The kernel's facts about a thread, and about the process, once a second. */
struct recording_tick {
    double time_s;
    int64_t tid;
    double cpu_pct;
    char state;
};
struct recording_process {
    double time_s, cpu_pct;
    int64_t rss_bytes, n_threads;
};

/* What a thread waited for that had not run for a while (python.waits). */
struct recording_wait {
    double time_s;
    int64_t tid;
    struct model_wait wait;
};

/* All threads at some time before the end. */
struct recording_snapshot {
    double time_s;
    struct model_process process;
    struct recording_thread *threads;
    size_t n_threads;
};

struct recording_reader;

struct recording {
    int64_t pid, rank; /* MODEL_UNKNOWN */
    const char *host;  /* NULL unknown */
    double seen_until; /* time of the newest row; NAN if there is none */
    double window_s;   /* length of the time before it that was read */
    bool is_cut;       /* there were more rows */
    double from;       /* time of the first sample that was read; NAN none */
    struct model_process process;
    const char *cmdline, *exe, *python, *torch, *agent; /* NULL unknown */
    /* its interpreter ended before the process */
    bool finalized;
    double started_at; /* NAN unknown */
    struct recording_thread *threads;
    size_t n_threads;
    struct model_frame_def *frames; /* sorted by id, each once; stacks too */
    size_t n_frames;
    struct model_stack_def *stacks;
    size_t n_stacks;
    struct model_sample *samples; /* sorted by time */
    size_t n_samples;
    double *us; /* time that each sample stands for, in microseconds; NULL if there are none */
    /* Sorted by time; names by id. */
    struct recording_name *names;
    size_t n_names;
    struct recording_tick *looks;
    size_t n_looks;
    struct recording_process *processes;
    size_t n_processes;
    struct recording_wait *waits;
    size_t n_waits;
    double *moments; /* their times; the end is not one of them */
    size_t n_moments;
    struct recording_reader *reader; /* makes moments */
    struct arena arena;              /* texts, and derived data */
};

/* Read the recording; at most so many rows of samples and threads (0: RECORDING_MAX_ROWS). `out`
 * is initialised here and freed by recording_fini, on failure too. 0, or -1 with the error. */
int recording_load(struct recording *out, struct database *d, size_t max_rows, struct err *e);
void recording_fini(struct recording *p);

/* Remove native frames (probing.native) from the stacks, for views without native frames. 0, or
 * -1 without memory. Part of recording_load. */
int recording_strip_native(struct recording *p);

/* Assign each sample its weight: half the gap to the previous tick plus half the gap to the
 * next. Pauses without ticks belong to no sample. 0, or -1 without memory. Part of
 * recording_load. */
int recording_weigh(struct recording *p);

/* Find the moments: the last of each quarter of a second with a row, or of every n-th one. 0, or
 * -1 without memory. Part of recording_load, like the two functions after it: copy a sample's
 * state to its thread; and keep only the last one of several holders of the GIL, in samples of
 * different times (`at`). */
int recording_find_snapshots(struct recording *p);
void recording_put_sample(struct recording_thread *t, const struct model_sample *s);
void recording_keep_holder(struct recording_thread *threads, size_t n, const double *at);

/* The state of all threads at a moment; valid until the next call. Stepping forward costs only
 * the rows in between. */
struct recording_snapshot recording_read_snapshot(struct recording *p, size_t moment);

/* The last state, or an earlier one. A thread waits for what its last row in python.waits says, as
 * long as no later row shows that it has run. The caller owns `out`, on failure too. 0, or -1 without
 * memory. */
int recording_make_snapshot(const struct recording *p, struct model_snapshot *out);
int recording_make_snapshot_at(struct recording *p, size_t moment, struct model_snapshot *out);

/* The samples from number `*next` (below p->n_samples) on that lie within a second of it, with
 * all definitions if it is the first; `*next` moves behind them. As above. */
int recording_make_batch(const struct recording *p, size_t *next, struct model_sample_batch *out);

/* Facts about the target. As above. */
int recording_make_target(const struct recording *p, const char *why, struct model_target *out);

#endif
