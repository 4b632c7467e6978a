/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_line: the line behind the colon while it is typed, with completion and history.
 *
 * It is the app's prompt with two additions. Tab lists completions, and Enter takes the selected
 * one; without a list Enter runs the line. Up and Down go through the history, to entries that
 * begin with what was typed. Pure.
 */
#ifndef TUI_CORE_COMMAND_LINE_H
#define TUI_CORE_COMMAND_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "tui/core/app.h"

void command_line_init(struct command_line *c);
void command_line_fini(struct command_line *c);

/* Open the line with `text` in it. */
void command_line_open(struct app *app, const char *text);

/* A key, or pasted text, while it is open. True: run the line (command_run_typed). */
bool command_line_key(struct app *app, uint32_t key);
void command_line_paste(struct app *app, const char *text);

/* The list, at the lower end of `area`; nothing if there is none. */
void command_line_draw(struct app *app, struct grid *g, struct rect area);

#endif
