/* SPDX-License-Identifier: Apache-2.0 */
/* app_attach: attaching to a process that was chosen, and to several one after the other. */
#ifndef TUI_CORE_APP_ATTACH_H
#define TUI_CORE_APP_ATTACH_H

#include "tui/core/app.h"

/* Attach to a process. */
void app_attach(struct app *a, pid_t pid);

/* That has ended: NULL well, else why not. */
void app_attach_done(struct app *a, const struct err *why);

/* The next one of several that were chosen together, taken off; 0 none is left. */
pid_t app_attach_next(struct app *a);

/* Go to the screen that is to be the first one, by the settings. */
void app_open_first_screen(struct app *a);

#endif
