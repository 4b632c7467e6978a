/* SPDX-License-Identifier: Apache-2.0 */
/* web_show: see web_show.h. */
#include "agent/server/http/web_show.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/model_json.h"
#include "base/model_text.h"
#include "base/text.h"
#include "flame/flame_svg.h"

#define SHOW_WAIT_S 10.0
#define SHOW_RATE_HZ 100.0
#define SHOW_BATCH_S 0.5
#define SHOW_TEXT 256
/* stacks of a flame graph, a bound of its memory: it is made in the job */
#define SHOW_STACKS 16384
#define SHOW_STACKS_BYTES ((size_t)3 * 1024 * 1024)
/* frames that it draws, each at least this part of the total: a third of a pixel */
#define SHOW_SVG_FRAMES 4000
#define SHOW_SVG_LEAST_PCT 0.025

/* ---- stacks ---- */

void web_backtrace_begin(struct web *w) {
    struct wire_threads want = {.tid = (int64_t)web_get(w, "thread")->number};
    struct strbuf b;
    strbuf_init(&b, WIRE_MAX_MESSAGE);
    wire_put_threads(&b, local_client_next_id(&w->client), &want);
    web_ask(w, &b, SHOW_WAIT_S);
}

void web_backtrace_take(struct web *w, const struct wire_message *m) {
    struct model_snapshot s;
    struct json j;
    struct err e;
    if (wire_get_snapshot(m, &s, &e) != 0) {
        web_fail(w, 503, "%s", e.text);
    } else if (web_get(w, "thread")->given && s.n_threads == 0) {
        web_fail(w, 404, "the job has no such thread");
    } else {
        if (strcmp(w->route->path, "/threads") == 0) {
            model_text_put_threads(&w->out, &s);
        } else if (w->form == WEB_TXT) {
            model_text_put_backtrace(&w->out, &w->target, &s, false);
        } else {
            json_init(&j, &w->out, 2);
            json_object_begin(&j);
            model_json_put_backtrace(&j, &w->target, &s, false, false);
            json_object_end(&j);
            strbuf_addc(&w->out, '\n');
        }
        web_done(w);
    }
    model_snapshot_fini(&s);
}

/* ---- flame graphs ---- */

enum { FLAME_ASKED = 0, FLAME_LOOKING, FLAME_ENDING };

void web_flamegraph_begin(struct web *w) {
    struct wire_subscribe want = {
        .stream = WIRE_STREAM_SAMPLES, .rate_hz = SHOW_RATE_HZ, .batch_s = SHOW_BATCH_S};
    struct strbuf b;
    /* read-only clients leave one free */
    unsigned most = w->may < WIRE_CHANGES ? WEB_FLAMES - 1 : WEB_FLAMES;
    if (w->context->flames >= most) {
        web_fail(w, 429, "%u flame graphs are being made: try again", w->context->flames);
        return;
    }
    w->context->flames++;
    w->counted_flame = true;
    w->samples =
        stack_counts_new_limited(&(struct stack_counts_limits){.items = SHOW_STACKS,
                                                               .bytes = SHOW_STACKS_BYTES,
                                                               .tid = (int64_t)web_get(w, "thread")->number,
                                                               .by_function = true});
    if (!w->samples) {
        web_fail(w, 503, "there is no memory for a flame graph");
        return;
    }
    strbuf_init(&b, WIRE_MAX_MESSAGE);
    wire_put_subscribe(&b, local_client_next_id(&w->client), &want);
    web_ask(w, &b, SHOW_WAIT_S);
}

/* The time of all threads in one stack. */
struct show_stack {
    uint64_t samples, on_cpu;
    double us;
};

static void show_put_stack(struct json *j, const struct stack_counts *samples, uint32_t stack,
                           const struct show_stack *sums) {
    json_object_begin(j);
    json_kv_uint(j, "samples", sums->samples);
    json_kv_uint(j, "on_cpu_samples", sums->on_cpu);
    json_kv_number(j, "duration_us", sums->us, 0);
    json_key(j, "frames");
    json_array_begin(j);
    while (stack != STACK_COUNTS_NO_STACK) { /* innermost first, as everywhere */
        const struct model_frame *f =
            stack_counts_frame(samples, stack_counts_stack_frame(samples, stack, &stack));
        json_object_begin(j);
        json_kv_string(j, "func", f->func);
        json_kv_string(j, "file", f->file);
        json_object_end(j);
    }
    json_array_end(j);
    json_object_end(j);
}

/* The stacks with their samples and time, and the number of samples without a stack. 0, or -1
 * without memory. */
static int show_put_stacks(struct web *w, double seconds) {
    const struct stack_counts_totals *totals = stack_counts_get_totals(w->samples);
    size_t n = stack_counts_stacks(w->samples);
    struct show_stack *sums = calloc(n + 1, sizeof *sums);
    struct json j;
    if (!sums)
        return -1;
    for (size_t i = 0; i < stack_counts_count(w->samples); i++) {
        const struct stack_counts_entry *entry = stack_counts_get(w->samples, i);
        sums[entry->stack].samples += entry->sums.samples;
        sums[entry->stack].on_cpu += entry->sums.on_cpu;
        sums[entry->stack].us += entry->sums.us;
    }
    json_init(&j, &w->out, 0);
    json_object_begin(&j);
    json_kv_int(&j, "schema_version", 1);
    json_kv_int(&j, "pid", w->target.pid);
    json_kv_number(&j, "duration_s", seconds, 3);
    json_kv_uint(&j, "samples", totals->samples + totals->torn + totals->left_out);
    json_kv_uint(&j, "torn", totals->torn);
    json_kv_uint(&j, "without_python", sums[STACK_COUNTS_NO_STACK].samples);
    json_kv_uint(&j, "left_out", totals->left_out);
    json_kv_uint(&j, "dropped", totals->dropped);
    json_key(&j, "stacks");
    json_array_begin(&j);
    for (uint32_t i = 1; i <= n; i++)
        if (sums[i].samples)
            show_put_stack(&j, w->samples, i, &sums[i]);
    json_array_end(&j);
    json_object_end(&j);
    strbuf_addc(&w->out, '\n');
    free(sums);
    return 0;
}

/* The picture has neither style nor script, because the response's content-security-policy
 * forbids them. */
static int show_put_svg(struct web *w, const struct flame_stacks *stacks, double seconds) {
    struct flame_svg picture = {.stacks = *stacks,
                                .target = &w->target,
                                .choice = web_get(w, "thread")->given ? "one thread, waiting too" : NULL,
                                .elapsed_s = seconds,
                                .threshold_pct = SHOW_SVG_LEAST_PCT,
                                .max_frames = SHOW_SVG_FRAMES};
    picture.stacks.in_us = true;
    return flame_svg_put(&picture, &w->out);
}

static void web_flamegraph_show(struct web *w) {
    double seconds = web_get(w, "seconds")->number;
    struct flame_stacks stacks = {.counts = w->samples, .by_function = true};
    int rc = w->form == WEB_FOLDED ? flame_stacks_put_folded(&stacks, &w->out)
             : w->form == WEB_JSON ? show_put_stacks(w, seconds)
                                   : show_put_svg(w, &stacks, seconds);
    /* a response may wait for its reader: it should use less memory */
    stack_counts_free(w->samples);
    w->samples = NULL;
    w->out.failed = w->out.failed || rc != 0;
    web_done(w);
}

void web_flamegraph_take(struct web *w, const struct wire_message *m) {
    struct model_sample_batch b;
    struct err e;
    if (wire_message_type(m) == WIRE_RESPONSE && w->stage == FLAME_ASKED) {
        w->stage = FLAME_LOOKING;
        w->due_ns = clock_mono_ns() + (uint64_t)(web_get(w, "seconds")->number * 1e9);
    } else if (wire_message_type(m) == WIRE_RESPONSE) {
        web_flamegraph_show(w);
    } else if (wire_message_notification(m) == WIRE_N_SAMPLES) {
        if (wire_get_samples(m, &b, &e) != 0 || stack_counts_add_batch(w->samples, &b) != 0)
            web_fail(w, 503, "there is no memory for the samples");
        model_sample_batch_fini(&b);
    }
}

/* The last samples arrive before the answer to this. */
void web_flamegraph_over(struct web *w) {
    struct strbuf b;
    if (w->stage != FLAME_LOOKING) {
        web_fail(w, 503, "the agent did not answer in time");
        return;
    }
    w->stage = FLAME_ENDING;
    strbuf_init(&b, WIRE_MAX_MESSAGE);
    wire_put_unsubscribe(&b, local_client_next_id(&w->client), WIRE_STREAM_SAMPLES);
    web_ask(w, &b, SHOW_WAIT_S);
}

/* ---- the agent itself ---- */

void web_status_begin(struct web *w) {
    struct strbuf b;
    strbuf_init(&b, WIRE_MAX_MESSAGE);
    wire_put_request(&b, local_client_next_id(&w->client), WIRE_STATUS);
    web_ask(w, &b, SHOW_WAIT_S);
}

static void web_put_line(struct strbuf *out, const char *what, const char *text) {
    char clean[SHOW_TEXT];
    text_sanitize(clean, sizeof clean, text ? text : "-");
    strbuf_addf(out, "%-14s %s\n", what, clean);
}

static void web_put_status(struct strbuf *out, const struct model_target *t, const struct model_status *s) {
    char text[SHOW_TEXT], bytes[32];
    text_human_bytes(bytes, sizeof bytes, s->rss_bytes);
    strbuf_addf(out, "%-14s %" PRId64 "\n", "process", t->pid);
    web_put_line(out, "command", t->cmdline);
    web_put_line(out, "Python", t->python);
    web_put_line(out, "torch", t->torch);
    web_put_line(out, "agent", s->agent_version);
    text_human_duration(text, sizeof text, s->uptime_s);
    web_put_line(out, "up", text);
    strbuf_addf(out, "%-14s %.3f s of CPU", "cost", s->cpu_s);
    if (!isnan(s->overhead_pct))
        strbuf_addf(out, ", %.2f %% of a core lately", s->overhead_pct);
    strbuf_addf(out, ", %s\n%-14s %" PRId64 "\n%-14s %" PRIu64 "\n%-14s %zu\n", bytes, "clients", s->clients,
                "steps", s->steps, "tables", s->n_tables);
    if (s->note)
        web_put_line(out, "note", s->note);
}

/* Stored tables with their number of rows, and tables that are made when they are read. */
static void web_put_tables(struct web *w, const struct model_status *s) {
    for (size_t i = 0; w->form == WEB_TXT && i < s->n_tables; i++)
        strbuf_addf(&w->out, "%-24s %10" PRIu64 " rows\n", s->tables[i].name, s->tables[i].rows);
    if (w->form == WEB_TXT)
        return;
    struct json j;
    json_init(&j, &w->out, 2);
    json_object_begin(&j);
    json_kv_int(&j, "schema_version", MODEL_JSON_SCHEMA_VERSION);
    json_key(&j, "tables");
    json_array_begin(&j);
    for (size_t i = 0; i < s->n_tables; i++) {
        json_object_begin(&j);
        json_kv_string(&j, "name", s->tables[i].name);
        json_kv_uint(&j, "rows", s->tables[i].rows);
        json_kv_uint(&j, "bytes", s->tables[i].bytes);
        json_kv_number(&j, "oldest", s->tables[i].oldest, 6);
        json_kv_number(&j, "newest", s->tables[i].newest, 6);
        json_object_end(&j);
    }
    json_array_end(&j);
    json_object_end(&j);
    strbuf_addc(&w->out, '\n');
}

static void web_put_config(struct web *w, const struct model_status *s) {
    struct json j;
    if (w->form == WEB_TXT) {
        for (size_t i = 0; i < s->n_settings; i++)
            strbuf_addf(&w->out, "%s=%s\n", s->settings[i].key, s->settings[i].value);
        return;
    }
    json_init(&j, &w->out, 2);
    json_object_begin(&j);
    json_kv_int(&j, "schema_version", MODEL_JSON_SCHEMA_VERSION);
    json_key(&j, "settings");
    json_array_begin(&j);
    for (size_t i = 0; i < s->n_settings; i++) {
        json_object_begin(&j);
        json_kv_string(&j, "key", s->settings[i].key);
        json_kv_string(&j, "value", s->settings[i].value);
        json_kv_string(&j, "default", s->settings[i].default_value);
        json_kv_string(&j, "help", s->settings[i].help);
        json_object_end(&j);
    }
    json_array_end(&j);
    json_object_end(&j);
    strbuf_addc(&w->out, '\n');
}

static void web_put_status_json(struct web *w, const struct model_status *s) {
    struct json j;
    json_init(&j, &w->out, 2);
    model_json_put_status(&j, &w->target, s);
    strbuf_addc(&w->out, '\n');
}

void web_status_take(struct web *w, const struct wire_message *m) {
    struct model_status s;
    struct err e;
    if (wire_get_status(m, &s, &e) != 0) {
        web_fail(w, 503, "%s", e.text);
    } else {
        if (strcmp(w->route->path, "/tables") == 0)
            web_put_tables(w, &s);
        else if (strcmp(w->route->path, "/config") == 0)
            web_put_config(w, &s);
        else if (w->form == WEB_PROMETHEUS)
            web_metrics_put(&w->target, &s, &w->out);
        else if (w->form == WEB_JSON)
            web_put_status_json(w, &s);
        else
            web_put_status(&w->out, &w->target, &s);
        web_done(w);
    }
    model_status_fini(&s);
}
