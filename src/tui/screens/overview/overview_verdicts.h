/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overview_verdicts: the verdicts about the job (client/verdict/verdict.h) as lines of the
 * Overview. Pure.
 */
#ifndef TUI_SCREENS_OVERVIEW_OVERVIEW_VERDICTS_H
#define TUI_SCREENS_OVERVIEW_OVERVIEW_VERDICTS_H

#include "tui/core/app.h"
#include "tui/model/job_shot.h"
#include "tui/screens/overview/overview_state.h"

/* Most lines of verdicts; in a narrow column each takes more. */
#define OVERVIEW_VERDICT_LINES 8
#define OVERVIEW_VERDICT_LINES_NARROW 16

/* Request them, if they are due; every two seconds. */
void overview_verdicts_follow(struct app *app);

/* Column of the text, behind the name of a verdict; in a narrow area below it. */
int overview_verdicts_indent(int cols);

/* Make the lines for an area of `cols`, OVERVIEW_VERDICT_LINES_NARROW at most: texts are continued in lines without a name. Returns how
 * many. A line also explains why there are none. */
int overview_verdicts_lines(const struct app *app, int cols, struct overview_line *out);

/* The same of a job whose ranks are watched together; nothing is worth a warning: a line says so. Last the
 * hosts that give no news, with the reason. */
int overview_verdicts_job_lines(const struct job_shot *f, int cols, struct overview_line *out);

/* The role of a level (enum verdict_level). */
enum theme_role overview_verdict_role(int64_t level);

/* The action that opens the screen of that name; ACTION_NONE: there is none. */
enum action overview_verdict_opens(const char *screen);

#endif
