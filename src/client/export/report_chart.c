/* SPDX-License-Identifier: Apache-2.0 */
/* report_chart: charts of a report, as SVG of the page whose style has their classes. */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "client/export/report.h"

#define CHART_WIDTH 1200
#define CHART_LEFT 90 /* for labels of the scale */
#define CHART_HEIGHT 160
#define CHART_TOP 24
#define CHART_BOTTOM 22
#define CHART_BARS 240 /* bars of the newest steps; each is the longest of its steps if there are more */
#define CHART_LINES 8

enum { CHART_DATA = 0, CHART_FORWARD, CHART_BACKWARD, CHART_OPTIMIZER, CHART_PARTS };

/* The parts that follow each other: collectives and garbage collection are within them. Class of the
 * style, label, column. */
static const struct {
    const char *class, *label, *column;
} chart_parts[CHART_PARTS] = {[CHART_DATA] = {"p-data", "waits for data", "data_ms"},
                              [CHART_FORWARD] = {"p-forward", "forward", "forward_ms"},
                              [CHART_BACKWARD] = {"p-backward", "backward", "backward_ms"},
                              [CHART_OPTIMIZER] = {"p-optimizer", "optimizer", "optimizer_ms"}};

static void chart_begin(struct strbuf *out, const char *label) {
    int height = CHART_TOP + CHART_HEIGHT + CHART_BOTTOM;
    strbuf_addf(
        out,
        "<svg class=\"chart\" role=\"img\" aria-label=\"%s\" width=\"%d\" height=\"%d\" viewBox=\"0 0 "
        "%d %d\">\n",
        label, CHART_WIDTH, height, CHART_WIDTH, height);
}

/* The scale: lines at the top, in the middle and at the bottom, with what they stand for. */
static void chart_put_scale(struct strbuf *out, double least, double most, const char *unit) {
    for (int i = 0; i <= 2; i++) {
        double y = CHART_TOP + CHART_HEIGHT * i / 2.0, value = most - (most - least) * i / 2;
        strbuf_addf(
            out,
            "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/><text x=\"%d\" y=\"%.1f\" "
            "text-anchor=\"end\">%.*f %s</text>\n",
            CHART_LEFT, CHART_WIDTH, y, y, CHART_LEFT - 6, y + 4,
            most - least < 10 ? 2
            : most < 1000     ? 1
                              : 0,
            value, unit);
    }
}

static void chart_put_label(struct strbuf *out, int *x, const char *class, const char *label) {
    strbuf_addf(
        out,
        "<rect class=\"%s\" x=\"%d\" y=\"4\" width=\"11\" height=\"11\"/><text x=\"%d\" y=\"14\">%s</text>\n",
        class, *x, *x + 16, label);
    for (*x += 40; *label; label++)
        *x += 7;
}

/* ---- steps ---- */

struct chart_columns {
    int ms, step, parts[CHART_PARTS], gc;
};

static void chart_put_bar(struct strbuf *out, const struct result *steps, const struct chart_columns *c,
                          size_t row, double x, double width, double most) {
    double ms = report_number(steps, row, c->ms), scale = CHART_HEIGHT / most, y = CHART_TOP + CHART_HEIGHT;
    double rest = ms, step = report_number(steps, row, c->step), gc = report_number(steps, row, c->gc);
    strbuf_addf(out, "<g><title>step %.0f: %.2f ms", step, ms);
    for (int i = 0; i < CHART_PARTS; i++) {
        double part = report_number(steps, row, c->parts[i]);
        if (!isnan(part))
            strbuf_addf(out, "; %s %.2f", chart_parts[i].label, part);
    }
    if (!isnan(gc))
        strbuf_addf(out, "; of it garbage collection %.2f", gc);
    strbuf_adds(out, "</title>");
    for (int i = 0; i <= CHART_PARTS; i++) {
        double part = i < CHART_PARTS ? report_number(steps, row, c->parts[i]) : rest;
        part = isnan(part) || part < 0 ? 0 : fmin(part, rest);
        rest -= part;
        if (part * scale < 0.05)
            continue;
        y -= part * scale;
        strbuf_addf(out, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>",
                    i < CHART_PARTS ? chart_parts[i].class : "p-rest", x, y, width, part * scale);
    }
    strbuf_adds(out, "</g>\n");
}

/* The longest of some steps; the oldest rows are last. */
static size_t chart_longest(const struct result *steps, int ms, size_t from, size_t to) {
    size_t best = from;
    for (size_t i = from; i < to; i++)
        if (report_number(steps, i, ms) > report_number(steps, best, ms) ||
            isnan(report_number(steps, best, ms)))
            best = i;
    return best;
}

void report_put_steps_chart(struct strbuf *out, const struct result *steps) {
    struct chart_columns c = {.ms = result_find_column(steps, "duration_ms"),
                              .step = result_find_column(steps, "step"),
                              .gc = result_find_column(steps, "gc_ms")};
    size_t n = steps ? steps->n_rows : 0, each = (n + CHART_BARS - 1) / CHART_BARS;
    double most = 0;
    int x = CHART_LEFT;
    for (int i = 0; i < CHART_PARTS; i++)
        c.parts[i] = result_find_column(steps, chart_parts[i].column);
    for (size_t i = 0; i < n; i++)
        most = fmax(most, report_number(steps, i, c.ms)); /* NAN is passed over */
    if (n == 0 || !(most > 0))
        return;
    size_t bars = (n + each - 1) / each;
    double slot = (double)(CHART_WIDTH - CHART_LEFT) / (double)(bars < 40 ? 40 : bars);
    chart_begin(out, "duration of steps");
    for (int i = 0; i < CHART_PARTS; i++)
        chart_put_label(out, &x, chart_parts[i].class, chart_parts[i].label);
    chart_put_label(out, &x, "p-rest", "rest, or not traced");
    chart_put_scale(out, 0, most, "ms");
    for (size_t i = 0; i < bars; i++) {
        size_t from = i * each, to = from + each < n ? from + each : n;
        size_t row = chart_longest(steps, c.ms, from, to);
        if (!isnan(report_number(steps, row, c.ms)))
            chart_put_bar(out, steps, &c, row, CHART_WIDTH - slot * (double)(i + 1), slot * 0.86, most);
    }
    strbuf_addf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">step %.0f", CHART_WIDTH,
                CHART_TOP + CHART_HEIGHT + 16, report_number(steps, 0, c.step));
    if (each > 1)
        strbuf_addf(out, "; a bar is the longest of %zu steps", each);
    strbuf_addf(out, "</text><text x=\"%d\" y=\"%d\">step %.0f</text>\n</svg>\n", CHART_LEFT,
                CHART_TOP + CHART_HEIGHT + 16, report_number(steps, n - 1, c.step));
}

/* ---- lines ---- */

/* A line is broken where a value is unknown. */
static void chart_put_line(struct strbuf *out, const struct result *rows, int time, int column, int number,
                           double from_s, double to_s, double most) {
    bool is_drawing = false;
    strbuf_addf(out, "<path class=\"line l-%d\" d=\"", number);
    for (size_t i = 0; i < rows->n_rows; i++) {
        double v = report_number(rows, i, column), t = report_number(rows, i, time);
        if (isnan(v) || isnan(t)) {
            is_drawing = false;
            continue;
        }
        double share = to_s > from_s ? (t - from_s) / (to_s - from_s) : 1;
        strbuf_addf(out, "%c%.1f %.1f", is_drawing ? 'L' : 'M',
                    CHART_LEFT + share * (CHART_WIDTH - CHART_LEFT),
                    CHART_TOP + CHART_HEIGHT * (1 - v / most));
        is_drawing = true;
    }
    strbuf_adds(out, "\"/>\n");
}

void report_put_lines_chart(struct strbuf *out, const struct result *rows, const struct report_line *lines,
                            size_t n, const char *unit) {
    int time = result_find_column(rows, "timestamp"), columns[CHART_LINES], x = CHART_LEFT;
    bool is_known[CHART_LINES] = {false};
    double from_s = INFINITY, to_s = -INFINITY, most = 0;
    n = n < CHART_LINES ? n : CHART_LINES;
    for (size_t k = 0; k < n; k++) {
        columns[k] = result_find_column(rows, lines[k].column);
        for (size_t i = 0; rows && i < rows->n_rows; i++) {
            double v = report_number(rows, i, columns[k]), t = report_number(rows, i, time);
            if (!(v >= 0) || isnan(t))
                continue;
            is_known[k] = true;
            most = fmax(most, v);
            from_s = fmin(from_s, t);
            to_s = fmax(to_s, t);
        }
    }
    if (!(most > 0))
        return;
    chart_begin(out, "over time");
    for (size_t k = 0; k < n; k++) {
        char class[16];
        snprintf(class, sizeof class, "l-%zu", k);
        if (is_known[k])
            chart_put_label(out, &x, class, lines[k].label);
    }
    chart_put_scale(out, 0, most, unit);
    for (size_t k = 0; k < n; k++)
        if (is_known[k])
            chart_put_line(out, rows, time, columns[k], (int)k, from_s, to_s, most);
    strbuf_addf(out, "<text x=\"%d\" y=\"%d\">", CHART_LEFT, CHART_TOP + CHART_HEIGHT + 16);
    report_put_time(out, from_s);
    strbuf_addf(out, "</text><text x=\"%d\" y=\"%d\" text-anchor=\"end\">", CHART_WIDTH,
                CHART_TOP + CHART_HEIGHT + 16);
    report_put_time(out, to_s);
    strbuf_adds(out, "</text>\n</svg>\n");
}
