/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app_watch: watches the value of a local variable of the job: adds it to probing.torch_profiling
 * or removes it; whether modules are traced stays as it is. The agent is asked for the setting
 * first. Pure but for the app; one thread.
 */
#ifndef TUI_CORE_APP_WATCH_H
#define TUI_CORE_APP_WATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "tui/core/app.h"

/* Toggle watching a local variable of a function. The agent is asked for its settings first. */
void app_watch_local(struct app *a, const char *name, const char *func);

/* The agent's status: changes the setting if a variable is to be watched. */
void app_watch_take(struct app *a, const struct model_status *s);

/* The value of probing.torch_profiling with an expression added, or removed if it is there; `*on`:
 * it was added. 0, or -1 with the error. */
int app_watch_turn(const char *before, const char *expr, char *value, size_t cap, bool *on, struct err *e);

#endif
