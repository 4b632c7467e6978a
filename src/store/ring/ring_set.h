/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_set: all ring tables of one process, within one memory limit.
 *
 * Takes the first place that has room: see ring_dir.h; if none has, memory that readers reach
 * through /proc/PID/task/TID/fd while the process lives. Runs inside the job; one thread at a
 * time.
 */
#ifndef STORE_RING_RING_SET_H
#define STORE_RING_RING_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "store/ring/ring.h"

#define RING_SET_MAX 32                        /* tables */
#define RING_SET_TABLE_MIN ((size_t)53 * 1024) /* of a table: its file and the writer's memory */
#define RING_SET_DEFAULT_BYTES ((size_t)32 * 1024 * 1024)

struct ring_set;

/* Make a ring for each of the `n` tables. `max_bytes`: files and the writer's own memory
 * together. `data_dir`: see ring_dir_base; NULL none. NULL with the error; a table that fails
 * alone is left out, and ring_set_note says so. */
struct ring_set *ring_set_open(const struct ring_table_def *tables, size_t n, const struct ring_owner *owner,
                               const char *data_dir, size_t max_bytes, struct err *e);

/* The ring of table `i` of ring_set_open's tables; NULL if it could not be made. */
struct ring *ring_set_get(const struct ring_set *s, size_t i);

/* Call `fn` for every descriptor of the set: the files and the folder. The set keeps them. */
void ring_set_each_fd(const struct ring_set *s, void (*fn)(int fd));

/* The folder; "" if the tables are in memory only. */
const char *ring_set_path(const struct ring_set *s);

/* What failed, and why; "" nothing. */
const char *ring_set_note(const struct ring_set *s);

/* Make all appended rows visible. 0, or -1 if a table could not be written (errno). */
int ring_set_flush(struct ring_set *s);

/* Remove rows older than each table's retention, seen from `now` (seconds since the epoch). */
void ring_set_expire(struct ring_set *s, double now);

/* Flush, close, free; `remove`: the files too. NULL is allowed. */
void ring_set_close(struct ring_set *s, bool remove);

/* In the child of a fork: free the memory, touch nothing shared with the parent. */
void ring_set_abandon(struct ring_set *s);

#endif
