/* SPDX-License-Identifier: Apache-2.0 */
/* list: a position in a list of rows: the selected row and the first visible one. Pure. */
#ifndef TUI_VIEW_LIST_H
#define TUI_VIEW_LIST_H

#include <stdbool.h>

#include "tui/keys/action.h"

struct list {
    int count;    /* rows */
    int page;     /* visible rows; set by list_fit */
    int selected; /* 0 <= selected < count, or 0 */
    int top;      /* first visible row */
};

/* Set how many rows there are and how many fit; keeps the selected row visible. */
void list_fit(struct list *l, int count, int page);

/* Select a row. */
void list_select(struct list *l, int row);

/* Motion actions; false: another one. */
bool list_move(struct list *l, enum action action);

/* Scroll without a selection: moves `top`. False: the action is not a motion. */
bool list_scroll(struct list *l, enum action action);

/* The wheel: `rows` down (negative: up). */
void list_wheel(struct list *l, int rows);

#endif
