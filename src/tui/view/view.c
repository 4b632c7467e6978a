/* SPDX-License-Identifier: Apache-2.0 */
/* view: see view.h. */
#include "tui/view/view.h"

#include <stdlib.h>

#define VIEW_WHEEL 3
#define VIEW_SCROLL 8
#define VIEW_MAX_SCROLL 1000

void view_init(struct view *v, const struct view_def *def, void *owner, struct tags *tags) {
    v->owner = owner;
    v->def = def;
    v->tags = tags;
}

void view_set_columns(struct view *v, const struct table_column *columns, int n) {
    v->columns = columns;
    v->n_columns = n;
}

void view_fini(struct view *v) { tags_fini(&v->own_tags); }

/* ---- rows ---- */

static int view_count(const struct view *v) { return v->def->count(v->owner); }

const void *view_row(const struct view *v) {
    int at = v->list.selected;
    return at >= 0 && at < view_count(v) ? v->def->row(v->owner, at) : NULL;
}

uint64_t view_tag_key(const struct view *v, const void *row) {
    return v->def->tag_key ? v->def->tag_key(row) : v->def->key(row);
}

bool view_has_tag(const struct view *v, const void *row) { return tags_has(v->tags, view_tag_key(v, row)); }

bool view_shows(const struct view *v, const void *row) {
    return (!v->filter.active || v->def->matches(row, &v->filter) != v->filter.negated) &&
           (!v->tags || !v->tags->only || view_has_tag(v, row));
}

/* Remember the thing of the selected row. */
static void view_keep(struct view *v) {
    const void *row = view_row(v);
    if (!v->def->key || (!row && v->def->forgets))
        return;
    v->has_key = row != NULL;
    v->key = row ? v->def->key(row) : 0;
}

void view_settle(struct view *v) {
    int n = view_count(v), at = -1;
    list_fit(&v->list, n, v->list.page);
    if (!v->def->key)
        return;
    if (!v->has_key)
        at = 0;
    for (int i = 0; v->has_key && at < 0 && i < n; i++)
        if (v->def->key(v->def->row(v->owner, i)) == v->key)
            at = i;
    if (at >= 0)
        list_select(&v->list, at);
    if (v->def->forgets)
        view_keep(v);
}

void view_select(struct view *v, struct app *app, int at) {
    list_select(&v->list, at);
    view_keep(v);
    if (v->def->selected)
        v->def->selected(v->owner, app);
}

static void view_rebuild(struct view *v, struct app *app) {
    if (v->def->rebuild)
        v->def->rebuild(v->owner, app);
}

/* ---- search and filter ---- */

bool view_search(struct view *v, struct app *app, int from, int step) {
    int n = view_count(v);
    for (int i = 0; v->def->matches && i < n; i++) {
        int at = ((from + i * step) % n + n) % n;
        if (v->def->matches(v->def->row(v->owner, at), &v->search)) {
            view_select(v, app, at);
            return true;
        }
    }
    return v->def->reveal && v->def->reveal(v->owner, app);
}

bool view_typed(struct view *v, struct app *app, enum action what, const char *text) {
    bool is_filter = what == ACTION_FILTER;
    match_set(is_filter ? &v->filter : &v->search, text, is_filter);
    if (!is_filter)
        return !v->search.active || view_search(v, app, v->list.selected, v->def->newest_last ? -1 : 1);
    view_rebuild(v, app);
    return view_count(v) > 0;
}

int view_hits(const struct view *v) {
    int hits = 0;
    for (int i = 0; i < view_count(v); i++)
        hits += v->def->matches(v->def->row(v->owner, i), &v->search);
    return hits;
}

bool view_can_go_back(const struct view *v) { return v->search.active || v->filter.active; }

/* ---- actions ---- */

/* Change the order or the filter; false: another action. */
static bool view_arrange(struct view *v, struct app *app, enum action action) {
    bool is_sorted = v->columns && v->sort.column >= 0;
    switch ((int)action) {
    case ACTION_SORT_NEXT:
    case ACTION_SORT_PREV:
        if (is_sorted)
            table_sort_step(&v->sort, v->columns, v->n_columns, action == ACTION_SORT_NEXT ? 1 : -1);
        break;
    case ACTION_SORT_INVERT:
        v->sort.descends = !v->sort.descends;
        break;
    case ACTION_SHOW_ALL:
        match_clear(&v->filter);
        if (v->tags)
            v->tags->only = false;
        break;
    case ACTION_BACK:
        if (!view_can_go_back(v))
            return false;
        match_clear(v->search.active ? &v->search : &v->filter);
        break;
    default:
        return false;
    }
    view_rebuild(v, app);
    return true;
}

enum view_result view_act(struct view *v, struct app *app, enum action action) {
    int step = (action == ACTION_SEARCH_NEXT) != v->def->newest_last ? 1 : -1;
    switch ((int)action) {
    case ACTION_SEARCH_NEXT:
    case ACTION_SEARCH_PREV:
        if (!v->search.active)
            return VIEW_NO_SEARCH;
        return view_search(v, app, v->list.selected + step, step) ? VIEW_DONE : VIEW_NO_MATCH;
    case ACTION_LEFT:
    case ACTION_SCROLL_LEFT:
        if (v->scroll >= 0)
            v->scroll = v->scroll > VIEW_SCROLL ? v->scroll - VIEW_SCROLL : 0;
        return VIEW_DONE;
    case ACTION_RIGHT:
    case ACTION_SCROLL_RIGHT:
        if (v->scroll >= 0)
            v->scroll += v->scroll < VIEW_MAX_SCROLL ? VIEW_SCROLL : 0;
        return VIEW_DONE;
    default:
        break;
    }
    if (view_arrange(v, app, action))
        return VIEW_DONE;
    if (!list_move(&v->list, action))
        return VIEW_IGNORED;
    view_select(v, app, v->list.selected);
    return VIEW_DONE;
}

bool view_mouse(struct view *v, struct app *app, const struct input_event *e, bool *again) {
    int head = v->columns ? 1 : 0, row = e->row - v->area.row - head;
    if (again)
        *again = false;
    if (e->button == INPUT_WHEEL_UP || e->button == INPUT_WHEEL_DOWN) {
        list_wheel(&v->list, e->button == INPUT_WHEEL_UP ? -VIEW_WHEEL : VIEW_WHEEL);
        view_select(v, app, v->list.selected);
        return true;
    }
    if (row < -head || row >= v->area.rows - head || (row < 0 && e->button == INPUT_MENU))
        return false;
    if (row < 0) {
        struct rect area = v->area;
        if (v->tags)
            tags_take_rect(v->tags, &area);
        int column = table_column_at(v->widths, v->n_columns, e->col - area.col);
        if (column < 0 || !v->columns[column].compare)
            return false;
        table_sort_by(&v->sort, v->columns, column);
        view_rebuild(v, app);
        return true;
    }
    if (v->list.top + row >= v->list.count)
        return false;
    if (again)
        *again = v->list.top + row == v->list.selected;
    view_select(v, app, v->list.top + row);
    return true;
}

/* ---- drawing ---- */

void view_draw(struct view *v, struct grid *g, struct rect area, const char *empty) {
    const struct view_def *def = v->def;
    int head = v->columns ? 1 : 0;
    v->area = area;
    if (v->tags)
        tags_take_rect(v->tags, &area);
    list_fit(&v->list, view_count(v), area.rows - head);
    if (head) {
        table_layout(v->columns, v->n_columns, area.cols, v->widths);
        table_draw_head(v->columns, v->n_columns, v->widths, v->sort, g, area);
    }
    if (v->list.count == 0)
        grid_text(g, area, head ? (area.rows > 2 ? 2 : 1) : 0, 1 + head, ROLE_MUTED, empty);
    for (int i = 0; i < v->list.page && v->list.top + i < v->list.count; i++) {
        const void *row = def->row(v->owner, v->list.top + i);
        struct rect line = {area.row + head + i, area.col, 1, area.cols};
        if (head)
            table_draw_row(v->columns, v->n_columns, v->widths, row, v->scroll, g, line, 0);
        else
            def->draw_row(v->owner, row, v->scroll, g, line);
        if (v->tags && v->tags->n)
            tags_draw(v->tags, view_tag_key(v, row), g, line, 0);
        if (v->list.top + i == v->list.selected)
            grid_restyle(g, line, v->in_pane ? ROLE_SELECTION_OTHER : ROLE_SELECTION);
        match_highlight(&v->search, g, line, 0);
    }
}

void view_put_filter(const struct view *v, struct strbuf *out) {
    if (v->filter.active)
        strbuf_addf(out, "   FILTER %s", v->filter.text);
    if (v->tags)
        tags_put_text(v->tags, out);
}

void view_put_sort(const struct view *v, struct strbuf *out) {
    strbuf_addf(out, "   sorted by %s", v->columns[v->sort.column].title);
}
