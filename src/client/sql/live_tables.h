/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live_tables: the tables of a target that are made when they are read: its current stacks and
 * threads, by one request to its agent or one snapshot from outside; the kernel's facts, from
 * /proc.
 *
 * Each scan has a connection and a loop of its own, on the thread that runs the query, and ends
 * early when the query does.
 */
#ifndef CLIENT_SQL_LIVE_TABLES_H
#define CLIENT_SQL_LIVE_TABLES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "client/gpu/gpu_source.h"
#include "client/session/session.h"
#include "store/ring/ring_tables.h"
#include "store/sql/sql.h"

#define LIVE_TABLES_MAX 24

/* The GPUs of a process, by their place in gpu_poller_devices. */
struct live_gpus {
    pid_t pid; /* 0: not chosen yet */
    size_t n;  /* of the machine */
    bool used[GPU_MAX];
    bool is_assumed; /* that it uses them */
};

struct call;

/* A target that lives, or lived at the last request. */
struct live_target {
    struct target_address addr; /* reached: target_reach */
    struct err failure;         /* of the last failed scan; ERR_OK: none failed */
    struct err silent;          /* why it is not asked for now; ERR_OK: it is */
    /* data that scans of the last query could not read, and why; "" none */
    char note[640];
    /* state of worker scans for the next scan; NULL none. Freed by live_loaders_free */
    struct live_loaders *loaders;
    struct live_gpus gpus;
};

/* Put its tables into `out` (room for LIVE_TABLES_MAX); `t` must outlive them. Returns their
 * number. */
size_t live_tables_fill(struct live_target *t, struct sql_provider *out);

/* The column whose value a query of that table must name; NULL none. */
const char *live_tables_key(enum ring_table table);

/* Scans, each of one table; see struct sql_provider. `arg` is the struct live_target.
 * live_proc.c: */
int live_scan_process(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e);
int live_scan_system_threads(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e);

/* The same for a job of which only the agent's address is known. live_remote.c: */
int live_scan_process_remote(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e);
int live_scan_system_threads_remote(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e);

/* Find the pid of that job, if it is a process of this machine with the same numbering: by host
 * name, number, start time and command line. 0 in `*pid` if it is not. 0, or -1 with the error:
 * its agent does not answer. live_remote.c. */
int live_remote_find_here(struct live_target *t, pid_t *pid, struct err *e);

/* live_loaders.c: */
int live_scan_loader_workers(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e);
int live_scan_loader_workers_remote(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e);
void live_loaders_free(struct live_loaders *l);

/* live_gpu.c: the rows of its GPUs, and of who has memory there; without any a note has the reason. */
int live_scan_gpu(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e);
int live_scan_gpu_remote(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e);
int live_scan_gpu_processes(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e);
int live_scan_gpu_processes_remote(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e);

/* live_virtual.c: any table that Python makes in the target; its agent knows it by name. And the
 * agent's settings. Without an agent there are no rows, but a note. */
int live_scan_virtual(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e);
int live_scan_config(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e);

/* Note why a table has no rows. */
void live_virtual_note(struct live_target *t, const char *table, const char *why);

/* A connection to its agent; the end of the query ends the wait (`sink` NULL: nothing does). The caller closes
 * it. NULL with the error. */
struct call *live_connect(struct live_target *t, struct sql_sink *sink, struct err *e);

/* The error for a process that is gone. -1. */
int live_lost(const struct live_target *t, struct err *e);

/* Threads of a process, in our numbering; freed by free(). NULL if it has ended, or without
 * memory. */
pid_t *live_list_tids(pid_t pid, size_t *n);

/* The kernel function in which a thread (in our numbering) waits; "" unknown or none. */
void live_read_wchan(pid_t pid, pid_t tid, char *buf, size_t cap);

#endif
