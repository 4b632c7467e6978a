/* SPDX-License-Identifier: Apache-2.0 */
/* job_find: see job_find.h. */
#include "client/jobs/job_find.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/option.h"
#include "base/strbuf.h"

#define JOB_ANCESTORS 64 /* generations between a worker and its rank */
#define JOB_TITLE_MAX 40 /* bytes of a script's name in that of the job */
#define JOB_LISTED 8     /* jobs in an error */
#define JOB_ERROR_BYTES 300
#define JOB_HASH_SHORT 4
#define JOB_HASH_MAX 16
#define JOB_NOBODY SIZE_MAX

/* While the jobs are found. */
struct job_search {
    const struct job_process *list;
    size_t n;
    size_t *by_pid; /* indexes, by pid */
    size_t *parent; /* index of the nearest Python ancestor; JOB_NOBODY: none */
    uint8_t *role;  /* enum job_role; JOB_ROLES: no part of any job */
    size_t *of;     /* of a worker: index of its rank; of a launcher: of the child that shows it */
    uint64_t *key;  /* of ranks: equal in all ranks of a job */
    size_t *job;    /* of members: index of the job; JOB_NOBODY: none yet */
    size_t *order;  /* indexes of ranks, by job */
    size_t n_ranks;
};

/* ---- who is what ---- */

static int job_compare_pid(const void *a, const void *b, void *list) {
    const struct job_process *l = list;
    pid_t x = l[*(const size_t *)a].pid, y = l[*(const size_t *)b].pid;
    return (x > y) - (x < y);
}

static size_t job_index(const struct job_search *s, pid_t pid) {
    size_t low = 0, high = s->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->list[s->by_pid[middle]].pid < pid)
            low = middle + 1;
        else
            high = middle;
    }
    return pid > 0 && low < s->n && s->list[s->by_pid[low]].pid == pid ? s->by_pid[low] : JOB_NOBODY;
}

/* A parent that is younger than its child is another process by the pid of a dead one. */
static size_t job_parent(const struct job_search *s, size_t i) {
    size_t at = job_index(s, s->list[i].parent);
    if (at == JOB_NOBODY)
        return at;
    const struct job_process *child = &s->list[i], *parent = &s->list[at];
    bool older =
        parent->started == child->started ? parent->pid < child->pid : parent->started < child->started;
    return older ? at : JOB_NOBODY;
}

/* Equal for processes whose environments name the same job: all its names, how many ranks and
 * restarts, the user, and where nothing names the job, the process that started it. An address such as localhost
 * means another place in each network namespace of each host. */
static uint64_t job_key(const struct job_process *p) {
    uint64_t h = HASH_FNV_START;
    int64_t starter = p->env.job ? 0 : p->ppid;
    uint64_t place = p->env.is_loopback ? p->network : 0;
    h = hash_fnv_text(h, p->env.source->name);
    h = hash_fnv(h, &p->uid, sizeof p->uid);
    h = hash_fnv(h, &p->env.job, sizeof p->env.job);
    h = hash_fnv(h, &p->env.world, sizeof p->env.world);
    h = hash_fnv(h, &starter, sizeof starter);
    h = hash_fnv(h, &place, sizeof place);
    return hash_fnv(h, &p->env.restarts, sizeof p->env.restarts);
}

/* A process is a launcher if a child of it has a LOCAL_RANK and it has none: a rank's own children
 * have the variables of the rank. Its first child shows the job. */
static void job_find_launchers(struct job_search *s) {
    for (size_t i = 0; i < s->n; i++) {
        size_t parent = s->parent[i];
        if (s->list[i].env.source && s->list[i].env.is_local_rank && parent != JOB_NOBODY &&
            !s->list[parent].env.is_local_rank && s->list[parent].uid == s->list[i].uid &&
            (s->of[parent] == JOB_NOBODY || s->list[i].pid < s->list[s->of[parent]].pid)) {
            s->role[parent] = JOB_LAUNCHER;
            s->of[parent] = i;
        }
    }
}

/* The ancestor that is the same rank of the same job, or JOB_NOBODY. */
static size_t job_find_rank_above(const struct job_search *s, size_t i) {
    size_t found = JOB_NOBODY, up = s->parent[i];
    for (int n = 0; n < JOB_ANCESTORS && up != JOB_NOBODY && up != i; n++, up = s->parent[up])
        if (s->role[up] != JOB_LAUNCHER && s->list[up].env.source && s->key[up] == s->key[i] &&
            s->list[up].env.rank == s->list[i].env.rank)
            found = up;
    return found;
}

static void job_find_roles(struct job_search *s) {
    for (size_t i = 0; i < s->n; i++) {
        s->parent[i] = job_parent(s, i);
        s->role[i] = JOB_ROLES;
        s->of[i] = s->job[i] = JOB_NOBODY;
        s->key[i] = s->list[i].env.source ? job_key(&s->list[i]) : 0;
    }
    job_find_launchers(s);
    for (size_t i = 0; i < s->n; i++) {
        if (!s->list[i].env.source || s->role[i] == JOB_LAUNCHER)
            continue;
        s->of[i] = job_find_rank_above(s, i);
        s->role[i] = s->of[i] == JOB_NOBODY ? JOB_RANK : JOB_WORKER;
        if (s->role[i] == JOB_RANK)
            s->order[s->n_ranks++] = i;
    }
}

/* ---- workers without their rank ----
 *
 * A rank that is killed leaves its workers, and what ran it for the environment: no ancestor shows
 * any longer that they are not the rank. */

/* The launcher of all ranks order[from] to order[to - 1] that have not been adopted; 0: there are
 * several, or none. People may start ranks from several shells, of which some have ended: only a
 * parent that is a launcher says something about ranks that are not its children. */
static pid_t job_find_launcher(const struct job_search *s, size_t from, size_t to) {
    const char *source = s->list[s->order[from]].env.source->name;
    pid_t launcher = 0;
    for (size_t i = from; i < to; i++) {
        const struct job_process *p = &s->list[s->order[i]];
        if (p->is_adopted)
            continue;
        if (launcher && launcher != p->ppid)
            return 0;
        launcher = p->ppid;
    }
    size_t at = job_index(s, launcher);
    bool is_seen = at != JOB_NOBODY && s->role[at] == JOB_LAUNCHER;
    /* srun and mpirun are not written in Python, and nobody else sets their variables */
    bool is_by_hand = strcmp(source, "torchrun") == 0 || strcmp(source, "python") == 0;
    return is_seen || !is_by_hand ? launcher : 0;
}

/* Of the ranks order[from] to order[to - 1] of a job, make those workers that a dead rank has left. */
static void job_find_left_workers(struct job_search *s, size_t from, size_t to) {
    size_t rank = JOB_NOBODY;
    if (job_find_launcher(s, from, to) == 0)
        return;
    for (size_t i = from; i < to && rank == JOB_NOBODY; i++)
        if (!s->list[s->order[i]].is_adopted)
            rank = s->order[i];
    for (size_t i = from; i < to; i++)
        if (s->list[s->order[i]].is_adopted) {
            s->role[s->order[i]] = JOB_WORKER;
            s->of[s->order[i]] = rank; /* of the same job, as it has none of its own */
        }
}

/* ---- jobs ---- */

/* By job, rank, the older first, pid. */
static int job_compare_rank(const void *a, const void *b, void *arg) {
    const struct job_search *s = arg;
    size_t i = *(const size_t *)a, k = *(const size_t *)b;
    const struct job_process *x = &s->list[i], *y = &s->list[k];
    if (s->key[i] != s->key[k])
        return s->key[i] < s->key[k] ? -1 : 1;
    if (x->env.rank != y->env.rank)
        return x->env.rank < y->env.rank ? -1 : 1;
    if (x->started != y->started)
        return x->started < y->started ? -1 : 1;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

/* 0, or -1 without memory. */
static int job_add_member(struct job *job, const struct job_search *s, size_t process, enum job_role role,
                          int32_t rank) {
    /* a power of two: the room is used up */
    if ((job->n_members & (job->n_members - 1)) == 0) {
        size_t cap = job->n_members ? 2 * job->n_members : 1;
        struct job_member *members = realloc(job->members, cap * sizeof *members);
        if (!members)
            return -1;
        job->members = members;
    }
    job->members[job->n_members++] = (struct job_member){process, s->list[process].pid, role, rank};
    return 0;
}

/* The ranks of `order[from]` to `order[to - 1]` are those of one job. 0, or -1 without memory. */
static int jobs_add(struct jobs *jobs, const struct job_search *s, size_t from, size_t to) {
    struct job *job = &jobs->items[jobs->n++];
    const struct rank_env *env = &s->list[s->order[from]].env;
    *job = (struct job){.uid = s->list[s->order[from]].uid,
                        .source = env->source,
                        .world = env->world,
                        .nodes = env->nodes,
                        .restarts = env->restarts};
    for (size_t i = from; i < to; i++) {
        int32_t rank = s->list[s->order[i]].env.rank;
        if (s->role[s->order[i]] == JOB_WORKER)
            continue;
        bool taken = rank_set_has(&job->here, rank);
        s->job[s->order[i]] = jobs->n - 1;
        if (job_add_member(job, s, s->order[i], taken ? JOB_DOUBLE : JOB_RANK, rank) != 0 ||
            rank_set_add(&job->here, rank, rank) != 0)
            return -1;
    }
    return 0;
}

/* Which ranks are promised to this host, as far as that is known. torchrun gives each host a range,
 * of which LOCAL_RANK 0 is the first; others may deal the ranks out to the hosts in turn. A job that
 * meets at localhost is whole here. 0, or -1 without memory. */
static int job_find_promised(const struct job *job, const struct job_search *s, struct rank_set *promised) {
    bool ranges = strcmp(job->source->name, "torchrun") == 0, known = false;
    for (size_t i = 0; i < job->n_members; i++) {
        const struct rank_env *env = &s->list[job->members[i].process].env;
        int32_t first = env->rank - env->local;
        if (job->members[i].role != JOB_RANK || env->locals == 0 || env->local < 0 || first < 0 ||
            first > job->world - env->locals)
            continue;
        known = true;
        if ((ranges || env->locals == job->world) &&
            rank_set_add(promised, first, first + env->locals - 1) != 0)
            return -1;
    }
    if (known || !s->list[job->members[0].process].env.is_loopback)
        return 0;
    return rank_set_add(promised, 0, job->world - 1);
}

static int job_find_missing(struct job *job, const struct job_search *s) {
    for (size_t i = 0; i < s->n; i++)
        job->unread += s->list[i].is_unread && s->list[i].uid == job->uid;
    if (job_find_promised(job, s, &job->missing) != 0 || rank_set_remove(&job->missing, &job->here) != 0)
        return -1;
    if (job->world == 0)
        return 0;
    return rank_set_add(&job->elsewhere, 0, job->world - 1) != 0 ||
                   rank_set_remove(&job->elsewhere, &job->here) != 0 ||
                   rank_set_remove(&job->elsewhere, &job->missing) != 0
               ? -1
               : 0;
}

/* Does `old` hold what is left of `job` from before a restart? torchrun's process is the parent of
 * both; or it is gone from `old`, and the name of the run is the same. */
static bool job_is_before(const struct job *old, const struct job *job, const struct job_search *s) {
    const struct job_process *x = &s->list[old->members[0].process];
    const struct job_process *y = &s->list[job->members[0].process];
    if (x->uid != y->uid || old->source != job->source || old->restarts >= job->restarts)
        return false;
    return x->ppid == y->ppid ? x->ppid > 1 || (x->env.run && x->env.run == y->env.run)
                              : x->ppid <= 1 && x->env.run && x->env.run == y->env.run;
}

/* Move the ranks of older jobs into the newest they belong to. 0, or -1 without memory. */
static int jobs_join_restarts(struct jobs *jobs, struct job_search *s) {
    for (size_t i = 0; i < jobs->n; i++) {
        struct job *old = &jobs->items[i];
        size_t newest = i;
        for (size_t k = 0; k < jobs->n; k++)
            if (jobs->items[k].n_members && job_is_before(old, &jobs->items[k], s) &&
                jobs->items[k].restarts > jobs->items[newest].restarts)
                newest = k;
        for (size_t m = 0; newest != i && m < old->n_members; m++) {
            s->job[old->members[m].process] = newest;
            if (job_add_member(&jobs->items[newest], s, old->members[m].process, JOB_OLD,
                               old->members[m].rank) != 0)
                return -1;
        }
        if (newest != i)
            old->n_members = 0;
    }
    return 0;
}

static void job_free(struct job *job) {
    rank_set_fini(&job->here);
    rank_set_fini(&job->missing);
    rank_set_fini(&job->elsewhere);
    free(job->members);
}

/* Forget the jobs without members. */
static void jobs_pack(struct jobs *jobs) {
    size_t n = 0;
    for (size_t i = 0; i < jobs->n; i++)
        if (jobs->items[i].n_members)
            jobs->items[n++] = jobs->items[i];
        else
            job_free(&jobs->items[i]);
    jobs->n = n;
}

/* Launchers and workers go to the job of the process that shows what they are. 0, or -1 without
 * memory. */
static int jobs_add_others(struct jobs *jobs, struct job_search *s) {
    for (size_t i = 0; i < s->n; i++) {
        bool launcher = s->role[i] == JOB_LAUNCHER;
        size_t of = s->of[i];
        /* of a worker's worker, whose rank has ended, too */
        while (of != JOB_NOBODY && s->role[of] == JOB_WORKER)
            of = s->of[of];
        if (of == JOB_NOBODY || s->job[of] == JOB_NOBODY || s->job[i] != JOB_NOBODY)
            continue;
        s->job[i] = s->job[of];
        if (job_add_member(&jobs->items[s->job[of]], s, i, launcher ? JOB_LAUNCHER : JOB_WORKER,
                           launcher ? -1 : s->list[i].env.rank) != 0)
            return -1;
    }
    return 0;
}

static int job_compare_member(const void *a, const void *b) {
    const struct job_member *x = a, *y = b;
    if (x->role != y->role)
        return x->role < y->role ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

/* ---- names ---- */

/* Put a name's last part, with '_' for what would need quotes in a shell. */
static void job_put_word(const char *word, size_t n, char *buf, size_t cap) {
    for (size_t i = n; i > 0; i--)
        if (word[i - 1] == '/') {
            word += i;
            n -= i;
            break;
        }
    n = n < cap ? n : cap - 1;
    for (size_t i = 0; i < n; i++)
        buf[i] = isalnum((unsigned char)word[i]) || strchr("._-", word[i]) ? word[i] : '_';
    buf[n] = '\0';
}

/* The script of a command line, or the module behind -m; "python" if it runs neither. */
static void job_put_script(const char *cmdline, char *buf, size_t cap) {
    const char *w = cmdline ? cmdline : "";
    snprintf(buf, cap, "python");
    for (w += strcspn(w, " "); *w; w += strcspn(w, " ")) {
        w += strspn(w, " ");
        size_t n = strcspn(w, " ");
        if (n > 0 && w[0] != '-') {
            job_put_word(w, n, buf, cap);
            return;
        }
        if (n == 2 && w[1] == 'c')
            return;
        if (n == 2 && (w[1] == 'X' || w[1] == 'W')) {
            w += n;
            w += strspn(w, " ");
        }
    }
}

/* Four or more hexadecimal digits, of which the first is a letter: no pid is like that. */
static void job_put_hash(uint64_t h, int digits, char *buf) {
    static const char hex[] = "0123456789abcdef";
    h = hash_mix(h);
    for (int i = 0; i < digits; i++, h >>= 4)
        buf[i] = i == 0 ? hex[10 + h % 6] : hex[h & 15];
    buf[digits] = '\0';
}

/* A hash for the name: at first of what stays the same when the job is restarted. */
static uint64_t job_hash(const struct job *job, const struct job_search *s, bool whole) {
    size_t first = job->members[0].process;
    const struct job_process *p = &s->list[first];
    uint64_t h = hash_fnv(HASH_FNV_START, &p->uid, sizeof p->uid);
    uint64_t of = p->env.run ? p->env.run : p->env.job ? p->env.job : (uint64_t)p->ppid;
    uint64_t place = p->env.is_loopback ? p->network : 0;
    h = hash_fnv(h, &place, sizeof place);
    return whole ? s->key[first] : hash_fnv(h, &of, sizeof of);
}

static void job_put_name(struct job *job, const struct job_search *s, int digits) {
    const struct job_process *p = &s->list[job->members[0].process];
    char title[JOB_TITLE_MAX], hash[JOB_HASH_MAX + 1];
    if (p->env.title[0])
        job_put_word(p->env.title, strlen(p->env.title), title, sizeof title);
    else
        job_put_script(p->cmdline, title, sizeof title);
    if (!title[0])
        snprintf(title, sizeof title, "job");
    job_put_hash(job_hash(job, s, digits > JOB_HASH_SHORT), digits, hash);
    job->title = strlen(title);
    snprintf(job->name, sizeof job->name, "%s-%s", title, hash);
}

static int job_compare_name(const void *a, const void *b) {
    const struct job *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->members[0].pid > y->members[0].pid) - (x->members[0].pid < y->members[0].pid);
}

/* A short hash; a long one where two jobs would have the same name. 0, or -1 without memory. */
static int jobs_name(struct jobs *jobs, const struct job_search *s) {
    bool *again = calloc(jobs->n + 1, sizeof *again);
    if (!again)
        return -1;
    for (size_t i = 0; i < jobs->n; i++)
        job_put_name(&jobs->items[i], s, JOB_HASH_SHORT);
    for (size_t i = 0; i < jobs->n; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(jobs->items[i].name, jobs->items[k].name) == 0)
                again[i] = again[k] = true;
    for (size_t i = 0; i < jobs->n; i++)
        if (again[i])
            job_put_name(&jobs->items[i], s, JOB_HASH_MAX);
    free(again);
    if (jobs->n)
        qsort(jobs->items, jobs->n, sizeof *jobs->items, job_compare_name);
    return 0;
}

/* ---- all of it ---- */

static int jobs_take(struct jobs *jobs, struct job_search *s) {
    if (s->n_ranks)
        qsort_r(s->order, s->n_ranks, sizeof *s->order, job_compare_rank, s);
    size_t most = 0;
    for (size_t i = 0; i < s->n_ranks; i++)
        most += i == 0 || s->key[s->order[i]] != s->key[s->order[i - 1]];
    jobs->items = calloc(most + 1, sizeof *jobs->items);
    if (!jobs->items)
        return -1;
    for (size_t from = 0, to; from < s->n_ranks; from = to) {
        for (to = from + 1; to < s->n_ranks && s->key[s->order[to]] == s->key[s->order[from]];)
            to++;
        job_find_left_workers(s, from, to);
        if (jobs_add(jobs, s, from, to) != 0)
            return -1;
    }
    if (jobs_join_restarts(jobs, s) != 0 || jobs_add_others(jobs, s) != 0)
        return -1;
    jobs_pack(jobs);
    for (size_t i = 0; i < jobs->n; i++)
        if (job_find_missing(&jobs->items[i], s) != 0)
            return -1;
    if (jobs_name(jobs, s) != 0)
        return -1;
    for (size_t i = 0; i < jobs->n; i++) {
        struct job *job = &jobs->items[i];
        qsort(job->members, job->n_members, sizeof *job->members, job_compare_member);
        while (job->n_ranks < job->n_members && job->members[job->n_ranks].role == JOB_RANK)
            job->n_ranks++;
    }
    return 0;
}

int jobs_find(const struct job_process *list, size_t n, struct jobs *out) {
    struct job_search s = {.list = list, .n = n};
    *out = (struct jobs){.n = 0};
    s.by_pid = calloc(n + 1, sizeof *s.by_pid);
    s.parent = calloc(n + 1, sizeof *s.parent);
    s.role = calloc(n + 1, sizeof *s.role);
    s.of = calloc(n + 1, sizeof *s.of);
    s.key = calloc(n + 1, sizeof *s.key);
    s.job = calloc(n + 1, sizeof *s.job);
    s.order = calloc(n + 1, sizeof *s.order);
    int rc = s.by_pid && s.parent && s.role && s.of && s.key && s.job && s.order ? 0 : -1;
    if (rc == 0) {
        for (size_t i = 0; i < n; i++)
            s.by_pid[i] = i;
        if (n)
            qsort_r(s.by_pid, n, sizeof *s.by_pid, job_compare_pid, (void *)list);
        job_find_roles(&s);
        rc = jobs_take(out, &s);
    }
    free(s.order);
    free(s.job);
    free(s.key);
    free(s.of);
    free(s.role);
    free(s.parent);
    free(s.by_pid);
    if (rc != 0)
        jobs_fini(out);
    return rc;
}

void jobs_fini(struct jobs *jobs) {
    for (size_t i = 0; i < jobs->n; i++)
        job_free(&jobs->items[i]);
    free(jobs->items);
    *jobs = (struct jobs){.n = 0};
}

const char *job_role_name(enum job_role role) {
    static const char *const names[JOB_ROLES] = {"rank", "launcher", "worker", "old rank", "second claim"};
    return role < JOB_ROLES ? names[role] : "?";
}

/* ---- choosing ---- */

const struct job_member *jobs_member(const struct jobs *jobs, pid_t pid, const struct job **job) {
    for (size_t i = 0; i < jobs->n; i++)
        for (size_t k = 0; k < jobs->items[i].n_members; k++)
            if (jobs->items[i].members[k].pid == pid) {
                if (job)
                    *job = &jobs->items[i];
                return &jobs->items[i].members[k];
            }
    return NULL;
}

static bool job_is_named(const struct job *job, const char *text) {
    return strcmp(job->name + job->title + 1, text) == 0 ||
           (strlen(text) == job->title && strncmp(job->name, text, job->title) == 0);
}

/* List the jobs that `text` may mean. */
static const struct job *jobs_refuse(const struct jobs *jobs, const char *text, struct err *e) {
    struct strbuf names;
    const char *all[JOB_LISTED + 1];
    size_t n = 0, listed = 0;
    strbuf_init(&names, JOB_ERROR_BYTES);
    for (size_t i = 0; i < jobs->n; i++) {
        bool fits = !text[0] || job_is_named(&jobs->items[i], text);
        n += fits;
        if (fits && n <= JOB_LISTED)
            strbuf_addf(&names, "%s%s", n > 1 ? ", " : "", jobs->items[i].name);
        if (listed < JOB_LISTED)
            all[listed++] = jobs->items[i].name;
    }
    all[listed] = NULL;
    const char *near = text[0] ? option_suggest(text, all) : NULL;
    if (n > 1)
        err_set(e, ERR_ATTACH, "%zu jobs%s%.64s%s have ranks on this machine: give one of %s%s", n,
                text[0] ? " named '" : "", text, text[0] ? "'" : "", strbuf_str(&names),
                n > JOB_LISTED ? ", ..." : "");
    else if (jobs->n == 0)
        err_set(e, ERR_ATTACH,
                "no job with ranks was found on this machine: 'probing list' shows the Python processes");
    else if (near)
        err_set(e, ERR_ATTACH, "no job is named '%.64s': did you mean '%s'?", text, near);
    else
        err_set(e, ERR_ATTACH, "no job is named '%.64s': 'probing cluster nodes' lists them", text);
    strbuf_fini(&names);
    return NULL;
}

const struct job *jobs_choose(const struct jobs *jobs, const char *text, struct err *e) {
    const struct job *found = NULL;
    size_t n = 0;
    if (text[0] && text[strspn(text, "0123456789")] == '\0') {
        long pid = strtol(text, NULL, 10);
        if (pid > 0 && pid <= INT_MAX && jobs_member(jobs, (pid_t)pid, &found))
            return found;
        err_set(
            e, ERR_ATTACH,
            "process %.20s is not a rank of a job: its launcher left no rank in its environment "
            "('probing cluster nodes' lists the jobs; 'probing %.20s dump' and the screen threads show its "
            "own stacks)",
            text, text);
        return NULL;
    }
    /* a script may have the whole name of another job */
    for (size_t i = 0; i < jobs->n; i++)
        if (strcmp(jobs->items[i].name, text) == 0)
            return &jobs->items[i];
    for (int several = 1; several >= 0 && n == 0; several--)
        for (size_t i = 0; i < jobs->n; i++)
            if (text[0] ? job_is_named(&jobs->items[i], text) : !several || jobs->items[i].world != 1) {
                found = &jobs->items[i];
                n++;
            }
    return n == 1 ? found : jobs_refuse(jobs, text, e);
}
