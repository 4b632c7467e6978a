/* SPDX-License-Identifier: Apache-2.0 */
/* sql_aggregate: quantiles, deviations and regressions over many rows. NULLs are left out, as
 * everywhere in SQL. */
#include <math.h>
#include <string.h>

#include "store/sql/sql_internal.h"

/* ---- quantiles: all values, then the requested one ---- */

struct sql_values {
    double *values;
    size_t n, cap;
    double p;
    bool bad_p, full;
};

static void sql_values_add(sqlite3_context *c, sqlite3_value *v, double p) {
    struct sql_values *a = sqlite3_aggregate_context(c, sizeof *a);
    if (!a)
        return;
    a->p = p;
    a->bad_p = a->bad_p || !(p >= 0 && p <= 1);
    int type = sqlite3_value_numeric_type(v);
    if ((type != SQLITE_INTEGER && type != SQLITE_FLOAT) || a->full)
        return;
    if (a->n == a->cap) {
        size_t cap = a->cap ? a->cap * 2 : 64;
        double *more = sqlite3_realloc64(a->values, cap * sizeof *more);
        if (!more) {
            a->full = true;
            return;
        }
        a->values = more;
        a->cap = cap;
    }
    a->values[a->n++] = sqlite3_value_double(v);
}

static void sql_quantile_step(sqlite3_context *c, int n, sqlite3_value **v) {
    (void)n;
    int type = sqlite3_value_numeric_type(v[1]);
    sql_values_add(c, v[0],
                   type == SQLITE_INTEGER || type == SQLITE_FLOAT ? sqlite3_value_double(v[1]) : NAN);
}

static void sql_median_step(sqlite3_context *c, int n, sqlite3_value **v) {
    (void)n;
    sql_values_add(c, v[0], 0.5);
}

static void sql_swap(double *a, size_t i, size_t j) {
    double t = a[i];
    a[i] = a[j];
    a[j] = t;
}

/* Put the k-th smallest at index k, smaller ones before it (Hoare's selection, with the median
 * of three as pivot). */
static double sql_select(double *a, size_t n, size_t k) {
    size_t lo = 0, hi = n - 1;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (a[mid] < a[lo])
            sql_swap(a, mid, lo);
        if (a[hi] < a[lo])
            sql_swap(a, hi, lo);
        if (a[hi] < a[mid])
            sql_swap(a, hi, mid);
        double pivot = a[mid];
        size_t i = lo, j = hi;
        while (i <= j) {
            while (a[i] < pivot)
                i++;
            while (pivot < a[j])
                j--;
            if (i > j)
                break;
            sql_swap(a, i++, j);
            if (j == 0)
                break;
            j--;
        }
        if (k <= j)
            hi = j;
        else if (k >= i)
            lo = i;
        else
            break;
    }
    return a[k];
}

/* Between two values in proportion, as percentile_cont and numpy do. */
static void sql_quantile_final(sqlite3_context *c) {
    struct sql_values *a = sqlite3_aggregate_context(c, 0);
    if (!a)
        return;
    if (a->full) {
        sqlite3_result_error_nomem(c);
    } else if (a->bad_p) {
        sqlite3_result_error(c, "quantile(x, p): p is a number from 0 to 1", -1);
    } else if (a->n > 0) {
        double at = a->p * (double)(a->n - 1);
        size_t k = (size_t)at;
        double low = sql_select(a->values, a->n, k), part = at - (double)k, high = low;
        for (size_t i = k + 1; part > 0 && i < a->n; i++)
            high = i == k + 1 || a->values[i] < high ? a->values[i] : high;
        sqlite3_result_double(c, part > 0 ? low + part * (high - low) : low);
    }
    sqlite3_free(a->values);
    a->values = NULL;
}

/* ---- moments: Welford's method, which does not lose small values beside large ones ---- */

struct sql_sums {
    double n, mean_x, mean_y, xx, yy, xy;
};

static void sql_sums_add(sqlite3_context *c, sqlite3_value *vy, sqlite3_value *vx) {
    struct sql_sums *m = sqlite3_aggregate_context(c, sizeof *m);
    int ty = sqlite3_value_numeric_type(vy), tx = sqlite3_value_numeric_type(vx);
    if (!m || (ty != SQLITE_INTEGER && ty != SQLITE_FLOAT) || (tx != SQLITE_INTEGER && tx != SQLITE_FLOAT))
        return;
    double y = sqlite3_value_double(vy), x = sqlite3_value_double(vx);
    m->n++;
    double dx = x - m->mean_x, dy = y - m->mean_y;
    m->mean_x += dx / m->n;
    m->mean_y += dy / m->n;
    m->xx += dx * (x - m->mean_x);
    m->yy += dy * (y - m->mean_y);
    m->xy += dx * (y - m->mean_y);
}

static void sql_one_step(sqlite3_context *c, int n, sqlite3_value **v) {
    (void)n;
    sql_sums_add(c, v[0], v[0]);
}

static void sql_two_step(sqlite3_context *c, int n, sqlite3_value **v) {
    (void)n;
    sql_sums_add(c, v[0], v[1]);
}

static void sql_variance_final(sqlite3_context *c) {
    const struct sql_sums *m = sqlite3_aggregate_context(c, 0);
    if (m && m->n > 1)
        sqlite3_result_double(c, m->yy / (m->n - 1));
}

static void sql_stddev_final(sqlite3_context *c) {
    const struct sql_sums *m = sqlite3_aggregate_context(c, 0);
    if (m && m->n > 1)
        sqlite3_result_double(c, sqrt(m->yy / (m->n - 1)));
}

static void sql_stddev_pop_final(sqlite3_context *c) {
    const struct sql_sums *m = sqlite3_aggregate_context(c, 0);
    if (m && m->n > 0)
        sqlite3_result_double(c, sqrt(m->yy / m->n));
}

static void sql_slope_final(sqlite3_context *c) {
    const struct sql_sums *m = sqlite3_aggregate_context(c, 0);
    if (m && m->n > 1 && m->xx > 0)
        sqlite3_result_double(c, m->xy / m->xx);
}

static void sql_intercept_final(sqlite3_context *c) {
    const struct sql_sums *m = sqlite3_aggregate_context(c, 0);
    if (m && m->n > 1 && m->xx > 0)
        sqlite3_result_double(c, m->mean_y - m->xy / m->xx * m->mean_x);
}

static void sql_corr_final(sqlite3_context *c) {
    const struct sql_sums *m = sqlite3_aggregate_context(c, 0);
    if (m && m->n > 1 && m->xx > 0 && m->yy > 0)
        sqlite3_result_double(c, m->xy / sqrt(m->xx * m->yy));
}

int sql_aggregate_register(struct sql *s, struct err *e) {
    static const struct {
        const char *name;
        int arguments;
        void (*step)(sqlite3_context *, int, sqlite3_value **);
        void (*final)(sqlite3_context *);
    } list[] = {
        {"quantile", 2, sql_quantile_step, sql_quantile_final},
        {"median", 1, sql_median_step, sql_quantile_final},
        {"stddev", 1, sql_one_step, sql_stddev_final},
        {"stddev_pop", 1, sql_one_step, sql_stddev_pop_final},
        {"variance", 1, sql_one_step, sql_variance_final},
        {"regr_slope", 2, sql_two_step, sql_slope_final},
        {"regr_intercept", 2, sql_two_step, sql_intercept_final},
        {"corr", 2, sql_two_step, sql_corr_final},
    };
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        if (sqlite3_create_function_v2(s->db, list[i].name, list[i].arguments,
                                       SQLITE_UTF8 | SQLITE_DETERMINISTIC, s, NULL, list[i].step,
                                       list[i].final, NULL) != SQLITE_OK)
            return sql_db_error(s, e, "cannot add the functions");
    return 0;
}
