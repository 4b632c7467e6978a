/* SPDX-License-Identifier: Apache-2.0 */
/* time_text: see time_text.h. */
#include "tui/view/time_text.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

#include "base/text.h"

void time_text_clock(double time_s, char *buf, size_t cap) {
    char text[32] = "?";
    double tenths = floor(time_s * 10 + 1e-6);
    time_t t = (time_t)floor(tenths / 10);
    struct tm tm;
    if (isfinite(time_s) && localtime_r(&t, &tm))
        strftime(text, sizeof text, "%H:%M:%S", &tm);
    snprintf(buf, cap, "%s.%d", text, isfinite(time_s) ? (int)(tenths - (double)t * 10) : 0);
}

void time_text_length(double seconds, char *buf, size_t cap) {
    if (seconds < 0.95)
        snprintf(buf, cap, "%.0fms", seconds * 1000);
    else if (seconds < 99.95)
        snprintf(buf, cap, "%.1fs", seconds);
    else
        text_human_duration(buf, cap, seconds);
}
