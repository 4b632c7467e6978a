/* SPDX-License-Identifier: Apache-2.0 */
/* result: see result.h. */
#include "client/sql/result.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RESULT_BLOCK ((size_t)64 * 1024)
#define RESULT_FIRST_ROWS 64
#define RESULT_NAME 1024 /* of a column with a duplicate name */

/* Text of many values; each has its length before it and a NUL after it. */
struct result_block {
    struct result_block *next;
    size_t used, cap;
    char data[];
};

static size_t result_cell_bytes(const struct result *r) {
    return r->n_columns * (sizeof(union result_value) + 1);
}

struct result *result_new(size_t n_columns, size_t max_rows, size_t max_bytes) {
    struct result *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->columns = calloc(n_columns ? n_columns : 1, sizeof *r->columns);
    r->n_columns = n_columns;
    r->max_rows = max_rows < UINT32_MAX ? max_rows : UINT32_MAX - 1;
    r->max_bytes = max_bytes;
    r->references = 1;
    for (size_t i = 0; r->columns && i < n_columns; i++)
        if (result_name_column(r, i, "", "") != 0) {
            result_unref(r);
            return NULL;
        }
    if (!r->columns) {
        free(r);
        return NULL;
    }
    return r;
}

struct result *result_ref(struct result *r) {
    __atomic_add_fetch(&r->references, 1, __ATOMIC_RELAXED);
    return r;
}

void result_unref(struct result *r) {
    if (!r || __atomic_sub_fetch(&r->references, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    for (size_t i = 0; i < r->n_columns; i++) {
        free(r->columns[i].name);
        free(r->columns[i].type);
        free(r->columns[i].kinds);
        free(r->columns[i].values);
    }
    while (r->blocks) {
        struct result_block *next = r->blocks->next;
        free(r->blocks);
        r->blocks = next;
    }
    free(r->columns);
    free(r);
}

int result_name_column(struct result *r, size_t column, const char *name, const char *type) {
    char *n = strdup(name), *t = strdup(type);
    if (!n || !t) {
        free(n);
        free(t);
        return -1;
    }
    free(r->columns[column].name);
    free(r->columns[column].type);
    r->columns[column].name = n;
    r->columns[column].type = t;
    return 0;
}

static bool result_has_column(const struct result *r, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(r->columns[i].name, name) == 0)
            return true;
    return false;
}

/* In JSON a row is an object: of columns with the same name the second is called NAME:2. */
static int result_name_columns(struct result *r, const struct sql_result *q) {
    char text[RESULT_NAME];
    for (size_t i = 0; i < r->n_columns; i++) {
        const char *name = sql_result_name(q, i), *unique = name;
        for (size_t k = 2; result_has_column(r, i, unique); k++) {
            snprintf(text, sizeof text, "%.*s:%zu", RESULT_NAME - 24, name, k);
            unique = text;
        }
        if (result_name_column(r, i, unique, sql_result_type(q, i)) != 0)
            return -1;
    }
    return 0;
}

struct result *result_new_for(const struct sql_result *q, size_t max_rows, size_t max_bytes, struct err *e) {
    struct result *r = result_new(sql_result_columns(q), max_rows, max_bytes);
    if (r && result_name_columns(r, q) == 0)
        return r;
    result_unref(r);
    err_set(e, ERR_FAILED, "out of memory for the result");
    return NULL;
}

/* ---- filling ---- */

static int result_grow(struct result *r) {
    size_t cap = r->cap ? r->cap * 2 : RESULT_FIRST_ROWS;
    if (cap > r->max_rows)
        cap = r->max_rows;
    if (cap <= r->cap || r->bytes + (cap - r->cap) * result_cell_bytes(r) > r->max_bytes)
        return -1;
    for (size_t i = 0; i < r->n_columns; i++) {
        struct result_column *c = &r->columns[i];
        uint8_t *kinds = realloc(c->kinds, cap);
        if (kinds)
            c->kinds = kinds;
        union result_value *values = kinds ? realloc(c->values, cap * sizeof *values) : NULL;
        if (!values)
            return -1;
        c->values = values;
    }
    r->bytes += (cap - r->cap) * result_cell_bytes(r);
    r->cap = cap;
    return 0;
}

int result_add_row(struct result *r) {
    if (r->full || (r->n_rows == r->cap && result_grow(r) != 0)) {
        r->full = true;
        return -1;
    }
    for (size_t i = 0; i < r->n_columns; i++)
        r->columns[i].kinds[r->n_rows] = SQL_NULL;
    r->n_rows++;
    return 0;
}

void result_put_int(struct result *r, size_t column, int64_t v) {
    r->columns[column].kinds[r->n_rows - 1] = SQL_INTEGER;
    r->columns[column].values[r->n_rows - 1].i = v;
}

void result_put_real(struct result *r, size_t column, double v) {
    r->columns[column].kinds[r->n_rows - 1] = isnan(v) ? SQL_NULL : SQL_REAL;
    r->columns[column].values[r->n_rows - 1].f = v;
}

/* Room for `n` bytes of text; NULL if there is none. */
static char *result_reserve(struct result *r, size_t n) {
    struct result_block *b = r->blocks;
    if (!b || b->cap - b->used < n) {
        size_t cap = n > RESULT_BLOCK ? n : RESULT_BLOCK;
        if (r->bytes + sizeof *b + cap > r->max_bytes || !(b = malloc(sizeof *b + cap)))
            return NULL;
        *b = (struct result_block){.next = r->blocks, .cap = cap};
        r->bytes += sizeof *b + cap;
        r->blocks = b;
    }
    b->used += n;
    return b->data + b->used - n;
}

int result_put_text(struct result *r, size_t column, enum sql_kind kind, const char *s, size_t len) {
    uint32_t n = (uint32_t)len;
    char *room = len < UINT32_MAX / 2 ? result_reserve(r, sizeof n + len + 1) : NULL;
    if (!room) {
        r->n_rows--;
        r->full = true;
        return -1;
    }
    memcpy(room, &n, sizeof n);
    memcpy(room + sizeof n, s, len);
    room[sizeof n + len] = '\0';
    r->columns[column].kinds[r->n_rows - 1] = (uint8_t)kind;
    r->columns[column].values[r->n_rows - 1].s = room + sizeof n;
    return 0;
}

void result_read_row(const struct sql_result *q, struct result_cell *cells) {
    for (size_t i = 0; i < sql_result_columns(q); i++) {
        struct result_cell *c = &cells[i];
        *c = (struct result_cell){.kind = sql_result_kind(q, i)};
        if (c->kind == SQL_INTEGER)
            c->i = sql_result_int(q, i);
        else if (c->kind == SQL_REAL)
            c->f = sql_result_real(q, i);
        else if (c->kind != SQL_NULL) {
            const char *text = sql_result_text(q, i, &c->len);
            c->s = text ? text : "";
            c->len = text ? c->len : 0;
        }
    }
}

static int result_put(struct result *r, size_t column, const struct result_cell *c) {
    if (c->kind == SQL_INTEGER)
        result_put_int(r, column, c->i);
    else if (c->kind == SQL_REAL)
        result_put_real(r, column, c->f);
    else if (c->kind != SQL_NULL)
        return result_put_text(r, column, c->kind, c->s, c->len);
    return 0;
}

int result_fill(struct result *r, struct sql_result *q, struct err *e) {
    struct result_cell *cells = calloc(r->n_columns + 1, sizeof *cells);
    int rc = cells ? 0 : err_set(e, ERR_FAILED, "out of memory for the result");
    while (cells && (rc = sql_next(q, e)) > 0 && result_add_row(r) == 0) {
        result_read_row(q, cells);
        for (size_t i = 0; !r->full && i < r->n_columns; i++)
            result_put(r, i, &cells[i]);
    }
    free(cells);
    r->truncated = r->full || sql_result_truncated(q);
    r->lost = sql_result_lost(q);
    r->elapsed_s = sql_result_elapsed_s(q);
    return rc < 0 ? -1 : 0;
}

/* The type of an expression is that of its first value. */
static int result_infer_types(struct result *r) {
    static const char *const names[] = {[SQL_NULL] = "",
                                        [SQL_INTEGER] = "integer",
                                        [SQL_REAL] = "double",
                                        [SQL_TEXT] = "text",
                                        [SQL_BLOB] = "blob"};
    for (size_t i = 0; i < r->n_columns; i++) {
        struct result_column *c = &r->columns[i];
        for (size_t row = 0; row < r->n_rows && !c->type[0]; row++) {
            char *type = strdup(names[c->kinds[row]]);
            if (!type)
                return -1;
            free(c->type);
            c->type = type;
        }
    }
    return 0;
}

struct result *result_take(struct sql_result *q, size_t max_bytes, struct err *e) {
    struct result *r = result_new_for(q, SIZE_MAX, max_bytes, e);
    if (!r)
        return NULL;
    int rc = result_fill(r, q, e);
    if (rc == 0 && (r->full || result_infer_types(r) != 0))
        rc = err_set(e, ERR_FAILED, "the answer is too large to be kept in memory: ask for fewer rows");
    if (rc == 0)
        return r;
    result_unref(r);
    return NULL;
}

static int result_select_row(struct result *out, const struct result *r, size_t row, const uint8_t *hidden) {
    if (result_add_row(out) != 0)
        return -1;
    for (size_t i = 0, to = 0; i < r->n_columns; i++) {
        if (hidden && hidden[i])
            continue;
        out->columns[to].kinds[out->n_rows - 1] = r->columns[i].kinds[row];
        out->columns[to++].values[out->n_rows - 1] = r->columns[i].values[row];
    }
    return 0;
}

struct result *result_select(const struct result *r, const uint32_t *order, size_t n, const uint8_t *hidden) {
    size_t n_columns = 0;
    for (size_t i = 0; i < r->n_columns; i++)
        n_columns += !hidden || !hidden[i];
    struct result *out = result_new(n_columns, n ? n : 1, SIZE_MAX);
    int rc = out ? 0 : -1;
    for (size_t i = 0, to = 0; rc == 0 && i < r->n_columns; i++)
        if (!hidden || !hidden[i])
            rc = result_name_column(out, to++, r->columns[i].name, r->columns[i].type);
    for (size_t at = 0; rc == 0 && at < n; at++)
        rc = result_select_row(out, r, order ? order[at] : at, hidden);
    if (rc == 0) {
        out->truncated = r->truncated;
        return out;
    }
    result_unref(out);
    return NULL;
}

/* ---- reading ---- */

int result_find_column(const struct result *r, const char *name) {
    for (size_t i = 0; r && i < r->n_columns; i++)
        if (strcmp(r->columns[i].name, name) == 0)
            return (int)i;
    return -1;
}

struct result_cell result_at(const struct result *r, size_t row, size_t column) {
    const union result_value *v = &r->columns[column].values[row];
    struct result_cell c = {.kind = result_kind(r, row, column), .len = result_length(r, row, column)};
    if (c.kind == SQL_INTEGER)
        c.i = v->i;
    else if (c.kind == SQL_REAL)
        c.f = v->f;
    else if (c.kind != SQL_NULL)
        c.s = v->s;
    return c;
}

const char *result_string(const struct result *r, size_t row, size_t column) {
    return result_kind(r, row, column) == SQL_TEXT ? r->columns[column].values[row].s : NULL;
}

enum sql_kind result_kind(const struct result *r, size_t row, size_t column) {
    return (enum sql_kind)r->columns[column].kinds[row];
}

double result_number(const struct result *r, size_t row, size_t column) {
    enum sql_kind kind = result_kind(r, row, column);
    const union result_value *v = &r->columns[column].values[row];
    return kind == SQL_INTEGER ? (double)v->i : kind == SQL_REAL ? v->f : NAN;
}

size_t result_length(const struct result *r, size_t row, size_t column) {
    uint32_t n = 0;
    if (result_kind(r, row, column) >= SQL_TEXT)
        memcpy(&n, r->columns[column].values[row].s - sizeof n, sizeof n);
    return n;
}

/* "2023-11-14 22:13:20.250", UTC; false if the calendar does not have that time. */
static bool result_time_text(double t, char *buf, size_t cap) {
    if (!(t > -62167219200.0 && t < 253402300800.0))
        return false;
    time_t whole = (time_t)floor(t);
    int ms = (int)((t - floor(t)) * 1000);
    struct tm tm;
    char date[32];
    if (!gmtime_r(&whole, &tm) || strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &tm) == 0)
        return false;
    snprintf(buf, cap, "%s.%03d", date, ms);
    return true;
}

static void result_real_text(double v, char *buf, size_t cap) {
    double size = fabs(v);
    if (size >= 1e6 && size < 1e15)
        snprintf(buf, cap, "%.2f", v);
    else
        snprintf(buf, cap, "%.6g", v);
}

void result_text(const struct result *r, size_t row, size_t column, char *buf, size_t cap) {
    const union result_value *v = &r->columns[column].values[row];
    switch (result_kind(r, row, column)) {
    case SQL_NULL:
        snprintf(buf, cap, "NULL");
        return;
    case SQL_INTEGER:
        snprintf(buf, cap, "%lld", (long long)v->i);
        return;
    case SQL_REAL:
        if (strcmp(r->columns[column].type, "timestamp") != 0 || !result_time_text(v->f, buf, cap))
            result_real_text(v->f, buf, cap);
        return;
    case SQL_BLOB:
        snprintf(buf, cap, "<%zu bytes>", result_length(r, row, column));
        return;
    case SQL_TEXT:
        break;
    }
    snprintf(buf, cap, "%s", v->s);
}

void result_put_digits(double v, struct strbuf *out) {
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            break;
    }
    strbuf_adds(out, text);
}

void result_put_hex(const char *bytes, size_t n, struct strbuf *out) {
    for (size_t i = 0; i < n; i++)
        strbuf_addf(out, "%02x", (unsigned char)bytes[i]);
}

void result_put_whole(const struct result *r, size_t row, size_t column, struct strbuf *out) {
    const union result_value *v = &r->columns[column].values[row];
    switch (result_kind(r, row, column)) {
    case SQL_NULL:
        return;
    case SQL_INTEGER:
        strbuf_addf(out, "%lld", (long long)v->i);
        return;
    case SQL_REAL:
        result_put_digits(v->f, out);
        return;
    case SQL_BLOB:
        result_put_hex(v->s, result_length(r, row, column), out);
        return;
    case SQL_TEXT:
        strbuf_add(out, v->s, result_length(r, row, column));
    }
}

bool result_is_numeric(const struct result *r, size_t column) {
    bool any = false;
    for (size_t i = 0; i < r->n_rows; i++) {
        enum sql_kind kind = result_kind(r, i, column);
        if (kind >= SQL_TEXT)
            return false;
        any |= kind != SQL_NULL;
    }
    return any;
}

/* ---- order ---- */

static int result_kind_rank(enum sql_kind kind) {
    return kind == SQL_NULL ? 3 : kind == SQL_TEXT ? 1 : kind == SQL_BLOB ? 2 : 0;
}

int result_compare(const struct result *r, size_t column, size_t a, size_t b) {
    enum sql_kind ka = result_kind(r, a, column), kb = result_kind(r, b, column);
    int ra = result_kind_rank(ka), rb = result_kind_rank(kb);
    const union result_value *va = &r->columns[column].values[a], *vb = &r->columns[column].values[b];
    if (ra != rb)
        return ra < rb ? -1 : 1;
    if (ra == 3)
        return 0;
    if (ka == SQL_INTEGER && kb == SQL_INTEGER)
        return va->i < vb->i ? -1 : va->i > vb->i;
    if (ra == 0) {
        double x = result_number(r, a, column), y = result_number(r, b, column);
        return x < y ? -1 : x > y;
    }
    size_t la = result_length(r, a, column), lb = result_length(r, b, column);
    int order = memcmp(va->s, vb->s, la < lb ? la : lb);
    return order ? (order < 0 ? -1 : 1) : la < lb ? -1 : la > lb;
}

/* Order of two rows: negative if the first one comes first. */
static int result_precedes(const struct result *r, size_t column, bool descends, uint32_t a, uint32_t b) {
    bool na = result_kind(r, a, column) == SQL_NULL, nb = result_kind(r, b, column) == SQL_NULL;
    if (na || nb)
        return (int)na - (int)nb;
    int order = result_compare(r, column, a, b);
    return descends ? -order : order;
}

int result_sort(const struct result *r, size_t column, bool descends, uint32_t *order) {
    size_t n = r->n_rows;
    uint32_t *scratch = malloc((n + 1) * sizeof *scratch);
    if (!scratch)
        return -1;
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t low = 0; low < n; low += 2 * width) {
            size_t middle = low + width < n ? low + width : n;
            size_t high = low + 2 * width < n ? low + 2 * width : n;
            size_t i = low, j = middle;
            for (size_t k = low; k < high; k++) {
                bool left = j >= high ||
                            (i < middle && result_precedes(r, column, descends, order[i], order[j]) <= 0);
                scratch[k] = left ? order[i++] : order[j++];
            }
        }
        memcpy(order, scratch, n * sizeof *order);
    }
    free(scratch);
    return 0;
}
