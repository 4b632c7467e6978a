/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app_input: what the user does: keys, the mouse, pasted text, and the actions and commands that
 * they lead to.
 */
#ifndef TUI_CORE_APP_INPUT_H
#define TUI_CORE_APP_INPUT_H

#include "tui/core/app.h"
#include "tui/keys/input.h"

/* ---- what an action does: on the topmost screen, or on any ---- */

/* Do an action as if its key had been pressed. */
void app_input_act(struct app *a, enum action action);

/* ---- a line from behind the colon ---- */

/* Run a line; mistakes in it are a message. */
void app_input_command(struct app *app, const char *line);

/* ---- keys, the mouse and pasted text ---- */

void app_input(struct app *a, const struct input_event *e);
void app_input_key(struct app *a, uint32_t key);

#endif
