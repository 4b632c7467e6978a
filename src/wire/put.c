/* SPDX-License-Identifier: Apache-2.0 */
/* put: writing messages; see wire.h. */
#include <stdlib.h>
#include <string.h>

#include "wire/codec.h"
#include "wire/field.h"
#include "wire/intern.h"
#include "wire/wire.h"

/* Frames of all threads of one snapshot: the limit of a reader's memory. */
#define PUT_MAX_FRAMES ((size_t)1024 * 1024)

#define PUT_FRAME 32 /* bytes of a frame: frames beyond a small limit get no memory at all */
#define PUT_TAIL 32  /* room for what wire_put_dropped adds */

/* ---- envelopes: what comes before the params or the result ---- */

static void put_request_head(struct strbuf *out, uint32_t id, enum wire_method m) {
    codec_write_array(out, 4);
    codec_write_uint(out, WIRE_REQUEST);
    codec_write_uint(out, id);
    codec_write_str(out, wire_method_name(m));
}

static void put_response_head(struct strbuf *out, uint32_t id) {
    codec_write_array(out, 4);
    codec_write_uint(out, WIRE_RESPONSE);
    codec_write_uint(out, id);
    codec_write_nil(out);
}

static void put_notify_head(struct strbuf *out, enum wire_notification n) {
    codec_write_array(out, 3);
    codec_write_uint(out, WIRE_NOTIFY);
    codec_write_str(out, wire_notification_name(n));
}

static int put_done(const struct strbuf *out) { return out->failed ? -1 : 0; }

/* ---- requests ---- */

int wire_put_hello(struct strbuf *out, uint32_t id, const char *client_version) {
    put_request_head(out, id, WIRE_HELLO);
    codec_write_map(out, 2);
    codec_write_str(out, "version");
    codec_write_uint(out, WIRE_VERSION);
    codec_write_str(out, "client");
    codec_write_str(out, client_version);
    return put_done(out);
}

int wire_put_request(struct strbuf *out, uint32_t id, enum wire_method m) {
    put_request_head(out, id, m);
    codec_write_map(out, 0);
    return put_done(out);
}

int wire_put_config(struct strbuf *out, uint32_t id, const struct wire_config *c) {
    put_request_head(out, id, WIRE_CONFIG);
    codec_write_map(out, 2);
    codec_write_str(out, "key");
    codec_write_str(out, c->key);
    codec_write_str(out, "value");
    codec_write_str(out, c->value);
    return put_done(out);
}

static int put_arm(struct strbuf *out, uint32_t id, enum wire_method method, const struct wire_arm *a) {
    put_request_head(out, id, method);
    codec_write_map(out, 3U + (a->limit_s > 0) + a->dry + (a->every > 0));
    codec_write_str(out, "what");
    codec_write_str(out, a->what);
    if (a->limit_s > 0) {
        codec_write_str(out, "limit_s");
        codec_write_double(out, a->limit_s);
    }
    codec_write_str(out, "steps");
    codec_write_uint(out, a->steps > 0 ? (uint64_t)a->steps : 0);
    codec_write_str(out, "compiled");
    codec_write_bool(out, a->compiled);
    if (a->dry) {
        codec_write_str(out, "dry");
        codec_write_bool(out, true);
    }
    if (a->every > 0) {
        codec_write_str(out, "every");
        codec_write_uint(out, (uint64_t)a->every);
    }
    return put_done(out);
}

int wire_put_arm(struct strbuf *out, uint32_t id, const struct wire_arm *a) {
    return put_arm(out, id, WIRE_ARM, a);
}

int wire_put_disarm(struct strbuf *out, uint32_t id, const struct wire_arm *a) {
    return put_arm(out, id, WIRE_DISARM, a);
}

int wire_put_pull(struct strbuf *out, uint32_t id, const struct wire_pull *p) {
    put_request_head(out, id, WIRE_PULL);
    codec_write_map(out, 5);
    codec_write_str(out, "table");
    codec_write_str(out, p->table);
    codec_write_str(out, "making");
    codec_write_uint(out, p->making);
    codec_write_str(out, "first_seq");
    codec_write_uint(out, p->first_seq);
    codec_write_str(out, "rows");
    codec_write_uint(out, p->rows);
    codec_write_str(out, "heap_used");
    codec_write_uint(out, p->heap_used);
    return put_done(out);
}

static void put_mode(struct strbuf *out, enum model_sampling mode) {
    if (mode == MODEL_SAMPLING_EXACT)
        return;
    codec_write_str(out, "mode");
    codec_write_str(out, model_sampling_name(mode));
}

static void put_native(struct strbuf *out, bool native) {
    if (!native)
        return;
    codec_write_str(out, "native");
    codec_write_bool(out, true);
}

int wire_put_threads(struct strbuf *out, uint32_t id, const struct wire_threads *t) {
    put_request_head(out, id, WIRE_THREADS);
    const struct {
        const char *key;
        bool on;
    } flags[] = {{"native", t->native}, {"locals", t->locals}, {"repr", t->repr}, {"tasks", t->tasks}};
    unsigned n = (t->tid ? 1U : 0U) + (t->mode == MODEL_SAMPLING_EXACT ? 0U : 1U);
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        n += flags[i].on;
    codec_write_map(out, n);
    put_mode(out, t->mode);
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (flags[i].on) {
            codec_write_str(out, flags[i].key);
            codec_write_bool(out, true);
        }
    if (t->tid) {
        codec_write_str(out, "tid");
        codec_write_int(out, t->tid);
    }
    return put_done(out);
}

int wire_put_subscribe(struct strbuf *out, uint32_t id, const struct wire_subscribe *s) {
    put_request_head(out, id, WIRE_SUBSCRIBE);
    codec_write_map(out, 2U + (s->native ? 1U : 0U) + (s->mode == MODEL_SAMPLING_EXACT ? 0U : 1U) +
                             (s->budget_pct > 0 ? 1U : 0U) + (s->batch_s > 0 ? 1U : 0U));
    codec_write_str(out, "stream");
    codec_write_str(out, wire_stream_name(s->stream));
    codec_write_str(out, "rate_hz");
    codec_write_double(out, s->rate_hz);
    put_mode(out, s->mode);
    put_native(out, s->native);
    if (s->budget_pct > 0) {
        codec_write_str(out, "budget_pct");
        codec_write_double(out, s->budget_pct);
    }
    if (s->batch_s > 0) {
        codec_write_str(out, "batch_s");
        codec_write_double(out, s->batch_s);
    }
    return put_done(out);
}

int wire_put_unsubscribe(struct strbuf *out, uint32_t id, enum wire_stream s) {
    put_request_head(out, id, WIRE_UNSUBSCRIBE);
    codec_write_map(out, 1);
    codec_write_str(out, "stream");
    codec_write_str(out, wire_stream_name(s));
    return put_done(out);
}

/* ---- small answers and notifications ---- */

int wire_put_error(struct strbuf *out, uint32_t id, enum wire_error code, const char *text) {
    codec_write_array(out, 4);
    codec_write_uint(out, WIRE_RESPONSE);
    codec_write_uint(out, id);
    codec_write_map(out, 2);
    codec_write_str(out, "code");
    codec_write_uint(out, code);
    codec_write_str(out, "message");
    codec_write_str(out, text);
    codec_write_nil(out);
    return put_done(out);
}

int wire_put_ok(struct strbuf *out, uint32_t id) {
    put_response_head(out, id);
    codec_write_map(out, 0);
    return put_done(out);
}

static void put_limits(struct strbuf *out) {
    codec_write_map(out, 3);
    codec_write_str(out, "max_message");
    codec_write_uint(out, WIRE_MAX_MESSAGE);
    codec_write_str(out, "max_snapshot_hz");
    codec_write_double(out, WIRE_MAX_SNAPSHOT_HZ);
    codec_write_str(out, "max_sample_hz");
    codec_write_double(out, WIRE_MAX_SAMPLE_HZ);
}

int wire_put_target(struct strbuf *out, uint32_t id, const struct model_target *t) {
    put_response_head(out, id);
    codec_write_map(out, 3);
    codec_write_str(out, "version");
    codec_write_uint(out, WIRE_VERSION);
    codec_write_str(out, "limits");
    put_limits(out);
    codec_write_str(out, "target");
    codec_write_map(out, FIELD_TARGET.n);
    field_write_pairs(out, &FIELD_TARGET, t);
    return put_done(out);
}

static void put_strings(struct strbuf *out, const struct intern *in) {
    codec_write_str(out, "strings");
    codec_write_array(out, in->n_strings);
    for (size_t i = 0; i < in->n_strings; i++)
        codec_write_str(out, in->strings[i]);
}

int wire_put_status(struct strbuf *out, uint32_t id, const struct model_status *s) {
    struct intern strings;
    if (intern_init(&strings) != 0) {
        out->failed = true;
        return -1;
    }
    field_intern_columns(&FIELD_TABLES, s->tables, s->n_tables, &strings);
    field_intern_columns(&FIELD_SETTINGS, s->settings, s->n_settings, &strings);
    field_intern_columns(&FIELD_LEASES, s->leases, s->n_leases, &strings);
    field_intern_columns(&FIELD_DOORS, s->doors, s->n_doors, &strings);
    field_intern_columns(&FIELD_HOLDS, s->holds, s->n_holds, &strings);
    put_response_head(out, id);
    codec_write_map(out, FIELD_STATUS.n + 6);
    field_write_pairs(out, &FIELD_STATUS, s);
    put_strings(out, &strings);
    codec_write_str(out, "tables");
    field_write_columns(out, &FIELD_TABLES, s->tables, s->n_tables, &strings, 0);
    codec_write_str(out, "settings");
    field_write_columns(out, &FIELD_SETTINGS, s->settings, s->n_settings, &strings, 0);
    codec_write_str(out, "leases");
    field_write_columns(out, &FIELD_LEASES, s->leases, s->n_leases, &strings, 0);
    codec_write_str(out, "doors");
    field_write_columns(out, &FIELD_DOORS, s->doors, s->n_doors, &strings, 0);
    codec_write_str(out, "holds");
    field_write_columns(out, &FIELD_HOLDS, s->holds, s->n_holds, &strings, 0);
    out->failed |= strings.failed; /* numbers without their strings must not be sent */
    intern_fini(&strings);
    return put_done(out);
}

void wire_hide_target(struct model_target *t, enum wire_access may) { field_hide(&FIELD_TARGET, t, 1, may); }

void wire_hide_status(struct model_status *s, enum wire_access may) {
    field_hide(&FIELD_STATUS, s, 1, may);
    field_hide(&FIELD_TABLES, s->tables, s->n_tables, may);
    field_hide(&FIELD_SETTINGS, s->settings, s->n_settings, may);
    field_hide(&FIELD_LEASES, s->leases, s->n_leases, may);
    field_hide(&FIELD_DOORS, s->doors, s->n_doors, may);
    field_hide(&FIELD_HOLDS, s->holds, s->n_holds, may);
}

/* Names of withheld tables stand in a list of their own: a client that does not know it sees the
 * others. */
int wire_put_tables(struct strbuf *out, uint32_t id, const struct wire_table *tables, size_t n) {
    size_t withheld = 0;
    for (size_t i = 0; i < n; i++)
        withheld += !tables[i].head;
    put_response_head(out, id);
    codec_write_map(out, 1U + (withheld > 0));
    codec_write_str(out, "tables");
    codec_write_array(out, n - withheld);
    for (size_t i = 0; i < n; i++) {
        if (!tables[i].head)
            continue;
        codec_write_map(out, 2);
        codec_write_str(out, "name");
        codec_write_str(out, tables[i].name);
        codec_write_str(out, "head");
        codec_write_bin(out, tables[i].head, tables[i].head_len);
    }
    if (withheld) {
        codec_write_str(out, "withheld");
        codec_write_array(out, withheld);
    }
    for (size_t i = 0; i < n; i++)
        if (!tables[i].head)
            codec_write_str(out, tables[i].name);
    return put_done(out);
}

int wire_put_pulled(struct strbuf *out, uint32_t id, const struct wire_pulled *p) {
    put_response_head(out, id);
    codec_write_map(out, 3);
    codec_write_str(out, "more");
    codec_write_bool(out, p->more);
    codec_write_str(out, "anew");
    codec_write_bool(out, p->anew);
    codec_write_str(out, "pieces");
    codec_write_bin(out, p->pieces, p->len);
    return put_done(out);
}

int wire_put_bye(struct strbuf *out, const char *reason) {
    put_notify_head(out, WIRE_N_BYE);
    codec_write_map(out, 1);
    codec_write_str(out, "reason");
    codec_write_str(out, reason);
    return put_done(out);
}

/* ---- snapshots ---- */

/* A snapshot being written: the number of each frame, grouped by thread, at most `depth` of
 * each. */
struct put_snapshot {
    const struct model_snapshot *s;
    size_t depth;
    struct intern in;
    uint32_t *stacks;
    struct model_thread *threads; /* rows as sent */
    bool without_values;          /* for a reader that may not see values of the job */
    bool with_locals;
    struct field_locals *locals_frames; /* frames that have locals */
    size_t n_locals_frames;
    struct model_local *locals; /* of all of them */
    size_t n_locals;
    bool with_extras; /* tasks and the note */
    size_t n_tasks;
    uint32_t *task_stacks; /* the number of each frame, grouped by task */
};

static size_t put_depth_of(const struct put_snapshot *p, size_t thread) {
    size_t n = p->s->threads[thread].n_frames;
    return n < p->depth ? n : p->depth;
}

static size_t put_count_frames(const struct put_snapshot *p) {
    size_t total = 0;
    for (size_t i = 0; i < p->s->n_threads; i++)
        total += put_depth_of(p, i);
    return total;
}

/* Number the locals: their frames, and all of them in a row. */
static int put_prepare_locals(struct put_snapshot *p) {
    size_t frames = 0, values = 0;
    for (int pass = 0; pass < 2 && p->with_locals; pass++) {
        if (pass == 1) {
            p->locals_frames = calloc(frames + 1, sizeof *p->locals_frames);
            p->locals = calloc(values + 1, sizeof *p->locals);
            if (!p->locals_frames || !p->locals)
                return -1;
        }
        frames = values = 0;
        for (size_t i = 0; i < p->s->n_threads; i++)
            for (size_t d = 0; p->s->threads[i].locals && d < put_depth_of(p, i); d++) {
                const struct model_locals *l = p->s->threads[i].locals[d];
                if (!l)
                    continue;
                if (pass == 1) {
                    p->locals_frames[frames] =
                        (struct field_locals){(uint32_t)i, (uint32_t)d, (uint32_t)l->n, l->truncated};
                    for (size_t k = 0; k < l->n; k++)
                        p->locals[values + k] = l->items[k];
                }
                frames++;
                values += l->n;
            }
    }
    p->n_locals_frames = frames;
    p->n_locals = values;
    field_intern_columns(&FIELD_LOCALS, p->locals, p->n_locals, &p->in);
    return 0;
}

/* Number the frames of tasks. */
static int put_prepare_tasks(struct put_snapshot *p) {
    size_t total = 0;
    p->n_tasks = p->with_extras && p->s->tasks ? p->s->n_tasks : 0;
    for (size_t i = 0; i < p->n_tasks; i++)
        total += p->s->tasks[i].n_frames;
    p->task_stacks = malloc((total + 1) * sizeof *p->task_stacks);
    if (!p->task_stacks)
        return -1;
    uint32_t *at = p->task_stacks;
    for (size_t i = 0; i < p->n_tasks; i++)
        for (size_t d = 0; d < p->s->tasks[i].n_frames; d++)
            *at++ = intern_frame(&p->in, &p->s->tasks[i].frames[d]);
    field_intern_columns(&FIELD_TASKS, p->s->tasks, p->n_tasks, &p->in);
    return 0;
}

static int put_snapshot_prepare(struct put_snapshot *p) {
    if (intern_init(&p->in) != 0)
        return -1;
    size_t n = p->s->n_threads;
    p->stacks = malloc((put_count_frames(p) + 1) * sizeof *p->stacks);
    p->threads = calloc(n + 1, sizeof *p->threads);
    if (!p->stacks || !p->threads)
        return -1;
    uint32_t *at = p->stacks;
    for (size_t i = 0; i < n; i++) {
        p->threads[i] = p->s->threads[i];
        p->threads[i].truncated |= put_depth_of(p, i) < p->s->threads[i].n_frames;
        if (p->without_values)
            p->threads[i].wait.detail = NULL;
        for (size_t d = 0; d < put_depth_of(p, i); d++)
            *at++ = intern_frame(&p->in, &p->s->threads[i].frames[d]);
    }
    field_intern_columns(&FIELD_THREADS, p->threads, n, &p->in);
    return put_prepare_locals(p) != 0 || put_prepare_tasks(p) != 0 || p->in.failed ? -1 : 0;
}

static void put_snapshot_fini(struct put_snapshot *p) {
    intern_fini(&p->in);
    free(p->stacks);
    free(p->threads);
    free(p->locals_frames);
    free(p->locals);
    free(p->task_stacks);
}

static void put_tasks(struct strbuf *out, struct put_snapshot *p) {
    const uint32_t *at = p->task_stacks;
    codec_write_str(out, "tasks");
    field_write_columns(out, &FIELD_TASKS, p->s->tasks, p->n_tasks, &p->in, 2);
    codec_write_str(out, "stack");
    codec_write_array(out, p->n_tasks);
    for (size_t i = 0; i < p->n_tasks; i++) {
        codec_write_array(out, p->s->tasks[i].n_frames);
        for (size_t d = 0; d < p->s->tasks[i].n_frames; d++)
            codec_write_uint(out, *at++);
    }
    codec_write_str(out, "awaited_by");
    codec_write_array(out, p->n_tasks);
    for (size_t i = 0; i < p->n_tasks; i++) {
        codec_write_array(out, p->s->tasks[i].n_awaited_by);
        for (size_t k = 0; k < p->s->tasks[i].n_awaited_by; k++)
            codec_write_uint(out, p->s->tasks[i].awaited_by[k]);
    }
}

static void put_locals(struct strbuf *out, struct put_snapshot *p) {
    codec_write_str(out, "locals");
    codec_write_map(out, 2);
    codec_write_str(out, "frames");
    field_write_columns(out, &FIELD_LOCALS_FRAMES, p->locals_frames, p->n_locals_frames, &p->in, 0);
    codec_write_str(out, "values");
    field_write_columns(out, &FIELD_LOCALS, p->locals, p->n_locals, &p->in, 0);
}

static void put_snapshot_write(struct strbuf *out, struct put_snapshot *p) {
    struct model_snapshot head = *p->s;
    for (size_t i = 0; i < head.n_threads; i++)
        head.incomplete |= put_depth_of(p, i) < head.threads[i].n_frames;
    bool tasks = p->with_extras && head.tasks, note = p->with_extras && head.note;
    codec_write_map(out, FIELD_SNAPSHOT.n + 5 + (p->n_locals_frames > 0) + tasks + note);
    field_write_pairs(out, &FIELD_SNAPSHOT, &head);
    codec_write_str(out, "process");
    codec_write_map(out, FIELD_PROCESS.n);
    field_write_pairs(out, &FIELD_PROCESS, &head.process);
    put_strings(out, &p->in);
    codec_write_str(out, "frames");
    field_write_columns(out, &FIELD_FRAMES, p->in.frames, p->in.n_frames, &p->in, 0);
    codec_write_str(out, "threads");
    field_write_columns(out, &FIELD_THREADS, p->threads, head.n_threads, &p->in, 1);
    codec_write_str(out, "stack");
    codec_write_array(out, head.n_threads);
    const uint32_t *at = p->stacks;
    for (size_t i = 0; i < head.n_threads; i++) {
        codec_write_array(out, put_depth_of(p, i));
        for (size_t d = 0; d < put_depth_of(p, i); d++)
            codec_write_uint(out, *at++);
    }
    if (p->n_locals_frames > 0)
        put_locals(out, p);
    if (tasks)
        put_tasks(out, p);
    if (note) {
        codec_write_str(out, "note");
        codec_write_str(out, head.note);
    }
}

/* Write the body with as many frames as fit: a message that a reader must refuse is useless. */
static int put_snapshot_body(struct strbuf *out, const struct model_snapshot *s, bool locals, bool extras,
                             size_t most) {
    const bool hide = most != 0;
    struct put_snapshot p = {.s = s, .without_values = hide, .with_locals = locals, .with_extras = extras};
    size_t from = out->len;
    for (size_t i = 0; i < s->n_threads; i++)
        if (s->threads[i].n_frames > p.depth)
            p.depth = s->threads[i].n_frames;
    while (p.depth > 0 && put_count_frames(&p) > (most ? most / PUT_FRAME : PUT_MAX_FRAMES))
        p.depth /= 2;
    most = most ? most : WIRE_MAX_ASSEMBLED;
    for (;;) {
        int rc = put_snapshot_prepare(&p);
        if (rc == 0)
            put_snapshot_write(out, &p);
        put_snapshot_fini(&p);
        if (rc != 0)
            out->failed = true;
        if (out->failed || out->len + PUT_TAIL <= most)
            return put_done(out);
        if (p.depth == 0) {
            out->failed = true;
            return -1;
        }
        p = (struct put_snapshot){.s = s,
                                  .without_values = hide,
                                  .with_locals = locals,
                                  .with_extras = extras,
                                  .depth = p.depth / 2};
        out->len = from;
    }
}

int wire_put_dropped(struct strbuf *out, uint64_t dropped) {
    codec_write_str(out, "dropped");
    codec_write_uint(out, dropped);
    return put_done(out);
}

int wire_put_snapshot_open(struct strbuf *out, uint32_t id, const struct model_snapshot *s) {
    put_response_head(out, id);
    return put_snapshot_body(out, s, true, true, 0);
}

int wire_put_snapshot_wanted_open(struct strbuf *out, uint32_t id, const struct model_snapshot *s,
                                  const struct wire_threads *want) {
    struct model_snapshot part = *s;
    if (want->tid)
        model_snapshot_keep(&part, want->tid);
    if (!want->tasks)
        part.tasks = NULL;
    put_response_head(out, id);
    return put_snapshot_body(out, &part, want->locals, want->locals || want->tasks, want->most_bytes);
}

int wire_put_threads_notify_most(struct strbuf *out, const struct model_snapshot *s, size_t most_bytes) {
    put_notify_head(out, WIRE_N_THREADS);
    return put_snapshot_body(out, s, false, false, most_bytes);
}

int wire_put_threads_notify_open(struct strbuf *out, const struct model_snapshot *s) {
    return wire_put_threads_notify_most(out, s, 0);
}

int wire_put_snapshot(struct strbuf *out, uint32_t id, const struct model_snapshot *s) {
    return wire_put_snapshot_open(out, id, s) == 0 ? wire_put_dropped(out, s->dropped) : -1;
}

int wire_put_threads_notify(struct strbuf *out, const struct model_snapshot *s) {
    return wire_put_threads_notify_open(out, s) == 0 ? wire_put_dropped(out, s->dropped) : -1;
}

/* ---- samples ---- */

int wire_put_samples_notify_open(struct strbuf *out, const struct model_sample_batch *b) {
    struct intern in;
    if (intern_init(&in) != 0) {
        out->failed = true;
        return -1;
    }
    field_intern_columns(&FIELD_FRAME_DEFS, b->frames, b->n_frames, &in);
    field_intern_columns(&FIELD_THREAD_DEFS, b->threads, b->n_threads, &in);
    put_notify_head(out, WIRE_N_SAMPLES);
    codec_write_map(out, FIELD_BATCH.n + 6);
    field_write_pairs(out, &FIELD_BATCH, b);
    put_strings(out, &in);
    codec_write_str(out, "frames");
    field_write_columns(out, &FIELD_FRAME_DEFS, b->frames, b->n_frames, &in, 0);
    codec_write_str(out, "stacks");
    field_write_columns(out, &FIELD_STACK_DEFS, b->stacks, b->n_stacks, &in, 0);
    codec_write_str(out, "threads");
    field_write_columns(out, &FIELD_THREAD_DEFS, b->threads, b->n_threads, &in, 0);
    codec_write_str(out, "samples");
    field_write_columns(out, &FIELD_SAMPLES, b->samples, b->n_samples, &in, 0);
    out->failed |= in.failed || out->len + PUT_TAIL > WIRE_MAX_ASSEMBLED;
    intern_fini(&in);
    return put_done(out);
}

int wire_put_samples_notify(struct strbuf *out, const struct model_sample_batch *b) {
    return wire_put_samples_notify_open(out, b) == 0 ? wire_put_dropped(out, b->dropped) : -1;
}
