/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verb_verdict: the problems of a training job: each verdict with its evidence and a remedy.
 *
 * Nothing is known about a job at first: the verb waits a few seconds, until the job's progress
 * is known, and, if it has just begun to step, for some steps more.
 */
#include "cli/cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "client/export/document.h"
#include "client/session/call.h"
#include "client/progress.h"
#include "client/verdict/verdict.h"

#define VERDICT_SCHEMA_VERSION 1
#define VERDICT_CODE 14

struct verdict_options {
    struct cli_options common; /* first */
    /* < 0: until the progress of the job is known, and no longer than that takes */
    double wait_s;
    bool no_inject, why;
};

static const struct verdict_options verdict_default = {.wait_s = -1};

static const struct option_def verdict_options[] = {
    {"wait", 'w', OPTION_SECONDS, offsetof(struct verdict_options, wait_s), .arg = "TIME",
     .help = "wait TIME before judging; 0 is now (default: until there is data, at most 10s)", .min = 0,
     .max = 86400},
    {"no-inject", 0, OPTION_FLAG, offsetof(struct verdict_options, no_inject),
     .help = "do not load the agent: read the process from outside"},
    {"why", 0, OPTION_FLAG, offsetof(struct verdict_options, why),
     .help = "also show every check: what was found, and its threshold"},
    {.name = NULL},
};

/* ---- printing ---- */

static void verdict_put_json(const struct verdicts *v, struct strbuf *out) {
    struct json j;
    json_init(&j, out, 2);
    json_object_begin(&j);
    json_kv_int(&j, "schema_version", VERDICT_SCHEMA_VERSION);
    document_put_verdicts(&j, v);
    json_object_end(&j);
    strbuf_addc(out, '\n');
}

static bool verdict_is_of_many(const struct verdicts *v) {
    for (size_t i = 1; i < v->n; i++)
        if (v->items[i].pid != v->items[0].pid || v->items[i].rank != v->items[0].rank)
            return true;
    return false;
}

/* One row of the table; the code is left out if the row before has it. */
static void verdict_put_check(const struct verdict_check *check, bool same, struct strbuf *out) {
    struct strbuf found, from, reason;
    strbuf_init(&found, 64);
    strbuf_init(&from, 64);
    strbuf_init(&reason, 256);
    verdict_put_measure(check->rule, check->measured, &found);
    if (check->rule->threshold > 0)
        verdict_put_measure(check->rule, check->rule->threshold, &from);
    else
        strbuf_adds(&from, "any");
    verdict_put_reason(check, &reason);
    strbuf_addf(out, "%-*s  %-9s  %12s  %9s  %-8s  %s%s%s%s\n", VERDICT_CODE, same ? "" : check->rule->code,
                verdict_result_name(check->result), strbuf_str(&found), strbuf_str(&from),
                verdict_sure(check->rule), check->rule->checks ? check->rule->checks : check->rule->code,
                reason.len ? " (" : "", strbuf_str(&reason), reason.len ? ")" : "");
    strbuf_fini(&found);
    strbuf_fini(&from);
    strbuf_fini(&reason);
}

/* Everything that was looked at: first how the job gets on, then what may be wrong with it. */
static void verdict_put_checks(const struct verdicts *v, bool many, struct strbuf *out) {
    for (size_t i = 0; i < v->n_checks; i++) {
        const struct verdict_check *check = &v->checks[i], *before = i ? &v->checks[i - 1] : NULL;
        if (!before || before->pid != check->pid || before->rank != check->rank) {
            strbuf_addc(out, '\n');
            if (many && check->rank != RING_INT_NULL)
                strbuf_addf(out, "rank %" PRId64 ", ", check->rank);
            if (many)
                strbuf_addf(out, "process %" PRId64 ":\n", check->pid);
            strbuf_addf(out, "%-*s  %-9s  %12s  %9s  %-8s  %s\n", VERDICT_CODE, "VERDICT", "RESULT", "FOUND",
                        "SAID FROM", "HOW", "WHAT WAS CHECKED");
            before = NULL;
        }
        verdict_put_check(check, before && strcmp(before->rule->code, check->rule->code) == 0, out);
    }
}

static void verdict_put_text(const struct verdicts *v, bool why, struct strbuf *out) {
    bool many = verdict_is_of_many(v);
    for (size_t i = 0; i < v->n; i++) {
        const struct verdict *one = &v->items[i];
        strbuf_addf(out, "%-*s  ", VERDICT_CODE, one->rule->code);
        if (many && one->rank != RING_INT_NULL)
            strbuf_addf(out, "rank %" PRId64 ", ", one->rank);
        if (many)
            strbuf_addf(out, "process %" PRId64 ": ", one->pid);
        strbuf_addf(out, "%s\n", one->text);
        if (one->rule->level != VERDICT_FINE)
            strbuf_addf(out, "%*s  %s\n", VERDICT_CODE, "", one->rule->help);
    }
    if (v->n == 0)
        strbuf_adds(out, "no verdict yet: try again, or use --wait 30s\n");
    if (why)
        verdict_put_checks(v, many, out);
}

/* ---- judging ---- */

/* A new agent takes no samples of a thread that runs before a client has said how: that needs a
 * request. It may fail: then samples come a little later. */
static void verdict_ask_first(const struct target_address *addr, size_t n) {
    for (size_t i = 0; i < n; i++) {
        struct err ignored;
        struct call *c =
            addr[i].path[0] && addr[i].mode == MODEL_MODE_AGENT ? call_open(&addr[i], &ignored) : NULL;
        struct model_snapshot snapshot;
        if (c && call_snapshot(c, &snapshot, &ignored) == 0)
            model_snapshot_fini(&snapshot);
        call_close(c);
    }
}

static int verdict_wait(struct verdict_judge *j, const struct cli_options *o,
                        const struct target_address *addr, double wait_s, struct verdicts *out,
                        struct err *e) {
    if (verdict_judge_wait(j, 0, out, e) != 0)
        return -1;
    if (wait_s == 0 || (wait_s < 0 && verdicts_have_state(out) && !out->again))
        return 0;
    if (!verdicts_have_state(out))
        verdict_ask_first(addr, o->targets.n);
    verdicts_fini(out);
    progress_begin("watching the job", wait_s > 0 ? wait_s : 0, NULL);
    int rc = verdict_judge_wait(j, wait_s, out, e);
    progress_end();
    return rc;
}

static int verdict_exec(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                        struct err *e) {
    const struct verdict_options *mine = (const struct verdict_options *)(const void *)o;
    struct database *d;
    struct verdicts v;
    if (mine->no_inject && mine->wait_s > 0)
        return err_set(e, ERR_USAGE, "--no-inject judges what is there now: leave out --wait");
    if (cli_open_database(o, addr, mine->no_inject, &d, e) != 0)
        return -1;
    struct verdict_judge *j = verdict_judge_new(d);
    int rc = j ? 0 : err_set(e, ERR_FAILED, "out of memory for verdicts");
    if (rc == 0)
        rc = verdict_wait(j, o, addr, mine->no_inject ? 0 : mine->wait_s, &v, e);
    if (rc == 0) {
        if (o->json)
            verdict_put_json(&v, out);
        else
            verdict_put_text(&v, mine->why, out);
        cli_note_database(d);
        verdicts_fini(&v);
    } else
        database_explain(d, e);
    verdict_judge_free(j);
    database_close(d);
    return rc;
}

const struct cli_verb verb_verdict = {
    .name = "verdict",
    .group = "Look",
    .help = "what is wrong, in plain words, with the evidence",
    .example = "probing 4242 verdict --wait 2s",
    .needs_target = true,
    .many_targets = true,
    .options = verdict_options,
    .options_size = sizeof(struct verdict_options),
    .options_default = &verdict_default,
    .exec = verdict_exec,
};
