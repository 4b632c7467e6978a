/* SPDX-License-Identifier: Apache-2.0 */
/* recording: see recording.h. Reading: a row becomes an item as soon as it comes, so that a long recording is in memory once. */
#include "client/sql/recording.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "store/ring/ring_tables.h"

#define RECORDING_MEMORY ((size_t)512 * 1024 * 1024)
#define RECORDING_QUERY_S 60.0
#define RECORDING_EVER_S 1e18 /* longer than anything lasts */
#define RECORDING_HALVINGS 4  /* the time that fits is found to a sixteenth */

#define RECORDING_TEXT_RECENT "3"

/* While it is read: room of its arrays. */
struct recording_reading {
    struct recording *p;
    size_t frames, stacks, samples, threads, names, looks, processes;
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

/* The text itself, until the next row; "" there is none. */
static const char *recording_word(const struct sql_result *r, size_t column) {
    size_t len;
    const char *text = sql_result_kind(r, column) == SQL_TEXT ? sql_result_text(r, column, &len) : NULL;
    return text ? text : "";
}

/* Kept; NULL unknown. */
static const char *recording_text(struct recording *p, const struct sql_result *r, size_t column) {
    return sql_result_kind(r, column) == SQL_TEXT ? arena_strdup(&p->arena, recording_word(r, column)) : NULL;
}

/* Room for one item more at the end of an array. */
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

/* Rows in the order of their times: what comes later counts. */
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

/* Those that stand in both tables once. */
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

/* Rows of a window: samples, and what the kernel said. */
static int recording_count(struct recording_reading *l, struct database *d, double window_s, struct err *e) {
    l->p->window_s = window_s;
    return recording_run(l, d,
                         "SELECT (SELECT count(*) FROM python.samples WHERE timestamp > now() - :window)"
                         " + (SELECT count(*) FROM system.threads_history WHERE timestamp > now() - :window)",
                         recording_take_count, e);
}

/* How much of the time before the end is read: all, or as much as is not too many rows. */
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

/* What its last sample says of each thread. */
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
                       "the recording is of %zu processes: 'probing -t FILE query' asks them all",
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
    return recording_find_snapshots(out) == 0 ? 0 : recording_no_memory(e);
}

void recording_fini(struct recording *p) {
    free(p->frames);
    free(p->stacks);
    free(p->samples);
    free(p->threads);
    free(p->names);
    free(p->looks);
    free(p->processes);
    arena_fini(&p->arena);
    *p = (struct recording){.n_threads = 0};
}
