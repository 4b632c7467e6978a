/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container: see container.h.
 *
 * Marks: Kubernetes sets KUBERNETES_SERVICE_HOST in every container and names its control groups
 * kubepods (k8s.io/docs/concepts/services-networking/service). Docker makes /.dockerenv, podman
 * /run/.containerenv and container=podman (podman-run(1)), Apptainer /.singularity.d. The variable
 * `container` is systemd's convention (systemd.io/CONTAINER_INTERFACE). Slurm: srun(1), OUTPUT
 * ENVIRONMENT VARIABLES; its control groups are .../job_N/step_N (slurm.schedmd.com/cgroup_v2).
 */
#include "base/container.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/procfs.h"

#define CONTAINER_CGROUP_MAX 8192

static bool container_has(const char *path) { return access(path, F_OK) == 0; }

/* Copy a job's number of which `n` bytes are given; "" if it is not a number. */
static void container_copy_job(const char *text, size_t n, char *job, size_t cap) {
    bool is_number = n > 0 && n < cap;
    for (size_t i = 0; is_number && i < n; i++)
        is_number = isdigit((unsigned char)text[i]);
    snprintf(job, cap, "%.*s", is_number ? (int)n : 0, text);
}

void container_parse_slurm_job(const char *cgroup, char *job, size_t cap) {
    job[0] = '\0';
    for (const char *line = cgroup; *line && !job[0]; line += strcspn(line, "\n"), line += *line == '\n') {
        size_t len = strcspn(line, "\n");
        const char *at = memmem(line, len, "slurm", strlen("slurm"));
        at = at ? memmem(at, len - (size_t)(at - line), "/job_", strlen("/job_")) : NULL;
        if (!at)
            continue;
        at += strlen("/job_");
        container_copy_job(at, strcspn(at, "/\n"), job, cap);
    }
}

void container_find_slurm_job(pid_t pid, char *job, size_t cap) {
    char groups[CONTAINER_CGROUP_MAX], value[64] = "";
    job[0] = '\0';
    if (procfs_read_file(pid, 0, "cgroup", groups, sizeof groups) > 0)
        container_parse_slurm_job(groups, job, cap);
    if (!job[0] && procfs_read_environ(pid, "SLURM_JOB_ID", value, sizeof value) == 0)
        container_copy_job(value, strlen(value), job, cap);
}

static bool container_env_is(const char *name, const char *value) {
    const char *set = getenv(name);
    return set && strcmp(set, value) == 0;
}

static enum container_kind container_find_kind(void) {
    char groups[CONTAINER_CGROUP_MAX];
    const char *named = getenv("container");
    if (procfs_read_file(1, 0, "cgroup", groups, sizeof groups) <= 0)
        groups[0] = '\0';
    if (getenv("KUBERNETES_SERVICE_HOST") || container_has("/var/run/secrets/kubernetes.io") ||
        strstr(groups, "kubepods"))
        return CONTAINER_KUBERNETES;
    if (container_has("/run/.containerenv") || container_env_is("container", "podman"))
        return CONTAINER_PODMAN;
    /* before Docker: an image that comes from there may have its mark */
    if (getenv("APPTAINER_CONTAINER") || getenv("SINGULARITY_CONTAINER") || container_has("/.singularity.d"))
        return CONTAINER_APPTAINER;
    if (container_has("/.dockerenv") || strstr(groups, "/docker"))
        return CONTAINER_DOCKER;
    return (named && named[0]) || strstr(groups, "/lxc") ? CONTAINER_OTHER : CONTAINER_NONE;
}

void container_find(struct container *c) {
    const char *job = getenv("SLURM_JOB_ID");
    *c = (struct container){.kind = container_find_kind()};
    if (job)
        container_copy_job(job, strlen(job), c->slurm_job, sizeof c->slurm_job);
    else
        container_find_slurm_job(0, c->slurm_job, sizeof c->slurm_job);
    /* salloc sets the first on the login node, and slurmd the second where the job runs. */
    c->may_be_elsewhere = c->slurm_job[0] && job &&
                          (!getenv("SLURMD_NODENAME") || !container_env_is("SLURM_JOB_NUM_NODES", "1"));
}

const char *container_remedy(enum container_kind kind) {
    switch (kind) {
    case CONTAINER_KUBERNETES:
        return "run this in 'kubectl debug --profile=general', or add the capability SYS_PTRACE to the "
               "container";
    case CONTAINER_DOCKER:
        return "run this with 'docker exec --privileged', or start the container with --cap-add=SYS_PTRACE";
    case CONTAINER_PODMAN:
        return "run this with 'podman exec --privileged', or start the container with --cap-add=SYS_PTRACE";
    case CONTAINER_APPTAINER:
        return "run this outside of the container";
    case CONTAINER_OTHER:
        return "run this as root on the host, or add the capability SYS_PTRACE to the container";
    case CONTAINER_NONE:
        break;
    }
    return "run this as root";
}

const char *container_filter_remedy(enum container_kind kind) {
    switch (kind) {
    case CONTAINER_NONE:
        return "run this outside of that sandbox";
    /* The filter is that of the container, made when it was started (docs.docker.com/engine/
     * security/seccomp): 'exec --privileged' runs under it, too. */
    case CONTAINER_DOCKER:
    case CONTAINER_PODMAN:
        return "start the container with --cap-add=SYS_PTRACE";
    case CONTAINER_KUBERNETES:
    case CONTAINER_APPTAINER:
    case CONTAINER_OTHER:
        break;
    }
    return container_remedy(kind);
}

void container_put_missing(const struct container *c, const char *what, char *buf, size_t cap) {
    if (c->may_be_elsewhere)
        snprintf(buf, cap,
                 "no %s on this node: run this on a node of the job, "
                 "'srun --jobid=%s --overlap --pty probing-top'",
                 what, c->slurm_job);
    else
        snprintf(buf, cap, "no %s%s: 'probing list' shows the Python processes", what,
                 c->kind == CONTAINER_NONE ? "" : " in this container");
}
