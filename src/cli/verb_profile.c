/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verb_profile: run torch.profiler for some training steps: a file for Perfetto or
 * chrome://tracing, and the longest operations.
 *
 * The verb first counts the events of a step and shows the expected overhead, which the user has
 * to accept: at the terminal, or by --yes.
 */
#include "cli/armed.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "client/output.h"
#include "client/export/profile_text.h"
#include "client/export/trace_file.h"

#define PROFILE_SCHEMA_VERSION 1
#define PROFILE_STEPS 3
#define PROFILE_COUNT_S 40.0    /* for counting the events of a step */
#define PROFILE_LONGEST_S 600.0 /* for the steps, and for writing their file */
#define PROFILE_LATE_S 5.0
#define PROFILE_TOP "20"

struct profile_options {
    struct armed_options armed; /* first */
    const char *output;
    bool yes;
};

static const struct option_def profile_options[] = {
    {"steps", 'n', OPTION_INT, offsetof(struct armed_options, steps), .arg = "N",
     .help = "training steps (3)", .min = 1, .max = 20},
    {"output", 'o', OPTION_STRING, offsetof(struct profile_options, output), .arg = "FILE",
     .help = "move the trace to FILE (default: leave it where the job wrote it; the job keeps the last 8)"},
    {"yes", 'y', OPTION_FLAG, offsetof(struct profile_options, yes),
     .help = "do not ask before a profile that may be expensive"},
    {"compiled", 0, OPTION_FLAG, offsetof(struct armed_options, compiled),
     .help = "allow torch.compile: an optimizer may be compiled again"},
    {.name = NULL},
};

static const char profile_top[] =
    "SELECT operation_name, sum(duration_ms) AS total_ms, sum(calls) AS calls, count(DISTINCT step) AS steps"
    " FROM profiling_data WHERE kind = 'profiler' AND timestamp >= %.6f"
    " GROUP BY operation_name ORDER BY total_ms DESC LIMIT " PROFILE_TOP;

/* ---- asking ---- */

/* Ask whether the user accepts that overhead. 1, 0; or -1 with the error if nobody can be asked. */
static int profile_ask(const struct armed *a, bool yes, struct err *e) {
    char clean[2 * ARMED_NOTE_MAX], answer[16] = "";
    text_sanitize(clean, sizeof clean, a->note);
    output_say("probing: %s\n", clean);
    if (yes)
        return 1;
    if (!isatty(STDIN_FILENO))
        return err_set(e, ERR_USAGE, "not a terminal, so nobody can confirm that cost: add --yes");
    output_say("go on? [y/N] ");
    return fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

/* Arm it, wait, and find out how it ended: 0, and the note has the result; or -1 with the error. */
static int profile_run(struct armed *a, const struct cli_options *o, struct target_address *addr,
                       const struct wire_arm *want, struct err *e) {
    int rc = armed_begin(a, o, addr, want, e);
    a->ends = true;
    if (rc != 0 || armed_wait(a, want->dry ? PROFILE_COUNT_S : PROFILE_LONGEST_S, NULL, e) != 0)
        return -1;
    if (!a->over)
        return err_set(e, ERR_FAILED, "interrupted: the profile was cancelled");
    if (!a->note[0])
        return err_set(e, ERR_FAILED, "it was ended by another client");
    return want->dry || a->file[0] ? 0 : err_set(e, ERR_FAILED, "%s", a->note);
}

/* ---- printing ---- */

static void profile_put_json(const struct armed *a, const char *file, const struct result *rows,
                             struct strbuf *out) {
    struct json j;
    json_init(&j, out, 2);
    json_object_begin(&j);
    json_kv_int(&j, "schema_version", PROFILE_SCHEMA_VERSION);
    json_kv_string(&j, "file", file);
    json_kv_int(&j, "steps", a->looks);
    json_kv_string(&j, "text", a->note);
    json_key(&j, "operations");
    json_array_begin(&j);
    for (size_t i = 0; i < rows->n_rows; i++) {
        json_object_begin(&j);
        json_kv_string(&j, "operation", result_string(rows, i, PROFILE_TEXT_OPERATION));
        json_kv_number(&j, "total_ms", result_number(rows, i, PROFILE_TEXT_TOTAL), 4);
        json_kv_number(&j, "calls", result_number(rows, i, PROFILE_TEXT_CALLS), 0);
        json_object_end(&j);
    }
    json_array_end(&j);
    json_object_end(&j);
    strbuf_addc(out, '\n');
}

/* Read the rows, which appear shortly after the lease has ended. NULL with the error. */
static struct result *profile_read_top(struct armed *a, struct err *e) {
    double until_s = clock_epoch_s() + PROFILE_LATE_S;
    for (;;) {
        struct result *rows = armed_ask(a, profile_top, e);
        if (!rows || rows->n_rows > 0 || clock_epoch_s() >= until_s)
            return rows;
        result_unref(rows);
        if (call_rest(a->call, 0.1, e) != 0)
            return NULL;
    }
}

static int profile_report(struct armed *a, const struct profile_options *mine,
                          const struct target_address *addr, struct strbuf *out, struct err *e) {
    const char *file = mine->output ? mine->output : a->file;
    int rc = mine->output ? trace_file_move(addr->pid, a->file, mine->output, armed_is_interrupted, e) : 0;
    struct result *rows = rc == 0 ? profile_read_top(a, e) : NULL;
    if (!rows)
        return -1;
    if (mine->armed.common.json)
        profile_put_json(a, file, rows, out);
    else
        profile_text_put(out, a->note, file, rows);
    result_unref(rows);
    return 0;
}

static int profile_exec(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                        struct err *e) {
    const struct profile_options *mine = (const struct profile_options *)(const void *)o;
    struct wire_arm want = {.what = "profiler", .compiled = mine->armed.compiled, .dry = true};
    struct armed a;
    want.steps = mine->armed.steps ? mine->armed.steps : PROFILE_STEPS;
    if (mine->output && output_is_stdout(mine->output))
        return err_set(e, ERR_USAGE, "a trace is written to a file: -o trace.json");
    if (mine->output && output_check(mine->output, e) != 0)
        return -1;
    int rc = profile_run(&a, o, addr, &want, e);
    int agreed = rc == 0 ? profile_ask(&a, mine->yes, e) : -1;
    armed_end(&a);
    if (agreed <= 0)
        return agreed < 0 ? -1 : err_set(e, ERR_FAILED, "nothing was done");
    want.dry = false;
    rc = profile_run(&a, o, addr, &want, e);
    if (rc == 0)
        rc = profile_report(&a, mine, addr, out, e);
    armed_end(&a);
    return rc;
}

const struct cli_verb verb_profile = {
    .name = "profile",
    .group = "Training",
    .help = "run torch.profiler for some training steps: a trace file, and the longest operations",
    .example = "probing 4242 profile --steps 1 --yes --output trace.json",
    .needs_target = true,
    .options = profile_options,
    .options_size = sizeof(struct profile_options),
    .exec = profile_exec,
};
