/* SPDX-License-Identifier: Apache-2.0 */
/* clock_offset: see clock_offset.h. */
#include "client/fleet/clock_offset.h"

#include <math.h>

#define CLOCK_OFFSET_ROUNDED_MS 0.01 /* times are doubles of seconds since the epoch */
#define CLOCK_OFFSET_RUNS                                                                                    \
    1e-3 /* clocks that nobody sets run apart by so much of a second in each: NTP turns them */

/* Whether a clock was set between two answers: it is further off than clocks run apart in that time. */
static bool clock_offset_is_set(const struct clock_offset_answer *before,
                                const struct clock_offset_answer *now) {
    double may_s = (before->took_s + now->took_s) / 2 + CLOCK_OFFSET_RUNS * fabs(now->sent - before->sent);
    return fabs(now->ahead_s - before->ahead_s) > may_s + CLOCK_OFFSET_ROUNDED_MS / 1e3;
}

bool clock_offset_add(struct clock_offset *c, double sent, double theirs, double received, double took_s) {
    double ahead_s = theirs - (sent + received) / 2;
    if (!isfinite(ahead_s) || !(took_s >= 0))
        return false;
    struct clock_offset_answer now = {.ahead_s = ahead_s, .took_s = took_s, .sent = sent};
    bool is_set = c->n && clock_offset_is_set(&c->answers[(c->n - 1) % CLOCK_OFFSET_KEPT], &now);
    double before_ms, error_ms;
    /* both cannot be true of one clock: it was set in between, or runs apart */
    if (is_set || (clock_offset_get(c, &before_ms, &error_ms) &&
                   fabs(ahead_s * 1e3 - before_ms) > error_ms + took_s / 2 * 1e3 + CLOCK_OFFSET_ROUNDED_MS))
        c->n = 0;
    c->answers[c->n++ % CLOCK_OFFSET_KEPT] = now;
    return is_set;
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
