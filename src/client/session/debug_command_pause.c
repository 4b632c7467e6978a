/* SPDX-License-Identifier: Apache-2.0 */
/* debug_command_pause: the job's threads are held, and pdb listens meanwhile. What is done there is python/units/pause.py's. */
#include "client/session/debug_command.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "base/model_json.h"

/* One thread, as it was told. */
struct pause_thread {
    int64_t tid;
    bool held;
    char name[256], where[1024];
};

/* False: there is none of that number. */
static bool pause_get_thread(const struct wire_evaluated *v, size_t i, struct pause_thread *t) {
    char key[32], raw[1024];
    int at = 0;
    long long tid = 0;
    int held = 0;
    (void)snprintf(key, sizeof key, "thread%zu", i);
    if (!debug_command_get(v, key, raw, sizeof raw) || sscanf(raw, "%lld %d %n", &tid, &held, &at) < 2)
        return false;
    t->tid = tid;
    t->held = held == 1;
    (void)text_sanitize(t->name, sizeof t->name, raw + at);
    (void)snprintf(key, sizeof key, "where%zu", i);
    (void)text_sanitize(t->where, sizeof t->where, debug_command_get(v, key, raw, sizeof raw) ? raw : "?");
    return true;
}

static int pause_put_code(struct strbuf *code, const struct debug_command_request *o, pid_t pid,
                          struct err *e) {
    const char *operand = o->address;
    struct address a;
    (void)pid;
    if (o->off || o->status) {
        if (operand || (o->off && o->status))
            return err_set(e, ERR_USAGE, "--%s goes with nothing else", o->off ? "off" : "status");
        return strbuf_adds(code, o->off ? "pause_off()" : "pause_tell()");
    }
    if (address_parse(&a, operand ? operand : "", e) != 0)
        return -1;
    (void)strbuf_adds(code, "pause_begin(");
    debug_command_put_address(code, &a);
    (void)strbuf_addf(code, ", %.3f)", o->limit_s);
    return code->failed ? err_set(e, ERR_FAILED, "no memory") : 0;
}

static void pause_put_json(struct strbuf *out, const struct wire_evaluated *v, pid_t pid) {
    (void)pid;
    char buf[1024];
    struct pause_thread t;
    struct json j;
    bool on = debug_command_get(v, "address", buf, sizeof buf) != NULL;
    json_init(&j, out, 2);
    json_object_begin(&j);
    json_kv_int(&j, "schema_version", MODEL_JSON_SCHEMA_VERSION);
    json_kv_bool(&j, "paused", on);
    if (on) {
        json_kv_string(&j, "address", buf);
        json_kv_string(&j, "token", debug_command_get(v, "token", buf, sizeof buf));
        json_kv_number(&j, "left_s", debug_command_left_s(v), 1);
        json_kv_bool(&j, "client_connected",
                     debug_command_get(v, "client", buf, sizeof buf) && buf[0] == '1');
        json_key(&j, "threads");
        json_array_begin(&j);
        for (size_t i = 0; pause_get_thread(v, i, &t); i++) {
            json_object_begin(&j);
            json_key(&j, "tid");
            if (t.tid)
                json_int(&j, t.tid);
            else
                json_null(&j);
            json_kv_string(&j, "name", t.name);
            json_kv_bool(&j, "held", t.held);
            json_kv_string(&j, "where", t.where);
            json_object_end(&j);
        }
        json_array_end(&j);
    }
    json_object_end(&j);
    (void)strbuf_addc(out, '\n');
}

static void pause_put_text(struct strbuf *out, const struct wire_evaluated *v, pid_t pid) {
    char address[ADDRESS_MAX], buf[256];
    struct pause_thread t;
    if (!debug_command_get_clean(v, "address", address, sizeof address)) {
        const char *was = debug_command_get(v, "was", buf, sizeof buf);
        (void)strbuf_adds(out, was && was[0] == '1' ? "the job goes on\n" : "the job is not paused\n");
        return;
    }
    size_t held = 0, n = 0;
    for (; pause_get_thread(v, n, &t); n++)
        held += t.held;
    (void)strbuf_addf(out, "paused: %zu of %zu threads are held; a debugger is at %s\n", held, n, address);
    for (size_t i = 0; pause_get_thread(v, i, &t); i++) {
        (void)strbuf_addf(out, "  %-16s ", t.name);
        (void)(t.tid ? strbuf_addf(out, "%8" PRId64, t.tid) : strbuf_addf(out, "%8s", "?"));
        (void)strbuf_addf(out, "  %s%s\n", t.where, t.held ? "" : "; it is held when it comes back");
    }
    (void)strbuf_addf(out, "let go by continue, when its client leaves, by --off, or in %.0f s\n",
                      debug_command_left_s(v));
    debug_command_put_entry(out, v, pid);
}

const struct debug_command_def debug_command_pause = {
    .name = "pause",
    .command = "pause-job",
    .timeout_s = 10,
    .limit_s = 300,
    .failed = "the job was not paused",
    .ended = "it cannot be paused",
    .who = "an agent holds the threads",
    .put_code = pause_put_code,
    .put_text = pause_put_text,
    .put_json = pause_put_json,
    .put_copy = debug_command_put_place,
};
