/* SPDX-License-Identifier: Apache-2.0 */
/* rows_format: see rows.h. Rows as a table for people, as JSON, a JSON object a line, or CSV (RFC 4180). */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/option.h"
#include "base/text.h"
#include "client/sql/rows.h"

#define ROWS_SCHEMA_VERSION 1
#define ROWS_ELLIPSIS "\xe2\x80\xa6" /* an ellipsis, of one column */
#define ROWS_ELLIPSIS_LEAST 8        /* columns that a text is left with */

static void rows_put_hex(const struct rows_cell *c, struct strbuf *out) {
    for (uint32_t i = 0; i < c->len; i++)
        (void)strbuf_addf(out, "%02x", (unsigned)(unsigned char)c->s[i]);
}

/* The shortest digits that are read back as the same number, and seen to be no integer. */
static void rows_put_real(double v, struct strbuf *out) {
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            break;
    }
    (void)strbuf_adds(out, text);
    if (isfinite(v) && !strpbrk(text, ".e"))
        (void)strbuf_adds(out, ".0");
}

void rows_put_text(const struct rows_cell *c, struct strbuf *out) {
    if (c->kind == SQL_INTEGER)
        (void)strbuf_addf(out, "%" PRId64, c->i);
    else if (c->kind == SQL_REAL)
        rows_put_real(c->f, out);
    else if (c->kind == SQL_TEXT)
        (void)strbuf_add(out, c->s, c->len);
    else if (c->kind == SQL_BLOB)
        rows_put_hex(c, out);
}

/* ---- for people ---- */

#define ROWS_SHORT                                                                                           \
    8 /* a number of so many characters is drawn as it is, a longer one with the six digits that tell, */
#define ROWS_LARGE 1e6 /* or from here on to the thousandth; JSON and CSV have them all */

static void rows_put_short(double v, struct strbuf *out) {
    struct strbuf exact;
    char text[40] = "";
    strbuf_init(&exact, 0);
    rows_put_real(v, &exact);
    if (isfinite(v) && exact.len > ROWS_SHORT)
        (void)snprintf(text, sizeof text, fabs(v) >= ROWS_LARGE && fabs(v) < 1e15 ? "%.3f" : "%.6g", v);
    (void)strbuf_adds(out, text[0] && strlen(text) < exact.len ? text : strbuf_str(&exact));
    strbuf_fini(&exact);
}

static bool rows_is_time(const struct rows *rows, size_t column) {
    return strcmp(rows->columns[column].type, "timestamp") == 0;
}

/* "2026-11-20 12:40:01.123456Z" */
static void rows_put_time(double at, struct strbuf *out) {
    struct tm tm;
    char text[40];
    int64_t us = (int64_t)llround(at * 1e6);
    time_t s = (time_t)(us / 1000000);
    if (!(fabs(at) < 1e11) || us < 0 || !gmtime_r(&s, &tm) ||
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm) == 0) {
        rows_put_real(at, out);
        return;
    }
    (void)strbuf_addf(out, "%s.%06dZ", text, (int)(us % 1000000));
}

/* Draws values: as they are, and fit to be seen. */
struct rows_pen {
    struct strbuf text;
    char *clean;
    size_t cap;
};

/* Of the pen's text; until it is used again. */
static const char *rows_clean(struct rows_pen *pen) {
    size_t need = pen->text.len * 3 + 1; /* a broken byte becomes three */
    if (need > pen->cap) {
        char *more = realloc(pen->clean, need);
        if (!more)
            return "?";
        pen->clean = more;
        pen->cap = need;
    }
    (void)text_sanitize(pen->clean, pen->cap, strbuf_str(&pen->text));
    return pen->clean;
}

static const char *rows_draw_name(const struct rows *rows, size_t column, struct rows_pen *pen) {
    strbuf_clear(&pen->text);
    (void)strbuf_adds(&pen->text, rows->columns[column].name);
    return rows_clean(pen);
}

static const char *rows_draw_cell(const struct rows *rows, size_t row, size_t column, struct rows_pen *pen) {
    const struct rows_cell *c = rows_at(rows, row, column);
    struct strbuf *text = &pen->text;
    strbuf_clear(text);
    if (c->kind == SQL_NULL)
        (void)strbuf_adds(text, "NULL");
    else if (c->kind == SQL_REAL && rows_is_time(rows, column))
        rows_put_time(c->f, text);
    else if (c->kind == SQL_REAL)
        rows_put_short(c->f, text);
    else
        rows_put_text(c, text);
    return rows_clean(pen);
}

static void rows_pad(struct strbuf *out, int n, char with) {
    for (; n > 0; n--)
        (void)strbuf_addc(out, with);
}

/* Of paths and dotted names the end is what tells, of all else the beginning. */
static void rows_put_shortened(struct strbuf *out, const char *text, int width) {
    const char *end = text + strlen(text), *from = text;
    if (!strpbrk(text, "/.") || strchr(text, ' ')) {
        (void)strbuf_add(out, text, text_fit(text, width - 1));
        (void)strbuf_adds(out, ROWS_ELLIPSIS);
        return;
    }
    while (from < end && text_width(from) > width - 1) {
        uint32_t cp;
        from += text_utf8_next(from, (size_t)(end - from), &cp);
    }
    (void)strbuf_adds(out, ROWS_ELLIPSIS);
    (void)strbuf_adds(out, from);
}

static void rows_put_padded(struct strbuf *out, const char *text, int width, bool right, bool last) {
    int is = text_width(text), pad = width - (is > width ? width : is);
    rows_pad(out, right ? pad : 0, ' ');
    if (is > width)
        rows_put_shortened(out, text, width);
    else
        (void)strbuf_adds(out, text);
    rows_pad(out, right || last ? 0 : pad, ' ');
}

static void rows_put_foot(const struct rows *rows, struct strbuf *out) {
    double ms = rows->elapsed_s * 1000;
    (void)strbuf_addf(out, "(%zu row%s%s, ", rows->n, rows->n == 1 ? "" : "s",
                      rows->truncated ? ", and more" : "");
    (void)strbuf_addf(out, ms < 999.5 ? "%.3g ms)\n" : "%.0f ms)\n", ms);
}

static void rows_put_lines(const struct rows *rows, const int *width, const bool *right, struct rows_pen *pen,
                           struct strbuf *out) {
    size_t n = rows->n_columns;
    for (size_t i = 0; i < n; i++) {
        (void)strbuf_adds(out, i ? " | " : "");
        rows_put_padded(out, rows_draw_name(rows, i, pen), width[i], right[i], i + 1 == n);
    }
    (void)strbuf_addc(out, '\n');
    for (size_t i = 0; i < n; i++) {
        (void)strbuf_adds(out, i ? "-+-" : "");
        rows_pad(out, width[i], '-');
    }
    (void)strbuf_addc(out, '\n');
    for (size_t row = 0; row < rows->n; row++) {
        for (size_t i = 0; i < n; i++) {
            (void)strbuf_adds(out, i ? " | " : "");
            rows_put_padded(out, rows_draw_cell(rows, row, i, pen), width[i], right[i], i + 1 == n);
        }
        (void)strbuf_addc(out, '\n');
    }
}

/* How wide each column is, and whether it has numbers only. */
static void rows_measure(const struct rows *rows, int *width, bool *right, struct rows_pen *pen) {
    for (size_t i = 0; i < rows->n_columns; i++) {
        width[i] = text_width(rows_draw_name(rows, i, pen));
        right[i] = rows->n > 0;
        for (size_t row = 0; row < rows->n; row++) {
            enum sql_kind kind = rows_at(rows, row, i)->kind;
            right[i] = right[i] && kind != SQL_TEXT && kind != SQL_BLOB;
            int w = text_width(rows_draw_cell(rows, row, i, pen));
            width[i] = w > width[i] ? w : width[i];
        }
    }
}

/* How wide a line is when texts are no wider than `most`. */
static long rows_line_width(const struct rows *rows, const int *width, const bool *right, int most) {
    long sum = rows->n_columns ? 3 * ((long)rows->n_columns - 1) : 0;
    for (size_t i = 0; i < rows->n_columns; i++)
        sum += right[i] || width[i] < most ? width[i] : most;
    return sum;
}

/* A row below the other, a value a line. */
static void rows_put_vertical(const struct rows *rows, struct rows_pen *pen, struct strbuf *out) {
    int widest = 0;
    for (size_t i = 0; i < rows->n_columns; i++) {
        int w = text_width(rows_draw_name(rows, i, pen));
        widest = w > widest ? w : widest;
    }
    for (size_t row = 0; row < rows->n; row++) {
        (void)strbuf_addf(out, "-- %zu --\n", row + 1);
        for (size_t i = 0; i < rows->n_columns; i++) {
            rows_put_padded(out, rows_draw_name(rows, i, pen), widest, false, false);
            (void)strbuf_addf(out, " | %s\n", rows_draw_cell(rows, row, i, pen));
        }
    }
}

/* Make the widest texts narrower, all of them as wide, until a line fits. Numbers are not cut: they would be others. */
static void rows_fit(const struct rows *rows, int *width, const bool *right, int cols) {
    int least = ROWS_ELLIPSIS_LEAST, most = cols;
    while (least < most) {
        int middle = least + (most - least + 1) / 2;
        if (rows_line_width(rows, width, right, middle) <= cols)
            least = middle;
        else
            most = middle - 1;
    }
    for (size_t i = 0; i < rows->n_columns; i++)
        if (!right[i] && width[i] > least)
            width[i] = least;
}

void rows_put_fitted(const struct rows *rows, int cols, struct strbuf *out) {
    int *width = calloc(rows->n_columns + 1, sizeof *width);
    bool *right = calloc(rows->n_columns + 1, sizeof *right);
    struct rows_pen pen = {.clean = NULL};
    strbuf_init(&pen.text, 0);
    if (width && right) {
        rows_measure(rows, width, right, &pen);
        if (cols > 0)
            rows_fit(rows, width, right, cols);
        if (cols > 0 && rows_line_width(rows, width, right, cols) > cols)
            rows_put_vertical(rows, &pen, out);
        else
            rows_put_lines(rows, width, right, &pen, out);
        rows_put_foot(rows, out);
    }
    out->failed = out->failed || !width || !right || pen.text.failed;
    strbuf_fini(&pen.text);
    free(pen.clean);
    free(right);
    free(width);
}

static void rows_put_table(const struct rows *rows, bool terminal, struct strbuf *out) {
    (void)terminal;
    rows_put_fitted(rows, 0, out);
}

/* ---- for programs ---- */

static void rows_put_value(struct json *j, const struct rows_cell *c) {
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
    rows_put_text(c, &text);
    if (c->kind == SQL_REAL)
        json_literal(j, strbuf_str(&text));
    else
        json_string(j, strbuf_str(&text));
    j->failed = j->failed || text.failed;
    strbuf_fini(&text);
}

static void rows_put_object(struct json *j, const struct rows *rows, size_t row) {
    json_object_begin(j);
    for (size_t i = 0; i < rows->n_columns; i++) {
        json_key(j, rows->columns[i].name);
        rows_put_value(j, rows_at(rows, row, i));
    }
    json_object_end(j);
}

static void rows_put_json(const struct rows *rows, bool terminal, struct strbuf *out) {
    struct json j;
    (void)terminal;
    json_init(&j, out, 0);
    json_object_begin(&j);
    json_kv_int(&j, "schema_version", ROWS_SCHEMA_VERSION);
    json_key(&j, "columns");
    json_array_begin(&j);
    for (size_t i = 0; i < rows->n_columns; i++) {
        json_object_begin(&j);
        json_kv_string(&j, "name", rows->columns[i].name);
        json_kv_string(&j, "type", rows->columns[i].type[0] ? rows->columns[i].type : NULL);
        json_object_end(&j);
    }
    json_array_end(&j);
    json_key(&j, "rows");
    json_array_begin(&j);
    for (size_t row = 0; row < rows->n; row++)
        rows_put_object(&j, rows, row);
    json_array_end(&j);
    json_kv_bool(&j, "truncated", rows->truncated);
    json_kv_uint(&j, "lost_chunks", rows->lost);
    json_kv_number(&j, "elapsed_ms", rows->elapsed_s * 1000, 3);
    json_object_end(&j);
    (void)strbuf_addc(out, '\n');
    out->failed = out->failed || json_finish(&j) != 0;
}

static void rows_put_ndjson(const struct rows *rows, bool terminal, struct strbuf *out) {
    (void)terminal;
    for (size_t row = 0; row < rows->n; row++) {
        struct json j;
        json_init(&j, out, 0);
        rows_put_object(&j, rows, row);
        (void)strbuf_addc(out, '\n');
        out->failed = out->failed || json_finish(&j) != 0;
    }
}

static void rows_put_field(const char *text, bool terminal, struct strbuf *out) {
    char *clean = terminal ? malloc(strlen(text) * 3 + 1) : NULL;
    if (clean) {
        (void)text_sanitize(clean, strlen(text) * 3 + 1, text);
        text = clean;
    }
    bool quoted = strpbrk(text, ",\"\r\n") != NULL;
    (void)strbuf_adds(out, quoted ? "\"" : "");
    for (const char *p = text; *p; p++) {
        if (*p == '"')
            (void)strbuf_addc(out, '"');
        (void)strbuf_addc(out, *p);
    }
    (void)strbuf_adds(out, quoted ? "\"" : "");
    free(clean);
}

static void rows_put_csv(const struct rows *rows, bool terminal, struct strbuf *out) {
    struct strbuf text;
    strbuf_init(&text, 0);
    for (size_t i = 0; i < rows->n_columns; i++) {
        (void)strbuf_adds(out, i ? "," : "");
        rows_put_field(rows->columns[i].name, terminal, out);
    }
    (void)strbuf_addc(out, '\n');
    for (size_t row = 0; row < rows->n; row++) {
        for (size_t i = 0; i < rows->n_columns; i++) {
            const struct rows_cell *c = rows_at(rows, row, i);
            strbuf_clear(&text);
            rows_put_text(c, &text);
            (void)strbuf_adds(out, i ? "," : "");
            if (c->kind == SQL_TEXT && c->len == 0)
                (void)strbuf_adds(out, "\"\""); /* empty, not unknown */
            else
                rows_put_field(strbuf_str(&text), terminal, out);
        }
        (void)strbuf_addc(out, '\n');
    }
    out->failed = out->failed || text.failed;
    strbuf_fini(&text);
}

const struct rows_format rows_formats[] = {
    {"table", "columns, for people", rows_put_table},
    {"json", "one document", rows_put_json},
    {"ndjson", "a JSON object a row", rows_put_ndjson},
    {"csv", "comma-separated values, with a line of names", rows_put_csv},
    {.name = NULL},
};

const struct rows_format *rows_find_format(const char *name, struct err *e) {
    const char *names[sizeof rows_formats / sizeof rows_formats[0]];
    char all[64] = "";
    for (size_t i = 0; i < sizeof rows_formats / sizeof rows_formats[0]; i++) {
        names[i] = rows_formats[i].name;
        if (names[i] && strcmp(names[i], name) == 0)
            return &rows_formats[i];
        size_t n = strlen(all);
        if (names[i])
            (void)snprintf(all + n, sizeof all - n, "%s%s", n ? ", " : "", names[i]);
    }
    const char *near = option_suggest(name, names);
    if (near)
        (void)err_set(e, ERR_USAGE, "unknown format '%s': did you mean '%s'?", name, near);
    else
        (void)err_set(e, ERR_USAGE, "unknown format '%s': give one of %s", name, all);
    return NULL;
}
