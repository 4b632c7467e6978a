/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_history: earlier snapshots, to step through.
 *
 * Small: stacks are stored once (base/trie.h), and threads that did nothing are shared by
 * neighbouring moments. Bounded: the older a moment, the more of its neighbours are dropped, so
 * that the moments left of a day are spaced by their age while the recent past is complete. A
 * moment becomes a snapshot again when it is shown. One thread.
 */
#ifndef TUI_MODEL_SNAPSHOT_HISTORY_H
#define TUI_MODEL_SNAPSHOT_HISTORY_H

#include <stddef.h>
#include <stdint.h>

#include "tui/model/data_shot.h"

/* For moments and what threads did in them. */
#define SNAPSHOT_HISTORY_ROW_BYTES ((size_t)2 * 1024 * 1024)
/* For stacks, and as much again while they are sorted out. */
#define SNAPSHOT_HISTORY_STACK_BYTES ((size_t)1 * 1024 * 1024)
#define SNAPSHOT_HISTORY_MAX 4096 /* at most */

/* For a recording, whose moments arrive together and do not grow: a few thousand with a hundred
 * threads. */
#define SNAPSHOT_HISTORY_RECORDED_ROW_BYTES ((size_t)32 * 1024 * 1024)
#define SNAPSHOT_HISTORY_RECORDED_STACK_BYTES ((size_t)16 * 1024 * 1024)

struct snapshot_history;

/* Without moments. `row_bytes`, `stack_bytes`: its limits; 0: the sizes above. NULL: out of
 * memory. */
struct snapshot_history *snapshot_history_new(size_t row_bytes, size_t stack_bytes);
void snapshot_history_free(struct snapshot_history *p);

/* Keep a snapshot, whose number is larger than the earlier ones. It is left out if it is too large
 * or memory is short. */
void snapshot_history_add(struct snapshot_history *p, const struct data_shot *shot);

/* Number of the moment before (`step` -1) or after (1) that number, whether or not that is kept; 0:
 * none. */
uint64_t snapshot_history_step(const struct snapshot_history *p, uint64_t number, int step);

/* Number of the newest moment that is not after a time, in seconds since the epoch; 0: none. */
uint64_t snapshot_history_find(const struct snapshot_history *p, double time_s);

/* The snapshot of a moment; free it with data_shot_fini. 0, or -1: it is not kept, or out of
 * memory. */
int snapshot_history_get(const struct snapshot_history *p, uint64_t number, struct data_shot *out);

/* How many moments are kept, the time of the oldest (NAN: none), and the memory used, in bytes. */
size_t snapshot_history_count(const struct snapshot_history *p);
double snapshot_history_oldest(const struct snapshot_history *p);
size_t snapshot_history_bytes(const struct snapshot_history *p);

#endif
