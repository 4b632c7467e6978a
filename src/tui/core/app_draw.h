/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app_draw: the frame: header, line of tabs, banner, the topmost screen, status line, and what the
 * function keys do (from the action table).
 *
 * The line of tabs names the screens with their keys, from their descriptors; the current one is
 * marked, and an overlay is named after it. With few rows it is folded into the end of the status
 * line: keys alone.
 */
#ifndef TUI_CORE_APP_DRAW_H
#define TUI_CORE_APP_DRAW_H

#include "tui/core/app.h"

/* Draw everything into `g`. */
void app_draw(struct app *a, struct grid *g);

/* Why the display no longer moves, or is read from outside although nobody asked for that; false:
 * neither is the case. */
bool app_draw_banner(const struct app *a, char *buf, size_t cap);

/* What a click there does: on the line of tabs; on the last line, at that column. ACTION_NONE:
 * nothing. */
enum action app_draw_tab_at(const struct app *a, int row, int col);
enum action app_draw_key_at(struct app *a, int col);

#endif
