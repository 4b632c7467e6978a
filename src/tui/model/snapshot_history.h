/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_history: snapshots of before, to be stepped through: who did what, when.
 *
 * Small: stacks are kept once (base/trie.h), threads that did nothing are shared by the moments around. Bounded: the older
 * it is, the fewer moments of it are kept, so that those left of a day stand about as far apart as they are long ago, and
 * what is near is there whole. A moment is made a snapshot again when somebody looks at it. One thread.
 */
#ifndef TUI_MODEL_SNAPSHOT_HISTORY_H
#define TUI_MODEL_SNAPSHOT_HISTORY_H

#include <stddef.h>
#include <stdint.h>

#include "tui/model/data_shot.h"

#define SNAPSHOT_HISTORY_ROW_BYTES ((size_t)2 * 1024 * 1024) /* of moments and what threads did in them */
#define SNAPSHOT_HISTORY_STACK_BYTES                                                                         \
    ((size_t)1 * 1024 * 1024)     /* of stacks, and as much again while they are sorted out */
#define SNAPSHOT_HISTORY_MAX 4096 /* at most */

/* Of a recording, whose moments come all at once and do not grow: a few thousand of a hundred threads. */
#define SNAPSHOT_HISTORY_RECORDED_ROW_BYTES ((size_t)32 * 1024 * 1024)
#define SNAPSHOT_HISTORY_RECORDED_STACK_BYTES ((size_t)16 * 1024 * 1024)

struct snapshot_history;

/* Without moments. `row_bytes`, `stack_bytes`: what it may hold; 0 the sizes above. NULL without memory. */
struct snapshot_history *snapshot_history_new(size_t row_bytes, size_t stack_bytes);
void snapshot_history_free(struct snapshot_history *p);

/* Keep a snapshot, whose number is larger than those before. Without memory, or too large, it is left out. */
void snapshot_history_add(struct snapshot_history *p, const struct data_shot *shot);

/* Number of the moment before (`step` -1) or after (1) that number, whether or not it is kept itself; 0: there is none. */
uint64_t snapshot_history_step(const struct snapshot_history *p, uint64_t number, int step);

/* Number of the newest moment that is not after a time, in seconds since the epoch; 0: there is none. */
uint64_t snapshot_history_find(const struct snapshot_history *p, double time_s);

/* Make the snapshot of a moment again; given back by data_shot_fini. 0, or -1: it is not kept, or there is no memory. */
int snapshot_history_get(const struct snapshot_history *p, uint64_t number, struct data_shot *out);

/* Moments kept, time of the oldest (NAN none), and memory held, in bytes. */
size_t snapshot_history_count(const struct snapshot_history *p);
double snapshot_history_oldest(const struct snapshot_history *p);
size_t snapshot_history_bytes(const struct snapshot_history *p);

#endif
