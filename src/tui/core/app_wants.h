/* SPDX-License-Identifier: Apache-2.0 */
/* app_wants: what the app wants from its host now: which data, how often, and whether the display
 * changes with time alone. */
#ifndef TUI_CORE_APP_WANTS_H
#define TUI_CORE_APP_WANTS_H

#include "tui/core/app.h"

/* Time between two snapshots: longer while the view is frozen, when only the header shows them. */
double app_delay_s(const struct app *a);

/* Is a snapshot overdue? */
bool app_is_late(const struct app *a);

/* Should the stream of samples run now? */
bool app_wants_samples(const struct app *a);

/* Are these needed now? The agent is asked for its status once in any case: it says how it was
 * loaded. */
bool app_wants_proc_stats(const struct app *a);
bool app_wants_status(const struct app *a);

/* Does an open screen show the target's children, even below an overlay? */
bool app_shows_children(const struct app *a);

/* Does the display change with time alone (an age, a countdown)? */
bool app_needs_tick(const struct app *a);

#endif
