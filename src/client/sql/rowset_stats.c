/* SPDX-License-Identifier: Apache-2.0 */
/* rowset_stats: see rowset_stats.h. */
#include "client/sql/rowset_stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROWSET_STATS_BYTES ((size_t)64 * 1024 * 1024)

/* What is known of a column once its rows are in order: numbers first, then text, blobs, NULLs. */
struct rowset_facts {
    uint32_t *order;
    size_t numbers, nulls, distinct;
    double sum, squares, mean; /* squares: of the distances from the mean */
};

static int rowset_read_facts(const struct rowset *r, size_t column, struct rowset_facts *f) {
    *f = (struct rowset_facts){.order = malloc((r->n_rows + 1) * sizeof *f->order)};
    if (!f->order || rowset_sort(r, column, false, f->order) != 0) {
        free(f->order);
        return -1;
    }
    for (size_t i = 0; i < r->n_rows; i++) {
        size_t row = f->order[i];
        if (rowset_kind(r, row, column) == SQL_NULL) {
            f->nulls++;
            continue;
        }
        f->distinct += i == 0 || rowset_compare(r, column, f->order[i - 1], row) != 0;
        double v = rowset_number(r, row, column);
        if (isnan(v))
            continue;
        double away = v - f->mean;
        f->sum += v;
        f->mean += away / (double)++f->numbers;
        f->squares += away * (v - f->mean);
    }
    return 0;
}

/* Put a value of one set into another. */
static int rowset_copy_value(struct rowset *to, size_t to_column, const struct rowset *r, size_t row,
                             size_t column) {
    const union rowset_value *v = &r->columns[column].values[row];
    enum sql_kind kind = rowset_kind(r, row, column);
    if (kind == SQL_INTEGER)
        rowset_put_int(to, to_column, v->i);
    else if (kind == SQL_REAL)
        rowset_put_real(to, to_column, v->f);
    else if (kind != SQL_NULL)
        return rowset_put_text(to, to_column, kind, v->s, rowset_length(r, row, column));
    return 0;
}

static int rowset_add_statistic(struct rowset *out, const char *name) {
    return rowset_add_row(out) != 0 ? -1 : rowset_put_text(out, 0, SQL_TEXT, name, strlen(name));
}

static int rowset_add_count(struct rowset *out, const char *name, size_t n) {
    if (rowset_add_statistic(out, name) != 0)
        return -1;
    rowset_put_int(out, 1, (int64_t)n);
    return 0;
}

static int rowset_add_real(struct rowset *out, const char *name, double v) {
    if (rowset_add_statistic(out, name) != 0)
        return -1;
    rowset_put_real(out, 1, v);
    return 0;
}

static int rowset_add_value(struct rowset *out, const char *name, const struct rowset *r, size_t row,
                            size_t column) {
    return rowset_add_statistic(out, name) != 0 ? -1 : rowset_copy_value(out, 1, r, row, column);
}

/* Between the two values nearest to the place, as quantile() of SQL has it. */
static double rowset_quantile(const struct rowset *r, size_t column, const struct rowset_facts *f, double p) {
    double place = p * (double)(f->numbers - 1);
    size_t low = (size_t)place;
    double a = rowset_number(r, f->order[low], column);
    double b = low + 1 < f->numbers ? rowset_number(r, f->order[low + 1], column) : a;
    return a + (b - a) * (place - (double)low);
}

static int rowset_add_numbers(struct rowset *out, const struct rowset *r, size_t column,
                              const struct rowset_facts *f) {
    static const struct {
        const char *name;
        double p;
    } quantiles[] = {{"5 %", 0.05},  {"25 %", 0.25}, {"median", 0.5},
                     {"75 %", 0.75}, {"95 %", 0.95}, {"99 %", 0.99}};
    double n = (double)f->numbers;
    bool is_time = strcmp(r->columns[column].type, "timestamp") == 0; /* a sum of times is none */
    int rc = rowset_add_real(out, "mean", f->mean);
    if (rc == 0 && f->numbers > 1 && !is_time)
        rc = rowset_add_real(out, "stddev", sqrt(f->squares / (n - 1)));
    if (rc == 0 && !is_time)
        rc = rowset_add_real(out, "sum", f->sum);
    for (size_t i = 0; rc == 0 && i < sizeof quantiles / sizeof quantiles[0]; i++)
        rc = rowset_add_real(out, quantiles[i].name, rowset_quantile(r, column, f, quantiles[i].p));
    return rc;
}

struct rowset *rowset_describe(const struct rowset *r, size_t column) {
    struct rowset_facts f;
    if (rowset_read_facts(r, column, &f) != 0)
        return NULL;
    struct rowset *out = rowset_new(2, 64, ROWSET_STATS_BYTES);
    size_t known = r->n_rows - f.nulls;
    bool ok = out && rowset_name_column(out, 0, "statistic", "") == 0 &&
              rowset_name_column(out, 1, r->columns[column].name, r->columns[column].type) == 0 &&
              rowset_add_count(out, "rows", r->n_rows) == 0 && rowset_add_count(out, "nulls", f.nulls) == 0 &&
              rowset_add_count(out, "distinct", f.distinct) == 0;
    if (ok && known > 0)
        ok = rowset_add_value(out, "min", r, f.order[0], column) == 0 &&
             rowset_add_value(out, "max", r, f.order[known - 1], column) == 0;
    if (ok && f.numbers > 0)
        ok = rowset_add_numbers(out, r, column, &f) == 0;
    free(f.order);
    if (!ok) {
        rowset_unref(out);
        return NULL;
    }
    return out;
}

/* A run of equal values: where it begins in the order, and how many. */
struct rowset_run {
    size_t first, n;
};

static int rowset_compare_runs(const void *a, const void *b) {
    const struct rowset_run *x = a, *y = b;
    if (x->n != y->n)
        return x->n > y->n ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

struct rowset *rowset_frequency(const struct rowset *r, size_t column) {
    struct rowset_facts f;
    if (rowset_read_facts(r, column, &f) != 0)
        return NULL;
    struct rowset *out = rowset_new(3, ROWSET_MAX_VALUES, ROWSET_STATS_BYTES);
    struct rowset_run *runs = calloc(f.distinct + 2, sizeof *runs);
    bool ok =
        out && runs && rowset_name_column(out, 0, r->columns[column].name, r->columns[column].type) == 0 &&
        rowset_name_column(out, 1, "count", "integer") == 0 && rowset_name_column(out, 2, "percent", "") == 0;
    size_t n = 0;
    for (size_t i = 0; ok && i < r->n_rows; i++) {
        if (i == 0 || rowset_compare(r, column, f.order[i - 1], f.order[i]) != 0)
            runs[n++] = (struct rowset_run){.first = i};
        runs[n - 1].n++;
    }
    if (ok)
        qsort(runs, n, sizeof *runs, rowset_compare_runs);
    for (size_t i = 0; ok && i < n && rowset_add_row(out) == 0; i++) {
        rowset_put_int(out, 1, (int64_t)runs[i].n);
        rowset_put_real(out, 2, 100.0 * (double)runs[i].n / (double)r->n_rows);
        if (rowset_copy_value(out, 0, r, f.order[runs[i].first], column) != 0)
            break;
    }
    free(runs);
    free(f.order);
    if (!ok) {
        rowset_unref(out);
        return NULL;
    }
    return out;
}
