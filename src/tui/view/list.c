/* SPDX-License-Identifier: Apache-2.0 */
/* list: see list.h. */
#include "tui/view/list.h"

static int list_clamp(int v, int low, int high) {
    return v > high ? (high < low ? low : high) : v < low ? low : v;
}

void list_fit(struct list *l, int count, int page) {
    l->count = count < 0 ? 0 : count;
    l->page = page < 1 ? 1 : page;
    l->selected = list_clamp(l->selected, 0, l->count - 1);
    if (l->selected < l->top)
        l->top = l->selected;
    if (l->selected >= l->top + l->page)
        l->top = l->selected - l->page + 1;
    l->top = list_clamp(l->top, 0, l->count - l->page);
}

void list_select(struct list *l, int row) {
    l->selected = list_clamp(row, 0, l->count - 1);
    list_fit(l, l->count, l->page);
}

/* How many rows a motion moves; false: the action is another one. */
static bool list_distance(const struct list *l, enum action action, int *by) {
    int half = l->page > 1 ? l->page / 2 : 1;
    switch ((int)action) {
    case ACTION_UP:
        *by = -1;
        return true;
    case ACTION_DOWN:
        *by = 1;
        return true;
    case ACTION_HALF_UP:
        *by = -half;
        return true;
    case ACTION_HALF_DOWN:
        *by = half;
        return true;
    case ACTION_PAGE_UP:
        *by = -l->page;
        return true;
    case ACTION_PAGE_DOWN:
        *by = l->page;
        return true;
    case ACTION_FIRST:
        *by = -l->count;
        return true;
    case ACTION_LAST:
        *by = l->count;
        return true;
    default:
        return false;
    }
}

bool list_move(struct list *l, enum action action) {
    int by;
    if (!list_distance(l, action, &by))
        return false;
    list_select(l, l->selected + by);
    return true;
}

bool list_scroll(struct list *l, enum action action) {
    int by;
    if (!list_distance(l, action, &by))
        return false;
    list_wheel(l, by);
    return true;
}

void list_wheel(struct list *l, int rows) {
    l->top = list_clamp(l->top + rows, 0, l->count - l->page);
    l->selected = list_clamp(l->selected, l->top, l->top + l->page - 1);
    l->selected = list_clamp(l->selected, 0, l->count - 1);
}
