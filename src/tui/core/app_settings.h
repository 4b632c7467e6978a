/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app_settings: what settings do in a running app. What the app's own keys change (delay, mouse,
 * ...) is read back by app_settings_sync.
 */
#ifndef TUI_CORE_APP_SETTINGS_H
#define TUI_CORE_APP_SETTINGS_H

#include "tui/core/app.h"

/* Set by name (:set); takes effect immediately where that is possible. -1 with ERR_USAGE. */
int app_settings_set(struct app *a, const char *name, const char *text, struct err *e);

/* The next (+1) or previous (-1) value of a delay or a choice; false: there is none. */
bool app_settings_step(struct app *a, enum settings_key key, int step);

/* Copy what the app's keys have changed into a->settings. */
void app_settings_sync(struct app *a);

/* The settings that an app begins with, from `s`, which must outlive it; NULL: the defaults and
 * a->config. */
void app_settings_begin(struct app *a, const struct settings *s);

/* Change the delay by a step up or down. */
void app_step_delay(struct app *a, int step);

#endif
