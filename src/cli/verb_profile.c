/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verb_profile: torch.profiler for some training steps: a file for Perfetto or chrome://tracing, and what took longest.
 *
 * What it costs is counted and said first, and has to be agreed to: at the terminal, or by --yes.
 */
#include "cli/armed.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "client/output.h"

#define PROFILE_SCHEMA_VERSION 1
#define PROFILE_STEPS 3
#define PROFILE_COUNT_S 40.0    /* for it to be counted what steps do */
#define PROFILE_LONGEST_S 600.0 /* for the steps, and for what they were to be written */
#define PROFILE_LATE_S 5.0
#define PROFILE_TOP "20"
#define PROFILE_NAME 56

const struct option_def cli_profile_rows[] = {
    {"steps", 'n', OPTION_INT, offsetof(struct armed_options, steps), "N", "training steps (default: 3)", 1,
     20},
    {"output", 'o', OPTION_STRING, offsetof(struct cli_profile_options, output), "FILE",
     "move the trace there (default: it stays where the job has written it, which is told, as one of the "
     "newest 8)",
     0, 0},
    {"yes", 'y', OPTION_FLAG, offsetof(struct cli_profile_options, yes), NULL,
     "do not ask whether it may cost what is said", 0, 0},
    {"compiled", 0, OPTION_FLAG, offsetof(struct armed_options, compiled), NULL,
     "even where torch.compile is used: an optimizer may then be compiled anew", 0, 0},
    {.name = NULL},
};

static const char profile_top[] =
    "SELECT operation_name, sum(duration_ms) AS total_ms, sum(calls) AS calls, count(DISTINCT step) AS steps"
    " FROM profiling_data WHERE kind = 'profiler' AND timestamp >= %.6f"
    " GROUP BY operation_name ORDER BY total_ms DESC LIMIT " PROFILE_TOP;

enum profile_column { PROFILE_OPERATION = 0, PROFILE_TOTAL, PROFILE_CALLS };

/* ---- asking ---- */

/* Is it wanted at that price? 1, 0; or -1 with the error: nobody can be asked. */
static int profile_ask(const struct armed *a, bool yes, struct err *e) {
    char clean[2 * ARMED_NOTE_MAX], answer[16] = "";
    (void)text_sanitize(clean, sizeof clean, a->note);
    (void)fprintf(stderr, "probing: %s\n", clean);
    if (yes)
        return 1;
    if (!isatty(STDIN_FILENO))
        return err_set(e, ERR_USAGE, "nobody can be asked whether it may cost that: --yes");
    (void)fprintf(stderr, "go on? [y/N] ");
    return fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

/* Arm it, wait, and tell how it ended: 0, the note says what has come of it; or -1 with the error. */
static int profile_run(struct armed *a, const struct cli_options *o, struct session_address *addr,
                       const struct wire_arm *want, struct err *e) {
    int rc = armed_begin(a, o, addr, want, e);
    a->ends = true;
    if (rc != 0 || armed_wait(a, want->dry ? PROFILE_COUNT_S : PROFILE_LONGEST_S, NULL, e) != 0)
        return -1;
    if (!a->over)
        return err_set(e, ERR_FAILED, "interrupted: nothing is armed any more");
    if (!a->note[0])
        return err_set(e, ERR_FAILED, "it ended without a word: somebody else has ended it");
    return want->dry || a->file[0] ? 0 : err_set(e, ERR_FAILED, "%s", a->note);
}

/* ---- the file ---- */

/* Copy what is read from one into the other. 0 or -1. */
static int profile_pour(int from, int to) {
    char block[65536];
    for (ssize_t n; (n = read(from, block, sizeof block)) != 0;) {
        if (n < 0 && errno == EINTR)
            continue;
        for (ssize_t at = 0; n > 0 && at < n;) {
            ssize_t put = write(to, block + at, (size_t)(n - at));
            if (put <= 0)
                return -1;
            at += put;
        }
        if (n < 0)
            return -1;
    }
    return 0;
}

/* The file that the job has written is where it sees it: below its own root. */
static int profile_move(const struct session_address *addr, const char *file, const char *output,
                        struct err *e) {
    char path[640];
    (void)snprintf(path, sizeof path, "/proc/%d/root%s", (int)addr->pid, file);
    int from = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), to = -1;
    int rc = from >= 0
                 ? 0
                 : err_set(e, ERR_FAILED, "%s cannot be read: %s; the trace is there", path, strerror(errno));
    if (rc == 0)
        to = open(output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (rc == 0 && (to < 0 || profile_pour(from, to) != 0 || fsync(to) != 0))
        rc = err_set(e, ERR_FAILED, "%s cannot be written: %s; the trace is in %s", output, strerror(errno),
                     file);
    if (to >= 0)
        (void)close(to);
    if (from >= 0)
        (void)close(from);
    if (rc == 0)
        (void)unlink(path);
    return rc;
}

/* ---- printing ---- */

static void profile_put_json(const struct armed *a, const char *file, const struct rows *rows,
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
    for (size_t i = 0; i < rows->n; i++) {
        json_object_begin(&j);
        json_kv_string(&j, "operation", armed_text(rows, i, PROFILE_OPERATION));
        json_kv_number(&j, "total_ms", armed_number(rows, i, PROFILE_TOTAL), 4);
        json_kv_number(&j, "calls", armed_number(rows, i, PROFILE_CALLS), 0);
        json_object_end(&j);
    }
    json_array_end(&j);
    json_object_end(&j);
    (void)strbuf_addc(out, '\n');
}

static void profile_put_text(const struct armed *a, const char *file, const struct rows *rows,
                             struct strbuf *out) {
    (void)strbuf_addf(out, "%s\n%s: ui.perfetto.dev and chrome://tracing open it\n\n%-*s %12s %9s\n", a->note,
                      file, PROFILE_NAME, "OPERATION", "TOTAL MS", "CALLS");
    for (size_t i = 0; i < rows->n; i++) {
        char name[256];
        (void)text_sanitize(name, sizeof name, armed_text(rows, i, PROFILE_OPERATION));
        (void)strbuf_addf(out, "%-*s %12.3f %9.0f\n", PROFILE_NAME, name,
                          armed_number(rows, i, PROFILE_TOTAL), armed_number(rows, i, PROFILE_CALLS));
    }
}

/* The rows are there some moments after the lease has ended. */
static int profile_read_top(struct armed *a, struct rows *rows, struct err *e) {
    double until_s = clock_epoch_s() + PROFILE_LATE_S;
    for (;;) {
        if (armed_ask(a, profile_top, rows, e) != 0)
            return -1;
        if (rows->n > 0 || clock_epoch_s() >= until_s)
            return 0;
        rows_fini(rows);
        if (call_rest(a->call, 0.1, e) != 0)
            return -1;
    }
}

static int profile_tell(struct armed *a, const struct cli_profile_options *mine,
                        const struct session_address *addr, struct strbuf *out, struct err *e) {
    struct rows rows = {.n = 0};
    const char *file = mine->output ? mine->output : a->file;
    int rc = mine->output ? profile_move(addr, a->file, mine->output, e) : 0;
    if (rc == 0)
        rc = profile_read_top(a, &rows, e);
    if (rc == 0 && mine->armed.common.json)
        profile_put_json(a, file, &rows, out);
    else if (rc == 0)
        profile_put_text(a, file, &rows, out);
    rows_fini(&rows);
    return rc;
}

int cli_run_profile(const struct cli_options *o, struct session_address *addr, struct strbuf *out,
                    struct err *e) {
    const struct cli_profile_options *mine = (const struct cli_profile_options *)(const void *)o;
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
        rc = profile_tell(&a, mine, addr, out, e);
    armed_end(&a);
    return rc;
}
