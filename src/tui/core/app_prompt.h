/* SPDX-License-Identifier: Apache-2.0 */
/* app_prompt: a line that the user types below the screen, and the lines typed in earlier runs. */
#ifndef TUI_CORE_APP_PROMPT_H
#define TUI_CORE_APP_PROMPT_H

#include "tui/core/app.h"

/* Ask for a line that begins with `text`; the screen gets it by `typed`. */
void app_prompt(struct app *a, enum action what, const char *label, const char *text);

/* Load the history of that name, the first time that it is needed. */
void app_open_history(struct app *a, const char *name, struct history *h, bool *is_open);

#endif
