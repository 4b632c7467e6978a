/* SPDX-License-Identifier: Apache-2.0 */
/* verb_nan: find the first NaN or infinite value in the outputs and gradients of modules in the
 * next training steps; or report that all were finite. */
#include "cli/armed.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"

#define NAN_SCHEMA_VERSION 1
#define NAN_DURATION_S 600.0 /* default */
#define NAN_BETWEEN " < "    /* between two frames of a stack */
#define NAN_LATE_S 6.0       /* until the row is visible */

static const struct option_def nan_options[] = {
    {"steps", 'n', OPTION_INT, offsetof(struct armed_options, steps), .arg = "N",
     .help = "search at most N steps (2)", .min = 1, .max = 20},
    {"for", 0, OPTION_SECONDS, offsetof(struct armed_options, duration_s), .arg = "TIME",
     .help = "stop after TIME, or at ^C (10m)", .min = 0.1, .max = 86400},
    {"compiled", 0, OPTION_FLAG, offsetof(struct armed_options, compiled),
     .help = "allow torch.compile: the model is compiled again"},
    {.name = NULL},
};

static const char nan_row[] =
    "SELECT * FROM python.nonfinite WHERE timestamp >= %.6f ORDER BY timestamp DESC LIMIT 1";

static const char *nan_text(const struct result *rows, const char *name) {
    for (size_t i = 0; i < rows->n_columns; i++)
        if (strcmp(rows->columns[i].name, name) == 0)
            return result_string(rows, 0, i);
    return NULL;
}

static void nan_put_json(const struct armed *a, const struct result *rows, struct strbuf *out) {
    static const char *const ours[] = {"rank", "host", "pid", NULL};
    struct json j;
    json_init(&j, out, 2);
    json_object_begin(&j);
    json_kv_int(&j, "schema_version", NAN_SCHEMA_VERSION);
    json_kv_bool(&j, "found", strcmp(nan_text(rows, "stage"), "none") != 0);
    json_kv_string(&j, "text", a->note);
    for (size_t i = 0; i < rows->n_columns; i++) {
        struct result_cell c = result_at(rows, 0, i);
        size_t k = 0;
        while (ours[k] && strcmp(ours[k], rows->columns[i].name) != 0)
            k++;
        if (ours[k])
            continue;
        json_key(&j, rows->columns[i].name);
        if (c.kind == SQL_INTEGER)
            json_int(&j, c.i);
        else if (c.kind == SQL_REAL)
            json_number(&j, c.f, 9);
        else
            json_string(&j, result_string(rows, 0, i));
    }
    json_object_end(&j);
    strbuf_addc(out, '\n');
}

static double nan_number(const struct result *rows, const char *name) {
    for (size_t i = 0; i < rows->n_columns; i++)
        if (strcmp(rows->columns[i].name, name) == 0)
            return result_number(rows, 0, i);
    return NAN;
}

/* The value found, the inputs, and the stack, one frame a line: in the table it is one text. */
static void nan_put_text(const struct armed *a, const struct result *rows, struct strbuf *out) {
    char clean[1024], frame[512];
    double low = nan_number(rows, "input_min"), high = nan_number(rows, "input_max"),
           bad = nan_number(rows, "input_nonfinite");
    text_sanitize(clean, sizeof clean, a->note);
    strbuf_addf(out, "%s\n", clean);
    if (!isnan(low))
        strbuf_addf(out, "inputs from %.6g to %.6g, and %.0f non-finite numbers\n", low, high,
                    isnan(bad) ? 0 : bad);
    for (const char *at = nan_text(rows, "stack"); at && *at;) {
        const char *end = strstr(at, NAN_BETWEEN);
        snprintf(frame, sizeof frame, "%.*s", (int)(end ? (size_t)(end - at) : strlen(at)), at);
        text_sanitize(clean, sizeof clean, frame);
        strbuf_addf(out, "    %s\n", clean);
        at = end ? end + strlen(NAN_BETWEEN) : NULL;
    }
}

/* Read the row, which appears shortly after the lease has ended. NULL with the error. */
static struct result *nan_read(struct armed *a, struct err *e) {
    double until_s = clock_epoch_s() + NAN_LATE_S;
    for (;;) {
        struct result *rows = armed_ask(a, nan_row, e);
        if (!rows || rows->n_rows > 0)
            return rows;
        result_unref(rows);
        if (clock_epoch_s() >= until_s || !a->over) {
            err_set(e, ERR_FAILED, "nothing was checked: %s",
                    a->note[0] ? a->note : "no training step ended in that time (increase it with --for)");
            return NULL;
        }
        if (call_rest(a->call, 0.1, e) != 0)
            return NULL;
    }
}

static int nan_exec(const struct cli_options *o, struct target_address *addr, struct strbuf *out,
                    struct err *e) {
    const struct armed_options *mine = (const struct armed_options *)(const void *)o;
    struct wire_arm want = {.what = "nan", .steps = mine->steps, .compiled = mine->compiled};
    struct result *rows = NULL;
    struct armed a;
    int rc = armed_begin(&a, o, addr, &want, e);
    a.ends = true;
    if (rc == 0)
        rc = armed_wait(&a, mine->duration_s > 0 ? mine->duration_s : NAN_DURATION_S, NULL, e);
    if (rc == 0)
        rows = nan_read(&a, e);
    if (rows && o->json)
        nan_put_json(&a, rows, out);
    else if (rows)
        nan_put_text(&a, rows, out);
    rc = rows ? 0 : -1;
    result_unref(rows);
    armed_end(&a);
    return rc;
}

const struct cli_verb verb_nan = {
    .name = "nan",
    .group = "Training",
    .help = "find the first NaN or infinity in the next training steps: module, step, stack",
    .example = "probing 4242 nan --steps 2",
    .needs_target = true,
    .options = nan_options,
    .options_size = sizeof(struct armed_options),
    .exec = nan_exec,
};
