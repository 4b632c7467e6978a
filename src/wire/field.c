/* SPDX-License-Identifier: Apache-2.0 */
/* field: see field.h. */
#include "wire/field.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/model.h"

/* ---- errors ---- */

int field_fail(struct err *e, const char *table, const char *key) {
    return err_set(e, ERR_FAILED,
                   "message is not valid: '%s' of '%s' is missing, of a wrong type or out of range", key,
                   table);
}

int field_fail_memory(struct err *e, const char *table) {
    return err_set(e, ERR_FAILED, "message is too large: no memory for '%s'", table);
}

int field_fail_shown(struct err *e, const char *table) {
    return err_set(e, ERR_FAILED, "message is not valid: '%s' would take more than %zu MB when it is shown",
                   table, FIELD_MAX_SHOWN >> 20);
}

/* ---- what is shown ---- */

size_t field_shown(const char *text) {
    size_t n = 0;
    for (const unsigned char *p = (const unsigned char *)text; p && *p && n <= FIELD_MAX_SHOWN; p++)
        n += *p < ' ' || *p == 0x7f ? 6 : *p > 0x7f ? 3 : *p == '"' || *p == '\\' ? 2 : 1;
    return n;
}

int field_show(struct field_strings *strings, size_t bytes) {
    if (strings->shown > FIELD_MAX_SHOWN || bytes > FIELD_MAX_SHOWN)
        strings->shown = FIELD_MAX_SHOWN + 1;
    else
        strings->shown += bytes;
    return strings->shown > FIELD_MAX_SHOWN ? -1 : 0;
}

/* ---- one value ---- */

static const void *field_at(const struct field *f, const void *row) { return (const char *)row + f->offset; }

static const char *field_str(const struct field *f, const void *row) {
    return *(const char *const *)field_at(f, row);
}

static bool field_is_letter(char c) { return c > ' ' && c <= '~'; }

/* Write a string literally when `strings` is NULL, otherwise as its number. */
static void field_write(struct strbuf *out, const struct field *f, const void *row, struct intern *strings) {
    const void *p = field_at(f, row);
    switch (f->kind) {
    case FIELD_BOOL:
        codec_write_bool(out, *(const bool *)p);
        break;
    case FIELD_CHAR:
        if (field_is_letter(*(const char *)p) && *(const char *)p != '?')
            codec_write_strn(out, p, 1);
        else
            codec_write_nil(out);
        break;
    case FIELD_INT8:
        if (*(const int8_t *)p == MODEL_UNKNOWN)
            codec_write_nil(out);
        else
            codec_write_int(out, *(const int8_t *)p);
        break;
    case FIELD_INT:
        codec_write_int(out, *(const int *)p);
        break;
    case FIELD_INT64:
        if (*(const int64_t *)p == MODEL_UNKNOWN)
            codec_write_nil(out);
        else
            codec_write_int(out, *(const int64_t *)p);
        break;
    case FIELD_UINT32:
        codec_write_uint(out, *(const uint32_t *)p);
        break;
    case FIELD_UINT64:
        codec_write_uint(out, *(const uint64_t *)p);
        break;
    case FIELD_DOUBLE:
        codec_write_double(out, *(const double *)p);
        break;
    case FIELD_ENUM:
        codec_write_uint(out, *(const unsigned *)p);
        break;
    case FIELD_STR:
        if (!strings || !field_str(f, row))
            codec_write_str(out, field_str(f, row));
        else
            codec_write_uint(out, intern_string(strings, field_str(f, row)));
        break;
    }
}

static void field_set_unknown(const struct field *f, void *row) {
    void *p = (char *)row + f->offset;
    switch (f->kind) {
    case FIELD_BOOL:
        *(bool *)p = false;
        break;
    case FIELD_CHAR:
        *(char *)p = '?';
        break;
    case FIELD_INT8:
        *(int8_t *)p = MODEL_UNKNOWN;
        break;
    case FIELD_INT:
        *(int *)p = 0;
        break;
    case FIELD_INT64:
        *(int64_t *)p = MODEL_UNKNOWN;
        break;
    case FIELD_UINT32:
        *(uint32_t *)p = 0;
        break;
    case FIELD_UINT64:
        *(uint64_t *)p = 0;
        break;
    case FIELD_DOUBLE:
        *(double *)p = NAN;
        break;
    case FIELD_ENUM:
        *(unsigned *)p = 0;
        break;
    case FIELD_STR:
        *(const char **)p = NULL;
        break;
    }
}

static int field_take_str(const struct codec_token *t, const char **p, struct field_strings *strings,
                          struct arena *arena) {
    if (strings) {
        if (t->type != CODEC_UINT || t->u >= strings->n)
            return -1;
        *p = strings->list[t->u];
        return field_show(strings, field_shown(*p));
    }
    if (t->type != CODEC_STR)
        return -1;
    *p = arena_strndup(arena, t->bytes, t->count);
    return *p ? 0 : -1;
}

static int field_take_double(const struct codec_token *t, double *p) {
    if (t->type == CODEC_DOUBLE)
        *p = t->f;
    else if (t->type == CODEC_UINT)
        *p = (double)t->u;
    else if (t->type == CODEC_INT)
        *p = (double)t->i;
    else
        return -1;
    return 0;
}

/* A whole number, within the range of the member. */
static int field_take_number(const struct field *f, const struct codec_token *t, void *p) {
    int64_t i;
    uint64_t u;
    switch (f->kind) {
    case FIELD_INT8:
        if (codec_token_int(t, INT8_MIN, INT8_MAX, &i) != 0)
            return -1;
        *(int8_t *)p = (int8_t)i;
        return 0;
    case FIELD_INT:
        if (codec_token_int(t, INT_MIN, INT_MAX, &i) != 0)
            return -1;
        *(int *)p = (int)i;
        return 0;
    case FIELD_INT64:
        return codec_token_int(t, INT64_MIN, INT64_MAX, p);
    case FIELD_UINT32:
        if (codec_token_uint(t, UINT32_MAX, &u) != 0)
            return -1;
        *(uint32_t *)p = (uint32_t)u;
        return 0;
    case FIELD_UINT64:
        return codec_token_uint(t, UINT64_MAX, p);
    case FIELD_ENUM:
        if (codec_token_uint(t, UINT64_MAX, &u) != 0)
            return -1;
        *(unsigned *)p = u <= f->max ? (unsigned)u : 0;
        return 0;
    default:
        return -1;
    }
}

static int field_read(struct codec_cursor *c, const struct field *f, void *row, struct field_strings *strings,
                      struct arena *arena) {
    struct codec_token t;
    void *p = (char *)row + f->offset;
    struct codec_cursor whole = *c;
    if (codec_read(c, &t) != 0)
        return -1;
    if (t.type == CODEC_ARRAY || t.type == CODEC_MAP) {
        *c = whole;
        return -1;
    }
    field_set_unknown(f, row);
    if (t.type == CODEC_NIL)
        return 0;
    switch (f->kind) {
    case FIELD_BOOL:
        *(bool *)p = t.type == CODEC_BOOL && t.b;
        return t.type == CODEC_BOOL ? 0 : -1;
    case FIELD_CHAR:
        if (t.type != CODEC_STR || t.count != 1 || !field_is_letter(t.bytes[0]))
            return -1;
        *(char *)p = t.bytes[0];
        return 0;
    case FIELD_DOUBLE:
        return field_take_double(&t, p);
    case FIELD_STR:
        return field_take_str(&t, p, strings, arena);
    default:
        return field_take_number(f, &t, p);
    }
}

/* ---- columns that repeat themselves ----
 *
 * A column whose values mostly equal those `lag` rows before travels as {"lag": k, "runs":
 * [...], "values": [...]}: alternately so many new values, and so many equal to those k rows
 * before. */

/* such a column is written only when it is so many times shorter */
#define FIELD_SHORTER 4
#define FIELD_CYCLE_MAX 4096      /* rows between two of one thread */
#define FIELD_ROWS_MAX (1U << 16) /* rows that a column of a few bytes may stand for */

struct field_column {
    const struct field *f;
    const char *rows;
    size_t stride, n, lag;
    size_t runs, values; /* to be written with this lag */
};

static size_t field_size(const struct field *f) {
    switch (f->kind) {
    case FIELD_BOOL:
        return sizeof(bool);
    case FIELD_CHAR:
    case FIELD_INT8:
        return 1;
    case FIELD_INT:
    case FIELD_UINT32:
    case FIELD_ENUM:
        return 4;
    case FIELD_INT64:
    case FIELD_UINT64:
    case FIELD_DOUBLE:
        return 8;
    case FIELD_STR:
        return sizeof(const char *);
    }
    return 0;
}

/* Like memcmp, with the sizes written out because it runs for each value of each sample. */
static bool field_differs(const char *a, const char *b, size_t size) {
    if (size == 8)
        return memcmp(a, b, 8) != 0;
    if (size == 4)
        return memcmp(a, b, 4) != 0;
    return *a != *b;
}

/* Number of rows from `at` on, up to `end`, that equal the rows `lag` before, or (`same` false)
 * that do not. */
static size_t field_run(const struct field_column *c, size_t at, size_t end, bool same) {
    size_t size = field_size(c->f), begin = at, back = c->lag * c->stride;
    const char *p = c->rows + c->f->offset + at * c->stride;
    if (at < c->lag) { /* no earlier rows */
        if (same)
            return 0;
        at = c->lag < end ? c->lag : end;
        p = c->rows + c->f->offset + at * c->stride;
    }
    for (; at < end && field_differs(p, p - back, size) != same; p += c->stride)
        at++;
    return at - begin;
}

/* Rows from the first to the next with the same tid; 0 if there is none. */
static size_t field_find_cycle(const struct field_table *t, const void *rows, size_t n) {
    const struct field *f = &t->fields[t->cycle];
    /* `rows` may be NULL then */
    if (n == 0)
        return 0;
    const char *p = (const char *)rows + f->offset;
    for (size_t i = 1; i < n && i <= FIELD_CYCLE_MAX; i++)
        if (memcmp(p, p + i * t->stride, field_size(f)) == 0)
            return i;
    return 0;
}

/* Find what has to be written with this lag, two runs counted as a value. False as soon as the
 * result is not much shorter. */
static bool field_is_shorter(struct field_column *c) {
    size_t most = c->n / FIELD_SHORTER;
    c->runs = c->values = 0;
    for (size_t at = 0; at < c->n && c->runs / 2 + c->values <= most; c->runs += 2) {
        size_t end = at + most + 1 < c->n ? at + most + 1 : c->n, fresh = field_run(c, at, end, false);
        c->values += fresh;
        at += fresh;
        at += field_run(c, at, c->n, true);
    }
    return c->runs / 2 + c->values <= most;
}

/* Set the lag that makes the column much shorter. False if there is none. */
static bool field_choose_lag(struct field_column *c, size_t cycle) {
    c->lag = 1;
    if (field_is_shorter(c))
        return true;
    c->lag = cycle;
    return cycle && field_is_shorter(c);
}

static void field_write_all(struct strbuf *out, const struct field_column *c, struct intern *strings) {
    codec_write_array(out, c->n);
    for (size_t r = 0; r < c->n; r++)
        field_write(out, c->f, c->rows + r * c->stride, strings);
}

static void field_write_repeats(struct strbuf *out, const struct field_column *c, struct intern *strings) {
    codec_write_map(out, 3);
    codec_write_str(out, "lag");
    codec_write_uint(out, c->lag);
    codec_write_str(out, "runs");
    codec_write_array(out, c->runs);
    for (size_t at = 0; at < c->n;) {
        size_t fresh = field_run(c, at, c->n, false), same = field_run(c, at + fresh, c->n, true);
        codec_write_uint(out, fresh);
        codec_write_uint(out, same);
        at += fresh + same;
    }
    codec_write_str(out, "values");
    codec_write_array(out, c->values);
    for (size_t at = 0; at < c->n; at += field_run(c, at, c->n, true))
        for (size_t fresh = field_run(c, at, c->n, false); fresh > 0; fresh--)
            field_write(out, c->f, c->rows + at++ * c->stride, strings);
}

/* A column being read: an array, or the output of field_write_repeats. */
struct field_source {
    struct codec_cursor values, runs;
    size_t n_values, n_runs, lag; /* lag 0: an array */
};

/* Open a column and find its number of rows. 0, or -1. */
static int field_open(struct codec_cursor at, struct field_source *s, size_t *count) {
    static const char *const keys[] = {"lag", "runs", "values"};
    struct codec_cursor part[3];
    struct codec_token t;
    uint64_t lag, n;
    *s = (struct field_source){.values = at};
    if (codec_read_array(&s->values, &s->n_values) == 0) {
        *count = s->n_values;
        return 0;
    }
    if (codec_find(at, keys, 3, part) != 0 || !part[0].at || !part[1].at || !part[2].at ||
        codec_read(&part[0], &t) != 0 || codec_token_uint(&t, FIELD_ROWS_MAX, &lag) != 0 || lag == 0 ||
        codec_read_array(&part[1], &s->n_runs) != 0 || codec_read_array(&part[2], &s->n_values) != 0)
        return -1;
    s->lag = (size_t)lag;
    s->runs = part[1];
    s->values = part[2];
    *count = 0;
    for (size_t i = 0; i < s->n_runs; i++) {
        if (codec_read(&part[1], &t) != 0 || codec_token_uint(&t, FIELD_ROWS_MAX, &n) != 0 ||
            *count + n > FIELD_ROWS_MAX || (i % 2 && n && *count < s->lag))
            return -1;
        *count += (size_t)n;
    }
    return 0;
}

/* Copy the value `lag` rows before. 0, or -1 for a text that was named too often. */
static int field_repeat(const struct field_source *s, const struct field_column *to, char *row,
                        struct field_strings *strings) {
    memcpy(row + to->f->offset, row + to->f->offset - s->lag * to->stride, field_size(to->f));
    return to->f->kind == FIELD_STR ? field_show(strings, field_shown(field_str(to->f, row))) : 0;
}

/* Read `count` rows of an opened column. 0, or -1. */
static int field_read_source(struct field_source *s, const struct field_column *to, char *rows,
                             struct field_strings *strings, struct arena *arena) {
    size_t left = s->n_values;
    struct codec_token t;
    for (size_t r = 0, run = 0; r < to->n; run++) {
        uint64_t n = to->n;
        if (s->lag && (codec_read(&s->runs, &t) != 0 || codec_token_uint(&t, to->n - r, &n) != 0))
            return -1;
        for (; n > 0; n--, r++) {
            char *row = rows + r * to->stride;
            if (s->lag && run % 2 ? field_repeat(s, to, row, strings) != 0
                                  : left-- == 0 || field_read(&s->values, to->f, row, strings, arena) != 0)
                return -1;
        }
    }
    return left == 0 ? 0 : -1;
}

/* ---- structs and columns ---- */

void field_hide(const struct field_table *t, void *rows, size_t n, enum wire_access may) {
    for (size_t i = 0; i < t->n; i++)
        for (size_t row = 0; row < n && t->fields[i].access > may; row++)
            field_set_unknown(&t->fields[i], (char *)rows + row * t->stride);
}

void field_write_pairs(struct strbuf *out, const struct field_table *t, const void *row) {
    for (size_t i = 0; i < t->n; i++) {
        codec_write_str(out, t->fields[i].key);
        field_write(out, &t->fields[i], row, NULL);
    }
}

/* True if this (sparse) column has a known value. */
static bool field_any_known(const struct field *f, size_t stride, const void *rows, size_t n) {
    for (size_t r = 0; r < n; r++) {
        const void *p = field_at(f, (const char *)rows + r * stride);
        if (f->kind == FIELD_ENUM     ? *(const int *)p != 0
            : f->kind == FIELD_UINT32 ? *(const uint32_t *)p != 0
            : f->kind == FIELD_UINT64 ? *(const uint64_t *)p != 0
                                      : *(const char *const *)p != NULL)
            return true;
    }
    return false;
}

void field_write_columns(struct strbuf *out, const struct field_table *t, const void *rows, size_t n,
                         struct intern *strings, size_t extra) {
    bool left_out[FIELD_MAX];
    size_t columns = 0;
    for (size_t i = 0; i < t->n; i++) {
        left_out[i] = t->fields[i].sparse && !field_any_known(&t->fields[i], t->stride, rows, n);
        columns += !left_out[i];
    }
    size_t cycle = t->repeats ? field_find_cycle(t, rows, n) : 0;
    codec_write_map(out, columns + extra);
    for (size_t i = 0; i < t->n; i++) {
        struct field_column c = {.f = &t->fields[i], .rows = rows, .stride = t->stride, .n = n};
        if (left_out[i])
            continue;
        codec_write_str(out, t->fields[i].key);
        if (t->repeats && field_choose_lag(&c, cycle))
            field_write_repeats(out, &c, strings);
        else
            field_write_all(out, &c, strings);
    }
}

void field_intern_columns(const struct field_table *t, const void *rows, size_t n, struct intern *strings) {
    for (size_t i = 0; i < t->n; i++)
        for (size_t r = 0; r < n && t->fields[i].kind == FIELD_STR; r++) {
            const char *s = field_str(&t->fields[i], (const char *)rows + r * t->stride);
            if (s)
                intern_string(strings, s);
        }
}

static int field_find(struct codec_cursor map, const struct field_table *t, struct codec_cursor *values,
                      struct err *e) {
    const char *keys[FIELD_MAX];
    for (size_t i = 0; i < t->n; i++)
        keys[i] = t->fields[i].key;
    if (codec_find(map, keys, t->n, values) != 0)
        return err_set(e, ERR_FAILED, "message is not valid: '%s' is not a map", t->name);
    return 0;
}

int field_read_pairs(struct codec_cursor map, const struct field_table *t, void *row, struct arena *arena,
                     struct err *e) {
    struct codec_cursor values[FIELD_MAX];
    for (size_t i = 0; i < t->n; i++)
        field_set_unknown(&t->fields[i], row);
    if (!map.at)
        return 0;
    if (field_find(map, t, values, e) != 0)
        return -1;
    for (size_t i = 0; i < t->n; i++)
        if (values[i].at && field_read(&values[i], &t->fields[i], row, NULL, arena) != 0)
            return arena->failed ? field_fail_memory(e, t->name) : field_fail(e, t->name, t->fields[i].key);
    return 0;
}

int field_read_strings(struct codec_cursor array, struct field_strings *out, struct arena *arena,
                       struct err *e) {
    *out = (struct field_strings){0};
    if (!array.at)
        return 0;
    size_t n;
    if (codec_read_array(&array, &n) != 0)
        return err_set(e, ERR_FAILED, "message is not valid: 'strings' is not an array");
    const char **list = arena_calloc(arena, n, sizeof *list);
    if (!list)
        return field_fail_memory(e, "strings");
    for (size_t i = 0; i < n; i++) {
        struct codec_token t;
        if (codec_read(&array, &t) != 0 || t.type != CODEC_STR)
            return err_set(e, ERR_FAILED, "message is not valid: 'strings' holds something else");
        list[i] = arena_strndup(arena, t.bytes, t.count);
        if (!list[i])
            return field_fail_memory(e, "strings");
    }
    *out = (struct field_strings){.list = list, .n = n};
    return 0;
}

int field_read_columns(struct codec_cursor map, const struct field_table *t, struct field_strings *strings,
                       struct arena *arena, void **rows, size_t *n, struct err *e) {
    struct codec_cursor columns[FIELD_MAX];
    size_t count = 0;
    *rows = NULL;
    *n = 0;
    if (!map.at)
        return 0;
    if (field_find(map, t, columns, e) != 0)
        return -1;
    struct field_source source;
    if (!columns[0].at || field_open(columns[0], &source, &count) != 0)
        return field_fail(e, t->name, t->fields[0].key);
    if ((t->shown && count > FIELD_MAX_SHOWN / t->shown) || field_show(strings, count * t->shown) != 0)
        return field_fail_shown(e, t->name);
    char *list = arena_calloc(arena, count, t->stride);
    if (!list)
        return field_fail_memory(e, t->name);
    for (size_t i = 0; i < t->n; i++) {
        struct field_column to = {.f = &t->fields[i], .rows = list, .stride = t->stride, .n = count};
        size_t len = count;
        if (columns[i].at && (field_open(columns[i], &source, &len) != 0 || len != count ||
                              field_read_source(&source, &to, list, strings, arena) != 0))
            return strings->shown > FIELD_MAX_SHOWN ? field_fail_shown(e, t->name)
                                                    : field_fail(e, t->name, to.f->key);
        for (size_t r = 0; !columns[i].at && r < count; r++)
            field_set_unknown(to.f, list + r * t->stride);
    }
    *rows = list;
    *n = count;
    return 0;
}
