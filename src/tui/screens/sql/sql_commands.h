/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sql_commands: what the SQL screen does for rows of the command table (command_table.c).
 */
#ifndef TUI_SCREENS_SQL_SQL_COMMANDS_H
#define TUI_SCREENS_SQL_SQL_COMMANDS_H

#include "tui/core/command.h"

/* Of the screen that is on top, which is the SQL screen: write the result to a file, run the query again and again, keep it. */
void sql_command_export(struct app *app, const char *argument);
void sql_command_watch(struct app *app, const char *argument);
void sql_command_save(struct app *app, const char *argument);
void sql_complete_watch(struct app *app, struct command_choices *out);

/* From anywhere: open the SQL screen and run a query there. */
void sql_command_run(struct app *app, const char *argument);

#endif
