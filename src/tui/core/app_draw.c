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
#include "tui/core/app_ask.h"
#include "tui/core/app_history.h"
#include "tui/core/app_screen.h"
#include "tui/core/command.h"
#include "tui/core/header.h"
#include "tui/core/job_state.h"
#include "tui/core/job_time.h"
#include "tui/core/screen.h"
#include "tui/core/tour.h"
#include "tui/keys/action.h"
#include "tui/keys/input.h"
#include "tui/view/layout.h"

/* ---- the line of tabs ---- */

#define APP_DRAW_MAX_TABS 20
#define APP_DRAW_TABS_ROWS 24 /* from here on the line of tabs has a row of its own */

/* Forms of the line, the widest first. */
enum app_draw_tabs_form {
    APP_DRAW_SPACED,  /* two columns between whole words */
    APP_DRAW_CLOSE,   /* one */
    APP_DRAW_NEAREST, /* whole words of those that are nearest to the current one */
    APP_DRAW_KEYS,    /* keys alone, except for the current one */
};

struct app_draw_tabs_item {
    enum action action;
    enum theme_role role;
    bool is_on;
    char text[32];
    int col, width;
};

static void app_draw_tabs_add(struct app_draw_tabs_item *items, int *n, enum action action,
                              const char *text) {
    struct app_draw_tabs_item *it = &items[(*n)++];
    *it = (struct app_draw_tabs_item){.action = action, .role = ROLE_LABEL};
    snprintf(it->text, sizeof it->text, "%s", text);
    it->width = text_width(it->text);
}

/* All tabs in their order; returns their number. *current: the one that is shown. */
static int app_draw_tabs_all(const struct app *a, bool keys_alone, struct app_draw_tabs_item *items,
                             int *current) {
    const struct screen_def *shown = app_screen_tab(a), *def;
    int n = 0;
    *current = 0;
    for (int i = 0; (def = screen_tab(i)) && n < APP_DRAW_MAX_TABS; i++) {
        char text[sizeof items->text];
        if (!app_screen_is_offered(a, def))
            continue;
        bool is_on = def == shown, is_short = keys_alone && !is_on;
        snprintf(text, sizeof text, "%s%c%s%s%s", is_on ? "[" : "", screen_tab_key(def), is_short ? "" : " ",
                 is_short ? "" : def->title, is_on ? "]" : "");
        app_draw_tabs_add(items, &n, def->opens[0].action, text);
        items[n - 1].is_on = is_on;
        if (is_on)
            *current = n - 1;
        else if (def->needs_torch && a->data.has_target && !a->data.target.torch)
            items[n - 1].role = ROLE_MUTED;
    }
    return n;
}

static int app_draw_tabs_width(const struct app_draw_tabs_item *items, int first, int last, int gap) {
    int width = 0;
    for (int i = first; i <= last; i++)
        width += items[i].width + (i > first ? gap : 0);
    return width;
}

/* Keep the tabs around the current one that fit, with marks where some are left out. Returns their
 * number. */
static int app_draw_tabs_near(struct app_draw_tabs_item *items, int n, int current, int cols, bool ascii) {
    struct app_draw_tabs_item kept[APP_DRAW_MAX_TABS + 2];
    int first = current, last = current, n_kept = 0;
    for (bool grows = true; grows;) {
        grows = false;
        for (int side = 0; side < 2; side++) {
            int from = first - (side == 1), to = last + (side == 0);
            int marks = (from > 0 ? 3 : 0) + (to < n - 1 ? 3 : 0);
            if (from < 0 || to >= n || app_draw_tabs_width(items, from, to, 2) + marks > cols)
                continue;
            first = from;
            last = to;
            grows = true;
        }
    }
    if (first > 0)
        app_draw_tabs_add(kept, &n_kept, ACTION_SCREEN_PREV, ascii ? "<" : "\xe2\x80\xb9");
    for (int i = first; i <= last; i++)
        kept[n_kept++] = items[i];
    if (last < n - 1)
        app_draw_tabs_add(kept, &n_kept, ACTION_SCREEN_NEXT, ascii ? ">" : "\xe2\x80\xba");
    memcpy(items, kept, (size_t)n_kept * sizeof *items);
    return n_kept;
}

/* The tabs from column `col` on, in `cols` columns; returns their number. */
static int app_draw_tabs_layout(const struct app *a, enum app_draw_tabs_form form, int col, int cols,
                                bool ascii, struct app_draw_tabs_item *items) {
    int current, n = app_draw_tabs_all(a, form == APP_DRAW_KEYS, items, &current);
    int gap = form == APP_DRAW_SPACED || form == APP_DRAW_NEAREST ? 2 : 1;
    if (form == APP_DRAW_NEAREST)
        n = app_draw_tabs_near(items, n, current, cols, ascii);
    for (int i = 0; i < n; i++) {
        items[i].col = col;
        col += items[i].width + gap;
    }
    return n;
}

/* Draw them from column `col` of the first row, and note where they are. Returns the column after
 * them. */
static int app_draw_tabs_put(struct app *a, struct grid *g, struct rect area, int col, int cols,
                             enum app_draw_tabs_form form, bool in_status) {
    struct app_draw_tabs_item items[APP_DRAW_MAX_TABS + 2];
    int n = app_draw_tabs_layout(a, form, col, cols, g->ascii, items);
    a->tabs = (struct app_tabs){.row = area.row, .col = col, .cols = cols, .form = form};
    for (int i = 0; i < n; i++) {
        enum theme_role role = in_status        ? items[i].is_on ? ROLE_STATUS_ON : ROLE_STATUS
                               : items[i].is_on ? ROLE_TITLE_FOCUS
                                                : items[i].role;
        grid_text(g, area, 0, items[i].col, role, items[i].text);
        col = items[i].col + items[i].width;
    }
    return col;
}

static bool app_draw_tabs_are_shown(const struct app *a) { return a->screens[0].def->is_tab; }

/* How many of so many rows the line takes: 1 or 0. */
static int app_draw_tabs_rows(const struct app *a, int screen_rows) {
    return app_draw_tabs_are_shown(a) && !a->folded && screen_rows >= APP_DRAW_TABS_ROWS;
}

/* The columns of a whole form. */
static int app_draw_tabs_cols(const struct app *a, enum app_draw_tabs_form form) {
    struct app_draw_tabs_item items[APP_DRAW_MAX_TABS + 2];
    int n = app_draw_tabs_layout(a, form, 0, 0, false, items);
    return n ? items[n - 1].col + items[n - 1].width : 0;
}

/* Draw the line. */
static void app_draw_tabs(struct app *a, struct grid *g, struct rect area) {
    const struct screen_def *top = app_screen_top(a)->def;
    grid_fill(g, area, ROLE_TEXT);
    int room = area.cols - 2 - (top->is_tab ? 0 : text_width(top->title) + 4);
    enum app_draw_tabs_form form = APP_DRAW_SPACED;
    while (form < APP_DRAW_NEAREST && app_draw_tabs_cols(a, form) > room)
        form++;
    int col = app_draw_tabs_put(a, g, area, 1, room, form, false);
    if (!top->is_tab)
        grid_printf(g, area, 0, col + 2, ROLE_TITLE, "> %s", top->title);
}

/* Draw the folded form at the right end of the status line; returns its columns. */
static int app_draw_folded_tabs(struct app *a, struct grid *g, struct rect area) {
    int width = app_draw_tabs_cols(a, APP_DRAW_KEYS) + 1;
    if (!app_draw_tabs_are_shown(a) || a->tabs.row >= 0 || width > area.cols / 2)
        return 0;
    app_draw_tabs_put(a, g, area, area.cols - width, width, APP_DRAW_KEYS, true);
    return width + 1;
}

enum action app_draw_tab_at(const struct app *a, int row, int col) {
    struct app_draw_tabs_item items[APP_DRAW_MAX_TABS + 2];
    int n = app_draw_tabs_layout(a, (enum app_draw_tabs_form)a->tabs.form, a->tabs.col, a->tabs.cols,
                                 a->config.ascii, items);
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

/* The keys while a line is typed or a question is open; returns their number. */
static int app_draw_keys_of_prompt(const struct app *a, struct app_draw_key *items) {
    bool is_command = a->prompt_for == ACTION_COMMAND_LINE;
    int n = 0;
    if (a->ask.action) {
        app_draw_keys_add(items, &n, "y", "Yes", false);
        app_draw_keys_add(items, &n, "n", "No", false);
        return n;
    }
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
    int n = a->prompt_for || a->ask.action ? app_draw_keys_of_prompt(a, items)
                                           : app_draw_keys_of_screen(a, items);
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
    if (a->ask.action) {
        grid_fill(g, area, ROLE_STATUS_ON);
        grid_text_fit(g, area, 0, 1, area.cols - 1, ROLE_STATUS_ON, GRID_LEFT,
                      app_ask_question(a->ask.action));
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
        if (job_time_is_shown(a))
            job_time_put_text(a, when, sizeof when);
        else
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
    bool of_job = job_state_is_shown_by(a, app_screen_tab(a));
    if (app_screen_is_choice(a))
        return false;
    if (job_state_is_alone(a)) {
        if (of_job)
            return false;
        snprintf(buf, cap,
                 a->job.has_past && !job_state_can_open(a)
                     ? "no rank is open, which needs --via ssh; Overview, Steps and SQL need none"
                     : "no rank is open: Enter in Ranks opens one, [ and ] the one before and after");
        return true;
    }
    if (!data_is_over(d)) {
        if (d->state == SESSION_CONNECTED && !data_is_recorded(d) &&
            debuggers_put_line(&d->holds, a->now_s, buf, cap))
            return true;
        if (of_job)
            return false;
        const char *why = d->has_target && d->target.mode != MODEL_MODE_AGENT ? d->target.mode_reason : NULL;
        if (!why || strncmp(why, "--", 2) == 0)
            return false;
        snprintf(buf, cap, "%s: %s", data_is_recorded(d) ? "ENDED" : "READ-ONLY", why);
        return true;
    }
    if (of_job)
        return false;
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
    if (a->tour.on)
        tour_draw(a, g, app_draw_take_rows(&rest, -tour_rows(a, g->rows)));
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
