/* SPDX-License-Identifier: Apache-2.0 */
/* memory_trace: see memory_trace.h. */
#include "cli/memory_trace.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/armed.h"

#define MEMORY_TRACE_SCHEMA_VERSION 1
#define MEMORY_TRACE_DURATION_S 10.0 /* default */
#define MEMORY_TRACE_END_S 3.0       /* until the hooks are out, and the last rows are written */
#define MEMORY_TRACE_WHERE 56        /* columns of a site */

/* What lives is what was allocated since we began and not freed since then. */
static const char memory_trace_sites[] =
    "SELECT function_name, file, lineno, domain, sum(allocated_bytes) AS allocated_bytes, sum(calls) AS "
    "calls,"
    " sum(freed_bytes) AS freed_bytes, max(0, sum(allocated_bytes) - sum(freed_bytes)) AS live_bytes"
    " FROM memory_allocations WHERE timestamp >= %.6f"
    " GROUP BY function_name, file, lineno, domain ORDER BY live_bytes DESC, allocated_bytes DESC";

enum memory_trace_column {
    MEMORY_TRACE_FUNCTION = 0,
    MEMORY_TRACE_FILE,
    MEMORY_TRACE_LINENO,
    MEMORY_TRACE_DOMAIN,
    MEMORY_TRACE_ALLOCATED,
    MEMORY_TRACE_CALLS,
    MEMORY_TRACE_FREED,
    MEMORY_TRACE_LIVE
};

static double memory_trace_sum(const struct result *rows, enum memory_trace_column column) {
    double sum = 0;
    for (size_t i = 0; i < rows->n_rows; i++)
        sum += result_number(rows, i, column);
    return sum;
}

static void memory_trace_put_json(const struct armed *a, const struct result *rows, double seconds,
                                  struct strbuf *out) {
    struct json j;
    json_init(&j, out, 2);
    json_object_begin(&j);
    json_kv_int(&j, "schema_version", MEMORY_TRACE_SCHEMA_VERSION);
    json_kv_number(&j, "seconds", seconds, 3);
    json_kv_int(&j, "samples", a->looks);
    json_kv_number(&j, "overhead_pct", a->cost_pct, 4);
    json_kv_string(&j, "note", a->note[0] ? a->note : NULL);
    json_key(&j, "sites");
    json_array_begin(&j);
    for (size_t i = 0; i < rows->n_rows; i++) {
        json_object_begin(&j);
        json_kv_string(&j, "function", result_string(rows, i, MEMORY_TRACE_FUNCTION));
        json_kv_string(&j, "file", result_string(rows, i, MEMORY_TRACE_FILE));
        json_kv_number(&j, "line", result_number(rows, i, MEMORY_TRACE_LINENO), 0);
        json_kv_string(&j, "domain", result_string(rows, i, MEMORY_TRACE_DOMAIN));
        json_kv_number(&j, "allocated_bytes", result_number(rows, i, MEMORY_TRACE_ALLOCATED), 0);
        json_kv_number(&j, "calls", result_number(rows, i, MEMORY_TRACE_CALLS), 0);
        json_kv_number(&j, "freed_bytes", result_number(rows, i, MEMORY_TRACE_FREED), 0);
        json_kv_number(&j, "live_bytes", result_number(rows, i, MEMORY_TRACE_LIVE), 0);
        json_object_end(&j);
    }
    json_array_end(&j);
    json_object_end(&j);
    strbuf_addc(out, '\n');
}

void memory_put_place(struct strbuf *out, const char *function, const char *file, double line) {
    char place[1024], clean[1024];
    const char *name = file ? strrchr(file, '/') : NULL;
    name = name ? name + 1 : file;
    if (name && !isnan(line))
        snprintf(place, sizeof place, "%s (%s:%.0f)", function ? function : "?", name, line);
    else if (name)
        snprintf(place, sizeof place, "%s (%s)", function ? function : "?", name);
    else
        snprintf(place, sizeof place, "%s", function ? function : "(unknown)");
    text_sanitize(clean, sizeof clean, place);
    strbuf_addf(out, "%s\n", clean);
}

static void memory_trace_put_bytes(struct strbuf *out, double bytes) {
    char text[32];
    text_human_bytes(text, sizeof text, bytes);
    strbuf_addf(out, "%12s", text);
}

static void memory_trace_put_text(const struct armed *a, const struct result *rows, double seconds, long top,
                                  struct strbuf *out) {
    char allocated[32], live[32], note[ARMED_NOTE_MAX];
    double all = memory_trace_sum(rows, MEMORY_TRACE_ALLOCATED),
           lives = memory_trace_sum(rows, MEMORY_TRACE_LIVE);
    text_human_bytes(allocated, sizeof allocated, all);
    text_human_bytes(live, sizeof live, lives);
    strbuf_addf(out, "%s allocated in %.1f s, of which %s live", allocated, seconds, live);
    if (!isnan(a->cost_pct))
        strbuf_addf(out, "; tracing cost %.2f %% of a core", a->cost_pct);
    strbuf_addf(out, "\n");
    text_sanitize(note, sizeof note, a->note);
    if (note[0])
        strbuf_addf(out, "%s\n", note);
    strbuf_addf(out, "\n%12s %12s %8s %12s  %-7s %s\n", "LIVE", "ALLOCATED", "SHARE", "CALLS", "DOMAIN",
                "FUNCTION (FILE:LINE)");
    size_t shown = rows->n_rows < (size_t)top ? rows->n_rows : (size_t)top;
    for (size_t i = 0; i < shown; i++) {
        const char *domain = result_string(rows, i, MEMORY_TRACE_DOMAIN);
        double bytes = result_number(rows, i, MEMORY_TRACE_ALLOCATED);
        memory_trace_put_bytes(out, result_number(rows, i, MEMORY_TRACE_LIVE));
        strbuf_addc(out, ' ');
        memory_trace_put_bytes(out, bytes);
        strbuf_addf(out, " %6.1f %% %12.0f  %-7s ", all > 0 ? 100 * bytes / all : 0,
                    result_number(rows, i, MEMORY_TRACE_CALLS), domain ? domain : "?");
        memory_put_place(out, result_string(rows, i, MEMORY_TRACE_FUNCTION),
                         result_string(rows, i, MEMORY_TRACE_FILE),
                         result_number(rows, i, MEMORY_TRACE_LINENO));
    }
    if (shown < rows->n_rows)
        strbuf_addf(out, "and %zu more: --top %zu shows them\n", rows->n_rows - shown, rows->n_rows);
}

/* Disarm, and read the rows once the last of them are written. NULL with the error. */
static struct result *memory_trace_read(struct armed *a, struct err *e) {
    if (!a->over && call_disarm(a->call, &a->want, e) != 0)
        return NULL;
    if (!a->over && armed_wait(a, MEMORY_TRACE_END_S, NULL, e) != 0)
        return NULL;
    return armed_ask(a, memory_trace_sites, e);
}

int memory_trace_exec(const struct memory_options *o, struct target_address *addr, struct strbuf *out,
                      struct err *e) {
    struct wire_arm want = {.what = "alloc", .every = (int64_t)o->every};
    double duration_s = o->duration_s > 0 ? o->duration_s : MEMORY_TRACE_DURATION_S;
    struct result *rows = NULL;
    struct armed a;
    if (o->read.no_inject)
        return err_set(e, ERR_USAGE, "--trace and --no-inject: tracing needs an agent in the target");
    if (o->read.common.targets.n > 1)
        return err_set(e, ERR_USAGE, "--trace: one target at a time");
    if (o->read.common.readonly)
        return err_set(e, ERR_USAGE, "--trace puts hooks into the target: not with --readonly");
    int rc = armed_begin(&a, &o->read.common, addr, &want, e);
    if (rc == 0)
        rc = armed_wait(&a, duration_s, NULL, e);
    double seconds = clock_epoch_s() - a.began_s;
    if (rc == 0)
        rows = memory_trace_read(&a, e);
    if (rows && o->read.common.json)
        memory_trace_put_json(&a, rows, seconds, out);
    else if (rows)
        memory_trace_put_text(&a, rows, seconds, o->top > 0 ? o->top : MEMORY_TOP, out);
    rc = rows ? 0 : -1;
    result_unref(rows);
    armed_end(&a);
    return rc;
}
