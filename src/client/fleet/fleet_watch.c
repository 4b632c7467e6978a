/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_watch: see fleet_watch.h. */
#include "client/fleet/fleet_watch.h"

#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cgroup.h"
#include "base/clock.h"
#include "base/model.h"
#include "client/fleet/ras_ask.h"
#include "client/gpu/gpu_process.h"

#define FLEET_WATCH_ROUNDS 12     /* readings that are kept, */
#define FLEET_WATCH_ROUNDS_MANY 3 /* of more ranks than */
#define FLEET_WATCH_MANY 1024
#define FLEET_WATCH_MISSING 1024   /* ranks without a process; a job may be promised a million */
#define FLEET_WATCH_CHILD_S 86400U /* for which a child reads at most; another one goes on then */
#define FLEET_WATCH_LONGER 3.0     /* than the longest wait that has ended by itself, */
#define FLEET_WATCH_LATE_MAX_S 120.0
#define FLEET_WATCH_FIRST_NS (500 * CLOCK_NS_PER_MS) /* between the first two readings */
#define FLEET_WATCH_NEXT_NS CLOCK_NS_PER_S
#define FLEET_WATCH_POLL_NS (50 * CLOCK_NS_PER_MS)
#define FLEET_WATCH_KILLED_S 10.0  /* between two counts of those that were killed for lack of memory */
#define FLEET_WATCH_BORROWED_S 0.3 /* for what the scheduler's clock is off */

struct fleet_watched {
    struct rank_probe probe;
    char memory_group[CGROUP_PATH]; /* folder of its control group; "" not known */
    int64_t killed[2];              /* in it for lack of memory: 10 to 20 s ago, and at `counted_s` */
    double counted_s;
    int64_t killed_end; /* when it was found to have ended: later ones are others; MODEL_UNKNOWN not read */
    /* on the monotonic clock: when it was last seen to move, and when its thread ran last; NAN unknown */
    double moved_s, ran_s;
    double borrowed_s; /* when it ran to load an agent; NAN it did not */
    double stood_s;    /* since when it has this stack; NAN unknown */
};

struct fleet_round {
    struct rank_reading *readings; /* by index of the rank */
    double at_s;                   /* when it began */
    bool counters;
};

struct fleet_watch {
    struct fleet_verdict_rank *ranks; /* by rank; the readings are those of rounds */
    struct fleet_watched *watched;
    size_t n;
    char job[JOB_NAME_MAX]; /* of ranks that are here */
    int32_t world, elsewhere;
    struct fleet_round rounds[FLEET_WATCH_ROUNDS]; /* the newest first */
    size_t n_rounds;
    double waited_s;              /* the longest time without progress that has ended */
    double progress_s;            /* when progress was last seen, or counters for the first time */
    bool attached;                /* since the last reading */
    struct fleet_watch_time time; /* of the newest reading */
    struct ras_asker ras;
    fleet_watch_read_fn read; /* NULL: they are read here */
    void *arg;
};

/* ---- which there are ---- */

static int fleet_watch_compare(const void *a, const void *b) {
    const struct fleet_verdict_rank *x = a, *y = b;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

static void fleet_watch_add(struct fleet_watch *w, int32_t rank, pid_t pid, double uptime_s) {
    w->ranks[w->n++] = (struct fleet_verdict_rank){
        .rank = rank, .pid = pid, .still_s = NAN, .waits_s = NAN, .stands_s = NAN, .uptime_s = uptime_s};
}

struct fleet_watch *fleet_watch_new(const struct jobs_here *h, const struct job *job,
                                    const struct rank_set *ranks, struct err *e) {
    struct fleet_watch *w = calloc(1, sizeof *w);
    size_t cap = job->n_ranks + FLEET_WATCH_MISSING;
    if (w) {
        w->ranks = calloc(cap, sizeof *w->ranks);
        w->watched = calloc(cap, sizeof *w->watched);
    }
    if (!w || !w->ranks || !w->watched) {
        fleet_watch_free(w);
        err_set(e, ERR_FAILED, "out of memory for the ranks of %s", job->name);
        return NULL;
    }
    snprintf(w->job, sizeof w->job, "%s", job->name);
    w->world = job->world;
    w->elsewhere = rank_set_count(&job->elsewhere);
    for (size_t i = 0; i < job->n_ranks; i++)
        if (rank_set_has(ranks, job->members[i].rank))
            fleet_watch_add(w, job->members[i].rank, job->members[i].pid,
                            jobs_here_process(h, &job->members[i])->uptime_s);
    for (size_t i = 0; i < job->missing.n && !job->unread; i++)
        for (int32_t rank = job->missing.ranges[i].first; rank <= job->missing.ranges[i].last && w->n < cap;
             rank++)
            fleet_watch_add(w, rank, 0, NAN);
    qsort(w->ranks, w->n, sizeof *w->ranks, fleet_watch_compare);
    for (size_t i = 0; i < w->n; i++)
        w->watched[i] = (struct fleet_watched){
            .killed_end = MODEL_UNKNOWN, .moved_s = NAN, .ran_s = NAN, .borrowed_s = NAN, .stood_s = NAN};
    return w;
}

struct fleet_watch *fleet_watch_new_there(const struct fleet_verdict_rank *list, size_t n, int32_t world,
                                          fleet_watch_read_fn read, void *arg) {
    struct fleet_watch *w = calloc(1, sizeof *w);
    if (w) {
        w->ranks = calloc(n + 1, sizeof *w->ranks);
        w->watched = calloc(n + 1, sizeof *w->watched);
    }
    if (!w || !w->ranks || !w->watched) {
        fleet_watch_free(w);
        return NULL;
    }
    w->world = world;
    w->elsewhere = world > (int32_t)n ? world - (int32_t)n : 0;
    w->read = read;
    w->arg = arg;
    for (size_t i = 0; i < n; i++)
        fleet_watch_add(w, list[i].rank, list[i].pid, list[i].uptime_s);
    qsort(w->ranks, w->n, sizeof *w->ranks, fleet_watch_compare);
    for (size_t i = 0; i < n; i++)
        w->watched[i] = (struct fleet_watched){
            .killed_end = MODEL_UNKNOWN, .moved_s = NAN, .ran_s = NAN, .borrowed_s = NAN, .stood_s = NAN};
    return w;
}

struct fleet_watch *fleet_watch_open(const char *target, struct err *e) {
    struct jobs_here here;
    struct rank_set ranks = {.n = 0};
    const struct job *job =
        jobs_here_read(&here, 0, e) == 0 ? jobs_here_choose(&here, target, &ranks, e) : NULL;
    struct fleet_watch *w = job ? fleet_watch_new(&here, job, &ranks, e) : NULL;
    rank_set_fini(&ranks);
    jobs_here_fini(&here);
    return w;
}

static void fleet_watch_drop(struct fleet_watch *w, struct fleet_round *round) {
    for (size_t i = 0; round->readings && i < w->n; i++)
        rank_reading_fini(&round->readings[i]);
    free(round->readings);
    *round = (struct fleet_round){.at_s = 0};
}

void fleet_watch_free(struct fleet_watch *w) {
    if (!w)
        return;
    for (size_t i = 0; w->watched && i < w->n; i++) {
        rank_probe_stop(&w->watched[i].probe);
        rank_reading_fini(&w->watched[i].probe.reading);
    }
    for (size_t i = 0; i < w->n_rounds; i++)
        fleet_watch_drop(w, &w->rounds[i]);
    ras_asker_stop(&w->ras);
    free(w->ranks);
    free(w->watched);
    free(w);
}

/* ---- reading ---- */

static void fleet_watch_add_gpu(struct rank_reading *r, pid_t pid) {
    struct gpu_use use;
    gpu_process_read(pid, &use);
    r->has_gpu = !isnan(use.util_pct);
    r->gpu_util_pct = use.util_pct;
    r->gpu_power_w = use.power_w;
}

/* How many of its control group the kernel has killed so far: once a rank is gone, /proc does not know its group. The
 * count of some seconds ago is kept: who is being killed is counted before it is gone. */
static void fleet_watch_count_killed(struct fleet_watched *one, pid_t pid, double now_s) {
    char proc[32];
    if (one->counted_s > 0 && now_s - one->counted_s < FLEET_WATCH_KILLED_S)
        return;
    snprintf(proc, sizeof proc, "/proc/%d", (int)pid);
    /* searched for once: a list of mounts may be long */
    if (one->counted_s == 0 &&
        cgroup_find_memory_of(proc, "/proc/self", one->memory_group, sizeof one->memory_group) != 0)
        one->memory_group[0] = '\0';
    int64_t killed = one->memory_group[0] ? cgroup_read_memory_kills(one->memory_group) : MODEL_UNKNOWN;
    one->killed[0] = one->counted_s > 0 ? one->killed[1] : killed;
    one->killed[1] = killed;
    one->counted_s = now_s;
}

/* Beside what its exit status shows (exit_reason.h), which the kernel's log may have explained already. */
static void fleet_watch_explain_end(struct fleet_watched *one, struct rank_state *s) {
    if (!one->memory_group[0] || one->killed[0] == MODEL_UNKNOWN || strstr(s->why, "memory ran out"))
        return;
    if (one->killed_end == MODEL_UNKNOWN)
        one->killed_end = cgroup_read_memory_kills(one->memory_group);
    if (one->killed_end == MODEL_UNKNOWN || one->killed_end <= one->killed[0])
        return;
    int64_t n = one->killed_end - one->killed[0];
    size_t len = strlen(s->why);
    snprintf(s->why + len, sizeof s->why - len,
             "%sthe kernel killed %lld process%s of its control group for lack of memory", len ? "; " : "",
             (long long)n, n == 1 ? "" : "es");
}

/* Wait for the answers. */
static void fleet_watch_wait(struct fleet_watch *w, struct pollfd *fds) {
    uint64_t until = clock_mono_ns() + FLEET_WATCH_MS * CLOCK_NS_PER_MS;
    for (;;) {
        size_t pending = 0;
        for (size_t i = 0; i < w->n; i++) {
            struct rank_probe *p = &w->watched[i].probe;
            bool waits = p->pending && !rank_probe_take(p);
            fds[i] = (struct pollfd){.fd = waits ? p->guard.fd : -1, .events = POLLIN};
            pending += waits;
        }
        uint64_t now = clock_mono_ns();
        if (!pending || now >= until)
            return;
        if (poll(fds, w->n, (int)((until - now) / CLOCK_NS_PER_MS) + 1) < 0)
            return;
    }
}

static void fleet_watch_keep(struct fleet_watch *w, struct rank_reading *readings, bool counters) {
    if (w->n_rounds == (w->n > FLEET_WATCH_MANY ? FLEET_WATCH_ROUNDS_MANY : FLEET_WATCH_ROUNDS))
        fleet_watch_drop(w, &w->rounds[--w->n_rounds]);
    memmove(&w->rounds[1], &w->rounds[0], w->n_rounds * sizeof w->rounds[0]);
    w->rounds[0] = (struct fleet_round){.readings = readings, .at_s = w->time.at_s, .counters = counters};
    w->n_rounds++;
}

static bool fleet_watch_has_progress(const struct rank_reading *before, const struct rank_reading *now) {
    for (size_t i = 0; i < now->n_groups; i++) {
        const struct rank_group *old = rank_group_find(before->groups, before->n_groups, &now->groups[i]);
        if (old && old->completed != now->groups[i].completed)
            return true;
    }
    return false;
}

/* Something is known by it: a host that gives no news leaves it as it was made. */
static bool fleet_watch_is_read(const struct rank_reading *r) { return r->state.at_s > 0 || r->state.gone; }

/* What a rank has done while nobody saw it is not known: it is watched from the beginning again. */
static void fleet_watch_forget_one(struct fleet_watch *w, size_t i) {
    w->watched[i].moved_s = w->watched[i].ran_s = w->watched[i].borrowed_s = w->watched[i].stood_s = NAN;
    w->ranks[i].still_s = w->ranks[i].waits_s = w->ranks[i].stands_s = NAN;
}

/* Since when a rank has not moved, and its thread has not run. What the loading of an agent makes it
 * run does not count, if it stands where it stood. */
static void fleet_watch_remember_one(struct fleet_watch *w, size_t i, const struct rank_reading *before,
                                     double now_s) {
    struct fleet_watched *one = &w->watched[i];
    const struct rank_state *s = &w->rounds[0].readings[i].state;
    double ran_s = isnan(s->still_s) ? NAN : now_s - s->still_s;
    bool touched =
        w->attached && before && before->state.has_stack && s->has_stack && before->state.stack == s->stack;
    bool moved = !touched && before && fleet_verdict_has_moved(&before->state, s);
    if (!touched || isnan(one->ran_s))
        one->ran_s = ran_s;
    if (isnan(one->moved_s))
        one->moved_s = isnan(ran_s) ? now_s : ran_s;
    else if (moved)
        one->moved_s = now_s;
    /* later rounds still have the time of the loading */
    if (touched)
        one->borrowed_s = ran_s;
    else if (!isnan(one->borrowed_s) && ran_s <= one->borrowed_s + FLEET_WATCH_BORROWED_S && !moved)
        one->ran_s = one->moved_s;
    if (!s->has_stack || isnan(one->stood_s) || !before || !before->state.has_stack ||
        before->state.stack != s->stack)
        one->stood_s = s->has_stack ? now_s : NAN;
    w->ranks[i].stands_s = now_s - one->stood_s;
    w->ranks[i].still_s = now_s - one->moved_s;
    w->ranks[i].waits_s = isnan(one->ran_s) ? NAN : now_s - one->ran_s;
}

/* Since when the counters of its groups are equal: a collective that is open now is open since then, and is the one
 * that was open then. */
static void fleet_watch_compare_groups(const struct rank_reading *before, struct rank_reading *now) {
    for (size_t i = 0; i < now->n_groups; i++) {
        struct rank_group *g = &now->groups[i];
        const struct rank_group *old = before ? rank_group_find(before->groups, before->n_groups, g) : NULL;
        bool is_equal = old && old->enqueued == g->enqueued && old->completed == g->completed;
        g->equal_at_s = is_equal ? old->equal_at_s : now->asked_s;
        /* the same one is open, and an agent need not have read again which it is */
        if (is_equal && !g->op[0]) {
            memcpy(g->op, old->op, sizeof g->op);
            memcpy(g->dtype, old->dtype, sizeof g->dtype);
            g->bytes = old->bytes;
        }
        g->since_s = fmax(isnan(g->since_s) ? 0 : g->since_s, now->asked_s - g->equal_at_s);
    }
}

/* Since when each has not moved, and the longest time without progress. Only counters show progress: a time in which
 * they were not read counts as far as they were equal at its end. */
static void fleet_watch_remember(struct fleet_watch *w) {
    const struct fleet_round *now = &w->rounds[0], *before = w->n_rounds > 1 ? &w->rounds[1] : NULL;
    const struct fleet_round *counted = NULL; /* the last one with counters */
    bool progress = false;
    for (size_t i = 1; i < w->n_rounds && !counted; i++)
        counted = w->rounds[i].counters ? &w->rounds[i] : NULL;
    for (size_t i = 0; i < w->n; i++) {
        fleet_watch_compare_groups(counted ? &counted->readings[i] : NULL, &w->rounds[0].readings[i]);
        if (fleet_watch_is_read(&now->readings[i]))
            fleet_watch_remember_one(w, i, before ? &before->readings[i] : NULL, now->at_s);
        else
            fleet_watch_forget_one(w, i);
        progress |= counted && fleet_watch_has_progress(&counted->readings[i], &now->readings[i]);
    }
    w->attached = false;
    if (!now->counters)
        return;
    if (progress)
        w->waited_s = fmax(w->waited_s, (counted == before ? now : counted)->at_s - w->progress_s);
    if (progress || !counted)
        w->progress_s = now->at_s;
}

/* The reading with which the newest is compared: the youngest that is old enough, with counters if
 * the newest has them; or else the oldest of these. A rank that was not read in one of them has none there:
 * what a reading has that never came is not true of the rank. */
static void fleet_watch_pair(struct fleet_watch *w) {
    const struct fleet_round *now = &w->rounds[0], *before = NULL;
    for (size_t i = 1; i < w->n_rounds; i++) {
        if (now->counters && !w->rounds[i].counters)
            continue;
        before = &w->rounds[i];
        if (now->at_s - before->at_s >= FLEET_VERDICT_APART_S)
            break;
    }
    for (size_t i = 0; i < w->n; i++) {
        const struct rank_reading *old = before ? &before->readings[i] : NULL;
        w->ranks[i].now = fleet_watch_is_read(&now->readings[i]) ? &now->readings[i] : NULL;
        w->ranks[i].before = old && old->state.at_s > 0 ? old : NULL;
    }
}

int fleet_watch_read(struct fleet_watch *w, bool counters, struct err *e) {
    w->time = (struct fleet_watch_time){.at_s = (double)clock_mono_ns() / 1e9};
    struct rank_reading *readings = calloc(w->n + 1, sizeof *readings);
    struct pollfd *fds = calloc(w->n + 1, sizeof *fds);
    if (!readings || !fds) {
        free(readings);
        free(fds);
        return err_set(e, ERR_FAILED, "out of memory for what was read of the ranks");
    }
    for (size_t i = 0; w->read && i < w->n; i++) {
        rank_state_init(&readings[i].state);
        readings[i].state.gone = w->ranks[i].pid <= 0;
    }
    if (w->read) {
        free(fds);
        if (w->read(w->arg, counters, w->ranks, readings, w->n, &w->time, e) != 0) {
            for (size_t i = 0; i < w->n; i++)
                rank_reading_fini(&readings[i]);
            free(readings);
            return -1;
        }
        fleet_watch_keep(w, readings, counters);
        fleet_watch_remember(w);
        fleet_watch_pair(w);
        return 0;
    }
    for (size_t i = 0; i < w->n; i++) {
        struct rank_probe *p = &w->watched[i].probe;
        if (w->ranks[i].pid <= 0)
            continue;
        if (!p->running)
            rank_probe_start(p, w->ranks[i].pid, FLEET_WATCH_CHILD_S);
        rank_probe_ask(p, counters);
    }
    fleet_watch_wait(w, fds);
    free(fds);
    for (size_t i = 0; i < w->n; i++) {
        rank_state_init(&readings[i].state);
        readings[i].state.gone = w->ranks[i].pid <= 0;
        if (w->ranks[i].pid > 0)
            rank_probe_end(&w->watched[i].probe, &readings[i]);
        if (!readings[i].state.gone) {
            fleet_watch_add_gpu(&readings[i], w->ranks[i].pid);
            fleet_watch_count_killed(&w->watched[i], w->ranks[i].pid, w->time.at_s);
        } else {
            fleet_watch_explain_end(&w->watched[i], &readings[i].state);
        }
    }
    fleet_watch_keep(w, readings, counters);
    fleet_watch_remember(w);
    fleet_watch_pair(w);
    return 0;
}

bool fleet_watch_is_suspect(const struct fleet_watch *w) {
    for (size_t i = 0; i < w->n; i++)
        if (fleet_verdict_is_suspect(&w->ranks[i]))
            return true;
    return false;
}

void fleet_watch_note_attached(struct fleet_watch *w) { w->attached = true; }

/* Ask for the ranks that are here. */
static void fleet_watch_begin_ras(struct fleet_watch *w) {
    struct ras_rank *list = calloc(w->n + 1, sizeof *list);
    size_t n = 0;
    for (size_t i = 0; list && i < w->n; i++)
        if (w->ranks[i].pid > 0 && w->ranks[i].now && !w->ranks[i].now->state.gone)
            list[n++] = (struct ras_rank){.rank = w->ranks[i].rank, .pid = w->ranks[i].pid};
    ras_asker_ask(&w->ras, list, n, w->world);
    free(list);
}

const struct ras_fact *fleet_watch_ask_ras(struct fleet_watch *w, size_t *n) {
    ras_asker_take(&w->ras);
    if (!w->read && w->n_rounds && w->rounds[0].counters && fleet_watch_is_suspect(w))
        fleet_watch_begin_ras(w);
    *n = w->ras.n;
    return w->ras.facts;
}

void fleet_watch_set_ras(struct fleet_watch *w, const struct ras_fact *facts, size_t n) {
    w->ras.n = n < RAS_FACTS ? n : RAS_FACTS;
    w->ras.facts_ns = clock_mono_ns();
    if (w->ras.n)
        memcpy(w->ras.facts, facts, w->ras.n * sizeof *facts);
}

int fleet_watch_judge(struct fleet_watch *w, struct fleet_verdicts *out, struct err *e) {
    double late_s = fmin(FLEET_WATCH_LONGER * w->waited_s, FLEET_WATCH_LATE_MAX_S);
    size_t n_ras;
    const struct ras_fact *ras = fleet_watch_ask_ras(w, &n_ras);
    const struct fleet_verdict_case c = {.ranks = w->ranks,
                                         .n = w->n,
                                         .world = w->world,
                                         .elsewhere = w->elsewhere,
                                         .ras = ras,
                                         .n_ras = n_ras,
                                         .late_s = fmax(late_s, FLEET_VERDICT_LATE_S)};
    if (fleet_verdict_find(&c, out) != 0)
        return err_set(e, ERR_FAILED, "out of memory for the verdicts");
    return 0;
}

const struct fleet_verdict_rank *fleet_watch_ranks(const struct fleet_watch *w, size_t *n) {
    *n = w->n;
    return w->ranks;
}

size_t fleet_watch_gone(const struct fleet_watch *w) {
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++)
        n += w->ranks[i].pid <= 0 || (w->ranks[i].now && w->ranks[i].now->state.gone);
    return n;
}

bool fleet_watch_has(const struct fleet_watch *w, const struct job *job, const struct rank_set *ranks) {
    for (size_t i = 0; i < job->n_ranks; i++) {
        const struct job_member *m = &job->members[i];
        const struct fleet_verdict_rank key = {.rank = m->rank};
        const struct fleet_verdict_rank *r =
            bsearch(&key, w->ranks, w->n, sizeof *w->ranks, fleet_watch_compare);
        if (rank_set_has(ranks, m->rank) && (!r || r->pid != m->pid))
            return false;
    }
    return true;
}

/* By its name: the process by whose pid it was named may be gone. NULL: it is not there, or not all of these ranks. */
static const struct job *fleet_watch_find_job(const struct fleet_watch *w, const struct jobs_here *h,
                                              const char *target, struct rank_set *ranks) {
    struct strbuf name;
    struct err gone;
    const char *some = strchr(target, '/');
    strbuf_init(&name, 0);
    strbuf_addf(&name, "%s%s", w->job, some ? some : "");
    const struct job *job = jobs_here_choose(h, strbuf_str(&name), ranks, &gone);
    strbuf_fini(&name);
    return job;
}

int fleet_watch_renew(struct fleet_watch **w, const char *target, struct err *e) {
    struct jobs_here here;
    struct rank_set ranks = {.n = 0};
    if (fleet_watch_gone(*w) == 0)
        return 0;
    int rc = jobs_here_read(&here, 0, e);
    const struct job *job = rc == 0 ? fleet_watch_find_job(*w, &here, target, &ranks) : NULL;
    if (job && !fleet_watch_has(*w, job, &ranks)) {
        struct fleet_watch *again = fleet_watch_new(&here, job, &ranks, e);
        rc = again ? 1 : -1;
        fleet_watch_free(again ? *w : NULL);
        *w = again ? again : *w;
    }
    rank_set_fini(&ranks);
    jobs_here_fini(&here);
    return rc;
}

static bool fleet_watch_is_settled(const struct fleet_verdicts *v) {
    for (size_t i = 0; i < v->n; i++)
        if (!v->items[i].settled)
            return false;
    return true;
}

/* False: it was stopped. */
static bool fleet_watch_rest(uint64_t ns, bool (*stop)(void *arg), void *arg) {
    uint64_t until = clock_mono_ns() + ns;
    while (clock_mono_ns() < until) {
        if (stop && stop(arg))
            return false;
        nanosleep(&(struct timespec){.tv_nsec = (long)FLEET_WATCH_POLL_NS}, NULL);
    }
    return true;
}

int fleet_watch_ask(struct fleet_watch *w, double wait_s, bool (*stop)(void *arg), void *arg,
                    struct fleet_verdicts *out, struct err *e) {
    uint64_t until = clock_mono_ns() + (uint64_t)(wait_s * 1e9), rest = FLEET_WATCH_FIRST_NS;
    *out = (struct fleet_verdicts){.n = 0};
    for (;;) {
        fleet_verdicts_fini(out);
        if (fleet_watch_read(w, true, e) != 0 || fleet_watch_judge(w, out, e) != 0)
            return -1;
        if (stop && stop(arg))
            return 0;
        if (w->time.is_past && w->time.is_last)
            return 0;
        if (w->time.is_past)
            continue;
        /* after the first reading nothing is settled */
        if ((rest != FLEET_WATCH_FIRST_NS && fleet_watch_is_settled(out)) || clock_mono_ns() >= until ||
            !fleet_watch_rest(rest, stop, arg))
            return 0;
        rest = FLEET_WATCH_NEXT_NS;
    }
}
