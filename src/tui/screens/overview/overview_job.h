/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overview_job: the lines of the Overview screen about a job none of whose ranks is open: its verdicts, and what all
 * ranks together do and take. Pure.
 */
#ifndef TUI_SCREENS_OVERVIEW_OVERVIEW_JOB_H
#define TUI_SCREENS_OVERVIEW_OVERVIEW_JOB_H

#include "tui/core/app.h"
#include "tui/screens/overview/overview_state.h"

/* For an area of `cols`, with `events` of the log at most. */
void overview_job_build(struct overview *out, const struct app *app, int cols, size_t events);

#endif
