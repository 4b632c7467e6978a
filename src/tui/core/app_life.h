/* SPDX-License-Identifier: Apache-2.0 */
/* app_life: an app begins and ends. */
#ifndef TUI_CORE_APP_LIFE_H
#define TUI_CORE_APP_LIFE_H

#include "tui/core/app.h"

/* Start with nothing known. NULL when memory is short. */
struct app *app_new(const struct app_config *config);
void app_free(struct app *a);

/* Exit status for leaving now: 4 when the target was lost, else 0. */
int app_exit_status(const struct app *a);

#endif
