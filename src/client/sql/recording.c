/* SPDX-License-Identifier: Apache-2.0 */
/* recording: see recording.h. Each row is converted when it is read, so that a long recording is
 * in memory only once. */
#include "client/sql/recording.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/grow.h"
#include "base/hash.h"
#include "base/table.h"
#include "store/ring/ring_tables.h"

#define RECORDING_MEMORY ((size_t)512 * 1024 * 1024)
#define RECORDING_QUERY_S 60.0
#define RECORDING_EVER_S 1e18 /* longer than any recording */
#define RECORDING_HALVINGS 4  /* the time that fits is found to a sixteenth */

#define RECORDING_TEXT_RECENT "3"
#define RECORDING_WAIT_MAX_S 1e10 /* longer than any wait */

/* Capacities of the arrays while a recording is read. */
struct recording_reading {
    struct recording *p;
    size_t frames, stacks, samples, threads, names, looks, processes, waits;
    int64_t counted, max_rows;
};

static int64_t recording_int(const struct sql_result *r, size_t column, int64_t unknown) {
    return sql_result_kind(r, column) == SQL_INTEGER ? sql_result_int(r, column) : unknown;
}

static double recording_real(const struct sql_result *r, size_t column) {
    enum sql_kind kind = sql_result_kind(r, column);
    return kind == SQL_REAL      ? sql_result_real(r, column)
           : kind == SQL_INTEGER ? (double)sql_result_int(r, column)
                                 : NAN;
}

/* A text, valid until the next row; "" if there is none. */
static const char *recording_word(const struct sql_result *r, size_t column) {
    size_t len;
    const char *text = sql_result_kind(r, column) == SQL_TEXT ? sql_result_text(r, column, &len) : NULL;
    return text ? text : "";
}

/* A copy of the text; NULL unknown. */
static const char *recording_text(struct recording *p, const struct sql_result *r, size_t column) {
    return sql_result_kind(r, column) == SQL_TEXT ? arena_strdup(&p->arena, recording_word(r, column)) : NULL;
}

/* Make room for one more item at the end of an array. */
static int recording_grow(void *items, size_t item_size, size_t n, size_t *cap) {
    return grow_array(items, item_size, n + 1, cap);
}

static int recording_take_count(struct recording_reading *l, const struct sql_result *r) {
    l->counted = recording_int(r, 0, 0);
    return 0;
}

static int recording_take_origin(struct recording_reading *l, const struct sql_result *r) {
    l->p->pid = recording_int(r, 0, MODEL_UNKNOWN);
    l->p->rank = recording_int(r, 1, MODEL_UNKNOWN);
    l->p->host = recording_text(l->p, r, 2);
    return 0;
}

static int recording_take_process(struct recording_reading *l, const struct sql_result *r) {
    struct model_process *process = &l->p->process;
    process->cpu_pct = recording_real(r, 0);
    process->rss_bytes = recording_int(r, 1, MODEL_UNKNOWN);
    process->n_threads = recording_int(r, 2, MODEL_UNKNOWN);
    return 0;
}

/* Rows are sorted by time: later ones replace earlier ones. */
static int recording_take_fact(struct recording_reading *l, const struct sql_result *r) {
    struct recording *p = l->p;
    const struct {
        const char *key, **value;
    } known[] = {{RING_FACT_CMD, &p->cmdline},
                 {RING_FACT_EXE, &p->exe},
                 {RING_FACT_PYTHON, &p->python},
                 {RING_FACT_TORCH, &p->torch},
                 {RING_FACT_AGENT, &p->agent}};
    const char *key = recording_word(r, 0);
    bool is_known = sql_result_kind(r, 1) == SQL_TEXT;
    for (size_t k = 0; is_known && k < sizeof known / sizeof known[0]; k++)
        if (strcmp(key, known[k].key) == 0)
            *known[k].value = recording_text(p, r, 1);
    if (strcmp(key, RING_FACT_PYTHON) == 0)
        p->finalized = !is_known;
    if (strcmp(key, RING_FACT_STARTED_AT) == 0)
        p->started_at = recording_real(r, 2);
    return 0;
}

static int recording_take_frame(struct recording_reading *l, const struct sql_result *r) {
    struct recording *p = l->p;
    int64_t id = recording_int(r, 0, 0) & UINT32_MAX;
    bool native = strcmp(recording_word(r, 4), model_frame_kind_name(MODEL_FRAME_NATIVE)) == 0;
    if (id == 0)
        return 0;
    if (recording_grow(&p->frames, sizeof *p->frames, p->n_frames, &l->frames) != 0)
        return -1;
    p->frames[p->n_frames++] =
        (struct model_frame_def){.frame_id = (uint32_t)id,
                                 .frame = {.kind = native ? MODEL_FRAME_NATIVE : MODEL_FRAME_PYTHON,
                                           .func = recording_text(p, r, 1),
                                           .file = recording_text(p, r, 2),
                                           .line = (int)recording_int(r, 3, 0)}};
    return 0;
}

static int recording_take_stack(struct recording_reading *l, const struct sql_result *r) {
    struct recording *p = l->p;
    struct model_stack_def def = {.stack_id = (uint32_t)recording_int(r, 0, 0),
                                  .parent_id = (uint32_t)recording_int(r, 1, 0),
                                  .frame_id = (uint32_t)recording_int(r, 2, 0)};
    if (def.stack_id == 0)
        return 0;
    if (recording_grow(&p->stacks, sizeof *p->stacks, p->n_stacks, &l->stacks) != 0)
        return -1;
    p->stacks[p->n_stacks++] = def;
    return 0;
}

static enum model_gil recording_gil(const char *word) {
    for (int gil = MODEL_GIL_NONE; gil <= MODEL_GIL_HOLDING; gil++)
        if (strcmp(word, model_gil_name((enum model_gil)gil)) == 0)
            return (enum model_gil)gil;
    return MODEL_GIL_UNKNOWN;
}

static int recording_take_sample(struct recording_reading *l, const struct sql_result *r) {
    struct recording *p = l->p;
    if (recording_grow(&p->samples, sizeof *p->samples, p->n_samples, &l->samples) != 0)
        return -1;
    p->samples[p->n_samples++] = (struct model_sample){.timestamp = recording_real(r, 0),
                                                       .tid = recording_int(r, 1, 0),
                                                       .stack_id = (uint32_t)recording_int(r, 2, 0),
                                                       .on_cpu = (int8_t)recording_int(r, 3, MODEL_UNKNOWN),
                                                       .gil = recording_gil(recording_word(r, 4)),
                                                       .gc = (int8_t)recording_int(r, 5, MODEL_UNKNOWN),
                                                       .torn = recording_int(r, 6, 0) == 1};
    return 0;
}

static int recording_take_thread(struct recording_reading *l, const struct sql_result *r) {
    struct recording *p = l->p;
    const char *state = recording_word(r, 3);
    if (recording_grow(&p->threads, sizeof *p->threads, p->n_threads, &l->threads) != 0)
        return -1;
    p->threads[p->n_threads++] = (struct recording_thread){.thread = {.tid = recording_int(r, 0, 0),
                                                                      .name = recording_text(p, r, 1),
                                                                      .native_name = recording_text(p, r, 2),
                                                                      .state = state[0] ? state[0] : '?',
                                                                      .on_cpu = MODEL_UNKNOWN,
                                                                      .gil_for_us = NAN,
                                                                      .gc = MODEL_UNKNOWN,
                                                                      .cpu_pct = recording_real(r, 4)}};
    return 0;
}

static int recording_take_name(struct recording_reading *l, const struct sql_result *r) {
    struct recording *p = l->p;
    if (recording_grow(&p->names, sizeof *p->names, p->n_names, &l->names) != 0)
        return -1;
    p->names[p->n_names++] =
        (struct recording_name){recording_int(r, 0, 0), recording_text(p, r, 1), recording_text(p, r, 2)};
    return 0;
}

static int recording_take_tick(struct recording_reading *l, const struct sql_result *r) {
    struct recording *p = l->p;
    const char *state = recording_word(r, 2);
    if (recording_grow(&p->looks, sizeof *p->looks, p->n_looks, &l->looks) != 0)
        return -1;
    p->looks[p->n_looks++] = (struct recording_tick){.time_s = recording_real(r, 0),
                                                     .tid = recording_int(r, 1, 0),
                                                     .state = state[0] ? state[0] : '?',
                                                     .cpu_pct = recording_real(r, 3)};
    return 0;
}

static int recording_take_second(struct recording_reading *l, const struct sql_result *r) {
    struct recording *p = l->p;
    if (recording_grow(&p->processes, sizeof *p->processes, p->n_processes, &l->processes) != 0)
        return -1;
    p->processes[p->n_processes++] =
        (struct recording_process){.time_s = recording_real(r, 0),
                                   .cpu_pct = recording_real(r, 1),
                                   .rss_bytes = recording_int(r, 2, MODEL_UNKNOWN),
                                   .n_threads = recording_int(r, 3, MODEL_UNKNOWN)};
    return 0;
}

static enum model_wait_kind recording_wait_kind(const char *word) {
    for (int kind = MODEL_WAIT_UNKNOWN + 1; kind < MODEL_WAIT_UNRECORDED; kind++)
        if (strcmp(word, model_wait_kind_name((enum model_wait_kind)kind)) == 0)
            return (enum model_wait_kind)kind;
    return MODEL_WAIT_UNKNOWN;
}

static uint64_t recording_number(const struct sql_result *r, size_t column) {
    int64_t number = recording_int(r, column, 0);
    return number > 0 ? (uint64_t)number : 0;
}

static int recording_take_wait(struct recording_reading *l, const struct sql_result *r) {
    struct recording *p = l->p;
    double waits_s = recording_real(r, 9);
    const char *holder = recording_word(r, 6);
    uint32_t flags = strcmp(holder, "perhaps") == 0  ? MODEL_WAIT_LIKELY | MODEL_WAIT_GUESSED
                     : strcmp(holder, "likely") == 0 ? MODEL_WAIT_LIKELY
                                                     : 0;
    flags |= recording_int(r, 8, 0) == 1 ? MODEL_WAIT_TIMED : 0;
    flags |= recording_int(r, 10, 0) == 1 ? MODEL_WAIT_DEADLOCK : 0;
    if (recording_grow(&p->waits, sizeof *p->waits, p->n_waits, &l->waits) != 0)
        return -1;
    p->waits[p->n_waits++] = (struct recording_wait){
        .time_s = recording_real(r, 0),
        .tid = recording_int(r, 1, 0),
        .wait = {.kind = recording_wait_kind(recording_word(r, 2)),
                 .flags = flags,
                 .tid = recording_number(r, 5),
                 .pid = recording_number(r, 7),
                 .for_us = waits_s > 0 && waits_s < RECORDING_WAIT_MAX_S ? (uint64_t)(waits_s * 1e6) : 0,
                 .what = recording_text(p, r, 3),
                 .detail = recording_text(p, r, 4)}};
    return 0;
}

/* Threads that are in both tables, once. */
static const char recording_threads_text[] =
    "SELECT tid, max(name) AS name, max(native_name) AS native_name, max(state) AS state, max(cpu_pct) AS "
    "cpu_pct FROM ("
    " SELECT tid, name, native_name, state, cpu_pct, max(timestamp) FROM system.threads_history"
    "  WHERE timestamp > now() - " RECORDING_TEXT_RECENT " GROUP BY tid"
    " UNION ALL"
    " SELECT tid, thread, NULL, NULL, NULL, max(timestamp) FROM python.samples"
    "  WHERE timestamp > now() - " RECORDING_TEXT_RECENT " GROUP BY tid)"
    " GROUP BY tid ORDER BY tid";

static const struct {
    const char *text;
    int (*take)(struct recording_reading *l, const struct sql_result *r); /* a row */
} recording_steps[] = {
    {"SELECT pid, rank, host FROM python.samples UNION ALL SELECT pid, rank, host FROM system.process_history"
     " UNION ALL SELECT pid, rank, host FROM probing.status LIMIT 1",
     recording_take_origin},
    {"SELECT cpu_pct, rss_bytes, threads, max(timestamp) FROM system.process_history WHERE timestamp > now() "
     "- " RECORDING_TEXT_RECENT,
     recording_take_process},
    {"SELECT key, value, CAST(value AS REAL) FROM probing.facts ORDER BY timestamp", recording_take_fact},
    {"SELECT frame_id, func, file, lineno, kind FROM python.frames GROUP BY frame_id ORDER BY frame_id",
     recording_take_frame},
    {"SELECT stack_id, parent_id, frame_id FROM python.stacks GROUP BY stack_id ORDER BY stack_id",
     recording_take_stack},
    {"SELECT timestamp, tid, stack_id, on_cpu, gil, gc, torn FROM python.samples WHERE timestamp > now() "
     "- :window ORDER BY timestamp",
     recording_take_sample},
    {recording_threads_text, recording_take_thread},
    {"SELECT tid, max(name), max(native_name) FROM (SELECT tid, name, native_name FROM system.threads_history"
     "  WHERE timestamp > now() - :window"
     " UNION ALL SELECT tid, thread, NULL FROM python.samples WHERE timestamp > now() - :window"
     ") GROUP BY tid ORDER BY tid",
     recording_take_name},
    {"SELECT timestamp, tid, state, cpu_pct FROM system.threads_history WHERE timestamp > now() "
     "- :window ORDER BY timestamp",
     recording_take_tick},
    {"SELECT timestamp, cpu_pct, rss_bytes, threads FROM system.process_history WHERE timestamp > now() "
     "- :window ORDER BY timestamp",
     recording_take_second},
    /* a row of a thread that stands is repeated within this time */
    {"SELECT timestamp, tid, kind, what, detail, waits_tid, holder, waits_pid, gives_up, waits_s, deadlock "
     "FROM python.waits WHERE timestamp > now() - :window - 120 ORDER BY timestamp",
     recording_take_wait},
};

static int recording_no_memory(struct err *e) {
    return err_set(e, ERR_FAILED, "out of memory for what the tables hold");
}

static int recording_run(struct recording_reading *l, struct database *d, const char *text,
                         int (*take)(struct recording_reading *l, const struct sql_result *r),
                         struct err *e) {
    const struct sql_named window = {":window", l->p->window_s};
    struct sql_query q = {
        .max_rows = (uint64_t)l->max_rows, .timeout_s = RECORDING_QUERY_S, .named = &window, .n_named = 1};
    struct sql_result *r = database_begin(d, text, &q, NULL, NULL, e);
    if (!r)
        return -1;
    int rc;
    while ((rc = sql_next(r, e)) == 1)
        if (take(l, r) != 0 || l->p->arena.failed) {
            rc = recording_no_memory(e);
            break;
        }
    sql_end(r);
    return rc;
}

/* Rows of a window: samples, and the kernel's ticks. */
static int recording_count(struct recording_reading *l, struct database *d, double window_s, struct err *e) {
    l->p->window_s = window_s;
    return recording_run(l, d,
                         "SELECT (SELECT count(*) FROM python.samples WHERE timestamp > now() - :window)"
                         " + (SELECT count(*) FROM system.threads_history WHERE timestamp > now() - :window)",
                         recording_take_count, e);
}

/* Choose the time before the end to read: all, or as much as has not too many rows. */
static int recording_choose_window(struct recording_reading *l, struct database *d, struct err *e) {
    double fits_s = 0, over_s = RECORDING_LEAST_S;
    if (recording_count(l, d, RECORDING_EVER_S, e) != 0)
        return -1;
    if (l->counted <= l->max_rows)
        return 0;
    l->p->is_cut = true;
    for (; over_s < RECORDING_EVER_S; fits_s = over_s, over_s *= 2) {
        if (recording_count(l, d, over_s, e) != 0)
            return -1;
        if (l->counted > l->max_rows)
            break;
    }
    for (int i = 0; i < RECORDING_HALVINGS; i++) {
        double middle_s = fits_s + (over_s - fits_s) / 2;
        if (recording_count(l, d, middle_s, e) != 0)
            return -1;
        *(l->counted > l->max_rows ? &over_s : &fits_s) = middle_s;
    }
    l->p->window_s = fits_s;
    return 0;
}

/* Each thread's state from its last sample. */
static void recording_add_stacks(struct recording *p) {
    double *at = arena_calloc(&p->arena, p->n_threads + 1, sizeof *at);
    if (!at)
        return;
    for (size_t i = 0; i < p->n_threads; i++) {
        struct recording_thread *t = &p->threads[i];
        const struct model_sample *last = NULL;
        for (size_t k = p->n_samples; k > 0 && !last; k--) {
            const struct model_sample *s = &p->samples[k - 1];
            if (p->seen_until - s->timestamp > RECORDING_RECENT_S)
                break;
            last = s->tid == t->thread.tid ? s : NULL;
        }
        if (!last)
            continue;
        at[i] = last->timestamp;
        recording_put_sample(t, last);
    }
    recording_keep_holder(p->threads, p->n_threads, at);
}

static void recording_add_waits(struct recording *p);

int recording_load(struct recording *out, struct database *d, size_t max_rows, struct err *e) {
    *out = (struct recording){.pid = MODEL_UNKNOWN,
                              .rank = MODEL_UNKNOWN,
                              .seen_until = sql_newest(database_sql(d)),
                              .from = NAN,
                              .started_at = NAN,
                              .process = {.cpu_pct = NAN,
                                          .uptime_s = NAN,
                                          .rss_bytes = MODEL_UNKNOWN,
                                          .n_threads = MODEL_UNKNOWN,
                                          .agent_cpu_pct = NAN,
                                          .agent_rss_bytes = MODEL_UNKNOWN}};
    struct recording_reading l = {.p = out, .max_rows = max_rows ? (int64_t)max_rows : RECORDING_MAX_ROWS};
    arena_init(&out->arena, RECORDING_MEMORY);
    if (sql_target_count(database_sql(d)) > 1)
        return err_set(e, ERR_FAILED,
                       "the recording has %zu processes: 'probing -t FILE query' reads them all",
                       sql_target_count(database_sql(d)));
    if (recording_choose_window(&l, d, e) != 0)
        return -1;
    for (size_t i = 0; i < sizeof recording_steps / sizeof recording_steps[0]; i++)
        if (recording_run(&l, d, recording_steps[i].text, recording_steps[i].take, e) != 0)
            return -1;
    if (out->seen_until > out->started_at)
        out->process.uptime_s = out->seen_until - out->started_at;
    if (recording_strip_native(out) != 0 || recording_weigh(out) != 0)
        return recording_no_memory(e);
    if (out->n_samples > 0)
        out->from = out->samples[0].timestamp;
    recording_add_stacks(out);
    if (recording_find_snapshots(out) != 0)
        return recording_no_memory(e);
    recording_add_waits(out);
    return 0;
}

void recording_fini(struct recording *p) {
    free(p->frames);
    free(p->stacks);
    free(p->samples);
    free(p->threads);
    free(p->names);
    free(p->looks);
    free(p->processes);
    free(p->waits);
    arena_fini(&p->arena);
    *p = (struct recording){.n_threads = 0};
}

/* ---- make ---- */

/* Snapshots and batches of samples, in the form in which a living target would send them. */

#define RECORDING_SNAPSHOT_MEMORY ((size_t)64 * 1024 * 1024)
#define RECORDING_BATCH_MEMORY ((size_t)512 * 1024 * 1024)
#define RECORDING_MAX_DEPTH 2048
#define RECORDING_TIME_MAX 1e11 /* the largest time that calendars support */

static const struct model_stack_def *recording_find_stack(const struct recording *p, uint32_t id) {
    size_t low = 0, high = p->n_stacks;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->stacks[middle].stack_id == id)
            return &p->stacks[middle];
        if (p->stacks[middle].stack_id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static const struct model_frame *recording_find_frame(const struct recording *p, uint32_t id) {
    size_t low = 0, high = p->n_frames;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->frames[middle].frame_id == id)
            return &p->frames[middle].frame;
        if (p->frames[middle].frame_id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static void recording_copy_frame(struct arena *a, struct model_frame *to, const struct model_frame *f) {
    *to = f ? *f : (struct model_frame){.kind = MODEL_FRAME_PYTHON};
    to->func = arena_strdup(a, to->func);
    to->file = arena_strdup(a, to->file);
    to->module = arena_strdup(a, to->module);
}

/* Frames of a stack, innermost first. Overwritten ones are left out, and the thread is marked. */
static void recording_put_stack(const struct recording *p, uint32_t stack_id, struct arena *a,
                                struct model_thread *t) {
    size_t n = 0;
    uint32_t id = stack_id;
    const struct model_stack_def *s;
    for (; n < RECORDING_MAX_DEPTH && id != 0 && (s = recording_find_stack(p, id)); id = s->parent_id)
        n++;
    t->truncated = id != 0;
    t->frames = arena_calloc(a, n + 1, sizeof *t->frames);
    id = stack_id;
    for (size_t i = 0; t->frames && i < n; i++) {
        s = recording_find_stack(p, id);
        recording_copy_frame(a, &t->frames[i], recording_find_frame(p, s->frame_id));
        id = s->parent_id;
    }
    t->n_frames = t->frames ? n : 0;
}

/* The holder of the GIL: 0 if every sampled thread neither holds nor wants it. */
static int64_t recording_find_holder(const struct model_snapshot *s) {
    bool looked = false, sure = true;
    for (size_t i = 0; i < s->n_threads; i++) {
        const struct model_thread *t = &s->threads[i];
        if (t->gil == MODEL_GIL_HOLDING)
            return t->tid;
        looked = looked || t->has_python;
        sure = sure && (!t->has_python || t->gil == MODEL_GIL_NONE);
    }
    return looked && sure ? 0 : MODEL_UNKNOWN;
}

/* Make a snapshot of one group of threads; the process's own comes first. */
static int recording_make_state(const struct recording *p, const struct recording_thread *threads, size_t n,
                                double time_s, struct model_snapshot *out) {
    *out = (struct model_snapshot){.timestamp = time_s,
                                   .gil_tid = MODEL_UNKNOWN,
                                   .gil_enabled = MODEL_UNKNOWN,
                                   .gc_running = MODEL_UNKNOWN,
                                   .cost_us = NAN,
                                   .process = p->process};
    arena_init(&out->arena, RECORDING_SNAPSHOT_MEMORY);
    out->threads = arena_calloc(&out->arena, n + 1, sizeof *out->threads);
    for (int pass = 0; out->threads && pass < 2; pass++)
        for (size_t i = 0; i < n; i++) {
            const struct recording_thread *from = &threads[i];
            bool main = from->thread.tid == p->pid;
            if (main != (pass == 0))
                continue;
            struct model_thread *t = &out->threads[out->n_threads++];
            *t = from->thread;
            t->name = arena_strdup(&out->arena, from->thread.name);
            t->native_name = arena_strdup(&out->arena, from->thread.native_name);
            t->wait.what = arena_strdup(&out->arena, from->thread.wait.what);
            t->wait.detail = arena_strdup(&out->arena, from->thread.wait.detail);
            if (t->wait.kind == MODEL_WAIT_UNRECORDED)
                out->note = "what threads waited for is recorded of those that had not run for two seconds";
            recording_put_stack(p, from->stack_id, &out->arena, t);
            if (t->gc == 1)
                out->gc_running = 1;
        }
    out->gil_tid = recording_find_holder(out);
    return out->threads && !out->arena.failed ? 0 : -1;
}

int recording_make_snapshot(const struct recording *p, struct model_snapshot *out) {
    return recording_make_state(p, p->threads, p->n_threads, p->seen_until, out);
}

int recording_make_snapshot_at(struct recording *p, size_t moment, struct model_snapshot *out) {
    struct recording_snapshot m = recording_read_snapshot(p, moment);
    int rc = recording_make_state(p, m.threads, m.n_threads, m.time_s, out);
    out->process = m.process;
    return rc;
}

static int recording_define(const struct recording *p, struct model_sample_batch *b) {
    b->frames = arena_calloc(&b->arena, p->n_frames + 1, sizeof *b->frames);
    b->stacks = arena_calloc(&b->arena, p->n_stacks + 1, sizeof *b->stacks);
    b->threads = arena_calloc(&b->arena, p->n_names + 1, sizeof *b->threads);
    if (!b->frames || !b->stacks || !b->threads)
        return -1;
    for (size_t i = 0; i < p->n_frames; i++) {
        b->frames[i].frame_id = p->frames[i].frame_id;
        recording_copy_frame(&b->arena, &b->frames[i].frame, &p->frames[i].frame);
    }
    if (p->n_stacks)
        memcpy(b->stacks, p->stacks, p->n_stacks * sizeof *b->stacks);
    for (size_t i = 0; i < p->n_names; i++)
        b->threads[i] =
            (struct model_thread_def){.tid = p->names[i].tid,
                                      .name = arena_strdup(&b->arena, p->names[i].name),
                                      .native_name = arena_strdup(&b->arena, p->names[i].native_name)};
    b->n_frames = p->n_frames;
    b->n_stacks = p->n_stacks;
    b->n_threads = p->n_names;
    return 0;
}

/* Mean time that the ticks of samples [from, to) stand for; NAN if there are none. */
static double recording_mean_us(const struct recording *p, size_t from, size_t to) {
    double us = 0;
    size_t n = 0;
    for (size_t i = from; i < to; i++)
        if (i == from || p->samples[i].timestamp > p->samples[i - 1].timestamp) {
            us += p->us[i];
            n++;
        }
    return n && us > 0 ? us / (double)n : NAN;
}

int recording_make_batch(const struct recording *p, size_t *next, struct model_sample_batch *out) {
    size_t from = *next, to = from;
    *out = (struct model_sample_batch){.epoch = 1, .cost_pct = NAN, .budget_pct = NAN};
    arena_init(&out->arena, RECORDING_BATCH_MEMORY);
    do
        to++;
    while (to < p->n_samples && p->samples[to].timestamp < p->samples[from].timestamp + 1);
    *next = to;
    if (from == 0 && recording_define(p, out) != 0)
        return -1;
    out->period_us = recording_mean_us(p, from, to);
    out->samples = arena_calloc(&out->arena, to - from + 1, sizeof *out->samples);
    out->us = arena_calloc(&out->arena, to - from + 1, sizeof *out->us);
    if (!out->samples || !out->us || out->arena.failed)
        return -1;
    memcpy(out->samples, p->samples + from, (to - from) * sizeof *out->samples);
    memcpy(out->us, p->us + from, (to - from) * sizeof *out->us);
    out->n_samples = to - from;
    return 0;
}

/* "ended, last seen 2026-11-20 12:40:01Z: WHY" */
static const char *recording_describe(const struct recording *p, const char *why, struct arena *a) {
    char at[40] = "at an unknown time", text[600];
    time_t t = (time_t)p->seen_until;
    struct tm tm;
    if (p->seen_until > 0 && p->seen_until < RECORDING_TIME_MAX && gmtime_r(&t, &tm))
        strftime(at, sizeof at, "%Y-%m-%d %H:%M:%SZ", &tm);
    snprintf(text, sizeof text, "last seen %s; %s%s", at, why,
             p->finalized ? "; its interpreter had ended by then" : "");
    return arena_strdup(a, text);
}

int recording_make_target(const struct recording *p, const char *why, struct model_target *out) {
    *out =
        (struct model_target){.pid = p->pid,
                              .uid = MODEL_UNKNOWN,
                              .rank = p->rank,
                              .started_at = p->started_at,
                              .mode = MODEL_MODE_RECORDED,
                              .seen_until = p->seen_until,
                              .seen_s = p->n_samples ? p->samples[p->n_samples - 1].timestamp - p->from : 0,
                              .seen_is_cut = p->is_cut};
    arena_init(&out->arena, RECORDING_SNAPSHOT_MEMORY);
    out->host = arena_strdup(&out->arena, p->host);
    out->cmdline = arena_strdup(&out->arena, p->cmdline);
    out->exe = arena_strdup(&out->arena, p->exe);
    out->python = arena_strdup(&out->arena, p->python);
    out->torch = arena_strdup(&out->arena, p->torch);
    out->agent_version = arena_strdup(&out->arena, p->agent);
    out->mode_reason = recording_describe(p, why, &out->arena);
    return out->arena.failed ? -1 : 0;
}

/* ---- native ---- */

/*
 * Removes native frames from the stacks of the tables. There a stack is a node below that of its
 * caller. A node of a native frame becomes that of the nearest Python frame below; nodes that
 * are equal then become one. Nodes are sorted by their ids, callers first.
 */

/* State while they are removed. */
struct recording_strip {
    struct recording *p;
    uint32_t *python;       /* per stack of p->stacks: the stack to show */
    struct table by_caller; /* positions in `kept`, by caller and frame */
    size_t n_kept;
    struct model_stack_def *kept;
};

static int recording_compare_frames(const void *key, const void *at) {
    uint32_t id = *(const uint32_t *)key, other = ((const struct model_frame_def *)at)->frame_id;
    return (id > other) - (id < other);
}

static int recording_compare_stacks(const void *key, const void *at) {
    uint32_t id = *(const uint32_t *)key, other = ((const struct model_stack_def *)at)->stack_id;
    return (id > other) - (id < other);
}

static bool recording_is_native(const struct recording *p, uint32_t frame_id) {
    const struct model_frame_def *f =
        bsearch(&frame_id, p->frames, p->n_frames, sizeof *p->frames, recording_compare_frames);
    return f && f->frame.kind == MODEL_FRAME_NATIVE;
}

/* The new number of a stack; one that does not exist keeps its number. */
static uint32_t recording_python_of(const struct recording_strip *s, uint32_t id) {
    const struct recording *p = s->p;
    const struct model_stack_def *at =
        id ? bsearch(&id, p->stacks, p->n_stacks, sizeof *p->stacks, recording_compare_stacks) : NULL;
    return at ? s->python[at - p->stacks] : id;
}

/* The number of the stack with this caller and frame; `def` is added if there is none. */
static uint32_t recording_keep_stack(struct recording_strip *s, const struct model_stack_def *def) {
    uint64_t hash = hash_mix((uint64_t)def->parent_id << 32 | def->frame_id);
    size_t at = TABLE_BEGIN;
    for (uint32_t i; (i = table_next(&s->by_caller, hash, &at)) != TABLE_NONE;)
        if (s->kept[i].parent_id == def->parent_id && s->kept[i].frame_id == def->frame_id)
            return s->kept[i].stack_id;
    table_add(&s->by_caller, hash, (uint32_t)s->n_kept);
    s->kept[s->n_kept++] = *def;
    return def->stack_id;
}

static void recording_strip_all(struct recording_strip *s) {
    struct recording *p = s->p;
    for (size_t i = 0; i < p->n_stacks; i++) {
        struct model_stack_def def = p->stacks[i];
        uint32_t caller = recording_python_of(s, def.parent_id);
        def.parent_id = caller;
        s->python[i] = recording_is_native(p, def.frame_id) ? caller : recording_keep_stack(s, &def);
    }
    for (size_t i = 0; i < p->n_samples; i++)
        p->samples[i].stack_id = recording_python_of(s, p->samples[i].stack_id);
    memcpy(p->stacks, s->kept, s->n_kept * sizeof *s->kept);
    p->n_stacks = s->n_kept;
}

int recording_strip_native(struct recording *p) {
    struct recording_strip s = {.p = p};
    bool any = false;
    for (size_t i = 0; i < p->n_frames && !any; i++)
        any = p->frames[i].frame.kind == MODEL_FRAME_NATIVE;
    if (!any || p->n_stacks == 0)
        return 0;
    s.python = calloc(p->n_stacks, sizeof *s.python);
    s.kept = calloc(p->n_stacks, sizeof *s.kept);
    bool room = s.python && s.kept && table_reserve(&s.by_caller, p->n_stacks) == 0;
    if (room)
        recording_strip_all(&s);
    free(s.python);
    free(s.kept);
    table_fini(&s.by_caller);
    return room ? 0 : -1;
}

/* ---- snapshots ---- */

/*
 * Moments before the last state, for stepping through. A moment is made like the last state:
 * from the last sample and the last row of each thread's history that are not older than
 * RECORDING_RECENT_S at that time. Only the times are kept; a moment is made on request, by
 * reading on from the one before.
 */

void recording_put_sample(struct recording_thread *t, const struct model_sample *s) {
    t->stack_id = s->stack_id;
    t->thread.has_python = true;
    t->thread.on_cpu = s->on_cpu;
    t->thread.gil = s->gil;
    t->thread.gc = s->gc;
    t->thread.torn = s->torn;
}

void recording_keep_holder(struct recording_thread *threads, size_t n, const double *at) {
    const struct recording_thread *last = NULL;
    double last_at = 0;
    for (size_t i = 0; i < n; i++)
        if (threads[i].thread.gil == MODEL_GIL_HOLDING && at[i] > last_at) {
            last = &threads[i];
            last_at = at[i];
        }
    for (size_t i = 0; i < n; i++)
        if (threads[i].thread.gil == MODEL_GIL_HOLDING && &threads[i] != last)
            threads[i].thread.gil = MODEL_GIL_UNKNOWN;
}

/* Position of the reader, and the newest rows of each thread up to there. */
struct recording_reader {
    size_t sample, look, process, wait;
    double until_s;
    const struct model_sample **samples; /* per name */
    const struct recording_tick **looks;
    const struct recording_wait **waits;
    double *moved;                    /* when the thread was last found to have run */
    struct recording_thread *threads; /* of the moment made last, */
    double *at;                       /* and the time of each thread's sample */
};

static size_t recording_name(const struct recording *p, int64_t tid) {
    size_t low = 0, high = p->n_names;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->names[middle].tid < tid)
            low = middle + 1;
        else
            high = middle;
    }
    return low < p->n_names && p->names[low].tid == tid ? low : SIZE_MAX;
}

/* Read all rows up to a time. */
static void recording_read_until(const struct recording *p, struct recording_reader *r, double time_s) {
    for (; r->sample < p->n_samples && p->samples[r->sample].timestamp <= time_s; r->sample++) {
        size_t i = recording_name(p, p->samples[r->sample].tid);
        if (i == SIZE_MAX)
            continue;
        const struct model_sample *s = &p->samples[r->sample], *before = r->samples[i];
        if (s->on_cpu != 0 || (before && before->stack_id != s->stack_id))
            r->moved[i] = s->timestamp;
        r->samples[i] = s;
    }
    for (; r->look < p->n_looks && p->looks[r->look].time_s <= time_s; r->look++) {
        size_t i = recording_name(p, p->looks[r->look].tid);
        if (i == SIZE_MAX)
            continue;
        if (p->looks[r->look].cpu_pct > 0)
            r->moved[i] = fmax(r->moved[i], p->looks[r->look].time_s);
        r->looks[i] = &p->looks[r->look];
    }
    for (; r->wait < p->n_waits && p->waits[r->wait].time_s <= time_s; r->wait++) {
        size_t i = recording_name(p, p->waits[r->wait].tid);
        if (i != SIZE_MAX)
            r->waits[i] = &p->waits[r->wait];
    }
    while (r->process < p->n_processes && p->processes[r->process].time_s <= time_s)
        r->process++;
}

static void recording_put_process(const struct recording *p, const struct recording_reader *r,
                                  struct recording_snapshot *m) {
    m->process = p->process;
    m->process.cpu_pct = NAN;
    m->process.rss_bytes = m->process.n_threads = MODEL_UNKNOWN;
    if (m->time_s > p->started_at)
        m->process.uptime_s = m->time_s - p->started_at;
    if (r->process == 0 || m->time_s - p->processes[r->process - 1].time_s > RECORDING_RECENT_S)
        return;
    const struct recording_process *last = &p->processes[r->process - 1];
    m->process.cpu_pct = last->cpu_pct;
    m->process.rss_bytes = last->rss_bytes;
    m->process.n_threads = last->n_threads;
}

/* Start again at the first row. */
static void recording_rewind(const struct recording *p, struct recording_reader *r) {
    r->sample = r->look = r->process = r->wait = 0;
    memset(r->samples, 0, p->n_names * sizeof *r->samples);
    memset(r->looks, 0, p->n_names * sizeof *r->looks);
    memset(r->waits, 0, p->n_names * sizeof *r->waits);
    memset(r->moved, 0, p->n_names * sizeof *r->moved);
}

static struct recording_thread recording_make_thread(const struct recording_name *name,
                                                     const struct model_sample *s,
                                                     const struct recording_tick *l) {
    struct recording_thread t = {.thread = {.tid = name->tid,
                                            .name = name->name,
                                            .native_name = name->native_name,
                                            .state = l ? l->state : '?',
                                            .on_cpu = MODEL_UNKNOWN,
                                            .gil_for_us = NAN,
                                            .gc = MODEL_UNKNOWN,
                                            .cpu_pct = l ? l->cpu_pct : NAN}};
    if (s)
        recording_put_sample(&t, s);
    return t;
}

/* What thread number `name` waits for. */
static struct model_wait recording_find_wait(const struct recording_reader *r, size_t name,
                                             const struct model_thread *t, double time_s) {
    const struct recording_wait *w = r->waits[name];
    struct model_wait wait = {.kind = MODEL_WAIT_UNKNOWN};
    /* one that runs, or wants to, waits for nothing but the GIL, which is in its samples */
    if (!t->has_python || t->on_cpu != 0 || t->gil == MODEL_GIL_HOLDING || t->gil == MODEL_GIL_WAITING)
        return wait;
    if (!w || w->time_s < r->moved[name]) {
        wait.kind = MODEL_WAIT_UNRECORDED;
        return wait;
    }
    wait = w->wait;
    if (time_s > w->time_s && time_s - w->time_s < RECORDING_WAIT_MAX_S)
        wait.for_us += (uint64_t)((time_s - w->time_s) * 1e6);
    return wait;
}

static void recording_add_waits(struct recording *p) {
    struct recording_reader *r = p->reader;
    r->until_s = p->seen_until;
    recording_read_until(p, r, p->seen_until);
    for (size_t i = 0; i < p->n_threads; i++) {
        struct model_thread *t = &p->threads[i].thread;
        size_t name = recording_name(p, t->tid);
        if (name != SIZE_MAX)
            t->wait = recording_find_wait(r, name, t, p->seen_until);
    }
}

struct recording_snapshot recording_read_snapshot(struct recording *p, size_t moment) {
    struct recording_reader *r = p->reader;
    struct recording_snapshot m = {.time_s = p->moments[moment], .threads = r->threads};
    if (m.time_s < r->until_s)
        recording_rewind(p, r);
    r->until_s = m.time_s;
    recording_read_until(p, r, m.time_s);
    for (size_t i = 0; i < p->n_names; i++) {
        const struct model_sample *s = r->samples[i];
        const struct recording_tick *l = r->looks[i];
        s = s && m.time_s - s->timestamp <= RECORDING_RECENT_S ? s : NULL;
        l = l && m.time_s - l->time_s <= RECORDING_RECENT_S ? l : NULL;
        if (!s && !l)
            continue;
        r->at[m.n_threads] = s ? s->timestamp : 0;
        struct recording_thread *t = &m.threads[m.n_threads++];
        *t = recording_make_thread(&p->names[i], s, l);
        t->thread.wait = recording_find_wait(r, i, &t->thread, m.time_s);
    }
    recording_keep_holder(m.threads, m.n_threads, r->at);
    recording_put_process(p, r, &m);
    return m;
}

/* Position of a search for moments. */
struct recording_place {
    size_t sample, look;
};

static double recording_quarter(const struct recording *p, double time_s) {
    return floor((p->seen_until - time_s) / RECORDING_SNAPSHOT_S);
}

/* The last time with a row in the next quarter of a second before the end; NAN if there is none. */
static double recording_next_time(const struct recording *p, struct recording_place *at) {
    double last = NAN;
    for (;;) {
        double sample = at->sample < p->n_samples ? p->samples[at->sample].timestamp : INFINITY,
               look = at->look < p->n_looks ? p->looks[at->look].time_s : INFINITY, next = fmin(sample, look);
        if (!(p->seen_until - next >= RECORDING_SNAPSHOT_S / 2) ||
            (!isnan(last) && recording_quarter(p, next) != recording_quarter(p, last)))
            return last;
        last = next;
        ++*(sample <= look ? &at->sample : &at->look);
    }
}

int recording_find_snapshots(struct recording *p) {
    size_t n = 0;
    for (struct recording_place at = {0}; !isnan(recording_next_time(p, &at));)
        n++;
    size_t every = n / RECORDING_SNAPSHOTS + 1;
    struct recording_reader *r = arena_calloc(&p->arena, 1, sizeof *r);
    if (!r)
        return -1;
    *r = (struct recording_reader){.until_s = -INFINITY,
                                   .samples = arena_calloc(&p->arena, p->n_names + 1, sizeof *r->samples),
                                   .looks = arena_calloc(&p->arena, p->n_names + 1, sizeof *r->looks),
                                   .waits = arena_calloc(&p->arena, p->n_names + 1, sizeof *r->waits),
                                   .moved = arena_calloc(&p->arena, p->n_names + 1, sizeof *r->moved),
                                   .threads = arena_calloc(&p->arena, p->n_names + 1, sizeof *r->threads),
                                   .at = arena_calloc(&p->arena, p->n_names + 1, sizeof *r->at)};
    p->reader = r;
    p->moments = arena_calloc(&p->arena, n / every + 2, sizeof *p->moments);
    if (!r->samples || !r->looks || !r->waits || !r->moved || !r->threads || !r->at || !p->moments)
        return -1;
    struct recording_place at = {0};
    for (size_t i = 0; i < n; i++) {
        double time_s = recording_next_time(p, &at);
        if (i == 0 || (n - 1 - i) % every == 0) /* the first one, and the newest */
            p->moments[p->n_moments++] = time_s;
    }
    return 0;
}

/* ---- weights ---- */

/*
 * The time that each sample of the tables stands for. A tick stands for the time that is closer
 * to it than to any other: half of the gap before it and half of the gap after it. So the time
 * between two ticks is counted once, at any sampling rate. A gap that is much longer than its
 * neighbours is a pause in sampling: that time belongs to no sample.
 */

#define RECORDING_NEAR 16 /* gaps on either side that determine the usual length */
/* maximum multiple of the usual gap (waits of the sampler end at 8 means, or 11.6 medians) */
#define RECORDING_PAUSE 12
/* minimum length of a pause: a tick delayed by a busy machine is not a pause */
#define RECORDING_PAUSE_S 0.5

static int recording_compare_times(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of at most RECORDING_NEAR gaps; NAN if there are none. */
static double recording_usual(const double *apart, size_t n) {
    double sorted[RECORDING_NEAR];
    if (n == 0)
        return NAN;
    for (size_t i = 0; i < n; i++)
        sorted[i] = apart[i];
    qsort(sorted, n, sizeof sorted[0], recording_compare_times);
    return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

/* The shares of gap number `i` of `n` for the tick before it and the tick after it, in seconds. */
static void recording_share(const double *apart, size_t n, size_t i, double *before, double *after) {
    size_t first = i < RECORDING_NEAR ? 0 : i - RECORDING_NEAR, left = n - i - 1;
    double earlier = recording_usual(apart + first, i - first),
           later = recording_usual(apart + i + 1, left < RECORDING_NEAR ? left : RECORDING_NEAR);
    double usual = fmax(earlier, later); /* if only one is known, that one */
    bool pause = apart[i] >= RECORDING_PAUSE_S && apart[i] > RECORDING_PAUSE * usual;
    *before = (!pause ? apart[i] : isnan(earlier) ? usual : earlier) / 2;
    *after = (!pause ? apart[i] : isnan(later) ? usual : later) / 2;
}

/* Times of all ticks, each once; returns their number. */
static size_t recording_list_ticks(const struct recording *p, double *times) {
    size_t n = 0;
    for (size_t i = 0; i < p->n_samples; i++)
        if (n == 0 || p->samples[i].timestamp > times[n - 1])
            times[n++] = p->samples[i].timestamp;
    return n;
}

/* Replace the `times` of `n` ticks by the time that they stand for, in seconds; `apart` has room
 * for as many. */
static void recording_weigh_ticks(double *times, double *apart, size_t n) {
    double before, after, half = 0;
    for (size_t i = 0; i + 1 < n; i++)
        apart[i] = times[i + 1] - times[i];
    for (size_t i = 0; i + 1 < n; i++) {
        recording_share(apart, n - 1, i, &before, &after);
        times[i] = (i ? half : before) + before; /* the time before the first tick is unknown */
        half = after;
    }
    times[n - 1] = 2 * half;
}

int recording_weigh(struct recording *p) {
    double *times, *apart;
    if (p->n_samples == 0)
        return 0;
    p->us = arena_calloc(&p->arena, p->n_samples, sizeof *p->us);
    times = calloc(p->n_samples, sizeof *times);
    apart = calloc(p->n_samples, sizeof *apart);
    if (!p->us || !times || !apart) {
        free(times);
        free(apart);
        return -1;
    }
    recording_weigh_ticks(times, apart, recording_list_ticks(p, times));
    size_t look = 0;
    for (size_t i = 0; i < p->n_samples; i++) {
        look += i > 0 && p->samples[i].timestamp > p->samples[i - 1].timestamp;
        p->us[i] = times[look] * 1e6;
    }
    free(times);
    free(apart);
    return 0;
}
