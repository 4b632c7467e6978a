/* SPDX-License-Identifier: Apache-2.0 */
/* app_draw: the frame: header, banner, the topmost screen, status line, footer. */
#ifndef TUI_CORE_APP_DRAW_H
#define TUI_CORE_APP_DRAW_H

#include "tui/core/app.h"

/* Draw everything into `g`. */
void app_draw(struct app *a, struct grid *g);

/* Why the display no longer moves, or is read from outside although nobody asked for that; false:
 * neither is the case. */
bool app_banner(const struct app *a, char *buf, size_t cap);

#endif
