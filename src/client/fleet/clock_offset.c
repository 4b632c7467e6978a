/* SPDX-License-Identifier: Apache-2.0 */
/* clock_offset: see clock_offset.h. */
#include "client/fleet/clock_offset.h"

#include <math.h>

#define CLOCK_OFFSET_ROUNDED_MS 0.01 /* times are doubles of seconds since the epoch */

void clock_offset_add(struct clock_offset *c, double sent, double theirs, double received, double took_s) {
    double ahead_s = theirs - (sent + received) / 2;
    if (!isfinite(ahead_s) || !(took_s >= 0))
        return;
    double before_ms, error_ms;
    /* both cannot be true of one clock: it was set in between, or runs apart */
    if (clock_offset_get(c, &before_ms, &error_ms) &&
        fabs(ahead_s * 1e3 - before_ms) > error_ms + took_s / 2 * 1e3 + CLOCK_OFFSET_ROUNDED_MS)
        c->n = 0;
    c->answers[c->n++ % CLOCK_OFFSET_KEPT] = (struct clock_offset_answer){ahead_s, took_s};
}

bool clock_offset_get(const struct clock_offset *c, double *ahead_ms, double *error_ms) {
    const struct clock_offset_answer *best = NULL;
    for (size_t i = 0; i < c->n && i < CLOCK_OFFSET_KEPT; i++)
        if (!best || c->answers[i].took_s < best->took_s)
            best = &c->answers[i];
    *ahead_ms = best ? best->ahead_s * 1e3 : NAN;
    *error_ms = best ? best->took_s / 2 * 1e3 : NAN;
    return best != NULL;
}
