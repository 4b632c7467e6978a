/* SPDX-License-Identifier: Apache-2.0 */
/* verb_memory: memory of a target from its tables: now, the maximum, and the trend. */
#include "cli/memory_trace.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/memory_gpu.h"
#include "client/sql/result.h"

#define MEMORY_SCHEMA_VERSION 1
#define MEMORY_MIB (1024.0 * 1024.0)
#define MEMORY_WINDOW "600" /* seconds over which the trend is computed */
#define MEMORY_TREND_S 10.0 /* the shortest time for a trend */
#define MEMORY_QUERY_S 20.0
#define MEMORY_LABEL 16

/* The newest row of each target, the maximum of the last ten minutes, and its cgroup. The shared
 * part is measured less often than the rest: this is its last known value. */
static const char memory_history[] =
    "SELECT m.pid AS pid, m.rank AS rank, m.host AS host, m.timestamp AS timestamp, m.memory_mb AS memory_mb,"
    " m.rss_mb AS rss_mb, m.gpu_allocated_mb AS gpu_allocated_mb, m.gpu_reserved_mb AS gpu_reserved_mb,"
    " m.gc_objects AS gc_objects, t.most AS max_memory_mb, t.slope AS trend_mb_per_min, t.span AS "
    "trend_over_s,"
    " s.pss_bytes AS pss_bytes, p.swap_bytes AS swap_bytes, p.cgroup_memory_bytes AS cgroup_memory_bytes,"
    " p.cgroup_limit_bytes AS cgroup_limit_bytes"
    " FROM (SELECT *, max(timestamp) FROM python.memory GROUP BY host, pid) m"
    " JOIN (SELECT host, pid, max(memory_mb) AS most, 60 * regr_slope(memory_mb, timestamp) AS slope,"
    "  max(timestamp) - min(timestamp) AS span FROM python.memory WHERE timestamp > now() - " MEMORY_WINDOW
    "  GROUP BY host, pid) t ON t.pid = m.pid AND t.host IS m.host"
    " LEFT JOIN (SELECT *, max(timestamp) FROM system.process_history GROUP BY host, pid) p"
    "  ON p.pid = m.pid AND p.host IS m.host"
    " LEFT JOIN (SELECT host, pid, pss_bytes, max(timestamp) FROM system.process_history"
    "  WHERE pss_bytes IS NOT NULL AND timestamp > now() - " MEMORY_WINDOW
    "  GROUP BY host, pid) s ON s.pid = m.pid AND s.host IS m.host"
    " ORDER BY m.rank, m.host, m.pid";

/* The kernel's current values, where nothing is collected. */
static const char memory_now[] =
    "SELECT pid, rank, host, now() AS timestamp, NULL AS memory_mb, rss_mb, NULL AS gpu_allocated_mb,"
    " NULL AS gpu_reserved_mb, NULL AS gc_objects, NULL AS max_memory_mb, NULL AS trend_mb_per_min,"
    " NULL AS trend_over_s, NULL AS pss_bytes, NULL AS swap_bytes, NULL AS cgroup_memory_bytes,"
    " NULL AS cgroup_limit_bytes FROM system.process ORDER BY rank, host, pid";

/* Columns of both queries. */
enum memory_column {
    MEMORY_PID = 0,
    MEMORY_RANK,
    MEMORY_HOST,
    MEMORY_TIMESTAMP,
    MEMORY_ALL,
    MEMORY_RSS,
    MEMORY_GPU_ALLOCATED,
    MEMORY_GPU_RESERVED,
    MEMORY_GC_OBJECTS,
    MEMORY_MOST,
    MEMORY_TREND,
    MEMORY_TREND_S_COLUMN,
    MEMORY_PSS,
    MEMORY_SWAP,
    MEMORY_CGROUP,
    MEMORY_CGROUP_LIMIT
};

static struct result *memory_ask(struct database *d, const char *text, struct err *e) {
    const struct sql_query q = {.timeout_s = MEMORY_QUERY_S};
    return database_take(d, text, &q, RESULT_BYTES, e);
}

/* The growth; unknown while the history is too short. */
static double memory_trend(const struct result *rows, size_t row) {
    return result_number(rows, row, MEMORY_TREND_S_COLUMN) >= MEMORY_TREND_S
               ? result_number(rows, row, MEMORY_TREND)
               : NAN;
}

static void memory_put_json(const struct result *rows, struct strbuf *out) {
    struct json j;
    json_init(&j, out, 2);
    json_object_begin(&j);
    json_kv_int(&j, "schema_version", MEMORY_SCHEMA_VERSION);
    json_key(&j, "targets");
    json_array_begin(&j);
    for (size_t row = 0; row < rows->n_rows; row++) {
        json_object_begin(&j);
        for (size_t i = 0; i < rows->n_columns; i++) {
            struct result_cell c = result_at(rows, row, i);
            json_key(&j, rows->columns[i].name);
            if (i == MEMORY_TREND)
                json_number(&j, memory_trend(rows, row), 3);
            else if (c.kind == SQL_INTEGER)
                json_int(&j, c.i);
            else if (c.kind == SQL_REAL)
                json_number(&j, c.f, 3);
            else
                json_string(&j, result_string(rows, row, i));
        }
        json_object_end(&j);
    }
    json_array_end(&j);
    json_object_end(&j);
    strbuf_addc(out, '\n');
}

static void memory_put_size(struct strbuf *out, const char *label, double bytes, const char *what) {
    char size[32] = "unknown";
    if (!isnan(bytes))
        text_human_bytes(size, sizeof size, bytes);
    strbuf_addf(out, "  %-*s %-12s %s\n", MEMORY_LABEL, label, size, what);
}

static void memory_put_trend(struct strbuf *out, const struct result *rows, size_t row) {
    char span[32];
    double trend = memory_trend(rows, row);
    if (isnan(trend)) {
        strbuf_addf(out, "  %-*s %-12s %s\n", MEMORY_LABEL, "trend", "unknown", "not enough history yet");
        return;
    }
    text_human_duration(span, sizeof span, result_number(rows, row, MEMORY_TREND_S_COLUMN));
    strbuf_addf(out, "  %-*s %+.2f MiB a minute, over %s\n", MEMORY_LABEL, "trend", trend, span);
}

/* Nothing if it is unknown: most jobs have no GPU, and no agent reads torch's allocator yet. */
static void memory_put_gpu(struct strbuf *out, const struct result *rows, size_t row) {
    double tensors = result_number(rows, row, MEMORY_GPU_ALLOCATED) * MEMORY_MIB,
           reserved = result_number(rows, row, MEMORY_GPU_RESERVED) * MEMORY_MIB;
    if (!isnan(tensors))
        memory_put_size(out, "GPU tensors", tensors, "");
    if (!isnan(reserved))
        memory_put_size(out, "GPU reserved", reserved, "by torch's allocator");
}

static void memory_put_text(const struct result *rows, struct strbuf *out) {
    for (size_t row = 0; row < rows->n_rows; row++) {
        char host[256], limit[64] = "";
        const char *name = result_string(rows, row, MEMORY_HOST);
        struct result_cell rank = result_at(rows, row, MEMORY_RANK);
        double most = result_number(rows, row, MEMORY_CGROUP_LIMIT),
               objects = result_number(rows, row, MEMORY_GC_OBJECTS);
        text_sanitize(host, sizeof host, name ? name : "?");
        strbuf_addf(out, "%sProcess %" PRId64 " on %s", row ? "\n" : "", result_at(rows, row, MEMORY_PID).i,
                    host);
        if (rank.kind == SQL_INTEGER)
            strbuf_addf(out, ", rank %" PRId64, rank.i);
        strbuf_addc(out, '\n');
        memory_put_size(out, "memory", result_number(rows, row, MEMORY_ALL) * MEMORY_MIB,
                        "in RAM and swapped out");
        memory_put_size(out, "in RAM", result_number(rows, row, MEMORY_RSS) * MEMORY_MIB, "");
        memory_put_size(out, "its share", result_number(rows, row, MEMORY_PSS),
                        "in RAM, shared pages divided among their users");
        memory_put_size(out, "at most", result_number(rows, row, MEMORY_MOST) * MEMORY_MIB,
                        "in the last 10 minutes");
        memory_put_trend(out, rows, row);
        memory_put_gpu(out, rows, row);
        if (isnan(objects))
            strbuf_addf(out, "  %-*s unknown\n", MEMORY_LABEL, "Python objects");
        else
            strbuf_addf(out, "  %-*s %-12.0f that the last full garbage collection left\n", MEMORY_LABEL,
                        "Python objects", objects);
        if (!isnan(most)) {
            char size[32];
            text_human_bytes(size, sizeof size, most);
            snprintf(limit, sizeof limit, "of %s that it may use", size);
        } else if (result_kind(rows, row, MEMORY_CGROUP) != SQL_NULL) {
            snprintf(limit, sizeof limit, "without a limit");
        }
        memory_put_size(out, "cgroup", result_number(rows, row, MEMORY_CGROUP), limit);
    }
}

static int memory_exec(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                       struct err *e) {
    const struct memory_options *mine = (const struct memory_options *)(const void *)o;
    struct database *d;
    if (mine->trace && mine->gpu)
        return err_set(e, ERR_USAGE, "--trace and --gpu exclude each other");
    if (mine->trace)
        return memory_trace_exec(mine, addr, out, e);
    if (mine->duration_s > 0 || mine->every > 0)
        return err_set(e, ERR_USAGE, "--seconds and --every need --trace");
    if (mine->top > 0 && !mine->gpu)
        return err_set(e, ERR_USAGE, "--top needs --trace or --gpu");
    if (cli_open_database(o, addr, mine->read.no_inject, &d, e) != 0)
        return -1;
    struct result *rows = memory_ask(d, mine->gpu ? memory_gpu_query : memory_history, e);
    if (rows && rows->n_rows == 0 && !mine->gpu && !database_is_recorded(d)) {
        result_unref(rows);
        rows = memory_ask(d, memory_now, e);
    }
    int rc = rows ? 0 : -1;
    if (rows && mine->gpu && o->json)
        memory_gpu_put_json(rows, out);
    else if (rows && mine->gpu)
        memory_gpu_put_text(rows, mine->top > 0 ? mine->top : MEMORY_TOP, out);
    else if (rows && o->json)
        memory_put_json(rows, out);
    else if (rows)
        memory_put_text(rows, out);
    if (rows)
        cli_note_database(d);
    result_unref(rows);
    database_close(d);
    return rc;
}

static const struct option_def memory_options[] = {
    {"no-inject", 0, OPTION_FLAG, offsetof(struct memory_options, read.no_inject),
     .help = "do not load the agent: read the process from outside"},
    {"trace", 0, OPTION_FLAG, offsetof(struct memory_options, trace),
     .help = "trace allocations for some seconds: where they are made and which ones stay"},
    {"gpu", 0, OPTION_FLAG, offsetof(struct memory_options, gpu),
     .help = "what torch's allocator holds on GPUs now, and the lines that allocated it"},
    {"seconds", 0, OPTION_SECONDS, offsetof(struct memory_options, duration_s), .arg = "TIME",
     .help = "trace for TIME, or until ^C (10s)", .min = 0.1, .max = 86400},
    {"every", 0, OPTION_BYTES, offsetof(struct memory_options, every), .arg = "BYTES",
     .help = "mean distance between two samples (probing.memory_every, 512K)", .min = 1024,
     .max = 1099511627776},
    {"top", 0, OPTION_INT, offsetof(struct memory_options, top), .arg = "N", .help = "print N places (20)",
     .min = 1, .max = 100000},
    {.name = NULL},
};

const struct cli_verb verb_memory = {
    .name = "memory",
    .group = "Look",
    .help = "memory now and its history",
    .example = "probing 4242 memory",
    .needs_target = true,
    .many_targets = true,
    .options = memory_options,
    .options_size = sizeof(struct memory_options),
    .exec = memory_exec,
};
