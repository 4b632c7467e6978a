/* SPDX-License-Identifier: Apache-2.0 */
/* debug_command_catch: exceptions that nobody catches keep their thread for a while, with pdb. What is done in the job is python/units/catch.py's. */
#include "client/session/debug_command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "base/model_json.h"

static int catch_put_code(struct strbuf *code, const struct debug_command_request *o, pid_t pid,
                          struct err *e) {
    const char *operand = o->address;
    struct address a;
    (void)pid;
    if (o->off || o->status) {
        if (operand || (o->off && o->status))
            return err_set(e, ERR_USAGE, "--%s goes with nothing else", o->off ? "off" : "status");
        return strbuf_adds(code, o->off ? "catch_off()" : "catch_tell()");
    }
    if (address_parse(&a, operand ? operand : "", e) != 0)
        return -1;
    (void)strbuf_adds(code, "catch_try(");
    debug_command_put_address(code, &a);
    (void)strbuf_addf(code, ", %.3f)", o->limit_s);
    return code->failed ? err_set(e, ERR_FAILED, "no memory") : 0;
}

/* The traceback, for one who reads it, or as one text. */
static void catch_put_traceback(struct strbuf *out, const struct wire_evaluated *v) {
    char key[32], raw[1024], text[1024];
    for (size_t i = 0;; i++) {
        (void)snprintf(key, sizeof key, "line%zu", i);
        if (!debug_command_get(v, key, raw, sizeof raw))
            break;
        (void)text_sanitize(text, sizeof text, raw);
        (void)strbuf_addf(out, "%s\n", text);
    }
}

static int catch_check(const struct wire_evaluated *v, struct err *e) {
    char state[32];
    return debug_command_get(v, "state", state, sizeof state)
               ? 0
               : err_set(e, ERR_FAILED, "the agent has not answered");
}

static void catch_put_json(struct strbuf *out, const struct wire_evaluated *v, pid_t pid) {
    (void)pid;
    char buf[1024], state[32];
    struct strbuf text;
    struct json j;
    (void)debug_command_get(v, "state", state, sizeof state);
    bool caught = strcmp(state, "caught") == 0;
    json_init(&j, out, 2);
    json_object_begin(&j);
    json_kv_int(&j, "schema_version", MODEL_JSON_SCHEMA_VERSION);
    json_kv_bool(&j, "armed", strcmp(state, "off") != 0);
    json_kv_bool(&j, "caught", caught);
    if (strcmp(state, "off") != 0) {
        json_kv_string(&j, "signals", debug_command_get(v, "signals", buf, sizeof buf));
        json_kv_string(&j, "left_alone", debug_command_get(v, "alone", buf, sizeof buf));
    }
    if (caught) {
        strbuf_init(&text, DEBUG_COMMAND_TEXTS_MAX);
        catch_put_traceback(&text, v);
        json_kv_string(&j, "exception", debug_command_get(v, "what", buf, sizeof buf));
        json_kv_string(&j, "thread", debug_command_get(v, "thread", buf, sizeof buf));
        json_kv_string(&j, "address", debug_command_get(v, "address", buf, sizeof buf));
        json_kv_string(&j, "token", debug_command_get(v, "token", buf, sizeof buf));
        json_kv_number(&j, "left_s", debug_command_left_s(v), 1);
        json_kv_bool(&j, "client_connected",
                     debug_command_get(v, "client", buf, sizeof buf) && buf[0] == '1');
        json_kv_string(&j, "traceback", strbuf_str(&text));
        strbuf_fini(&text);
    }
    json_object_end(&j);
    (void)strbuf_addc(out, '\n');
}

static void catch_put_signals(struct strbuf *out, const struct wire_evaluated *v) {
    char buf[1024];
    const char *signals = debug_command_get_clean(v, "signals", buf, sizeof buf);
    if (signals && signals[0])
        (void)strbuf_addf(out, "stacks of all threads will be kept at %s\n", buf);
    const char *alone = debug_command_get_clean(v, "alone", buf, sizeof buf);
    if (alone && alone[0])
        (void)strbuf_addf(out, "left alone: %s\n", buf);
}

static void catch_put_text(struct strbuf *out, const struct wire_evaluated *v, pid_t pid) {
    char buf[1024], text[1024], state[32];
    (void)debug_command_get(v, "state", state, sizeof state);
    if (strcmp(state, "off") == 0) {
        const char *was = debug_command_get(v, "was", buf, sizeof buf);
        (void)strbuf_adds(out, was && was[0] == '1' ? "exceptions are caught no more\n"
                                                    : "exceptions are not caught\n");
        return;
    }
    if (strcmp(state, "armed") == 0) {
        const char *threads = debug_command_get(v, "threads", buf, sizeof buf);
        (void)strbuf_addf(out, "an exception that nobody catches, %s, will keep its thread for",
                          threads && threads[0] == '1' ? "on any thread" : "on the main thread");
        (void)strbuf_addf(out, " %s s, with pdb: --status tells where\n",
                          debug_command_get_clean(v, "limit", buf, sizeof buf) ? buf : "?");
        catch_put_signals(out, v);
        return;
    }
    catch_put_traceback(out, v);
    (void)text_sanitize(text, sizeof text, debug_command_get(v, "thread", buf, sizeof buf) ? buf : "?");
    (void)strbuf_addf(out, "%s is kept until continue, --off, or for %.0f s more\n", text,
                      debug_command_left_s(v));
    debug_command_put_entry(out, v, pid);
}

const struct debug_command_def debug_command_catch = {
    .name = "catch",
    .command = "catch",
    .timeout_s = 10,
    .limit_s = 300,
    .failed = "nothing was begun",
    .ended = "it raises nothing",
    .who = "an agent catches exceptions",
    .put_code = catch_put_code,
    .check = catch_check,
    .put_text = catch_put_text,
    .put_json = catch_put_json,
    .put_copy = debug_command_put_place,
};
