/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verb_cluster_verdict: which rank keeps a job from going on, and where it stands; and in a job that
 * moves, which rank makes the others wait.
 *
 * A job that moves is known after two readings. Of one that does not, two readings some seconds
 * apart are compared, and more are made as long as another one may change the verdict.
 */
#include "cli/cli.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "base/hash.h"
#include "base/json.h"
#include "client/fleet/fleet_watch.h"
#include "client/fleet/watch_there.h"
#include "client/jobs/job_each.h"
#include "client/fleet/fleet_links.h"
#include "client/fleet/fleet_open.h"
#include "client/fleet/pace.h"
#include "client/output.h"
#include "client/progress.h"
#include "client/target/exit_reason.h"

#define CLUSTER_VERDICT_SCHEMA 1
#define CLUSTER_VERDICT_CODE 16
#define CLUSTER_VERDICT_RANGES 8 /* of ranks in a line */
#define CLUSTER_VERDICT_JOB 512
#define CLUSTER_VERDICT_ATTACH_S 30.0 /* on all hosts */
#define CLUSTER_VERDICT_ATTACH_MS 1500U
#define CLUSTER_VERDICT_CAUSES 16 /* why there is no agent: lines that are printed */
#define CLUSTER_VERDICT_NEXT_NS CLOCK_NS_PER_S
#define CLUSTER_VERDICT_PACE_S 5.0                  /* for the steps of all ranks to be read */
#define CLUSTER_VERDICT_ASK_NS (3 * CLOCK_NS_PER_S) /* between two questions to agents of a job that moves */
/* until ranks that are gone are searched for again, at first, and as long as there are none */
#define CLUSTER_VERDICT_FIND_NS (3 * CLOCK_NS_PER_S)
#define CLUSTER_VERDICT_FIND_MAX_NS (30 * CLOCK_NS_PER_S)
/* For ranks to be started again, by a launcher that lives; and where that is not known. */
#define CLUSTER_VERDICT_GONE_NS (30 * CLOCK_NS_PER_S)
#define CLUSTER_VERDICT_GONE_THERE_NS (12 * CLOCK_NS_PER_S)

struct cluster_verdict_options {
    struct cli_options common; /* first */
    bool no_inject, watch;
    double wait_s; /* < 0: FLEET_WATCH_WAIT_S */
};

static const struct cluster_verdict_options cluster_verdict_default = {.wait_s = -1};

static const struct option_def cluster_verdict_options[] = {
    {"watch", 0, OPTION_FLAG, offsetof(struct cluster_verdict_options, watch),
     .help = "go on, and print each verdict that is new, until the job ends"},
    {"wait", 'w', OPTION_SECONDS, offsetof(struct cluster_verdict_options, wait_s), .arg = "TIME",
     .help = "read the ranks for TIME at most, if it is not clear before (default: 12s)", .min = 0,
     .max = 86400},
    {"no-inject", 0, OPTION_FLAG, offsetof(struct cluster_verdict_options, no_inject),
     .help = "load no agents: without counters the verdict is by stacks alone"},
    {.name = NULL},
};

/* A job that is judged. */
struct cluster_verdict {
    const struct cluster_verdict_options *options;
    struct jobs_here here;
    const struct job *job;
    struct rank_set ranks;
    char some[CLUSTER_VERDICT_JOB]; /* "/0-3": these ranks alone; "" all */
    struct fleet_watch *watch;
    bool is_database;            /* no agent can be loaded */
    struct fleet_source *source; /* for the steps; NULL: they are not known */
    struct fleet_reach reach;
    /* of other hosts: what reads them, which has the watch, and what is known of the job */
    struct watch_there there;
    struct job there_job;
    uint64_t began_ns;
    size_t refused; /* ranks into which no agent could be loaded */
    struct err why;
    /* the same of other hosts: a line for each host and cause */
    struct strbuf causes;
    size_t n_causes;
};

/* ---- printing ---- */

static void cluster_verdict_put_set(struct json *j, const char *key, const struct rank_set *s) {
    struct strbuf text;
    strbuf_init(&text, 0);
    rank_set_put(s, 0, &text);
    json_kv_string(j, key, s->n ? strbuf_str(&text) : NULL);
    strbuf_fini(&text);
}

static void cluster_verdict_put_count(struct json *j, const char *key, int64_t v) {
    if (v >= 0)
        json_kv_int(j, key, v);
    else
        json_kv_null(j, key);
}

static const char *cluster_verdict_or_null(const char *text) { return text[0] ? text : NULL; }

static void cluster_verdict_put_one(struct json *j, const struct fleet_verdict *v) {
    json_object_begin(j);
    json_kv_string(j, "code", fleet_verdict_code_name(v->code));
    json_kv_string(j, "level", verdict_level_name(v->level));
    json_kv_string(j, "brief", v->brief);
    json_kv_string(j, "text", v->text);
    json_kv_string(j, "cause", fleet_verdict_cause_name(v->cause));
    cluster_verdict_put_set(j, "ranks", &v->ranks);
    cluster_verdict_put_set(j, "waiting", &v->waiting);
    json_kv_number(j, "since_s", v->since_s, 1);
    json_kv_bool(j, "by_stacks", v->by_stacks);
    json_kv_string(j, "pg", cluster_verdict_or_null(v->pg));
    json_kv_string(j, "op", cluster_verdict_or_null(v->op));
    cluster_verdict_put_count(j, "number", v->number ? v->number : -1);
    json_kv_string(j, "func", cluster_verdict_or_null(v->at.func));
    json_kv_string(j, "file", cluster_verdict_or_null(v->at.file));
    cluster_verdict_put_count(j, "lineno", v->at.line > 0 ? v->at.line : -1);
    json_key(j, "evidence");
    json_array_begin(j);
    for (size_t i = 0; i < v->n_evidence; i++) {
        json_object_begin(j);
        cluster_verdict_put_count(j, "rank", v->evidence[i].rank);
        json_kv_string(j, "witness", v->evidence[i].witness);
        json_kv_string(j, "text", v->evidence[i].text);
        json_object_end(j);
    }
    json_array_end(j);
    json_kv_string(j, "not", v->denied);
    json_object_end(j);
}

static void cluster_verdict_put_group(struct json *j, const struct fleet_verdict_group *g) {
    json_object_begin(j);
    json_kv_string(j, "pg", cluster_verdict_or_null(g->pg));
    json_kv_string(j, "desc", cluster_verdict_or_null(g->desc));
    cluster_verdict_put_count(j, "size", g->size);
    cluster_verdict_put_count(j, "enqueued_min", g->enqueued_min);
    cluster_verdict_put_count(j, "enqueued_max", g->enqueued_max);
    cluster_verdict_put_count(j, "completed_min", g->completed_min);
    cluster_verdict_put_count(j, "completed_max", g->completed_max);
    json_kv_bool(j, "moves", g->moves);
    cluster_verdict_put_set(j, "members", &g->members);
    cluster_verdict_put_set(j, "behind", &g->behind);
    cluster_verdict_put_set(j, "silent", &g->silent);
    cluster_verdict_put_set(j, "mismatch", &g->mismatch);
    json_object_end(j);
}

static void cluster_verdict_put_json(const struct cluster_verdict *c, const struct fleet_verdicts *v,
                                     struct strbuf *out) {
    struct json j;
    json_init(&j, out, c->options->watch ? 0 : 2);
    json_object_begin(&j);
    json_kv_int(&j, "schema_version", CLUSTER_VERDICT_SCHEMA);
    json_kv_string(&j, "job", c->job->name);
    const struct fleet_source *there = c->there.source;
    json_kv_number(&j, "timestamp",
                   there && there->is_past ? fleet_source_get(there)->taken_at : clock_epoch_s(), 3);
    json_kv_number(&j, "elapsed_s", (double)(clock_mono_ns() - c->began_ns) / 1e9, 2);
    cluster_verdict_put_count(&j, "world", c->job->world ? c->job->world : -1);
    cluster_verdict_put_set(&j, "ranks", &c->ranks);
    cluster_verdict_put_set(&j, "missing", &c->job->missing);
    json_key(&j, "verdicts");
    json_array_begin(&j);
    for (size_t i = 0; i < v->n; i++)
        cluster_verdict_put_one(&j, &v->items[i]);
    json_array_end(&j);
    json_key(&j, "groups");
    json_array_begin(&j);
    for (size_t i = 0; i < v->n_groups; i++)
        cluster_verdict_put_group(&j, &v->groups[i]);
    json_array_end(&j);
    json_object_end(&j);
    strbuf_addc(out, '\n');
}

static void cluster_verdict_put_text(const struct cluster_verdict *c, const struct fleet_verdicts *v,
                                     struct strbuf *out) {
    for (size_t i = 0; i < v->n; i++) {
        const struct fleet_verdict *one = &v->items[i];
        char clock[16] = "";
        time_t now = time(NULL);
        struct tm at;
        if (c->options->watch && localtime_r(&now, &at))
            strftime(clock, sizeof clock, "%H:%M:%S  ", &at);
        strbuf_addf(out, "%s%-*s  %s\n", clock, CLUSTER_VERDICT_CODE, one->brief, one->text);
        for (size_t k = 0; k < one->n_evidence && one->level != VERDICT_FINE; k++) {
            const struct fleet_verdict_evidence *e = &one->evidence[k];
            strbuf_addf(out, "%*s  ", CLUSTER_VERDICT_CODE, "");
            if (e->rank >= 0)
                strbuf_addf(out, "rank %d, ", e->rank);
            strbuf_addf(out, "%s: %s\n", e->witness, e->text);
        }
        strbuf_addf(out, "%*s  not: %s\n", CLUSTER_VERDICT_CODE, "", one->denied);
    }
}

static void cluster_verdict_put(const struct cluster_verdict *c, const struct fleet_verdicts *v,
                                struct strbuf *out) {
    if (c->options->common.json)
        cluster_verdict_put_json(c, v, out);
    else
        cluster_verdict_put_text(c, v, out);
}

/* ---- reading ---- */

static void cluster_verdict_attach(struct job_task *task) {
    struct target_address addr = {.pid = task->pid};
    task->rc = target_attach(&addr, CLUSTER_VERDICT_ATTACH_MS, &task->result, &task->error);
}

/* An agent into each rank that has none. One that refuses is judged by its stack. */
static int cluster_verdict_attach_all(struct cluster_verdict *c, struct err *e) {
    struct job_task *tasks = calloc(c->job->n_ranks + 1, sizeof *tasks);
    size_t n = 0;
    if (!tasks)
        return err_set(e, ERR_FAILED, "out of memory for the ranks");
    for (size_t i = 0; i < c->job->n_ranks; i++) {
        const struct job_member *m = &c->job->members[i];
        const struct target_process *p = jobs_here_process(&c->here, m);
        if (rank_set_has(&c->ranks, m->rank) && !p->attached && !p->held)
            tasks[n++] = (struct job_task){.pid = m->pid, .rank = m->rank};
    }
    sigset_t usual;
    sigprocmask(SIG_SETMASK, NULL, &usual);
    cli_defer_signals();
    job_each(tasks, n, cluster_verdict_attach);
    sigprocmask(SIG_SETMASK, &usual, NULL);
    if (n)
        fleet_watch_note_attached(c->watch);
    for (size_t i = 0; i < n; i++)
        if (tasks[i].rc < 0) {
            if (!c->refused++)
                c->why = tasks[i].error;
        }
    free(tasks);
    return 0;
}

static void cluster_verdict_close(struct cluster_verdict *c) {
    fleet_source_close(c->source);
    if (!c->there.source)
        fleet_watch_free(c->watch);
    watch_there_close(&c->there);
    fleet_reach_fini(&c->reach);
    rank_set_fini(&c->ranks);
    jobs_here_fini(&c->here);
    strbuf_fini(&c->causes);
}

/* The ranks of other hosts, by their relays. */
static int cluster_verdict_open_there(struct cluster_verdict *c, const char *name, struct err *e) {
    struct job *job = &c->there_job;
    struct err ignored;
    if (fleet_open_find_ranks(name))
        return err_set(e, ERR_USAGE, "--hosts is for all ranks of a job: leave out '%s'",
                       fleet_open_find_ranks(name));
    progress_begin("reading the ranks", 0, NULL);
    int rc = watch_there_open(&c->there, name, &c->reach, e);
    progress_end();
    if (rc != 0)
        return -1;
    snprintf(job->name, sizeof job->name, "%s", c->there.job);
    job->world = c->there.world;
    job->missing = c->there.missing; /* not freed here */
    c->job = job;
    c->watch = c->there.watch;
    c->is_database = fleet_open_is_database(name);
    c->source = fleet_open(fleet_open_is_database(name) ? name : job->name, &c->reach, &ignored);
    return rank_set_join(&c->ranks, &c->there.ranks) == 0
               ? 0
               : err_set(e, ERR_FAILED, "out of memory for a set of ranks");
}

/* Whether two texts are the same but for their numbers: those are of processes. */
static bool cluster_verdict_is_alike(const char *a, const char *b) {
    for (;; a++, b++) {
        a += strspn(a, "0123456789");
        b += strspn(b, "0123456789");
        if (*a != *b || !*a)
            return *a == *b;
    }
}

static const char *cluster_verdict_cause(const struct report_task *task) {
    return task->note ? task->note : "unknown";
}

/* Why ranks of a host have no agent: a line for those with the same reason. */
static void cluster_verdict_add_causes(struct cluster_verdict *c, const char *host,
                                       const struct report_task *tasks, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const char *cause = cluster_verdict_cause(&tasks[i]);
        size_t before = 0, same = 0;
        for (size_t k = 0; k < n && tasks[i].failed == 1; k++) {
            bool alike =
                tasks[k].failed == 1 && cluster_verdict_is_alike(cluster_verdict_cause(&tasks[k]), cause);
            before += k < i && alike;
            same += alike;
        }
        if (!same || before || c->n_causes++ >= CLUSTER_VERDICT_CAUSES)
            continue;
        strbuf_addf(&c->causes, "probing: %.96s: %zu %s: rank %d: %.400s\n", host, same,
                    same == 1 ? "rank has no agent, and is judged by its stack"
                              : "ranks have no agent, and are judged by their stacks",
                    (int)tasks[i].rank, cause);
    }
}

/* An agent into each rank there that has none. */
static int cluster_verdict_attach_there(struct cluster_verdict *c, struct err *e) {
    const char *host;
    size_t n;
    struct err ignored;
    struct fleet_states seen;
    struct fleet_source *l = fleet_open_work(c->job->name, &c->reach, REPORT_ATTACH, e);
    if (!l)
        return -1;
    /* whatever fails is a host's, and in its note */
    (void)fleet_source_fill(l, 1, CLUSTER_VERDICT_ATTACH_S, NULL, NULL, &ignored);
    for (size_t i = 0; fleet_source_states(c->there.source, i, &seen); i++) {
        const struct report_task *tasks = fleet_links_tasks(l, i, &host, &n);
        const char *note = fleet_links_note(l, i);
        if (tasks)
            cluster_verdict_add_causes(c, host, tasks, n);
        else if (seen.n && c->n_causes++ < CLUSTER_VERDICT_CAUSES)
            strbuf_addf(&c->causes,
                        "probing: %.96s: no agent could be loaded, and its ranks are judged by their stacks: "
                        "%.400s. Try: probing cluster attach job:%s --hosts %.96s\n",
                        host, note[0] ? note : "its relay did not answer in time", c->job->name, host);
    }
    fleet_source_close(l);
    fleet_watch_note_attached(c->watch);
    return 0;
}

/* Why ranks have no agent. */
static void cluster_verdict_note_refused(struct cluster_verdict *c) {
    if (c->refused == 1)
        output_say("probing: 1 rank has no agent, and is judged by its stack: %s\n", err_text(&c->why));
    else if (c->refused)
        output_say("probing: %zu ranks have no agent, and are judged by their stacks: %s\n", c->refused,
                   err_text(&c->why));
    if (c->n_causes > CLUSTER_VERDICT_CAUSES)
        strbuf_addf(&c->causes, "probing: %zu more reasons of other hosts are left out\n",
                    c->n_causes - CLUSTER_VERDICT_CAUSES);
    output_say_text(&c->causes);
    strbuf_clear(&c->causes);
    c->refused = c->n_causes = 0;
}

static int cluster_verdict_open(struct cluster_verdict *c, const struct cli_options *o, struct err *e) {
    char name[CLUSTER_VERDICT_JOB];
    c->began_ns = clock_mono_ns();
    if (cli_read_reach(o, &c->reach, name, sizeof name, e) != 0)
        return -1;
    if (fleet_open_is_far(name, &c->reach))
        return cluster_verdict_open_there(c, name, e);
    if (jobs_here_read(&c->here, 0, e) != 0)
        return -1;
    const char *some = strchr(name, '/');
    snprintf(c->some, sizeof c->some, "%s", some ? some : "");
    c->job = jobs_here_choose(&c->here, name, &c->ranks, e);
    c->watch = c->job ? fleet_watch_new(&c->here, c->job, &c->ranks, e) : NULL;
    struct err ignored;
    c->source = c->watch ? fleet_open(c->job->name, &c->reach, &ignored) : NULL;
    return c->watch ? 0 : -1;
}

/* Whom the others wait for in a job that moves. 0, or -1 with the error. */
static int cluster_verdict_put_pace(const struct cluster_verdict *c, struct fleet_verdicts *v,
                                    struct err *e) {
    bool moves = v->n && v->items[0].code == FLEET_CODE_MOVING;
    if (!moves || !c->source || pace_put_verdicts(fleet_source_get(c->source), v) == 0)
        return 0;
    return err_set(e, ERR_FAILED, "out of memory for the verdicts");
}

static bool cluster_verdict_is_bad(const struct fleet_verdicts *v) {
    return v->n && v->items[0].level == VERDICT_BAD;
}

/* Whether it is worth a line: who is accused, of what, and where it stands. */
static uint64_t cluster_verdict_key(const struct fleet_verdicts *v) {
    uint64_t h = HASH_FNV_START;
    for (size_t i = 0; i < v->n; i++) {
        h = hash_fnv_text(h, v->items[i].brief);
        h = hash_fnv(h, &v->items[i].cause, sizeof v->items[i].cause);
        if (v->items[i].level == VERDICT_BAD)
            h = hash_fnv_text(h, v->items[i].at.func);
    }
    return h;
}

/* The same of other hosts, whose relays search for them. */
static int cluster_verdict_find_new_there(struct cluster_verdict *c, struct err *e) {
    int rc = watch_there_renew(&c->there, e);
    if (rc < 0)
        return -1;
    c->watch = c->there.watch;
    c->there_job.missing = c->there.missing;
    rank_set_fini(&c->ranks);
    if (rank_set_join(&c->ranks, &c->there.ranks) != 0)
        return err_set(e, ERR_FAILED, "out of memory for a set of ranks");
    bool injects = !c->options->no_inject && !c->options->common.readonly && !c->is_database;
    if (rc == 1 && injects && cluster_verdict_attach_there(c, e) != 0)
        return -1;
    if (rc == 1)
        cluster_verdict_note_refused(c);
    return rc;
}

/* Ranks are gone: find those that a launcher has started in their place. 1: they are watched now; 0:
 * there are none; -1 with the error. */
static int cluster_verdict_find_new(struct cluster_verdict *c, struct err *e) {
    struct cluster_verdict again = {.options = c->options, .began_ns = c->began_ns};
    if (c->there.source)
        return cluster_verdict_find_new_there(c, e);
    char name[JOB_NAME_MAX + CLUSTER_VERDICT_JOB];
    struct err gone;
    memcpy(again.some, c->some, sizeof again.some);
    snprintf(name, sizeof name, "%s%s", c->job->name, c->some);
    int rc = jobs_here_read(&again.here, 0, e);
    again.job = rc == 0 ? jobs_here_choose(&again.here, name, &again.ranks, &gone) : NULL;
    bool is_new = again.job && !fleet_watch_has(c->watch, again.job, &again.ranks);
    if (is_new)
        again.watch = fleet_watch_new(&again.here, again.job, &again.ranks, e);
    if (rc != 0 || (is_new && !again.watch)) {
        cluster_verdict_close(&again);
        return -1;
    }
    if (!is_new) {
        cluster_verdict_close(&again);
        return 0;
    }
    again.source = c->source; /* it finds them, too */
    c->source = NULL;
    cluster_verdict_close(c);
    *c = again;
    return c->options->no_inject || c->options->common.readonly || cluster_verdict_attach_all(c, e) == 0 ? 1
                                                                                                         : -1;
}

/* All ranks have been gone for `gone_ns`: is the job over, or may its launcher start them again? */
static bool cluster_verdict_is_over(const struct cluster_verdict *c, uint64_t gone_ns) {
    if (c->there.source)
        return gone_ns > CLUSTER_VERDICT_GONE_THERE_NS;
    for (size_t i = 0; i < c->job->n_members; i++)
        if (c->job->members[i].role == JOB_LAUNCHER && !procfs_is_gone(c->job->members[i].pid))
            return gone_ns > CLUSTER_VERDICT_GONE_NS;
    return true;
}

/* Meanwhile the steps of the ranks are read. */
static void cluster_verdict_rest(const struct cluster_verdict *c, uint64_t ns) {
    uint64_t began = clock_mono_ns();
    struct err ignored;
    if (c->source)
        fleet_source_fill(c->source, UINT32_MAX, (double)ns / 1e9, NULL, NULL, &ignored);
    uint64_t took = clock_mono_ns() - began;
    if (took < ns)
        nanosleep(&(struct timespec){.tv_nsec = (long)(ns - took)}, NULL);
}

/* Append to the first verdict which hosts give no news. */
static void cluster_verdict_add_silent(const struct cluster_verdict *c, struct fleet_verdicts *v) {
    struct strbuf text;
    if (!c->there.source || !v->n)
        return;
    strbuf_init(&text, 0);
    fleet_source_put_silent(c->there.source, &text);
    if (text.len)
        fleet_verdict_say(&v->items[0], "; no news from %s", strbuf_str(&text));
    strbuf_fini(&text);
}

/* A line when other hosts than before give no news; `*last` is which they were. */
static void cluster_verdict_note_silent(const struct cluster_verdict *c, uint64_t *last) {
    struct strbuf text;
    if (!c->there.source)
        return;
    strbuf_init(&text, 0);
    fleet_source_put_silent(c->there.source, &text);
    uint64_t now = text.len ? hash_fnv_text(HASH_FNV_START, strbuf_str(&text)) : 0;
    if (now && now != *last)
        cli_note_fleet(c->there.source);
    *last = now;
    strbuf_fini(&text);
}

/* A line for ranks that were killed or have failed: a launcher may have ended all others before they could be judged.
 * Whether there are any. */
static bool cluster_verdict_explain_end(const struct cluster_verdict *c) {
    size_t n;
    const struct fleet_verdict_rank *ranks = fleet_watch_ranks(c->watch, &n);
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        const char *why = ranks[i].now ? ranks[i].now->state.why : "";
        struct rank_set alike = {.n = 0};
        struct strbuf text;
        bool is_first = exit_reason_is_trouble(why);
        for (size_t k = 0; is_first && k < n; k++) {
            if (!ranks[k].now || strcmp(ranks[k].now->state.why, why) != 0)
                continue;
            is_first = k >= i && rank_set_add(&alike, ranks[k].rank, ranks[k].rank) == 0;
        }
        strbuf_init(&text, 0);
        rank_set_put(&alike, CLUSTER_VERDICT_RANGES, &text);
        if (is_first)
            output_say("probing: rank%s %s ha%s ended: %s\n", rank_set_count(&alike) == 1 ? "" : "s",
                       strbuf_str(&text), rank_set_count(&alike) == 1 ? "s" : "ve", why);
        any |= is_first;
        strbuf_fini(&text);
        rank_set_fini(&alike);
    }
    return any;
}

/* Each verdict that is new, until the job ends. The last one's level is the exit status, or that ranks were killed. */
static int cluster_verdict_follow(struct cluster_verdict *c, struct strbuf *out, struct err *e) {
    uint64_t silent = 0;
    uint64_t last = 0, found_ns = clock_mono_ns(), find_ns = CLUSTER_VERDICT_FIND_NS, lived_ns = found_ns;
    uint64_t asked_ns = 0;
    bool bad = false, first = true, moving = false;
    for (;;) {
        struct fleet_verdicts v = {.n = 0};
        uint64_t began = clock_mono_ns();
        /* the agents are asked once a rank stands still, and less often if the job moves nevertheless */
        bool suspect = first || fleet_watch_is_suspect(c->watch);
        bool counters = suspect && (!moving || began - asked_ns >= CLUSTER_VERDICT_ASK_NS);
        /* one reading of counters does not show whether they move: another one follows */
        bool lone = counters && moving;
        int rc = fleet_watch_read(c->watch, counters, e);
        asked_ns = counters ? began : asked_ns;
        cluster_verdict_note_silent(c, &silent);
        size_t n, gone = rc == 0 ? fleet_watch_gone(c->watch) : 0;
        fleet_watch_ranks(c->watch, &n);
        lived_ns = gone < n ? began : lived_ns;
        /* hosts that come late, ranks that are started again */
        int found = rc == 0 && c->there.source ? cluster_verdict_find_new_there(c, e) : 0;
        if (found != 0) {
            rc = found;
            first = true;
        } else if (rc == 0 && gone > 0 && began - found_ns > find_ns) {
            rc = cluster_verdict_find_new(c, e);
            found_ns = clock_mono_ns();
            if (rc == 0 && gone == n && cluster_verdict_is_over(c, began - lived_ns))
                return cluster_verdict_explain_end(c) || bad;
            find_ns = rc > 0 || gone == n                         ? CLUSTER_VERDICT_FIND_NS
                      : 2 * find_ns < CLUSTER_VERDICT_FIND_MAX_NS ? 2 * find_ns
                                                                  : CLUSTER_VERDICT_FIND_MAX_NS;
            first |= rc > 0;
        }
        if (found == 0 && gone < n && rc == 0 && !first && !lone &&
            (counters || !fleet_watch_is_suspect(c->watch)))
            rc = fleet_watch_judge(c->watch, &v, e);
        moving = v.n ? v.items[0].code == FLEET_CODE_MOVING : moving && !lone;
        if (rc < 0 || cluster_verdict_put_pace(c, &v, e) != 0)
            return -1;
        cluster_verdict_add_silent(c, &v);
        uint64_t key = v.n ? cluster_verdict_key(&v) ^ silent : last;
        if (key != last) {
            cluster_verdict_put(c, &v, out);
            rc = output_write(NULL, out, e);
            strbuf_clear(out);
        }
        last = key;
        bad = v.n ? cluster_verdict_is_bad(&v) : bad;
        fleet_verdicts_fini(&v);
        if (rc < 0)
            return -1;
        uint64_t took = clock_mono_ns() - began;
        if (took < CLUSTER_VERDICT_NEXT_NS && rc == 0)
            cluster_verdict_rest(c, CLUSTER_VERDICT_NEXT_NS - took);
        first = rc > 0;
    }
}

static int cluster_verdict_once(struct cluster_verdict *c, struct strbuf *out, struct err *e) {
    struct fleet_verdicts v = {.n = 0};
    double wait_s = c->options->wait_s < 0 ? FLEET_WATCH_WAIT_S : c->options->wait_s;
    progress_begin("watching the job", 0, NULL);
    struct err ignored;
    int rc = c->there.source ? cluster_verdict_find_new_there(c, e) : 0;
    rc = rc < 0 ? -1 : fleet_watch_ask(c->watch, wait_s, NULL, NULL, &v, e);
    /* once more with hosts that have come meanwhile */
    int found = rc == 0 && c->there.source ? cluster_verdict_find_new_there(c, e) : 0;
    if (found != 0) {
        fleet_verdicts_fini(&v);
        rc = found < 0 ? -1 : fleet_watch_ask(c->watch, wait_s, NULL, NULL, &v, e);
    }
    if (rc == 0 && c->source && v.n && v.items[0].code == FLEET_CODE_MOVING)
        fleet_source_fill(c->source, 1, CLUSTER_VERDICT_PACE_S, NULL, NULL, &ignored);
    progress_end();
    if (rc == 0)
        rc = cluster_verdict_put_pace(c, &v, e);
    bool bad = rc == 0 && cluster_verdict_is_bad(&v);
    if (rc == 0)
        cluster_verdict_add_silent(c, &v);
    if (rc == 0)
        cluster_verdict_put(c, &v, out);
    fleet_verdicts_fini(&v);
    return rc == 0 ? bad : -1;
}

static int cluster_verdict_exec(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                                struct err *e) {
    struct cluster_verdict c = {.options = (const struct cluster_verdict_options *)(const void *)o};
    (void)addr;
    bool inject = !c.options->no_inject && !o->readonly;
    int rc = cluster_verdict_open(&c, o, e);
    /* what they do before anything is done to them */
    if (rc == 0)
        rc = fleet_watch_read(c.watch, false, e);
    /* of what is past there is one verdict */
    bool follows = c.options->watch && !(c.there.source && c.there.source->is_past);
    if (rc == 0 && inject && !c.is_database)
        rc = c.there.source ? cluster_verdict_attach_there(&c, e) : cluster_verdict_attach_all(&c, e);
    /* that goes on until the job ends */
    if (rc == 0 && follows)
        cluster_verdict_note_refused(&c);
    if (rc == 0)
        rc = follows ? cluster_verdict_follow(&c, out, e) : cluster_verdict_once(&c, out, e);
    if (rc >= 0)
        cluster_verdict_note_refused(&c);
    if (rc >= 0 && c.there.source && !follows)
        cli_note_fleet(c.there.source);
    cluster_verdict_close(&c);
    return rc;
}

const struct cli_verb verb_cluster_verdict = {
    .name = "cluster verdict",
    .noun = "cluster",
    .group = "Cluster",
    .help = "which rank keeps a job from going on, or makes it slow; exit status 1 if it does not go on",
    .example = "probing cluster verdict job:4242",
    .takes_job = true,
    .takes_hosts = true,
    .options = cluster_verdict_options,
    .options_size = sizeof(struct cluster_verdict_options),
    .options_default = &cluster_verdict_default,
    .exec = cluster_verdict_exec,
};
