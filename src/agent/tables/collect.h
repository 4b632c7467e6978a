/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collect: what the kernel says of this process and its threads, once a second, within a bounded cost.
 *
 * A thread whose CPU clock has not moved has not switched, faulted or gone elsewhere either: of it one file is read, of the others
 * up to three. What is dear (files of the control group, shares of memory, open descriptors) is read the less often the more it
 * costs; what was not read now is unknown. Runs inside the job, on the sampler's thread.
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
#define COLLECT_THREADS_PCT 0.1 /* of a core, at most, for the files of threads; */
#define COLLECT_RARE_PCT 0.02   /* for each of those that are read now and then */

/* The process. MODEL_UNKNOWN or NAN: not known, or not read this time. Counters are since its start. */
struct collect_process {
    double cpu_pct; /* of one core, since the last time */
    int64_t rss_bytes, pss_bytes, swap_bytes;
    int64_t threads, fds;
    int64_t voluntary, involuntary, minor_faults, major_faults;
    int64_t read_bytes, written_bytes;
    int64_t cgroup_memory, cgroup_limit;
    double throttled_s;
};

/* A thread that is not the agent's. Strings "" are unknown. */
struct collect_thread {
    pid_t tid;
    uint64_t cpu_ns; /* its clock at the last look */
    double cpu_pct;  /* of one core, since the last time; NAN the first */
    char state;      /* '?' unknown */
    char native_name[16], wchan[48];
    int64_t voluntary, involuntary, minor_faults, major_faults;
    int64_t cpu;
};

/* Something that is read when it is due. */
struct collect_rare {
    uint64_t due_ns;
    struct cost cost;
    bool off; /* it is too dear here, or it is not there */
};

struct collect {
    struct collect_thread *threads; /* ascending */
    size_t n_threads;
    uint64_t threads_ns, threads_due_ns; /* the last look, monotonic; 0 none */
    struct cost threads_cost;
    bool threads_stretched; /* they are looked at less often than once a second, for what it costs */
    uint64_t process_ns, process_cpu_ns;
    struct collect_rare fds, cgroup, smaps;
    uint64_t found_ns; /* when the control groups were found */
    struct cgroup groups;
};

void collect_fini(struct collect *c);

/* Read the process's facts. */
void collect_read_process(struct collect *c, uint64_t now_ns, struct collect_process *out);

/* If it is time, read the threads but those in `skip`: 1, c->threads is new; 0 not yet; -1 they cannot be listed. */
int collect_read_threads(struct collect *c, uint64_t now_ns, const int64_t *skip, size_t n_skip);

/* Memory held. */
size_t collect_bytes(const struct collect *c);

#endif
