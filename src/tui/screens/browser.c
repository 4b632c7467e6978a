/* SPDX-License-Identifier: Apache-2.0 */
/* browser: see browser.h. */
#include "tui/screens/browser.h"

#include "tui/core/app_feed.h"
#include "tui/view/layout.h"

#define BROWSER_TWO_LINES 8 /* rows from which on the head takes two */
#define BROWSER_SCROLL 8
#define BROWSER_WHEEL 3

const char *const browser_not_facts[] = {"rank", "host", NULL};

void browser_draw_head(struct app *app, enum app_feed_id id, const char *line, const char *more,
                       struct grid *g, struct rect *area) {
    int rows = area->rows >= BROWSER_TWO_LINES ? 2 : 1;
    struct rect head = {area->row, area->col, rows, area->cols};
    struct strbuf state;
    area->row += rows;
    area->rows -= rows;
    grid_fill(g, head, ROLE_TEXT);
    grid_text(g, head, 0, 1, ROLE_VALUE, line);
    if (rows < 2)
        return;
    strbuf_init(&state, 1024);
    app_feed_put_state(app, id, &state);
    bool is_bad = app_feed_get(app, id)->failed_s > 0;
    int col = grid_text(g, head, 1, 1, is_bad ? ROLE_STATUS_BAD : ROLE_MUTED, strbuf_str(&state));
    if (more && *more)
        grid_text(g, head, 1, col ? col + 4 : 1, ROLE_STATUS_ON, more);
    strbuf_fini(&state);
}

void browser_draw(struct browser *b, struct outline *o, const char *title, const char *empty, struct grid *g,
                  struct rect area) {
    struct rect table = area, pane = area, line = {0};
    pane.rows = 0;
    if (b->open && (b->zoomed || !layout_has_panes(area))) {
        pane.rows = b->in_pane ? area.rows : 0;
        table.rows = b->in_pane ? 0 : area.rows;
    } else if (b->open)
        layout_panes(area, (int)o->n_lines + 1, &table, &pane, &line);
    b->pane_area = pane;
    o->view.area = table;
    if (table.rows > 0)
        view_draw(browser_view(b, o), g, table, empty);
    for (int i = 0; i < line.rows; i++)
        grid_text(g, line, i, 0, ROLE_BORDER, glyph(g, GLYPH_VLINE));
    if (pane.rows > 0)
        facts_draw(&b->facts, title, b->in_pane, &o->view.search, g, pane);
}

static void browser_enter(struct browser *b, struct outline *o) {
    const struct outline_node *n = outline_selected(o);
    if (n && n->is_group && !b->in_pane) {
        outline_turn(o);
        return;
    }
    b->in_pane = b->open; /* again: focus it */
    b->open = true;
}

struct view *browser_view(const struct browser *b, struct outline *o) {
    o->view.in_pane = b->in_pane;
    return &o->view;
}

/* One step back; false: none here, or a search comes first. */
static bool browser_back(struct browser *b, const struct outline *o) {
    bool *last = b->zoomed ? &b->zoomed : b->in_pane ? &b->in_pane : &b->open;
    if (o->view.search.active || !*last)
        return false;
    *last = false;
    return true;
}

static bool browser_act_pane(struct browser *b, enum action action) {
    struct facts *f = &b->facts;
    switch ((int)action) {
    case ACTION_LEFT:
    case ACTION_SCROLL_LEFT:
        f->scroll = f->scroll > BROWSER_SCROLL ? f->scroll - BROWSER_SCROLL : 0;
        return true;
    case ACTION_RIGHT:
    case ACTION_SCROLL_RIGHT:
        f->scroll += f->scroll < FACTS_TEXT ? BROWSER_SCROLL : 0;
        return true;
    default:
        return list_move(&f->list, action);
    }
}

bool browser_act(struct browser *b, struct outline *o, enum action action, enum action opens) {
    if (action == opens) {
        browser_enter(b, o);
        return true;
    }
    switch ((int)action) {
    case ACTION_BACK:
        return browser_back(b, o);
    case ACTION_FOCUS:
        b->in_pane = !b->in_pane;
        b->open |= b->in_pane;
        return true;
    case ACTION_ZOOM:
        b->zoomed = !b->zoomed && b->open;
        return true;
    default:
        return (b->in_pane && browser_act_pane(b, action)) || outline_act(o, action);
    }
}

bool browser_mouse(struct browser *b, struct outline *o, struct app *app, const struct input_event *e) {
    const struct rect *r = &b->pane_area;
    bool is_wheel = e->button == INPUT_WHEEL_UP || e->button == INPUT_WHEEL_DOWN;
    if (e->row >= r->row && e->row < r->row + r->rows && e->col >= r->col && e->col < r->col + r->cols) {
        if (is_wheel)
            list_wheel(&b->facts.list, e->button == INPUT_WHEEL_UP ? -BROWSER_WHEEL : BROWSER_WHEEL);
        else
            b->in_pane = true;
        if (!is_wheel && e->row > r->row)
            list_select(&b->facts.list, b->facts.list.top + e->row - r->row - 1);
        return true;
    }
    if (!outline_mouse(o, app, e))
        return false;
    b->in_pane = b->in_pane && is_wheel;
    return true;
}
