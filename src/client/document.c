/* SPDX-License-Identifier: Apache-2.0 */
/* document: see document.h. */
#include "client/document.h"

#include <math.h>

#define DOCUMENT_MAX_FRAMES 2048 /* of an aggregated stack, the outermost ones */

static void document_put_known(struct json *j, const char *key, int64_t v) {
    if (v == MODEL_UNKNOWN)
        json_kv_null(j, key);
    else
        json_kv_int(j, key, v);
}

static void document_put_flag(struct json *j, const char *key, int8_t v) {
    if (v == MODEL_UNKNOWN)
        json_kv_null(j, key);
    else
        json_kv_bool(j, key, v != 0);
}

static void document_put_target(struct json *j, const struct model_target *t) {
    json_key(j, "target");
    json_object_begin(j);
    json_kv_int(j, "pid", t->pid);
    json_kv_string(j, "host", t->host);
    json_kv_string(j, "cmdline", t->cmdline);
    json_kv_string(j, "exe", t->exe);
    json_kv_string(j, "python", t->python);
    json_kv_string(j, "torch", t->torch);
    document_put_known(j, "rank", t->rank);
    json_kv_string(j, "mode", model_mode_name(t->mode));
    json_kv_string(j, "mode_reason", t->mode_reason);
    json_kv_bool(j, "blocking", t->blocking);
    json_kv_number(j, "started_at", t->started_at, 3);
    json_kv_string(j, "agent_version", t->agent_version);
    json_object_end(j);
}

static void document_put_process(struct json *j, const struct model_process *p) {
    json_key(j, "process");
    json_object_begin(j);
    json_kv_number(j, "cpu_pct", p->cpu_pct, 1);
    json_kv_number(j, "uptime_s", p->uptime_s, 1);
    document_put_known(j, "rss_bytes", p->rss_bytes);
    document_put_known(j, "threads", p->n_threads);
    json_kv_number(j, "agent_cpu_pct", p->agent_cpu_pct, 2);
    document_put_known(j, "agent_rss_bytes", p->agent_rss_bytes);
    json_object_end(j);
}

/* By name; null when they are not known. */
void document_put_variables(struct json *j, const struct model_locals *l) {
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

static void document_put_locals(struct json *j, const struct model_locals *l) {
    json_key(j, "locals");
    if (!l) {
        json_null(j);
        return;
    }
    document_put_variables(j, l);
    json_kv_bool(j, "locals_truncated", l->truncated);
}

/* Of native frames: the file that was mapped, and, where the function is not known, the address in it. */
static void document_put_module(struct json *j, const struct model_frame *f) {
    json_kv_string(j, "module", f->module);
    if (f->address)
        json_kv_uint(j, "address", f->address);
    else
        json_kv_null(j, "address");
}

static void document_put_frame(struct json *j, const struct model_frame *f, size_t depth, bool with_locals,
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
        document_put_module(j, f);
    if (with_locals)
        document_put_locals(j, locals);
    json_object_end(j);
}

/* Is it of the loop that thread `t` runs? NULL: of one that no thread of the snapshot is known to run? */
static bool document_is_task_of(const struct model_snapshot *s, const struct model_task *task,
                                const struct model_thread *t) {
    if (t)
        return task->tid == t->tid;
    for (size_t i = 0; i < s->n_threads; i++)
        if (s->threads[i].tid == task->tid)
            return false;
    return true;
}

static void document_put_task(struct json *j, const struct model_task *t) {
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
        document_put_frame(j, &t->frames[i], i, false, NULL);
    json_array_end(j);
    json_object_end(j);
}

/* Null when they are not known. */
static void document_put_tasks(struct json *j, const char *key, const struct model_snapshot *s,
                               const struct model_thread *t) {
    json_key(j, key);
    if (!s->tasks) {
        json_null(j);
        return;
    }
    json_array_begin(j);
    for (size_t i = 0; i < s->n_tasks; i++)
        if (document_is_task_of(s, &s->tasks[i], t))
            document_put_task(j, &s->tasks[i]);
    json_array_end(j);
}

static void document_put_thread(struct json *j, const struct model_snapshot *s, const struct model_thread *t,
                                bool locals, bool tasks) {
    char state[2] = {t->state, '\0'};
    json_object_begin(j);
    json_kv_int(j, "tid", t->tid);
    json_kv_string(j, "name", t->name);
    json_kv_string(j, "native_name", t->native_name);
    json_kv_string(j, "state", t->state == '?' || !t->state ? NULL : state);
    document_put_flag(j, "on_cpu", t->on_cpu);
    json_kv_string(j, "gil", model_gil_name(t->gil));
    json_kv_number(j, "gil_wait_us", t->gil == MODEL_GIL_WAITING ? t->gil_for_us : NAN, 0);
    json_kv_number(j, "gil_held_us", t->gil == MODEL_GIL_HELD ? t->gil_for_us : NAN, 0);
    document_put_flag(j, "gc", t->gc);
    json_kv_number(j, "cpu_pct", t->cpu_pct, 1);
    json_kv_bool(j, "has_python", t->has_python);
    json_kv_bool(j, "torn", t->torn);
    json_kv_bool(j, "truncated", t->truncated);
    json_kv_uint(j, "stopped_us", t->stopped_us);
    if (t->native != MODEL_NATIVE_NONE)
        json_kv_string(j, "native_merge",
                       model_native_name(t->native)); /* null: native frames are not known */
    json_key(j, "frames");
    json_array_begin(j);
    for (size_t i = 0; i < t->n_frames; i++)
        document_put_frame(j, &t->frames[i], i, locals, t->locals ? t->locals[i] : NULL);
    json_array_end(j);
    if (tasks)
        document_put_tasks(j, "tasks", s, t);
    json_object_end(j);
}

/* One aggregated stack, frames innermost first as everywhere. */
static void document_put_sample(struct json *j, const struct fold *fold, const struct fold_entry *entry) {
    const struct model_frame *frames[DOCUMENT_MAX_FRAMES];
    size_t cap = sizeof frames / sizeof frames[0];
    size_t depth = fold_path(fold, entry->stack, frames, cap);
    size_t have = depth < cap ? depth : cap;
    json_object_begin(j);
    json_kv_int(j, "tid", entry->tid);
    json_kv_string(j, "thread", fold_thread_name(fold, entry->tid));
    json_kv_uint(j, "samples", entry->samples);
    json_kv_uint(j, "on_cpu_samples", entry->on_cpu);
    json_kv_uint(j, "gc_samples", entry->gc);
    json_kv_number(j, "duration_us", entry->us, 0);
    json_kv_bool(j, "truncated", depth > cap);
    json_key(j, "frames");
    json_array_begin(j);
    for (size_t i = have; i-- > 0;)
        document_put_frame(j, frames[i], depth - 1 - i, false, NULL);
    json_array_end(j);
    json_object_end(j);
}

static void document_put_samples(struct json *j, const struct fold *fold, double elapsed_s) {
    const struct fold_totals *totals = fold_get_totals(fold);
    json_key(j, "sampling");
    json_object_begin(j);
    json_kv_number(j, "duration_s", elapsed_s, 3);
    json_kv_uint(j, "samples", totals->samples);
    json_kv_uint(j, "torn", totals->torn);
    json_kv_uint(j, "dropped", totals->dropped + totals->undefined);
    json_kv_string(j, "mode", model_sampling_name(totals->mode));
    json_kv_number(j, "kept_hz", totals->kept_hz, 1);
    json_kv_number(j, "cost_pct", totals->cost_pct, 3);
    json_kv_number(j, "budget_pct", totals->budget_pct, 3);
    json_object_end(j);
    json_key(j, "samples");
    json_array_begin(j);
    for (size_t i = 0; i < fold_count(fold); i++)
        document_put_sample(j, fold, fold_get(fold, i));
    json_array_end(j);
}

void document_put_backtrace(struct json *j, const struct model_target *target,
                            const struct model_snapshot *snapshot, const struct wire_threads *want,
                            const struct fold *fold, double elapsed_s) {
    bool locals = want && want->locals, tasks = want && want->tasks;
    json_object_begin(j);
    json_kv_int(j, "schema_version", DOCUMENT_SCHEMA_VERSION);
    json_kv_number(j, "timestamp", snapshot->timestamp, 6);
    document_put_target(j, target);
    document_put_process(j, &snapshot->process);
    document_put_known(j, "gil_holder_tid", snapshot->gil_tid); /* 0: nobody holds it */
    json_kv_string(j, "stacks_of_running_threads", model_sampling_name(snapshot->sampling));
    document_put_flag(j, "gil_enabled", snapshot->gil_enabled);
    document_put_flag(j, "gc_running", snapshot->gc_running);
    json_kv_bool(j, "incomplete", snapshot->incomplete);
    json_kv_number(j, "cost_us", snapshot->cost_us, 0);
    json_key(j, "threads");
    json_array_begin(j);
    for (size_t i = 0; i < snapshot->n_threads; i++)
        document_put_thread(j, snapshot, &snapshot->threads[i], locals, tasks);
    json_array_end(j);
    if (tasks)
        document_put_tasks(j, "other_tasks", snapshot, NULL);
    if (want)
        json_kv_string(j, "note", snapshot->note);
    if (fold)
        document_put_samples(j, fold, elapsed_s);
    json_object_end(j);
}

static void document_put_sampler(struct json *j, const struct model_status *s) {
    json_key(j, "sampler");
    json_object_begin(j);
    json_kv_number(j, "rate_hz", s->rate_hz, 1);
    json_kv_number(j, "kept_hz", s->kept_hz, 1);
    json_kv_uint(j, "samples", s->samples);
    json_kv_uint(j, "torn", s->torn);
    json_kv_uint(j, "dropped", s->dropped);
    json_kv_number(j, "us_per_sample", s->us_per_sample, 2);
    json_kv_string(j, "mode", s->sampling);
    json_kv_uint(j, "exact", s->exact);
    json_kv_uint(j, "signals_sent", s->signals_sent);
    json_kv_uint(j, "signals_late", s->signals_late);
    json_kv_uint(j, "signals_refused", s->signals_refused);
    json_kv_uint(j, "calls_restarted", s->calls_restarted);
    json_kv_uint(j, "calls_interrupted", s->calls_interrupted);
    json_kv_uint(j, "unknown_frames", s->unknown_frames);
    json_kv_number(j, "us_per_signal", s->us_per_signal, 2);
    json_kv_number(j, "overhead_pct", s->overhead_pct, 3);
    json_kv_number(j, "budget_pct", s->budget_pct, 3);
    json_kv_bool(j, "stretched", s->stretched);
    json_object_end(j);
}

/* What the python worker had the GIL for. */
static void document_put_gil(struct json *j, const struct model_status *s) {
    json_key(j, "gil");
    json_object_begin(j);
    json_kv_uint(j, "holds", s->gil_holds);
    json_kv_uint(j, "refused", s->gil_refused);
    json_kv_number(j, "us_per_hold", s->us_per_gil_hold, 1);
    json_kv_number(j, "us_longest_hold", s->us_longest_gil_hold, 1);
    json_object_end(j);
}

static void document_put_nothing(struct json *j, const char *key) {
    json_key(j, key);
    json_array_begin(j);
    json_array_end(j);
}

/* What is armed in the job beside the sampler's signal. */
static void document_put_hooks(struct json *j, const struct model_status *s) {
    json_key(j, "hooks");
    json_array_begin(j);
    if (s->hooks) {
        json_object_begin(j);
        json_kv_string(j, "name", s->hooks);
        json_kv_uint(j, "told", s->spans);
        json_kv_uint(j, "lost", s->spans_lost);
        json_kv_number(j, "us_per_call", s->us_per_span, 3);
        json_object_end(j);
    }
    json_array_end(j);
    json_key(j, "steps");
    json_object_begin(j);
    if (s->hooks)
        json_kv_uint(j, "seen", s->steps);
    else
        json_kv_null(j, "seen");
    json_kv_string(j, "note", s->steps_note);
    json_object_end(j);
}

/* The tables, and what writing them costs beside sampling. */
static void document_put_tables(struct json *j, const struct model_status *s) {
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

void document_put_status(struct json *j, const struct model_target *target, const struct model_status *s) {
    json_object_begin(j);
    json_kv_int(j, "schema_version", DOCUMENT_SCHEMA_VERSION);
    document_put_target(j, target);
    json_kv_string(j, "agent_version", s->agent_version);
    json_kv_string(j, "endpoint", s->endpoint);
    json_kv_number(j, "uptime_s", s->uptime_s, 3);
    json_kv_number(j, "cpu_s", s->cpu_s, 6);
    document_put_known(j, "rss_bytes", s->rss_bytes);
    json_kv_int(j, "clients", s->clients);
    document_put_sampler(j, s);
    document_put_gil(j, s);
    json_kv_uint(j, "snapshots", s->snapshots);
    json_kv_uint(j, "read_errors", s->read_errors);
    json_kv_uint(j, "arena_limit_hits", s->arena_limit_hits);
    json_kv_string(j, "discovery", s->discovery);
    json_kv_string(j, "strategy", s->strategy);
    json_kv_bool(j, "python_untested", target->python_untested);
    json_kv_string(j, "note", s->note);
    document_put_tables(j, s);
    document_put_hooks(j, s);
    document_put_nothing(j, "leases"); /* this agent grants none */
    json_object_end(j);
}

static const char *document_or_null(const char *s) { return s[0] ? s : NULL; }

void document_put_processes(struct json *j, const struct target_process *list, size_t n, const char *hidden) {
    json_object_begin(j);
    json_kv_int(j, "schema_version", DOCUMENT_SCHEMA_VERSION);
    json_kv_string(j, "not_visible", hidden[0] ? hidden : NULL);
    json_key(j, "processes");
    json_array_begin(j);
    for (size_t i = 0; i < n; i++) {
        const struct target_process *p = &list[i];
        json_object_begin(j);
        json_kv_int(j, "pid", p->pid);
        json_kv_int(j, "ppid", p->ppid);
        document_put_known(j, "parent_pid", p->parent ? p->parent : MODEL_UNKNOWN);
        json_kv_int(j, "uid", p->uid);
        json_kv_string(j, "user", p->user);
        json_kv_string(j, "python", document_or_null(p->python));
        json_kv_string(j, "torch", document_or_null(p->torch));
        json_kv_number(j, "cpu_pct", p->cpu_pct, 1);
        document_put_known(j, "rss_bytes", p->rss_bytes);
        json_kv_number(j, "uptime_s", p->uptime_s, 1);
        document_put_known(j, "threads", p->threads);
        json_kv_bool(j, "agent", p->attached);
        json_kv_bool(j, "inspectable", p->inspectable);
        json_kv_bool(j, "by_door", p->by_door);
        json_kv_bool(j, "readable", p->readable);
        json_kv_string(j, "why_not", document_or_null(p->why_not));
        json_kv_string(j, "cmdline", p->cmdline);
        json_object_end(j);
    }
    json_array_end(j);
    json_object_end(j);
}

void document_put_injection(struct json *j, pid_t pid, const struct inject_result *r) {
    json_object_begin(j);
    json_kv_int(j, "schema_version", DOCUMENT_SCHEMA_VERSION);
    json_kv_int(j, "pid", pid);
    json_kv_bool(j, "already", r->already);
    json_kv_bool(j, "reused", r->reused);
    json_kv_uint(j, "stopped_us", r->stopped_us);
    json_kv_uint(j, "total_us", r->total_us);
    json_kv_string(j, "endpoint", r->endpoint);
    if (r->borrowed_tid)
        json_kv_int(j, "borrowed_tid", r->borrowed_tid);
    else
        json_kv_null(j, "borrowed_tid");
    json_kv_string(j, "strategy", r->strategy);
    json_kv_string(j, "moment", document_or_null(r->moment));
    json_object_end(j);
}
