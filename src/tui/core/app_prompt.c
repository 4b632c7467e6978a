/* SPDX-License-Identifier: Apache-2.0 */
/* app_prompt: see app_prompt.h. */
#include "tui/core/app_prompt.h"

#include "tui/core/app_message.h"

void app_prompt(struct app *a, enum action what, const char *label, const char *text) {
    prompt_start(&a->prompt, label, text);
    a->prompt_for = what;
    a->prompt_failed = false;
    a->dirty = true;
}

void app_open_history(struct app *a, const char *name, struct history *h, bool *is_open) {
    struct err e;
    if (*is_open)
        return;
    *is_open = true;
    history_fini(h);
    if (a->host.open_history(a->host.arg, name, h, &e) != 0)
        app_message(a, true, "%s", e.text);
}
