/* SPDX-License-Identifier: Apache-2.0 */
/* verb_trace: the time of training steps by module: some steps are traced while the verb runs. */
#include "cli/armed.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"

#define TRACE_SCHEMA_VERSION 1
#define TRACE_STEPS 5         /* default */
#define TRACE_DURATION_S 60.0 /* default */
#define TRACE_LATE_S 6.0      /* a step's rows appear when its number is known */
#define TRACE_NAME 40
#define TRACE_TYPE 20

static const struct option_def trace_options[] = {
    {"steps", 'n', OPTION_INT, offsetof(struct armed_options, steps), .arg = "N",
     .help = "stop after N traced steps (default: 5, or all within the time)", .min = 1, .max = 100000},
    {"for", 0, OPTION_SECONDS, offsetof(struct armed_options, duration_s), .arg = "TIME",
     .help = "stop after TIME, or at ^C (60s)", .min = 0.1, .max = 86400},
    {"compiled", 0, OPTION_FLAG, offsetof(struct armed_options, compiled),
     .help = "allow torch.compile: the model is compiled again"},
    {.name = NULL},
};

/* Timestamps of rows are those of the start of the step. */
static const char trace_steps[] =
    "SELECT count(*) AS steps, avg(duration_ms) AS step_ms, min(step) AS first, max(step) AS last"
    " FROM python.torch_trace WHERE stage = 'step' AND timestamp >= %.6f";

enum trace_steps_column { TRACE_STEPS_N = 0, TRACE_STEPS_MS, TRACE_STEPS_FIRST, TRACE_STEPS_LAST };

static const char trace_modules[] =
    "SELECT module, operation_name AS type, count(DISTINCT timestamp) AS steps,"
    " avg(CASE stage WHEN 'forward' THEN duration_ms END) AS forward_ms,"
    " avg(CASE stage WHEN 'backward' THEN duration_ms END) AS backward_ms,"
    " avg(CASE stage WHEN 'forward' THEN calls END) AS calls,"
    " avg(CASE stage WHEN 'forward' THEN activation_bytes END) AS activation_bytes"
    " FROM python.torch_trace WHERE stage <> 'step' AND timestamp >= %.6f"
    " GROUP BY module, operation_name ORDER BY min(seq), module";

enum trace_column {
    TRACE_MODULE = 0,
    TRACE_OPERATION,
    TRACE_IN,
    TRACE_FORWARD,
    TRACE_BACKWARD,
    TRACE_CALLS,
    TRACE_BYTES
};

static void trace_put_json(const struct armed *a, const struct result *steps, const struct result *modules,
                           struct strbuf *out) {
    struct json j;
    json_init(&j, out, 2);
    json_object_begin(&j);
    json_kv_int(&j, "schema_version", TRACE_SCHEMA_VERSION);
    json_kv_number(&j, "steps", result_number(steps, 0, TRACE_STEPS_N), 0);
    json_kv_number(&j, "first_step", result_number(steps, 0, TRACE_STEPS_FIRST), 0);
    json_kv_number(&j, "last_step", result_number(steps, 0, TRACE_STEPS_LAST), 0);
    json_kv_number(&j, "step_ms", result_number(steps, 0, TRACE_STEPS_MS), 3);
    json_kv_number(&j, "overhead_pct", a->cost_pct, 4);
    json_key(&j, "modules");
    json_array_begin(&j);
    for (size_t i = 0; i < modules->n_rows; i++) {
        json_object_begin(&j);
        json_kv_string(&j, "module", result_string(modules, i, TRACE_MODULE));
        json_kv_string(&j, "type", result_string(modules, i, TRACE_OPERATION));
        json_kv_number(&j, "steps", result_number(modules, i, TRACE_IN), 0);
        json_kv_number(&j, "forward_ms", result_number(modules, i, TRACE_FORWARD), 4);
        json_kv_number(&j, "backward_ms", result_number(modules, i, TRACE_BACKWARD), 4);
        json_kv_number(&j, "calls", result_number(modules, i, TRACE_CALLS), 2);
        json_kv_number(&j, "activation_bytes", result_number(modules, i, TRACE_BYTES), 0);
        json_object_end(&j);
    }
    json_array_end(&j);
    json_object_end(&j);
    strbuf_addc(out, '\n');
}

static void trace_put_ms(struct strbuf *out, double ms) {
    if (isnan(ms))
        strbuf_addf(out, " %12s", "?");
    else
        strbuf_addf(out, " %12.3f", ms);
}

/* Explain why there are fewer steps than wanted. */
static void trace_put_fewer(const struct armed *a, int64_t wanted, struct strbuf *out) {
    char note[ARMED_NOTE_MAX];
    text_sanitize(note, sizeof note, a->note);
    strbuf_addf(out, "\n%" PRId64 " were asked for: ", wanted);
    if (a->over && note[0])
        strbuf_adds(out, note);
    else
        strbuf_addf(out, "%s%s%s", a->cut ? "interrupted" : "timed out (increase the time with --for)",
                    note[0] ? ". " : "", note);
}

static void trace_put_text(const struct armed *a, const struct result *steps, int64_t wanted,
                           const struct result *modules, struct strbuf *out) {
    double n = result_number(steps, 0, TRACE_STEPS_N), ms = result_number(steps, 0, TRACE_STEPS_MS);
    strbuf_addf(out, "%.0f step%s of %.3f ms", n, n == 1 ? "" : "s", ms);
    if (!isnan(a->cost_pct))
        strbuf_addf(out, "; tracing cost %.2f %% of the time", a->cost_pct);
    if (n < (double)wanted)
        trace_put_fewer(a, wanted, out);
    strbuf_addf(out, "\n\n%-*s %-*s %12s %12s %8s %7s %12s\n", TRACE_NAME, "MODULE", TRACE_TYPE, "TYPE",
                "FORWARD MS", "BACKWARD MS", "OF STEP", "CALLS", "ACTIVATIONS");
    for (size_t i = 0; i < modules->n_rows; i++) {
        char name[512], type[128], bytes[32] = "?";
        const char *path = result_string(modules, i, TRACE_MODULE);
        double forward = result_number(modules, i, TRACE_FORWARD),
               backward = result_number(modules, i, TRACE_BACKWARD),
               size = result_number(modules, i, TRACE_BYTES);
        text_sanitize(name, sizeof name, !path ? "?" : path[0] ? path : "(model)");
        text_sanitize(type, sizeof type, result_string(modules, i, TRACE_OPERATION));
        if (!isnan(size))
            text_human_bytes(bytes, sizeof bytes, size);
        strbuf_addf(out, "%-*s %-*s", TRACE_NAME, name, TRACE_TYPE, type);
        trace_put_ms(out, forward);
        trace_put_ms(out, backward);
        if (isnan(forward))
            strbuf_addf(out, " %8s", "?");
        else
            strbuf_addf(out, " %6.1f %%", 100 * (forward + (isnan(backward) ? 0 : backward)) / ms);
        strbuf_addf(out, " %7.4g %12s\n", result_number(modules, i, TRACE_CALLS), bytes);
    }
}

/* Explain why there is no result. */
static int trace_explain(const struct armed *a, struct err *e) {
    return err_set(e, ERR_FAILED, "no training step was traced%s%s", a->note[0] ? ": " : "",
                   a->note[0] ? a->note : ": none finished in that time (increase it with --for)");
}

/* Read the steps, once all traced ones are in the table. NULL with the error. */
static struct result *trace_ask_steps(struct armed *a, int64_t wanted, struct err *e) {
    double until_s = clock_epoch_s() + TRACE_LATE_S;
    /* A lease that ended without a note has traced all of its steps. */
    double awaited = a->over && wanted > 0 && !a->note[0] ? (double)wanted : (double)a->looks;
    for (;;) {
        struct result *steps = armed_ask(a, trace_steps, e);
        if (!steps || result_number(steps, 0, TRACE_STEPS_N) >= awaited || clock_epoch_s() >= until_s)
            return steps;
        result_unref(steps);
        if (call_rest(a->call, 0.1, e) != 0)
            return NULL;
    }
}

/* Wait for the steps. If another client has armed it too, a step that began before ours is
 * traced, but does not count, and that lease may end before our steps are complete: then the
 * wait goes on with a new lease. NULL with the error. */
static struct result *trace_wait(struct armed *a, double duration_s, struct err *e) {
    double until_s = clock_epoch_s() + duration_s;
    int64_t wanted = a->want.steps;
    for (;;) {
        double left_s = until_s - clock_epoch_s();
        if (armed_wait(a, left_s > 0 ? left_s : 0, NULL, e) != 0)
            return NULL;
        struct result *steps = trace_ask_steps(a, wanted, e);
        if (!steps)
            return NULL;
        int64_t missing = wanted - (int64_t)result_number(steps, 0, TRACE_STEPS_N);
        if (missing <= 0 || a->cut || clock_epoch_s() >= until_s || (a->over && a->note[0]))
            return steps;
        result_unref(steps);
        if (!a->over)
            a->want.steps = a->looks + missing;
        else if (armed_renew(a, missing, e) != 0)
            return NULL;
    }
}

static int trace_report(struct armed *a, const struct result *steps, int64_t wanted, bool json,
                        struct strbuf *out, struct err *e) {
    if (!(result_number(steps, 0, TRACE_STEPS_N) > 0))
        return trace_explain(a, e);
    struct result *modules = armed_ask(a, trace_modules, e);
    if (!modules)
        return -1;
    if (json)
        trace_put_json(a, steps, modules, out);
    else
        trace_put_text(a, steps, wanted, modules, out);
    result_unref(modules);
    return 0;
}

static int trace_exec(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                      struct err *e) {
    const struct armed_options *mine = (const struct armed_options *)(const void *)o;
    struct wire_arm want = {.what = "trace", .compiled = mine->compiled};
    struct armed a;
    want.steps = mine->steps ? mine->steps : mine->duration_s > 0 ? 0 : TRACE_STEPS;
    struct result *steps = NULL;
    int rc = armed_begin(&a, o, addr, &want, e);
    if (rc == 0)
        steps = trace_wait(&a, mine->duration_s > 0 ? mine->duration_s : TRACE_DURATION_S, e);
    rc = steps ? trace_report(&a, steps, want.steps, o->json, out, e) : -1;
    result_unref(steps);
    armed_end(&a);
    return rc;
}

const struct cli_verb verb_trace = {
    .name = "trace",
    .group = "Training",
    .help = "forward and backward time of each module, over some training steps",
    .example = "probing 4242 trace --steps 2",
    .needs_target = true,
    .options = trace_options,
    .options_size = sizeof(struct armed_options),
    .exec = trace_exec,
};
