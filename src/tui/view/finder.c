/* SPDX-License-Identifier: Apache-2.0 */
/* finder: see finder.h. */
#include "tui/view/finder.h"

#define FINDER_WHEEL 3

void finder_draw(struct finder *f, const struct finder_def *def, const void *state, const struct app *app,
                 struct grid *g, struct rect area, int count) {
    f->area = area;
    list_fit(&f->list, count, area.rows);
    for (int i = 0; i < area.rows && f->list.top + i < f->list.count; i++) {
        int at = f->list.top + i;
        struct rect row = {area.row + i, area.col, 1, area.cols};
        def->draw_row(state, app, at, g, row);
        if (at == f->list.selected)
            grid_restyle(g, row, ROLE_SELECTION);
        match_highlight(&f->search, g, row, 0);
    }
}

/* Select the first row that matches, from one on (`step` 1) or back (-1). */
static bool finder_find(struct finder *f, const struct finder_def *def, const void *state, int from,
                        int step) {
    int n = f->list.count;
    for (int i = 0; i < n; i++) {
        int at = ((from + i * step) % n + n) % n;
        if (def->matches(state, at)) {
            list_select(&f->list, at);
            return true;
        }
    }
    return false;
}

bool finder_typed(struct finder *f, const struct finder_def *def, const void *state, const char *text,
                  enum screen_typed phase) {
    match_set(&f->search, phase == SCREEN_CANCEL ? "" : text, false);
    return !f->search.active || finder_find(f, def, state, f->list.selected, 1);
}

bool finder_act(struct finder *f, const struct finder_def *def, const void *state, struct app *app,
                enum action action) {
    int step = action == ACTION_SEARCH_NEXT ? 1 : -1;
    switch ((int)action) {
    case ACTION_SEARCH_NEXT:
    case ACTION_SEARCH_PREV:
        if (!f->search.active || !finder_find(f, def, state, f->list.selected + step, step))
            app_message(app, false, "nothing was searched for, or nothing matches");
        return true;
    case ACTION_BACK:
        if (!f->search.active)
            return false;
        match_clear(&f->search);
        return true;
    default:
        return list_move(&f->list, action);
    }
}

bool finder_mouse(struct finder *f, const struct input_event *e) {
    int at = f->list.top + e->row - f->area.row;
    if (e->button != INPUT_CLICK) {
        list_wheel(&f->list, e->button == INPUT_WHEEL_UP ? -FINDER_WHEEL : FINDER_WHEEL);
        return false;
    }
    if (e->row < f->area.row || e->row >= f->area.row + f->area.rows || at >= f->list.count)
        return false;
    bool was_selected = at == f->list.selected;
    list_select(&f->list, at);
    return was_selected;
}
