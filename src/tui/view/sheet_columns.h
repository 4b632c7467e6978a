/* SPDX-License-Identifier: Apache-2.0 */
/* sheet_columns: what the two files of the sheet share: how wide things are. Pure. */
#ifndef TUI_VIEW_SHEET_COLUMNS_H
#define TUI_VIEW_SHEET_COLUMNS_H

#include "tui/view/sheet.h"

#define SHEET_GAP 1
#define SHEET_BAR 10 /* columns of a full bar */

/* Columns that a column takes, its bar too. */
int sheet_cell_width(const struct sheet_column *c);

/* A value a line: lines of a row. */
int sheet_lines_a_row(const struct sheet *s);

#endif
