/* SPDX-License-Identifier: Apache-2.0 */
/* app_act: what an action does: on the topmost screen, or on any. */
#ifndef TUI_CORE_APP_ACT_H
#define TUI_CORE_APP_ACT_H

#include "tui/core/app.h"

/* Do an action as if its key had been pressed. */
void app_act(struct app *a, enum action action);

/* Leave the program. */
void app_quit(struct app *a);

#endif
