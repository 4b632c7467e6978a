/* SPDX-License-Identifier: Apache-2.0 */
/* trace_cost: see trace_cost.h. */
#include "agent/torch/trace_cost.h"

#include <math.h>
#include <stdlib.h>

/* of a hook's call besides the hook: a module's call with two of them took 1.6 us more */
#define TRACE_COST_CALL_NS 800
#define TRACE_COST_MANY 8  /* with fewer traced steps their differences may agree by chance */
#define TRACE_COST_SURE 2  /* standard errors by which a difference exceeds noise */
#define TRACE_COST_GUESS 2 /* factor on the cost measured so far, while the true one is not known */

void trace_cost_add(struct trace_cost *c, const struct trace_cost_step *l) {
    c->kept[c->n++ % TRACE_COST_KEPT] =
        (struct trace_cost_kept){.more_ns = l->step_ns - l->usual_ns, .hold_ns = l->hold_ns};
    c->hold_ns += l->hold_ns;
    c->own_ns += l->own_ns;
    c->within += l->within;
    c->outside += l->outside;
}

void trace_cost_add_gil(struct trace_cost *c, double ns) { c->hold_ns += ns; }

static int trace_cost_compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double trace_cost_median(double *values, size_t n) {
    if (n == 0)
        return NAN;
    qsort(values, n, sizeof values[0], trace_cost_compare);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static size_t trace_cost_kept(const struct trace_cost *c) {
    return c->n < TRACE_COST_KEPT ? c->n : TRACE_COST_KEPT;
}

static double trace_cost_median_gil(const struct trace_cost *c) {
    double values[TRACE_COST_KEPT];
    size_t n = trace_cost_kept(c);
    for (size_t i = 0; i < n; i++)
        values[i] = c->kept[i].hold_ns;
    return trace_cost_median(values, n);
}

/* The extra duration of traced steps: the median of the differences, if it clearly exceeds
 * `least`. */
static double trace_cost_step(double *values, size_t n, double least) {
    double off[TRACE_COST_KEPT], median = trace_cost_median(values, n);
    for (size_t i = 0; i < n; i++)
        off[i] = fabs(values[i] - median);
    /* of a median, normal noise */
    double error = 1.2533 * 1.4826 * trace_cost_median(off, n) / sqrt((double)n);
    return n >= TRACE_COST_MANY && median - least > TRACE_COST_SURE * error ? median : least;
}

/* The same, with the cost of hooks before and after; NAN if not known yet. */
static double trace_cost_more(const struct trace_cost *c) {
    double values[TRACE_COST_KEPT], looks = (double)c->n;
    size_t n = 0;
    for (size_t i = 0; i < trace_cost_kept(c); i++)
        if (!isnan(c->kept[i].more_ns))
            values[n++] = c->kept[i].more_ns;
    if (n < TRACE_COST_LEAST)
        return NAN;
    double own = c->own_ns / looks, within = c->within / looks;
    double more = trace_cost_step(values, n, own + within * TRACE_COST_CALL_NS);
    double a_call = within > 0 ? (more - own) / within : 0;
    return more + fmax(a_call, TRACE_COST_CALL_NS) * c->outside / looks;
}

double trace_cost_ns(const struct trace_cost *c) { return trace_cost_more(c) + trace_cost_median_gil(c); }

double trace_cost_pct(const struct trace_cost *c, double held_ns) {
    return held_ns > 0 ? 100 * (trace_cost_more(c) * (double)c->n + c->hold_ns) / held_ns : NAN;
}

double trace_cost_every_ns(const struct trace_cost *c, double step_ns, double rate_pct) {
    double cost = trace_cost_ns(c);
    if (isnan(cost) && c->n >= TRACE_COST_LEAST)
        cost = TRACE_COST_GUESS * (c->own_ns + c->hold_ns) / (double)c->n;
    double wanted = rate_pct > 0 ? step_ns * 100 / rate_pct : step_ns;
    return isnan(cost) ? wanted : fmax(wanted, cost * 100 / TRACE_COST_BUDGET_PCT);
}
