/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensors_growth: the leak view of the Tensors screen: tensors of one shape and owner together, and
 * how many more there are than some steps ago. Pure.
 */
#ifndef TUI_SCREENS_TENSORS_TENSORS_GROWTH_H
#define TUI_SCREENS_TENSORS_TENSORS_GROWTH_H

#include "tui/view/outline.h"

/* Texts belong to the result; NULL and NAN: unknown. */
struct growth_row {
    const char *type, *shape, *dtype, *device, *kind, *owner;
    double count, bytes, count_then, bytes_then, growth_bytes, growth_per_step, since_step;
};

struct growth_rows {
    struct result *rows; /* one reference */
    struct growth_row *items;
    size_t n;
};

extern const struct outline_def growth_outline; /* the rows of nodes are struct growth_row */
int growth_column_growth(void);

/* Make nodes from a result (NULL: none) and give them to the outline. Replaces the earlier ones. */
void growth_rows_build(struct growth_rows *r, struct result *rows, struct outline *out);
void growth_rows_fini(struct growth_rows *r);

#endif
