/* SPDX-License-Identifier: Apache-2.0 */
/* past: see past.h. Reading. */
#include "client/past.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/rows.h"
#include "store/ring_tables.h"

#define PAST_MEMORY ((size_t)512 * 1024 * 1024)
#define PAST_QUERY_S 60.0
#define PAST_RECENT_S 3.0 /* what is older is not the last state */

#define PAST_TEXT_RECENT "3"
#define PAST_TEXT_WINDOW "60"

static int64_t past_int(const struct rows *r, size_t row, size_t column, int64_t unknown) {
    const struct rows_cell *c = rows_at(r, row, column);
    return c->kind == SQL_INTEGER ? c->i : unknown;
}

static double past_real(const struct rows *r, size_t row, size_t column) {
    const struct rows_cell *c = rows_at(r, row, column);
    return c->kind == SQL_REAL ? c->f : c->kind == SQL_INTEGER ? (double)c->i : NAN;
}

static const char *past_text(struct past *p, const struct rows *r, size_t row, size_t column) {
    const struct rows_cell *c = rows_at(r, row, column);
    return c->kind == SQL_TEXT ? arena_strdup(&p->arena, c->s) : NULL;
}

static int past_take_origin(struct past *p, const struct rows *r) {
    if (r->n > 0) {
        p->pid = past_int(r, 0, 0, MODEL_UNKNOWN);
        p->rank = past_int(r, 0, 1, MODEL_UNKNOWN);
        p->host = past_text(p, r, 0, 2);
    }
    return 0;
}

static int past_take_process(struct past *p, const struct rows *r) {
    if (r->n > 0) {
        p->process.cpu_pct = past_real(r, 0, 0);
        p->process.rss_bytes = past_int(r, 0, 1, MODEL_UNKNOWN);
        p->process.n_threads = past_int(r, 0, 2, MODEL_UNKNOWN);
    }
    return 0;
}

/* Rows in the order of their times: what comes later counts. */
static int past_take_facts(struct past *p, const struct rows *r) {
    const struct {
        const char *key, **value;
    } known[] = {{RING_FACT_CMD, &p->cmdline},
                 {RING_FACT_EXE, &p->exe},
                 {RING_FACT_PYTHON, &p->python},
                 {RING_FACT_TORCH, &p->torch},
                 {RING_FACT_AGENT, &p->agent}};
    for (size_t i = 0; i < r->n; i++) {
        const struct rows_cell *key = rows_at(r, i, 0);
        bool is_known = rows_at(r, i, 1)->kind == SQL_TEXT;
        for (size_t k = 0; key->kind == SQL_TEXT && is_known && k < sizeof known / sizeof known[0]; k++)
            if (strcmp(key->s, known[k].key) == 0)
                *known[k].value = past_text(p, r, i, 1);
        if (key->kind == SQL_TEXT && strcmp(key->s, RING_FACT_PYTHON) == 0)
            p->finalized = !is_known;
        if (key->kind == SQL_TEXT && strcmp(key->s, RING_FACT_STARTED_AT) == 0)
            p->started_at = past_real(r, i, 2);
    }
    if (p->seen_until > p->started_at)
        p->process.uptime_s = p->seen_until - p->started_at;
    return 0;
}

static int past_take_frames(struct past *p, const struct rows *r) {
    p->frames = arena_calloc(&p->arena, r->n + 1, sizeof *p->frames);
    for (size_t i = 0; p->frames && i < r->n; i++) {
        const struct rows_cell *kind = rows_at(r, i, 4);
        bool native =
            kind->kind == SQL_TEXT && strcmp(kind->s, model_frame_kind_name(MODEL_FRAME_NATIVE)) == 0;
        int64_t id = past_int(r, i, 0, 0) & UINT32_MAX;
        if (id == 0)
            continue;
        p->frames[p->n_frames++] =
            (struct model_frame_def){.frame_id = (uint32_t)id,
                                     .frame = {.kind = native ? MODEL_FRAME_NATIVE : MODEL_FRAME_PYTHON,
                                               .func = past_text(p, r, i, 1),
                                               .file = past_text(p, r, i, 2),
                                               .line = (int)past_int(r, i, 3, 0)}};
    }
    return p->frames ? 0 : -1;
}

static int past_take_stacks(struct past *p, const struct rows *r) {
    p->stacks = arena_calloc(&p->arena, r->n + 1, sizeof *p->stacks);
    for (size_t i = 0; p->stacks && i < r->n; i++) {
        struct model_stack_def def = {.stack_id = (uint32_t)past_int(r, i, 0, 0),
                                      .parent_id = (uint32_t)past_int(r, i, 1, 0),
                                      .frame_id = (uint32_t)past_int(r, i, 2, 0)};
        if (def.stack_id != 0)
            p->stacks[p->n_stacks++] = def;
    }
    return p->stacks ? 0 : -1;
}

static enum model_gil past_gil(const struct rows *r, size_t row, size_t column) {
    const struct rows_cell *c = rows_at(r, row, column);
    for (int gil = MODEL_GIL_NONE; c->kind == SQL_TEXT && gil <= MODEL_GIL_HELD; gil++)
        if (strcmp(c->s, model_gil_name((enum model_gil)gil)) == 0)
            return (enum model_gil)gil;
    return MODEL_GIL_UNKNOWN;
}

static int past_take_samples(struct past *p, const struct rows *r) {
    p->samples = arena_calloc(&p->arena, r->n + 1, sizeof *p->samples);
    for (size_t i = 0; p->samples && i < r->n; i++)
        p->samples[p->n_samples++] = (struct model_sample){.timestamp = past_real(r, i, 0),
                                                           .tid = past_int(r, i, 1, 0),
                                                           .stack_id = (uint32_t)past_int(r, i, 2, 0),
                                                           .on_cpu = (int8_t)past_int(r, i, 3, MODEL_UNKNOWN),
                                                           .gil = past_gil(r, i, 4),
                                                           .gc = (int8_t)past_int(r, i, 5, MODEL_UNKNOWN),
                                                           .torn = past_int(r, i, 6, 0) == 1};
    return p->samples ? 0 : -1;
}

/* Mean time between two looks, from the thread that was looked at most often. */
static int past_take_period(struct past *p, const struct rows *r) {
    if (r->n > 0 && past_real(r, 0, 0) > 0)
        p->period_us = past_real(r, 0, 0) * 1e6;
    return 0;
}

static int past_take_threads(struct past *p, const struct rows *r) {
    p->threads = arena_calloc(&p->arena, r->n + 1, sizeof *p->threads);
    for (size_t i = 0; p->threads && i < r->n; i++) {
        const struct rows_cell *state = rows_at(r, i, 3);
        struct model_thread t = {.tid = past_int(r, i, 0, 0),
                                 .name = past_text(p, r, i, 1),
                                 .native_name = past_text(p, r, i, 2),
                                 .state = state->kind == SQL_TEXT && state->len ? state->s[0] : '?',
                                 .on_cpu = MODEL_UNKNOWN,
                                 .gil_for_us = NAN,
                                 .gc = MODEL_UNKNOWN,
                                 .cpu_pct = past_real(r, i, 4)};
        p->threads[p->n_threads++].thread = t;
    }
    return p->threads ? 0 : -1;
}

/* Those that stand in both tables once. */
static const char past_threads_text[] =
    "SELECT tid, max(name) AS name, max(native_name) AS native_name, max(state) AS state, max(cpu_pct) AS "
    "cpu_pct FROM ("
    " SELECT tid, name, native_name, state, cpu_pct, max(timestamp) FROM system.threads_history"
    "  WHERE timestamp > now() - " PAST_TEXT_RECENT " GROUP BY tid"
    " UNION ALL"
    " SELECT tid, thread, NULL, NULL, NULL, max(timestamp) FROM python.samples"
    "  WHERE timestamp > now() - " PAST_TEXT_RECENT " GROUP BY tid)"
    " GROUP BY tid ORDER BY tid";

static const struct {
    const char *text;
    int (*take)(struct past *p, const struct rows *rows);
} past_steps[] = {
    {"SELECT pid, rank, host FROM python.samples UNION ALL SELECT pid, rank, host FROM system.process_history"
     " UNION ALL SELECT pid, rank, host FROM probing.status LIMIT 1",
     past_take_origin},
    {"SELECT cpu_pct, rss_bytes, threads, max(timestamp) FROM system.process_history WHERE timestamp > now() "
     "- " PAST_TEXT_RECENT,
     past_take_process},
    {"SELECT key, value, CAST(value AS REAL) FROM probing.facts ORDER BY timestamp", past_take_facts},
    {"SELECT frame_id, func, file, lineno, kind FROM python.frames GROUP BY frame_id ORDER BY frame_id",
     past_take_frames},
    {"SELECT stack_id, parent_id, frame_id FROM python.stacks GROUP BY stack_id ORDER BY stack_id",
     past_take_stacks},
    {"SELECT timestamp, tid, stack_id, on_cpu, gil, gc, torn FROM python.samples WHERE timestamp > now() "
     "- " PAST_TEXT_WINDOW " ORDER BY timestamp",
     past_take_samples},
    {"SELECT (max(timestamp) - min(timestamp)) / (count(*) - 1) FROM python.samples WHERE timestamp > now() "
     "- " PAST_TEXT_WINDOW " GROUP BY tid HAVING count(*) > 1 ORDER BY count(*) DESC LIMIT 1",
     past_take_period},
    {past_threads_text, past_take_threads},
};

static int past_run(struct past *p, struct database *d, const char *text,
                    int (*take)(struct past *p, const struct rows *rows), struct err *e) {
    struct sql_query q = {.timeout_s = PAST_QUERY_S};
    struct rows rows;
    struct sql_result *r = database_begin(d, text, &q, NULL, NULL, e);
    if (!r)
        return -1;
    int rc = rows_take(&rows, r, e);
    sql_end(r);
    if (rc == 0 && (take(p, &rows) != 0 || p->arena.failed))
        rc = err_set(e, ERR_FAILED, "out of memory for what the tables hold");
    rows_fini(&rows);
    return rc;
}

/* Last samples are of different moments: of those that held the GIL then, only the last did at the end. */
static void past_keep_holder(struct past *p, const double *at) {
    const struct past_thread *last = NULL;
    double last_at = 0;
    for (size_t i = 0; i < p->n_threads; i++)
        if (p->threads[i].thread.gil == MODEL_GIL_HELD && at[i] > last_at) {
            last = &p->threads[i];
            last_at = at[i];
        }
    for (size_t i = 0; i < p->n_threads; i++)
        if (p->threads[i].thread.gil == MODEL_GIL_HELD && &p->threads[i] != last)
            p->threads[i].thread.gil = MODEL_GIL_UNKNOWN;
}

/* What its last sample says of each thread. */
static void past_add_stacks(struct past *p) {
    double *at = arena_calloc(&p->arena, p->n_threads + 1, sizeof *at);
    if (!at)
        return;
    for (size_t i = 0; i < p->n_threads; i++) {
        struct past_thread *t = &p->threads[i];
        const struct model_sample *last = NULL;
        for (size_t k = p->n_samples; k > 0 && !last; k--) {
            const struct model_sample *s = &p->samples[k - 1];
            if (p->seen_until - s->timestamp > PAST_RECENT_S)
                break;
            last = s->tid == t->thread.tid ? s : NULL;
        }
        if (!last)
            continue;
        at[i] = last->timestamp;
        t->stack_id = last->stack_id;
        t->thread.has_python = true;
        t->thread.on_cpu = last->on_cpu;
        t->thread.gil = last->gil;
        t->thread.gc = last->gc;
        t->thread.torn = last->torn;
    }
    past_keep_holder(p, at);
}

int past_load(struct past *out, struct database *d, struct err *e) {
    *out = (struct past){.pid = MODEL_UNKNOWN,
                         .rank = MODEL_UNKNOWN,
                         .seen_until = sql_newest(database_sql(d)),
                         .from = NAN,
                         .period_us = NAN,
                         .started_at = NAN,
                         .process = {.cpu_pct = NAN,
                                     .uptime_s = NAN,
                                     .rss_bytes = MODEL_UNKNOWN,
                                     .n_threads = MODEL_UNKNOWN,
                                     .agent_cpu_pct = NAN,
                                     .agent_rss_bytes = MODEL_UNKNOWN}};
    arena_init(&out->arena, PAST_MEMORY);
    if (sql_target_count(database_sql(d)) > 1)
        return err_set(e, ERR_FAILED,
                       "the recording is of %zu processes: 'probing -t FILE query' asks them all",
                       sql_target_count(database_sql(d)));
    for (size_t i = 0; i < sizeof past_steps / sizeof past_steps[0]; i++)
        if (past_run(out, d, past_steps[i].text, past_steps[i].take, e) != 0)
            return -1;
    if (past_strip_native(out) != 0)
        return err_set(e, ERR_FAILED, "out of memory for what the tables hold");
    if (out->n_samples > 0)
        out->from = out->samples[0].timestamp;
    past_add_stacks(out);
    return 0;
}

void past_fini(struct past *p) {
    arena_fini(&p->arena);
    *p = (struct past){.n_threads = 0};
}
