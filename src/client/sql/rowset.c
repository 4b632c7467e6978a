/* SPDX-License-Identifier: Apache-2.0 */
/* rowset: see rowset.h. */
#include "client/sql/rowset.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROWSET_BLOCK ((size_t)64 * 1024)
#define ROWSET_FIRST_ROWS 64

/* Text of many values; each has its length before it and a NUL after it. */
struct rowset_block {
    struct rowset_block *next;
    size_t used, cap;
    char data[];
};

static size_t rowset_cell_bytes(const struct rowset *r) {
    return r->n_columns * (sizeof(union rowset_value) + 1);
}

struct rowset *rowset_new(size_t n_columns, size_t max_rows, size_t max_bytes) {
    struct rowset *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->columns = calloc(n_columns ? n_columns : 1, sizeof *r->columns);
    r->n_columns = n_columns;
    r->max_rows = max_rows < UINT32_MAX ? max_rows : UINT32_MAX - 1;
    r->max_bytes = max_bytes;
    r->references = 1;
    for (size_t i = 0; r->columns && i < n_columns; i++)
        if (rowset_name_column(r, i, "", "") != 0) {
            rowset_unref(r);
            return NULL;
        }
    if (!r->columns) {
        free(r);
        return NULL;
    }
    return r;
}

struct rowset *rowset_ref(struct rowset *r) {
    (void)__atomic_add_fetch(&r->references, 1, __ATOMIC_RELAXED);
    return r;
}

void rowset_unref(struct rowset *r) {
    if (!r || __atomic_sub_fetch(&r->references, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    for (size_t i = 0; i < r->n_columns; i++) {
        free(r->columns[i].name);
        free(r->columns[i].type);
        free(r->columns[i].kinds);
        free(r->columns[i].values);
    }
    while (r->blocks) {
        struct rowset_block *next = r->blocks->next;
        free(r->blocks);
        r->blocks = next;
    }
    free(r->columns);
    free(r);
}

int rowset_name_column(struct rowset *r, size_t column, const char *name, const char *type) {
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

/* ---- filling ---- */

static int rowset_grow(struct rowset *r) {
    size_t cap = r->cap ? r->cap * 2 : ROWSET_FIRST_ROWS;
    if (cap > r->max_rows)
        cap = r->max_rows;
    if (cap <= r->cap || r->bytes + (cap - r->cap) * rowset_cell_bytes(r) > r->max_bytes)
        return -1;
    for (size_t i = 0; i < r->n_columns; i++) {
        struct rowset_column *c = &r->columns[i];
        uint8_t *kinds = realloc(c->kinds, cap);
        if (kinds)
            c->kinds = kinds;
        union rowset_value *values = kinds ? realloc(c->values, cap * sizeof *values) : NULL;
        if (!values)
            return -1;
        c->values = values;
    }
    r->bytes += (cap - r->cap) * rowset_cell_bytes(r);
    r->cap = cap;
    return 0;
}

int rowset_add_row(struct rowset *r) {
    if (r->full || (r->n_rows == r->cap && rowset_grow(r) != 0)) {
        r->full = true;
        return -1;
    }
    for (size_t i = 0; i < r->n_columns; i++)
        r->columns[i].kinds[r->n_rows] = SQL_NULL;
    r->n_rows++;
    return 0;
}

void rowset_put_int(struct rowset *r, size_t column, int64_t v) {
    r->columns[column].kinds[r->n_rows - 1] = SQL_INTEGER;
    r->columns[column].values[r->n_rows - 1].i = v;
}

void rowset_put_real(struct rowset *r, size_t column, double v) {
    r->columns[column].kinds[r->n_rows - 1] = isnan(v) ? SQL_NULL : SQL_REAL;
    r->columns[column].values[r->n_rows - 1].f = v;
}

/* Room for `n` bytes of text; NULL: there is none. */
static char *rowset_reserve(struct rowset *r, size_t n) {
    struct rowset_block *b = r->blocks;
    if (!b || b->cap - b->used < n) {
        size_t cap = n > ROWSET_BLOCK ? n : ROWSET_BLOCK;
        if (r->bytes + sizeof *b + cap > r->max_bytes || !(b = malloc(sizeof *b + cap)))
            return NULL;
        *b = (struct rowset_block){.next = r->blocks, .cap = cap};
        r->bytes += sizeof *b + cap;
        r->blocks = b;
    }
    b->used += n;
    return b->data + b->used - n;
}

int rowset_put_text(struct rowset *r, size_t column, enum sql_kind kind, const char *s, size_t len) {
    uint32_t n = (uint32_t)len;
    char *room = len < UINT32_MAX / 2 ? rowset_reserve(r, sizeof n + len + 1) : NULL;
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

int rowset_add_result(struct rowset *r, const struct sql_result *q) {
    if (rowset_add_row(r) != 0)
        return -1;
    for (size_t i = 0; i < r->n_columns; i++) {
        enum sql_kind kind = sql_result_kind(q, i);
        if (kind == SQL_INTEGER)
            rowset_put_int(r, i, sql_result_int(q, i));
        else if (kind == SQL_REAL)
            rowset_put_real(r, i, sql_result_real(q, i));
        else if (kind != SQL_NULL) {
            size_t len = 0;
            const char *s = sql_result_text(q, i, &len);
            if (rowset_put_text(r, i, kind, s ? s : "", s ? len : 0) != 0)
                return -1;
        }
    }
    return 0;
}

/* ---- reading ---- */

enum sql_kind rowset_kind(const struct rowset *r, size_t row, size_t column) {
    return (enum sql_kind)r->columns[column].kinds[row];
}

double rowset_number(const struct rowset *r, size_t row, size_t column) {
    enum sql_kind kind = rowset_kind(r, row, column);
    const union rowset_value *v = &r->columns[column].values[row];
    return kind == SQL_INTEGER ? (double)v->i : kind == SQL_REAL ? v->f : NAN;
}

size_t rowset_length(const struct rowset *r, size_t row, size_t column) {
    uint32_t n = 0;
    if (rowset_kind(r, row, column) >= SQL_TEXT)
        memcpy(&n, r->columns[column].values[row].s - sizeof n, sizeof n);
    return n;
}

/* "2023-11-14 22:13:20.250", UTC; false when no calendar has that time. */
static bool rowset_time_text(double t, char *buf, size_t cap) {
    if (!(t > -62167219200.0 && t < 253402300800.0))
        return false;
    time_t whole = (time_t)floor(t);
    int ms = (int)((t - floor(t)) * 1000);
    struct tm tm;
    char date[32];
    if (!gmtime_r(&whole, &tm) || strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &tm) == 0)
        return false;
    (void)snprintf(buf, cap, "%s.%03d", date, ms);
    return true;
}

static void rowset_real_text(double v, char *buf, size_t cap) {
    double size = fabs(v);
    if (size >= 1e6 && size < 1e15)
        (void)snprintf(buf, cap, "%.2f", v);
    else
        (void)snprintf(buf, cap, "%.6g", v);
}

void rowset_text(const struct rowset *r, size_t row, size_t column, char *buf, size_t cap) {
    const union rowset_value *v = &r->columns[column].values[row];
    switch (rowset_kind(r, row, column)) {
    case SQL_NULL:
        (void)snprintf(buf, cap, "NULL");
        return;
    case SQL_INTEGER:
        (void)snprintf(buf, cap, "%lld", (long long)v->i);
        return;
    case SQL_REAL:
        if (strcmp(r->columns[column].type, "timestamp") != 0 || !rowset_time_text(v->f, buf, cap))
            rowset_real_text(v->f, buf, cap);
        return;
    case SQL_BLOB:
        (void)snprintf(buf, cap, "<%zu bytes>", rowset_length(r, row, column));
        return;
    case SQL_TEXT:
        break;
    }
    (void)snprintf(buf, cap, "%s", v->s);
}

/* The shortest form that reads back as the same number. */
static void rowset_put_real_whole(double v, struct strbuf *out) {
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            break;
    }
    (void)strbuf_adds(out, text);
}

void rowset_put_whole(const struct rowset *r, size_t row, size_t column, struct strbuf *out) {
    const union rowset_value *v = &r->columns[column].values[row];
    switch (rowset_kind(r, row, column)) {
    case SQL_NULL:
        return;
    case SQL_INTEGER:
        (void)strbuf_addf(out, "%lld", (long long)v->i);
        return;
    case SQL_REAL:
        rowset_put_real_whole(v->f, out);
        return;
    case SQL_BLOB:
        for (size_t i = 0; i < rowset_length(r, row, column); i++)
            (void)strbuf_addf(out, "%02x", (unsigned char)v->s[i]);
        return;
    case SQL_TEXT:
        (void)strbuf_add(out, v->s, rowset_length(r, row, column));
    }
}

bool rowset_is_numeric(const struct rowset *r, size_t column) {
    bool any = false;
    for (size_t i = 0; i < r->n_rows; i++) {
        enum sql_kind kind = rowset_kind(r, i, column);
        if (kind >= SQL_TEXT)
            return false;
        any |= kind != SQL_NULL;
    }
    return any;
}

/* ---- order ---- */

static int rowset_kind_rank(enum sql_kind kind) {
    return kind == SQL_NULL ? 3 : kind == SQL_TEXT ? 1 : kind == SQL_BLOB ? 2 : 0;
}

int rowset_compare(const struct rowset *r, size_t column, size_t a, size_t b) {
    enum sql_kind ka = rowset_kind(r, a, column), kb = rowset_kind(r, b, column);
    int ra = rowset_kind_rank(ka), rb = rowset_kind_rank(kb);
    const union rowset_value *va = &r->columns[column].values[a], *vb = &r->columns[column].values[b];
    if (ra != rb)
        return ra < rb ? -1 : 1;
    if (ra == 3)
        return 0;
    if (ka == SQL_INTEGER && kb == SQL_INTEGER)
        return va->i < vb->i ? -1 : va->i > vb->i;
    if (ra == 0) {
        double x = rowset_number(r, a, column), y = rowset_number(r, b, column);
        return x < y ? -1 : x > y;
    }
    size_t la = rowset_length(r, a, column), lb = rowset_length(r, b, column);
    int order = memcmp(va->s, vb->s, la < lb ? la : lb);
    return order ? (order < 0 ? -1 : 1) : la < lb ? -1 : la > lb;
}

/* Which of two rows comes first: negative the first one. */
static int rowset_precedes(const struct rowset *r, size_t column, bool descends, uint32_t a, uint32_t b) {
    bool na = rowset_kind(r, a, column) == SQL_NULL, nb = rowset_kind(r, b, column) == SQL_NULL;
    if (na || nb)
        return (int)na - (int)nb;
    int order = rowset_compare(r, column, a, b);
    return descends ? -order : order;
}

int rowset_sort(const struct rowset *r, size_t column, bool descends, uint32_t *order) {
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
                            (i < middle && rowset_precedes(r, column, descends, order[i], order[j]) <= 0);
                scratch[k] = left ? order[i++] : order[j++];
            }
        }
        memcpy(order, scratch, n * sizeof *order);
    }
    free(scratch);
    return 0;
}
