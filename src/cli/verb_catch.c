/* SPDX-License-Identifier: Apache-2.0 */
/* verb_catch: a thread with an uncaught exception is kept for a while, with pdb; see
 * client/session/debug_command.h. */
#include "cli/cli.h"
#include "cli/debug_verb.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "client/sql/database.h"
#include "client/export/document.h"
#include "client/sql/result.h"
#include "store/ring/ring_tables.h"

#define CATCH_QUERY_S 60.0

#define AT(member) offsetof(struct debug_verb_options, member)

static const struct option_def catch_options[] = {
    {"limit", 0, OPTION_SECONDS, AT(limit_s), .arg = "TIME", .help = "hold the thread for at most TIME (5m)",
     .min = 1, .max = WIRE_DEBUG_LIMIT_MAX_S},
    {"status", 0, OPTION_FLAG, AT(status),
     .help = "show what is caught: traceback and pdb address; for an ended process, what was caught"},
    {"off", 0, OPTION_FLAG, AT(off), .help = "stop catching; a held thread continues"},
    {"timeout", 0, OPTION_SECONDS, AT(timeout_s), .arg = "TIME",
     .help = "give up if it has not started after TIME (10s)", .min = 0.01, .max = WIRE_EVAL_TIMEOUT_MAX_S},
    {.name = NULL},
};

int cli_catch(struct target_address *addr, struct strbuf *out, struct err *e) {
    static const char what[] = "the agent is loaded, but exceptions are not caught";
    const struct debug_command_def *def = &debug_command_catch;
    const struct debug_command_request status = {
        .timeout_s = def->timeout_s, .limit_s = def->limit_s, .status = true};
    struct wire_debug want;
    struct wire_debugger how = {.on = false};
    int rc = debug_command_request_wire(def, &status, addr->pid, &want, e);
    if (rc == 0)
        rc = debug_command_ask(def, addr, &want, what, &how, e);
    if (rc == 0 && !how.on) {
        wire_debugger_fini(&how);
        want.action = WIRE_DEBUG_BEGIN;
        rc = debug_command_ask(def, addr, &want, what, &how, e);
    }
    if (rc == 0 && out)
        def->put_text(out, &how, addr->pid);
    wire_debugger_fini(&how);
    wire_debug_fini(&want);
    return rc;
}

/* ---- a process that has ended ---- */

static const char *catch_find(const struct result *rows, const char *kind) {
    for (size_t i = 0; i < rows->n_rows; i++) {
        const char *is = result_string(rows, i, 0), *text = result_string(rows, i, 1);
        if (is && text && strcmp(is, kind) == 0)
            return text;
    }
    return NULL;
}

static void catch_put_lines(struct strbuf *out, const char *text) {
    char line[1024], clean[1024];
    while (text && *text) {
        size_t n = strcspn(text, "\n"), kept = n < sizeof line - 1 ? n : sizeof line - 1;
        memcpy(line, text, kept);
        line[kept] = '\0';
        text_sanitize(clean, sizeof clean, line);
        strbuf_addf(out, "%s\n", clean);
        text += n + (text[n] == '\n');
    }
}

static void catch_put_recorded(struct strbuf *out, bool as_json, const struct result *rows, const char *why) {
    const char *fatal = catch_find(rows, RING_EVENT_FATAL), *stack = catch_find(rows, RING_EVENT_FATAL_STACK),
               *uncaught = catch_find(rows, RING_EVENT_UNCAUGHT);
    struct json j;
    if (as_json) {
        json_init(&j, out, 2);
        json_object_begin(&j);
        json_kv_int(&j, "schema_version", DOCUMENT_SCHEMA_VERSION);
        json_kv_bool(&j, "armed", false);
        json_kv_bool(&j, "caught", false);
        json_kv_string(&j, "ended", why);
        json_kv_string(&j, "fatal_signal", fatal);
        json_kv_string(&j, "stack", stack);
        json_kv_string(&j, "uncaught_exception", uncaught);
        json_object_end(&j);
        strbuf_addc(out, '\n');
        return;
    }
    strbuf_adds(out, "ended: ");
    catch_put_lines(out, why);
    catch_put_lines(out, uncaught);
    catch_put_lines(out, fatal);
    catch_put_lines(out, stack);
    if (!fatal && !uncaught)
        strbuf_adds(out, "no exception and no fatal signal was caught\n");
}

/* The rows of its tables, the latest of each kind. */
static int catch_show_recorded(struct target_address *addr, bool as_json, struct strbuf *out, struct err *e) {
    static const char text[] =
        "SELECT kind, text FROM probing.events WHERE kind IN ('" RING_EVENT_FATAL
        "', '" RING_EVENT_FATAL_STACK "', '" RING_EVENT_UNCAUGHT "') ORDER BY timestamp DESC";
    struct sql_query q = {.timeout_s = CATCH_QUERY_S};
    struct database *d = database_open(e);
    struct result *rows =
        d && database_add(d, addr, e) == 0 ? database_take(d, text, &q, RESULT_BYTES, e) : NULL;
    int rc = rows ? 0 : -1;
    if (rows)
        catch_put_recorded(out, as_json, rows, addr->why);
    result_unref(rows);
    database_close(d);
    return rc;
}

static int catch_exec(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                      struct err *e) {
    const struct debug_verb_options *mine = (const struct debug_verb_options *)(const void *)o;
    if (addr->recorded[0] && mine->status && !mine->off && !mine->common.operand)
        return catch_show_recorded(addr, o->json, out, e);
    return debug_verb_exec(&debug_command_catch, o, addr, out, e);
}

const struct cli_verb verb_catch = {
    .name = "catch",
    .group = "Code",
    .help = "on an uncaught exception, hold the thread and serve post-mortem pdb",
    .example = "probing 4242 catch 127.0.0.1:3344",
    .needs_target = true,
    .changes = true,
    .operand = "[ADDR]",
    .options = catch_options,
    .options_size = sizeof(struct debug_verb_options),
    .options_default = &debug_verb_default,
    .exec = catch_exec,
};
