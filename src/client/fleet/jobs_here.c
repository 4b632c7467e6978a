/* SPDX-License-Identifier: Apache-2.0 */
/* jobs_here: see jobs_here.h. */
#include "client/fleet/jobs_here.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOBS_RANGES 12 /* of a set of ranks in an error */

int jobs_here_read(struct jobs_here *h, unsigned limit_ms, struct err *e) {
    *h = (struct jobs_here){.n = 0};
    ssize_t n = limit_ms ? target_list_brief(&h->list, limit_ms, e) : target_list(&h->list, e);
    if (n < 0)
        return -1;
    h->n = (size_t)n;
    struct job_process *all = calloc(h->n + 1, sizeof *all);
    for (size_t i = 0; all && i < h->n; i++) {
        const struct target_process *p = &h->list[i];
        all[i] = (struct job_process){.pid = p->pid,
                                      .ppid = (pid_t)p->ppid,
                                      .parent = p->parent,
                                      .uid = p->uid,
                                      .net_ns = p->net_ns,
                                      .started = p->start_ticks,
                                      .cmdline = p->cmdline,
                                      .env = p->env};
    }
    int rc = all && jobs_find(all, h->n, &h->jobs) == 0
                 ? 0
                 : err_set(e, ERR_FAILED, "out of memory for the jobs of this machine");
    free(all);
    return rc;
}

void jobs_here_fini(struct jobs_here *h) {
    jobs_fini(&h->jobs);
    target_list_free(h->list, h->n);
    *h = (struct jobs_here){.n = 0};
}

const struct target_process *jobs_here_process(const struct jobs_here *h, const struct job_member *m) {
    return &h->list[m->process];
}

/* The ranks behind the '/' have to be processes here. */
static int jobs_here_check_ranks(const struct job *job, struct rank_set *ranks, struct err *e) {
    struct rank_set gone = {.n = 0};
    struct strbuf text;
    strbuf_init(&text, 0);
    int rc = rank_set_join(&gone, ranks) != 0 || rank_set_remove(&gone, &job->here) != 0
                 ? err_set(e, ERR_FAILED, "out of memory for a set of ranks")
                 : 0;
    if (rc == 0 && gone.n > 0) {
        rank_set_put(&gone, JOBS_RANGES, &text);
        rc = err_set(e, ERR_ATTACH,
                     "job %s: no process of this machine is rank %s: 'probing cluster ranks %s' lists them",
                     job->name, strbuf_str(&text), job->name);
    }
    strbuf_fini(&text);
    rank_set_fini(&gone);
    return rc;
}

const struct job *jobs_here_choose(const struct jobs_here *h, const char *text, struct rank_set *ranks,
                                   struct err *e) {
    char name[2 * JOB_NAME_MAX];
    if (jobs_is_target(text))
        text += strlen(JOBS_TARGET);
    const char *slash = strchr(text, '/');
    size_t n = slash ? (size_t)(slash - text) : strlen(text);
    snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name), text);
    const struct job *job = jobs_choose(&h->jobs, name, e);
    if (!job)
        return NULL;
    int rc = 0;
    if (!slash)
        rc = rank_set_join(ranks, &job->here) != 0
                 ? err_set(e, ERR_FAILED, "out of memory for a set of ranks")
                 : 0;
    else
        rc = rank_set_parse(ranks, slash + 1, e) != 0 ? -1 : jobs_here_check_ranks(job, ranks, e);
    return rc == 0 ? job : NULL;
}

bool jobs_is_target(const char *text) { return strncmp(text, JOBS_TARGET, strlen(JOBS_TARGET)) == 0; }

ssize_t jobs_here_resolve(const char *text, pid_t **pids, struct err *e) {
    struct jobs_here h;
    struct rank_set ranks = {.n = 0};
    ssize_t n = -1;
    const struct job *job = jobs_here_read(&h, 0, e) == 0 ? jobs_here_choose(&h, text, &ranks, e) : NULL;
    *pids = job ? calloc(job->n_ranks, sizeof **pids) : NULL;
    if (*pids) {
        n = 0;
        for (size_t i = 0; i < job->n_ranks; i++)
            if (rank_set_has(&ranks, job->members[i].rank))
                (*pids)[n++] = job->members[i].pid;
    } else if (job)
        err_set(e, ERR_FAILED, "out of memory for the ranks of %s", job->name);
    rank_set_fini(&ranks);
    jobs_here_fini(&h);
    return n;
}

int jobs_here_resolve_one(const char *text, pid_t *pid, struct err *e) {
    pid_t *pids;
    ssize_t n = jobs_here_resolve(text, &pids, e);
    int rc = n < 0 ? -1 : 0;
    if (n > 1 || n == 0)
        rc =
            err_set(e, ERR_USAGE, "%.200s means %zd processes: give one rank, as in %.200s/0", text, n, text);
    else if (n == 1)
        *pid = pids[0];
    free(pids);
    return rc;
}
