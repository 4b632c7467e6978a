/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live_tables: the tables of a target that are made when they are read: its stacks and threads now, by one request to its agent or one
 * look from outside; what the kernel says of it, from /proc.
 *
 * Each scan has a connection and a loop of its own, on the thread that runs the query, and ends early when the query does.
 */
#ifndef CLIENT_LIVE_TABLES_H
#define CLIENT_LIVE_TABLES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "client/session.h"
#include "store/sql.h"

#define LIVE_TABLES_MAX 8

/* A target that lives, or lived when it was last asked. */
struct live_target {
    struct session_address addr; /* reached: target_reach */
    struct err failure;          /* of the last scan that failed; ERR_OK: none did */
};

/* Its tables into `out` (room for LIVE_TABLES_MAX); `t` must outlive them. How many. */
size_t live_tables_fill(struct live_target *t, struct sql_provider *out);

/* Is it a table that living targets have? */
bool live_tables_have(const struct ring_table_def *def);

/* Scans, each of one table; see struct sql_provider. `arg` is the struct live_target. live_proc.c: */
int live_scan_process(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e);
int live_scan_system_threads(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e);

/* The process is gone: `e` says so. -1. */
int live_lost(const struct live_target *t, struct err *e);

/* Threads of a process as this process numbers them; freed by free(). NULL: it has ended, or there is no memory. */
pid_t *live_list_tids(pid_t pid, size_t *n);

/* Where in the kernel a thread (numbered as from here) waits; "" unknown or nowhere. */
void live_read_wchan(pid_t pid, pid_t tid, char *buf, size_t cap);

#endif
