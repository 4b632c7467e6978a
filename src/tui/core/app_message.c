/* SPDX-License-Identifier: Apache-2.0 */
/* app_message: see app_message.h. */
#include "tui/core/app_message.h"

#include <stdarg.h>
#include <stdio.h>

void app_message(struct app *a, bool is_bad, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(a->message, sizeof a->message, fmt, ap);
    va_end(ap);
    a->message_is_bad = is_bad;
    a->dirty = true;
    if (is_bad)
        log_add(a->log, a->epoch_s, LOG_LEVEL_BAD, "%s", a->message);
}

void app_refuse(struct app *a, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(a->message, sizeof a->message, fmt, ap);
    va_end(ap);
    a->message_is_bad = true;
    a->dirty = true;
}
