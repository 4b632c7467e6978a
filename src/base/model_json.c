/* SPDX-License-Identifier: Apache-2.0 */
/* model_json: see model_json.h. */
#include "base/model_json.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/model_text.h"

#define MODEL_JSON_WAIT_MAX 4096 /* bytes of the text about what a thread waits for */

void model_json_put_known(struct json *j, const char *key, int64_t v) {
    if (v == MODEL_UNKNOWN)
        json_kv_null(j, key);
    else
        json_kv_int(j, key, v);
}

void model_json_put_flag(struct json *j, const char *key, int8_t v) {
    if (v == MODEL_UNKNOWN)
        json_kv_null(j, key);
    else
        json_kv_bool(j, key, v != 0);
}

static void model_json_put_target(struct json *j, const struct model_target *t) {
    json_key(j, "target");
    json_object_begin(j);
    json_kv_int(j, "pid", t->pid);
    json_kv_string(j, "host", t->host);
    json_kv_string(j, "cmdline", t->cmdline);
    json_kv_string(j, "exe", t->exe);
    json_kv_string(j, "python", t->python);
    json_kv_string(j, "torch", t->torch);
    model_json_put_known(j, "rank", t->rank);
    json_kv_string(j, "mode", model_mode_name(t->mode));
    json_kv_string(j, "mode_reason", t->mode_reason);
    json_kv_bool(j, "blocking", t->blocking);
    json_kv_number(j, "started_at", t->started_at, 3);
    json_kv_string(j, "agent_version", t->agent_version);
    json_object_end(j);
}

static void model_json_put_process(struct json *j, const struct model_process *p) {
    json_key(j, "process");
    json_object_begin(j);
    json_kv_number(j, "cpu_pct", p->cpu_pct, 1);
    json_kv_number(j, "uptime_s", p->uptime_s, 1);
    model_json_put_known(j, "rss_bytes", p->rss_bytes);
    model_json_put_known(j, "threads", p->n_threads);
    json_kv_number(j, "agent_cpu_pct", p->agent_cpu_pct, 2);
    model_json_put_known(j, "agent_rss_bytes", p->agent_rss_bytes);
    json_object_end(j);
}

/* Variables by name; null if unknown. */
void model_json_put_variables(struct json *j, const struct model_locals *l) {
    json_object_begin(j);
    for (size_t i = 0; i < l->n; i++) {
        json_key(j, l->items[i].name);
        json_object_begin(j);
        json_kv_string(j, "type", l->items[i].type);
        json_kv_string(j, "repr", l->items[i].text);
        json_kv_string(j, "kind", model_local_kind_name(l->items[i].kind));
        json_object_end(j);
    }
    json_object_end(j);
}

static void model_json_put_locals(struct json *j, const struct model_locals *l) {
    json_key(j, "locals");
    if (!l) {
        json_null(j);
        return;
    }
    model_json_put_variables(j, l);
    json_kv_bool(j, "locals_truncated", l->truncated);
}

/* For native frames: the mapped file and, if the function is unknown, the address in it. */
static void model_json_put_module(struct json *j, const struct model_frame *f) {
    json_kv_string(j, "module", f->module);
    if (f->address)
        json_kv_uint(j, "address", f->address);
    else
        json_kv_null(j, "address");
}

void model_json_put_frame(struct json *j, const struct model_frame *f, size_t depth, bool with_locals,
                          const struct model_locals *locals) {
    json_object_begin(j);
    json_kv_uint(j, "depth", depth);
    json_kv_string(j, "kind", model_frame_kind_name(f->kind));
    json_kv_string(j, "func", f->func);
    json_kv_string(j, "file", f->file);
    if (f->line > 0)
        json_kv_int(j, "line", f->line);
    else
        json_kv_null(j, "line");
    if (f->kind == MODEL_FRAME_NATIVE)
        model_json_put_module(j, f);
    if (with_locals)
        model_json_put_locals(j, locals);
    json_object_end(j);
}

/* True if thread `t` runs the task's loop. With NULL: true if no thread of the snapshot is known
 * to run it. */
static bool model_json_is_task_of(const struct model_snapshot *s, const struct model_task *task,
                                  const struct model_thread *t) {
    if (t)
        return task->tid == t->tid;
    for (size_t i = 0; i < s->n_threads; i++)
        if (s->threads[i].tid == task->tid)
            return false;
    return true;
}

static void model_json_put_task(struct json *j, const struct model_task *t) {
    json_object_begin(j);
    json_kv_uint(j, "id", t->id);
    json_kv_string(j, "name", t->name);
    json_kv_string(j, "coro", t->coro);
    json_kv_string(j, "state", model_task_state_name(t->state));
    json_key(j, "awaited_by");
    json_array_begin(j);
    for (size_t i = 0; i < t->n_awaited_by; i++)
        json_uint(j, t->awaited_by[i]);
    json_array_end(j);
    json_kv_bool(j, "truncated", t->truncated);
    json_key(j, "frames");
    json_array_begin(j);
    for (size_t i = 0; i < t->n_frames; i++)
        model_json_put_frame(j, &t->frames[i], i, false, NULL);
    json_array_end(j);
    json_object_end(j);
}

/* null if unknown. */
static void model_json_put_tasks(struct json *j, const char *key, const struct model_snapshot *s,
                                 const struct model_thread *t) {
    json_key(j, key);
    if (!s->tasks) {
        json_null(j);
        return;
    }
    json_array_begin(j);
    for (size_t i = 0; i < s->n_tasks; i++)
        if (model_json_is_task_of(s, &s->tasks[i], t))
            model_json_put_task(j, &s->tasks[i]);
    json_array_end(j);
}

/* What the thread waits for; null if unknown. */
static void model_json_put_wait(struct json *j, const struct model_snapshot *s,
                                const struct model_thread *t) {
    const struct model_wait *w = &t->wait;
    struct strbuf text;
    json_key(j, "waits_for");
    if (!model_wait_is_known(w)) {
        json_null(j);
        return;
    }
    strbuf_init(&text, MODEL_JSON_WAIT_MAX);
    model_text_put_wait(&text, s, t, false);
    json_object_begin(j);
    json_kv_string(j, "kind", model_wait_kind_name(w->kind));
    json_kv_string(j, "text", strbuf_str(&text));
    json_kv_string(j, "what", w->what);
    json_kv_string(j, "detail", w->detail);
    model_json_put_known(j, "tid", w->tid ? (int64_t)w->tid : MODEL_UNKNOWN);
    model_json_put_known(j, "pid", w->pid ? (int64_t)w->pid : MODEL_UNKNOWN);
    json_kv_string(j, "holder",
                   !w->tid                         ? NULL
                   : w->flags & MODEL_WAIT_GUESSED ? "perhaps"
                   : w->flags & MODEL_WAIT_LIKELY  ? "likely"
                                                   : "sure");
    json_kv_bool(j, "gives_up", w->flags & MODEL_WAIT_TIMED);
    json_kv_bool(j, "deadlock", w->flags & MODEL_WAIT_DEADLOCK);
    json_kv_number(j, "for_s", w->for_us ? (double)w->for_us / 1e6 : NAN, 3);
    json_kv_number(j, "left_s", w->left_us ? (double)w->left_us / 1e6 : NAN, 3);
    json_object_end(j);
    strbuf_fini(&text);
}

static void model_json_put_thread(struct json *j, const struct model_snapshot *s,
                                  const struct model_thread *t, bool locals, bool tasks) {
    char state[2] = {t->state, '\0'};
    json_object_begin(j);
    json_kv_int(j, "tid", t->tid);
    json_kv_string(j, "name", t->name);
    json_kv_string(j, "native_name", t->native_name);
    json_kv_string(j, "state", t->state == '?' || !t->state ? NULL : state);
    model_json_put_flag(j, "on_cpu", t->on_cpu);
    json_kv_string(j, "gil", model_gil_name(t->gil));
    json_kv_number(j, "gil_wait_us", t->gil == MODEL_GIL_WAITING ? t->gil_for_us : NAN, 0);
    json_kv_number(j, "gil_held_us", t->gil == MODEL_GIL_HOLDING ? t->gil_for_us : NAN, 0);
    model_json_put_flag(j, "gc", t->gc);
    json_kv_number(j, "cpu_pct", t->cpu_pct, 1);
    json_kv_bool(j, "has_python", t->has_python);
    json_kv_bool(j, "torn", t->torn);
    json_kv_bool(j, "truncated", t->truncated);
    json_kv_uint(j, "stopped_us", t->stopped_us);
    model_json_put_wait(j, s, t);
    if (t->native != MODEL_NATIVE_NONE)
        json_kv_string(j, "native_merge",
                       model_native_name(t->native)); /* null if native frames are unknown */
    json_key(j, "frames");
    json_array_begin(j);
    for (size_t i = 0; i < t->n_frames; i++)
        model_json_put_frame(j, &t->frames[i], i, locals, t->locals ? t->locals[i] : NULL);
    json_array_end(j);
    if (tasks)
        model_json_put_tasks(j, "tasks", s, t);
    json_object_end(j);
}

void model_json_put_backtrace(struct json *j, const struct model_target *target,
                              const struct model_snapshot *snapshot, bool locals, bool tasks) {
    json_kv_int(j, "schema_version", MODEL_JSON_SCHEMA_VERSION);
    json_kv_number(j, "timestamp", snapshot->timestamp, 6);
    model_json_put_target(j, target);
    model_json_put_process(j, &snapshot->process);
    model_json_put_known(j, "gil_holder_tid", snapshot->gil_tid); /* 0 if no thread holds it */
    json_kv_string(j, "stacks_of_running_threads", model_sampling_name(snapshot->sampling));
    model_json_put_flag(j, "gil_enabled", snapshot->gil_enabled);
    model_json_put_flag(j, "gc_running", snapshot->gc_running);
    json_kv_bool(j, "incomplete", snapshot->incomplete);
    json_kv_number(j, "cost_us", snapshot->cost_us, 0);
    json_key(j, "threads");
    json_array_begin(j);
    for (size_t i = 0; i < snapshot->n_threads; i++)
        model_json_put_thread(j, snapshot, &snapshot->threads[i], locals, tasks);
    json_array_end(j);
    if (tasks)
        model_json_put_tasks(j, "other_tasks", snapshot, NULL);
}

/* The members of a status that are shown under a key of their own; see model_status.def. */
static const struct {
    const char *group, *key; /* group NULL: it is shown elsewhere */
    enum { STATUS_IS_COUNT, STATUS_IS_INTEGER, STATUS_IS_NUMBER, STATUS_IS_FLAG, STATUS_IS_TEXT } kind;
    int decimals;
    size_t offset;
} model_json_status[] = {
#define STATUS_COUNT(member, group, key)                                                                     \
    {group, key, STATUS_IS_COUNT, 0, offsetof(struct model_status, member)},
#define STATUS_INTEGER(member, group, key)                                                                   \
    {group, key, STATUS_IS_INTEGER, 0, offsetof(struct model_status, member)},
#define STATUS_NUMBER(member, group, key, decimals)                                                          \
    {group, key, STATUS_IS_NUMBER, decimals, offsetof(struct model_status, member)},
#define STATUS_FLAG(member, group, key)                                                                      \
    {group, key, STATUS_IS_FLAG, 0, offsetof(struct model_status, member)},
#define STATUS_TEXT(member, group, key)                                                                      \
    {group, key, STATUS_IS_TEXT, 0, offsetof(struct model_status, member)},
#include "base/model_status.def"
};

static void model_json_put_group(struct json *j, const struct model_status *s, const char *group) {
    for (size_t i = 0; i < sizeof model_json_status / sizeof model_json_status[0]; i++) {
        const char *key = model_json_status[i].key;
        const void *p = (const char *)s + model_json_status[i].offset;
        if (!model_json_status[i].group || strcmp(model_json_status[i].group, group) != 0)
            continue;
        switch (model_json_status[i].kind) {
        case STATUS_IS_COUNT:
            json_kv_uint(j, key, *(const uint64_t *)p);
            break;
        case STATUS_IS_INTEGER:
            model_json_put_known(j, key, *(const int64_t *)p);
            break;
        case STATUS_IS_NUMBER:
            json_kv_number(j, key, *(const double *)p, model_json_status[i].decimals);
            break;
        case STATUS_IS_FLAG:
            json_kv_bool(j, key, *(const bool *)p);
            break;
        case STATUS_IS_TEXT:
            json_kv_string(j, key, *(const char *const *)p);
            break;
        }
    }
}

static void model_json_put_group_object(struct json *j, const struct model_status *s, const char *group) {
    json_key(j, group);
    json_object_begin(j);
    model_json_put_group(j, s, group);
    json_object_end(j);
}

static void model_json_put_hook(struct json *j, const char *name, uint64_t told, uint64_t lost,
                                double us_per_call) {
    json_object_begin(j);
    json_kv_string(j, "name", name);
    json_kv_uint(j, "told", told);
    json_kv_uint(j, "lost", lost);
    json_kv_number(j, "us_per_call", us_per_call, 3);
    json_object_end(j);
}

/* Hooks in the job beside the sampler's signal. */
static void model_json_put_hooks(struct json *j, const struct model_status *s) {
    json_key(j, "hooks");
    json_array_begin(j);
    if (s->hooks)
        model_json_put_hook(j, s->hooks, s->spans, s->spans_lost, s->us_per_span);
    if (s->looks_on)
        model_json_put_hook(j, "variables at Optimizer.step", s->looks, s->values_lost, s->us_per_look);
    if (s->gc_on)
        model_json_put_hook(j, "gc.callbacks", s->gc_told, s->spans_lost, s->us_per_gc);
    if (s->returns_on)
        model_json_put_hook(j, "sys.monitoring", s->returns_told, s->values_lost, s->us_per_return);
    json_array_end(j);
    json_kv_string(j, "hooks_note", s->hooks_note);
    json_key(j, "steps");
    json_object_begin(j);
    if (s->hooks)
        json_kv_uint(j, "seen", s->steps);
    else
        json_kv_null(j, "seen");
    json_kv_string(j, "note", s->steps_note);
    json_kv_uint(j, "with_phases", s->phases);
    json_kv_bool(j, "phases_on", s->phases_on);
    json_kv_number(j, "phases_pct", s->phases_pct, 4);
    json_object_end(j);
}

/* What is armed for clients or by the configuration. */
static void model_json_put_leases(struct json *j, const struct model_status *s) {
    json_key(j, "leases");
    json_array_begin(j);
    for (size_t i = 0; i < s->n_leases; i++) {
        const struct model_lease *l = &s->leases[i];
        json_object_begin(j);
        json_kv_string(j, "what", l->what);
        json_kv_int(j, "clients", l->owners);
        json_kv_bool(j, "by_config", l->by_config);
        json_kv_number(j, "held_s", l->held_s, 1);
        json_kv_number(j, "left_s", l->left_s, 1);
        json_kv_int(j, "looks", l->looks);
        json_kv_bool(j, "hooks_in", l->armed);
        json_kv_number(j, "overhead_pct", l->cost_pct, 4);
        json_kv_string(j, "note", l->note);
        json_kv_string(j, "file", l->file);
        json_object_end(j);
    }
    json_array_end(j);
}

/* A number of the requester; null if unknown. */
static void model_json_put_asker(struct json *j, const char *key, int64_t id) {
    if (id >= 0)
        json_kv_int(j, key, id);
    else
        json_kv_null(j, key);
}

/* Debuggers in the job, whoever asked for them. */
static void model_json_put_debuggers(struct json *j, const struct model_status *s) {
    json_key(j, "debuggers");
    json_array_begin(j);
    for (size_t i = 0; i < s->n_holds; i++) {
        const struct model_debugger *h = &s->holds[i];
        json_object_begin(j);
        json_kv_string(j, "what", h->what);
        json_kv_string(j, "state", h->state);
        json_kv_string(j, "address", h->address);
        json_kv_string(j, "text", h->text);
        model_json_put_asker(j, "by_uid", h->uid);
        model_json_put_asker(j, "by_pid", h->pid);
        json_kv_number(j, "held_s", h->held_s, 1);
        json_kv_number(j, "left_s", h->left_s, 1);
        json_kv_bool(j, "client_connected", h->used);
        json_object_end(j);
    }
    json_array_end(j);
}

/* TCP listeners. */
static void model_json_put_endpoints(struct json *j, const struct model_status *s) {
    json_key(j, "doors");
    json_array_begin(j);
    for (size_t i = 0; i < s->n_doors; i++) {
        const struct model_endpoint *d = &s->doors[i];
        json_object_begin(j);
        json_kv_string(j, "address", d->address);
        json_kv_bool(j, "looking_only", d->looking);
        json_kv_int(j, "clients", d->clients);
        json_kv_int(j, "waiting", d->waiting);
        json_kv_uint(j, "entered", d->entered);
        json_kv_uint(j, "refused", d->refused);
        json_kv_string(j, "note", d->note);
        json_object_end(j);
    }
    json_array_end(j);
}

/* The tables, and the cost of writing them without sampling. */
static void model_json_put_tables(struct json *j, const struct model_status *s) {
    json_key(j, "collection");
    json_object_begin(j);
    json_kv_string(j, "data_dir", s->data_dir);
    json_kv_number(j, "rate_hz", s->always_hz, 1);
    json_kv_number(j, "overhead_pct", s->collect_pct, 4);
    json_kv_number(j, "us_per_s", s->collect_us_per_s, 1);
    json_kv_number(j, "threads_every_s", isnan(s->collect_threads_s) ? 1 : s->collect_threads_s, 1);
    json_kv_uint(j, "missed", s->collect_missed);
    json_kv_string(j, "note", s->collect_note);
    json_object_end(j);
    json_key(j, "tables");
    json_array_begin(j);
    for (size_t i = 0; i < s->n_tables; i++) {
        const struct model_table *t = &s->tables[i];
        json_object_begin(j);
        json_kv_string(j, "name", t->name);
        json_kv_uint(j, "rows", t->rows);
        json_kv_uint(j, "bytes", t->bytes);
        json_kv_uint(j, "lost", t->lost);
        json_kv_number(j, "oldest", t->oldest, 6);
        json_kv_number(j, "newest", t->newest, 6);
        json_object_end(j);
    }
    json_array_end(j);
}

void model_json_put_status(struct json *j, const struct model_target *target, const struct model_status *s) {
    json_object_begin(j);
    json_kv_int(j, "schema_version", MODEL_JSON_SCHEMA_VERSION);
    model_json_put_target(j, target);
    json_kv_string(j, "agent_version", s->agent_version);
    json_kv_string(j, "endpoint", s->endpoint);
    json_kv_number(j, "uptime_s", s->uptime_s, 3);
    json_kv_number(j, "cpu_s", s->cpu_s, 6);
    model_json_put_known(j, "rss_bytes", s->rss_bytes);
    json_kv_int(j, "clients", s->clients);
    json_kv_int(j, "client_processes", s->client_processes);
    model_json_put_group_object(j, s, "sampler"); /* and what the python worker has had the GIL for */
    model_json_put_group_object(j, s, "gil");
    model_json_put_group(j, s, "reads");
    json_kv_string(j, "discovery", s->discovery);
    json_kv_string(j, "strategy", s->strategy);
    json_kv_bool(j, "python_untested", target->python_untested);
    json_kv_string(j, "note", s->note);
    model_json_put_tables(j, s);
    model_json_put_hooks(j, s);
    model_json_put_leases(j, s);
    model_json_put_endpoints(j, s);
    model_json_put_debuggers(j, s);
    json_object_end(j);
}
