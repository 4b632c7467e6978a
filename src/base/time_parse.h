/* SPDX-License-Identifier: Apache-2.0 */
/* time_parse: a point in time, as a user types it. */
#ifndef BASE_TIME_PARSE_H
#define BASE_TIME_PARSE_H

#include <stdbool.h>
#include <stddef.h>

/* What a message says of a text that is none. */
#define TIME_PARSE_FORMS "as in 22:13:20, 2026-11-27T22:13 or 90s, 10m, 3h, 2d (ago)"

/* Parse `len` bytes: a time of day, "22:13" or "22:13:20.5", the one nearest to `now_s` that is at most half a day
 * after it; a date with one, "2026-11-27T22:13:20", by the clock of this host's time zone; how long ago, "90s",
 * "1.5h"; or seconds since the epoch, "@1764281600.5". `*out` is in seconds since the epoch. False: it is none of
 * these. */
bool time_parse(const char *text, size_t len, double now_s, double *out);

#endif
