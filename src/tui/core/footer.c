/* SPDX-License-Identifier: Apache-2.0 */
/* footer: see footer.h. */
#include "tui/core/footer.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "tui/core/action_keys.h"
#include "tui/core/action_table.h"
#include "tui/keys/action.h"
#include "tui/core/app_history.h"
#include "tui/core/app_screen.h"
#include "tui/core/screen.h"
#include "tui/core/tabs.h"
#include "tui/keys/input.h"

#define FOOTER_MAX 24

struct footer_item {
    const struct action_def *def;
    char key[ACTION_KEY_NAME], label[24];
    int col, width;
    bool shown;
};

static int footer_width(const struct footer_item *items, int n) {
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += items[i].shown ? items[i].width : 0;
    return sum;
}

/* The labels that fit into `cols`, their columns, and their number. */
static int footer_layout(struct app *a, int cols, struct footer_item *items) {
    struct app_screen *s = app_top(a);
    enum action_context context = screen_context(s->def, s->state);
    int n = 0;
    for (const struct action_def *d = action_table(); d->action && n < FOOTER_MAX; d++) {
        uint32_t key = d->contexts & ACTION_IN(context) ? action_key(d, context, 0) : (uint32_t)INPUT_NONE;
        if (!d->label || !key)
            continue;
        struct footer_item *it = &items[n++];
        *it = (struct footer_item){.def = d, .shown = true};
        bool on = app_screen_is_on(s, a, d->action);
        if (key == ' ')
            snprintf(it->key, sizeof it->key, "Spc");
        else
            input_key_name(key, it->key, sizeof it->key);
        snprintf(it->label, sizeof it->label, "%s ", d->label);
        for (char *p = it->label; on && *p; p++)
            *p = (char)toupper((unsigned char)*p);
        it->width = text_width(it->key) + text_width(it->label);
    }
    while (footer_width(items, n) > cols) {
        int victim = -1;
        for (int i = 0; i < n; i++)
            if (items[i].shown && (victim < 0 || items[i].def->rank > items[victim].def->rank))
                victim = i;
        if (victim < 0)
            break;
        items[victim].shown = false;
    }
    int col = 0;
    for (int i = 0; i < n; i++) {
        items[i].col = col;
        col += items[i].shown ? items[i].width : 0;
    }
    return n;
}

void footer_draw(struct app *a, struct grid *g, struct rect area) {
    struct footer_item items[FOOTER_MAX];
    int n = footer_layout(a, area.cols, items);
    a->footer_row = area.row;
    grid_fill(g, area, ROLE_FOOTER_LABEL);
    for (int i = 0; i < n; i++) {
        if (!items[i].shown)
            continue;
        int col = items[i].col + grid_text(g, area, 0, items[i].col, ROLE_FOOTER_KEY, items[i].key);
        grid_text(g, area, 0, col, ROLE_FOOTER_LABEL, items[i].label);
    }
}

enum action footer_at(struct app *a, int col) {
    struct footer_item items[FOOTER_MAX];
    int n = footer_layout(a, a->body.cols, items);
    for (int i = 0; i < n; i++)
        if (items[i].shown && col >= items[i].col && col < items[i].col + items[i].width)
            return items[i].def->action;
    return ACTION_NONE;
}

void footer_draw_status(struct app *a, struct grid *g, struct rect area) {
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
    struct app_screen *s = app_top(a);
    int col = 0;
    area.cols -= tabs_draw_folded(a, g, area);
    if (a->data.paused) {
        char when[80];
        app_history_text(a, when, sizeof when);
        col += grid_text(g, area, 0, col, ROLE_STATUS_ON, " PAUSED ");
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
