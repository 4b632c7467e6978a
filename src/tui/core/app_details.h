/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app_details: what a screen asks for besides snapshots and samples: variables, tasks or native frames of a thread, and lines
 * of source files.
 */
#ifndef TUI_CORE_APP_DETAILS_H
#define TUI_CORE_APP_DETAILS_H

#include "tui/core/app.h"

/* Ask for the variables, tasks or native frames of a thread; the answer is moved out of *s. */
void app_ask_details(struct app *a, const struct wire_threads *want);
void app_take_locals(struct app *a, struct model_snapshot *s);

/* Have lines of a file of the target read, from line `from` on: they come to app->source. Asked for again, nothing happens. */
void app_want_source(struct app *a, const char *path, int from);

/* They were read, or could not be; taken over. */
void app_take_source(struct app *a, struct source_text *text);
void app_forget_source(struct app *a);

#endif
