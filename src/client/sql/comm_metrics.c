/* SPDX-License-Identifier: Apache-2.0 */
/* comm_metrics: see comm_metrics.h. */
#include "client/sql/comm_metrics.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/strbuf.h"
#include "client/sql/arrivals.h"

#define COMM_METRICS "comm_metrics"
#define COMM_METRICS_OPS 1024
#define COMM_METRICS_TEXT 128
#define COMM_METRICS_HOST 256
#define COMM_METRICS_HOSTS 4096
#define COMM_METRICS_PIECE ((size_t)64 * 1024) /* of a statement that writes */
#define COMM_METRICS_EVER_S 1e18               /* before any collective */

static const struct sql_column_info comm_columns[] = {
    {"timestamp", "s", "when src_rank entered it, in seconds since the epoch, UTC", RING_TIMESTAMP},
    {"src_rank", "", "the rank whose row it is", RING_INT64},
    {"dst_rank", "",
     "whom it waited for: the peer of a send or receive; of a collective the rank that entered it "
     "last, which may be src_rank; NULL: unknown, as with one target",
     RING_INT64},
    {"op", "", "all_reduce, broadcast, ...", RING_TEXT},
    {"bytes", "bytes", "bytes of its inputs; NULL: not reported", RING_INT64},
    {"latency_ms", "ms",
     "from its entering to that of dst_rank, 0 of the last one; where that rank is unknown, how long "
     "the collective took; NULL: unknown",
     RING_DOUBLE},
    {"step", "", "the training step, as in python.collectives", RING_INT64},
    {"pg", "", "name of the process group; NULL: not reported", RING_TEXT},
};

void comm_metrics_info(struct sql_table_info *out) {
    *out = (struct sql_table_info){.name = COMM_METRICS,
                                   .alias = "",
                                   .help = "a collective that has ended, in one rank: whom it waited for, "
                                           "and how long; of python.collectives",
                                   .cost = RING_COST_NOW,
                                   .oldest = NAN,
                                   .newest = NAN,
                                   .columns = comm_columns,
                                   .n_columns = sizeof comm_columns / sizeof comm_columns[0]};
}

/* ---- what is compared ---- */

struct comm_process {
    int64_t pid, rank;
};

/* A host that a recording of a job knows the clock of. */
struct comm_clock {
    char host[COMM_METRICS_HOST];
    double ahead_s;
};

struct comm_rows {
    struct arrival *arrivals;
    int64_t *seqs; /* of each */
    size_t n, cap;
    struct comm_process processes[ARRIVALS_RANKS];
    uint32_t n_processes;
    char ops[COMM_METRICS_OPS][COMM_METRICS_TEXT];
    uint32_t n_ops;
    char host[COMM_METRICS_HOST]; /* of the row before */
    double ahead_s;  /* so much its clock is ahead of the recorder's; 0: by less than the error, or unknown */
    bool is_unknown; /* its clock */
    struct comm_clock *clocks;
    size_t n_clocks;
    bool incomparable; /* hosts with different clocks, or too many processes or operations */
};

static uint32_t comm_find_process(struct comm_rows *rows, int64_t pid, int64_t rank) {
    uint32_t i = rows->n_processes; /* rows of one process follow each other */
    while (i > 0 && (rows->processes[i - 1].pid != pid || rows->processes[i - 1].rank != rank))
        i--;
    if (i > 0)
        return i - 1;
    if (rows->n_processes == ARRIVALS_RANKS) {
        rows->incomparable = true;
        return 0;
    }
    rows->processes[rows->n_processes] = (struct comm_process){pid, rank};
    return rows->n_processes++;
}

static uint32_t comm_find_op(struct comm_rows *rows, const char *op) {
    uint32_t i = 0;
    while (i < rows->n_ops && strncmp(rows->ops[i], op, COMM_METRICS_TEXT - 1) != 0)
        i++;
    if (i < rows->n_ops)
        return i;
    if (rows->n_ops == COMM_METRICS_OPS) {
        rows->incomparable = true;
        return 0;
    }
    memcpy(rows->ops[i], op, strnlen(op, COMM_METRICS_TEXT - 1));
    return rows->n_ops++;
}

/* 0, or -1 without memory. */
static int comm_grow(struct comm_rows *rows) {
    if (rows->n < rows->cap)
        return 0;
    size_t cap = rows->cap ? 2 * rows->cap : 4096;
    struct arrival *arrivals = realloc(rows->arrivals, cap * sizeof *arrivals);
    if (arrivals)
        rows->arrivals = arrivals;
    int64_t *seqs = realloc(rows->seqs, cap * sizeof *seqs);
    if (seqs)
        rows->seqs = seqs;
    if (!arrivals || !seqs)
        return -1;
    rows->cap = cap;
    return 0;
}

/* The clocks of the hosts of a recorded job; none where the recording has no hosts. */
static void comm_read_clocks(struct sql *s, struct comm_rows *rows) {
    static const struct sql_query limited = {.max_rows = COMM_METRICS_HOSTS};
    struct err e = {.text = ""};
    struct sql_result *r = sql_begin(s,
                                     "SELECT host, iif(abs(clock_offset_ms) > clock_error_ms, "
                                     "clock_offset_ms, 0) FROM cluster.nodes WHERE host IS NOT NULL AND "
                                     "clock_offset_ms IS NOT NULL AND clock_error_ms IS NOT NULL",
                                     &limited, NULL, NULL, &e);
    rows->clocks = r ? calloc(COMM_METRICS_HOSTS, sizeof *rows->clocks) : NULL;
    while (rows->clocks && rows->n_clocks < COMM_METRICS_HOSTS && sql_next(r, &e) > 0) {
        size_t len;
        const char *host = sql_result_text(r, 0, &len);
        struct comm_clock *c = &rows->clocks[rows->n_clocks];
        c->ahead_s = sql_result_real(r, 1) / 1e3;
        if (!host || len >= sizeof c->host || !isfinite(c->ahead_s))
            continue;
        memcpy(c->host, host, len);
        rows->n_clocks++;
    }
    if (r)
        sql_end(r);
}

/* The next row is of that host. */
static void comm_take_host(struct comm_rows *rows, const char *host, bool one_clock) {
    bool differs = strncmp(host, rows->host, sizeof rows->host - 1) != 0;
    if (rows->n && (!differs || one_clock))
        return;
    size_t i = 0;
    while (i < rows->n_clocks && strcmp(rows->clocks[i].host, host) != 0)
        i++;
    /* of one host alone the clock does not matter */
    rows->incomparable |= rows->n && (i == rows->n_clocks || rows->is_unknown);
    rows->is_unknown = i == rows->n_clocks;
    rows->ahead_s = i < rows->n_clocks ? rows->clocks[i].ahead_s : 0;
    snprintf(rows->host, sizeof rows->host, "%s", host);
}

#define COMM_METRICS_COMPARED                                                                                \
    " FROM python.collectives WHERE state = 'done' AND NOT p2p AND duration_ms IS NOT NULL AND rank IS NOT " \
    "NULL AND op IS NOT NULL"

/* Read the rows that began after `from_s`, at most `most`. 1: there are more, which may be all of some ranks;
 * 0, or -1. */
static int comm_read(struct sql *s, struct comm_rows *rows, bool one_clock, double from_s, uint64_t most) {
    const struct sql_named from = {":from", from_s};
    const struct sql_query limited = {.max_rows = most, .named = &from, .n_named = 1};
    struct err e = {.text = ""};
    int rc;
    struct sql_result *r =
        sql_begin(s,
                  "SELECT pid, rank, seq, timestamp, duration_ms, op || '/' || coalesce(pg, ''), "
                  "coalesce(host, '')" COMM_METRICS_COMPARED " AND timestamp > :from",
                  &limited, NULL, NULL, &e);
    if (!r)
        return -1;
    rows->n = rows->n_processes = rows->n_ops = 0;
    memset(rows->ops, 0, sizeof rows->ops);
    while ((rc = sql_next(r, &e)) > 0 && !rows->incomparable) {
        size_t len;
        const char *op = sql_result_text(r, 5, &len), *host = sql_result_text(r, 6, &len);
        if (!op || !host || comm_grow(rows) != 0) {
            rc = -1;
            break;
        }
        comm_take_host(rows, host, one_clock);
        double begin = sql_result_real(r, 3) - rows->ahead_s;
        rows->seqs[rows->n] = sql_result_int(r, 2);
        rows->arrivals[rows->n++] =
            (struct arrival){.rank = comm_find_process(rows, sql_result_int(r, 0), sql_result_int(r, 1)),
                             .op = comm_find_op(rows, op),
                             .begin = begin,
                             .end = begin + sql_result_real(r, 4) / 1e3};
    }
    bool more = rc == 0 && sql_result_truncated(r);
    sql_end(r);
    return rc < 0 ? -1 : more;
}

/* When the first of the newest `n` rows began; NAN: unknown. */
static double comm_find_newest(struct sql *s, uint64_t n) {
    const struct sql_named skip = {":skip", (double)n};
    const struct sql_query one = {.max_rows = 1, .named = &skip, .n_named = 1};
    struct err e = {.text = ""};
    struct sql_result *r =
        sql_begin(s, "SELECT timestamp" COMM_METRICS_COMPARED " ORDER BY timestamp DESC LIMIT 1 OFFSET :skip",
                  &one, NULL, NULL, &e);
    double at = r && sql_next(r, &e) > 0 ? sql_result_real(r, 0) : NAN;
    sql_end(r);
    return at;
}

/* Read all, or of too many the newest: rows come rank by rank, and without those of some ranks another would be
 * the last. Whether they can be compared; `*why` says what cannot. */
static bool comm_read_newest(struct sql *s, struct comm_rows *rows, bool one_clock, uint64_t most,
                             const char **why) {
    int rc = comm_read(s, rows, one_clock, -COMM_METRICS_EVER_S, most);
    if (rc > 0) {
        *why = COMM_METRICS ": too many collectives: whom older ones waited for is unknown";
        /* more may come meanwhile */
        double from_s = comm_find_newest(s, most - most / 8);
        rc = isnan(from_s) ? -1 : comm_read(s, rows, one_clock, from_s, most);
    }
    return rc == 0 && !rows->incomparable;
}

/* Write who came last, where that is known. */
static void comm_write(struct sql *s, const struct comm_rows *rows) {
    struct strbuf text;
    size_t i = 0;
    int rc = 0;
    while (rc == 0 && i < rows->n) {
        size_t put = 0;
        strbuf_init(&text, 0);
        strbuf_adds(&text, "INSERT OR REPLACE INTO temp.probing_arrivals VALUES ");
        for (; i < rows->n && text.len < COMM_METRICS_PIECE; i++) {
            const struct arrival *a = &rows->arrivals[i];
            if (a->last < 0)
                continue;
            const struct arrival *last = &rows->arrivals[a->last];
            strbuf_addf(&text, "%s(%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%.6f)", put++ ? "," : "",
                        rows->processes[a->rank].pid, rows->processes[a->rank].rank, rows->seqs[i],
                        rows->processes[last->rank].rank, (last->begin - a->begin) * 1e3);
        }
        rc = put ? sql_execute(s, strbuf_str(&text)) : 0;
        strbuf_fini(&text);
    }
}

/* True if the text contains the name. If that is in a string, the view is made needlessly. */
static bool comm_is_asked_for(const char *text) { return strcasestr(text, COMM_METRICS) != NULL; }

const char *comm_metrics_make(struct sql *s, const char *text, size_t targets, enum comm_clocks clocks,
                              uint64_t most) {
    const char *why = NULL;
    if (!comm_is_asked_for(text))
        return NULL;
    struct comm_rows *rows = calloc(1, sizeof *rows);
    if (sql_execute(s, "DROP VIEW IF EXISTS temp." COMM_METRICS) != 0 ||
        sql_execute(s, "DROP TABLE IF EXISTS temp.probing_arrivals") != 0 ||
        sql_execute(s, "CREATE TEMP TABLE probing_arrivals(pid INTEGER, rank INTEGER, seq INTEGER, dst_rank "
                       "INTEGER, wait_ms REAL, PRIMARY KEY(pid, rank, seq)) WITHOUT ROWID") != 0 ||
        !rows) {
        free(rows);
        return NULL;
    }
    if (clocks == COMM_CLOCKS_RECORDED)
        comm_read_clocks(s, rows);
    /* of one rank the last is unknown, and where some that are read have no rows */
    if (targets != 1 && comm_read_newest(s, rows, clocks == COMM_CLOCKS_ONE, most, &why) &&
        (targets == 0 || rows->n_processes == targets) &&
        arrivals_match(rows->arrivals, rows->n, rows->n_processes) == 0)
        comm_write(s, rows);
    free(rows->arrivals);
    free(rows->seqs);
    free(rows->clocks);
    free(rows);
    sql_execute(
        s, "CREATE TEMP VIEW " COMM_METRICS
           " AS SELECT c.rank, c.host, c.pid, c.timestamp, c.rank AS src_rank, coalesce(c.peer, "
           "a.dst_rank) AS dst_rank, c.op, c.bytes, coalesce(a.wait_ms, c.duration_ms) AS latency_ms, "
           "c.step, c.pg FROM python.collectives AS c LEFT JOIN temp.probing_arrivals AS a ON a.pid = c.pid "
           "AND a.rank = c.rank AND a.seq = c.seq WHERE c.state = 'done'");
    return why;
}
