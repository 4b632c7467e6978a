/* SPDX-License-Identifier: Apache-2.0 */
/* tabs: see tabs.h. */
#include "tui/tabs.h"

#include <stdio.h>

#include "base/text.h"
#include "tui/screens/screens.h"

#define TABS_MAX 16

struct tabs_item {
    enum action action;
    bool is_on;
    char text[32];
    int col, width;
};

/* The screen with a number that is shown, or lies below what is. */
static const struct screen_def *tabs_current(const struct app *a) {
    for (int i = a->n_screens - 1; i >= 0; i--)
        if (a->screens[i].def->number)
            return a->screens[i].def;
    return NULL;
}

/* All screens with a number, in its order, from column `col`; how many. `brief`: numbers alone, but for the one shown. */
static int tabs_layout(const struct app *a, bool brief, int col, struct tabs_item *items) {
    const struct screen_def *current = tabs_current(a);
    int n = 0;
    for (char number = '1'; number <= '9' && n < TABS_MAX; number++)
        for (const struct screen_opening *o = screen_openings; o->action; o++) {
            struct tabs_item *it = &items[n];
            if (o->def->number != number)
                continue;
            *it = (struct tabs_item){.action = o->action, .is_on = o->def == current};
            const char *name = brief && !it->is_on ? "" : o->def->title;
            (void)snprintf(it->text, sizeof it->text, it->is_on ? "[%c%s%s]" : "%c%s%s", number,
                           *name ? " " : "", name);
            it->col = col;
            it->width = text_width(it->text);
            col += it->width + (brief ? 1 : 2);
            n++;
            break;
        }
    return n;
}

/* Draw them from column `col` of the first row, and note where they are. The column after them. */
static int tabs_put(struct app *a, struct grid *g, struct rect area, int col, bool brief,
                    enum theme_role role, enum theme_role role_on) {
    struct tabs_item items[TABS_MAX];
    int n = tabs_layout(a, brief, col, items);
    a->tabs = (struct app_tabs){.row = area.row, .col = col, .brief = brief};
    for (int i = 0; i < n; i++) {
        (void)grid_text(g, area, 0, items[i].col, items[i].is_on ? role_on : role, items[i].text);
        col = items[i].col + items[i].width;
    }
    return col;
}

/* Columns that they take. */
static int tabs_width(const struct app *a, bool brief) {
    struct tabs_item items[TABS_MAX];
    int n = tabs_layout(a, brief, 0, items);
    return n ? items[n - 1].col + items[n - 1].width : 0;
}

static bool tabs_are_shown(const struct app *a) { return a->screens[0].def->number != 0; }

int tabs_rows(const struct app *a, int screen_rows) {
    return tabs_are_shown(a) && !a->folded && screen_rows >= TABS_LINE_ROWS;
}

void tabs_draw(struct app *a, struct grid *g, struct rect area) {
    const struct screen_def *top = app_top(a)->def;
    grid_fill(g, area, ROLE_TEXT);
    int col = tabs_put(a, g, area, 1, tabs_width(a, false) + 1 >= area.cols, ROLE_LABEL, ROLE_TITLE_FOCUS);
    if (!top->number)
        (void)grid_printf(g, area, 0, col + 2, ROLE_TITLE, "> %s", top->title);
}

int tabs_draw_folded(struct app *a, struct grid *g, struct rect area) {
    int width = tabs_width(a, true) + 1;
    if (!tabs_are_shown(a) || a->tabs.row >= 0 || width > area.cols / 2)
        return 0;
    (void)tabs_put(a, g, area, area.cols - width, true, ROLE_STATUS, ROLE_STATUS_ON);
    return width + 1;
}

enum action tabs_at(const struct app *a, int row, int col) {
    struct tabs_item items[TABS_MAX];
    int n = tabs_layout(a, a->tabs.brief, a->tabs.col, items);
    for (int i = 0; row == a->tabs.row && i < n; i++)
        if (col >= items[i].col && col < items[i].col + items[i].width)
            return items[i].action;
    return ACTION_NONE;
}
