/* SPDX-License-Identifier: Apache-2.0 */
/* field: see field.h. */
#include "wire/field.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/model.h"

/* ---- the tables ---- */

/* Enumerators have a row form of their own (F_ENUM), because an enum is an int to the compiler. */
#define F(type, member, name)                                                                                            \
    {                                                                                                                    \
        .key = (name), .offset = offsetof(type, member),                                                               \
        .kind = _Generic(((type *)0)->member, bool : FIELD_BOOL, char : FIELD_CHAR, int8_t : FIELD_INT8, int : FIELD_INT, \
                         int64_t : FIELD_INT64, uint32_t : FIELD_UINT32, uint64_t : FIELD_UINT64, double : FIELD_DOUBLE,  \
                         const char * : FIELD_STR) \
    }
#define F_ENUM(type, member, name, largest)                                                                  \
    { .key = (name), .offset = offsetof(type, member), .kind = FIELD_ENUM, .max = (largest) }
/* A member that most messages have no use for. */
#define F_SPARSE(type, member, name)                                                                                     \
    {                                                                                                                    \
        .key = (name), .offset = offsetof(type, member), .sparse = true,                                               \
        .kind = _Generic(((type *)0)->member, uint32_t : FIELD_UINT32, uint64_t : FIELD_UINT64,                          \
                         const char * : FIELD_STR) \
    }
#define TABLE(id, type, text, rows)                                                                          \
    const struct field_table id = {                                                                          \
        .name = (text), .fields = (rows), .n = sizeof(rows) / sizeof *(rows), .stride = sizeof(type)};       \
    _Static_assert(sizeof(rows) / sizeof *(rows) <= FIELD_MAX, "a table is longer than FIELD_MAX")

static const struct field field_target[] = {
    F(struct model_target, pid, "pid"),
    F(struct model_target, uid, "uid"),
    F(struct model_target, host, "host"),
    F(struct model_target, cmdline, "cmdline"),
    F(struct model_target, exe, "exe"),
    F(struct model_target, python, "python"),
    F(struct model_target, torch, "torch"),
    F(struct model_target, rank, "rank"),
    F(struct model_target, started_at, "started_at"),
    F_ENUM(struct model_target, mode, "mode", MODEL_MODE_READONLY),
    F(struct model_target, agent_version, "agent_version"),
    F(struct model_target, discovery, "discovery"),
    F(struct model_target, python_untested, "python_untested"),
};
TABLE(FIELD_TARGET, struct model_target, "target", field_target);

static const struct field field_process[] = {
    F(struct model_process, cpu_pct, "cpu_pct"),
    F(struct model_process, uptime_s, "uptime_s"),
    F(struct model_process, rss_bytes, "rss_bytes"),
    F(struct model_process, n_threads, "n_threads"),
    F(struct model_process, agent_cpu_pct, "agent_cpu_pct"),
    F(struct model_process, agent_rss_bytes, "agent_rss_bytes"),
};
TABLE(FIELD_PROCESS, struct model_process, "process", field_process);

static const struct field field_snapshot[] = {
    F(struct model_snapshot, timestamp, "timestamp"),
    F(struct model_snapshot, seq, "seq"),
    F(struct model_snapshot, gil_tid, "gil_tid"),
    F(struct model_snapshot, cost_us, "cost_us"),
    F(struct model_snapshot, incomplete, "incomplete"),
    F(struct model_snapshot, gil_enabled, "gil_enabled"),
    F(struct model_snapshot, gc_running, "gc_running"),
    F_ENUM(struct model_snapshot, sampling, "sampling", MODEL_SAMPLING_GENTLE),
};
TABLE(FIELD_SNAPSHOT, struct model_snapshot, "snapshot", field_snapshot);

static const struct field field_threads[] = {
    F(struct model_thread, tid, "tid"),
    F(struct model_thread, ident, "ident"),
    F(struct model_thread, name, "name"),
    F(struct model_thread, native_name, "native_name"),
    F(struct model_thread, state, "state"),
    F(struct model_thread, on_cpu, "on_cpu"),
    F_ENUM(struct model_thread, gil, "gil", MODEL_GIL_HELD),
    F(struct model_thread, cpu_pct, "cpu_pct"),
    F(struct model_thread, has_python, "has_python"),
    F(struct model_thread, torn, "torn"),
    F(struct model_thread, truncated, "truncated"),
    F(struct model_thread, gil_for_us, "gil_for_us"),
    F(struct model_thread, gc, "gc"),
};
TABLE(FIELD_THREADS, struct model_thread, "threads", field_threads);

static const struct field field_frames[] = {
    F(struct model_frame, func, "func"),
    F(struct model_frame, file, "file"),
    F(struct model_frame, line, "line"),
    F_ENUM(struct model_frame, kind, "kind", MODEL_FRAME_ENTRY),
    F_SPARSE(struct model_frame, module, "module"),
    F_SPARSE(struct model_frame, address, "address"),
};
TABLE(FIELD_FRAMES, struct model_frame, "frames", field_frames);

static const struct field field_locals_frames[] = {
    F(struct field_locals, thread, "thread"),
    F(struct field_locals, depth, "depth"),
    F(struct field_locals, count, "count"),
    F(struct field_locals, truncated, "truncated"),
};
TABLE(FIELD_LOCALS_FRAMES, struct field_locals, "locals", field_locals_frames);

static const struct field field_locals[] = {
    F(struct model_local, name, "name"),
    F(struct model_local, type, "type"),
    F(struct model_local, text, "text"),
    F_ENUM(struct model_local, kind, "kind", MODEL_LOCAL_FREE),
};
TABLE(FIELD_LOCALS, struct model_local, "locals", field_locals);

static const struct field field_tasks[] = {
    F(struct model_task, id, "id"),
    F(struct model_task, tid, "tid"),
    F(struct model_task, name, "name"),
    F(struct model_task, coro, "coro"),
    F_ENUM(struct model_task, state, "state", MODEL_TASK_RUNNING),
    F(struct model_task, truncated, "truncated"),
};
TABLE(FIELD_TASKS, struct model_task, "tasks", field_tasks);

static const struct field field_batch[] = {
    F(struct model_sample_batch, epoch, "epoch"),
    F(struct model_sample_batch, period_us, "period_us"),
    F_ENUM(struct model_sample_batch, mode, "mode", MODEL_SAMPLING_GENTLE),
    F(struct model_sample_batch, cost_pct, "cost_pct"),
    F(struct model_sample_batch, budget_pct, "budget_pct"),
};
TABLE(FIELD_BATCH, struct model_sample_batch, "samples", field_batch);

static const struct field field_frame_defs[] = {
    F(struct model_frame_def, frame_id, "id"),
    F(struct model_frame_def, frame.func, "func"),
    F(struct model_frame_def, frame.file, "file"),
    F(struct model_frame_def, frame.line, "line"),
    F_ENUM(struct model_frame_def, frame.kind, "kind", MODEL_FRAME_ENTRY),
    F_SPARSE(struct model_frame_def, frame.module, "module"),
    F_SPARSE(struct model_frame_def, frame.address, "address"),
};
TABLE(FIELD_FRAME_DEFS, struct model_frame_def, "frames", field_frame_defs);

static const struct field field_stack_defs[] = {
    F(struct model_stack_def, stack_id, "id"),
    F(struct model_stack_def, parent_id, "parent"),
    F(struct model_stack_def, frame_id, "frame"),
};
TABLE(FIELD_STACK_DEFS, struct model_stack_def, "stacks", field_stack_defs);

static const struct field field_thread_defs[] = {
    F(struct model_thread_def, tid, "tid"),
    F(struct model_thread_def, name, "name"),
    F(struct model_thread_def, native_name, "native_name"),
};
TABLE(FIELD_THREAD_DEFS, struct model_thread_def, "threads", field_thread_defs);

static const struct field field_samples[] = {
    F(struct model_sample, timestamp, "timestamp"),
    F(struct model_sample, tid, "tid"),
    F(struct model_sample, stack_id, "stack"),
    F_SPARSE(struct model_sample, native_id, "native"),
    F(struct model_sample, on_cpu, "on_cpu"),
    F(struct model_sample, torn, "torn"),
    F_ENUM(struct model_sample, gil, "gil", MODEL_GIL_HELD),
    F(struct model_sample, gc, "gc"),
};
TABLE(FIELD_SAMPLES, struct model_sample, "samples", field_samples);

static const struct field field_status[] = {
    F(struct model_status, agent_version, "agent_version"),
    F(struct model_status, uptime_s, "uptime_s"),
    F(struct model_status, cpu_s, "cpu_s"),
    F(struct model_status, rss_bytes, "rss_bytes"),
    F(struct model_status, clients, "clients"),
    F(struct model_status, rate_hz, "rate_hz"),
    F(struct model_status, kept_hz, "kept_hz"),
    F(struct model_status, samples, "samples"),
    F(struct model_status, torn, "torn"),
    F(struct model_status, dropped, "dropped"),
    F(struct model_status, us_per_sample, "us_per_sample"),
    F(struct model_status, sampling, "sampling"),
    F(struct model_status, exact, "exact"),
    F(struct model_status, signals_sent, "signals_sent"),
    F(struct model_status, signals_late, "signals_late"),
    F(struct model_status, signals_refused, "signals_refused"),
    F(struct model_status, calls_restarted, "calls_restarted"),
    F(struct model_status, calls_interrupted, "calls_interrupted"),
    F(struct model_status, unknown_frames, "unknown_frames"),
    F(struct model_status, us_per_signal, "us_per_signal"),
    F(struct model_status, gil_holds, "gil_holds"),
    F(struct model_status, gil_refused, "gil_refused"),
    F(struct model_status, us_per_gil_hold, "us_per_gil_hold"),
    F(struct model_status, us_longest_gil_hold, "us_longest_gil_hold"),
    F(struct model_status, overhead_pct, "overhead_pct"),
    F(struct model_status, budget_pct, "budget_pct"),
    F(struct model_status, stretched, "stretched"),
    F(struct model_status, snapshots, "snapshots"),
    F(struct model_status, read_errors, "read_errors"),
    F(struct model_status, arena_limit_hits, "arena_limit_hits"),
    F(struct model_status, discovery, "discovery"),
    F(struct model_status, strategy, "strategy"),
    F(struct model_status, endpoint, "endpoint"),
    F(struct model_status, note, "note"),
    F(struct model_status, always_hz, "always_hz"),
    F(struct model_status, data_dir, "data_dir"),
    F(struct model_status, collect_note, "collect_note"),
    F(struct model_status, collect_pct, "collect_pct"),
    F(struct model_status, collect_us_per_s, "collect_us_per_s"),
    F(struct model_status, collect_threads_s, "collect_threads_s"),
    F(struct model_status, collect_missed, "collect_missed"),
};
TABLE(FIELD_STATUS, struct model_status, "status", field_status);

static const struct field field_table_rows[] = {
    F(struct model_table, rows, "rows"),     F(struct model_table, bytes, "bytes"),
    F(struct model_table, lost, "lost"),     F(struct model_table, oldest, "oldest"),
    F(struct model_table, newest, "newest"), F(struct model_table, name, "name"),
};
TABLE(FIELD_TABLES, struct model_table, "tables", field_table_rows);

static const struct field field_setting_rows[] = {
    F(struct model_setting, given, "given"),         F(struct model_setting, key, "key"),
    F(struct model_setting, value, "value"),         F(struct model_setting, unit, "unit"),
    F(struct model_setting, otherwise, "otherwise"), F(struct model_setting, help, "help"),
};
TABLE(FIELD_SETTINGS, struct model_setting, "settings", field_setting_rows);

/* ---- errors ---- */

int field_fail(struct err *e, const char *table, const char *key) {
    return err_set(e, ERR_FAILED,
                   "message is not valid: '%s' of '%s' is missing, of a wrong type or out of range", key,
                   table);
}

int field_fail_memory(struct err *e, const char *table) {
    return err_set(e, ERR_FAILED, "message is too large: no memory for '%s'", table);
}

/* ---- one value ---- */

static const void *field_at(const struct field *f, const void *row) { return (const char *)row + f->offset; }

static const char *field_str(const struct field *f, const void *row) {
    return *(const char *const *)field_at(f, row);
}

static bool field_is_letter(char c) { return c > ' ' && c <= '~'; }

/* Strings are written as they are when `strings` is NULL, else as their number. */
static void field_write(struct strbuf *out, const struct field *f, const void *row, struct intern *strings) {
    const void *p = field_at(f, row);
    switch (f->kind) {
    case FIELD_BOOL:
        codec_write_bool(out, *(const bool *)p);
        break;
    case FIELD_CHAR:
        if (field_is_letter(*(const char *)p) && *(const char *)p != '?')
            codec_write_strn(out, p, 1);
        else
            codec_write_nil(out);
        break;
    case FIELD_INT8:
        if (*(const int8_t *)p == MODEL_UNKNOWN)
            codec_write_nil(out);
        else
            codec_write_int(out, *(const int8_t *)p);
        break;
    case FIELD_INT:
        codec_write_int(out, *(const int *)p);
        break;
    case FIELD_INT64:
        if (*(const int64_t *)p == MODEL_UNKNOWN)
            codec_write_nil(out);
        else
            codec_write_int(out, *(const int64_t *)p);
        break;
    case FIELD_UINT32:
        codec_write_uint(out, *(const uint32_t *)p);
        break;
    case FIELD_UINT64:
        codec_write_uint(out, *(const uint64_t *)p);
        break;
    case FIELD_DOUBLE:
        codec_write_double(out, *(const double *)p);
        break;
    case FIELD_ENUM:
        codec_write_uint(out, *(const unsigned *)p);
        break;
    case FIELD_STR:
        if (!strings || !field_str(f, row))
            codec_write_str(out, field_str(f, row));
        else
            codec_write_uint(out, intern_string(strings, field_str(f, row)));
        break;
    }
}

static void field_set_unknown(const struct field *f, void *row) {
    void *p = (char *)row + f->offset;
    switch (f->kind) {
    case FIELD_BOOL:
        *(bool *)p = false;
        break;
    case FIELD_CHAR:
        *(char *)p = '?';
        break;
    case FIELD_INT8:
        *(int8_t *)p = MODEL_UNKNOWN;
        break;
    case FIELD_INT:
        *(int *)p = 0;
        break;
    case FIELD_INT64:
        *(int64_t *)p = MODEL_UNKNOWN;
        break;
    case FIELD_UINT32:
        *(uint32_t *)p = 0;
        break;
    case FIELD_UINT64:
        *(uint64_t *)p = 0;
        break;
    case FIELD_DOUBLE:
        *(double *)p = NAN;
        break;
    case FIELD_ENUM:
        *(unsigned *)p = 0;
        break;
    case FIELD_STR:
        *(const char **)p = NULL;
        break;
    }
}

static int field_take_str(const struct codec_token *t, const char **p, const struct field_strings *strings,
                          struct arena *arena) {
    if (strings) {
        if (t->type != CODEC_UINT || t->u >= strings->n)
            return -1;
        *p = strings->list[t->u];
        return 0;
    }
    if (t->type != CODEC_STR)
        return -1;
    *p = arena_strndup(arena, t->bytes, t->count);
    return *p ? 0 : -1;
}

static int field_take_double(const struct codec_token *t, double *p) {
    if (t->type == CODEC_DOUBLE)
        *p = t->f;
    else if (t->type == CODEC_UINT)
        *p = (double)t->u;
    else if (t->type == CODEC_INT)
        *p = (double)t->i;
    else
        return -1;
    return 0;
}

/* A whole number, within the range of the member. */
static int field_take_number(const struct field *f, const struct codec_token *t, void *p) {
    int64_t i;
    uint64_t u;
    switch (f->kind) {
    case FIELD_INT8:
        if (codec_token_int(t, INT8_MIN, INT8_MAX, &i) != 0)
            return -1;
        *(int8_t *)p = (int8_t)i;
        return 0;
    case FIELD_INT:
        if (codec_token_int(t, INT_MIN, INT_MAX, &i) != 0)
            return -1;
        *(int *)p = (int)i;
        return 0;
    case FIELD_INT64:
        return codec_token_int(t, INT64_MIN, INT64_MAX, p);
    case FIELD_UINT32:
        if (codec_token_uint(t, UINT32_MAX, &u) != 0)
            return -1;
        *(uint32_t *)p = (uint32_t)u;
        return 0;
    case FIELD_UINT64:
        return codec_token_uint(t, UINT64_MAX, p);
    case FIELD_ENUM:
        if (codec_token_uint(t, UINT64_MAX, &u) != 0)
            return -1;
        *(unsigned *)p = u <= f->max ? (unsigned)u : 0;
        return 0;
    default:
        return -1;
    }
}

static int field_read(struct codec_cursor *c, const struct field *f, void *row,
                      const struct field_strings *strings, struct arena *arena) {
    struct codec_token t;
    void *p = (char *)row + f->offset;
    struct codec_cursor whole = *c;
    if (codec_read(c, &t) != 0)
        return -1;
    if (t.type == CODEC_ARRAY || t.type == CODEC_MAP) {
        *c = whole;
        return -1;
    }
    field_set_unknown(f, row);
    if (t.type == CODEC_NIL)
        return 0;
    switch (f->kind) {
    case FIELD_BOOL:
        *(bool *)p = t.type == CODEC_BOOL && t.b;
        return t.type == CODEC_BOOL ? 0 : -1;
    case FIELD_CHAR:
        if (t.type != CODEC_STR || t.count != 1 || !field_is_letter(t.bytes[0]))
            return -1;
        *(char *)p = t.bytes[0];
        return 0;
    case FIELD_DOUBLE:
        return field_take_double(&t, p);
    case FIELD_STR:
        return field_take_str(&t, p, strings, arena);
    default:
        return field_take_number(f, &t, p);
    }
}

/* ---- structs and columns ---- */

void field_write_pairs(struct strbuf *out, const struct field_table *t, const void *row) {
    for (size_t i = 0; i < t->n; i++) {
        codec_write_str(out, t->fields[i].key);
        field_write(out, &t->fields[i], row, NULL);
    }
}

/* Is anything known in this (sparse) column? */
static bool field_any_known(const struct field *f, size_t stride, const void *rows, size_t n) {
    for (size_t r = 0; r < n; r++) {
        const void *p = field_at(f, (const char *)rows + r * stride);
        if (f->kind == FIELD_UINT32   ? *(const uint32_t *)p != 0
            : f->kind == FIELD_UINT64 ? *(const uint64_t *)p != 0
                                      : *(const char *const *)p != NULL)
            return true;
    }
    return false;
}

void field_write_columns(struct strbuf *out, const struct field_table *t, const void *rows, size_t n,
                         struct intern *strings, size_t extra) {
    bool left_out[FIELD_MAX];
    size_t columns = 0;
    for (size_t i = 0; i < t->n; i++) {
        left_out[i] = t->fields[i].sparse && !field_any_known(&t->fields[i], t->stride, rows, n);
        columns += !left_out[i];
    }
    codec_write_map(out, columns + extra);
    for (size_t i = 0; i < t->n; i++) {
        if (left_out[i])
            continue;
        codec_write_str(out, t->fields[i].key);
        codec_write_array(out, n);
        for (size_t r = 0; r < n; r++)
            field_write(out, &t->fields[i], (const char *)rows + r * t->stride, strings);
    }
}

void field_intern_columns(const struct field_table *t, const void *rows, size_t n, struct intern *strings) {
    for (size_t i = 0; i < t->n; i++)
        for (size_t r = 0; r < n && t->fields[i].kind == FIELD_STR; r++) {
            const char *s = field_str(&t->fields[i], (const char *)rows + r * t->stride);
            if (s)
                (void)intern_string(strings, s);
        }
}

static int field_find(struct codec_cursor map, const struct field_table *t, struct codec_cursor *values,
                      struct err *e) {
    const char *keys[FIELD_MAX];
    for (size_t i = 0; i < t->n; i++)
        keys[i] = t->fields[i].key;
    if (codec_find(map, keys, t->n, values) != 0)
        return err_set(e, ERR_FAILED, "message is not valid: '%s' is no map", t->name);
    return 0;
}

int field_read_pairs(struct codec_cursor map, const struct field_table *t, void *row, struct arena *arena,
                     struct err *e) {
    struct codec_cursor values[FIELD_MAX];
    for (size_t i = 0; i < t->n; i++)
        field_set_unknown(&t->fields[i], row);
    if (!map.at)
        return 0;
    if (field_find(map, t, values, e) != 0)
        return -1;
    for (size_t i = 0; i < t->n; i++)
        if (values[i].at && field_read(&values[i], &t->fields[i], row, NULL, arena) != 0)
            return arena->failed ? field_fail_memory(e, t->name) : field_fail(e, t->name, t->fields[i].key);
    return 0;
}

int field_read_strings(struct codec_cursor array, struct field_strings *out, struct arena *arena,
                       struct err *e) {
    *out = (struct field_strings){0};
    if (!array.at)
        return 0;
    size_t n;
    if (codec_read_array(&array, &n) != 0)
        return err_set(e, ERR_FAILED, "message is not valid: 'strings' is no array");
    const char **list = arena_calloc(arena, n, sizeof *list);
    if (!list)
        return field_fail_memory(e, "strings");
    for (size_t i = 0; i < n; i++) {
        struct codec_token t;
        if (codec_read(&array, &t) != 0 || t.type != CODEC_STR)
            return err_set(e, ERR_FAILED, "message is not valid: 'strings' holds something else");
        list[i] = arena_strndup(arena, t.bytes, t.count);
        if (!list[i])
            return field_fail_memory(e, "strings");
    }
    *out = (struct field_strings){.list = list, .n = n};
    return 0;
}

int field_read_columns(struct codec_cursor map, const struct field_table *t,
                       const struct field_strings *strings, struct arena *arena, void **rows, size_t *n,
                       struct err *e) {
    struct codec_cursor columns[FIELD_MAX];
    size_t count = 0;
    *rows = NULL;
    *n = 0;
    if (!map.at)
        return 0;
    if (field_find(map, t, columns, e) != 0)
        return -1;
    struct codec_cursor first = columns[0];
    if (!first.at || codec_read_array(&first, &count) != 0)
        return field_fail(e, t->name, t->fields[0].key);
    char *list = arena_calloc(arena, count, t->stride);
    if (!list)
        return field_fail_memory(e, t->name);
    for (size_t i = 0; i < t->n; i++) {
        const struct field *f = &t->fields[i];
        size_t len = count;
        if (columns[i].at && (codec_read_array(&columns[i], &len) != 0 || len != count))
            return field_fail(e, t->name, f->key);
        for (size_t r = 0; r < count; r++) {
            if (!columns[i].at)
                field_set_unknown(f, list + r * t->stride);
            else if (field_read(&columns[i], f, list + r * t->stride, strings, arena) != 0)
                return field_fail(e, t->name, f->key);
        }
    }
    *rows = list;
    *n = count;
    return 0;
}
