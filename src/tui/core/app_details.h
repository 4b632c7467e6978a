/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app_details: what a screen requests besides snapshots and samples: variables, tasks or native
 * frames of a thread, and lines of source files.
 */
#ifndef TUI_CORE_APP_DETAILS_H
#define TUI_CORE_APP_DETAILS_H

#include "tui/core/app.h"

/* Request the variables, tasks or native frames of a thread; the answer is moved out of *s. */
void app_ask_details(struct app *a, const struct wire_threads *want);
void app_take_locals(struct app *a, struct model_snapshot *s);

/* Request the lines of a file of the target, from line `from` on: they arrive in app->source. The
 * same request again does nothing. */
void app_want_source(struct app *a, const char *path, int from);

/* They were read, or could not be; takes ownership. */
void app_take_source(struct app *a, struct source_text *text);
void app_forget_source(struct app *a);

#endif
