/* SPDX-License-Identifier: Apache-2.0 */
/* command_run: doing what a line behind the colon says. */
#ifndef TUI_CORE_COMMAND_RUN_H
#define TUI_CORE_COMMAND_RUN_H

#include "tui/core/app.h"

/* Do what a line says; what is wrong with it is a message. */
void command_run(struct app *app, const char *line);

/* Do what was typed into the command line, which is closed. */
void command_run_typed(struct app *app);

#endif
