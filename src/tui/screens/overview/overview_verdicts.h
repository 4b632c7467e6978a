/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overview_verdicts: the verdicts about the job (client/verdict/verdict.h) as lines of the
 * Overview. Pure.
 */
#ifndef TUI_SCREENS_OVERVIEW_OVERVIEW_VERDICTS_H
#define TUI_SCREENS_OVERVIEW_OVERVIEW_VERDICTS_H

#include "tui/core/app.h"
#include "tui/screens/overview/overview_state.h"

#define OVERVIEW_VERDICT_LINES 8

/* Request them, if they are due; every two seconds. */
void overview_verdicts_follow(struct app *app);

/* Make the lines: texts at most `cols` wide, continued in lines without a label. Returns how many.
 * A line also says why there are none. */
int overview_verdicts_lines(const struct app *app, int cols, struct overview_line *out, int max);

/* The role of a level (enum verdict_level). */
enum theme_role overview_verdict_role(int64_t level);

/* The action that opens the screen of that name; ACTION_NONE: there is none. */
enum action overview_verdict_opens(const char *screen);

#endif
