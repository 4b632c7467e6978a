/* SPDX-License-Identifier: Apache-2.0 */
/* step_align: see step_align.h. */
#include "client/fleet/step_align.h"

#include <math.h>
#include <stdlib.h>

#define STEP_ALIGN_NEAR 4  /* shifts on either side of the one that times suggest */
#define STEP_ALIGN_PART 4  /* of a step: they differ by less than a quarter */
#define STEP_ALIGN_TWICE 2 /* as good as the next shift, at least */

static int step_align_compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The lower one of the middle; NAN: there are none. */
static double step_align_median(double *v, size_t n) {
    qsort(v, n, sizeof *v, step_align_compare);
    return n ? v[(n - 1) / 2] : NAN;
}

/* How much the ends of steps differ with that shift; NAN: too few are there. */
static double step_align_differ(const struct step_end *a, size_t n_a, const struct step_end *b, size_t n_b,
                                int64_t shift) {
    double differences[STEP_ALIGN_STEPS];
    size_t n = 0;
    for (size_t i = n_a, k = n_b; i > 0 && n < STEP_ALIGN_STEPS; i--) {
        while (k > 0 && b[k - 1].step > a[i - 1].step + shift)
            k--;
        if (k > 0 && b[k - 1].step == a[i - 1].step + shift)
            differences[n++] = fabs(b[k - 1].at - a[i - 1].at);
    }
    return n < STEP_ALIGN_LEAST ? NAN : step_align_median(differences, n);
}

static double step_align_period(const struct step_end *a, size_t n) {
    double periods[STEP_ALIGN_STEPS];
    size_t found = 0;
    for (size_t i = n; i > 1 && found < STEP_ALIGN_STEPS; i--)
        if (a[i - 1].step == a[i - 2].step + 1)
            periods[found++] = a[i - 1].at - a[i - 2].at;
    return step_align_median(periods, found);
}

/* The step that ended nearest to a time. */
static size_t step_align_nearest(const struct step_end *s, size_t n, double at) {
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        best = fabs(s[i].at - at) < fabs(s[best].at - at) ? i : best;
    return best;
}

bool step_align_find(const struct step_end *a, size_t n_a, const struct step_end *b, size_t n_b,
                     int64_t *shift) {
    if (n_a < STEP_ALIGN_LEAST || n_b < STEP_ALIGN_LEAST)
        return false;
    double at = fmin(a[n_a - 1].at, b[n_b - 1].at), period = step_align_period(a, n_a);
    int64_t middle = b[step_align_nearest(b, n_b, at)].step - a[step_align_nearest(a, n_a, at)].step;
    double best = NAN, next = NAN;
    int64_t found = 0;
    for (int64_t k = middle - STEP_ALIGN_NEAR; k <= middle + STEP_ALIGN_NEAR; k++) {
        double differ = step_align_differ(a, n_a, b, n_b, k);
        if (isnan(best) || differ < best) {
            next = best;
            best = differ;
            found = k;
        } else if (isnan(next) || differ < next)
            next = differ;
    }
    if (!(best < period / STEP_ALIGN_PART) || !(STEP_ALIGN_TWICE * best <= next))
        return false;
    *shift = found;
    return true;
}
