/* SPDX-License-Identifier: Apache-2.0 */
/*
 * footer: the last two lines: status, and what the function keys do (from the action table). Pure.
 */
#ifndef TUI_CORE_FOOTER_H
#define TUI_CORE_FOOTER_H

#include "tui/core/app.h"

void footer_draw(struct app *a, struct grid *g, struct rect area);

/* Action of the label drawn at that column of the last line. */
enum action footer_at(struct app *a, int col);

/* The line above it: message, prompt, or the screen's status. */
void footer_draw_status(struct app *a, struct grid *g, struct rect area);

#endif
