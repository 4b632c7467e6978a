/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app_debug: a debugger in the job, asked for from here: the key B, and :debug, :pause-job and :catch; see client/session/debug_command.h.
 *
 * Asked where code of the Repl screen is (app_repl.h), one thing at a time, and answered there. What is begun from here ends when probing-top
 * goes, by the agent, unless somebody uses it then or --keep was said. One thread.
 */
#ifndef TUI_CORE_APP_DEBUG_H
#define TUI_CORE_APP_DEBUG_H

#include <stdbool.h>

#include "tui/core/app.h"

struct command_choices;

/* The key; false when the action is none of these. */
bool app_debug_act(struct app *a, enum action action);

/* A command: begin it, or what its options say. */
void app_debug_command(struct app *a, const struct debug_command_def *def, const char *argument);
void app_debug_complete(const struct debug_command_def *def, struct command_choices *out);

/* The answer, borrowed: it is put into the Repl screen's log. */
void app_debug_take(struct app *a, const struct wire_debugger *what);

/* The connection is another: nothing is begun from here any more. */
void app_debug_forget(struct app *a);

#endif
