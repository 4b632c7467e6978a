/* SPDX-License-Identifier: Apache-2.0 */
/* app_attach: attaches to a process that was chosen, or to several, one after the other. */
#ifndef TUI_CORE_APP_ATTACH_H
#define TUI_CORE_APP_ATTACH_H

#include "tui/core/app.h"

/* Attach to a process. */
void app_attach(struct app *a, pid_t pid);

/* The attach has ended; `why` is NULL if it succeeded. */
void app_attach_done(struct app *a, const struct err *why);

/* Takes the next one of several that were chosen together; 0: none is left. */
pid_t app_attach_next(struct app *a);

/* Open the screen that the settings name as the first. */
void app_open_first_screen(struct app *a);

#endif
