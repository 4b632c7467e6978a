/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_find: which processes of this machine are the ranks of one job. Pure.
 *
 * What launchers wrote into the environment (base/rank_env.h) says which rank a process is. All
 * that names the job has to agree, and the user; where nothing names it, the process that started
 * the ranks. A rank's own children have its environment, too, and are its workers, also when the
 * rank has ended; launchers have the number of their host where a rank has its own, and are left
 * out by the children they have.
 */
#ifndef CLIENT_JOBS_JOB_FIND_H
#define CLIENT_JOBS_JOB_FIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/rank_env.h"
#include "client/jobs/rank_set.h"

/* What is known of a Python process. */
struct job_process {
    pid_t pid, ppid;
    pid_t parent; /* the nearest ancestor that is a Python process, too; 0 none */
    int64_t uid;
    /* Of its network namespace and its host: their numbers alone are the same on many hosts. */
    uint64_t network;
    uint64_t started; /* in clock ticks since boot; 0 unknown */
    bool is_adopted;  /* who started it has ended; see target.h */
    bool is_unread;   /* it blocks whoever reads it: it may be a rank */
    const char *cmdline;
    struct rank_env env;
};

/* What a process is to its job. */
enum job_role {
    JOB_RANK,
    JOB_LAUNCHER, /* starts ranks, such as torchrun */
    JOB_WORKER,   /* a child of a rank, such as a DataLoader's; the rank may have ended */
    JOB_OLD,      /* a rank from before the last restart */
    JOB_DOUBLE,   /* claims the rank of a process that is older */
    JOB_ROLES,
};

struct job_member {
    size_t process; /* index in the list of processes */
    pid_t pid;
    enum job_role role;
    int32_t rank; /* of a worker: that of its parent; of a launcher: -1 */
};

#define JOB_NAME_MAX 64

struct job {
    /* The script or the job of Slurm, and a short hash: "train.py-c4f2". Letters, digits, '.', '_'
     * and '-' alone. */
    char name[JOB_NAME_MAX];
    size_t title; /* bytes of the name before the hash and its '-' */
    int64_t uid;
    const struct rank_env_source *source;
    int32_t world; /* 0 unknown */
    int32_t nodes; /* hosts; 0 unknown */
    int32_t restarts;
    struct job_member *members; /* owned; by role, rank, pid: the ranks are first */
    size_t n_members, n_ranks;
    struct rank_set here;      /* ranks that are processes here */
    struct rank_set missing;   /* promised to this host, and no process has it */
    struct rank_set elsewhere; /* the others: on other hosts, or gone */
    size_t unread;             /* processes of its user that may be ranks which are missing */
};

struct jobs {
    struct job *items; /* owned; by name */
    size_t n;
};

/* Find the jobs of `n` processes. 0, or -1 without memory; jobs_fini frees. */
int jobs_find(const struct job_process *list, size_t n, struct jobs *out);
void jobs_fini(struct jobs *jobs);

/* The job that `text` names: its name, the part before the hash or the hash alone if only one job
 * has it, the pid of one of its processes, or "" for the only job with several ranks, or the only
 * one. NULL with ERR_ATTACH, which names the jobs that could be meant. */
const struct job *jobs_choose(const struct jobs *jobs, const char *text, struct err *e);

/* The member with this pid in any role, and its job; NULL: none. `job` may be NULL. */
const struct job_member *jobs_member(const struct jobs *jobs, pid_t pid, const struct job **job);

/* The role in a word: "rank", "launcher". */
const char *job_role_name(enum job_role role);

#endif
