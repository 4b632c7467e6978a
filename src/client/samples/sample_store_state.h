/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_store_state: what a tally holds, for the files it is made of: sample_store.c counts, sample_store_window.c has the windows that do not
 * slide. One thread.
 */
#ifndef CLIENT_SAMPLES_SAMPLE_STORE_STATE_H
#define CLIENT_SAMPLES_SAMPLE_STORE_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/samples/sample_store.h"
#include "client/samples/sample_store_span.h"
#include "client/samples/thread_runs.h"

#define SAMPLE_STORE_SLIDING_END SAMPLE_STORE_MARK /* windows before it slide, but for SAMPLE_STORE_ALL */
#define SAMPLE_STORE_BASES SAMPLE_STORE_SPAN       /* windows before it are counts since some base */
#define SAMPLE_STORE_SPANS (SAMPLE_STORE_WINDOWS - SAMPLE_STORE_SPAN)

/* What was added to an entry in one second. */
struct sample_store_delta {
    uint32_t entry;
    struct sample_store_count count;
};

struct sample_store_slice {
    int64_t second; /* of the caller's clock */
    struct sample_store_delta *deltas;
    size_t n;
};

struct sample_store {
    struct stack_counts *fold;
    struct sample_store_count
        *base[SAMPLE_STORE_BASES];     /* per entry: the fold's count where a window begins */
    struct sample_store_count *closed; /* and at the end of the newest slice */
    bool *is_touched;                  /* per entry: it has changed since then */
    size_t n_entries, cap_entries;
    uint32_t *touched; /* the entries that have */
    size_t n_touched, cap_touched;
    uint32_t *function;      /* per frame */
    uint32_t *function_slot; /* open addressing: 1 + frame that stands for a function; 0 free */
    size_t n_frames, cap_frames, n_slots;
    unsigned char *recurs; /* per stack, from 1 */
    size_t n_stacks, cap_stacks;
    struct sample_store_slice ring[SAMPLE_STORE_SECONDS];
    size_t n_deltas;                           /* in all of them */
    uint64_t n_slices;                         /* closed so far; slice k is at k % SAMPLE_STORE_SECONDS */
    uint64_t oldest[SAMPLE_STORE_SLIDING_END]; /* slice that a window begins with */
    int64_t second;
    bool has_second;
    struct sample_store_count *held[SAMPLE_STORE_WINDOWS]; /* NULL: not held, or there is nothing in it */
    size_t n_held;
    double held_look_s; /* the newest look then; NAN */
    double marked_s;    /* NAN: base[SAMPLE_STORE_MARK] is NULL */
    struct thread_runs *tracks;
    size_t max_looks, max_runs; /* of the tracks */
    struct sample_store_span spans[SAMPLE_STORE_SPANS];
    struct stack_counts_totals before;
    struct sample_store_health health;
    struct sample_store_mark mark;
    uint32_t changes[SAMPLE_STORE_CHANGES]; /* entries; change k is at k % SAMPLE_STORE_CHANGES */
};

/* For marks that are never given twice. */
uint64_t sample_store_next_mark(void);

/* What an entry has got since `from`. */
struct sample_store_count sample_store_since(const struct sample_store *t, size_t entry,
                                             const struct sample_store_count *from);

/* The samples of a batch that the fold has just counted go to the tracks and the spans. 0, or -1 without memory. */
int sample_store_track(struct sample_store *t, const struct model_sample_batch *b);

#endif
