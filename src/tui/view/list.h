/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list: where one is in a list of rows: the selected row and the first one shown. Pure.
 */
#ifndef TUI_VIEW_LIST_H
#define TUI_VIEW_LIST_H

#include <stdbool.h>

#include "tui/keys/action.h"

struct list {
    int count;    /* rows */
    int page;     /* rows that are shown; set by list_fit */
    int selected; /* 0 <= selected < count, or 0 */
    int top;      /* first row shown */
};

/* Tell how many rows there are and how many fit; keeps the selected row in sight. */
void list_fit(struct list *l, int count, int page);

/* Select a row. */
void list_select(struct list *l, int row);

/* Motion actions; false when the action is none. */
bool list_move(struct list *l, enum action action);

/* Scroll without a selection: moves `top`. False when the action is no motion. */
bool list_scroll(struct list *l, enum action action);

/* Turn the wheel: `rows` down (negative up). */
void list_wheel(struct list *l, int rows);

#endif
