/* SPDX-License-Identifier: Apache-2.0 */
/* app_attach: see app_attach.h. */
#include "tui/core/app_attach.h"

#include <string.h>

#include "tui/core/app_act.h"
#include "tui/core/app_message.h"
#include "tui/core/app_screen.h"
#include "tui/core/screen.h"

void app_open_first_screen(struct app *a) {
    const struct screen_def *tab;
    for (int i = 0; (tab = screen_tab(i)); i++)
        if (strcmp(tab->name, a->settings.values[SETTINGS_SCREEN]) == 0)
            app_act(a, tab->opens[0].action);
}

void app_attach(struct app *a, pid_t pid) {
    a->attaching = pid;
    a->began_s = a->now_s;
    a->host.attach(a->host.arg, pid);
}

void app_attach_done(struct app *a, const struct err *why) {
    a->attaching = 0;
    a->attaches_several = false;
    if (why) {
        app_message(a, true, "%s", why->text);
        return;
    }
    a->message[0] = '\0';
    app_drop_screens(a);
    app_push(a, &screen_threads);
    app_open_first_screen(a);
}

pid_t app_attach_next(struct app *a) {
    if (a->n_attach_more == 0)
        return 0;
    pid_t next = a->attach_more[0];
    a->n_attach_more--;
    memmove(a->attach_more, a->attach_more + 1, (size_t)a->n_attach_more * sizeof next);
    return next;
}
