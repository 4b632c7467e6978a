/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outside_profile: looks at every Python thread of another process at each tick and collects what it saw.
 *
 * A thread that slept at the last look and has not been on a processor since has the stack it had then: nothing is read, and when
 * the whole process has not run, nothing at all. Stacks become numbers of a trie; when that is full, what was collected is
 * sent, all numbers are forgotten and the epoch counts up. The reader's thread.
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
    uint64_t process_cpu_ns; /* before the last look; 0 unknown */
    struct model_sample *samples;
    size_t n_samples;
    struct arena named; /* what threads are called that have samples */
    struct model_thread_def *names;
    size_t n_names, cap_names;
    uint64_t last_tick_ns, elapsed_ns, n_ticks; /* of this batch */
    void (*flush)(void *arg); /* send what is collected: calls outside_profile_take or outside_profile_drop */
    void *flush_arg;
};

/* 0, or -1 without memory. */
int outside_profile_init(struct outside_profile *p, pid_t pid);
void outside_profile_fini(struct outside_profile *p);

/* Look at all Python threads, `wanted_ns` being the mean time between looks. 0, or -1: they could not be listed, or are another
 * program's by now; then the samples that wait are dropped. */
int outside_profile_tick(struct outside_profile *p, struct pystack *ps, uint64_t wanted_ns);

/* Move what was collected to `out`, which owns it all (model_sample_batch_fini), on failure too. 0, or -1 without memory. */
int outside_profile_take(struct outside_profile *p, struct model_sample_batch *out);

/* Forget the samples collected; what they refer to is sent with the next. */
void outside_profile_drop(struct outside_profile *p);

/* Forget the threads too: nobody samples any more, or the target is another program now. */
void outside_profile_forget(struct outside_profile *p);

#endif
