/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data_past: snapshots of before, to be stepped through: who did what, when.
 *
 * Small: stacks are kept once (base/trie.h), threads that did nothing are shared by the moments around. Bounded: the older
 * it is, the fewer moments of it are kept, so that those left of a day stand about as far apart as they are long ago, and
 * what is near is there whole. A moment is made a snapshot again when somebody looks at it. One thread.
 */
#ifndef TUI_DATA_PAST_H
#define TUI_DATA_PAST_H

#include <stddef.h>
#include <stdint.h>

#include "tui/data.h"

#define DATA_PAST_ROW_BYTES ((size_t)2 * 1024 * 1024) /* of moments and what threads did in them */
#define DATA_PAST_STACK_BYTES                                                                                \
    ((size_t)1 * 1024 * 1024)  /* of stacks, and as much again while they are sorted out */
#define DATA_PAST_MOMENTS 4096 /* at most */

/* Of a recording, whose moments come all at once and do not grow: a few thousand of a hundred threads. */
#define DATA_PAST_RECORDED_ROW_BYTES ((size_t)32 * 1024 * 1024)
#define DATA_PAST_RECORDED_STACK_BYTES ((size_t)16 * 1024 * 1024)

struct data_past;

/* Without moments. `row_bytes`, `stack_bytes`: what it may hold; 0 the sizes above. NULL without memory. */
struct data_past *data_past_new(size_t row_bytes, size_t stack_bytes);
void data_past_free(struct data_past *p);

/* Keep a snapshot, whose number is larger than those before. Without memory, or too large, it is left out. */
void data_past_add(struct data_past *p, const struct data_shot *shot);

/* Number of the moment before (`step` -1) or after (1) that number, whether or not it is kept itself; 0: there is none. */
uint64_t data_past_step(const struct data_past *p, uint64_t number, int step);

/* Number of the newest moment that is not after a time, in seconds since the epoch; 0: there is none. */
uint64_t data_past_find(const struct data_past *p, double time_s);

/* Make the snapshot of a moment again; given back by data_shot_fini. 0, or -1: it is not kept, or there is no memory. */
int data_past_get(const struct data_past *p, uint64_t number, struct data_shot *out);

/* Moments kept, time of the oldest (NAN none), and memory held, in bytes. */
size_t data_past_count(const struct data_past *p);
double data_past_oldest(const struct data_past *p);
size_t data_past_bytes(const struct data_past *p);

#endif
