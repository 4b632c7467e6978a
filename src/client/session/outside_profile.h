/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outside_profile: samples every Python thread of another process at each tick and collects the
 * samples.
 *
 * A thread that slept at the last tick and has not run since still has the same stack: it is not
 * read, and if the whole process has not run, nothing is. Stacks are numbers of a trie; when it
 * is full, the collected samples are sent, all numbers become invalid and the epoch counts up.
 * The reader's thread.
 */
#ifndef CLIENT_SESSION_OUTSIDE_PROFILE_H
#define CLIENT_SESSION_OUTSIDE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/model.h"
#include "base/trie.h"
#include "pystack/pystack.h"

#define OUTSIDE_PROFILE_BATCH 1000 /* samples */

struct outside_profile_thread;

struct outside_profile {
    pid_t pid;
    struct trie trie;
    uint32_t epoch;
    size_t sent_frames, sent_stacks; /* of the trie, by batches that were taken */
    struct outside_profile_thread *threads;
    size_t n_threads;
    uint64_t listed_ns;      /* when the list of threads was read */
    uint64_t process_cpu_ns; /* before the last tick; 0 unknown */
    struct model_sample *samples;
    size_t n_samples;
    struct arena named; /* names of threads with samples */
    struct model_thread_def *names;
    size_t n_names, cap_names;
    uint64_t last_tick_ns, elapsed_ns, n_ticks; /* of this batch */
    /* send the collected samples: calls outside_profile_take or outside_profile_drop */
    void (*flush)(void *arg);
    void *flush_arg;
};

/* 0, or -1 without memory. */
int outside_profile_init(struct outside_profile *p, pid_t pid);
void outside_profile_fini(struct outside_profile *p);

/* Sample all Python threads; `wanted_ns` is the mean interval. 0, or -1 if they could not be
 * listed, or the process has become another program; then the waiting samples are dropped. */
int outside_profile_tick(struct outside_profile *p, struct pystack *ps, uint64_t wanted_ns);

/* Move the collected samples to `out`, which owns them (model_sample_batch_fini), on failure
 * too. 0, or -1 without memory. */
int outside_profile_take(struct outside_profile *p, struct model_sample_batch *out);

/* Drop the collected samples; their definitions are sent with the next. */
void outside_profile_drop(struct outside_profile *p);

/* Forget the threads too: sampling has stopped, or the target has become another program. */
void outside_profile_forget(struct outside_profile *p);

#endif
