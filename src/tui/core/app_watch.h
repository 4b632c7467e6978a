/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app_watch: watching the value of a local variable of the job: it is put into what probing.torch_profiling says, or taken out of it; whether
 * modules are traced is left as it is. What that says now is asked of the agent first. Pure but for the app; one thread.
 */
#ifndef TUI_CORE_APP_WATCH_H
#define TUI_CORE_APP_WATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "tui/core/app.h"

/* Begin or end to watch a local variable of a function. The agent is asked for its settings first. */
void app_watch_local(struct app *a, const char *name, const char *func);

/* The agent about itself: the setting is changed, if something is to be watched. */
void app_watch_take(struct app *a, const struct model_status *s);

/* What a value of probing.torch_profiling becomes with an expression more, or without it when it was there; `*on` is whether it is there
 * then. 0, or -1 with the error. */
int app_watch_turn(const char *before, const char *expr, char *value, size_t cap, bool *on, struct err *e);

#endif
