/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collect: the kernel's data about this process and its threads, once a second, at a bounded
 * cost.
 *
 * A thread whose CPU clock has not moved has not switched, faulted or changed its wait either, nor
 * its state, except that it may wait for a CPU by now: no file is read for it, or one every ten
 * seconds, because others can rename it. For a thread that has run it is up to three. The threads
 * are listed when their number has changed. Expensive data (files of the control group, shares of
 * memory, open descriptors) is read less often the more it costs; a value that was not read this
 * time is unknown. Runs inside the job, on the sampler's thread.
 */
#ifndef AGENT_TABLES_COLLECT_H
#define AGENT_TABLES_COLLECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cgroup.h"
#include "base/cost.h"

#define COLLECT_MAX_THREADS 4096
#define COLLECT_THREADS_PCT 0.1 /* maximum, of a core, for the files of threads */
#define COLLECT_RARE_PCT 0.02   /* for each file that is read now and then */

/* The process. MODEL_UNKNOWN or NAN: unknown, or not read this time. Counters are since its
 * start. */
struct collect_process {
    double cpu_pct; /* of one core, since the previous time */
    int64_t rss_bytes, pss_bytes, swap_bytes;
    int64_t threads, fds;
    int64_t voluntary, involuntary, minor_faults, major_faults;
    int64_t read_bytes, written_bytes;
    int64_t cgroup_memory, cgroup_limit;
    double throttled_s;
    double cpus; /* that it may use at once */
    double memory_pressure_s, io_pressure_s;
    double steal_pct; /* of all CPUs of the machine, since the previous time it was read */
};

/* A thread that is not the agent's. Strings are "" if unknown. */
struct collect_thread {
    pid_t tid;
    uint64_t cpu_ns;  /* its clock at the last reading */
    uint64_t read_ns; /* when its files were read, monotonic */
    double cpu_pct;   /* of one core, since the previous time; NAN the first time */
    char state;       /* '?' if unknown */
    char native_name[16], wchan[48];
    int64_t voluntary, involuntary, minor_faults, major_faults;
    int64_t cpu;
    double cpu_wait_s; /* it was ready to run and waited for a CPU, since it began; NAN unknown */
};

/* A value that is read when it is due. */
struct collect_rare {
    uint64_t due_ns;
    struct cost cost;
    bool off; /* it is too expensive here, or does not exist */
};

struct collect {
    struct collect_thread *threads; /* ascending */
    size_t n_threads;
    uint64_t threads_ns, threads_due_ns; /* the last reading, monotonic; 0 if there was none */
    bool nobody_ran;                     /* since that reading: the user knows it */
    struct cost threads_cost;
    bool threads_stretched; /* they are read less often than once a second, because of the cost */
    uint64_t process_ns, process_cpu_ns;
    int64_t process_threads; /* with the agent's; MODEL_UNKNOWN */
    struct collect_rare fds, cgroup, smaps, host;
    int64_t major_faults;             /* at the last reading */
    uint64_t host_ticks, host_stolen; /* of /proc/stat at the last reading */
    bool keep; /* files that are read every second stay open: descriptors are the agent's alone */
    struct reread status, io, stat;
    uint64_t found_ns; /* when the control groups were found */
    struct cgroup groups;
};

void collect_fini(struct collect *c);

/* Read the process's facts. */
void collect_read_process(struct collect *c, uint64_t now_ns, struct collect_process *out);

/* If it is due, read the threads except those in `skip`: 1 if c->threads is new; 0 if not yet
 * due; -1 if they cannot be listed. */
int collect_read_threads(struct collect *c, uint64_t now_ns, const int64_t *skip, size_t n_skip);

/* Memory in use. */
size_t collect_bytes(const struct collect *c);

#endif
