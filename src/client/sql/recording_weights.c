/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recording_weigh: how long each sample of the tables stands for; see recording_weigh in recording.h.
 *
 * A look stands for the time that is nearer to it than to any other: half of what lies before it and half of what lies after. So
 * whatever looks there were, and at whatever rate, the time between two of them is counted once. Where none were taken for much longer than
 * they are apart on either side, nobody looked: that time belongs to no sample.
 */
#include <math.h>
#include <stdlib.h>

#include "client/sql/recording.h"

#define RECORDING_NEAR 16 /* distances on either side that say what is usual there */
#define RECORDING_PAUSE                                                                                      \
    12 /* so many times what is usual (waits of the sampler end at 8 means, which is 11.6 medians), */
#define RECORDING_PAUSE_S 0.5 /* and no less than that: a look that the machine was late with is no pause */

static int recording_compare_times(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of at most RECORDING_NEAR distances; NAN of none. */
static double recording_usual(const double *apart, size_t n) {
    double sorted[RECORDING_NEAR];
    if (n == 0)
        return NAN;
    for (size_t i = 0; i < n; i++)
        sorted[i] = apart[i];
    qsort(sorted, n, sizeof sorted[0], recording_compare_times);
    return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

/* Of distance number `i` of `n`: what it gives to the look before it and to the one after it, in seconds. */
static void recording_share(const double *apart, size_t n, size_t i, double *before, double *after) {
    size_t first = i < RECORDING_NEAR ? 0 : i - RECORDING_NEAR, left = n - i - 1;
    double earlier = recording_usual(apart + first, i - first),
           later = recording_usual(apart + i + 1, left < RECORDING_NEAR ? left : RECORDING_NEAR);
    double usual = fmax(earlier, later); /* of one that is known, that */
    bool pause = apart[i] >= RECORDING_PAUSE_S && apart[i] > RECORDING_PAUSE * usual;
    *before = (!pause ? apart[i] : isnan(earlier) ? usual : earlier) / 2;
    *after = (!pause ? apart[i] : isnan(later) ? usual : later) / 2;
}

/* Times of all looks, each once; how many there are. */
static size_t recording_list_ticks(const struct recording *p, double *times) {
    size_t n = 0;
    for (size_t i = 0; i < p->n_samples; i++)
        if (n == 0 || p->samples[i].timestamp > times[n - 1])
            times[n++] = p->samples[i].timestamp;
    return n;
}

/* `times` of `n` looks become what they stand for, in seconds; `apart` has room for as many. */
static void recording_weigh_ticks(double *times, double *apart, size_t n) {
    double before, after, half = 0;
    for (size_t i = 0; i + 1 < n; i++)
        apart[i] = times[i + 1] - times[i];
    for (size_t i = 0; i + 1 < n; i++) {
        recording_share(apart, n - 1, i, &before, &after);
        times[i] = (i ? half : before) + before; /* of what was before the first nothing is known */
        half = after;
    }
    times[n - 1] = 2 * half;
}

int recording_weigh(struct recording *p) {
    double *times, *apart;
    if (p->n_samples == 0)
        return 0;
    p->us = arena_calloc(&p->arena, p->n_samples, sizeof *p->us);
    times = calloc(p->n_samples, sizeof *times);
    apart = calloc(p->n_samples, sizeof *apart);
    if (!p->us || !times || !apart) {
        free(times);
        free(apart);
        return -1;
    }
    recording_weigh_ticks(times, apart, recording_list_ticks(p, times));
    size_t look = 0;
    for (size_t i = 0; i < p->n_samples; i++) {
        look += i > 0 && p->samples[i].timestamp > p->samples[i - 1].timestamp;
        p->us[i] = times[look] * 1e6;
    }
    free(times);
    free(apart);
    return 0;
}
