/* SPDX-License-Identifier: Apache-2.0 */
/* result_stats: see result_stats.h. */
#include "client/sql/result_stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RESULT_STATS_BYTES ((size_t)64 * 1024 * 1024)

/* Facts of a column whose rows are sorted: numbers first, then text, blobs, NULLs. */
struct result_facts {
    uint32_t *order;
    size_t numbers, nulls, distinct;
    double sum, squares, mean; /* squares: of the distances from the mean */
};

static int result_read_facts(const struct result *r, size_t column, struct result_facts *f) {
    *f = (struct result_facts){.order = malloc((r->n_rows + 1) * sizeof *f->order)};
    if (!f->order || result_sort(r, column, false, f->order) != 0) {
        free(f->order);
        return -1;
    }
    for (size_t i = 0; i < r->n_rows; i++) {
        size_t row = f->order[i];
        if (result_kind(r, row, column) == SQL_NULL) {
            f->nulls++;
            continue;
        }
        f->distinct += i == 0 || result_compare(r, column, f->order[i - 1], row) != 0;
        double v = result_number(r, row, column);
        if (isnan(v))
            continue;
        double away = v - f->mean;
        f->sum += v;
        f->mean += away / (double)++f->numbers;
        f->squares += away * (v - f->mean);
    }
    return 0;
}

/* Copy a value from one result to another. */
static int result_copy_value(struct result *to, size_t to_column, const struct result *r, size_t row,
                             size_t column) {
    const union result_value *v = &r->columns[column].values[row];
    enum sql_kind kind = result_kind(r, row, column);
    if (kind == SQL_INTEGER)
        result_put_int(to, to_column, v->i);
    else if (kind == SQL_REAL)
        result_put_real(to, to_column, v->f);
    else if (kind != SQL_NULL)
        return result_put_text(to, to_column, kind, v->s, result_length(r, row, column));
    return 0;
}

static int result_add_statistic(struct result *out, const char *name) {
    return result_add_row(out) != 0 ? -1 : result_put_text(out, 0, SQL_TEXT, name, strlen(name));
}

static int result_add_count(struct result *out, const char *name, size_t n) {
    if (result_add_statistic(out, name) != 0)
        return -1;
    result_put_int(out, 1, (int64_t)n);
    return 0;
}

static int result_add_real(struct result *out, const char *name, double v) {
    if (result_add_statistic(out, name) != 0)
        return -1;
    result_put_real(out, 1, v);
    return 0;
}

static int result_add_value(struct result *out, const char *name, const struct result *r, size_t row,
                            size_t column) {
    return result_add_statistic(out, name) != 0 ? -1 : result_copy_value(out, 1, r, row, column);
}

/* Interpolated between the two nearest values, like quantile() of SQL. */
static double result_quantile(const struct result *r, size_t column, const struct result_facts *f, double p) {
    double place = p * (double)(f->numbers - 1);
    size_t low = (size_t)place;
    double a = result_number(r, f->order[low], column);
    double b = low + 1 < f->numbers ? result_number(r, f->order[low + 1], column) : a;
    return a + (b - a) * (place - (double)low);
}

static int result_add_numbers(struct result *out, const struct result *r, size_t column,
                              const struct result_facts *f) {
    static const struct {
        const char *name;
        double p;
    } quantiles[] = {{"5 %", 0.05},  {"25 %", 0.25}, {"median", 0.5},
                     {"75 %", 0.75}, {"95 %", 0.95}, {"99 %", 0.99}};
    double n = (double)f->numbers;
    /* a sum of times has no meaning */
    bool is_time = strcmp(r->columns[column].type, "timestamp") == 0;
    int rc = result_add_real(out, "mean", f->mean);
    if (rc == 0 && f->numbers > 1 && !is_time)
        rc = result_add_real(out, "stddev", sqrt(f->squares / (n - 1)));
    if (rc == 0 && !is_time)
        rc = result_add_real(out, "sum", f->sum);
    for (size_t i = 0; rc == 0 && i < sizeof quantiles / sizeof quantiles[0]; i++)
        rc = result_add_real(out, quantiles[i].name, result_quantile(r, column, f, quantiles[i].p));
    return rc;
}

struct result *result_describe(const struct result *r, size_t column) {
    struct result_facts f;
    if (result_read_facts(r, column, &f) != 0)
        return NULL;
    struct result *out = result_new(2, 64, RESULT_STATS_BYTES);
    size_t known = r->n_rows - f.nulls;
    bool ok = out && result_name_column(out, 0, "statistic", "") == 0 &&
              result_name_column(out, 1, r->columns[column].name, r->columns[column].type) == 0 &&
              result_add_count(out, "rows", r->n_rows) == 0 && result_add_count(out, "nulls", f.nulls) == 0 &&
              result_add_count(out, "distinct", f.distinct) == 0;
    if (ok && known > 0)
        ok = result_add_value(out, "min", r, f.order[0], column) == 0 &&
             result_add_value(out, "max", r, f.order[known - 1], column) == 0;
    if (ok && f.numbers > 0)
        ok = result_add_numbers(out, r, column, &f) == 0;
    free(f.order);
    if (!ok) {
        result_unref(out);
        return NULL;
    }
    return out;
}

/* A run of equal values: its start in the order, and its length. */
struct result_run {
    size_t first, n;
};

static int result_compare_runs(const void *a, const void *b) {
    const struct result_run *x = a, *y = b;
    if (x->n != y->n)
        return x->n > y->n ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

struct result *result_frequency(const struct result *r, size_t column) {
    struct result_facts f;
    if (result_read_facts(r, column, &f) != 0)
        return NULL;
    struct result *out = result_new(3, RESULT_MAX_VALUES, RESULT_STATS_BYTES);
    struct result_run *runs = calloc(f.distinct + 2, sizeof *runs);
    bool ok =
        out && runs && result_name_column(out, 0, r->columns[column].name, r->columns[column].type) == 0 &&
        result_name_column(out, 1, "count", "integer") == 0 && result_name_column(out, 2, "percent", "") == 0;
    size_t n = 0;
    for (size_t i = 0; ok && i < r->n_rows; i++) {
        if (i == 0 || result_compare(r, column, f.order[i - 1], f.order[i]) != 0)
            runs[n++] = (struct result_run){.first = i};
        runs[n - 1].n++;
    }
    if (ok)
        qsort(runs, n, sizeof *runs, result_compare_runs);
    for (size_t i = 0; ok && i < n && result_add_row(out) == 0; i++) {
        result_put_int(out, 1, (int64_t)runs[i].n);
        result_put_real(out, 2, 100.0 * (double)runs[i].n / (double)r->n_rows);
        if (result_copy_value(out, 0, r, f.order[runs[i].first], column) != 0)
            break;
    }
    free(runs);
    free(f.order);
    if (!ok) {
        result_unref(out);
        return NULL;
    }
    return out;
}
