/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table_mirror: tables of an agent whose files cannot be opened from here, copied over the wire
 * (store/ring/ring_sync.h).
 *
 * A connection and a loop of its own behind blocking functions, bounded in time; the copies stay
 * when the connection is lost. Rows that were overwritten before they could be copied are
 * counted. Owned by one thread, which may wait.
 */
#ifndef CLIENT_SQL_TABLE_MIRROR_H
#define CLIENT_SQL_TABLE_MIRROR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "client/target/target_address.h"

struct table_mirror;

/* Of the agent at `addr`; sends no request yet. NULL with the error. */
struct table_mirror *table_mirror_new(const struct target_address *addr, struct err *e);
void table_mirror_free(struct table_mirror *c);

/* Copy new rows, for about `limit_s`; `stop` (NULL: none) is called often and ends it. 0, also
 * if there are more (table_mirror_behind); -1 with the error: the agent does not answer, has no
 * tables, or sends invalid data. Then the next call begins with a new connection. */
int table_mirror_update(struct table_mirror *c, double limit_s, bool (*stop)(void *arg), void *arg,
                        struct err *e);

/* The process's pid in its agent's numbering; 0 before the first answer. */
int64_t table_mirror_pid(const struct table_mirror *c);

/* New descriptors, for sql_add_files, of tables that were made or replaced since the last call;
 * at most `cap`. Returns their number. */
size_t table_mirror_take(struct table_mirror *c, int *fds, size_t cap);

/* Name of the i-th table that the agent withholds from this client; NULL after the last. */
const char *table_mirror_withheld(const struct table_mirror *c, size_t i);

/* True if there are rows that were not copied yet. */
bool table_mirror_behind(const struct table_mirror *c);

/* Rows that were overwritten before they could be copied, of all tables together. */
uint64_t table_mirror_missing(const struct table_mirror *c);

#endif
