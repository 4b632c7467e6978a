/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_env: which rank of which job a launcher made a process, from its environment.
 *
 * torchrun, Slurm, Open MPI, PMIx and MPICH each have variables of their own for it: a row of
 * rank_env_sources each. The first source in their order that is whole wins, but for PMI and PMIx
 * of a launcher that runs in a step of Slurm. The environment is that with which the process was
 * started, and whoever started it may have written anything there: numbers are bounded, texts are
 * cut and safe for a terminal, and nothing follows from them but what is shown and which processes
 * are asked together. No allocation; usable inside the job.
 */
#ifndef BASE_RANK_ENV_H
#define BASE_RANK_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define RANK_ENV_LIMIT ((int32_t)1 << 20) /* ranks are below this, and no job has more */

/* A launcher's names for its facts. Several names are separated by spaces: the first that is there
 * counts. */
struct rank_env_source {
    const char *name; /* as shown */
    const char *rank;
    const char *world;  /* how many ranks the job has */
    const char *local;  /* the rank on its host, from 0; */
    const char *locals; /* how many of them that host has */
    const char *node;   /* number of the host, from 0, */
    const char *nodes;  /* and how many there are */
    const char *needs;  /* must be there, too; NULL: nothing */
    bool needs_step;    /* and be the number of a step of the job */
    bool no_world;      /* it is whole without `world` */
};

/* In the order of precedence; the last row has no name. */
extern const struct rank_env_source rank_env_sources[];

struct rank_env {
    const struct rank_env_source *source; /* NULL: no rank */
    int32_t rank;
    int32_t world;         /* 0 unknown */
    int32_t local, locals; /* -1 and 0 unknown */
    int32_t node, nodes;   /* -1 and 0 unknown */
    int32_t restarts;      /* how often torchrun started the ranks again */
    bool is_local_rank;    /* LOCAL_RANK is there: only processes below a launcher have it */
    bool is_loopback;      /* the job meets at an address that each network namespace has */
    /* Hashes of what names the job; 0: nothing does. `job` is of all of it, where the ranks meet
     * too. `run` is only of what stays the same when torchrun starts the
     * ranks again. */
    uint64_t job, run;
    char title[48]; /* the job's name by Slurm; "" none */
};

/* Read `len` bytes of variables, each ended by a NUL, as in /proc/PID/environ. Where a name stands
 * several times, the first counts. */
void rank_env_parse(struct rank_env *r, const char *env, size_t len);

/* Read the environment of a process (0: ours) as it was at its start. 0, or -1 with errno: it may
 * not be read. Then, too, `r` has no rank. */
int rank_env_read(struct rank_env *r, pid_t pid);

/* The rank of a process (0: ours), by a source that is whole or by a RANK alone; -1: it has none, or
 * that may not be read. `*world`: of how many; 0 unknown. */
int32_t rank_env_rank(pid_t pid, int32_t *world);

#endif
