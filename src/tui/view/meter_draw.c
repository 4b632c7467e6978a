/* SPDX-License-Identifier: Apache-2.0 */
/* meter_draw: see meter_draw.h. */
#include "tui/view/meter_draw.h"

void meter_draw(const struct meter *m, struct grid *g, struct rect area, int row, int col, int width,
                struct meter_scale scale, enum theme_role role) {
    double span = scale.full - scale.empty;
    for (int i = 0; i < width; i++) {
        double v = meter_at(m, width - 1 - i);
        grid_text(g, area, row, col + i, role, glyph_level(g, span > 0 ? (v - scale.empty) / span : 0));
    }
}
