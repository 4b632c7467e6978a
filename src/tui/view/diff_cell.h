/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff_cell: how the difference of two shares looks: its sign as a character, its strength as a
 * role. Pure.
 */
#ifndef TUI_VIEW_DIFF_CELL_H
#define TUI_VIEW_DIFF_CELL_H

#include <stddef.h>

#include "tui/theme/theme.h"

#define DIFF_LEAST 0.5 /* percentage points: less counts as unchanged */

/* For a difference in percentage points; NAN: unknown. */
enum theme_role diff_role(double delta);

/* "+3.2", "-0.1", "0.0", "?". */
void diff_text(double delta, char *buf, size_t cap);

/* '+', '-', '=' (less than DIFF_LEAST), '?'. */
char diff_sign(double delta);

#endif
