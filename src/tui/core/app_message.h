/* SPDX-License-Identifier: Apache-2.0 */
/* app_message: a line for the user, until the next key. */
#ifndef TUI_CORE_APP_MESSAGE_H
#define TUI_CORE_APP_MESSAGE_H

#include "tui/core/app.h"

/* A line for the user, until the next key. What is bad is in the log, too. */
void app_message(struct app *a, bool is_bad, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* The same about what was typed a moment ago and led to nothing: no event to be remembered. */
void app_refuse(struct app *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
