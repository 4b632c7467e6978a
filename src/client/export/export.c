/* SPDX-License-Identifier: Apache-2.0 */
/* export: see export.h. Check, attach, sample, render, write: in this order, so that a failure
 * leaves nothing half done. */
#include "client/export/export.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/option.h"
#include "base/text.h"
#include "client/export/document.h"
#include "client/export/export_formats.h"
#include "client/export/export_lanes.h"
#include "client/output.h"
#include "client/progress.h"
#include "flame/stack_counts.h"
#include "client/samples/thread_runs.h"
#include "client/session/call.h"
#include "client/target/target.h"

#define EXPORT_INTERVAL_MS 100 /* between the two snapshots that show what is on the CPU */
#define EXPORT_RATE_HZ 100.0
#define EXPORT_TORN_SHARE 50 /* a larger share than one in so many is reported */
#define EXPORT_OUTPUT_MAX ((size_t)112 * 1024 * 1024)
#define EXPORT_RECORDED_MAX ((size_t)1 << 30) /* of a recording, and of tables */
#define EXPORT_MAX_TICKS ((size_t)1 << 18)    /* in order of time: 43 minutes at 100 Hz */
#define EXPORT_MAX_RUNS ((size_t)1 << 21)     /* and 24 MiB */

/* Options of formats that are made of aggregated stacks. */
#define EXPORT_TAKES_STACKS                                                                                  \
    (EXPORT_TAKES_DURATION | EXPORT_TAKES_RATE | EXPORT_TAKES_THREADS | EXPORT_TAKES_PROCESS |               \
     EXPORT_TAKES_BY_FUNCTION | EXPORT_TAKES_UNIT | EXPORT_TAKES_NATIVE)

const struct export_format export_formats[] = {
    {"json", "threads with their stacks; with --duration samples, added up per stack; rows of --sql", 0, true,
     true, true, export_render_json,
     EXPORT_TAKES_DURATION | EXPORT_TAKES_RATE | EXPORT_TAKES_LOCALS | EXPORT_TAKES_NATIVE},
    {"ndjson", "rows of --sql, a JSON object a line", 0, false, false, true, NULL, 0},
    {"csv", "rows of --sql, separated by commas", 0, false, false, true, NULL, 0},
    {"sqlite", "a recording: all tables, as an SQLite file", 0, false, false, false, NULL,
     EXPORT_TAKES_DURATION | EXPORT_IS_BINARY},
    {"folded", "sampled stacks, one line each, for flame graph programs", 5, true, false, false,
     export_render_folded, EXPORT_TAKES_STACKS},
    {"svg", "sampled stacks as a flame graph: a picture, with zoom and search in a browser", 5, true, false,
     false, export_render_svg, EXPORT_TAKES_STACKS},
    {"pprof", "a profile for pprof, gzip'd: time, CPU and GIL per stack, with labels", 5, true, false, false,
     export_render_pprof,
     EXPORT_TAKES_DURATION | EXPORT_TAKES_RATE | EXPORT_TAKES_BY_FUNCTION | EXPORT_TAKES_NATIVE |
         EXPORT_IS_BINARY | EXPORT_NEEDS_TIME | EXPORT_WANTS_STATES},
    {"speedscope", "what each thread did in the order of time, for speedscope", 5, true, false, false,
     export_render_speedscope,
     EXPORT_TAKES_DURATION | EXPORT_TAKES_RATE | EXPORT_TAKES_BY_FUNCTION | EXPORT_TAKES_NATIVE |
         EXPORT_NEEDS_TIME | EXPORT_WANTS_ORDER},
    {"perfetto", "a trace for ui.perfetto.dev: calls of each thread, the GIL, garbage collection", 5, true,
     false, false, export_render_perfetto,
     EXPORT_TAKES_DURATION | EXPORT_TAKES_RATE | EXPORT_TAKES_NATIVE | EXPORT_IS_BINARY | EXPORT_NEEDS_TIME |
         EXPORT_WANTS_ORDER},
    {"txt", "the screen", 0, false, true, false, export_render_txt,
     EXPORT_TAKES_DURATION | EXPORT_TAKES_RATE | EXPORT_TAKES_SCREEN},
    {.name = NULL},
};

#define EXPORT_N_FORMATS (sizeof export_formats / sizeof export_formats[0])

const char *export_format_names(void) {
    static char names[128];
    size_t n = 0;
    names[0] = '\0';
    for (const struct export_format *f = export_formats; f->name && n < sizeof names; f++)
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", n ? "|" : "", f->name);
    return names;
}

const struct export_format *export_find(const char *name, struct err *e) {
    const char *known[EXPORT_N_FORMATS];
    for (size_t i = 0; i < EXPORT_N_FORMATS; i++) {
        known[i] = export_formats[i].name;
        if (known[i] && strcmp(known[i], name) == 0)
            return &export_formats[i];
    }
    const char *near = option_suggest(name, known);
    if (near)
        err_set(e, ERR_USAGE, "unknown export format '%s': did you mean '%s'?", name, near);
    else
        err_set(e, ERR_USAGE, "unknown export format '%s': give one of %s", name, export_format_names());
    return NULL;
}

const char *export_choose_format(int i) { return export_formats[i].name; }

const char *export_choose_unit(int i) {
    static const char *const words[] = {"samples", "us", NULL};
    return words[i];
}

int export_parse_unit(const char *name, enum export_unit *out, struct err *e) {
    if (strcmp(name, "samples") == 0)
        *out = EXPORT_SAMPLES;
    else if (strcmp(name, "us") == 0)
        *out = EXPORT_US;
    else
        return err_set(e, ERR_USAGE, "unknown unit '%s': give samples or us", name);
    return 0;
}

static const struct {
    enum export_option option;
    const char *name;
} export_options[] = {
    {EXPORT_TAKES_DURATION, "--duration"},
    {EXPORT_TAKES_RATE, "--rate"},
    {EXPORT_TAKES_THREADS, "--threads"},
    {EXPORT_TAKES_PROCESS, "--process"},
    {EXPORT_TAKES_UNIT, "--unit"},
    {EXPORT_TAKES_BY_FUNCTION, "--by-function"},
    {EXPORT_TAKES_LOCALS, "--locals"},
    {EXPORT_TAKES_NATIVE, "--native"},
    {EXPORT_TAKES_SCREEN, "--screen --rows --cols --filter"},
};

#define EXPORT_N_OPTIONS (sizeof export_options / sizeof export_options[0])

/* The options that the request sets; those of a screen are checked where screens are. */
static unsigned export_what_is_set(const struct export_request *r) {
    return (r->duration_s != 0 ? EXPORT_TAKES_DURATION : 0U) | (r->rate_hz != 0 ? EXPORT_TAKES_RATE : 0U) |
           (r->threads ? EXPORT_TAKES_THREADS : 0U) | (r->process ? EXPORT_TAKES_PROCESS : 0U) |
           (r->unit ? EXPORT_TAKES_UNIT : 0U) | (r->by_function ? EXPORT_TAKES_BY_FUNCTION : 0U) |
           (r->locals ? EXPORT_TAKES_LOCALS : 0U) | (r->native ? EXPORT_TAKES_NATIVE : 0U);
}

void export_put_options(const struct export_format *f, struct strbuf *out) {
    const char *before = f->takes_sql ? "--sql" : "";
    strbuf_adds(out, before);
    for (size_t i = 0; i < EXPORT_N_OPTIONS; i++)
        if (f->takes & export_options[i].option) {
            strbuf_addf(out, "%s%s", *before ? " " : "", export_options[i].name);
            before = " ";
        }
    if (!*before)
        strbuf_adds(out, "no options of its own");
}

int export_check_option(const struct export_format *f, enum export_option option, const char *name,
                        struct err *e) {
    char formats[256] = "";
    size_t n = 0, left = 0;
    if (f->takes & option)
        return 0;
    for (const struct export_format *g = export_formats; g->name; g++)
        left += (g->takes & option) != 0;
    for (const struct export_format *g = export_formats; g->name && n < sizeof formats; g++)
        if (g->takes & option) {
            left--;
            n += (size_t)snprintf(formats + n, sizeof formats - n, "%s%s", g->name,
                                  left > 1    ? ", "
                                  : left == 1 ? " and "
                                              : "");
        }
    return err_set(e, ERR_USAGE, "%s is for --export %s, not for %s", name, formats, f->name);
}

static int export_check_options(const struct export_request *r, const struct export_format *f,
                                struct err *e) {
    unsigned given = export_what_is_set(r);
    for (size_t i = 0; i < EXPORT_N_OPTIONS; i++) {
        if (!(given & export_options[i].option))
            continue;
        if (export_check_option(f, export_options[i].option, export_options[i].name, e) != 0)
            return -1;
        if (r->sql)
            return err_set(e, ERR_USAGE, "%s changes nothing about the rows of --sql: leave one out",
                           export_options[i].name);
    }
    return 0;
}

/* The consumer of samples: a screen that is made of them, or NULL to aggregate them. */
static const struct export_renderer *export_screen(const struct export_format *f,
                                                   const struct export_request *r) {
    return f->takes & EXPORT_TAKES_SCREEN && r->screen && r->screen->take ? r->screen : NULL;
}

static int export_check(const struct export_request *r, const struct export_format *f, double duration_s,
                        struct err *e) {
    if (!r->target)
        return err_set(e, ERR_USAGE, "--export needs a TARGET: a pid, a name of a process, or unix:PATH");
    if (r->sql && !f->takes_sql)
        return err_set(e, ERR_USAGE, "--sql is for --export json, ndjson and csv, not for %s", f->name);
    if (!r->sql && f->takes_sql && !f->render)
        return err_set(e, ERR_USAGE, "--export %s needs --sql QUERY", f->name);
    if (isnan(duration_s) || duration_s < 0)
        return err_set(e, ERR_USAGE, "--duration must be positive");
    if (r->once && r->duration_s > 0)
        return err_set(e, ERR_USAGE, "--once and --duration exclude each other");
    if (r->once && (f->takes & EXPORT_NEEDS_TIME))
        return err_set(e, ERR_USAGE, "--once is not for %s: one snapshot has no duration; give a --duration",
                       f->name);
    if ((f->takes & EXPORT_IS_BINARY) && output_is_stdout(r->output) && isatty(STDOUT_FILENO))
        return err_set(e, ERR_USAGE, "%s is binary and not for a terminal: give -o FILE, or a pipe", f->name);
    if (r->unit == EXPORT_US && duration_s == 0)
        return err_set(e, ERR_USAGE, "--unit us needs a --duration: one snapshot has no duration");
    if (export_check_options(r, f, e) != 0)
        return -1;
    if (r->rate_hz != 0 && (duration_s == 0 || !(f->wants_samples || export_screen(f, r))))
        return err_set(e, ERR_USAGE, "--rate is for samples, and this takes none%s",
                       f->wants_samples ? ": give a --duration" : "");
    if (r->native && r->how.no_inject && !r->how.block)
        return err_set(
            e, ERR_USAGE,
            "--native with --no-inject needs --block too: native frames of a thread are known from "
            "outside only while it is stopped");
    if (r->once && export_screen(f, r))
        return err_set(e, ERR_USAGE, "--once is one snapshot, and this screen needs samples: leave it out");
    if (f->render == export_render_txt && !r->screen)
        return err_set(e, ERR_USAGE, "this program has no screen to export as txt");
    return output_check(r->output, e);
}

/* Destination of samples. */
struct export_sink {
    struct stack_counts *counts;
    struct thread_runs *runs;             /* NULL: their order is not needed */
    const struct export_renderer *screen; /* that is made of them, instead; NULL none */
    const struct model_target *target;
};

static int export_sink_init(struct export_sink *s, const struct export_format *f) {
    *s = (struct export_sink){.counts = stack_counts_new()};
    if (s->counts && (f->takes & EXPORT_WANTS_STATES))
        stack_counts_split(s->counts);
    if (f->takes & EXPORT_WANTS_ORDER)
        s->runs = thread_runs_new_sized(EXPORT_MAX_TICKS, EXPORT_MAX_RUNS);
    return s->counts && (s->runs || !(f->takes & EXPORT_WANTS_ORDER)) ? 0 : -1;
}

static void export_sink_fini(struct export_sink *s) {
    thread_runs_free(s->runs);
    stack_counts_free(s->counts);
}

static int export_on_batch(void *arg, struct model_sample_batch *batch) {
    struct export_sink *sink = arg;
    if (sink->screen)
        return sink->screen->take(sink->screen->arg, sink->target, batch);
    if (stack_counts_add_batch(sink->counts, batch) != 0)
        return -1;
    uint64_t samples = stack_counts_get_totals(sink->counts)->samples;
    if (samples)
        progress_note("%" PRIu64 " samples", samples);
    const uint32_t *entries = stack_counts_batch_entries(sink->counts);
    for (size_t i = 0; sink->runs && i < batch->n_samples; i++) {
        const struct model_sample *s = &batch->samples[i];
        uint32_t entry = entries[i] == STACK_COUNTS_NO_ENTRY ? THREAD_RUNS_NO_ENTRY : entries[i];
        struct thread_runs_sample sample = {s->timestamp, stack_counts_sample_us(batch, i), s->tid, entry,
                                            thread_runs_flags(s)};
        if (thread_runs_add(sink->runs, &sample) < 0)
            return -1;
    }
    return 0;
}

/* Look at the target as the format wants it; fills the snapshot and the counts. */
static int export_collect(const struct export_format *f, double duration_s, const struct export_request *r,
                          struct call *c, struct model_snapshot *snapshot, struct export_sink *sink,
                          double *elapsed_s, struct err *e) {
    sink->screen = export_screen(f, r);
    sink->target = call_get_target(c);
    bool sample = duration_s > 0 && (f->wants_samples || sink->screen),
         past = call_get_target(c)->mode == MODEL_MODE_RECORDED;
    if (sample && r->native && call_set_native(c, true, e) != 0)
        return -1;
    if (past)
        progress_begin("reading the recording", 0, NULL);
    else
        progress_begin(sample ? "sampling" : "measuring", duration_s, NULL);
    if (sample && call_sample(c, r->rate_hz != 0 ? r->rate_hz : EXPORT_RATE_HZ, past ? 0 : duration_s,
                              export_on_batch, sink, elapsed_s, e) != 0)
        return -1;
    /* what there is, whatever time was asked for */
    if (sample && past)
        *elapsed_s = call_get_target(c)->seen_s;
    if (sample && !f->wants_snapshot)
        return 0;
    unsigned interval_ms =
        sample || past || duration_s <= 0 ? EXPORT_INTERVAL_MS : (unsigned)(duration_s * 1000);
    struct wire_threads want = {.locals = r->locals, .native = r->native};
    int rc = want.locals || want.native ? call_details_measured(c, &want, interval_ms, snapshot, e)
                                        : call_snapshot_measured(c, interval_ms, snapshot, e);
    if (rc != 0)
        return -1;
    if (!sample && f->wants_samples && stack_counts_add_snapshot(sink->counts, snapshot) != 0)
        return err_set(e, ERR_FAILED, "out of memory for stacks");
    return 0;
}

/* From outside or without signals, stacks that changed during the read are left out, more of
 * running threads than of sleeping ones. A share that is not small is reported on stderr where
 * the format has no place for it. */
static void export_note_torn(const struct export_request *r, const struct model_target *target,
                             const struct stack_counts *counts) {
    const struct stack_counts_totals *totals = stack_counts_get_totals(counts);
    uint64_t all = totals->samples + totals->torn;
    bool outside = target->mode == MODEL_MODE_READONLY;
    if (!r->note || (!outside && totals->mode != MODEL_SAMPLING_GENTLE) ||
        totals->torn * EXPORT_TORN_SHARE <= all)
        return;
    strbuf_addf(r->note,
                "%" PRIu64 " of %" PRIu64 " samples were left out: the threads ran while they were read%s",
                totals->torn, all,
                outside ? " from outside; --block stops them for the moment"
                        : "; without --gentle they copy their own stacks");
}

/* A recording that is longer than the part that is read. */
static void export_note_truncated(const struct export_request *r, const struct model_target *target) {
    char length[32];
    if (!r->note || target->mode != MODEL_MODE_RECORDED || !target->seen_is_cut)
        return;
    text_human_duration(length, sizeof length, target->seen_s);
    strbuf_addf(r->note, "%sthe last %s of the recording; 'query' reads all of it", r->note->len ? "; " : "",
                length);
}

/* What was written where, for who does not see it: not if it goes to standard output. `data`: what it
 * was made of; NULL: of tables. */
static void export_note_written(const struct export_request *r, const struct export_data *data,
                                const struct strbuf *out) {
    char size[32];
    if (!r->note || output_is_stdout(r->output))
        return;
    text_human_bytes(size, sizeof size, (double)out->len);
    strbuf_addf(r->note, "%swrote %s (%s", r->note->len ? "; " : "", r->output, size);
    if (data && data->elapsed_s > 0)
        strbuf_addf(r->note, "; %" PRIu64 " samples, %.1f s", stack_counts_get_totals(data->counts)->samples,
                    data->elapsed_s);
    strbuf_addc(r->note, ')');
}

static int export_attached(const struct export_request *r, const struct export_format *f, double duration_s,
                           const struct target_address *addr, struct call *c, struct strbuf *out,
                           struct err *e) {
    struct model_snapshot snapshot = {0};
    struct export_sink sink;
    double elapsed_s = 0;
    bool sampled = duration_s > 0 && f->wants_samples;
    int rc = export_sink_init(&sink, f) == 0
                 ? export_collect(f, duration_s, r, c, &snapshot, &sink, &elapsed_s, e)
                 : err_set(e, ERR_FAILED, "out of memory for stacks");
    if (rc == 0) {
        struct export_data data = {
            .request = r, .address = addr, .target = call_get_target(c), .snapshot = &snapshot};
        data.elapsed_s = elapsed_s;
        data.until_s = data.target->mode == MODEL_MODE_RECORDED ? data.target->seen_until : clock_epoch_s();
        data.counts = sink.counts;
        data.runs = sink.runs;
        progress_begin("writing", 0, NULL);
        rc = f->render(&data, out, e);
        if (rc != 0 && out->failed)
            err_set(e, ERR_FAILED,
                    "the export would be larger than %zu MB: take fewer seconds, or another format",
                    out->limit >> 20);
        if (rc == 0 && sampled && !f->wants_snapshot)
            export_note_torn(r, data.target, sink.counts);
        if (rc == 0 && sampled)
            export_note_truncated(r, data.target);
        if (rc == 0 && sink.runs && r->note)
            export_lanes_note(sink.runs, sink.counts, r->note);
        if (rc == 0)
            export_note_written(r, &data, out);
    }
    export_sink_fini(&sink);
    model_snapshot_fini(&snapshot);
    return rc;
}

int export_run(const struct export_request *request, struct err *e) {
    const struct export_format *f = export_find(request->format, e);
    return f ? export_run_as(f, request, e) : -1;
}

int export_run_as(const struct export_format *f, const struct export_request *request, struct err *e) {
    const struct export_renderer *screen = export_screen(f, request);
    double usual_s = screen ? screen->duration_s : f->duration_s;
    double duration_s = request->once ? 0 : request->duration_s != 0 ? request->duration_s : usual_s;
    if (export_check(request, f, duration_s, e) != 0)
        return -1;
    struct target_address addr;
    if (request->address)
        addr = *request->address;
    else if (target_resolve(request->target, &addr, e) != 0)
        return -1;
    progress_begin("attaching", 0, NULL);
    int reached = target_reach(&addr, &request->how, e);
    progress_end();
    if (reached != 0)
        return -1;
    struct strbuf out;
    bool tables = request->sql || !f->render;
    strbuf_init(&out, tables || addr.recorded[0] ? EXPORT_RECORDED_MAX : EXPORT_OUTPUT_MAX);
    if (tables) {
        progress_begin(request->sql ? "querying" : "recording", request->sql ? 0 : duration_s, NULL);
        int rc = export_run_tables(request, duration_s, &addr, &out, e);
        progress_end();
        if (rc == 0)
            export_note_written(request, NULL, &out);
        if (rc == 0)
            rc = output_write(request->output, &out, e);
        strbuf_fini(&out);
        return rc;
    }
    struct call *c = call_open(&addr, e);
    if (!c)
        return -1;
    call_set_sampling(c, request->gentle ? MODEL_SAMPLING_GENTLE : MODEL_SAMPLING_EXACT);
    call_set_budget(c, request->budget_pct);
    int rc = export_attached(request, f, duration_s, &addr, c, &out, e);
    progress_end();
    if (rc == 0)
        rc = output_write(request->output, &out, e);
    strbuf_fini(&out);
    call_close(c);
    return rc;
}

/* ---- txt ---- */

/* The screen as text, drawn by a program with screens. */

int export_render_txt(const struct export_data *data, struct strbuf *out, struct err *e) {
    const struct export_renderer *screen = data->request->screen;
    return screen->render(screen->arg, data->address, data->target, data->snapshot, out, e);
}

/* ---- json ---- */

/*
 * The document of `probing backtrace --json`, with aggregated samples if it sampled for a while.
 */

int export_render_json(const struct export_data *data, struct strbuf *out, struct err *e) {
    struct json j;
    json_init(&j, out, 2);
    struct wire_threads want = {.locals = data->request->locals};
    document_put_backtrace(&j, data->target, data->snapshot, &want, data->elapsed_s > 0 ? data->counts : NULL,
                           data->elapsed_s);
    strbuf_addc(out, '\n');
    if (json_finish(&j) != 0 || out->failed)
        return err_set(e, ERR_FAILED, "out of memory for the JSON document");
    return 0;
}
