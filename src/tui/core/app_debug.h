/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app_debug: a debugger in the job, requested from here: the key B, and :debug, :pause-job and
 * :catch; see client/session/debug_command.h.
 *
 * It is requested through the Repl screen (app_repl.h), one thing at a time, and answered there.
 * What was started from here is ended by the agent when probing-top exits, unless somebody uses it
 * then or --keep was given. One thread.
 */
#ifndef TUI_CORE_APP_DEBUG_H
#define TUI_CORE_APP_DEBUG_H

#include <stdbool.h>

#include "tui/core/app.h"

struct command_choices;

/* The key; false: the action is another one. */
bool app_debug_act(struct app *a, enum action action);

/* A command: start it, or do what its options say. */
void app_debug_command(struct app *a, const struct debug_command_def *def, const char *argument);
void app_debug_complete(const struct debug_command_def *def, struct command_choices *out);

/* The answer, borrowed: it goes into the log of the Repl screen. */
void app_debug_take(struct app *a, const struct wire_debugger *what);

/* The connection is a new one: nothing is started from here now. */
void app_debug_forget(struct app *a);

#endif
