/* SPDX-License-Identifier: Apache-2.0 */
/* meter: see meter.h. */
#include "tui/model/meter.h"

#include <math.h>
#include <string.h>

void meter_add(struct meter *m, double value) {
    m->values[m->next] = value;
    m->next = (m->next + 1) % METER_MAX;
    if (m->count < METER_MAX)
        m->count++;
}

void meter_clear(struct meter *m) { memset(m, 0, sizeof *m); }

double meter_at(const struct meter *m, int back) {
    return back < m->count ? m->values[(m->next - 1 - back + 2 * METER_MAX) % METER_MAX] : NAN;
}

double meter_mean(const struct meter *m, int n) {
    double sum = 0;
    int known = 0;
    for (int i = 0; i < n && i < m->count; i++)
        if (!isnan(meter_at(m, i))) {
            sum += meter_at(m, i);
            known++;
        }
    return known ? sum / known : NAN;
}

double meter_max(const struct meter *m, int n, double least) {
    for (int i = 0; i < n && i < m->count; i++)
        if (meter_at(m, i) > least)
            least = meter_at(m, i);
    return least;
}

#define METER_TREND 4  /* a change by one part of so many takes the whole height */
#define METER_LOWEST 8 /* a bar has so many heights */

struct meter_scale meter_trend(const struct meter *m, int n) {
    double least = NAN, most = NAN;
    for (int i = 0; i < n && i < m->count; i++) {
        least = fmin(least, meter_at(m, i));
        most = fmax(most, meter_at(m, i));
    }
    double span = fmax(most - least, most / METER_TREND);
    if (!(span > 0))
        return (struct meter_scale){0, 1};
    return (struct meter_scale){least - span / METER_LOWEST, least + span};
}
