/* SPDX-License-Identifier: Apache-2.0 */
/* app_message: the message line: what is said to the user until the next key. */
#ifndef TUI_CORE_APP_MESSAGE_H
#define TUI_CORE_APP_MESSAGE_H

#include "tui/core/app.h"

/* A message. Bad ones go to the log, too. */
void app_message(struct app *a, bool is_bad, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* A bad message about a key or a command that has no effect: not an event for the log. */
void app_refuse(struct app *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
