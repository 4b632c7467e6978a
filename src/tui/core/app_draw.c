/* SPDX-License-Identifier: Apache-2.0 */
/* app_draw: see app_draw.h. */
#include "tui/core/app_draw.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "tui/core/action_keys.h"
#include "tui/core/action_table.h"
#include "tui/core/app.h"
#include "tui/core/app_history.h"
#include "tui/core/app_screen.h"
#include "tui/core/command.h"
#include "tui/core/header.h"
#include "tui/core/screen.h"
#include "tui/keys/action.h"
#include "tui/keys/input.h"
#include "tui/view/layout.h"

/* ---- the line of tabs ---- */

#define APP_DRAW_MAX_TABS 16
#define APP_DRAW_TABS_ROWS 24 /* from here on the line of tabs has a row of its own */

/* Forms of the line, the widest first: columns between names, and columns of names other than the
 * current one. */
static const struct {
    int gap, most;
} app_draw_tabs_forms[] = {{2, 32}, {1, 32}, {1, 7}, {1, 6}, {1, 5}, {1, 4}, {1, 3}, {1, 2}, {1, 0}};
/* Keys alone, except for the current one. */
#define APP_DRAW_NUMBERS ((int)(sizeof app_draw_tabs_forms / sizeof app_draw_tabs_forms[0]) - 1)

struct app_draw_tabs_item {
    enum action action;
    bool is_on;
    char text[32];
    int col, width;
};

/* The tab that is shown, or that is below an overlay. */
static const struct screen_def *app_draw_tabs_current(const struct app *a) {
    for (int i = a->n_screens - 1; i >= 0; i--)
        if (a->screens[i].def->is_tab)
            return a->screens[i].def;
    return NULL;
}

/* Screens that can change the job are not offered if that is refused. */
static bool app_draw_tabs_is_refused(const struct app *a, enum action action) {
    for (const struct action_def *d = action_table(); a->row_actions.readonly && d->action; d++)
        if (d->action == action && (d->contexts & ACTION_CHANGES))
            return true;
    return false;
}

/* All tabs in their order, from column `col`, in one of the forms; returns their number. */
static int app_draw_tabs_layout(const struct app *a, int form, int col, struct app_draw_tabs_item *items) {
    const struct screen_def *current = app_draw_tabs_current(a);
    int n = 0;
    for (char number = '1'; number <= 'Z' && n < APP_DRAW_MAX_TABS; number++)
        for (const struct screen_def *const *s = screen_list; *s; s++) {
            struct app_draw_tabs_item *it = &items[n];
            if (screen_tab_key(*s) != number || app_draw_tabs_is_refused(a, (*s)->opens[0].action))
                continue;
            *it = (struct app_draw_tabs_item){.action = (*s)->opens[0].action, .is_on = *s == current};
            int most = it->is_on ? (int)sizeof it->text : app_draw_tabs_forms[form].most;
            snprintf(it->text, sizeof it->text, it->is_on ? "[%c%s%.*s]" : "%c%s%.*s", number,
                     most ? " " : "", most, (*s)->title);
            it->col = col;
            it->width = text_width(it->text);
            col += it->width + app_draw_tabs_forms[form].gap;
            n++;
            break;
        }
    return n;
}

/* Draw them from column `col` of the first row, and note where they are. Returns the column after
 * them. */
static int app_draw_tabs_put(struct app *a, struct grid *g, struct rect area, int col, int form,
                             enum theme_role role, enum theme_role role_on) {
    struct app_draw_tabs_item items[APP_DRAW_MAX_TABS];
    int n = app_draw_tabs_layout(a, form, col, items);
    a->tabs = (struct app_tabs){.row = area.row, .col = col, .form = form};
    for (int i = 0; i < n; i++) {
        grid_text(g, area, 0, items[i].col, items[i].is_on ? role_on : role, items[i].text);
        col = items[i].col + items[i].width;
    }
    return col;
}

/* The columns that they take. */
static int app_draw_tabs_width(const struct app *a, int form) {
    struct app_draw_tabs_item items[APP_DRAW_MAX_TABS];
    int n = app_draw_tabs_layout(a, form, 0, items);
    return n ? items[n - 1].col + items[n - 1].width : 0;
}

static bool app_draw_tabs_are_shown(const struct app *a) { return a->screens[0].def->is_tab; }

/* How many of so many rows the line takes: 1 or 0. */
static int app_draw_tabs_rows(const struct app *a, int screen_rows) {
    return app_draw_tabs_are_shown(a) && !a->folded && screen_rows >= APP_DRAW_TABS_ROWS;
}

/* Draw the line. */
static void app_draw_tabs(struct app *a, struct grid *g, struct rect area) {
    const struct screen_def *top = app_screen_top(a)->def;
    grid_fill(g, area, ROLE_TEXT);
    int form = 0, after = top->is_tab ? 1 : text_width(top->title) + 5;
    while (form < APP_DRAW_NUMBERS && app_draw_tabs_width(a, form) + after > area.cols)
        form++;
    int col = app_draw_tabs_put(a, g, area, 1, form, ROLE_LABEL, ROLE_TITLE_FOCUS);
    if (!top->is_tab)
        grid_printf(g, area, 0, col + 2, ROLE_TITLE, "> %s", top->title);
}

/* Draw the folded form at the right end of the status line; returns its columns. */
static int app_draw_folded_tabs(struct app *a, struct grid *g, struct rect area) {
    int width = app_draw_tabs_width(a, APP_DRAW_NUMBERS) + 1;
    if (!app_draw_tabs_are_shown(a) || a->tabs.row >= 0 || width > area.cols / 2)
        return 0;
    app_draw_tabs_put(a, g, area, area.cols - width, APP_DRAW_NUMBERS, ROLE_STATUS, ROLE_STATUS_ON);
    return width + 1;
}

enum action app_draw_tab_at(const struct app *a, int row, int col) {
    struct app_draw_tabs_item items[APP_DRAW_MAX_TABS];
    int n = app_draw_tabs_layout(a, a->tabs.form, a->tabs.col, items);
    for (int i = 0; row == a->tabs.row && i < n; i++)
        if (col >= items[i].col && col < items[i].col + items[i].width)
            return items[i].action;
    return ACTION_NONE;
}

/* ---- status line and keys ---- */

#define APP_DRAW_MAX_KEYS 24
#define APP_DRAW_FOOTER_KEYS 8 /* nobody reads more of them */
#define APP_DRAW_FOOTER_GAP 2

struct app_draw_key {
    enum action action; /* ACTION_NONE: it edits what is typed */
    int rank;
    char key[ACTION_KEY_NAME], label[24];
    int col, width;
    bool shown;
};

static void app_draw_keys_add(struct app_draw_key *items, int *n, const char *key, const char *label,
                              bool is_on) {
    struct app_draw_key *it = &items[(*n)++];
    *it = (struct app_draw_key){.shown = true};
    snprintf(it->key, sizeof it->key, "%s", key);
    snprintf(it->label, sizeof it->label, "%s", label);
    for (char *p = it->label; is_on && *p; p++)
        *p = (char)toupper((unsigned char)*p);
    it->width = text_width(it->key) + 1 + text_width(it->label);
}

/* The keys while a line is typed; returns their number. */
static int app_draw_keys_of_prompt(const struct app *a, struct app_draw_key *items) {
    bool is_command = a->prompt_for == ACTION_COMMAND_LINE;
    int n = 0;
    app_draw_keys_add(items, &n, "Esc", "Back", false);
    app_draw_keys_add(items, &n, "Enter", is_command ? "Run" : "Accept", false);
    if (is_command) {
        app_draw_keys_add(items, &n, "Tab", "Complete", false);
        app_draw_keys_add(items, &n, "Up", "Previous", false);
    } else
        app_draw_keys_add(items, &n, "ctrl-u", "Clear", false);
    for (int i = 0; i < n; i++)
        items[i].rank = i;
    return n;
}

static int app_draw_keys_of_screen(struct app *a, struct app_draw_key *items) {
    struct app_screen *s = app_screen_top(a);
    enum action_context context = screen_context(s->def, s->state);
    int n = 0;
    for (const struct action_def *d = action_table(); d->action && n < APP_DRAW_MAX_KEYS; d++) {
        uint32_t code = d->contexts & ACTION_IN(context) ? action_key(d, context, 0) : (uint32_t)INPUT_NONE;
        char key[ACTION_KEY_NAME];
        if (!d->label || !code)
            continue;
        input_key_name(code, key, sizeof key);
        app_draw_keys_add(items, &n, key, d->label, app_screen_is_on(s, a, d->action));
        items[n - 1].action = d->action;
        items[n - 1].rank = d->rank;
    }
    return n;
}

/* Their columns, and how many there are. */
static int app_draw_keys_width(const struct app_draw_key *items, int n, int *shown) {
    int sum = 0;
    *shown = 0;
    for (int i = 0; i < n; i++)
        if (items[i].shown) {
            sum += items[i].width + (*shown ? APP_DRAW_FOOTER_GAP : 0);
            ++*shown;
        }
    return sum;
}

/* The most useful keys of what has the focus, as far as they fit into `cols`; returns the number of
 * items. */
static int app_draw_keys_layout(struct app *a, int cols, struct app_draw_key *items) {
    int n = a->prompt_for ? app_draw_keys_of_prompt(a, items) : app_draw_keys_of_screen(a, items);
    int shown;
    while (app_draw_keys_width(items, n, &shown) > cols || shown > APP_DRAW_FOOTER_KEYS) {
        int victim = -1;
        for (int i = 0; i < n; i++)
            if (items[i].shown && (victim < 0 || items[i].rank > items[victim].rank))
                victim = i;
        if (victim < 0)
            break;
        items[victim].shown = false;
    }
    int col = 0;
    for (int i = 0; i < n; i++) {
        items[i].col = col;
        col += items[i].shown ? items[i].width + APP_DRAW_FOOTER_GAP : 0;
    }
    return n;
}

/* The last line: the keys of the topmost screen, or of the line that is typed. */
static void app_draw_keys(struct app *a, struct grid *g, struct rect area) {
    struct app_draw_key items[APP_DRAW_MAX_KEYS];
    int n = app_draw_keys_layout(a, area.cols, items);
    a->footer_row = area.row;
    grid_fill(g, area, ROLE_FOOTER_LABEL);
    for (int i = 0; i < n; i++) {
        if (!items[i].shown)
            continue;
        int col = items[i].col + grid_text(g, area, 0, items[i].col, ROLE_FOOTER_KEY, items[i].key);
        grid_text(g, area, 0, col + 1, ROLE_FOOTER_LABEL, items[i].label);
    }
}

enum action app_draw_key_at(struct app *a, int col) {
    struct app_draw_key items[APP_DRAW_MAX_KEYS];
    int n = app_draw_keys_layout(a, a->body.cols, items);
    for (int i = 0; i < n; i++)
        if (items[i].shown && col >= items[i].col && col < items[i].col + items[i].width)
            return items[i].action;
    return ACTION_NONE;
}

/* The line above it: message, prompt, or the screen's status. */
static void app_draw_status(struct app *a, struct grid *g, struct rect area) {
    a->cursor_row = -1;
    if (a->prompt_for) {
        prompt_draw(&a->prompt, g, area, a->prompt_failed, &a->cursor_col);
        a->cursor_row = area.row;
        return;
    }
    grid_fill(g, area, ROLE_STATUS);
    if (*a->message) {
        enum theme_role role = a->message_is_bad ? ROLE_STATUS_BAD : ROLE_STATUS;
        grid_fill(g, area, role);
        grid_text_fit(g, area, 0, 1, area.cols - 1, role, GRID_LEFT, a->message);
        return;
    }
    struct app_screen *s = app_screen_top(a);
    int col = 0;
    area.cols -= app_draw_folded_tabs(a, g, area);
    if (a->data.paused) {
        char when[80];
        app_history_text(a, when, sizeof when);
        col += grid_text(g, area, 0, col, ROLE_STATUS_ON, " FROZEN ");
        if (*when)
            col += 3 + grid_text(g, area, 0, col + 1, ROLE_STATUS, when);
    }
    struct strbuf text;
    strbuf_init(&text, 1024);
    if (s->def->status)
        s->def->status(s->state, a, &text);
    grid_text_fit(g, area, 0, col + 1, area.cols - col - 1, ROLE_STATUS, GRID_LEFT, strbuf_str(&text));
    strbuf_fini(&text);
}

/* ---- the frame ---- */

bool app_draw_banner(const struct app *a, char *buf, size_t cap) {
    const struct data *d = &a->data;
    if (a->screens[0].def == &screen_picker)
        return false;
    if (!data_is_over(d)) {
        if (d->state == SESSION_CONNECTED && !data_is_recorded(d) &&
            debuggers_put_line(&d->holds, a->now_s, buf, cap))
            return true;
        const char *why = d->has_target && d->target.mode != MODEL_MODE_AGENT ? d->target.mode_reason : NULL;
        if (!why || strncmp(why, "--", 2) == 0)
            return false;
        snprintf(buf, cap, "%s: %s", data_is_recorded(d) ? "ENDED" : "READ-ONLY", why);
        return true;
    }
    char when[64] = "";
    const struct data_shot *shot = data_shown(d);
    if (shot) {
        time_t t = (time_t)shot->snapshot.timestamp;
        struct tm tm;
        if (localtime_r(&t, &tm))
            strftime(when, sizeof when, " Last snapshot: %H:%M:%S.", &tm);
    }
    snprintf(buf, cap, "%s: %s.%s q quits.", d->state == SESSION_LOST ? "TARGET GONE" : "NO AGENT",
             *d->why.text ? d->why.text : "the connection ended", when);
    return true;
}

/* Take `rows` from the top of `from` (negative: from the bottom). */
static struct rect app_draw_take_rows(struct rect *from, int rows) {
    struct rect part = *from;
    if (rows < 0) {
        part.rows = -rows;
        part.row = from->row + from->rows + rows;
        from->rows += rows;
    } else {
        part.rows = rows;
        from->row += rows;
        from->rows -= rows;
    }
    return part;
}

void app_draw(struct app *a, struct grid *g) {
    a->dirty = false;
    a->cursor_row = a->footer_row = a->tabs.row = -1;
    g->ascii = a->config.ascii;
    a->drawn_rows = g->rows;
    a->drawn_cols = g->cols;
    grid_clear(g);
    a->too_small = g->cols < LAYOUT_MIN_COLS || g->rows < LAYOUT_MIN_ROWS;
    if (a->too_small) {
        header_draw_too_small(a, g);
        return;
    }
    struct rect rest = grid_rect(g);
    app_draw_keys(a, g, app_draw_take_rows(&rest, -1));
    struct rect status = app_draw_take_rows(&rest, -1);
    header_draw(a, g, app_draw_take_rows(&rest, header_rows(a, g->rows)));
    if (app_draw_tabs_rows(a, g->rows))
        app_draw_tabs(a, g, app_draw_take_rows(&rest, 1));
    app_draw_status(a, g, status);
    char banner[512];
    if (app_draw_banner(a, banner, sizeof banner)) {
        struct rect line = app_draw_take_rows(&rest, 1);
        grid_fill(g, line, ROLE_BANNER);
        grid_text_fit(g, line, 0, 1, line.cols - 1, ROLE_BANNER, GRID_LEFT, banner);
    }
    a->body = rest;
    int first = a->n_screens - 1;
    while (first > 0 && a->screens[first].def->is_overlay)
        first--;
    for (int i = first; i < a->n_screens; i++)
        a->screens[i].def->draw(a->screens[i].state, a, g, rest);
    command_line_draw(a, g, rest);
}
