/* SPDX-License-Identifier: Apache-2.0 */
/* verb_cluster_comm: the collectives of a job, by operation and group: how many, how long, and who
 * comes last to them. */
#include "cli/cli.h"

#include <unistd.h>

#include "client/fleet/tables_there.h"
#include "client/output.h"

#define COMM_LIMIT_S 60.0
#define COMM_JOB 512
#define COMM_BYTES ((size_t)16 * 1024 * 1024) /* of the answer */

struct comm_options {
    struct cli_options common; /* first */
    const char *format;
    bool no_inject;
};

static const char *comm_choose_format(int i) { return result_formats[i].name; }

static const struct option_def comm_options[] = {
    {"format", 0, OPTION_STRING, offsetof(struct comm_options, format), .arg = "FORMAT",
     .help = "table, json, ndjson or csv", .choice = comm_choose_format},
    {"no-inject", 0, OPTION_FLAG, offsetof(struct comm_options, no_inject),
     .help = "do not load the agent: only ranks that have one are read"},
    {.name = NULL},
};

/* The last ones: the three ranks that came last most often. */
static const char comm_query[] =
    "WITH c AS (SELECT op, pg, coalesce(host, '') || '/' || pid AS pid, seq, bytes, duration_ms, enqueue_ms, "
    "state FROM python.collectives),"
    " ended AS (SELECT op, coalesce(pg, '') AS grp, max(pg) AS pg, count(*) AS n,"
    "  count(DISTINCT pid) AS ranks, sum(bytes) AS bytes, avg(duration_ms) AS mean,"
    "  max(duration_ms) AS most, avg(enqueue_ms) AS enqueue FROM c WHERE state = 'done' GROUP BY 1, 2),"
    " going AS (SELECT op, grp, max(pg) AS pg, count(*) AS n, count(DISTINCT pid) AS ranks"
    "  FROM (SELECT op, coalesce(pg, '') AS grp, pg, pid FROM c"
    "   GROUP BY pid, seq HAVING max(state = 'done') = 0) GROUP BY 1, 2),"
    " waited AS (SELECT op, coalesce(pg, '') AS grp, avg(latency_ms) AS mean FROM comm_metrics"
    "  WHERE dst_rank IS NOT NULL AND src_rank <> dst_rank GROUP BY 1, 2),"
    " came AS (SELECT op, coalesce(pg, '') AS grp, dst_rank, count(*) AS n FROM comm_metrics"
    "  WHERE src_rank = dst_rank GROUP BY 1, 2, 3),"
    " ordered AS (SELECT *, sum(n) OVER (PARTITION BY op, grp) AS total,"
    "  row_number() OVER (PARTITION BY op, grp ORDER BY n DESC, dst_rank) AS place FROM came),"
    " named AS (SELECT op, grp, group_concat(printf('%d (%d %%)', dst_rank,"
    "  CAST(round(100.0 * n / total) AS INTEGER)), ', ') AS last"
    "  FROM (SELECT * FROM ordered WHERE place <= 3 ORDER BY op, grp, place) GROUP BY 1, 2),"
    " both AS (SELECT op, grp FROM ended UNION SELECT op, grp FROM going)"
    " SELECT b.op, coalesce(e.pg, g.pg) AS pg, coalesce(e.ranks, g.ranks) AS ranks,"
    "  coalesce(e.n, 0) AS count, coalesce(g.n, 0) AS open, e.bytes, round(e.mean, 3) AS mean_ms,"
    "  round(e.most, 3) AS max_ms, round(e.enqueue, 3) AS enqueue_ms, round(w.mean, 3) AS wait_ms, n.last"
    " FROM both AS b LEFT JOIN ended AS e ON e.op = b.op AND e.grp = b.grp"
    "  LEFT JOIN going AS g ON g.op = b.op AND g.grp = b.grp"
    "  LEFT JOIN waited AS w ON w.op = b.op AND w.grp = b.grp"
    "  LEFT JOIN named AS n ON n.op = b.op AND n.grp = b.grp"
    " ORDER BY coalesce(e.n * e.mean, 0) DESC, 1, 2";

static int comm_put(struct database *d, const struct tables_there *there, const struct result_format *f,
                    struct strbuf *out, struct err *e) {
    static const struct sql_query all = {.max_rows = 100000};
    int columns = f == &result_formats[0] ? output_columns() : 0;
    struct result *rows =
        database_refresh(d, e) == 0 ? database_take(d, comm_query, &all, COMM_BYTES, e) : NULL;
    if (!rows)
        return -1;
    if (columns > 0)
        result_put_fitted(rows, columns, out);
    else
        result_write(rows, f, isatty(STDOUT_FILENO), out);
    bool empty = rows->n_rows == 0;
    result_unref(rows);
    if (empty)
        output_say("probing: no collective of torch.distributed was seen; agents see those that begin after "
                   "they were loaded\n");
    else
        cli_note_database(d);
    if (there)
        cli_note_there(there);
    return 0;
}

/* Of the ranks on other hosts. */
static int comm_of_hosts(const struct cli_options *o, const struct fleet_reach *reach, const char *job,
                         const struct result_format *f, struct strbuf *out, struct err *e) {
    const struct comm_options *mine = (const struct comm_options *)(const void *)o;
    bool attach = !mine->no_inject && !o->readonly;
    struct tables_there *there = tables_there_new(job, reach, attach, COMM_LIMIT_S, e);
    struct database *d = there ? database_open(e) : NULL;
    int rc = d ? tables_there_add(there, d, e) : -1;
    if (rc == 0)
        rc = comm_put(d, there, f, out, e);
    if (rc != 0 && there)
        tables_there_explain(there, e);
    database_close(d);
    tables_there_free(there);
    return rc;
}

static int comm_exec(const struct cli_options *o, struct target_address *unused, struct strbuf *out,
                     struct err *e) {
    const struct comm_options *mine = (const struct comm_options *)(const void *)o;
    struct cli_options of = *o;
    struct cli_ranks ranks = {.addr = NULL};
    struct database *d = NULL;
    (void)unused;
    if (cli_check_format(o, mine->format, e) != 0)
        return -1;
    const struct result_format *f = result_find_format(o->json        ? "json"
                                                       : mine->format ? mine->format
                                                                      : result_formats[0].name,
                                                       e);
    struct fleet_reach reach;
    char job[COMM_JOB];
    if (!f)
        return -1;
    int rc = cli_read_reach(o, &reach, job, sizeof job, e);
    bool far = reach.hosts.n > 0;
    if (rc == 0)
        rc = far ? comm_of_hosts(o, &reach, job, f, out, e)
                 : cli_find_ranks(&ranks, o->targets.n ? o->targets.items[0] : "", e);
    fleet_reach_fini(&reach);
    if (rc == 0 && !far) {
        of.targets = ranks.targets;
        rc = cli_open_database(&of, ranks.addr, mine->no_inject, &d, e);
    }
    if (rc == 0 && !far)
        rc = comm_put(d, NULL, f, out, e);
    database_close(d);
    cli_ranks_fini(&ranks);
    return rc;
}

const struct cli_verb verb_cluster_comm = {
    .name = "cluster comm",
    .noun = "cluster",
    .group = "Cluster",
    .help = "collectives of a job by operation: how many, how long, who comes last to them",
    .example = "probing cluster comm job:4242",
    .takes_job = true,
    .takes_hosts = true,
    .options = comm_options,
    .options_size = sizeof(struct comm_options),
    .exec = comm_exec,
};
