/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app_history: stepping through the snapshots of before, on every screen that shows what the target did. One thread.
 */
#ifndef TUI_CORE_APP_HISTORY_H
#define TUI_CORE_APP_HISTORY_H

#include <stdbool.h>
#include <stddef.h>

#include "client/samples/sample_store.h"
#include "tui/keys/action.h"
#include "tui/core/app.h"

/* Freeze what all screens show, or show the newest again. */
void app_set_paused(struct app *a, bool paused);

/* Do an action that is about the past: older, newer, End; false when it is none of them. */
bool app_history_act(struct app *a, enum action action);

/* While the view is frozen: when what is shown was, and how far behind the newest that is. "" when it is not, or nothing is shown.
 * Both are of data, so it is true however long nothing is drawn. */
void app_history_text(const struct app *a, char *buf, size_t cap);

/* The window of the tally to be shown where `chosen` was chosen: at a moment of the past, SAMPLE_STORE_SPAN, made as long as that and
 * ending there. A span that was set is kept until then. */
enum sample_store_window app_history_window(struct app *a, enum sample_store_window chosen);

/* Where a window that is shown begins and ends, on the samples' clock; false: that is not known. */
bool app_history_times(const struct app *a, enum sample_store_window chosen, double *from_s, double *to_s);

/* What stands where the window is named, at a moment of the past: "10.0s until 19:03:07, 3.2s of it known". False: one is not there. */
bool app_history_window_text(const struct app *a, enum sample_store_window chosen, char *buf, size_t cap);

/* What of a span is not known, because its samples are gone or nobody took any: ", 3.2s of it known"; "" nothing is missing. */
void app_history_known_text(const struct app *a, enum sample_store_window which, char *buf, size_t cap);

/* A span was made the window: what shows moments shows the last one of it, if one is kept. And it was let go. */
void app_history_enter_span(struct app *a, double from_s, double to_s);
void app_history_leave_span(struct app *a);

/* The present is shown again, or another target. */
void app_history_leave(struct app *a);

#endif
