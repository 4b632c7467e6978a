/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container: whether this program runs in a container, a pod or a Slurm job, and what grants it
 * the right to trace a process there.
 *
 * All of it is a hint for messages. The facts are files, variables and names of control groups
 * that others may have written; no decision depends on them.
 */
#ifndef BASE_CONTAINER_H
#define BASE_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum container_kind {
    CONTAINER_NONE = 0,
    CONTAINER_KUBERNETES,
    CONTAINER_DOCKER,
    CONTAINER_PODMAN,
    CONTAINER_APPTAINER, /* or Singularity */
    CONTAINER_OTHER,
};

#define CONTAINER_JOB_MAX 24

struct container {
    enum container_kind kind;
    char slurm_job[CONTAINER_JOB_MAX]; /* number of the Slurm job this program is in; "" none */
    bool may_be_elsewhere;             /* that job has nodes other than this one */
};

/* Fill in where this program runs. */
void container_find(struct container *c);

/* The number of the Slurm job that a process belongs to, from its control group or its
 * environment; "" if there is none, or it is unknown. */
void container_find_slurm_job(pid_t pid, char *job, size_t cap);

/* The same from the content of /proc/PID/cgroup. */
void container_parse_slurm_job(const char *cgroup, char *job, size_t cap);

/* What a user in such a container does to be allowed to trace: a clause, such as "run this as
 * root". */
const char *container_remedy(enum container_kind kind);

/* The same if a seccomp filter forbids it, which a capability alone does not lift. */
const char *container_filter_remedy(enum container_kind kind);

/* Put the message that there is no `what` ("process 4242") here, and where to find it. */
void container_put_missing(const struct container *c, const char *what, char *buf, size_t cap);

#endif
