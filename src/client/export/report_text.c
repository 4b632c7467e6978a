/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_text: a report as Markdown, short enough for an issue, and as JSON.
 *
 * In Markdown everything that comes from the target is within code blocks whose fences it cannot
 * end: so it is neither markup nor a link nor somebody's name.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/model_text.h"
#include "base/text.h"
#include "client/export/document.h"
#include "client/export/report.h"
#include "version.h"

#define REPORT_SCHEMA_VERSION 1
#define REPORT_MD_STACKS ((size_t)16 * 1024)
#define REPORT_MD_FUNCTIONS 10
#define REPORT_MD_CODE 14

/* ---- Markdown ---- */

/* Append `text` as a code block; `more`: some was left out. */
static void text_put_block(struct strbuf *out, const struct strbuf *text, bool more) {
    size_t run = 0, longest = 2;
    for (const char *s = strbuf_str(text); *s; s++) {
        run = *s == '`' ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i <= longest; i++)
            strbuf_addc(out, '`');
        strbuf_adds(out, side ? "\n\n" : "text\n");
        if (side)
            break;
        strbuf_add_clean(out, strbuf_str(text), text->len);
        if (text->len && text->data[text->len - 1] != '\n')
            strbuf_addc(out, '\n');
        strbuf_adds(out, more ? "... (more left out)\n" : "");
    }
}

static void text_put_verdicts(const struct report *r, struct strbuf *text) {
    for (size_t i = 0; i < r->verdicts.n; i++) {
        const struct verdict *v = &r->verdicts.items[i];
        strbuf_addf(text, "%-*s  %s\n", REPORT_MD_CODE, v->rule->code, v->text);
        if (v->rule->level != VERDICT_FINE)
            strbuf_addf(text, "%*s  %s\n", REPORT_MD_CODE, "", v->rule->help);
    }
    if (r->verdicts.n == 0)
        strbuf_addf(text, "%s\n",
                    r->verdicts_error.code != ERR_OK ? err_text(&r->verdicts_error)
                                                     : "no verdict on its training yet");
}

static void text_put_fact(struct strbuf *text, const char *name, const char *value) {
    char clean[1024];
    if (!value || !*value)
        return;
    text_sanitize(clean, sizeof clean, value);
    strbuf_addf(text, "%-14s  %s\n", name, clean);
}

static void text_put_facts(const struct report *r, struct strbuf *text) {
    const struct model_target *t = &r->target;
    const struct model_process *p = &r->data->snapshot->process;
    char number[64];
    text_put_fact(text, "command", t->cmdline);
    text_put_fact(text, "host", t->host);
    text_put_fact(text, "Python", t->python);
    text_put_fact(text, "torch", t->torch);
    text_put_fact(text, "agent", t->agent_version);
    if (r->data->snapshot->n_threads && t->mode != MODEL_MODE_RECORDED) {
        text_human_duration(number, sizeof number, p->uptime_s);
        text_put_fact(text, "up", number);
        text_human_bytes(number, sizeof number, p->rss_bytes == MODEL_UNKNOWN ? NAN : (double)p->rss_bytes);
        text_put_fact(text, "memory in RAM", number);
    }
}

static void text_put_figures(const struct report *r, struct strbuf *text) {
    const struct result *rows = r->tables[REPORT_FIGURES];
    char value[RESULT_CELL];
    for (size_t k = 0; rows && rows->n_rows && k < rows->n_columns; k++) {
        if (result_kind(rows, 0, k) == SQL_NULL)
            continue;
        if (strcmp(rows->columns[k].name, "last_at") == 0)
            continue;
        result_text(rows, 0, k, value, sizeof value);
        text_put_fact(text, rows->columns[k].name, value);
    }
    if (r->steps.slow) {
        strbuf_addc(text, '\n');
        steps_put_causes(&r->steps, text);
        strbuf_addc(text, '\n');
    }
}

static void text_put_functions(const struct report *r, struct strbuf *text) {
    for (size_t i = 0; i < r->n_functions && i < REPORT_MD_FUNCTIONS; i++) {
        if (i == 0)
            strbuf_adds(text, "   own   total  function\n");
        strbuf_addf(text, "%5.1f %% %5.1f %%  %s\n", 100 * r->functions[i].own, 100 * r->functions[i].total,
                    r->functions[i].name);
    }
}

static void text_put_part(struct strbuf *out, const char *title, struct strbuf *text, bool more) {
    if (text->len) {
        strbuf_addf(out, "### %s\n\n", title);
        text_put_block(out, text, more);
    }
    strbuf_clear(text);
}

/* The stacks, main thread first, whole lines of them. */
static bool text_put_stacks(const struct report *r, struct strbuf *text) {
    if (r->data->snapshot->n_threads)
        model_text_put_backtrace(text, &r->target, r->data->snapshot, false);
    if (text->len <= REPORT_MD_STACKS && !text->failed)
        return false;
    const char *end = memrchr(text->data, '\n', REPORT_MD_STACKS);
    text->len = end ? (size_t)(end - text->data) + 1 : REPORT_MD_STACKS;
    text->data[text->len] = '\0';
    return true;
}

int report_put_markdown(const struct report *r, struct strbuf *out) {
    struct strbuf text;
    strbuf_init(&text, (size_t)64 * REPORT_MD_STACKS);
    strbuf_addf(out, "## probing report: process %" PRId64 "\n\nMade ", r->target.pid);
    report_put_time(out, r->made_s);
    strbuf_adds(out, " by probing-top " PROBING_VERSION ".\n\n");
    text_put_verdicts(r, &text);
    text_put_part(out, "Verdict", &text, false);
    text_put_facts(r, &text);
    text_put_part(out, "Facts", &text, false);
    text_put_figures(r, &text);
    text_put_part(out, "Steps", &text, false);
    text_put_functions(r, &text);
    text_put_part(out, r->by_cpu ? "Functions, by time on the CPU" : "Functions, by time, waiting too", &text,
                  false);
    bool more = text_put_stacks(r, &text);
    text_put_part(out, "Stacks", &text, more);
    report_put_sources(r, &text);
    text_put_part(out, "Made of", &text, false);
    strbuf_fini(&text);
    return out->failed ? -1 : 0;
}

/* ---- JSON ---- */

static void text_put_cell(struct json *j, const struct result *rows, size_t row, size_t column) {
    struct result_cell c = result_at(rows, row, column);
    if (c.kind == SQL_INTEGER)
        json_int(j, c.i);
    else if (c.kind == SQL_REAL)
        json_number(j, c.f, 6);
    else if (c.kind == SQL_TEXT)
        json_string_of(j, c.s, c.len);
    else
        json_null(j);
}

/* An array of objects; null if they could not be read. */
static void text_put_rows(struct json *j, const struct result *rows) {
    if (!rows) {
        json_null(j);
        return;
    }
    json_array_begin(j);
    for (size_t i = 0; i < rows->n_rows; i++) {
        json_object_begin(j);
        for (size_t k = 0; k < rows->n_columns; k++) {
            json_key(j, rows->columns[k].name);
            text_put_cell(j, rows, i, k);
        }
        json_object_end(j);
    }
    json_array_end(j);
}

static void text_put_slow_step(struct json *j, const struct steps_row *row) {
    const struct steps_site *site = row->cause == STEPS_SITE ? &row->site : NULL;
    json_object_begin(j);
    json_kv_int(j, "step", row->step);
    json_kv_number(j, "duration_ms", row->ms, 3);
    json_kv_number(j, "times_median", row->slowness, 2);
    json_kv_string(j, "part", site ? NULL : steps_cause_name(row));
    json_kv_string(j, "func", site ? site->func : NULL);
    json_kv_string(j, "file", site && site->file && *site->file ? site->file : NULL);
    if (site && site->line > 0)
        json_kv_int(j, "line", site->line);
    else
        json_kv_null(j, "line");
    json_kv_number(j, "more_ms", site ? site->more_ms : NAN, 3);
    json_object_end(j);
}

/* All slow steps: the part that explains each, or the function. */
static void text_put_slow_steps(struct json *j, const struct report *r) {
    json_key(j, "slow_steps");
    json_array_begin(j);
    for (size_t i = 0; i < r->steps.n; i++)
        if (r->steps.rows[i].cause >= 0)
            text_put_slow_step(j, &r->steps.rows[i]);
    json_array_end(j);
}

/* null where there is no agent. */
static void text_put_settings(struct json *j, const struct report *r) {
    json_key(j, "settings");
    if (!r->has_status) {
        json_null(j);
        return;
    }
    json_array_begin(j);
    for (size_t i = 0; i < r->status.n_settings; i++) {
        const struct model_setting *s = &r->status.settings[i];
        json_object_begin(j);
        json_kv_string(j, "key", s->key);
        json_kv_string(j, "value", s->value);
        json_kv_string(j, "default", s->default_value);
        json_kv_bool(j, "given", s->given);
        json_object_end(j);
    }
    json_array_end(j);
}

static void text_put_errors(struct json *j, const struct report *r) {
    json_key(j, "errors");
    json_object_begin(j);
    if (r->verdicts_error.code != ERR_OK)
        json_kv_string(j, "verdicts", err_text(&r->verdicts_error));
    for (int i = 0; i < REPORT_TABLES; i++)
        if (!r->tables[i])
            json_kv_string(j, report_key((enum report_table)i), err_text(&r->errors[i]));
    json_object_end(j);
}

static void text_put_sampling(struct json *j, const struct report *r) {
    const struct stack_counts_totals *t = stack_counts_get_totals(r->data->counts);
    json_key(j, "sampling");
    json_object_begin(j);
    json_kv_number(j, "duration_s", r->data->elapsed_s, 3);
    json_kv_uint(j, "samples", t->samples);
    json_kv_uint(j, "torn", t->torn);
    json_kv_uint(j, "dropped", t->dropped + t->undefined);
    json_kv_number(j, "kept_hz", t->kept_hz, 1);
    json_kv_number(j, "cost_pct", t->cost_pct, 3);
    json_object_end(j);
    json_kv_bool(j, "functions_by_cpu", r->by_cpu);
    json_key(j, "functions");
    json_array_begin(j);
    for (size_t i = 0; i < r->n_functions; i++) {
        json_object_begin(j);
        json_kv_string(j, "function", r->functions[i].name);
        json_kv_number(j, "own_pct", 100 * r->functions[i].own, 2);
        json_kv_number(j, "total_pct", 100 * r->functions[i].total, 2);
        json_object_end(j);
    }
    json_array_end(j);
}

int report_put_json(const struct report *r, struct strbuf *out) {
    struct json j;
    json_init(&j, out, 1);
    json_object_begin(&j);
    json_kv_int(&j, "schema_version", REPORT_SCHEMA_VERSION);
    json_kv_string(&j, "version", PROBING_VERSION);
    json_kv_number(&j, "made_at", r->made_s, 3);
    document_put_verdicts(&j, &r->verdicts);
    json_key(&j, "backtrace");
    document_put_backtrace(&j, &r->target, r->data->snapshot, NULL, NULL, 0);
    text_put_sampling(&j, r);
    for (int i = 0; i < REPORT_TABLES; i++) {
        json_key(&j, report_key((enum report_table)i));
        text_put_rows(&j, r->tables[i]);
    }
    text_put_slow_steps(&j, r);
    text_put_settings(&j, r);
    text_put_errors(&j, r);
    json_object_end(&j);
    strbuf_addc(out, '\n');
    return json_finish(&j) == 0 && !out->failed ? 0 : -1;
}
