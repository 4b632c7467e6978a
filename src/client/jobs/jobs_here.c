/* SPDX-License-Identifier: Apache-2.0 */
/* jobs_here: see jobs_here.h. */
#include "client/jobs/jobs_here.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/strbuf.h"

#define JOBS_RANGES 12    /* of a set of ranks in an error */
#define JOBS_ANCESTORS 64 /* generations between a worker and its job */

/* ---- jobs without a launcher ----
 *
 * A rank that is known from Python's memory, and a process with torch and no rank, have no name of a job.
 * What belongs together is seen from who started whom. A family is a process with torch whose
 * parent has none, and what of its descendants has torch. */

/* A job of one rank, and what it forked are its workers. */
static const struct rank_env_source jobs_alone = {.name = "alone"};

static bool jobs_here_is_rank(const struct target_process *p) { return p->env.source == &target_rank_source; }

/* A launcher made it rank 0 of 1: the program may have made ranks itself, which have its environment. */
static bool jobs_here_is_single(const struct target_process *p) {
    return p->env.source && !jobs_here_is_rank(p) && p->env.world == 1;
}

static size_t jobs_here_parent(const struct jobs_here *h, size_t i) {
    for (size_t k = 0; h->list[i].parent > 0 && k < h->n; k++)
        if (h->list[k].pid == h->list[i].parent)
            return k;
    return h->n;
}

/* The first process of the family; h->n: it has none, or a launcher started it. */
static size_t jobs_here_first(const struct jobs_here *h, size_t i) {
    for (int n = 0; n < JOBS_ANCESTORS && h->list[i].torch[0]; n++) {
        size_t up = jobs_here_parent(h, i);
        const struct target_process *p = &h->list[i];
        if (p->env.source && !jobs_here_is_rank(p) && !jobs_here_is_single(p))
            return h->n;
        if (up == h->n || !h->list[up].torch[0])
            return i;
        i = up;
    }
    return h->n;
}

/* The family of whoever started a process that has no torch, such as Python's tracker of resources. */
static size_t jobs_here_first_above(const struct jobs_here *h, const size_t *first, size_t i) {
    for (int n = 0; n < JOBS_ANCESTORS && i < h->n && first[i] == h->n && !h->list[i].torch[0]; n++)
        i = jobs_here_parent(h, i);
    return i < h->n ? first[i] : h->n;
}

/* What is known of a family, at its first process. */
struct jobs_family {
    bool has_ranks;       /* from memory, */
    bool has_other_ranks; /* and below the first process another than its own */
    bool has_strangers;   /* processes with a command line of their own: not forked, and maybe ranks */
};

/* The name of a job: of a process, or of who started it. */
static uint64_t jobs_here_hash(const struct target_process *p, bool starter) {
    int64_t pid = starter ? p->ppid : p->pid;
    uint64_t since = starter ? 0 : p->start_ticks;
    return hash_fnv(hash_fnv(HASH_FNV_START, &pid, sizeof pid), &since, sizeof since);
}

/* Give ranks without a job, and processes that are jobs of one rank, what names their job. */
static void jobs_here_join_families(const struct jobs_here *h, struct job_process *all) {
    size_t *first = calloc(h->n + 1, sizeof *first);
    struct jobs_family *families = calloc(h->n + 1, sizeof *families);
    for (size_t i = 0; first && families && i < h->n; i++) {
        first[i] = jobs_here_first(h, i);
        const struct target_process *p = &h->list[i], *top = first[i] < h->n ? &h->list[first[i]] : p;
        struct jobs_family *f = &families[first[i]];
        if (jobs_here_is_single(p))
            continue;
        f->has_ranks |= jobs_here_is_rank(p);
        f->has_other_ranks |=
            jobs_here_is_rank(p) && (!jobs_here_is_rank(top) || p->env.rank != top->env.rank);
        f->has_strangers |= strcmp(p->cmdline, top->cmdline) != 0;
    }
    for (size_t i = 0; first && families && i < h->n; i++) {
        size_t above = jobs_here_is_single(&h->list[i]) ? jobs_here_first_above(h, first, i) : h->n;
        /* the whole family has this environment, and memory says which of them are ranks */
        if (above < h->n && families[above].has_ranks)
            all[i].env = (struct rank_env){.rank = -1, .local = -1, .node = -1};
        const struct jobs_family *f = &families[first[i]];
        if (first[i] == h->n || jobs_here_is_single(&h->list[i]))
            continue;
        const struct target_process *top = &h->list[first[i]];
        /* ranks that were started one by one have who started them in common */
        if (jobs_here_is_rank(&h->list[i]))
            all[i].env.job = jobs_here_hash(top, !f->has_other_ranks && top->env.world > 1);
        else if (!f->has_ranks && !top->env.source && !f->has_strangers)
            all[i].env = (struct rank_env){.source = &jobs_alone,
                                           .world = 1,
                                           .local = -1,
                                           .node = -1,
                                           .job = jobs_here_hash(top, false)};
        /* what started a family of ranks is their launcher, unless it is one of them */
        all[i].env.is_local_rank |= jobs_here_is_rank(&h->list[i]);
    }
    free(families);
    free(first);
}

/* Of this host, until it is started again. */
static uint64_t jobs_here_boot(void) {
    struct strbuf id;
    strbuf_init(&id, 0);
    strbuf_read_file(&id, "/proc/sys/kernel/random/boot_id");
    uint64_t h = hash_fnv(HASH_FNV_START, strbuf_str(&id), id.len);
    strbuf_fini(&id);
    return h;
}

int jobs_here_read(struct jobs_here *h, unsigned limit_ms, struct err *e) {
    *h = (struct jobs_here){.n = 0};
    ssize_t n = limit_ms ? target_list_brief(&h->list, limit_ms, &h->is_cut, e) : target_list(&h->list, e);
    if (n < 0)
        return -1;
    h->n = (size_t)n;
    struct job_process *all = calloc(h->n + 1, sizeof *all);
    uint64_t boot = jobs_here_boot();
    for (size_t i = 0; all && i < h->n; i++) {
        const struct target_process *p = &h->list[i];
        all[i] = (struct job_process){.pid = p->pid,
                                      .ppid = (pid_t)p->ppid,
                                      .parent = p->parent,
                                      .uid = p->uid,
                                      .network = hash_fnv(boot, &p->net_ns, sizeof p->net_ns),
                                      .is_adopted = p->is_adopted,
                                      .is_unread = p->held,
                                      .started = p->start_ticks,
                                      .cmdline = p->cmdline,
                                      .env = p->env};
    }
    if (all)
        jobs_here_join_families(h, all);
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
