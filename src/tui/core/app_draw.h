/* SPDX-License-Identifier: Apache-2.0 */
/* app_draw: the frame: header, banner, the topmost screen, status line, footer. */
#ifndef TUI_CORE_APP_DRAW_H
#define TUI_CORE_APP_DRAW_H

#include "tui/core/app.h"

/* Draw everything into `g`. */
void app_draw(struct app *a, struct grid *g);

/* Why what is shown does not move any more, or is read from outside though nobody asked for that; false when neither is so. */
bool app_banner(const struct app *a, char *buf, size_t cap);

#endif
