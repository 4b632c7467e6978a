/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app_history: steps through earlier snapshots, on every screen that shows what the target did. One
 * thread.
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

/* An action about the past: older, newer, End; false: another one. */
bool app_history_act(struct app *a, enum action action);

/* While the view is frozen: the time of what is shown, and how far that is behind the newest. "" if
 * it is not frozen or shows nothing. Both times are from the data, so the text stays true when
 * nothing is drawn for a while. */
void app_history_text(const struct app *a, char *buf, size_t cap);

/* The window of the tally to show where `chosen` was chosen: at an earlier moment
 * SAMPLE_STORE_SPAN, set to the same length and ending there. The user's span is kept until
 * then. */
enum sample_store_window app_history_window(struct app *a, enum sample_store_window chosen);

/* Beginning and end of a window that is shown, on the samples' clock; false: unknown. */
bool app_history_times(const struct app *a, enum sample_store_window chosen, double *from_s, double *to_s);

/* The name of a window at an earlier moment: "10.0s until 19:03:07, 3.2s of it known". False: the
 * newest is shown. */
bool app_history_window_text(const struct app *a, enum sample_store_window chosen, char *buf, size_t cap);

/* What is known of a span, because its samples are gone or nobody took any: ", 3.2s of it known";
 * "": all of it. */
void app_history_known_text(const struct app *a, enum sample_store_window which, char *buf, size_t cap);

/* A span became the window: show the last snapshot in it, if one is kept. And it is dropped. */
void app_history_enter_span(struct app *a, double from_s, double to_s);
void app_history_leave_span(struct app *a);

/* The newest is shown again, or another target. */
void app_history_leave(struct app *a);

#endif
