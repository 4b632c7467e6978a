/* SPDX-License-Identifier: Apache-2.0 */
/* meter_draw: a meter (model/meter.h) as a row of bars, the newest at the right. Pure. */
#ifndef TUI_VIEW_METER_DRAW_H
#define TUI_VIEW_METER_DRAW_H

#include "tui/model/meter.h"
#include "tui/view/grid.h"

/* Draw the last `width` values in one row. */
void meter_draw(const struct meter *m, struct grid *g, struct rect area, int row, int col, int width,
                struct meter_scale scale, enum theme_role role);

#endif
