/* SPDX-License-Identifier: Apache-2.0 */
/* result_format: see result.h. Rows as a table for people, as JSON, a JSON object a line, or CSV
 * (RFC 4180). */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/option.h"
#include "base/text.h"
#include "client/sql/result.h"

#define RESULT_SCHEMA_VERSION 1
#define RESULT_ELLIPSIS "\xe2\x80\xa6" /* an ellipsis, one column wide */
#define RESULT_ELLIPSIS_LEAST 8        /* columns that remain of a text */

/* All digits, and never like an integer. */
static void result_put_decimal(double v, struct strbuf *out) {
    size_t from = out->len;
    result_put_digits(v, out);
    if (isfinite(v) && !out->failed && !strpbrk(strbuf_str(out) + from, ".e"))
        strbuf_adds(out, ".0");
}

/* Without units, for people and CSV: "" for NULL, hexadecimal digits for a blob. */
static void result_put_plain(const struct result_cell *c, struct strbuf *out) {
    if (c->kind == SQL_INTEGER)
        strbuf_addf(out, "%" PRId64, c->i);
    else if (c->kind == SQL_REAL)
        result_put_decimal(c->f, out);
    else if (c->kind == SQL_TEXT)
        strbuf_add(out, c->s, c->len);
    else if (c->kind == SQL_BLOB)
        result_put_hex(c->s, c->len, out);
}

/* ---- for people ---- */

/* A number of up to so many characters is drawn unchanged; a longer one with six significant
 * digits, or, if it is large, rounded to the thousandth. JSON and CSV have all digits. */
#define RESULT_SHORT 8
#define RESULT_LARGE 1e6

static void result_put_short(double v, struct strbuf *out) {
    struct strbuf exact;
    char text[40] = "";
    strbuf_init(&exact, 0);
    result_put_decimal(v, &exact);
    if (isfinite(v) && exact.len > RESULT_SHORT)
        snprintf(text, sizeof text, fabs(v) >= RESULT_LARGE && fabs(v) < 1e15 ? "%.3f" : "%.6g", v);
    strbuf_adds(out, text[0] && strlen(text) < exact.len ? text : strbuf_str(&exact));
    strbuf_fini(&exact);
}

static bool result_is_time(const struct result *r, size_t column) {
    return strcmp(r->columns[column].type, "timestamp") == 0;
}

/* "2026-11-20 12:40:01.123456Z" */
static void result_put_time(double at, struct strbuf *out) {
    struct tm tm;
    char text[40];
    int64_t us = (int64_t)llround(at * 1e6);
    time_t s = (time_t)(us / 1000000);
    if (!(fabs(at) < 1e11) || us < 0 || !gmtime_r(&s, &tm) ||
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm) == 0) {
        result_put_decimal(at, out);
        return;
    }
    strbuf_addf(out, "%s.%06dZ", text, (int)(us % 1000000));
}

/* Formats values, raw and sanitised. */
struct result_pen {
    struct strbuf text;
    char *clean;
    size_t cap;
};

/* The pen's text, sanitised; valid until the pen is used again. */
static const char *result_clean(struct result_pen *pen) {
    size_t need = pen->text.len * 3 + 1; /* an invalid byte becomes three */
    if (need > pen->cap) {
        char *more = realloc(pen->clean, need);
        if (!more)
            return "?";
        pen->clean = more;
        pen->cap = need;
    }
    text_sanitize(pen->clean, pen->cap, strbuf_str(&pen->text));
    return pen->clean;
}

static const char *result_draw_name(const struct result *r, size_t column, struct result_pen *pen) {
    strbuf_clear(&pen->text);
    strbuf_adds(&pen->text, r->columns[column].name);
    return result_clean(pen);
}

static const char *result_draw_cell(const struct result *r, size_t row, size_t column,
                                    struct result_pen *pen) {
    struct result_cell c = result_at(r, row, column);
    struct strbuf *text = &pen->text;
    strbuf_clear(text);
    if (c.kind == SQL_NULL)
        strbuf_adds(text, "NULL");
    else if (c.kind == SQL_REAL && result_is_time(r, column))
        result_put_time(c.f, text);
    else if (c.kind == SQL_REAL)
        result_put_short(c.f, text);
    else
        result_put_plain(&c, text);
    return result_clean(pen);
}

static void result_pad(struct strbuf *out, int n, char with) {
    for (; n > 0; n--)
        strbuf_addc(out, with);
}

/* The end of a path or dotted name is its important part, of other texts the beginning. */
static void result_put_shortened(struct strbuf *out, const char *text, int width) {
    const char *end = text + strlen(text), *from = text;
    if (!strpbrk(text, "/.") || strchr(text, ' ')) {
        strbuf_add(out, text, text_fit(text, width - 1));
        strbuf_adds(out, RESULT_ELLIPSIS);
        return;
    }
    while (from < end && text_width(from) > width - 1) {
        uint32_t cp;
        from += text_utf8_next(from, (size_t)(end - from), &cp);
    }
    strbuf_adds(out, RESULT_ELLIPSIS);
    strbuf_adds(out, from);
}

static void result_put_padded(struct strbuf *out, const char *text, int width, bool right, bool last) {
    int is = text_width(text), pad = width - (is > width ? width : is);
    result_pad(out, right ? pad : 0, ' ');
    if (is > width)
        result_put_shortened(out, text, width);
    else
        strbuf_adds(out, text);
    result_pad(out, right || last ? 0 : pad, ' ');
}

#define RESULT_HIDDEN (-1) /* width of a column that is not drawn */

static void result_put_foot(const struct result *r, const int *width, struct result_pen *pen,
                            struct strbuf *out) {
    double ms = r->elapsed_s * 1000;
    strbuf_addf(out, "(%zu row%s%s, ", r->n_rows, r->n_rows == 1 ? "" : "s",
                r->truncated ? ", and more" : "");
    bool any = false;
    for (size_t i = 0; i < r->n_columns; i++)
        if (width[i] == RESULT_HIDDEN) {
            strbuf_addf(out, "%s%s ", any ? ", " : "all of ", result_draw_name(r, i, pen));
            strbuf_adds(out, result_draw_cell(r, 0, i, pen));
            any = true;
        }
    strbuf_adds(out, any ? ", " : "");
    strbuf_addf(out, ms < 999.5 ? "%.3g ms)\n" : "%.0f ms)\n", ms);
}

static void result_put_lines(const struct result *r, const int *width, const bool *right,
                             struct result_pen *pen, struct strbuf *out) {
    size_t n = r->n_columns, first = 0;
    while (first < n && width[first] == RESULT_HIDDEN)
        first++;
    for (size_t i = first; i < n; i++) {
        if (width[i] == RESULT_HIDDEN)
            continue;
        strbuf_adds(out, i > first ? " | " : "");
        result_put_padded(out, result_draw_name(r, i, pen), width[i], right[i], i + 1 == n);
    }
    strbuf_addc(out, '\n');
    for (size_t i = first; i < n; i++) {
        if (width[i] == RESULT_HIDDEN)
            continue;
        strbuf_adds(out, i > first ? "-+-" : "");
        result_pad(out, width[i], '-');
    }
    strbuf_addc(out, '\n');
    for (size_t row = 0; row < r->n_rows; row++) {
        for (size_t i = first; i < n; i++) {
            if (width[i] == RESULT_HIDDEN)
                continue;
            strbuf_adds(out, i > first ? " | " : "");
            result_put_padded(out, result_draw_cell(r, row, i, pen), width[i], right[i], i + 1 == n);
        }
        strbuf_addc(out, '\n');
    }
}

/* Measure the width of each column, and whether it has only numbers. */
static void result_measure(const struct result *r, int *width, bool *right, struct result_pen *pen) {
    for (size_t i = 0; i < r->n_columns; i++) {
        width[i] = text_width(result_draw_name(r, i, pen));
        right[i] = r->n_rows > 0;
        for (size_t row = 0; row < r->n_rows; row++) {
            enum sql_kind kind = result_kind(r, row, i);
            right[i] = right[i] && kind != SQL_TEXT && kind != SQL_BLOB;
            int w = text_width(result_draw_cell(r, row, i, pen));
            width[i] = w > width[i] ? w : width[i];
        }
    }
}

/* Width of a line if texts are no wider than `most`. */
static long result_line_width(const struct result *r, const int *width, const bool *right, int most) {
    long sum = 0;
    for (size_t i = 0; i < r->n_columns; i++)
        if (width[i] != RESULT_HIDDEN)
            sum += 3 + (right[i] || width[i] < most ? width[i] : most);
    return sum > 3 ? sum - 3 : sum;
}

/* One row below the other, one value a line. */
static void result_put_vertical(const struct result *r, const int *width, struct result_pen *pen,
                                struct strbuf *out) {
    int widest = 0;
    for (size_t i = 0; i < r->n_columns; i++) {
        if (width[i] == RESULT_HIDDEN)
            continue;
        int w = text_width(result_draw_name(r, i, pen));
        widest = w > widest ? w : widest;
    }
    for (size_t row = 0; row < r->n_rows; row++) {
        strbuf_addf(out, "-- %zu --\n", row + 1);
        for (size_t i = 0; i < r->n_columns; i++) {
            if (width[i] == RESULT_HIDDEN)
                continue;
            result_put_padded(out, result_draw_name(r, i, pen), widest, false, false);
            strbuf_addf(out, " | %s\n", result_draw_cell(r, row, i, pen));
        }
    }
}

/* Shorten the widest texts to an equal width until a line fits. Numbers are not cut: that would
 * change them. */
static void result_fit(const struct result *r, int *width, const bool *right, int cols) {
    int least = RESULT_ELLIPSIS_LEAST, most = cols;
    while (least < most) {
        int middle = least + (most - least + 1) / 2;
        if (result_line_width(r, width, right, middle) <= cols)
            least = middle;
        else
            most = middle - 1;
    }
    for (size_t i = 0; i < r->n_columns; i++)
        if (!right[i] && width[i] > least)
            width[i] = least;
}

/* Hide the columns that name the target where all rows are of one. */
static void result_hide_constants(const struct result *r, int *width, struct result_pen *pen) {
    static const char *const names[] = {"rank", "host", "pid"};
    if (r->n_rows < 2 || r->n_columns <= sizeof names / sizeof names[0])
        return;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(r->columns[i].name, names[i]) != 0)
            return; /* not a table of targets */
        char *first = strdup(result_draw_cell(r, 0, i, pen));
        bool same = first != NULL;
        for (size_t row = 1; same && row < r->n_rows; row++)
            same = strcmp(first, result_draw_cell(r, row, i, pen)) == 0;
        free(first);
        if (same)
            width[i] = RESULT_HIDDEN;
    }
}

void result_put_fitted(const struct result *r, int cols, struct strbuf *out) {
    int *width = calloc(r->n_columns + 1, sizeof *width);
    bool *right = calloc(r->n_columns + 1, sizeof *right);
    struct result_pen pen = {.clean = NULL};
    strbuf_init(&pen.text, 0);
    if (width && right) {
        result_measure(r, width, right, &pen);
        if (cols > 0)
            result_hide_constants(r, width, &pen);
        if (cols > 0)
            result_fit(r, width, right, cols);
        if (cols > 0 && result_line_width(r, width, right, cols) > cols)
            result_put_vertical(r, width, &pen, out);
        else
            result_put_lines(r, width, right, &pen, out);
        result_put_foot(r, width, &pen, out);
    }
    out->failed = out->failed || !width || !right || pen.text.failed;
    strbuf_fini(&pen.text);
    free(pen.clean);
    free(right);
    free(width);
}

static void result_put_table(const struct result *r, bool terminal, struct strbuf *out) {
    (void)terminal;
    result_put_fitted(r, 0, out);
}

/* ---- for programs ---- */

static void result_put_value(struct json *j, const struct result_cell *c) {
    struct strbuf text;
    if (c->kind == SQL_NULL || (c->kind == SQL_REAL && !isfinite(c->f))) {
        json_null(j);
        return;
    }
    if (c->kind == SQL_INTEGER) {
        json_int(j, c->i);
        return;
    }
    strbuf_init(&text, 0);
    result_put_plain(c, &text);
    if (c->kind == SQL_REAL)
        json_literal(j, strbuf_str(&text));
    else
        json_string(j, strbuf_str(&text));
    j->failed = j->failed || text.failed;
    strbuf_fini(&text);
}

static void result_put_object(struct json *j, const struct result *r, const struct result_cell *cells) {
    json_object_begin(j);
    for (size_t i = 0; i < r->n_columns; i++) {
        json_key(j, r->columns[i].name);
        result_put_value(j, &cells[i]);
    }
    json_object_end(j);
}

static void result_get(const struct result *r, size_t row, struct result_cell *cells) {
    for (size_t i = 0; i < r->n_columns; i++)
        cells[i] = result_at(r, row, i);
}

static void result_put_json(const struct result *r, bool terminal, struct strbuf *out) {
    struct result_cell *cells = calloc(r->n_columns + 1, sizeof *cells);
    struct json j;
    (void)terminal;
    json_init(&j, out, 0);
    json_object_begin(&j);
    json_kv_int(&j, "schema_version", RESULT_SCHEMA_VERSION);
    json_key(&j, "columns");
    json_array_begin(&j);
    for (size_t i = 0; i < r->n_columns; i++) {
        json_object_begin(&j);
        json_kv_string(&j, "name", r->columns[i].name);
        json_kv_string(&j, "type", r->columns[i].type[0] ? r->columns[i].type : NULL);
        json_object_end(&j);
    }
    json_array_end(&j);
    json_key(&j, "rows");
    json_array_begin(&j);
    for (size_t row = 0; cells && row < r->n_rows; row++) {
        result_get(r, row, cells);
        result_put_object(&j, r, cells);
    }
    json_array_end(&j);
    json_kv_bool(&j, "truncated", r->truncated);
    json_kv_uint(&j, "lost_chunks", r->lost);
    json_kv_number(&j, "elapsed_ms", r->elapsed_s * 1000, 3);
    json_object_end(&j);
    strbuf_addc(out, '\n');
    out->failed = out->failed || json_finish(&j) != 0 || !cells;
    free(cells);
}

static void result_put_ndjson(const struct result *columns, const struct result_cell *cells, bool terminal,
                              struct strbuf *out) {
    struct json j;
    (void)terminal;
    json_init(&j, out, 0);
    result_put_object(&j, columns, cells);
    strbuf_addc(out, '\n');
    out->failed = out->failed || json_finish(&j) != 0;
}

static void result_put_field(const char *text, bool terminal, struct strbuf *out) {
    char *clean = terminal ? malloc(strlen(text) * 3 + 1) : NULL;
    if (clean) {
        text_sanitize(clean, strlen(text) * 3 + 1, text);
        text = clean;
    }
    bool quoted = strpbrk(text, ",\"\r\n") != NULL;
    strbuf_adds(out, quoted ? "\"" : "");
    for (const char *p = text; *p; p++) {
        if (*p == '"')
            strbuf_addc(out, '"');
        strbuf_addc(out, *p);
    }
    strbuf_adds(out, quoted ? "\"" : "");
    free(clean);
}

static void result_put_names(const struct result *columns, bool terminal, struct strbuf *out) {
    for (size_t i = 0; i < columns->n_columns; i++) {
        strbuf_adds(out, i ? "," : "");
        result_put_field(columns->columns[i].name, terminal, out);
    }
    strbuf_addc(out, '\n');
}

static void result_put_csv(const struct result *columns, const struct result_cell *cells, bool terminal,
                           struct strbuf *out) {
    struct strbuf text;
    strbuf_init(&text, 0);
    for (size_t i = 0; i < columns->n_columns; i++) {
        const struct result_cell *c = &cells[i];
        strbuf_clear(&text);
        result_put_plain(c, &text);
        strbuf_adds(out, i ? "," : "");
        /* empty, not unknown */
        if (c->kind == SQL_TEXT && c->len == 0)
            strbuf_adds(out, "\"\"");
        else
            result_put_field(strbuf_str(&text), terminal, out);
    }
    strbuf_addc(out, '\n');
    out->failed = out->failed || text.failed;
    strbuf_fini(&text);
}

/* ---- the list ---- */

const struct result_format result_formats[] = {
    {"table", "columns, for people", .put = result_put_table},
    {"json", "one document", .put = result_put_json},
    {"ndjson", "a JSON object a row", .put_row = result_put_ndjson},
    {"csv", "comma-separated values, with a line of names", .put_head = result_put_names,
     .put_row = result_put_csv},
    {.name = NULL},
};

void result_write(const struct result *r, const struct result_format *f, bool terminal, struct strbuf *out) {
    if (f->put) {
        f->put(r, terminal, out);
        return;
    }
    struct result_cell *cells = calloc(r->n_columns + 1, sizeof *cells);
    if (f->put_head)
        f->put_head(r, terminal, out);
    for (size_t row = 0; cells && row < r->n_rows; row++) {
        result_get(r, row, cells);
        f->put_row(r, cells, terminal, out);
    }
    out->failed = out->failed || !cells;
    free(cells);
}

const struct result_format *result_find_format(const char *name, struct err *e) {
    const char *names[sizeof result_formats / sizeof result_formats[0]];
    char all[64] = "";
    for (size_t i = 0; i < sizeof result_formats / sizeof result_formats[0]; i++) {
        names[i] = result_formats[i].name;
        if (names[i] && strcmp(names[i], name) == 0)
            return &result_formats[i];
        size_t n = strlen(all);
        if (names[i])
            snprintf(all + n, sizeof all - n, "%s%s", n ? ", " : "", names[i]);
    }
    const char *near = option_suggest(name, names);
    if (near)
        err_set(e, ERR_USAGE, "unknown format '%s': did you mean '%s'?", name, near);
    else
        err_set(e, ERR_USAGE, "unknown format '%s': give one of %s", name, all);
    return NULL;
}
