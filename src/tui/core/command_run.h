/* SPDX-License-Identifier: Apache-2.0 */
/* command_run: runs a line from behind the colon. */
#ifndef TUI_CORE_COMMAND_RUN_H
#define TUI_CORE_COMMAND_RUN_H

#include "tui/core/app.h"

/* Run a line; mistakes in it are a message. */
void command_run(struct app *app, const char *line);

/* Close the command line and run it. */
void command_run_typed(struct app *app);

#endif
