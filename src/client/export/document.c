/* SPDX-License-Identifier: Apache-2.0 */
/* document: see document.h. */
#include "client/export/document.h"

#define DOCUMENT_MAX_FRAMES 2048 /* of an aggregated stack, the outermost ones */

/* One aggregated stack, frames innermost first as everywhere. */
static void document_put_sample(struct json *j, const struct stack_counts *counts,
                                const struct stack_counts_entry *entry) {
    const struct model_frame *frames[DOCUMENT_MAX_FRAMES];
    size_t cap = sizeof frames / sizeof frames[0];
    size_t depth = stack_counts_path(counts, entry->stack, frames, cap);
    size_t have = depth < cap ? depth : cap;
    json_object_begin(j);
    json_kv_int(j, "tid", entry->tid);
    json_kv_string(j, "thread", stack_counts_thread_name(counts, entry->tid));
    json_kv_uint(j, "samples", entry->sums.samples);
    json_kv_uint(j, "on_cpu_samples", entry->sums.on_cpu);
    json_kv_uint(j, "gc_samples", entry->sums.gc);
    json_kv_number(j, "duration_us", entry->sums.us, 0);
    json_kv_bool(j, "truncated", depth > cap);
    json_key(j, "frames");
    json_array_begin(j);
    for (size_t i = have; i-- > 0;)
        model_json_put_frame(j, frames[i], depth - 1 - i, false, NULL);
    json_array_end(j);
    json_object_end(j);
}

static void document_put_samples(struct json *j, const struct stack_counts *counts, double elapsed_s) {
    const struct stack_counts_totals *totals = stack_counts_get_totals(counts);
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
    for (size_t i = 0; i < stack_counts_count(counts) && !j->out->failed; i++)
        document_put_sample(j, counts, stack_counts_get(counts, i));
    json_array_end(j);
}

void document_put_backtrace(struct json *j, const struct model_target *target,
                            const struct model_snapshot *snapshot, const struct wire_threads *want,
                            const struct stack_counts *counts, double elapsed_s) {
    json_object_begin(j);
    model_json_put_backtrace(j, target, snapshot, want && want->locals, want && want->tasks);
    if (want)
        json_kv_string(j, "note", snapshot->note);
    if (counts)
        document_put_samples(j, counts, elapsed_s);
    json_object_end(j);
}

/* ---- verdicts ---- */

static void document_put_evidence(struct json *j, const struct verdict *v) {
    json_key(j, "evidence");
    json_object_begin(j);
    for (size_t i = 0; i < v->n_values; i++) {
        const struct verdict_value *value = &v->values[i];
        json_key(j, value->name);
        if (value->kind == SQL_TEXT)
            json_string(j, value->text);
        else if (value->kind == SQL_INTEGER)
            json_int(j, (int64_t)value->number);
        else
            json_number(j, value->number, 6);
    }
    json_object_end(j);
}

/* The rules that were looked at, with what came of each. */
static void document_put_checks(struct json *j, const struct verdicts *v) {
    struct strbuf reason;
    strbuf_init(&reason, 256);
    json_key(j, "checks");
    json_array_begin(j);
    for (size_t i = 0; i < v->n_checks; i++) {
        const struct verdict_check *check = &v->checks[i];
        strbuf_clear(&reason);
        verdict_put_reason(check, &reason);
        json_object_begin(j);
        json_kv_string(j, "code", check->rule->code);
        json_kv_bool(j, "is_state", check->rule->is_state);
        json_kv_int(j, "pid", check->pid);
        json_kv_string(j, "what", check->rule->checks);
        json_kv_string(j, "result", verdict_result_name(check->result));
        json_kv_string(j, "reason", reason.len ? strbuf_str(&reason) : NULL);
        json_kv_number(j, "measured", check->measured, 6);
        json_kv_number(j, "threshold", check->rule->threshold, 6);
        json_kv_string(j, "unit", check->rule->kind);
        json_kv_string(j, "sure", verdict_sure(check->rule));
        json_object_end(j);
    }
    json_array_end(j);
    strbuf_fini(&reason);
}

void document_put_verdicts(struct json *j, const struct verdicts *v) {
    json_key(j, "verdicts");
    json_array_begin(j);
    for (size_t i = 0; i < v->n; i++) {
        const struct verdict *one = &v->items[i];
        json_object_begin(j);
        json_kv_string(j, "code", one->rule->code);
        json_kv_string(j, "level", verdict_level_name(one->rule->level));
        json_kv_string(j, "text", one->text);
        json_kv_string(j, "advice", one->rule->help);
        json_kv_string(j, "screen", one->rule->screen);
        json_kv_string(j, "sure", verdict_sure(one->rule));
        json_kv_int(j, "pid", one->pid);
        json_key(j, "rank");
        if (one->rank == RING_INT_NULL)
            json_null(j);
        else
            json_int(j, one->rank);
        json_kv_number(j, "measured", one->values[0].number, 6);
        json_kv_number(j, "threshold", one->rule->threshold, 6);
        document_put_evidence(j, one);
        json_object_end(j);
    }
    json_array_end(j);
    document_put_checks(j, v);
}

/* ---- processes ---- */

static const char *document_or_null(const char *s) { return s[0] ? s : NULL; }

/* A listener of the job. */
static void document_put_endpoints(struct json *j, const struct endpoints *d) {
    const char *tcp = NULL;
    json_key(j, "doors");
    json_array_begin(j);
    for (size_t i = 0; i < d->n; i++) {
        const struct endpoints_one *one = &d->all[i];
        json_object_begin(j);
        json_kv_string(j, "kind", endpoints_kinds[one->kind].name);
        json_kv_string(j, "address", one->address);
        json_kv_bool(j, "token", endpoints_kinds[one->kind].token);
        json_kv_bool(j, "looking", one->looking);
        json_object_end(j);
        tcp = one->kind == ENDPOINTS_TCP ? one->address : tcp;
    }
    json_array_end(j);
    json_kv_string(j, "tcp", tcp);
    if (d->n > 0 && d->eval >= 0)
        json_kv_bool(j, "eval", d->eval != 0);
    else
        json_kv_null(j, "eval");
}

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
        model_json_put_known(j, "parent_pid", p->parent ? p->parent : MODEL_UNKNOWN);
        json_kv_int(j, "uid", p->uid);
        json_kv_string(j, "user", p->user);
        json_kv_string(j, "python", document_or_null(p->python));
        json_kv_string(j, "torch", document_or_null(p->torch));
        json_kv_number(j, "cpu_pct", p->cpu_pct, 1);
        model_json_put_known(j, "rss_bytes", p->rss_bytes);
        json_kv_number(j, "uptime_s", p->uptime_s, 1);
        model_json_put_known(j, "threads", p->threads);
        json_kv_bool(j, "agent", p->attached);
        document_put_endpoints(j, &p->doors);
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

void document_put_listening(struct json *j, const struct wire_listening *door) {
    if (!door) {
        json_kv_null(j, "tcp");
        return;
    }
    json_key(j, "tcp");
    json_object_begin(j);
    json_kv_string(j, "address", door->address);
    json_kv_string(j, "token", document_or_null(door->token));
    json_kv_string(j, "looking_token", document_or_null(door->looking_token));
    json_kv_string(j, "file", document_or_null(door->file));
    json_object_end(j);
}

void document_put_injection(struct json *j, pid_t pid, const struct inject_result *r,
                            const struct wire_listening *door) {
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
    document_put_listening(j, door);
    json_object_end(j);
}
