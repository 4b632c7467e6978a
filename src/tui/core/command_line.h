/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_line: the line behind the colon while it is typed: words to complete with, and the commands of before.
 *
 * It is the app's prompt with two things more. Tab lists what may stand there, and Enter takes what is selected in the list;
 * without a list Enter runs the line. Up and Down go through the history, to entries that begin with what was typed. Pure.
 */
#ifndef TUI_CORE_COMMAND_LINE_H
#define TUI_CORE_COMMAND_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "tui/core/app.h"

void command_line_init(struct command_line *c);
void command_line_fini(struct command_line *c);

/* Open the line, beginning with `text`. */
void command_line_open(struct app *app, const char *text);

/* A key, or pasted text, while it is open. True: the line is to be run (command_run_typed). */
bool command_line_key(struct app *app, uint32_t key);
void command_line_paste(struct app *app, const char *text);

/* The list, at the lower end of `area`; nothing when there is none. */
void command_line_draw(struct app *app, struct grid *g, struct rect area);

#endif
