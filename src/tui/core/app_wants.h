/* SPDX-License-Identifier: Apache-2.0 */
/* app_wants: what the app wants of its host now: which data, how often, and whether time has to be shown. */
#ifndef TUI_CORE_APP_WANTS_H
#define TUI_CORE_APP_WANTS_H

#include "tui/core/app.h"

/* Time between two snapshots as it is now: while the view is paused nobody looks at those that come, but for the header. */
double app_delay_s(const struct app *a);

/* Should a snapshot have come by now? */
bool app_is_late(const struct app *a);

/* Is the stream of samples to come now? */
bool app_wants_samples(const struct app *a);

/* Is there use for those now? The agent is asked once in any case: by which way it came in. */
bool app_wants_proc_stats(const struct app *a);
bool app_wants_status(const struct app *a);

/* Are they on the screen, be it under something that lies over it? */
bool app_shows_children(const struct app *a);

/* Does what is drawn change by time alone (an age, a countdown)? */
bool app_needs_tick(const struct app *a);

#endif
