/* SPDX-License-Identifier: Apache-2.0 */
/* meter: the recent past of one number. Pure. */
#ifndef TUI_MODEL_METER_H
#define TUI_MODEL_METER_H

#define METER_MAX 256

struct meter {
    double values[METER_MAX]; /* a ring; NAN: unknown */
    int next, count;
};

void meter_add(struct meter *m, double value);
void meter_clear(struct meter *m);

/* The value `back` steps ago; 0: the newest. NAN before the first. */
double meter_at(const struct meter *m, int back);

/* Mean of the last `n` values as far as they are known; NAN: none is. */
double meter_mean(const struct meter *m, int n);

/* Largest of the last `n` known values, at least `least`. */
double meter_max(const struct meter *m, int n, double least);

/* Values of an empty and of a full bar. */
struct meter_scale {
    double empty, full;
};

/* The scale of a value that has no limit, from its last `n` values: a constant is a flat low line,
 * growth by a quarter rises to the top. */
struct meter_scale meter_trend(const struct meter *m, int n);

#endif
