/* SPDX-License-Identifier: Apache-2.0 */
/* app_input: handles keys, the mouse and pasted text. */
#ifndef TUI_CORE_APP_INPUT_H
#define TUI_CORE_APP_INPUT_H

#include "tui/core/app.h"
#include "tui/keys/input.h"

void app_input(struct app *a, const struct input_event *e);
void app_key(struct app *a, uint32_t key);

#endif
