/* SPDX-License-Identifier: Apache-2.0 */
/* report_html: a report as one page: no script, nothing that is loaded from elsewhere. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/model_text.h"
#include "base/path.h"
#include "base/text.h"
#include "base/xml.h"
#include "client/export/export_formats.h"
#include "client/export/report.h"
#include "flame/flame_svg.h"
#include "version.h"

#define HTML_STACKS ((size_t)1024 * 1024) /* bytes of all stacks */
#define HTML_FRAMES 1500                  /* of a flame graph */
#define HTML_FRAME_PCT 0.1                /* the smallest */
#define HTML_TITLE 100                    /* columns */

extern const char report_style[];
__asm__(".pushsection .rodata\n"
        ".global report_style\n"
        ".hidden report_style\n"
        ".type report_style, @object\n"
        "report_style:\n"
        ".incbin \"src/client/export/report.css\"\n"
        ".byte 0\n"
        ".size report_style, . - report_style\n"
        ".popsection\n");

/* ---- tables ---- */

/* "duration_ms" as "duration, ms". */
static void html_put_heading(struct strbuf *out, const char *name) {
    static const struct {
        const char *end, *unit;
    } units[] = {{"_per_s", " a second"}, {"_ms", ", ms"}, {"_mb", ", MiB"},
                 {"_pct", ", %"},         {"_s", ", s"},   {"_at", ""}};
    char text[64];
    const char *unit = "";
    size_t len = (size_t)snprintf(text, sizeof text, "%s", name);
    len = len < sizeof text ? len : sizeof text - 1;
    for (size_t i = 0; i < sizeof units / sizeof *units && !*unit; i++) {
        size_t end = strlen(units[i].end);
        if (len > end && strcmp(text + len - end, units[i].end) == 0) {
            text[len - end] = '\0';
            unit = units[i].unit;
            break;
        }
    }
    for (char *c = text; *c; c++)
        *c = *c == '_' ? ' ' : *c;
    xml_put_text(out, text, 0);
    strbuf_adds(out, unit);
}

static void html_put_cell(struct strbuf *out, const struct result *rows, size_t row, size_t column) {
    char text[RESULT_CELL];
    strbuf_adds(out, result_is_numeric(rows, column) ? "<td class=\"number\">" : "<td>");
    size_t len = strlen(rows->columns[column].name);
    if (result_kind(rows, row, column) == SQL_NULL) {
        strbuf_adds(out, "\xe2\x80\x94");
    } else if (len > 3 && strcmp(rows->columns[column].name + len - 3, "_at") == 0) {
        report_put_time(out, result_number(rows, row, column));
    } else {
        result_text(rows, row, column, text, sizeof text);
        xml_put_text(out, text, 0);
    }
    strbuf_adds(out, "</td>");
}

static void html_put_rows(struct strbuf *out, const struct result *rows) {
    strbuf_adds(out, "<div class=\"wide\"><table>\n<tr>");
    for (size_t k = 0; k < rows->n_columns; k++) {
        strbuf_adds(out, result_is_numeric(rows, k) ? "<th class=\"number\">" : "<th>");
        html_put_heading(out, rows->columns[k].name);
        strbuf_adds(out, "</th>");
    }
    strbuf_adds(out, "</tr>\n");
    for (size_t i = 0; i < rows->n_rows; i++) {
        strbuf_adds(out, "<tr>");
        for (size_t k = 0; k < rows->n_columns; k++)
            html_put_cell(out, rows, i, k);
        strbuf_adds(out, "</tr>\n");
    }
    strbuf_adds(out, "</table></div>\n");
}

/* The values of one row, one below the other. */
static void html_put_row(struct strbuf *out, const struct result *rows) {
    strbuf_adds(out, "<table>\n");
    for (size_t k = 0; k < rows->n_columns; k++) {
        strbuf_adds(out, "<tr><th>");
        html_put_heading(out, rows->columns[k].name);
        strbuf_adds(out, "</th>");
        html_put_cell(out, rows, 0, k);
        strbuf_adds(out, "</tr>\n");
    }
    strbuf_adds(out, "</table>\n");
}

static void html_put_missing(struct strbuf *out, const char *why) {
    strbuf_adds(out, "<p class=\"soft\">");
    xml_put_text(out, why, 0);
    strbuf_adds(out, ".</p>\n");
}

/* True if there are rows; otherwise the reason is written. */
static bool html_has_rows(const struct report *r, struct strbuf *out, enum report_table table) {
    const struct result *rows = r->tables[table];
    if (rows && rows->n_rows)
        return true;
    html_put_missing(out, rows ? report_nothing(table) : err_text(&r->errors[table]));
    return false;
}

static void html_put_table(const struct report *r, struct strbuf *out, enum report_table table) {
    strbuf_addf(out, "<h2>%s</h2>\n", report_title(table));
    if (!html_has_rows(r, out, table))
        return;
    if (r->tables[table]->n_rows == 1 && table == REPORT_OVERHEAD)
        html_put_row(out, r->tables[table]);
    else
        html_put_rows(out, r->tables[table]);
}

/* ---- head ---- */

static void html_put_head(const struct report *r, struct strbuf *out) {
    strbuf_adds(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                     "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
                     "'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
                     "<meta name=\"referrer\" content=\"no-referrer\">\n"
                     "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    strbuf_addf(out, "<title>probing report: process %" PRId64 "</title>\n<style>\n", r->target.pid);
    /* the page's own rules stand above those of the flame graph */
    strbuf_adds(out, export_svg_style);
    strbuf_adds(out, report_style);
    strbuf_adds(out, "</style>\n</head>\n<body>\n<header>\n<h1>");
    const char *command = r->target.cmdline ? path_short_command(r->target.cmdline) : NULL;
    if (command)
        xml_put_text(out, command, HTML_TITLE);
    else
        strbuf_addf(out, "process %" PRId64, r->target.pid);
    strbuf_addf(out, "</h1>\n<p class=\"soft\">Report of process %" PRId64 " on ", r->target.pid);
    xml_put_text(out, r->target.host, 0);
    strbuf_adds(out, ", made ");
    report_put_time(out, r->made_s);
    strbuf_adds(out, " by probing-top " PROBING_VERSION "</p>\n</header>\n");
}

static void html_put_verdict(struct strbuf *out, const struct verdict *v) {
    strbuf_addf(out, "<div class=\"verdict %s\">\n<p><b>%s</b>", verdict_level_name(v->rule->level),
                v->rule->code);
    xml_put_text(out, v->text, 0);
    strbuf_adds(out, "</p>\n");
    if (v->rule->level != VERDICT_FINE) {
        strbuf_adds(out, "<p>");
        xml_put_text(out, v->rule->help, 0);
        strbuf_adds(out, "</p>\n");
    }
    strbuf_addf(out, "<p class=\"evidence\">%s: ", verdict_sure(v->rule));
    for (size_t i = 0; i < v->n_values; i++) {
        const struct verdict_value *value = &v->values[i];
        if (value->kind != SQL_TEXT && isnan(value->number))
            continue;
        strbuf_adds(out, i ? " \xc2\xb7 " : "");
        xml_put_text(out, value->name, 0);
        strbuf_addc(out, ' ');
        if (value->kind == SQL_TEXT)
            xml_put_text(out, value->text, 0);
        else
            strbuf_addf(out, value->kind == SQL_INTEGER ? "%.0f" : "%.4g", value->number);
    }
    strbuf_adds(out, "</p>\n</div>\n");
}

static bool html_is_fine(const struct verdict_check *check) {
    return !check->rule->is_state && (check->result == VERDICT_NOT_SAID || check->result == VERDICT_DENIED);
}

/* The rules that were tested and do not hold, each once. */
static void html_put_fine(const struct verdicts *v, struct strbuf *out) {
    bool any = false;
    for (size_t i = 0; i < v->n_checks; i++) {
        bool is_said = !html_is_fine(&v->checks[i]);
        for (size_t k = 0; k < i; k++)
            is_said |=
                html_is_fine(&v->checks[k]) && strcmp(v->checks[k].rule->code, v->checks[i].rule->code) == 0;
        for (size_t k = 0; k < v->n; k++)
            is_said |= strcmp(v->items[k].rule->code, v->checks[i].rule->code) == 0;
        if (is_said)
            continue;
        strbuf_adds(out, any ? ", " : "<p class=\"soft\">Checked and fine: ");
        strbuf_adds(out, v->checks[i].rule->code);
        any = true;
    }
    strbuf_adds(out, any ? ".</p>\n" : "");
}

static void html_put_verdicts(const struct report *r, struct strbuf *out) {
    strbuf_adds(out, "<h2>Verdict</h2>\n");
    for (size_t i = 0; i < r->verdicts.n; i++)
        html_put_verdict(out, &r->verdicts.items[i]);
    if (r->verdicts.n == 0)
        html_put_missing(out, r->verdicts_error.code != ERR_OK ? err_text(&r->verdicts_error)
                                                               : "no verdict on its training yet");
    html_put_fine(&r->verdicts, out);
}

static void html_put_fact(struct strbuf *out, const char *name, const char *value) {
    if (!value || !*value)
        return;
    strbuf_addf(out, "<tr><th>%s</th><td class=\"command\">", name);
    xml_put_text(out, value, 0);
    strbuf_adds(out, "</td></tr>\n");
}

static void html_put_facts(const struct report *r, struct strbuf *out) {
    const struct model_target *t = &r->target;
    const struct model_process *p = &r->data->snapshot->process;
    char text[64];
    struct strbuf started;
    strbuf_init(&started, 0);
    report_put_time(&started, t->started_at);
    strbuf_adds(out, "<h2>Facts</h2>\n<table>\n");
    html_put_fact(out, "command", t->cmdline);
    html_put_fact(out, "program", t->exe);
    html_put_fact(out, "Python", t->python);
    html_put_fact(out, "torch", t->torch);
    if (t->rank != MODEL_UNKNOWN) {
        snprintf(text, sizeof text, "%" PRId64, t->rank);
        html_put_fact(out, "rank", text);
    }
    html_put_fact(out, "started", isnan(t->started_at) ? NULL : strbuf_str(&started));
    strbuf_fini(&started);
    if (r->data->snapshot->n_threads && t->mode != MODEL_MODE_RECORDED) {
        text_human_duration(text, sizeof text, p->uptime_s);
        html_put_fact(out, "up", text);
        text_human_bytes(text, sizeof text, p->rss_bytes == MODEL_UNKNOWN ? NAN : (double)p->rss_bytes);
        html_put_fact(out, "memory in RAM", text);
        snprintf(text, sizeof text, isnan(p->cpu_pct) ? "?" : "%.1f %% of one core", p->cpu_pct);
        html_put_fact(out, "CPU", text);
        snprintf(text, sizeof text, "%zu", r->data->snapshot->n_threads);
        html_put_fact(out, "threads", text);
    }
    html_put_fact(out, "agent", t->agent_version);
    strbuf_adds(out, "</table>\n");
}

/* ---- where the time goes ---- */

/* 0, or -1 without memory. */
static int html_put_flame(const struct report *r, struct strbuf *out, enum report_part part,
                          const char *title) {
    struct stack_counts *counts = report_select(r, part);
    struct flame_svg picture = {.stacks = {.counts = counts,
                                           .pid = r->target.pid,
                                           .by_function = true,
                                           .in_us = r->data->elapsed_s > 0},
                                .target = &r->target,
                                .choice = title,
                                .style = export_svg_style,
                                .inner = true,
                                .elapsed_s = r->data->elapsed_s,
                                .threshold_pct = HTML_FRAME_PCT,
                                .max_frames = HTML_FRAMES};
    int rc = counts ? 0 : -1;
    if (counts && stack_counts_count(counts)) {
        strbuf_addf(out, "<h3>%c%s</h3>\n<div class=\"wide\">\n", title[0] - 'a' + 'A', title + 1);
        rc = flame_svg_put(&picture, out);
        strbuf_adds(out, "</div>\n");
    }
    stack_counts_free(counts);
    return rc;
}

static void html_put_functions(const struct report *r, struct strbuf *out) {
    strbuf_addf(out, "<h3>Functions, by %s</h3>\n", r->by_cpu ? "time on the CPU" : "time, waiting too");
    strbuf_adds(
        out,
        "<div class=\"wide\"><table>\n<tr><th class=\"number\">own</th><th class=\"number\">with what it "
        "calls</th><th>function</th></tr>\n");
    for (size_t i = 0; i < r->n_functions; i++) {
        strbuf_addf(out, "<tr><td class=\"number\">%.1f %%</td><td class=\"number\">%.1f %%</td><td>",
                    100 * r->functions[i].own, 100 * r->functions[i].total);
        xml_put_text(out, r->functions[i].name, 0);
        strbuf_adds(out, "</td></tr>\n");
    }
    strbuf_adds(out, "</table></div>\n");
}

static int html_put_time(const struct report *r, struct strbuf *out) {
    strbuf_adds(out, "<h2>Where its time goes</h2>\n");
    if (stack_counts_get_totals(r->data->counts)->samples == 0) {
        html_put_missing(out, "there were no samples");
        return 0;
    }
    int rc = html_put_flame(r, out, REPORT_MAIN, "the main thread, waiting too");
    if (rc == 0)
        rc = html_put_flame(r, out, REPORT_BUSY,
                            r->by_cpu ? "all threads, on the CPU" : "all threads, waiting too");
    if (r->n_functions)
        html_put_functions(r, out);
    return rc;
}

/* ---- stacks ---- */

/* A line of the backtrace: a thread stands out, a frame of a library does not. */
static void html_put_stack_line(struct strbuf *out, char *line) {
    const char *file = line[0] == ' ' ? strrchr(line, '(') : NULL;
    bool is_thread = strncmp(line, "Thread ", 7) == 0, is_library = file && path_is_library(file + 1);
    strbuf_adds(out, is_thread ? "<b>" : is_library ? "<span class=\"lib\">" : "");
    for (const char *s = line; *s == ' '; s++)
        strbuf_addc(out, ' ');
    xml_put_text(out, line + strspn(line, " "), 0);
    strbuf_adds(out, is_thread ? "</b>" : is_library ? "</span>" : "");
    strbuf_addc(out, '\n');
}

static void html_put_stacks(const struct report *r, struct strbuf *out) {
    struct strbuf text;
    strbuf_adds(out, "<h2>Stacks of all threads</h2>\n");
    if (r->data->snapshot->n_threads == 0) {
        html_put_missing(out, "unknown");
        return;
    }
    strbuf_init(&text, HTML_STACKS);
    model_text_put_backtrace(&text, &r->target, r->data->snapshot, false);
    strbuf_adds(out, "<pre>\n");
    for (char *line = text.data, *end; line && *line; line = end + 1) {
        end = strchr(line, '\n');
        if (!end)
            break;
        *end = '\0';
        html_put_stack_line(out, line);
    }
    strbuf_adds(out, "</pre>\n");
    if (text.failed)
        html_put_missing(out, "There are more stacks than a report has room for");
    strbuf_fini(&text);
}

/* ---- the rest ---- */

static void html_put_slow_steps(const struct report *r, struct strbuf *out) {
    char text[256];
    struct strbuf causes;
    if (r->steps.slow == 0)
        return;
    strbuf_init(&causes, 0);
    steps_put_causes(&r->steps, &causes);
    strbuf_adds(out, "<h3>Slow steps</h3>\n<p>");
    xml_put_text(out, strbuf_str(&causes), 0);
    strbuf_adds(out, "</p>\n<table>\n<tr><th class=\"number\">step</th><th class=\"number\">took</th><th "
                     "class=\"number\">times the median</th><th>why</th></tr>\n");
    strbuf_fini(&causes);
    for (size_t i = 0, n = 0; i < r->steps.n && n < REPORT_SLOW; i++) {
        const struct steps_row *row = &r->steps.rows[i];
        if (row->cause < 0)
            continue;
        n++;
        steps_put_ms(text, sizeof text, row->ms);
        strbuf_addf(out, "<tr><td class=\"number\">%" PRId64 "</td><td class=\"number\">", row->step);
        xml_put_text(out, text, 0);
        strbuf_addf(out, "</td><td class=\"number\">%.2f</td><td>", row->slowness);
        steps_put_why(row, text, sizeof text);
        xml_put_text(out, text, 0);
        strbuf_adds(out, "</td></tr>\n");
    }
    strbuf_adds(out, "</table>\n");
}

static void html_put_steps(const struct report *r, struct strbuf *out) {
    strbuf_addf(out, "<h2>%s</h2>\n", report_title(REPORT_STEPS));
    if (!html_has_rows(r, out, REPORT_FIGURES))
        return;
    strbuf_adds(out, "<div class=\"wide\">\n");
    report_put_steps_chart(out, r->tables[REPORT_STEPS]);
    strbuf_adds(out, "</div>\n");
    html_put_rows(out, r->tables[REPORT_FIGURES]);
    html_put_slow_steps(r, out);
}

static void html_put_memory(const struct report *r, struct strbuf *out) {
    static const struct report_line lines[] = {{"memory_mb", "in RAM and swapped out"},
                                               {"rss_mb", "in RAM"},
                                               {"gpu_allocated_mb", "tensors on GPUs"},
                                               {"gpu_reserved_mb", "torch's allocator on GPUs"}};
    strbuf_addf(out, "<h2>%s</h2>\n", report_title(REPORT_MEMORY));
    if (!html_has_rows(r, out, REPORT_MEMORY))
        return;
    strbuf_adds(out, "<div class=\"wide\">\n");
    report_put_lines_chart(out, r->tables[REPORT_MEMORY], lines, sizeof lines / sizeof *lines, "MiB");
    strbuf_adds(out, "</div>\n");
}

static void html_put_settings(const struct report *r, struct strbuf *out) {
    strbuf_adds(out, "<h2>Settings of the agent</h2>\n");
    if (!r->has_status || r->status.n_settings == 0) {
        html_put_missing(out, "unknown");
        return;
    }
    strbuf_adds(
        out,
        "<div "
        "class=\"wide\"><table>\n<tr><th>setting</th><th>value</th><th>default</th><th>unit</th></tr>\n");
    for (size_t i = 0; i < r->status.n_settings; i++) {
        const struct model_setting *s = &r->status.settings[i];
        const char *cells[] = {s->key, s->value, s->default_value, s->unit};
        strbuf_adds(out, s->given ? "<tr class=\"given\">" : "<tr>");
        for (size_t k = 0; k < sizeof cells / sizeof *cells; k++) {
            strbuf_adds(out, "<td>");
            xml_put_text(out, cells[k] ? cells[k] : "", 0);
            strbuf_adds(out, "</td>");
        }
        strbuf_adds(out, "</tr>\n");
    }
    strbuf_adds(out, "</table></div>\n");
}

static void html_put_foot(const struct report *r, struct strbuf *out) {
    struct strbuf text;
    strbuf_init(&text, 0);
    report_put_sources(r, &text);
    strbuf_adds(out, "<footer>\n<h2>What this is made of</h2>\n<ul>\n");
    for (char *line = text.data, *end; line && *line && (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        strbuf_adds(out, "<li>");
        xml_put_text(out, line, 0);
        strbuf_adds(out, "</li>\n");
    }
    strbuf_adds(out, "<li>no values of variables and no environment; in the command line, what looks like a "
                     "secret is replaced by ***</li>\n</ul>\n</footer>\n</body>\n</html>\n");
    strbuf_fini(&text);
}

int report_put_html(const struct report *r, struct strbuf *out) {
    html_put_head(r, out);
    html_put_verdicts(r, out);
    html_put_facts(r, out);
    html_put_steps(r, out);
    if (html_put_time(r, out) != 0)
        return -1;
    html_put_stacks(r, out);
    html_put_memory(r, out);
    if (r->tables[REPORT_ALLOCATIONS] && r->tables[REPORT_ALLOCATIONS]->n_rows)
        html_put_table(r, out, REPORT_ALLOCATIONS);
    html_put_table(r, out, REPORT_LOADERS);
    if (r->tables[REPORT_WORKERS] && r->tables[REPORT_WORKERS]->n_rows)
        html_put_table(r, out, REPORT_WORKERS);
    html_put_table(r, out, REPORT_GC);
    html_put_table(r, out, REPORT_EVENTS);
    html_put_table(r, out, REPORT_OVERHEAD);
    html_put_settings(r, out);
    html_put_foot(r, out);
    return out->failed ? -1 : 0;
}
