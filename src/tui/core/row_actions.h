/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row_actions: what can be done with the selected row on any screen: copy it, open its file in an
 * editor, show it on another screen, and the menu of all that.
 *
 * Screens say what is selected (screen_def.pick); the host (struct app_host) does it. Pure; one
 * thread.
 */
#ifndef TUI_CORE_ROW_ACTIONS_H
#define TUI_CORE_ROW_ACTIONS_H

#include <stdbool.h>

#include "tui/core/app.h"

void row_actions_init(struct row_actions *h);

/* Can the action be done on that screen now? False also if nothing suitable is selected. */
bool row_actions_can(struct app *app, const struct app_screen *s, enum action action);

/* Do it; false: the action is another one. */
bool row_actions_act(struct app *app, enum action action);

/* Is it refused because of --readonly? Then there is a message. */
bool row_actions_refuses(struct app *app, enum action action);

#endif
