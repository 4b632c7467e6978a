/* SPDX-License-Identifier: Apache-2.0 */
/* meter_draw: see meter_draw.h. */
#include "tui/view/meter_draw.h"

void meter_draw(const struct meter *m, struct grid *g, struct rect area, int row, int col, int width,
                double full, enum theme_role role) {
    for (int i = 0; i < width; i++) {
        double v = meter_at(m, width - 1 - i);
        grid_text(g, area, row, col + i, role, glyph_level(g, full > 0 ? v / full : 0));
    }
}
