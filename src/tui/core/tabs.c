/* SPDX-License-Identifier: Apache-2.0 */
/* tabs: see tabs.h. */
#include "tui/core/tabs.h"

#include <stdio.h>

#include "base/text.h"
#include "tui/core/action_table.h"
#include "tui/core/app.h"
#include "tui/core/app_screen.h"
#include "tui/core/screen.h"

#define TABS_MAX 16

/* Forms of the line, the widest first: columns between names, and columns of names other than the
 * current one. */
static const struct {
    int gap, most;
} tabs_forms[] = {{2, 32}, {1, 32}, {1, 7}, {1, 6}, {1, 5}, {1, 4}, {1, 3}, {1, 0}};
/* Keys alone, except for the current one. */
#define TABS_NUMBERS ((int)(sizeof tabs_forms / sizeof tabs_forms[0]) - 1)

struct tabs_item {
    enum action action;
    bool is_on;
    char text[32];
    int col, width;
};

/* The tab that is shown, or that is below an overlay. */
static const struct screen_def *tabs_current(const struct app *a) {
    for (int i = a->n_screens - 1; i >= 0; i--)
        if (a->screens[i].def->is_tab)
            return a->screens[i].def;
    return NULL;
}

/* Screens that can change the job are not offered if that is refused. */
static bool tabs_is_refused(const struct app *a, enum action action) {
    for (const struct action_def *d = action_table(); a->row_actions.readonly && d->action; d++)
        if (d->action == action && (d->contexts & ACTION_CHANGES))
            return true;
    return false;
}

/* All tabs in their order, from column `col`, in one of the forms; returns their number. */
static int tabs_layout(const struct app *a, int form, int col, struct tabs_item *items) {
    const struct screen_def *current = tabs_current(a);
    int n = 0;
    for (char number = '1'; number <= 'Z' && n < TABS_MAX; number++)
        for (const struct screen_def *const *s = screen_list; *s; s++) {
            struct tabs_item *it = &items[n];
            if (screen_tab_key(*s) != number || tabs_is_refused(a, (*s)->opens[0].action))
                continue;
            *it = (struct tabs_item){.action = (*s)->opens[0].action, .is_on = *s == current};
            int most = it->is_on ? (int)sizeof it->text : tabs_forms[form].most;
            snprintf(it->text, sizeof it->text, it->is_on ? "[%c%s%.*s]" : "%c%s%.*s", number,
                     most ? " " : "", most, (*s)->title);
            it->col = col;
            it->width = text_width(it->text);
            col += it->width + tabs_forms[form].gap;
            n++;
            break;
        }
    return n;
}

/* Draw them from column `col` of the first row, and note where they are. Returns the column after
 * them. */
static int tabs_put(struct app *a, struct grid *g, struct rect area, int col, int form, enum theme_role role,
                    enum theme_role role_on) {
    struct tabs_item items[TABS_MAX];
    int n = tabs_layout(a, form, col, items);
    a->tabs = (struct app_tabs){.row = area.row, .col = col, .form = form};
    for (int i = 0; i < n; i++) {
        grid_text(g, area, 0, items[i].col, items[i].is_on ? role_on : role, items[i].text);
        col = items[i].col + items[i].width;
    }
    return col;
}

/* The columns that they take. */
static int tabs_width(const struct app *a, int form) {
    struct tabs_item items[TABS_MAX];
    int n = tabs_layout(a, form, 0, items);
    return n ? items[n - 1].col + items[n - 1].width : 0;
}

static bool tabs_are_shown(const struct app *a) { return a->screens[0].def->is_tab; }

int tabs_rows(const struct app *a, int screen_rows) {
    return tabs_are_shown(a) && !a->folded && screen_rows >= TABS_LINE_ROWS;
}

void tabs_draw(struct app *a, struct grid *g, struct rect area) {
    const struct screen_def *top = app_top(a)->def;
    grid_fill(g, area, ROLE_TEXT);
    int form = 0, after = top->is_tab ? 1 : text_width(top->title) + 5;
    while (form < TABS_NUMBERS && tabs_width(a, form) + after > area.cols)
        form++;
    int col = tabs_put(a, g, area, 1, form, ROLE_LABEL, ROLE_TITLE_FOCUS);
    if (!top->is_tab)
        grid_printf(g, area, 0, col + 2, ROLE_TITLE, "> %s", top->title);
}

int tabs_draw_folded(struct app *a, struct grid *g, struct rect area) {
    int width = tabs_width(a, TABS_NUMBERS) + 1;
    if (!tabs_are_shown(a) || a->tabs.row >= 0 || width > area.cols / 2)
        return 0;
    tabs_put(a, g, area, area.cols - width, TABS_NUMBERS, ROLE_STATUS, ROLE_STATUS_ON);
    return width + 1;
}

enum action tabs_at(const struct app *a, int row, int col) {
    struct tabs_item items[TABS_MAX];
    int n = tabs_layout(a, a->tabs.form, a->tabs.col, items);
    for (int i = 0; row == a->tabs.row && i < n; i++)
        if (col >= items[i].col && col < items[i].col + items[i].width)
            return items[i].action;
    return ACTION_NONE;
}
