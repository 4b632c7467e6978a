/* SPDX-License-Identifier: Apache-2.0 */
/* job_rows: see job_rows.h. One row of a list of columns is one column. */
#include "client/fleet/job_rows.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/model.h"
#include "base/procfs.h"
#include "base/text.h"
#include "client/fleet/fleet_text.h"

#define JOB_ROWS_MISSING 1024 /* rows for missing ranks; a job may be promised a million */
#define JOB_ROWS_RANGES 64    /* of a set of ranks in a cell */
#define JOB_ROWS_MIB (1024.0 * 1024.0)

/* What a row is about. */
struct job_row {
    const struct jobs_here *here;
    const struct job *job;
    const struct job_member *member; /* NULL: a missing rank, or a row of the whole job */
    const struct job_task *task;
    const char *done;          /* of the task */
    const struct fleet *fleet; /* NULL: what the ranks do was not read */
    int32_t rank;
    char host[256];
};

struct job_column {
    const char *name, *type;
    void (*put)(struct result *r, size_t column, const struct job_row *row);
};

static void job_rows_text(struct result *r, size_t column, const char *text) {
    if (text && text[0])
        result_put_text(r, column, SQL_TEXT, text, strlen(text));
}

static const struct target_process *job_rows_process(const struct job_row *row) {
    return row->member ? jobs_here_process(row->here, row->member) : NULL;
}

/* ---- columns of all ---- */

static void job_rows_host(struct result *r, size_t c, const struct job_row *row) {
    job_rows_text(r, c, row->host);
}

static void job_rows_job(struct result *r, size_t c, const struct job_row *row) {
    job_rows_text(r, c, row->job->name);
}

static void job_rows_source(struct result *r, size_t c, const struct job_row *row) {
    job_rows_text(r, c, row->job->source->name);
}

/* ---- of a job on a host ---- */

static void job_rows_via(struct result *r, size_t c, const struct job_row *row) {
    (void)row;
    job_rows_text(r, c, "local");
}

static void job_rows_node_state(struct result *r, size_t c, const struct job_row *row) {
    job_rows_text(r, c, row->job->missing.n ? "ranks missing" : "ok");
}

static void job_rows_set(struct result *r, size_t c, const struct rank_set *set) {
    struct strbuf text;
    strbuf_init(&text, 0);
    rank_set_put(set, JOB_ROWS_RANGES, &text);
    job_rows_text(r, c, strbuf_str(&text));
    strbuf_fini(&text);
}

static void job_rows_here(struct result *r, size_t c, const struct job_row *row) {
    job_rows_set(r, c, &row->job->here);
}

static void job_rows_missing(struct result *r, size_t c, const struct job_row *row) {
    job_rows_set(r, c, &row->job->missing);
}

static void job_rows_elsewhere(struct result *r, size_t c, const struct job_row *row) {
    job_rows_set(r, c, &row->job->elsewhere);
}

static void job_rows_world(struct result *r, size_t c, const struct job_row *row) {
    if (row->job->world)
        result_put_int(r, c, row->job->world);
}

static void job_rows_launcher(struct result *r, size_t c, const struct job_row *row) {
    for (size_t i = 0; i < row->job->n_members; i++)
        if (row->job->members[i].role == JOB_LAUNCHER) {
            result_put_int(r, c, row->job->members[i].pid);
            return;
        }
}

static void job_rows_restarts(struct result *r, size_t c, const struct job_row *row) {
    result_put_int(r, c, row->job->restarts);
}

static void job_rows_user(struct result *r, size_t c, const struct job_row *row) {
    char user[64];
    target_user_name(row->job->uid, user, sizeof user);
    job_rows_text(r, c, user);
}

/* Processes that have a rank of the job, and are not that rank. */
static void job_rows_node_note(struct result *r, size_t c, const struct job_row *row) {
    struct strbuf text;
    strbuf_init(&text, RESULT_CELL);
    for (size_t i = row->job->n_ranks; i < row->job->n_members; i++) {
        const struct job_member *m = &row->job->members[i];
        const char *end = text.len ? "; " : "";
        if (m->role == JOB_OLD)
            strbuf_addf(&text, "%sprocess %d is rank %d from before the restart", end, (int)m->pid, m->rank);
        else if (m->role == JOB_DOUBLE)
            strbuf_addf(&text, "%sprocess %d claims rank %d, too", end, (int)m->pid, m->rank);
    }
    job_rows_text(r, c, strbuf_str(&text));
    strbuf_fini(&text);
}

static const struct job_column job_rows_node_columns[] = {
    {"job", "text", job_rows_job},
    {"host", "text", job_rows_host},
    {"via", "text", job_rows_via},
    {"state", "text", job_rows_node_state},
    {"ranks", "text", job_rows_here},
    {"missing", "text", job_rows_missing},
    {"elsewhere", "text", job_rows_elsewhere},
    {"world", "integer", job_rows_world},
    {"found_by", "text", job_rows_source},
    {"launcher", "integer", job_rows_launcher},
    {"restarts", "integer", job_rows_restarts},
    {"user", "text", job_rows_user},
    {"note", "text", job_rows_node_note},
    {0},
};

/* ---- of a rank ---- */

static void job_rows_rank(struct result *r, size_t c, const struct job_row *row) {
    result_put_int(r, c, row->rank);
}

static void job_rows_pid(struct result *r, size_t c, const struct job_row *row) {
    if (row->member)
        result_put_int(r, c, row->member->pid);
}

static void job_rows_local(struct result *r, size_t c, const struct job_row *row) {
    const struct target_process *p = job_rows_process(row);
    if (p && p->env.local >= 0)
        result_put_int(r, c, p->env.local);
}

static void job_rows_state(struct result *r, size_t c, const struct job_row *row) {
    struct procfs_stat st;
    const char *state = "alive";
    if (!row->member)
        state = "missing";
    else if (row->member->role != JOB_RANK)
        state = job_role_name(row->member->role);
    else if (procfs_read_stat(row->member->pid, 0, &st) != 0 || st.state == 'Z' || st.state == 'X')
        state = "ended";
    else if (st.state == 'T' || st.state == 't')
        state = "stopped";
    job_rows_text(r, c, state);
}

static void job_rows_agent(struct result *r, size_t c, const struct job_row *row) {
    const struct target_process *p = job_rows_process(row);
    if (p)
        job_rows_text(r, c,
                      p->held          ? "no answer"
                      : p->attached    ? "yes"
                      : p->inspectable ? "no"
                      : p->readable    ? "outside"
                                       : "refused");
}

static void job_rows_python(struct result *r, size_t c, const struct job_row *row) {
    const struct target_process *p = job_rows_process(row);
    job_rows_text(r, c, p ? p->python : NULL);
}

static void job_rows_torch(struct result *r, size_t c, const struct job_row *row) {
    const struct target_process *p = job_rows_process(row);
    job_rows_text(r, c, p ? p->torch : NULL);
}

static void job_rows_cpu(struct result *r, size_t c, const struct job_row *row) {
    const struct target_process *p = job_rows_process(row);
    if (p)
        result_put_real(r, c, isnan(p->cpu_pct) ? NAN : round(p->cpu_pct * 10) / 10);
}

static void job_rows_rss(struct result *r, size_t c, const struct job_row *row) {
    const struct target_process *p = job_rows_process(row);
    if (p && p->rss_bytes != MODEL_UNKNOWN)
        result_put_real(r, c, round((double)p->rss_bytes / JOB_ROWS_MIB * 10) / 10);
}

static void job_rows_uptime(struct result *r, size_t c, const struct job_row *row) {
    const struct target_process *p = job_rows_process(row);
    if (p)
        result_put_real(r, c, isnan(p->uptime_s) ? NAN : round(p->uptime_s * 10) / 10);
}

/* What a fleet knows of the rank of this process; NULL: nothing. */
static const struct fleet_rank *job_rows_fleet(const struct job_row *row) {
    const struct fleet_rank *r =
        row->fleet && row->member && row->member->role == JOB_RANK ? fleet_find(row->fleet, row->rank) : NULL;
    return r && r->pid == row->member->pid ? r : NULL;
}

/* Why no agent can be loaded into it, or why it could not be read now. */
static void job_rows_rank_note(struct result *r, size_t c, const struct job_row *row) {
    const struct target_process *p = job_rows_process(row);
    const struct fleet_rank *f = job_rows_fleet(row);
    job_rows_text(r, c,
                  !p              ? "WORLD_SIZE promises it, and no process of this host is it"
                  : p->why_not[0] ? p->why_not
                  : f             ? f->note
                                  : NULL);
}

static void job_rows_doing(struct result *r, size_t c, const struct job_row *row) {
    const struct fleet_rank *f = job_rows_fleet(row);
    if (f && f->state != FLEET_UNKNOWN)
        job_rows_text(r, c, fleet_state_word(f->state));
}

static void job_rows_since(struct result *r, size_t c, const struct job_row *row) {
    const struct fleet_rank *f = job_rows_fleet(row);
    if (f)
        result_put_real(r, c, round(fleet_age_s(row->fleet, f->since) * 10) / 10);
}

static void job_rows_step(struct result *r, size_t c, const struct job_row *row) {
    const struct fleet_rank *f = job_rows_fleet(row);
    if (f && f->step != REPORT_NO_INT)
        result_put_int(r, c, f->step);
}

static void job_rows_step_ms(struct result *r, size_t c, const struct job_row *row) {
    const struct fleet_rank *f = job_rows_fleet(row);
    if (f)
        result_put_real(r, c, round(f->step_ms * 10) / 10);
}

static void job_rows_own_ms(struct result *r, size_t c, const struct job_row *row) {
    const struct fleet_rank *f = job_rows_fleet(row);
    if (f)
        result_put_real(r, c, round(f->own_ms * 10) / 10);
}

static void job_rows_lag_ms(struct result *r, size_t c, const struct job_row *row) {
    const struct fleet_rank *f = job_rows_fleet(row);
    if (f)
        result_put_real(r, c, round(f->lag_ms * 10) / 10);
}

static void job_rows_where(struct result *r, size_t c, const struct job_row *row) {
    const struct fleet_rank *f = job_rows_fleet(row);
    struct strbuf text;
    strbuf_init(&text, RESULT_CELL);
    if (f)
        fleet_put_where(f, &text);
    job_rows_text(r, c, strbuf_str(&text));
    strbuf_fini(&text);
}

static const struct job_column job_rows_rank_columns[] = {
    {"rank", "integer", job_rows_rank},        {"host", "text", job_rows_host},
    {"pid", "integer", job_rows_pid},          {"job", "text", job_rows_job},
    {"local_rank", "integer", job_rows_local}, {"state", "text", job_rows_state},
    {"doing", "text", job_rows_doing},         {"since_s", "real", job_rows_since},
    {"step", "integer", job_rows_step},        {"step_ms", "real", job_rows_step_ms},
    {"own_ms", "real", job_rows_own_ms},       {"lag_ms", "real", job_rows_lag_ms},
    {"where", "text", job_rows_where},         {"agent", "text", job_rows_agent},
    {"python", "text", job_rows_python},       {"torch", "text", job_rows_torch},
    {"cpu_pct", "real", job_rows_cpu},         {"rss_mb", "real", job_rows_rss},
    {"uptime_s", "real", job_rows_uptime},     {"found_by", "text", job_rows_source},
    {"note", "text", job_rows_rank_note},      {0},
};

/* ---- of a rank that was worked on ---- */

static void job_rows_done(struct result *r, size_t c, const struct job_row *row) {
    job_rows_text(r, c, row->task ? row->done : "missing");
}

static void job_rows_stopped(struct result *r, size_t c, const struct job_row *row) {
    if (row->task && row->task->rc >= 0 && row->task->result.borrowed_tid)
        result_put_real(r, c, (double)row->task->result.stopped_us / 1000);
}

static void job_rows_total(struct result *r, size_t c, const struct job_row *row) {
    if (row->task && row->task->rc >= 0 && row->task->result.total_us)
        result_put_real(r, c, (double)row->task->result.total_us / 1000);
}

static void job_rows_endpoint(struct result *r, size_t c, const struct job_row *row) {
    if (row->task && row->task->rc >= 0)
        job_rows_text(r, c, row->task->result.endpoint);
}

static void job_rows_error(struct result *r, size_t c, const struct job_row *row) {
    if (!row->task)
        job_rows_rank_note(r, c, row);
    else if (row->task->rc < 0)
        job_rows_text(r, c, err_text(&row->task->error));
}

static const struct job_column job_rows_task_columns[] = {
    {"rank", "integer", job_rows_rank},   {"host", "text", job_rows_host},
    {"pid", "integer", job_rows_pid},     {"job", "text", job_rows_job},
    {"agent", "text", job_rows_done},     {"stopped_ms", "real", job_rows_stopped},
    {"total_ms", "real", job_rows_total}, {"endpoint", "text", job_rows_endpoint},
    {"note", "text", job_rows_error},     {0},
};

/* ---- rows ---- */

static struct result *job_rows_new(const struct job_column *columns) {
    size_t n = 0;
    while (columns[n].name)
        n++;
    struct result *r = result_new(n, SIZE_MAX, RESULT_BYTES);
    int rc = 0;
    for (size_t i = 0; r && i < n; i++)
        rc |= result_name_column(r, i, columns[i].name, columns[i].type);
    if (r && rc == 0)
        return r;
    result_unref(r);
    return NULL;
}

static void job_rows_add(struct result *r, const struct job_column *columns, const struct job_row *row) {
    if (result_add_row(r) != 0)
        return;
    for (size_t i = 0; columns[i].name; i++)
        columns[i].put(r, i, row);
}

static struct job_row job_rows_begin(const struct jobs_here *h) {
    struct job_row row = {.here = h};
    char host[sizeof row.host];
    if (gethostname(host, sizeof host) != 0)
        host[0] = '\0';
    host[sizeof host - 1] = '\0';
    text_sanitize(row.host, sizeof row.host, host);
    return row;
}

struct result *job_rows_nodes(const struct jobs_here *h, const struct job *only) {
    struct result *r = job_rows_new(job_rows_node_columns);
    struct job_row row = job_rows_begin(h);
    for (size_t i = 0; r && i < h->jobs.n; i++) {
        row.job = &h->jobs.items[i];
        if (!only || row.job == only)
            job_rows_add(r, job_rows_node_columns, &row);
    }
    return r;
}

/* Rows for the missing ranks from `first` to `last` - 1. */
static void job_rows_add_missing(struct result *r, const struct job_column *columns, struct job_row *row,
                                 int32_t first, int32_t last) {
    const struct rank_set *s = &row->job->missing;
    row->member = NULL;
    row->task = NULL;
    for (size_t i = 0; i < s->n; i++)
        for (int32_t rank = s->ranges[i].first; rank <= s->ranges[i].last && rank < last; rank++)
            if (rank >= first && r->n_rows < JOB_ROWS_MISSING) {
                row->rank = rank;
                job_rows_add(r, columns, row);
            }
}

static void job_rows_add_ranks(struct result *r, struct job_row *row, const struct rank_set *ranks) {
    int32_t next = 0;
    for (size_t i = 0; i < row->job->n_members; i++) {
        const struct job_member *m = &row->job->members[i];
        if (i < row->job->n_ranks && !ranks)
            job_rows_add_missing(r, job_rows_rank_columns, row, next, m->rank);
        else if (i == row->job->n_ranks && !ranks)
            job_rows_add_missing(r, job_rows_rank_columns, row, next, INT32_MAX);
        next = i < row->job->n_ranks ? m->rank + 1 : INT32_MAX;
        if (m->role == JOB_LAUNCHER || m->role == JOB_WORKER || (ranks && !rank_set_has(ranks, m->rank)))
            continue;
        row->member = m;
        row->rank = m->rank;
        job_rows_add(r, job_rows_rank_columns, row);
    }
    if (!ranks)
        job_rows_add_missing(r, job_rows_rank_columns, row, next, INT32_MAX);
}

struct result *job_rows_ranks(const struct jobs_here *h, const struct job *only, const struct rank_set *ranks,
                              const struct fleet *fleet) {
    struct result *r = job_rows_new(job_rows_rank_columns);
    struct job_row row = job_rows_begin(h);
    row.fleet = fleet;
    for (size_t i = 0; r && i < h->jobs.n; i++) {
        row.job = &h->jobs.items[i];
        if (!only || row.job == only)
            job_rows_add_ranks(r, &row, ranks);
    }
    return r;
}

struct result *job_rows_tasks(const struct jobs_here *h, const struct job *job, const struct job_task *tasks,
                              size_t n, const char *(*done)(const struct job_task *task)) {
    struct result *r = job_rows_new(job_rows_task_columns);
    struct job_row row = job_rows_begin(h);
    row.job = job;
    for (size_t i = 0; r && i < n; i++) {
        row.task = &tasks[i];
        row.done = done(&tasks[i]);
        row.rank = tasks[i].rank;
        row.member = jobs_member(&h->jobs, tasks[i].pid, NULL);
        job_rows_add(r, job_rows_task_columns, &row);
    }
    if (r)
        job_rows_add_missing(r, job_rows_task_columns, &row, 0, INT32_MAX);
    return r;
}
