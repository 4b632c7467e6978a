/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table_mirror: tables of an agent whose files cannot be opened from here, copied over the wire (store/ring/ring_sync.h).
 *
 * A connection and a loop of its own behind blocking functions, bounded in time; what was copied stays when the connection goes. What
 * was overwritten before it could be copied is counted. Belongs to one thread, which may wait.
 */
#ifndef CLIENT_SQL_TABLE_MIRROR_H
#define CLIENT_SQL_TABLE_MIRROR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct table_mirror;

/* Of the agent at unix socket `path`, at which process `pid` has to listen (0: anybody); nothing is asked yet. NULL with the error. */
struct table_mirror *table_mirror_new(const char *path, pid_t pid, struct err *e);
void table_mirror_free(struct table_mirror *c);

/* Take in what has come since, for about `limit_s`; `stop` (NULL: nobody does) is asked often and ends it. 0, also when there is more
 * (table_mirror_behind); -1 with the error: it does not answer, has no tables, or lies. The next call begins with a new connection then. */
int table_mirror_update(struct table_mirror *c, double limit_s, bool (*stop)(void *arg), void *arg,
                        struct err *e);

/* The process as its agent sees it; 0 before the first answer. */
int64_t table_mirror_pid(const struct table_mirror *c);

/* New descriptors, for sql_add_files, of tables that were made or made anew since the last call; at most `cap`. How many. */
size_t table_mirror_take(struct table_mirror *c, int *fds, size_t cap);

/* Name of the i-th table that the agent has but not for who came in as this one did; NULL there are no more. */
const char *table_mirror_withheld(const struct table_mirror *c, size_t i);

/* There are rows that were not taken in yet. */
bool table_mirror_behind(const struct table_mirror *c);

/* Rows that were overwritten before they could be copied, of all tables together. */
uint64_t table_mirror_missing(const struct table_mirror *c);

#endif
