/* SPDX-License-Identifier: Apache-2.0 */
/* time_text: times and lengths of time as the screens write them. Pure. */
#ifndef TUI_VIEW_TIME_TEXT_H
#define TUI_VIEW_TIME_TEXT_H

#include <stddef.h>

/* The time of day with tenths: "22:13:20.5"; "?" if it is unknown. `time_s`: seconds since the
 * epoch. */
void time_text_clock(double time_s, char *buf, size_t cap);

/* A length: "120ms", "3.5s", "4m09s". */
void time_text_length(double seconds, char *buf, size_t cap);

#endif
