/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app_settings: what settings do in a running app. What the app's own keys change (delay, mouse, ...) is read back by
 * app_settings_sync.
 */
#ifndef TUI_CORE_APP_SETTINGS_H
#define TUI_CORE_APP_SETTINGS_H

#include "tui/core/app.h"

/* Set by name (:set) in a running app: what can be is done at once. -1 with ERR_USAGE. */
int app_settings_set(struct app *a, const char *name, const char *text, struct err *e);

/* The next value (+1) or the previous one (-1) of a delay or choice; false when there is none such. */
bool app_settings_step(struct app *a, enum settings_key key, int step);

/* Take what the app's keys have changed into a->settings. */
void app_settings_sync(struct app *a);

/* What an app begins with, from `s`, which lives as long as the app; NULL: as by default and by a->config. */
void app_settings_begin(struct app *a, const struct settings *s);

/* Change the delay by a step up or down. */
void app_step_delay(struct app *a, int step);

#endif
