/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live_tables: the tables of a target that are made when they are read: its stacks and threads now, by one request to its agent or one
 * look from outside; what the kernel says of it, from /proc.
 *
 * Each scan has a connection and a loop of its own, on the thread that runs the query, and ends early when the query does.
 */
#ifndef CLIENT_SQL_LIVE_TABLES_H
#define CLIENT_SQL_LIVE_TABLES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "client/session/session.h"
#include "store/sql/sql.h"

#define LIVE_TABLES_MAX 16

/* A target that lives, or lived when it was last asked. */
struct live_target {
    struct target_address addr; /* reached: target_reach */
    struct err failure;         /* of the last scan that failed; ERR_OK: none did */
    char note[640];             /* what scans of the last query could not tell, and why; "" nothing */
    struct live_loaders
        *loaders; /* what scans of workers keep for the next; NULL nothing. Given back by live_loaders_free */
};

/* Its tables into `out` (room for LIVE_TABLES_MAX); `t` must outlive them. How many. */
size_t live_tables_fill(struct live_target *t, struct sql_provider *out);

/* Is it a table that living targets have? */
bool live_tables_have(const struct ring_table_def *def);

/* Scans, each of one table; see struct sql_provider. `arg` is the struct live_target. live_proc.c: */
int live_scan_process(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e);
int live_scan_system_threads(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e);

/* The same of a job that is known by its agent's address alone. live_remote.c: */
int live_scan_process_remote(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e);
int live_scan_system_threads_remote(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e);

/* The pid of that job, if it is a process of this machine, numbered alike: by host name, number, time of start and command line. 0 in
 * `*pid`: it is none. 0, or -1 with the error: its agent does not answer. live_remote.c. */
int live_remote_find_here(struct live_target *t, pid_t *pid, struct err *e);

/* live_loaders.c: */
int live_scan_loader_workers(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e);
int live_scan_loader_workers_remote(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e);
void live_loaders_free(struct live_loaders *l);

/* live_virtual.c: any table that Python makes in the target; its agent knows it by its name. */
int live_scan_virtual(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e);

/* Tell, beside the rows, why a table has none. */
void live_virtual_note(struct live_target *t, const char *table, const char *why);

/* The process is gone: `e` says so. -1. */
int live_lost(const struct live_target *t, struct err *e);

/* Threads of a process as this process numbers them; freed by free(). NULL: it has ended, or there is no memory. */
pid_t *live_list_tids(pid_t pid, size_t *n);

/* Where in the kernel a thread (numbered as from here) waits; "" unknown or nowhere. */
void live_read_wchan(pid_t pid, pid_t tid, char *buf, size_t cap);

#endif
