/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile: looks at every Python thread at each tick and collects what it saw.
 *
 * A thread whose CPU clock has not moved since the last look has the stack it had then: nothing is read. One that runs is
 * asked for its own frames (exact.h), and its sample is there at the next tick; one that ran and sleeps is read from here,
 * because it does not move. Stacks become numbers of a trie; when that is full, what was collected is sent, all numbers are
 * forgotten and the epoch counts up.
 * Belongs to the sampler's thread.
 */
#ifndef AGENT_PROFILE_H
#define AGENT_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/queue.h"
#include "base/model.h"
#include "base/trie.h"
#include "pystack/pystack.h"

#define PROFILE_BATCH 1000 /* samples */

struct profile_thread {
    struct pystack_thread py; /* name is NULL: see below */
    uint64_t cpu_ns;          /* its clock at the last look */
    uint64_t cpu_now_ns;      /* and at this one */
    bool kept;                /* it is in the new list of threads too */
    bool looked;              /* stack_id, gil and torn are of the last look */
    bool moved;
    bool active; /* it moved lately: its clock is read at every tick */
    bool torn;
    bool asked;      /* for its own frames, at asked_at; no sample of that tick yet */
    uint8_t broken;  /* copies in a row that did not hang together */
    bool late;       /* asked, and read from here meanwhile: the answer is not needed any more */
    double asked_at; /* timestamp */
    enum model_gil gil;
    int8_t gc;
    uint32_t stack_id;
    char *name; /* owned; NULL unknown */
    char native_name[16];
    uint64_t names_at_ns; /* when the native name was read */
    uint64_t names;       /* value of profile.names when a name changed last */
};

struct profile {
    struct trie trie;
    uint32_t epoch;
    uint64_t names; /* counts changes of names */
    struct profile_thread *threads;
    size_t n_threads;
    uint64_t listed_ns;
    struct profile_thread *ended; /* threads that are gone but have samples in this batch */
    size_t n_ended, cap_ended;
    struct model_sample *samples;
    size_t n_samples;
    uint64_t idle_cpu_ns; /* CPU time of all that is not active, as of the last look at every clock */
    uint64_t last_tick_ns, elapsed_ns, n_ticks; /* of this batch */
    double period_us;                           /* mean time between its ticks */
    bool exact;                                 /* threads that run are asked */
    struct pystack_known *known;
    uint64_t total_samples, total_torn, total_exact, total_retried, unknown_frames, read_errors;
    uint64_t total_cut;       /* stacks read whose outermost frames were left out */
    void (*flush)(void *arg); /* send what is collected; then profile_clear_batch is called */
    void *arg;
};

/* 0, or -1 without memory. */
int profile_init(struct profile *p, void (*flush)(void *arg), void *arg);
void profile_fini(struct profile *p);

/* Nobody samples any more: forget the threads and the batch, keep the numbers. */
void profile_pause(struct profile *p);

/* Look at all Python threads, `wanted_ns` being the mean time between ticks. */
void profile_tick(struct profile *p, struct pystack *ps, uint64_t wanted_ns);

/* Record what threads that were asked have answered since. */
void profile_collect(struct profile *p, struct pystack *ps);

/* What a client that has seen `seen` gets of this batch from sample `first_sample` on; `*now` is what it has seen then. Rows
 * are borrowed from the profile but for out->threads; freed by model_sample_batch_fini. 0, or -1 without memory. */
int profile_get_batch(const struct profile *p, const struct queue_mark *seen, size_t first_sample,
                      struct model_sample_batch *out, struct queue_mark *now);

void profile_clear_batch(struct profile *p);

/* Memory held. */
size_t profile_bytes(const struct profile *p);

#endif
