/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any message as the answer of an agent that is broken, or somebody else's: whatever is understood of it is shown, as text, as JSON and
 * as exports. JSON is JSON, a text has nothing in it that a terminal obeys, native frames without a process get no names.
 *
 * The input is one message. Its bytes go through the guard before a terminal, too (client/output.h).
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/model_json.h"
#include "base/model_text.h"
#include "client/session/debug_command.h"
#include "client/export/export_formats.h"
#include "flame/stack_counts.h"
#include "client/symbols/native.h"
#include "client/output.h"
#include "client/export/profile_text.h"
#include "client/session/status_text.h"
#include "client/export/trace_file.h"
#include "support/fuzz_json.h"
#include "wire/eval_json.h"
#include "wire/wire.h"

#define SHOWN_MAX ((size_t)1 << 24)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds, const char *what) {
    if (!holds) {
        fprintf(stderr, "%s\n", what);
        abort();
    }
}

static void check_text(struct strbuf *out) {
    check(fuzz_text_is_plain(strbuf_str(out), out->len), "a text has what a terminal would obey");
    strbuf_fini(out);
}

static void check_json(struct strbuf *out, const struct json *j) {
    check(out->failed || json_finish(j) == 0, "what was begun is not ended");
    check(out->failed || fuzz_json_is(strbuf_str(out), out->len), "what is said to be JSON is none");
    strbuf_fini(out);
}

static void show_snapshot(const struct wire_message *m) {
    struct model_target target = {.pid = 1, .rank = MODEL_UNKNOWN};
    struct model_snapshot s;
    struct strbuf out;
    struct json j;
    struct err e;
    if (wire_get_snapshot(m, &s, &e) == 0) {
        struct native_names *names = native_names_new(0);
        if (names)
            (void)native_names_snapshot(names, &s);
        native_names_free(names);
        strbuf_init(&out, SHOWN_MAX);
        model_text_put_backtrace(&out, &target, &s, true);
        model_text_put_threads(&out, &s);
        check_text(&out);
        strbuf_init(&out, SHOWN_MAX);
        json_init(&j, &out, 2);
        json_object_begin(&j);
        model_json_put_backtrace(&j, &target, &s, true, true);
        json_object_end(&j);
        check_json(&out, &j);
    }
    model_snapshot_fini(&s);
}

static void show_samples(const struct wire_message *m) {
    static const struct export_request request = {.threads = true, .process = true};
    struct model_target target = {.pid = 1, .rank = MODEL_UNKNOWN};
    struct model_snapshot snapshot = {.timestamp = 1};
    struct model_sample_batch b;
    struct strbuf out;
    struct err e;
    struct stack_counts *fold = stack_counts_new();
    struct export_data d = {
        .request = &request, .target = &target, .snapshot = &snapshot, .counts = fold, .elapsed_s = 1};
    if (!fold)
        return;
    if (wire_get_samples(m, &b, &e) == 0 && stack_counts_add_batch(fold, &b) == 0) {
        strbuf_init(&out, SHOWN_MAX);
        bool made = export_render_folded(&d, &out, &e) == 0;
        check(!made || fuzz_text_is_plain(strbuf_str(&out), out.len),
              "an export has what a terminal would obey");
        strbuf_fini(&out);
    }
    model_sample_batch_fini(&b);
    stack_counts_free(fold);
}

/* What `profile` prints: what its lease says, and where the trace is, whose name is taken for a file's only if it is one; operations have
 * names of the job's. */
static void show_profile(const char *note, const char *file) {
    const char *name = trace_file_name(file ? file : "", 1);
    struct result *rows = result_new(3, 1, SHOWN_MAX);
    struct strbuf out;
    check(!name || (!strchr(name, '/') && strncmp(name, "profile-1-", 10) == 0 && strlen(name) < 48),
          "what is none is taken for the name of a trace");
    check(rows && result_add_row(rows) == 0 &&
              result_put_text(rows, 0, SQL_TEXT, note ? note : "", note ? strlen(note) : 0) == 0,
          "there is no room for a row");
    result_put_real(rows, 1, 1);
    result_put_int(rows, 2, 1);
    strbuf_init(&out, SHOWN_MAX);
    profile_text_put(&out, note ? note : "", file ? file : "", rows);
    check_text(&out);
    result_unref(rows);
}

/* The last guard: what it lets through holds colours alone, and nothing of it changes when it comes by again. */
static void show_guarded(const char *text, size_t len) {
    struct strbuf once, twice, plain;
    strbuf_init(&once, SHOWN_MAX);
    strbuf_init(&twice, SHOWN_MAX);
    strbuf_init(&plain, SHOWN_MAX);
    (void)output_guard(&once, text, len);
    (void)output_guard(&twice, strbuf_str(&once), once.len);
    check(once.failed ||
              (once.len == twice.len && memcmp(strbuf_str(&once), strbuf_str(&twice), once.len) == 0),
          "what has passed the guard does not pass it again");
    /* Without "ESC [ digits and ; m" it is plain. */
    for (size_t i = 0; i < once.len; i++) {
        if (once.data[i] == '\x1b') {
            check(once.data[i + 1] == '[', "an escape that begins no colour passes the guard");
            i += 2 + strspn(once.data + i + 2, "0123456789;");
            check(i < once.len && once.data[i] == 'm', "a sequence that is no colour passes the guard");
        } else {
            (void)strbuf_addc(&plain, once.data[i]);
        }
    }
    strbuf_fini(&once);
    strbuf_fini(&twice);
    check_text(&plain);
}

static void show_status(const struct wire_message *m) {
    struct model_target target = {.pid = 1, .rank = MODEL_UNKNOWN};
    struct model_status s;
    struct strbuf out;
    struct json j;
    struct err e;
    if (wire_get_status(m, &s, &e) == 0) {
        strbuf_init(&out, SHOWN_MAX);
        json_init(&j, &out, 2);
        model_json_put_status(&j, &target, &s);
        check_json(&out, &j);
        strbuf_init(&out, SHOWN_MAX);
        status_text_put(&out, &target, &s);
        check_text(&out);
        for (size_t i = 0; i < s.n_leases; i++)
            show_profile(s.leases[i].note, s.leases[i].file);
    }
    model_status_fini(&s);
}

/* What verbs make of it, when it is an answer of theirs. */
static void show_debugger(const struct wire_message *m) {
    static const struct debug_command_def *const defs[] = {&debug_command_debug, &debug_command_pause,
                                                           &debug_command_catch};
    for (size_t i = 0; i < sizeof defs / sizeof defs[0]; i++) {
        struct wire_debugger d;
        struct strbuf out;
        struct err e;
        if (wire_get_debugger(m, defs[i]->method, &d, &e) == 0 &&
            debug_command_check(defs[i], &d, 1, defs[i]->failed, &e) == 0) {
            strbuf_init(&out, SHOWN_MAX);
            defs[i]->put_text(&out, &d, 0);
            check_text(&out);
            strbuf_init(&out, SHOWN_MAX);
            defs[i]->put_copy(&out, &d, 0);
            check_text(&out);
            strbuf_init(&out, SHOWN_MAX);
            defs[i]->put_json(&out, &d, 0);
            check(out.failed || fuzz_json_is(strbuf_str(&out), out.len), "what is said to be JSON is none");
            strbuf_fini(&out);
        }
        wire_debugger_fini(&d);
    }
}

static void show_evaluated(const struct wire_message *m) {
    struct wire_evaluated v;
    struct strbuf out;
    struct json j;
    struct err e;
    if (wire_get_evaluated(m, &v, &e) != 0)
        return;
    strbuf_init(&out, SHOWN_MAX);
    json_init(&j, &out, 2);
    wire_put_evaluated_json(&j, &v);
    check_json(&out, &j);
}

static void show_target(const struct wire_message *m) {
    struct model_target t;
    struct model_snapshot snapshot = {.timestamp = 1};
    struct strbuf out;
    struct json j;
    struct err e;
    if (wire_get_target(m, &t, &e) == 0) {
        strbuf_init(&out, SHOWN_MAX);
        model_text_put_backtrace(&out, &t, &snapshot, false);
        check_text(&out);
        strbuf_init(&out, SHOWN_MAX);
        json_init(&j, &out, 0);
        json_object_begin(&j);
        model_json_put_backtrace(&j, &t, &snapshot, false, false);
        json_object_end(&j);
        check_json(&out, &j);
    }
    model_target_fini(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct err e;
    show_guarded((const char *)data, size);
    struct wire_message *m = wire_parse(data, size, &e);
    if (!m)
        return 0;
    show_snapshot(m);
    show_samples(m);
    show_status(m);
    show_evaluated(m);
    show_debugger(m);
    show_target(m);
    wire_message_free(m);
    return 0;
}
