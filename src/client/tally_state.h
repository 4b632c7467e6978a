/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tally_state: what a tally holds, for the files it is made of: tally.c counts, tally_window.c has the windows that do not
 * slide. One thread.
 */
#ifndef CLIENT_TALLY_STATE_H
#define CLIENT_TALLY_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/tally.h"
#include "client/tally_span.h"
#include "client/tracks.h"

#define TALLY_SLIDING_END TALLY_MARK /* windows before it slide, but for TALLY_ALL */
#define TALLY_BASES TALLY_SPAN       /* windows before it are counts since some base */
#define TALLY_SPANS (TALLY_WINDOWS - TALLY_SPAN)

/* What was added to an entry in one second. */
struct tally_delta {
    uint32_t entry;
    struct tally_count count;
};

struct tally_slice {
    int64_t second; /* of the caller's clock */
    struct tally_delta *deltas;
    size_t n;
};

struct tally {
    struct fold *fold;
    struct tally_count *base[TALLY_BASES]; /* per entry: the fold's count where a window begins */
    struct tally_count *closed;            /* and at the end of the newest slice */
    bool *is_touched;                      /* per entry: it has changed since then */
    size_t n_entries, cap_entries;
    uint32_t *touched; /* the entries that have */
    size_t n_touched, cap_touched;
    uint32_t *function;      /* per frame */
    uint32_t *function_slot; /* open addressing: 1 + frame that stands for a function; 0 free */
    size_t n_frames, cap_frames, n_slots;
    unsigned char *recurs; /* per stack, from 1 */
    size_t n_stacks, cap_stacks;
    struct tally_slice ring[TALLY_SECONDS];
    size_t n_deltas;                    /* in all of them */
    uint64_t n_slices;                  /* closed so far; slice k is at k % TALLY_SECONDS */
    uint64_t oldest[TALLY_SLIDING_END]; /* slice that a window begins with */
    int64_t second;
    bool has_second;
    struct tally_count *held[TALLY_WINDOWS]; /* NULL: not held, or there is nothing in it */
    size_t n_held;
    double held_look_s; /* the newest look then; NAN */
    double marked_s;    /* NAN: base[TALLY_MARK] is NULL */
    struct tracks *tracks;
    size_t max_looks, max_runs; /* of the tracks */
    struct tally_span spans[TALLY_SPANS];
    struct fold_totals before;
    struct tally_health health;
    struct tally_mark mark;
    uint32_t changes[TALLY_CHANGES]; /* entries; change k is at k % TALLY_CHANGES */
};

/* For marks that are never given twice. */
uint64_t tally_next_mark(void);

/* What an entry has got since `from`. */
struct tally_count tally_since(const struct tally *t, size_t entry, const struct tally_count *from);

/* The samples of a batch that the fold has just counted go to the tracks and the spans. 0, or -1 without memory. */
int tally_track(struct tally *t, const struct model_sample_batch *b);

#endif
