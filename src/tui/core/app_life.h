/* SPDX-License-Identifier: Apache-2.0 */
/* app_life: begins and ends an app. */
#ifndef TUI_CORE_APP_LIFE_H
#define TUI_CORE_APP_LIFE_H

#include "tui/core/app.h"

/* NULL: out of memory. */
struct app *app_new(const struct app_config *config);
void app_free(struct app *a);

/* Exit status: 4 if the target was lost, else 0. */
int app_exit_status(const struct app *a);

#endif
