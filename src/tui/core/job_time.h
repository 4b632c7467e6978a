/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_time: goes to earlier moments of the job whose ranks are watched, on the screens that show it.
 *
 * Of hosts that are linked these are the shots that were drawn; a database has all of them. The view is frozen then.
 */
#ifndef TUI_CORE_JOB_TIME_H
#define TUI_CORE_JOB_TIME_H

#include <stdbool.h>
#include <stddef.h>

#include "tui/core/app.h"

/* Is one of these screens on top? */
bool job_time_is_shown(const struct app *a);

/* A time of day, "19:03:07"; with the day if that is long ago. */
void job_time_put_clock(const struct app *a, double at_s, char *buf, size_t cap);

/* Which moment a frozen view shows: "at 19:03:07, 12s behind"; "": no ranks are known yet. */
void job_time_put_text(const struct app *a, char *buf, size_t cap);

/* Show the ranks as they were at a time, in seconds since the epoch. With a message if that is not known. */
void job_time_go_to(struct app *a, double at_s);

/* The moment before or after, and the end of that. False: another action, or another screen. */
bool job_time_act(struct app *a, enum action action);

#endif
