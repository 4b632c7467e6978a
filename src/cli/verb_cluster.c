/* SPDX-License-Identifier: Apache-2.0 */
/* verb_cluster: the ranks of a job together: which there are, the agent into all of them, and out. */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/engine/engine_schema.h"
#include "client/fleet/engine_jobs.h"
#include "client/fleet/fleet_links.h"
#include "client/fleet/fleet_open.h"
#include "client/fleet/fleet_tables.h"
#include "client/jobs/job_each.h"
#include "client/fleet/job_rows.h"
#include "client/output.h"
#include "client/progress.h"
#include "relay/relay.h"

#define CLUSTER_RANGES 16 /* of a set of ranks in a note */
#define CLUSTER_JOB 512
#define CLUSTER_WORK_S 200.0 /* for all hosts to work with their ranks */
#define CLUSTER_EXTRA_S 30.0 /* for the ranks to be read, beside the duration */

struct cluster_options {
    struct cli_options common; /* first */
    const char *format;
    double duration_s; /* of ranks only */
};

static const char *cluster_choose_format(int i) { return result_formats[i].name; }

static const struct option_def cluster_options[] = {
    {"format", 0, OPTION_STRING, offsetof(struct cluster_options, format), .arg = "FORMAT",
     .help = "table, json, ndjson or csv", .choice = cluster_choose_format},
    {.name = NULL},
};

static const struct option_def cluster_ranks_options[] = {
    {"duration", 'd', OPTION_SECONDS, offsetof(struct cluster_options, duration_s), .arg = "TIME",
     .help = "read what the ranks do once a second for TIME (1s)", .min = 0, .max = 86400},
    {.name = NULL},
};

static const struct cluster_options cluster_ranks_default = {.duration_s = 1};

static const char *cluster_operand(const struct cli_options *o) {
    return o->targets.n ? o->targets.items[0] : NULL;
}

/* What a verb works on. */
struct cluster {
    struct jobs_here here;
    const struct job *job; /* NULL: all, if the verb takes that */
    struct rank_set ranks;
    const struct result_format *format;
    uint64_t began_ns;
};

static const struct result_format *cluster_find_format(const struct cli_options *o, struct err *e) {
    const struct cluster_options *mine = (const struct cluster_options *)(const void *)o;
    if (cli_check_format(o, mine->format, e) != 0)
        return NULL;
    return result_find_format(o->json ? "json" : mine->format ? mine->format : result_formats[0].name, e);
}

/* Find the job that is named; `all`: without a name all of them. 0, or -1 with the error. */
static int cluster_open(struct cluster *c, const struct cli_options *o, bool all, struct err *e) {
    const char *name = cluster_operand(o);
    *c = (struct cluster){.format = cluster_find_format(o, e)};
    if (!c->format)
        return -1;
    c->began_ns = clock_mono_ns();
    progress_begin("finding the ranks", 0, NULL);
    int rc = jobs_here_read(&c->here, 0, e);
    progress_end();
    if (rc == 0 && (name || !all)) {
        c->job = jobs_here_choose(&c->here, name ? name : "", &c->ranks, e);
        rc = c->job ? 0 : -1;
    }
    return rc;
}

static void cluster_close(struct cluster *c) {
    rank_set_fini(&c->ranks);
    jobs_here_fini(&c->here);
}

/* `rows` is released. 0, or -1 with the error. */
static int cluster_put(const struct cluster *c, struct result *rows, struct strbuf *out, struct err *e) {
    if (!rows)
        return err_set(e, ERR_FAILED, "out of memory for the rows");
    int columns = output_columns();
    rows->elapsed_s = (double)(clock_mono_ns() - c->began_ns) / 1e9;
    if (c->format == &result_formats[0] && columns > 0)
        result_put_fitted(rows, columns, out);
    else
        result_write(rows, c->format, isatty(STDOUT_FILENO), out);
    result_unref(rows);
    return 0;
}

/* ---- which there are ---- */

static void cluster_put_text(struct result *r, size_t column, const char *text) {
    if (text && text[0])
        result_put_text(r, column, SQL_TEXT, text, strlen(text));
}

/* Hosts have no probing: whoever sits at a terminal is asked. */
static void cluster_offer_push(const struct fleet_reach *reach, size_t lacking) {
    char answer[16] = "";
    struct err e;
    if (!isatty(STDIN_FILENO) || !output_is_watched())
        return;
    output_say("probing: %zu of %zu hosts have no probing. Copy it to ~/.cache/probing there? [y/N] ",
               lacking, reach->hosts.n);
    if (!fgets(answer, sizeof answer, stdin) || (answer[0] != 'y' && answer[0] != 'Y'))
        return;
    if (fleet_reach_push(reach, &e) == 0)
        output_say("probing: copied; type the command again\n");
    else
        output_say("probing: %s\n", err_text(&e));
}

/* Rows of a table, of the hosts that are named. */
static int cluster_put_hosts(const struct cli_options *o, const struct fleet_reach *reach, const char *job,
                             enum fleet_table table, struct strbuf *out, struct err *e) {
    double duration_s = ((const struct cluster_options *)(const void *)o)->duration_s;
    struct cluster c = {.format = cluster_find_format(o, e), .began_ns = clock_mono_ns()};
    if (!c.format)
        return -1;
    if (fleet_open_find_ranks(job))
        return err_set(e, ERR_USAGE, "--hosts shows all ranks of a job: leave out '%s'",
                       fleet_open_find_ranks(job));
    struct fleet_source *l = fleet_open(job, reach, e);
    if (!l)
        return -1;
    progress_begin("reading the ranks", duration_s, NULL);
    int rc = fleet_source_fill(l, 1 + (unsigned)duration_s, duration_s + CLUSTER_EXTRA_S, NULL, NULL, e);
    progress_end();
    struct err why = *e;
    /* hosts that cannot be reached are rows, too */
    if (rc == 0 || table == FLEET_TABLE_NODES) {
        int put = cluster_put(&c, fleet_table_rows(fleet_source_get(l), table), out, e);
        if (rc == 0)
            rc = put;
        else {
            output_write(NULL, out, e);
            *e = why;
        }
    }
    if (rc == 0)
        cli_note_fleet(l);
    size_t lacking = fleet_links_count_lacking(l);
    fleet_source_close(l);
    if (lacking)
        cluster_offer_push(reach, lacking);
    return rc;
}

/* Of the hosts that are named, or of this one by `here`. */
static int cluster_show(const struct cli_options *o, enum fleet_table table,
                        int (*here)(const struct cli_options *o, struct strbuf *out, struct err *e),
                        struct strbuf *out, struct err *e) {
    struct fleet_reach reach;
    char job[CLUSTER_JOB];
    int rc = cli_read_reach(o, &reach, job, sizeof job, e);
    if (rc == 0)
        rc = fleet_open_is_far(job, &reach) ? cluster_put_hosts(o, &reach, job, table, out, e)
                                            : here(o, out, e);
    fleet_reach_fini(&reach);
    return rc;
}

static int cluster_nodes_here(const struct cli_options *o, struct strbuf *out, struct err *e) {
    struct cluster c;
    int rc = cluster_open(&c, o, true, e);
    if (rc == 0)
        rc = cluster_put(&c, job_rows_nodes(&c.here, c.job), out, e);
    cluster_close(&c);
    return rc;
}

static const char *const cluster_job_columns[][2] = {{"job", "text"},           {"user", "text"},
                                                     {"ranks", "integer"},      {"hosts", "integer"},
                                                     {"state", "text"},         {"first_seen", "timestamp"},
                                                     {"last_seen", "timestamp"}};

#define CLUSTER_JOB_COLUMNS (sizeof cluster_job_columns / sizeof cluster_job_columns[0])

static void cluster_add_job(struct result *r, const struct engine_jobs_item *j) {
    if (result_add_row(r) != 0)
        return;
    cluster_put_text(r, 0, j->name);
    cluster_put_text(r, 1, j->user);
    if (j->ranks >= 0)
        result_put_int(r, 2, j->ranks);
    result_put_int(r, 3, j->hosts);
    cluster_put_text(r, 4, j->is_running ? "running" : "ended");
    result_put_real(r, 5, j->first);
    result_put_real(r, 6, j->last);
}

/* The jobs of a database. */
static int cluster_put_jobs(const struct cli_options *o, const struct engine_address *a, struct strbuf *out,
                            struct err *e) {
    struct cluster c = {.format = cluster_find_format(o, e), .began_ns = clock_mono_ns()};
    struct engine_jobs jobs = {.n = 0};
    struct engine_http *h = c.format ? engine_http_open(a, e) : NULL;
    int rc = h && engine_schema_check(h, e) == 0 ? engine_jobs_read(&jobs, h, e) : -1;
    engine_http_close(h);
    struct result *r = rc == 0 ? result_new(CLUSTER_JOB_COLUMNS, SIZE_MAX, RESULT_BYTES) : NULL;
    for (size_t i = 0; r && i < CLUSTER_JOB_COLUMNS; i++)
        rc |= result_name_column(r, i, cluster_job_columns[i][0], cluster_job_columns[i][1]);
    for (size_t i = 0; r && i < jobs.n; i++)
        cluster_add_job(r, &jobs.items[i]);
    engine_jobs_fini(&jobs);
    return rc == 0 ? cluster_put(&c, r, out, e) : -1;
}

static int cluster_nodes_exec(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                              struct err *e) {
    struct engine_address a;
    (void)addr;
    if (cluster_operand(o) && engine_address_is(cluster_operand(o))) {
        if (engine_address_parse(&a, cluster_operand(o), e) != 0 || engine_address_read_password(&a, e) != 0)
            return -1;
        if (!a.job[0])
            return cluster_put_jobs(o, &a, out, e);
    }
    return cluster_show(o, FLEET_TABLE_NODES, cluster_nodes_here, out, e);
}

/* Read what the ranks of the job do, or of the only one. NULL: that is not known. */
static struct fleet_source *cluster_read_fleet(const struct cluster *c, double duration_s) {
    static const struct fleet_reach reach = {.serve = relay_serve};
    struct err e = {0};
    const struct job *job = c->job ? c->job : c->here.jobs.n == 1 ? &c->here.jobs.items[0] : NULL;
    struct fleet_source *l = job ? fleet_open(job->name, &reach, &e) : NULL;
    progress_begin("reading the ranks", duration_s, NULL);
    int rc =
        l ? fleet_source_fill(l, 1 + (unsigned)duration_s, duration_s + CLUSTER_EXTRA_S, NULL, NULL, &e) : 0;
    progress_end();
    if (rc != 0)
        output_say("probing: %s\n", err_text(&e));
    return l;
}

static int cluster_ranks_here(const struct cli_options *o, struct strbuf *out, struct err *e) {
    struct cluster c;
    const char *name = cluster_operand(o);
    int rc = cluster_open(&c, o, true, e);
    bool some = name && strchr(name, '/');
    if (rc == 0) {
        const struct cluster_options *mine = (const struct cluster_options *)(const void *)o;
        struct fleet_source *l = cluster_read_fleet(&c, mine->duration_s);
        rc = cluster_put(
            &c, job_rows_ranks(&c.here, c.job, some ? &c.ranks : NULL, l ? fleet_source_get(l) : NULL), out,
            e);
        fleet_source_close(l);
    }
    cluster_close(&c);
    return rc;
}

static int cluster_ranks_exec(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                              struct err *e) {
    (void)addr;
    return cluster_show(o, FLEET_TABLE_RANKS, cluster_ranks_here, out, e);
}

/* ---- work with each rank ---- */

/* The error for the ranks that failed. */
static int cluster_explain(const struct job_task *tasks, size_t n, const char *what, struct err *e) {
    const struct job_task *first = NULL;
    size_t failed = 0;
    bool lost = true;
    for (size_t i = 0; i < n; i++)
        if (tasks[i].rc < 0) {
            first = first ? first : &tasks[i];
            lost &= tasks[i].error.code == ERR_LOST;
            failed++;
        }
    if (!failed)
        return 0;
    return err_set(e, lost ? ERR_LOST : ERR_ATTACH, "%zu of %zu ranks could not be %s: rank %d: %.380s",
                   failed, n, what, first->rank, err_text(&first->error));
}

/* Say what is not here: it is in the rows of programs. */
static void cluster_note_missing(const struct job *job) {
    struct strbuf text;
    strbuf_init(&text, 0);
    rank_set_put(&job->missing, CLUSTER_RANGES, &text);
    if (job->missing.n)
        output_say("probing: job %s has no process here for rank %s of %d\n", job->name, strbuf_str(&text),
                   job->world);
    strbuf_clear(&text);
    rank_set_put(&job->elsewhere, CLUSTER_RANGES, &text);
    if (job->elsewhere.n)
        output_say("probing: job %s: ranks %s are on other hosts, or have ended\n", job->name,
                   strbuf_str(&text));
    strbuf_fini(&text);
}

static int cluster_work(const struct cluster *c, void (*work)(struct job_task *),
                        const char *(*done)(const struct job_task *), const char *progress, const char *what,
                        struct strbuf *out, struct err *e) {
    struct job_task *tasks = calloc(c->job->n_ranks + 1, sizeof *tasks);
    size_t n = 0;
    if (!tasks)
        return err_set(e, ERR_FAILED, "out of memory for the ranks");
    for (size_t i = 0; i < c->job->n_ranks; i++)
        if (rank_set_has(&c->ranks, c->job->members[i].rank))
            tasks[n++] = (struct job_task){.pid = c->job->members[i].pid, .rank = c->job->members[i].rank};
    progress_begin(progress, 0, NULL);
    job_each(tasks, n, work);
    progress_end();
    int rc = cluster_put(c, job_rows_tasks(&c->here, c->job, tasks, n, done), out, e);
    /* the rows are printed, whatever became of some */
    if (rc == 0 && cluster_explain(tasks, n, what, e) != 0) {
        struct err why = *e;
        output_write(NULL, out, e);
        *e = why;
        rc = -1;
    }
    free(tasks);
    return rc;
}

/* ---- the same on other hosts ---- */

static const char *const cluster_task_columns[][2] = {
    {"rank", "integer"},    {"host", "text"},     {"pid", "integer"},   {"job", "text"}, {"agent", "text"},
    {"stopped_ms", "real"}, {"total_ms", "real"}, {"endpoint", "text"}, {"note", "text"}};

#define CLUSTER_TASK_COLUMNS (sizeof cluster_task_columns / sizeof cluster_task_columns[0])

static void cluster_add_task(struct result *r, const char *host, const char *job,
                             const struct report_task *t) {
    if (result_add_row(r) != 0)
        return;
    result_put_int(r, 0, t->rank);
    cluster_put_text(r, 1, host);
    result_put_int(r, 2, t->pid);
    cluster_put_text(r, 3, job);
    cluster_put_text(r, 4, t->agent);
    result_put_real(r, 5, t->stopped_ms);
    result_put_real(r, 6, t->total_ms);
    cluster_put_text(r, 7, t->endpoint);
    cluster_put_text(r, 8, t->note);
}

/* The rows of all hosts. NULL: out of memory. */
static struct result *cluster_task_rows(const struct fleet_source *l, size_t *failed) {
    struct result *r = result_new(CLUSTER_TASK_COLUMNS, SIZE_MAX, RESULT_BYTES);
    const char *host;
    int rc = 0;
    size_t n;
    *failed = 0;
    for (size_t i = 0; r && i < CLUSTER_TASK_COLUMNS; i++)
        rc |= result_name_column(r, i, cluster_task_columns[i][0], cluster_task_columns[i][1]);
    for (size_t i = 0; r && rc == 0; i++) {
        const struct report_task *tasks = fleet_links_tasks(l, i, &host, &n);
        if (!host)
            return r;
        for (size_t k = 0; k < n; k++) {
            cluster_add_task(r, host, fleet_source_get(l)->job, &tasks[k]);
            *failed += tasks[k].failed == 1;
        }
    }
    result_unref(r);
    return NULL;
}

/* Each host works with its ranks. */
static int cluster_work_hosts(const struct cli_options *o, const struct fleet_reach *reach, const char *job,
                              const char *work, const char *progress, struct strbuf *out, struct err *e) {
    struct cluster c = {.format = cluster_find_format(o, e), .began_ns = clock_mono_ns()};
    struct strbuf silent;
    size_t failed = 0;
    if (!c.format)
        return -1;
    if (fleet_open_find_ranks(job))
        return err_set(e, ERR_USAGE, "--hosts is for all ranks of a job: leave out '%s'",
                       fleet_open_find_ranks(job));
    struct fleet_source *l = fleet_open_work(job, reach, work, e);
    if (!l)
        return -1;
    strbuf_init(&silent, 0);
    progress_begin(progress, 0, NULL);
    int rc = fleet_source_fill(l, 1, CLUSTER_WORK_S, NULL, NULL, e);
    progress_end();
    if (rc == 0)
        rc = cluster_put(&c, cluster_task_rows(l, &failed), out, e);
    fleet_source_put_silent(l, &silent);
    /* the rows are printed, whatever became of some */
    if (rc == 0 && (failed || silent.len)) {
        output_write(NULL, out, e);
        rc = silent.len ? err_set(e, ERR_ATTACH, "nothing was done on %.400s", strbuf_str(&silent))
                        : err_set(e, ERR_ATTACH, "%zu ranks refused; their rows have the reason", failed);
    }
    strbuf_fini(&silent);
    fleet_source_close(l);
    return rc;
}

/* On the hosts that are named, or here. */
static int cluster_change(const struct cli_options *o, const char *work, const char *progress,
                          int (*here)(const struct cli_options *o, struct strbuf *out, struct err *e),
                          struct strbuf *out, struct err *e) {
    struct fleet_reach reach;
    char job[CLUSTER_JOB];
    int rc = cli_read_reach(o, &reach, job, sizeof job, e);
    if (rc == 0)
        rc = fleet_open_is_far(job, &reach) ? cluster_work_hosts(o, &reach, job, work, progress, out, e)
                                            : here(o, out, e);
    fleet_reach_fini(&reach);
    return rc;
}

static int cluster_attach_here(const struct cli_options *o, struct strbuf *out, struct err *e) {
    struct cluster c;
    cli_defer_signals();
    int rc = cluster_open(&c, o, false, e);
    if (rc == 0)
        cluster_note_missing(c.job);
    if (rc == 0)
        rc = cluster_work(&c, job_attach, job_attached, "attaching", "attached to", out, e);
    cluster_close(&c);
    return rc;
}

static int cluster_attach_exec(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                               struct err *e) {
    (void)addr;
    return cluster_change(o, REPORT_ATTACH, "attaching", cluster_attach_here, out, e);
}

static int cluster_detach_here(const struct cli_options *o, struct strbuf *out, struct err *e) {
    struct cluster c;
    int rc = cluster_open(&c, o, false, e);
    if (rc == 0)
        rc = cluster_work(&c, job_detach, job_detached, "ejecting", "detached from", out, e);
    cluster_close(&c);
    return rc;
}

static int cluster_detach_exec(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                               struct err *e) {
    (void)addr;
    return cluster_change(o, REPORT_DETACH, "ejecting", cluster_detach_here, out, e);
}

/* ---- verbs ---- */

const struct cli_verb verb_cluster_nodes = {
    .name = "cluster nodes",
    .noun = "cluster",
    .group = "Cluster",
    .help = "jobs of this machine: their ranks, and which are missing",
    .example = "probing cluster nodes",
    .takes_job = true,
    .takes_hosts = true,
    .options = cluster_options,
    .options_size = sizeof(struct cluster_options),
    .exec = cluster_nodes_exec,
};

const struct cli_verb verb_cluster_ranks = {
    .name = "cluster ranks",
    .noun = "cluster",
    .group = "Cluster",
    .help = "the ranks of a job: their processes, what they do and where, whether they have an agent",
    .example = "probing cluster ranks",
    .takes_job = true,
    .takes_hosts = true,
    .options = cluster_options,
    .more = cluster_ranks_options,
    .options_size = sizeof(struct cluster_options),
    .options_default = &cluster_ranks_default,
    .exec = cluster_ranks_exec,
};

const struct cli_verb verb_cluster_attach = {
    .name = "cluster attach",
    .noun = "cluster",
    .group = "Cluster",
    .help = "load the agent into every rank of a job",
    .example = "probing cluster attach job:4242",
    .takes_job = true,
    .takes_hosts = true,
    .changes = true,
    .options = cluster_options,
    .options_size = sizeof(struct cluster_options),
    .exec = cluster_attach_exec,
};

const struct cli_verb verb_cluster_detach = {
    .name = "cluster detach",
    .noun = "cluster",
    .group = "Cluster",
    .help = "remove the agent from every rank of a job",
    .example = "probing cluster detach job:4242",
    .takes_job = true,
    .takes_hosts = true,
    .changes = true,
    .options = cluster_options,
    .options_size = sizeof(struct cluster_options),
    .exec = cluster_detach_exec,
};
