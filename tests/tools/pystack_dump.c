/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack_dump: prints snapshots of a process as JSON, one line each. A tool of the functional tests.
 *
 * usage: pystack_dump PID [COUNT [INTERVAL_MS [STRATEGY|any [locals]]]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "pystack/pystack_internal.h"

static void dump_locals(struct json *j, const struct model_locals *l) {
    json_key(j, "locals");
    if (!l) {
        json_null(j);
        return;
    }
    json_array_begin(j);
    for (size_t i = 0; i < l->n; i++) {
        json_array_begin(j);
        json_string(j, l->items[i].name);
        json_string(j, l->items[i].type);
        json_string(j, l->items[i].text);
        json_string(j, model_local_kind_name(l->items[i].kind));
        json_array_end(j);
    }
    json_array_end(j);
    json_kv_bool(j, "locals_truncated", l->truncated);
}

static void dump_frames(struct json *j, const struct model_thread *t) {
    json_key(j, "frames");
    json_array_begin(j);
    for (size_t i = 0; i < t->n_frames; i++) {
        json_object_begin(j);
        json_kv_string(j, "func", t->frames[i].func);
        json_kv_string(j, "file", t->frames[i].file);
        json_kv_int(j, "line", t->frames[i].line);
        dump_locals(j, t->locals ? t->locals[i] : NULL);
        json_object_end(j);
    }
    json_array_end(j);
}

static void dump_thread(struct json *j, const struct model_thread *t) {
    char state[2] = {t->state, '\0'};
    json_object_begin(j);
    json_kv_int(j, "tid", t->tid);
    json_kv_uint(j, "ident", t->ident);
    json_kv_string(j, "name", t->name);
    json_kv_string(j, "native_name", t->native_name);
    json_kv_string(j, "state", state);
    json_kv_int(j, "on_cpu", t->on_cpu);
    json_kv_string(j, "gil", model_gil_name(t->gil));
    json_kv_number(j, "gil_for_us", t->gil_for_us, 0);
    json_kv_int(j, "gc", t->gc);
    json_kv_number(j, "cpu_pct", t->cpu_pct, 2);
    json_kv_bool(j, "has_python", t->has_python);
    json_kv_bool(j, "torn", t->torn);
    json_kv_bool(j, "truncated", t->truncated);
    dump_frames(j, t);
    json_object_end(j);
}

static void dump_process(struct json *j, const struct model_snapshot *s) {
    json_key(j, "process");
    json_object_begin(j);
    json_kv_number(j, "cpu_pct", s->process.cpu_pct, 2);
    json_kv_number(j, "uptime_s", s->process.uptime_s, 3);
    json_kv_int(j, "rss_bytes", s->process.rss_bytes);
    json_kv_int(j, "n_threads", s->process.n_threads);
    json_object_end(j);
}

static int dump_snapshot(struct pystack *ps, const char *torch, bool locals) {
    const struct pystack_info *info = pystack_get_info(ps);
    struct model_snapshot s;
    struct err e = {.code = ERR_OK};
    struct strbuf out;
    struct json j;
    struct pystack_locals_request all = {.tid = 0};
    int rc = pystack_snapshot_locals(ps, NULL, 0, locals ? &all : NULL, &s, &e);
    if (rc != 0) {
        model_snapshot_fini(&s);
        (void)fprintf(stderr, "pystack_dump: %s\n", e.text);
        return err_exit_status(&e);
    }
    strbuf_init(&out, 0);
    json_init(&j, &out, 0);
    json_object_begin(&j);
    json_kv_string(&j, "version", info->version);
    json_kv_string(&j, "discovery", info->discovery);
    json_kv_string(&j, "torch", torch);
    json_kv_uint(&j, "seq", s.seq);
    json_kv_number(&j, "timestamp", s.timestamp, 6);
    json_kv_int(&j, "gil_tid", s.gil_tid);
    json_kv_int(&j, "gil_enabled", s.gil_enabled);
    json_kv_int(&j, "gc_running", s.gc_running);
    json_kv_number(&j, "cost_us", s.cost_us, 1);
    json_kv_bool(&j, "incomplete", s.incomplete);
    dump_process(&j, &s);
    json_key(&j, "threads");
    json_array_begin(&j);
    for (size_t i = 0; i < s.n_threads; i++)
        dump_thread(&j, &s.threads[i]);
    json_array_end(&j);
    json_object_end(&j);
    rc = json_finish(&j) == 0 && puts(strbuf_str(&out)) >= 0 && fflush(stdout) == 0 ? 0 : 1;
    strbuf_fini(&out);
    model_snapshot_fini(&s);
    return rc;
}

int main(int argc, char **argv) {
    struct err e = {.code = ERR_OK};
    char torch[64];
    if (argc < 2) {
        (void)fprintf(stderr, "usage: pystack_dump PID [COUNT [INTERVAL_MS [STRATEGY|any [locals]]]]\n");
        return 2;
    }
    pid_t pid = (pid_t)atol(argv[1]);
    long count = argc > 2 ? atol(argv[2]) : 1, interval_ms = argc > 3 ? atol(argv[3]) : 50;
    const char *strategy = argc > 4 && strcmp(argv[4], "any") != 0 ? argv[4] : NULL;
    bool locals = argc > 5 && strcmp(argv[5], "locals") == 0;
    struct pystack *ps = pystack_open_by(pid, strategy, &e);
    if (!ps) {
        (void)fprintf(stderr, "pystack_dump: %s\n", e.text);
        return err_exit_status(&e);
    }
    const char *version = pystack_find_torch(pid, torch, sizeof torch) == 0 ? torch : NULL;
    int rc = 0;
    for (long i = 0; i < count && rc == 0; i++) {
        if (i)
            (void)usleep((useconds_t)interval_ms * 1000);
        rc = dump_snapshot(ps, version, locals);
    }
    pystack_close(ps);
    return rc;
}
