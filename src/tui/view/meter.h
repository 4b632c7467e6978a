/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meter: the recent past of one number, drawn as a row of bars; newest at the right. Pure.
 */
#ifndef TUI_VIEW_METER_H
#define TUI_VIEW_METER_H

#include "tui/view/grid.h"

#define METER_MAX 256

struct meter {
    double values[METER_MAX]; /* ring; NAN unknown */
    int next, count;
};

void meter_add(struct meter *m, double value);
void meter_clear(struct meter *m);

/* Mean of the last `n` known values; NAN when there is none. */
double meter_mean(const struct meter *m, int n);

/* Largest of the last `n` known values, at least `least`. */
double meter_max(const struct meter *m, int n, double least);

/* Draw the last `width` values in one row, scaled so that `full` is a full bar. */
void meter_draw(const struct meter *m, struct grid *g, struct rect area, int row, int col, int width,
                double full, enum theme_role role);

#endif
