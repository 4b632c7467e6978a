/* SPDX-License-Identifier: Apache-2.0 */
/* get: reading the bodies of messages; see wire.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/codec.h"
#include "wire/field.h"
#include "wire/message.h"
#include "wire/wire.h"

/* Memory of one decoded message. */
#define GET_MAX_SMALL ((size_t)1024 * 1024)
#define GET_MAX_BATCH ((size_t)16 * 1024 * 1024)
#define GET_MAX_SNAPSHOT ((size_t)64 * 1024 * 1024)

/* Check that this kind of message has such a body. */
static int get_expect(const struct wire_message *m, bool expected, const char *what, struct err *e) {
    if (!expected)
        return err_set(e, ERR_FAILED, "message is not valid: it holds no %s", what);
    if (m->error)
        return err_set(e, ERR_FAILED, "%s", m->error);
    return 0;
}

/* Read a number under `key` of the body. 0, or -1 (`*out` untouched) if it is missing. */
static int get_uint(const struct wire_message *m, const char *key, uint64_t max, uint64_t *out) {
    struct codec_cursor value;
    struct codec_token t;
    if (!m->body.at || codec_find(m->body, &key, 1, &value) != 0 || !value.at || codec_read(&value, &t) != 0)
        return -1;
    return codec_token_uint(&t, max, out);
}

int wire_get_hello(const struct wire_message *m, int *version, struct err *e) {
    uint64_t v;
    if (get_expect(m, wire_message_method(m) == WIRE_HELLO, "hello", e) != 0)
        return -1;
    if (get_uint(m, "version", UINT16_MAX, &v) != 0)
        return field_fail(e, "hello", "version");
    *version = (int)v;
    return 0;
}

int wire_get_target(const struct wire_message *m, struct model_target *out, struct err *e) {
    static const char *const key = "target";
    struct codec_cursor target = {0};
    uint64_t version;
    *out = (struct model_target){0};
    arena_init(&out->arena, GET_MAX_SMALL);
    if (get_expect(m, m->type == WIRE_RESPONSE && m->body.at, "facts of a target", e) != 0)
        return -1;
    if (get_uint(m, "version", UINT16_MAX, &version) != 0)
        return field_fail(e, "hello", "version");
    if (version != WIRE_VERSION)
        return err_set(e, ERR_FAILED,
                       "the agent speaks version %d of the protocol, this program version %d: use the same "
                       "release of both",
                       (int)version, WIRE_VERSION);
    if (codec_find(m->body, &key, 1, &target) != 0 || !target.at)
        return field_fail(e, "hello", "target");
    return field_read_pairs(target, &FIELD_TARGET, out, &out->arena, e);
}

int wire_get_status(const struct wire_message *m, struct model_status *out, struct err *e) {
    static const char *const keys[] = {"strings", "tables", "settings", "leases", "doors", "holds"};
    struct codec_cursor part[6];
    struct field_strings strings;
    void *tables = NULL, *settings = NULL, *leases = NULL, *doors = NULL, *holds = NULL;
    *out = (struct model_status){0};
    arena_init(&out->arena, GET_MAX_SMALL);
    if (get_expect(m, m->type == WIRE_RESPONSE && m->body.at, "status", e) != 0)
        return -1;
    if (field_read_pairs(m->body, &FIELD_STATUS, out, &out->arena, e) != 0)
        return -1;
    if (codec_find(m->body, keys, 6, part) != 0)
        return field_fail(e, "status", "tables");
    int rc = field_read_strings(part[0], &strings, &out->arena, e);
    if (rc == 0)
        rc = field_read_columns(part[1], &FIELD_TABLES, &strings, &out->arena, &tables, &out->n_tables, e);
    if (rc == 0)
        rc = field_read_columns(part[2], &FIELD_SETTINGS, &strings, &out->arena, &settings, &out->n_settings,
                                e);
    if (rc == 0)
        rc = field_read_columns(part[3], &FIELD_LEASES, &strings, &out->arena, &leases, &out->n_leases, e);
    if (rc == 0)
        rc = field_read_columns(part[4], &FIELD_DOORS, &strings, &out->arena, &doors, &out->n_doors, e);
    if (rc == 0)
        rc = field_read_columns(part[5], &FIELD_HOLDS, &strings, &out->arena, &holds, &out->n_holds, e);
    out->tables = tables;
    out->settings = settings;
    out->leases = leases;
    out->doors = doors;
    out->holds = holds;
    return rc;
}

/* A string of at most cap - 1 bytes, without NULs. 0 or -1. */
static int get_text(struct codec_cursor value, char *buf, size_t cap) {
    struct codec_token t;
    if (!value.at || codec_read(&value, &t) != 0 || t.type != CODEC_STR || t.count >= cap ||
        memchr(t.bytes, 0, t.count))
        return -1;
    memcpy(buf, t.bytes, t.count);
    buf[t.count] = '\0';
    return 0;
}

int wire_get_config(const struct wire_message *m, struct wire_config *out, struct err *e) {
    static const char *const keys[] = {"key", "value"};
    struct codec_cursor value[2] = {{.at = NULL}};
    *out = (struct wire_config){.key = ""};
    if (get_expect(m, wire_message_method(m) == WIRE_CONFIG, "request to set something", e) != 0)
        return -1;
    if (!m->body.at || codec_find(m->body, keys, 2, value) != 0 ||
        get_text(value[0], out->key, sizeof out->key) != 0)
        return field_fail(e, "config", "key");
    return get_text(value[1], out->value, sizeof out->value) == 0 ? 0 : field_fail(e, "config", "value");
}

/* The mode; exact if it is missing or unknown. */
static enum model_sampling get_sampling(const struct wire_message *m) {
    static const char *const key = "mode";
    const char *gentle = model_sampling_name(MODEL_SAMPLING_GENTLE);
    struct codec_cursor value;
    struct codec_token t;
    if (!m->body.at || codec_find(m->body, &key, 1, &value) != 0 || !value.at ||
        codec_read(&value, &t) != 0 || t.type != CODEC_STR || t.count != strlen(gentle) ||
        memcmp(t.bytes, gentle, t.count) != 0)
        return MODEL_SAMPLING_EXACT;
    return MODEL_SAMPLING_GENTLE;
}

/* Read a flag of the body; false if it is missing. 0, or -1 for anything else. */
static int get_flag(const struct wire_message *m, const char *key, bool *out) {
    struct codec_cursor value;
    struct codec_token t;
    *out = false;
    if (!m->body.at || codec_find(m->body, &key, 1, &value) != 0 || !value.at)
        return 0;
    if (codec_read(&value, &t) != 0 || t.type != CODEC_BOOL)
        return -1;
    *out = t.b;
    return 0;
}

/* Unknown params of a newer client are skipped; params of a wrong type are refused. */
int wire_get_threads(const struct wire_message *m, struct wire_threads *out, struct err *e) {
    static const char *const keys[] = {"tid", "locals", "repr", "tasks", "native"};
    bool *const flags[] = {NULL, &out->locals, &out->repr, &out->tasks, &out->native};
    struct codec_cursor value[5];
    struct codec_token t;
    *out = (struct wire_threads){.locals = false};
    if (get_expect(m, wire_message_method(m) == WIRE_THREADS, "question for threads", e) != 0)
        return -1;
    out->mode = get_sampling(m);
    if (!m->body.at || codec_find(m->body, keys, 5, value) != 0)
        return 0;
    for (size_t i = 1; i < 5; i++) {
        if (!value[i].at)
            continue;
        if (codec_read(&value[i], &t) != 0 || t.type != CODEC_BOOL)
            return field_fail(e, "threads", keys[i]);
        *flags[i] = t.b;
    }
    if (value[0].at && (codec_read(&value[0], &t) != 0 || codec_token_int(&t, 0, INT64_MAX, &out->tid) != 0))
        return field_fail(e, "threads", keys[0]);
    return 0;
}

static int get_stream(const struct wire_message *m, enum wire_stream *out, struct err *e) {
    static const char *const key = "stream";
    struct codec_cursor value;
    struct codec_token t;
    if (!m->body.at || codec_find(m->body, &key, 1, &value) != 0 || !value.at || codec_read(&value, &t) != 0)
        return field_fail(e, wire_method_name(m->method), "stream");
    for (unsigned s = 0; s < WIRE_STREAM_COUNT; s++)
        if (codec_token_is(&t, wire_stream_name((enum wire_stream)s))) {
            *out = (enum wire_stream)s;
            return 0;
        }
    return err_set(e, ERR_FAILED, "there is no such stream: ask for 'threads' or 'samples'");
}

/* Read a number above 0 under `key`: 1, 0 if it is missing (`*out` untouched), -1 for anything
 * else. */
static int get_positive(const struct wire_message *m, const char *key, double *out) {
    struct codec_cursor value;
    struct codec_token t;
    if (codec_find(m->body, &key, 1, &value) != 0 || !value.at)
        return 0;
    if (codec_read(&value, &t) != 0 || (t.type != CODEC_DOUBLE && t.type != CODEC_UINT))
        return -1;
    double v = t.type == CODEC_DOUBLE ? t.f : (double)t.u;
    if (!isfinite(v) || v <= 0)
        return -1;
    *out = v;
    return 1;
}

int wire_get_subscribe(const struct wire_message *m, struct wire_subscribe *out, struct err *e) {
    *out = (struct wire_subscribe){.stream = WIRE_STREAM_UNKNOWN};
    if (get_expect(m, wire_message_method(m) == WIRE_SUBSCRIBE, "subscription", e) != 0 ||
        get_stream(m, &out->stream, e) != 0)
        return -1;
    if (get_positive(m, "rate_hz", &out->rate_hz) <= 0)
        return field_fail(e, "subscribe", "rate_hz");
    if (get_positive(m, "budget_pct", &out->budget_pct) < 0)
        return field_fail(e, "subscribe", "budget_pct");
    if (get_positive(m, "batch_s", &out->batch_s) < 0)
        return field_fail(e, "subscribe", "batch_s");
    out->mode = get_sampling(m);
    return get_flag(m, "native", &out->native) == 0 ? 0 : field_fail(e, "subscribe", "native");
}

int wire_get_unsubscribe(const struct wire_message *m, enum wire_stream *out, struct err *e) {
    *out = WIRE_STREAM_UNKNOWN;
    if (get_expect(m, wire_message_method(m) == WIRE_UNSUBSCRIBE, "stream to end", e) != 0)
        return -1;
    return get_stream(m, out, e);
}

/* ---- tables ---- */

int wire_get_tables(const struct wire_message *m, struct wire_table *out, size_t cap, size_t *n,
                    struct err *e) {
    static const char *const key = "tables", *const keys[] = {"name", "head"}, *const hidden = "withheld";
    struct codec_cursor list = {.at = NULL}, value[2];
    struct codec_token t;
    size_t count;
    *n = 0;
    if (get_expect(m, m->type == WIRE_RESPONSE && m->body.at, "tables", e) != 0)
        return -1;
    if (codec_find(m->body, &key, 1, &list) != 0 || !list.at || codec_read_array(&list, &count) != 0)
        return field_fail(e, "tables", key);
    for (; count > 0 && *n < cap; count--) {
        struct wire_table *table = &out[*n];
        if (codec_find(list, keys, 2, value) != 0 || codec_skip(&list) != 0)
            return field_fail(e, "tables", key);
        if (get_text(value[0], table->name, sizeof table->name) != 0)
            return field_fail(e, "tables", keys[0]);
        if (!value[1].at || codec_read(&value[1], &t) != 0 || t.type != CODEC_BIN)
            return field_fail(e, "tables", keys[1]);
        table->head = t.bytes;
        table->head_len = t.count;
        ++*n;
    }
    if (codec_find(m->body, &hidden, 1, &list) != 0 || !list.at)
        return 0;
    if (codec_read_array(&list, &count) != 0)
        return field_fail(e, "tables", hidden);
    for (; count > 0 && *n < cap; count--, ++*n) {
        out[*n] = (struct wire_table){.head = NULL};
        struct codec_cursor name = list;
        if (codec_skip(&list) != 0 || get_text(name, out[*n].name, sizeof out[*n].name) != 0)
            return field_fail(e, "tables", hidden);
    }
    return 0;
}

int wire_get_arm(const struct wire_message *m, struct wire_arm *out, struct err *e) {
    static const char *const key = "what";
    struct codec_cursor what = {.at = NULL};
    uint64_t steps = 0, every = 0;
    *out = (struct wire_arm){.what = ""};
    bool is = wire_message_method(m) == WIRE_ARM || wire_message_method(m) == WIRE_DISARM;
    if (get_expect(m, is, "request to start something", e) != 0)
        return -1;
    if (!m->body.at || codec_find(m->body, &key, 1, &what) != 0 ||
        get_text(what, out->what, sizeof out->what) != 0)
        return field_fail(e, "arm", "what");
    if (get_positive(m, "limit_s", &out->limit_s) < 0)
        return field_fail(e, "arm", "limit_s");
    get_uint(m, "steps", INT64_MAX, &steps);
    out->steps = (int64_t)steps;
    get_uint(m, "every", INT64_MAX, &every);
    out->every = (int64_t)every;
    if (get_flag(m, "dry", &out->dry) != 0)
        return field_fail(e, "arm", "dry");
    return get_flag(m, "compiled", &out->compiled) == 0 ? 0 : field_fail(e, "arm", "compiled");
}

int wire_get_pull(const struct wire_message *m, struct wire_pull *out, struct err *e) {
    static const char *const key = "table";
    struct codec_cursor table = {.at = NULL};
    uint64_t making, rows, heap_used;
    *out = (struct wire_pull){.table = ""};
    if (get_expect(m, wire_message_method(m) == WIRE_PULL, "request for rows", e) != 0)
        return -1;
    if (!m->body.at || codec_find(m->body, &key, 1, &table) != 0 ||
        get_text(table, out->table, sizeof out->table) != 0)
        return field_fail(e, "pull", key);
    if (get_uint(m, "making", UINT32_MAX, &making) != 0)
        return field_fail(e, "pull", "making");
    if (get_uint(m, "first_seq", UINT64_MAX, &out->first_seq) != 0)
        return field_fail(e, "pull", "first_seq");
    if (get_uint(m, "rows", UINT32_MAX, &rows) != 0)
        return field_fail(e, "pull", "rows");
    if (get_uint(m, "heap_used", UINT32_MAX, &heap_used) != 0)
        return field_fail(e, "pull", "heap_used");
    out->making = (uint32_t)making;
    out->rows = (uint32_t)rows;
    out->heap_used = (uint32_t)heap_used;
    return 0;
}

int wire_get_pulled(const struct wire_message *m, struct wire_pulled *out, struct err *e) {
    static const char *const key = "pieces";
    struct codec_cursor pieces = {.at = NULL};
    struct codec_token t;
    *out = (struct wire_pulled){.pieces = NULL};
    if (get_expect(m, m->type == WIRE_RESPONSE && m->body.at, "rows of a table", e) != 0)
        return -1;
    if (codec_find(m->body, &key, 1, &pieces) != 0 || !pieces.at || codec_read(&pieces, &t) != 0 ||
        t.type != CODEC_BIN)
        return field_fail(e, "pull", key);
    out->pieces = t.bytes;
    out->len = t.count;
    if (get_flag(m, "more", &out->more) != 0)
        return field_fail(e, "pull", "more");
    return get_flag(m, "anew", &out->anew) == 0 ? 0 : field_fail(e, "pull", "anew");
}

int wire_get_bye(const struct wire_message *m, char *reason, size_t cap) {
    static const char *const key = "reason";
    struct codec_cursor value;
    struct codec_token t;
    reason[0] = '\0';
    if (wire_message_notification(m) != WIRE_N_BYE || !m->body.at)
        return -1;
    if (codec_find(m->body, &key, 1, &value) != 0 || !value.at || codec_read(&value, &t) != 0 ||
        t.type != CODEC_STR)
        return -1;
    snprintf(reason, cap, "%.*s", (int)(t.count < cap ? t.count : cap), t.bytes);
    return 0;
}

/* ---- snapshots ---- */

#define GET_MAX_STACKS (FIELD_MAX_SHOWN / 8 * 7) /* stacks are cut so that the rest has room */
#define GET_FRAME_SHOWN 160                      /* without its names */
#define GET_AWAITER_SHOWN 1024                   /* a name, as it is cut where it is shown */

/* True if one more frame of those names fits. In a table of frames each row has the name of its
 * thread. */
static bool get_has_space(struct field_strings *strings, const struct model_frame *f, const char *thread) {
    size_t more = GET_FRAME_SHOWN + field_shown(f->func) + field_shown(f->file) + field_shown(f->module) +
                  field_shown(thread);
    return strings->shown <= GET_MAX_STACKS && more <= GET_MAX_STACKS - strings->shown &&
           field_show(strings, more) == 0;
}

/* The stacks of all threads: for each an array of numbers of `frames`, innermost first. Frames
 * without room are left out. */
static int get_stacks(struct codec_cursor map, struct field_strings *strings, struct model_snapshot *out,
                      const struct model_frame *frames, size_t n_frames, struct err *e) {
    static const char *const key = "stack";
    struct codec_cursor stacks;
    size_t n;
    if (!map.at || codec_find(map, &key, 1, &stacks) != 0 || !stacks.at)
        return 0;
    if (codec_read_array(&stacks, &n) != 0 || n != out->n_threads)
        return field_fail(e, "threads", key);
    for (size_t i = 0; i < n; i++) {
        struct model_thread *thread = &out->threads[i];
        const char *name = thread->name ? thread->name : thread->native_name;
        size_t depth;
        if (codec_read_array(&stacks, &depth) != 0)
            return field_fail(e, "threads", key);
        thread->frames = arena_calloc(&out->arena, depth, sizeof *thread->frames);
        if (!thread->frames)
            return field_fail_memory(e, "stacks");
        for (size_t d = 0; d < depth; d++) {
            struct codec_token t;
            if (codec_read(&stacks, &t) != 0 || t.type != CODEC_UINT || t.u >= n_frames)
                return field_fail(e, "threads", key);
            if (thread->n_frames == d && get_has_space(strings, &frames[t.u], name))
                thread->frames[thread->n_frames++] = frames[t.u];
        }
        thread->truncated |= thread->n_frames < depth;
        out->incomplete |= thread->n_frames < depth;
    }
    return 0;
}

/* The locals of frames that have any, in the order of the frames. */
static int get_locals(struct codec_cursor map, struct field_strings *strings, struct model_snapshot *out,
                      struct err *e) {
    static const char *const keys[] = {"frames", "values"};
    struct codec_cursor part[2];
    void *frames, *values;
    size_t n_frames, n_values, used = 0;
    if (!map.at)
        return 0;
    if (codec_find(map, keys, 2, part) != 0)
        return field_fail(e, "snapshot", "locals");
    if (field_read_columns(part[0], &FIELD_LOCALS_FRAMES, strings, &out->arena, &frames, &n_frames, e) != 0 ||
        field_read_columns(part[1], &FIELD_LOCALS, strings, &out->arena, &values, &n_values, e) != 0)
        return -1;
    for (size_t i = 0; i < n_values; i++)
        if (!((struct model_local *)values)[i].name)
            return field_fail(e, "locals", "name");
    struct model_locals *locals = arena_calloc(&out->arena, n_frames, sizeof *locals);
    if (!locals)
        return field_fail_memory(e, "locals");
    for (size_t i = 0; i < n_frames; i++) {
        const struct field_locals *f = (const struct field_locals *)frames + i;
        if (f->thread >= out->n_threads || f->depth >= out->threads[f->thread].n_frames ||
            f->count > n_values - used)
            return field_fail(e, "locals", "frames");
        struct model_thread *t = &out->threads[f->thread];
        if (!t->locals)
            t->locals = arena_calloc(&out->arena, t->n_frames, sizeof *t->locals);
        if (!t->locals)
            return field_fail_memory(e, "locals");
        locals[i] = (struct model_locals){
            .items = (struct model_local *)values + used, .n = f->count, .truncated = f->truncated};
        t->locals[f->depth] = &locals[i];
        used += f->count;
    }
    return 0;
}

/* The frames that one task awaits. */
static int get_task_stack(struct codec_cursor *stacks, struct field_strings *strings, struct model_task *task,
                          struct arena *arena, const struct model_frame *frames, size_t n_frames,
                          struct err *e) {
    size_t depth;
    struct codec_token t;
    if (codec_read_array(stacks, &depth) != 0)
        return field_fail(e, "tasks", "stack");
    task->frames = arena_calloc(arena, depth, sizeof *task->frames);
    if (!task->frames)
        return field_fail_memory(e, "tasks");
    for (size_t d = 0; d < depth; d++) {
        if (codec_read(stacks, &t) != 0 || t.type != CODEC_UINT || t.u >= n_frames)
            return field_fail(e, "tasks", "stack");
        if (task->n_frames == d && get_has_space(strings, &frames[t.u], NULL))
            task->frames[task->n_frames++] = frames[t.u];
    }
    task->truncated |= task->n_frames < depth;
    return 0;
}

static int get_task_awaiters(struct codec_cursor *ids, struct field_strings *strings, struct model_task *task,
                             struct arena *arena, struct err *e) {
    size_t n;
    struct codec_token t;
    if (codec_read_array(ids, &n) != 0)
        return field_fail(e, "tasks", "awaited_by");
    if (field_show(strings, n * GET_AWAITER_SHOWN) != 0)
        return field_fail_shown(e, "tasks");
    task->awaited_by = arena_calloc(arena, n, sizeof *task->awaited_by);
    if (!task->awaited_by)
        return field_fail_memory(e, "tasks");
    for (size_t k = 0; k < n; k++) {
        if (codec_read(ids, &t) != 0 || t.type != CODEC_UINT)
            return field_fail(e, "tasks", "awaited_by");
        task->awaited_by[k] = t.u;
    }
    task->n_awaited_by = n;
    return 0;
}

static int get_compare_tid(const void *a, const void *b) {
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* A task is shown with the thread of its loop. If many threads had the same number, a few tasks
 * would be shown many times. */
static int get_check_tids(struct model_snapshot *s, struct err *e) {
    int64_t *tids = arena_calloc(&s->arena, s->n_threads, sizeof *tids);
    if (!tids)
        return field_fail_memory(e, "tasks");
    for (size_t i = 0; i < s->n_threads; i++)
        tids[i] = s->threads[i].tid;
    qsort(tids, s->n_threads, sizeof *tids, get_compare_tid);
    for (size_t i = 1; i < s->n_threads; i++)
        if (tids[i] == tids[i - 1])
            return err_set(e, ERR_FAILED, "message is not valid: two threads have the tid %lld",
                           (long long)tids[i]);
    return 0;
}

static int get_tasks(struct codec_cursor map, struct field_strings *strings, struct model_snapshot *out,
                     const struct model_frame *frames, size_t n_frames, struct err *e) {
    static const char *const keys[] = {"stack", "awaited_by"};
    struct codec_cursor part[2];
    void *tasks;
    size_t n[2];
    if (!map.at)
        return 0;
    if (field_read_columns(map, &FIELD_TASKS, strings, &out->arena, &tasks, &out->n_tasks, e) != 0)
        return -1;
    out->tasks = tasks;
    if (out->n_tasks && get_check_tids(out, e) != 0)
        return -1;
    if (codec_find(map, keys, 2, part) != 0)
        return field_fail(e, "tasks", keys[0]);
    for (size_t i = 0; i < 2; i++)
        if (!part[i].at || codec_read_array(&part[i], &n[i]) != 0 || n[i] != out->n_tasks)
            return field_fail(e, "tasks", keys[i]);
    for (size_t i = 0; i < out->n_tasks; i++)
        if (get_task_stack(&part[0], strings, &out->tasks[i], &out->arena, frames, n_frames, e) != 0 ||
            get_task_awaiters(&part[1], strings, &out->tasks[i], &out->arena, e) != 0)
            return -1;
    return 0;
}

static int get_note(struct codec_cursor value, struct model_snapshot *out, struct err *e) {
    struct codec_token t;
    if (!value.at)
        return 0;
    if (codec_read(&value, &t) != 0 || t.type != CODEC_STR)
        return field_fail(e, "snapshot", "note");
    out->note = arena_strndup(&out->arena, t.bytes, t.count);
    return out->note ? 0 : field_fail_memory(e, "note");
}

int wire_get_snapshot(const struct wire_message *m, struct model_snapshot *out, struct err *e) {
    static const char *const keys[] = {"process", "strings", "frames", "threads", "locals", "tasks", "note"};
    struct codec_cursor part[7];
    struct field_strings strings;
    void *frames, *threads;
    size_t n_frames;
    bool expected =
        m->body.at && (m->type == WIRE_RESPONSE || wire_message_notification(m) == WIRE_N_THREADS);
    *out = (struct model_snapshot){0};
    arena_init(&out->arena, GET_MAX_SNAPSHOT);
    if (get_expect(m, expected, "threads", e) != 0)
        return -1;
    if (codec_find(m->body, keys, 7, part) != 0)
        return field_fail(e, "snapshot", "threads");
    if (field_read_pairs(m->body, &FIELD_SNAPSHOT, out, &out->arena, e) != 0 ||
        field_read_pairs(part[0], &FIELD_PROCESS, &out->process, &out->arena, e) != 0 ||
        field_read_strings(part[1], &strings, &out->arena, e) != 0 ||
        field_read_columns(part[2], &FIELD_FRAMES, &strings, &out->arena, &frames, &n_frames, e) != 0 ||
        field_read_columns(part[3], &FIELD_THREADS, &strings, &out->arena, &threads, &out->n_threads, e) != 0)
        return -1;
    get_uint(m, "dropped", UINT64_MAX, &out->dropped);
    out->threads = threads;
    return get_stacks(part[3], &strings, out, frames, n_frames, e) == 0 &&
                   get_locals(part[4], &strings, out, e) == 0 &&
                   get_tasks(part[5], &strings, out, frames, n_frames, e) == 0
               ? get_note(part[6], out, e)
               : -1;
}

/* ---- samples ---- */

int wire_get_samples(const struct wire_message *m, struct model_sample_batch *out, struct err *e) {
    static const char *const keys[] = {"strings", "frames", "stacks", "threads", "samples"};
    struct codec_cursor part[5];
    struct field_strings strings;
    void *frames, *stacks, *threads, *samples;
    *out = (struct model_sample_batch){0};
    arena_init(&out->arena, GET_MAX_BATCH);
    if (get_expect(m, wire_message_notification(m) == WIRE_N_SAMPLES && m->body.at, "samples", e) != 0)
        return -1;
    if (codec_find(m->body, keys, 5, part) != 0)
        return field_fail(e, "samples", "samples");
    if (field_read_pairs(m->body, &FIELD_BATCH, out, &out->arena, e) != 0 ||
        field_read_strings(part[0], &strings, &out->arena, e) != 0 ||
        field_read_columns(part[1], &FIELD_FRAME_DEFS, &strings, &out->arena, &frames, &out->n_frames, e) !=
            0 ||
        field_read_columns(part[2], &FIELD_STACK_DEFS, &strings, &out->arena, &stacks, &out->n_stacks, e) !=
            0 ||
        field_read_columns(part[3], &FIELD_THREAD_DEFS, &strings, &out->arena, &threads, &out->n_threads,
                           e) != 0 ||
        field_read_columns(part[4], &FIELD_SAMPLES, &strings, &out->arena, &samples, &out->n_samples, e) != 0)
        return -1;
    get_uint(m, "dropped", UINT64_MAX, &out->dropped);
    out->frames = frames;
    out->stacks = stacks;
    out->threads = threads;
    out->samples = samples;
    for (size_t i = 0; i < out->n_stacks; i++)
        if (out->stacks[i].parent_id >= out->stacks[i].stack_id)
            return field_fail(e, "stacks", "parent");
    return 0;
}
