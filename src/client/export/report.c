/* SPDX-License-Identifier: Apache-2.0 */
/* report: see report.h. Gathers everything, then one of the renderers writes it. */
#include "client/export/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mask.h"
#include "base/option.h"
#include "base/text.h"
#include "client/export/export_formats.h"
#include "client/session/call.h"

#define REPORT_SAMPLE_S 5.0
#define REPORT_COMMAND 512       /* bytes of the command line */
#define REPORT_TIMEOUT_S 10.0    /* for one table */
#define REPORT_SAMPLES_S 14400.0 /* of samples that explain slow steps */
#define REPORT_BYTES ((size_t)8 * 1024 * 1024)

#define REPORT_TAKES (EXPORT_TAKES_DURATION | EXPORT_TAKES_RATE)

/* ---- tables ---- */

/* Only what a client may read that has no right to values (wire/access.h): so not the texts of
 * events, which quote code, nor facts, which quote the environment. */
static const struct {
    const char *key, *title, *nothing, *sql;
} report_tables[REPORT_TABLES] = {
    [REPORT_FIGURES] =
        {"step_figures", "Steps", "no optimizer step was seen",
         "WITH s AS (SELECT * FROM python.steps ORDER BY timestamp DESC LIMIT 2000) SELECT "
         "* FROM (SELECT count(*) AS steps, max(step) AS newest_step, round(1000.0 * count(duration_ms) / "
         "sum(duration_ms), 3) AS steps_per_s, round(median(duration_ms), 3) AS median_ms, "
         "round(quantile(duration_ms, 0.9), 3) AS p90_ms, round(quantile(duration_ms, 0.99), "
         "3) AS p99_ms, round(max(duration_ms), 3) AS longest_ms, round(100 * sum(data_ms) / "
         "sum(iif(data_ms IS NULL, NULL, duration_ms)), 1) AS data_pct, round(100 * "
         "sum(gc_ms) / sum(iif(gc_ms IS NULL, NULL, duration_ms)), 1) AS gc_pct, "
         "max(timestamp) AS last_at FROM s) WHERE steps > 0"},
    [REPORT_STEPS] = {"steps", "Steps", "no optimizer step was seen",
                      "SELECT timestamp, step, duration_ms, data_ms, forward_ms, backward_ms, optimizer_ms, "
                      "comm_ms, gc_ms, other_ms, loss, lr, grad_norm, nonfinite FROM python.steps ORDER BY "
                      "timestamp DESC LIMIT 2000"},
    /* the most of each 300th of the time */
    [REPORT_MEMORY] = {"memory", "Memory", "nothing was recorded",
                       "WITH r AS (SELECT min(timestamp) AS a, max(max(timestamp) - min(timestamp), 1) AS "
                       "span FROM python.memory) SELECT max(timestamp) AS timestamp, round(max(memory_mb), "
                       "1) AS memory_mb, round(max(rss_mb), 1) AS rss_mb, round(max(gpu_allocated_mb), 1) AS "
                       "gpu_allocated_mb, round(max(gpu_reserved_mb), 1) AS gpu_reserved_mb, max(gc_objects) "
                       "AS gc_objects FROM python.memory, r GROUP BY CAST(300 * (timestamp - a) / span AS "
                       "INTEGER) ORDER BY 1"},
    /* a row of each stack and second: what is live is said by the newest of a stack */
    [REPORT_ALLOCATIONS] =
        {"allocations", "Memory by the line that allocated it", "allocations were not traced",
         "SELECT function_name, file, lineno, domain, round(sum(live) / 1048576.0, 2) AS "
         "live_mb, round(sum(allocated) / 1048576.0, 2) AS allocated_mb FROM (SELECT "
         "function_name, file, lineno, domain, sum(allocated_bytes) AS allocated, "
         "live_bytes AS live, max(timestamp) FROM memory_allocations GROUP BY stack_id, "
         "domain) GROUP BY 1, 2, 3, 4 ORDER BY sum(live) DESC, sum(allocated) DESC LIMIT 20"},
    [REPORT_LOADERS] = {"loaders", "Data loaders", "no DataLoader was seen",
                        "SELECT dataset, workers, prefetch, outstanding, ready, sent, received, "
                        "round(wait_ms, 3) AS wait_ms, batches AS batches_per_s, max(timestamp) AS seen_at "
                        "FROM python.loaders WHERE timestamp > now() - 600 GROUP BY loader ORDER BY seen_at "
                        "DESC LIMIT 20"},
    [REPORT_WORKERS] = {"loader_workers", "Workers of data loaders", "none are read",
                        "SELECT worker, worker_pid, alive, state, round(cpu_pct, 1) AS cpu_pct, "
                        "round(rss_bytes / 1048576.0, 1) AS rss_mb, outstanding, func, file, lineno FROM "
                        "python.loader_workers ORDER BY loader, worker LIMIT 64"},
    [REPORT_GC] = {"gc", "Garbage collections", "none were seen",
                   "SELECT generation, sum(coalesce(collections, 1)) AS collections, "
                   "round(sum(duration_ms), 1) AS duration_ms, round(max(duration_ms), 2) AS longest_ms, "
                   "sum(collected) AS collected FROM python.gc GROUP BY generation ORDER BY generation"},
    [REPORT_EVENTS] = {"events", "Events", "none were recorded",
                       "SELECT timestamp, kind, client_uid, client_pid FROM probing.events ORDER BY "
                       "timestamp DESC LIMIT 50"},
    [REPORT_OVERHEAD] = {"overhead", "Overhead of the agent", "there is no agent",
                         "SELECT round(uptime_s, 1) AS uptime_s, round(cpu_s, 3) AS cpu_s, round(100 * cpu_s "
                         "/ uptime_s, 3) AS mean_cpu_pct, round(overhead_pct, 3) AS lately_cpu_pct, "
                         "round(rss_bytes / 1048576.0, 2) AS rss_mb, samples, torn, dropped, "
                         "round(us_per_sample, 1) AS us_per_sample, clients FROM probing.status ORDER BY "
                         "timestamp DESC LIMIT 1"},
};

const char *report_title(enum report_table table) { return report_tables[table].title; }
const char *report_key(enum report_table table) { return report_tables[table].key; }
const char *report_nothing(enum report_table table) { return report_tables[table].nothing; }

double report_number(const struct result *rows, size_t row, int column) {
    return column < 0 ? NAN : result_number(rows, row, (size_t)column);
}

/* Slow steps, explained by their samples where these are known. */
static void report_explain_steps(struct report *r) {
    const struct result *steps = r->tables[REPORT_STEPS];
    struct sql_query q = {.timeout_s = REPORT_TIMEOUT_S};
    struct result *samples = NULL, *stacks = NULL;
    struct err e;
    char text[2048];
    int time = result_find_column(steps, "timestamp");
    double newest_s = steps && steps->n_rows ? report_number(steps, 0, time) : NAN;
    double span_s = steps && steps->n_rows ? newest_s - report_number(steps, steps->n_rows - 1, time) : NAN;
    /* from now on, or from the end of a recording on */
    double since_s = database_is_recorded(r->database) ? 0 : clock_epoch_s() - newest_s;
    if (span_s >= 0) {
        span_s = fmin(span_s + fmax(since_s, 0), REPORT_SAMPLES_S);
        if (steps_sites_ask_samples(text, sizeof text, span_s + 1) == 0)
            samples = database_take(r->database, text, &q, REPORT_BYTES, &e);
        if (samples && steps_sites_ask_stacks(text, sizeof text, span_s + 1) == 0)
            stacks = database_take(r->database, text, &q, REPORT_BYTES, &e);
    }
    steps_model_build(&r->steps, steps, samples, stacks);
    result_unref(samples);
    result_unref(stacks);
}

/* Verdicts and tables; what cannot be read is left out, with its error. */
static void report_query(struct report *r, double wait_s) {
    struct err e = {0};
    r->database = database_open(&e);
    if (r->database && database_add(r->database, r->data->address, &e) != 0) {
        database_close(r->database);
        r->database = NULL;
    }
    struct verdict_judge *j = r->database ? verdict_judge_new(r->database) : NULL;
    r->verdicts_error = e;
    if (j)
        verdict_judge_wait(j, wait_s, &r->verdicts, &r->verdicts_error);
    verdict_judge_free(j);
    for (int i = 0; i < REPORT_TABLES; i++) {
        struct sql_query q = {.timeout_s = REPORT_TIMEOUT_S};
        r->errors[i] = e;
        if (r->database)
            r->tables[i] = database_take(r->database, report_tables[i].sql, &q, REPORT_BYTES, &r->errors[i]);
    }
    if (r->database)
        report_explain_steps(r);
}

/* The settings are known to the agent alone. */
static void report_ask_status(struct report *r) {
    struct err e;
    struct call *c = call_open(r->data->address, &e);
    r->has_status = c && call_status(c, &r->status, &e) == 0;
    if (c && !r->has_status)
        model_status_fini(&r->status);
    call_close(c);
}

/* ---- samples ---- */

struct stack_counts *report_select(const struct report *r, enum report_part part) {
    const struct stack_counts *all = r->data->counts;
    struct stack_counts *some = stack_counts_new_like(all);
    bool is_good = some != NULL;
    for (size_t i = 0; is_good && i < stack_counts_frames(all); i++)
        is_good = stack_counts_put_frame(some, stack_counts_frame(all, i)) == (int64_t)i;
    for (uint32_t i = 1; is_good && i <= stack_counts_stacks(all); i++) {
        uint32_t above, frame = stack_counts_stack_frame(all, i, &above);
        is_good = stack_counts_put_stack(some, above, frame) >= 0;
    }
    for (size_t i = 0; is_good && i < stack_counts_count(all); i++) {
        struct stack_counts_entry entry = *stack_counts_get(all, i);
        if (part == REPORT_BUSY && r->by_cpu) {
            entry.sums.samples = entry.sums.on_cpu;
            entry.sums.us = entry.sums.on_cpu_us;
        }
        if ((part == REPORT_BUSY || entry.tid == r->target.pid) && entry.sums.samples > 0)
            is_good = stack_counts_put_counts(some, &entry) >= 0;
    }
    if (is_good)
        return some;
    stack_counts_free(some);
    return NULL;
}

/* True if a caller of the node has the same name: its time is already counted there. */
static bool report_is_recursive(const struct flame *tree, uint32_t node) {
    uint32_t key = flame_node(tree, node)->key;
    for (uint32_t at = flame_node(tree, node)->parent; at != FLAME_NO_NODE && at != FLAME_ROOT;
         at = flame_node(tree, at)->parent)
        if (flame_node(tree, at)->key == key)
            return true;
    return false;
}

static int report_compare(const void *a, const void *b) {
    const struct report_function *x = a, *y = b;
    if (x->own != y->own)
        return x->own > y->own ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* The functions with the most time of their own. 0, or -1 without memory. */
static int report_take_functions(struct report *r, const struct flame_stacks_tree *t) {
    double all = flame_stacks_weight(t, flame_node(t->tree, FLAME_ROOT)->total);
    struct report_function *f = calloc(t->n_names + 1, sizeof *f);
    size_t n = 0;
    if (!f)
        return -1;
    for (uint32_t i = FLAME_ROOT + 1; i < flame_count(t->tree); i++) {
        const struct flame_node *node = flame_node(t->tree, i);
        if (node->key >= t->n_names)
            continue;
        f[node->key].name = t->names[node->key];
        f[node->key].own += flame_stacks_weight(t, node->self) / all;
        if (!report_is_recursive(t->tree, i))
            f[node->key].total += flame_stacks_weight(t, node->total) / all;
    }
    for (size_t i = 0; i < t->n_names; i++)
        if (f[i].name && f[i].own > 0)
            f[n++] = f[i];
    qsort(f, n, sizeof *f, report_compare);
    r->n_functions = n < REPORT_FUNCTIONS ? n : REPORT_FUNCTIONS;
    memcpy(r->functions, f, r->n_functions * sizeof *f);
    free(f);
    for (size_t i = 0; i < r->n_functions; i++)
        r->functions[i].name = arena_strdup(&r->names, r->functions[i].name);
    return r->names.failed ? -1 : 0;
}

static uint64_t report_on_cpu(const struct stack_counts *all) {
    uint64_t n = 0;
    for (size_t i = 0; i < stack_counts_count(all); i++)
        n += stack_counts_get(all, i)->sums.on_cpu;
    return n;
}

/* 0, or -1 without memory. */
static int report_find_functions(struct report *r) {
    struct flame_stacks_tree tree = {.tree = NULL};
    r->by_cpu = report_on_cpu(r->data->counts) > 0;
    struct stack_counts *busy = report_select(r, REPORT_BUSY);
    struct flame_stacks stacks = {.counts = busy, .by_function = true, .in_us = true};
    int rc = busy ? flame_stacks_build(&tree, &stacks) : -1;
    if (rc == 0)
        rc = report_take_functions(r, &tree);
    if (busy)
        flame_stacks_fini(&tree);
    stack_counts_free(busy);
    return rc;
}

/* ---- what it is made of ---- */

void report_put_time(struct strbuf *out, double epoch_s) {
    char text[64];
    time_t at = epoch_s > 0 && epoch_s < 1e11 ? (time_t)epoch_s : 0;
    struct tm tm;
    strbuf_adds(out, at && gmtime_r(&at, &tm) && strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &tm)
                         ? text
                         : "?");
}

static void report_put_samples(const struct report *r, struct strbuf *out) {
    const struct stack_counts_totals *t = stack_counts_get_totals(r->data->counts);
    strbuf_addf(out, "%" PRIu64 " sample%s in %.1f s", t->samples, t->samples == 1 ? "" : "s",
                r->data->elapsed_s);
    if (r->data->elapsed_s > 0 && t->kept_hz > 0)
        strbuf_addf(out, ", of each thread %.1f a second", t->kept_hz);
    if (t->torn)
        strbuf_addf(out, "; %" PRIu64 " left out: moved while they were read", t->torn);
    if (t->dropped + t->undefined)
        strbuf_addf(out, "; %" PRIu64 " lost on the way", t->dropped + t->undefined);
    if (t->cost_pct >= 0)
        strbuf_addf(out, "; sampling cost %.2f %% of a core", t->cost_pct);
    strbuf_addc(out, '\n');
}

void report_put_sources(const struct report *r, struct strbuf *out) {
    const struct model_target *t = &r->target;
    report_put_samples(r, out);
    if (r->data->snapshot->n_threads) {
        strbuf_addf(out, "stacks of %zu thread%s at ", r->data->snapshot->n_threads,
                    r->data->snapshot->n_threads == 1 ? "" : "s");
        report_put_time(out, r->data->snapshot->timestamp);
        strbuf_addc(out, '\n');
    }
    if (t->mode == MODEL_MODE_RECORDED)
        strbuf_addf(out, "the job has ended: this is its last known state%s%s\n", t->mode_reason ? ": " : "",
                    t->mode_reason ? t->mode_reason : "");
    if (t->mode == MODEL_MODE_READONLY)
        strbuf_addf(out, "read from outside%s%s\n", t->mode_reason ? ": " : "",
                    t->mode_reason ? t->mode_reason : "");
    if (r->database && database_note(r->database)[0])
        strbuf_addf(out, "%s\n", database_note(r->database));
}

/* ---- all of it ---- */

static int report_begin(struct report *r, const struct export_data *data) {
    *r = (struct report){.data = data, .target = *data->target, .made_s = clock_epoch_s()};
    strbuf_init(&r->command, 0);
    arena_init(&r->names, REPORT_BYTES);
    mask_put_command(&r->command, data->target->cmdline, REPORT_COMMAND);
    r->target.cmdline = r->command.len ? strbuf_str(&r->command) : NULL;
    bool is_live = data->target->mode == MODEL_MODE_AGENT;
    report_query(r, is_live ? -1 : 0);
    if (is_live)
        report_ask_status(r);
    return report_find_functions(r);
}

static void report_end(struct report *r) {
    for (int i = 0; i < REPORT_TABLES; i++)
        result_unref(r->tables[i]);
    if (r->has_status)
        model_status_fini(&r->status);
    steps_model_fini(&r->steps);
    verdicts_fini(&r->verdicts);
    database_close(r->database);
    arena_fini(&r->names);
    strbuf_fini(&r->command);
}

static int report_render(const struct export_data *data,
                         int (*put)(const struct report *r, struct strbuf *out), struct strbuf *out,
                         struct err *e) {
    struct report r;
    int rc = report_begin(&r, data);
    if (rc == 0)
        rc = put(&r, out);
    report_end(&r);
    return rc == 0 ? 0 : err_set(e, ERR_FAILED, "out of memory for the report");
}

static int report_render_html(const struct export_data *data, struct strbuf *out, struct err *e) {
    return report_render(data, report_put_html, out, e);
}
static int report_render_markdown(const struct export_data *data, struct strbuf *out, struct err *e) {
    return report_render(data, report_put_markdown, out, e);
}
static int report_render_json(const struct export_data *data, struct strbuf *out, struct err *e) {
    return report_render(data, report_put_json, out, e);
}

const struct export_format report_formats[] = {
    {"html", "one page, for a browser or a printer", REPORT_SAMPLE_S, true, true, false, report_render_html,
     REPORT_TAKES},
    {"md", "Markdown, short, for an issue or a chat", REPORT_SAMPLE_S, true, true, false,
     report_render_markdown, REPORT_TAKES},
    {"json", "everything, for scripts", REPORT_SAMPLE_S, true, true, false, report_render_json, REPORT_TAKES},
    {.name = NULL},
};

const struct export_format *report_find(const char *name, struct err *e) {
    for (const struct export_format *f = report_formats; f->name; f++)
        if (strcmp(f->name, name) == 0)
            return f;
    err_set(e, ERR_USAGE, "unknown format '%s' of a report: give html, md or json", name);
    return NULL;
}
