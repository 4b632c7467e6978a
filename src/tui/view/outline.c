/* SPDX-License-Identifier: Apache-2.0 */
/* outline: see outline.h. */
#include "tui/view/outline.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"

#define OUTLINE_SCROLL 8
#define OUTLINE_WHEEL 3
#define OUTLINE_MAX_TOGGLED 65536
#define OUTLINE_MAX_INDENT 32

uint64_t outline_key(const char *text, uint64_t seed) {
    return hash_bytes(text ? text : "", text ? strlen(text) : 0) ^ (seed * 0x9e3779b97f4a7c15ULL);
}

void outline_fini(struct outline *o) {
    free(o->nodes);
    free(o->lines);
    free(o->toggled);
    tags_fini(&o->tags);
    memset(o, 0, sizeof *o);
}

/* ---- order ---- */

static bool outline_is_toggled(const struct outline *o, uint64_t key) {
    for (size_t i = 0; i < o->n_toggled; i++)
        if (o->toggled[i] == key)
            return true;
    return false;
}

static void outline_toggle(struct outline *o, uint64_t key) {
    for (size_t i = 0; i < o->n_toggled; i++)
        if (o->toggled[i] == key) {
            o->toggled[i] = o->toggled[--o->n_toggled];
            return;
        }
    if (o->n_toggled == o->cap_toggled) {
        size_t cap = o->cap_toggled ? o->cap_toggled * 2 : 16;
        uint64_t *more = cap <= OUTLINE_MAX_TOGGLED ? realloc(o->toggled, cap * sizeof *more) : NULL;
        if (!more)
            return;
        o->toggled = more;
        o->cap_toggled = cap;
    }
    o->toggled[o->n_toggled++] = key;
}

/* Is it a thing that passes the filter, and tagged where only that is shown? */
static bool outline_passes(const struct outline *o, const struct outline_node *n) {
    return !n->is_group && (!o->filter.active || o->def->matches(n->row, &o->filter) != o->filter.negated) &&
           (!o->tags.only || n->is_tagged);
}

/* Is it open, whatever was folded: for what is looked for is in it? */
static bool outline_must_open(const struct outline *o, const struct outline_node *n) {
    return o->filter.active || (o->tags.only && n->holds_tagged);
}

static const char *outline_mark(const struct outline *o, const struct outline_node *n) {
    if (o->flat)
        return "";
    if (!n->has_children)
        return "  ";
    return o->ascii ? (n->is_open ? "- " : "+ ") : (n->is_open ? "\xe2\x96\xbe " : "\xe2\x96\xb8 "); /* ▾ ▸ */
}

/* Depths, what holds others, what is tagged, and what is to be shown, for itself or for what it holds. */
static void outline_update(struct outline *o) {
    o->things = o->wanted = 0;
    for (size_t i = 0; i < o->n_nodes; i++) {
        struct outline_node *n = &o->nodes[i];
        const struct outline_node *above = n->parent >= 0 ? &o->nodes[n->parent] : NULL;
        n->depth = above ? above->depth + 1 : 0;
        n->is_tagged = o->tags.n && ((above && above->is_tagged) || tags_has(&o->tags, n->key));
        n->has_children = n->holds_tagged = false;
        n->wanted = n->passes = outline_passes(o, n);
        o->things += !n->is_group;
        o->wanted += n->passes;
    }
    for (size_t i = o->n_nodes; i-- > 0;) {
        struct outline_node *n = &o->nodes[i];
        if (n->parent < 0 || !n->wanted)
            continue;
        struct outline_node *above = &o->nodes[n->parent];
        above->wanted = above->has_children = true;
        above->holds_tagged |= n->holds_tagged || (n->is_tagged && !above->is_tagged);
    }
    for (size_t i = 0; i < o->n_nodes; i++) {
        struct outline_node *n = &o->nodes[i];
        n->is_open =
            n->has_children && !o->flat &&
            (outline_must_open(o, n) || (n->depth <= o->open_depth) != outline_is_toggled(o, n->key));
        n->depth = o->flat ? 0 : n->depth;
        n->mark = outline_mark(o, n);
    }
}

/* Nodes by parent, each parent's as they are sorted: what node i holds stands from first[i + 1] to first[i + 2] of `row`. */
static void outline_bucket(const struct outline *o, const void **sorted, const void **row, uint32_t *first,
                           uint32_t *next) {
    for (size_t i = 0; i < o->n_nodes; i++)
        first[o->nodes[i].parent + 2]++;
    for (size_t i = 1; i < o->n_nodes + 2; i++)
        first[i] += first[i - 1];
    memcpy(next, first, (o->n_nodes + 2) * sizeof *next);
    for (size_t i = 0; i < o->n_nodes; i++)
        row[next[((const struct outline_node *)sorted[i])->parent + 1]++] = sorted[i];
}

/* The lines of a tree, depth first; without recursion, for a tree of the job may be as deep as it likes. `next`: the next one to be
 * looked at of each node, which outline_bucket left at the end. */
static void outline_walk(struct outline *o, const void **row, const uint32_t *first, uint32_t *next) {
    memcpy(next, first, (o->n_nodes + 2) * sizeof *next);
    for (int parent = -1;;) {
        if (next[parent + 1] >= first[parent + 2]) {
            if (parent < 0)
                return;
            parent = o->nodes[parent].parent;
            continue;
        }
        const struct outline_node *n = row[next[parent + 1]++];
        if (!n->wanted)
            continue;
        o->lines[o->n_lines++] = n;
        if (n->is_open)
            parent = (int)(n - o->nodes);
    }
}

static void outline_settle(struct outline *o) {
    int at = o->has_key ? -1 : 0;
    for (size_t i = 0; at < 0 && i < o->n_lines; i++)
        if (o->lines[i]->key == o->key)
            at = (int)i;
    list_fit(&o->list, (int)o->n_lines, o->list.page);
    if (at >= 0)
        list_select(&o->list, at);
}

void outline_order(struct outline *o) {
    size_t n = o->n_nodes;
    const void **sorted = calloc(n + 1, sizeof *sorted), **row = calloc(n + 1, sizeof *row);
    uint32_t *first = calloc(n + 3, sizeof *first), *next = calloc(n + 3, sizeof *next);
    const struct outline_node **lines = calloc(n + 1, sizeof *lines);
    free(o->lines);
    o->lines = lines;
    o->n_lines = 0;
    if (sorted && row && first && next && lines) {
        outline_update(o);
        for (size_t i = 0; i < n; i++)
            sorted[i] = &o->nodes[i];
        table_sort_rows(o->def->columns, o->sort, sorted, n);
        if (!o->flat) {
            outline_bucket(o, sorted, row, first, next);
            outline_walk(o, row, first, next);
        }
        for (size_t i = 0; o->flat && i < n; i++) {
            const struct outline_node *node = sorted[i];
            if (node->passes)
                o->lines[o->n_lines++] = node;
        }
    }
    free(sorted);
    free(row);
    free(first);
    free(next);
    outline_settle(o);
}

void outline_take(struct outline *o, struct outline_node *nodes, size_t n) {
    free(o->nodes);
    o->nodes = nodes;
    o->n_nodes = nodes ? n : 0;
    outline_order(o);
}

const struct outline_node *outline_selected(const struct outline *o) {
    return (size_t)o->list.selected < o->n_lines ? o->lines[o->list.selected] : NULL;
}

static void outline_select(struct outline *o, int line) {
    list_select(&o->list, line);
    const struct outline_node *n = outline_selected(o);
    o->has_key = n != NULL;
    o->key = n ? n->key : 0;
}

/* ---- drawing ---- */

void outline_put_name(const struct outline_node *n, const char *name, char *buf, size_t cap) {
    int indent = n->depth * OUTLINE_INDENT;
    indent = indent > OUTLINE_MAX_INDENT ? OUTLINE_MAX_INDENT : indent;
    (void)snprintf(buf, cap, "%*s%s%s", indent, "", n->mark, name);
}

void outline_draw(struct outline *o, struct grid *g, struct rect area, bool focused, const char *empty) {
    tags_take_rect(&o->tags, &area);
    o->area = area;
    list_fit(&o->list, (int)o->n_lines, area.rows - 1);
    table_layout(o->def->columns, o->def->n_columns, area.cols, o->widths);
    table_draw_head(o->def->columns, o->def->n_columns, o->widths, o->sort, g, area);
    if (o->n_lines == 0)
        (void)grid_text(g, area, area.rows > 2 ? 2 : 1, 2, ROLE_MUTED, empty);
    for (int i = 0; i < o->list.page && o->list.top + i < o->list.count; i++) {
        int at = o->list.top + i;
        table_draw_row(o->def->columns, o->def->n_columns, o->widths, o->lines[at], o->scroll, g, area,
                       i + 1);
        struct rect row = {area.row + i + 1, area.col, 1, area.cols};
        tags_draw(&o->tags, o->lines[at]->key, g, area, i + 1);
        if (at == o->list.selected)
            grid_restyle(g, row, focused ? ROLE_SELECTION : ROLE_SELECTION_OTHER);
        match_highlight(&o->search, g, row, 0);
    }
}

void outline_status(const struct outline *o, const char *things, struct strbuf *out) {
    (void)strbuf_addf(out, "%s %zu", things, o->wanted);
    if (o->wanted != o->things)
        (void)strbuf_addf(out, " of %zu", o->things);
    if (o->filter.active)
        (void)strbuf_addf(out, "   FILTER %s", o->filter.text);
    tags_put_text(&o->tags, out);
    (void)strbuf_addf(out, "   sorted by %s", o->def->columns[o->sort.column].title);
    if (o->search.active) {
        size_t hits = 0;
        for (size_t i = 0; i < o->n_nodes; i++)
            hits +=
                o->nodes[i].wanted && !o->nodes[i].is_group && o->def->matches(o->nodes[i].row, &o->search);
        (void)strbuf_addf(out, "   /%s: %zu", o->search.text, hits);
    }
}

void outline_put_text(const struct outline *o, const struct outline_node *n, struct strbuf *one,
                      struct strbuf *whole) {
    o->def->put_name(n->row, one);
    table_put_row(o->def->columns, o->def->n_columns, n, whole);
}

/* ---- tagged rows ---- */

static struct outline *outline_of(const void *state) {
    return ((const struct outline_focus *)state)->outline;
}

static struct tags *outline_tags(void *state, struct app *app) {
    (void)app;
    return &outline_of(state)->tags;
}

static int outline_count_rows(const void *state, const struct app *app) {
    (void)app;
    return (int)outline_of(state)->n_lines;
}

static int outline_selected_row(const void *state, const struct app *app) {
    const struct outline *o = outline_of(state);
    (void)app;
    return outline_selected(o) && !((const struct outline_focus *)state)->in_pane ? o->list.selected : -1;
}

static uint64_t outline_row_key(const void *state, const struct app *app, int row) {
    (void)app;
    return outline_of(state)->lines[row]->key;
}

static void outline_put(const void *state, const struct app *app, int row, struct screen_pick *what,
                        struct strbuf *one, struct strbuf *whole) {
    const struct outline *o = outline_of(state);
    (void)app;
    *what = (struct screen_pick){.tid = 0};
    outline_put_text(o, o->lines[row], one, whole);
}

static void outline_renew(void *state, struct app *app) {
    (void)app;
    outline_order(outline_of(state));
}

const struct screen_rows outline_tagged = {.tags = outline_tags,
                                           .count = outline_count_rows,
                                           .selected = outline_selected_row,
                                           .key = outline_row_key,
                                           .put = outline_put,
                                           .renew = outline_renew};

/* ---- search and filter ---- */

/* Open all that holds a node. */
static void outline_reveal(struct outline *o, const struct outline_node *n) {
    bool changed = false;
    for (int p = o->flat ? -1 : n->parent; p >= 0; p = o->nodes[p].parent)
        if (!o->nodes[p].is_open && !outline_must_open(o, &o->nodes[p])) {
            outline_toggle(o, o->nodes[p].key);
            changed = true;
        }
    o->has_key = true;
    o->key = n->key;
    if (changed)
        outline_order(o);
    else
        outline_settle(o);
}

/* The next thing that matches: of the lines that are shown, else of those that are folded away. */
static bool outline_search(struct outline *o, int from, int step) {
    int n = (int)o->n_lines;
    for (int i = 0; i < n; i++) {
        int at = ((from + i * step) % n + n) % n;
        if (o->lines[at]->is_group || !o->def->matches(o->lines[at]->row, &o->search))
            continue;
        outline_select(o, at);
        return true;
    }
    for (size_t i = 0; i < o->n_nodes; i++)
        if (o->nodes[i].wanted && !o->nodes[i].is_group && o->def->matches(o->nodes[i].row, &o->search)) {
            outline_reveal(o, &o->nodes[i]);
            return true;
        }
    return false;
}

bool outline_typed(struct outline *o, enum action what, const char *text, enum screen_typed phase) {
    bool is_filter = what == ACTION_FILTER;
    match_set(is_filter ? &o->filter : &o->search, phase == SCREEN_CANCEL ? "" : text, is_filter);
    if (!is_filter)
        return !o->search.active || outline_search(o, o->list.selected, 1);
    outline_order(o);
    return o->n_lines > 0;
}

static void outline_search_on(struct outline *o, struct app *app, int step) {
    if (!o->search.active)
        app_message(app, false, "nothing was searched for: / searches");
    else if (!outline_search(o, o->list.selected + step, step))
        app_refuse(app, "nothing matches '%s'", o->search.text);
}

bool outline_back(struct outline *o) {
    if (o->search.active)
        match_clear(&o->search);
    else if (o->filter.active)
        match_clear(&o->filter);
    else
        return false;
    outline_order(o);
    return true;
}

/* ---- folding ---- */

/* Open or fold the selected node; what holds nothing, or is folded already, leads to what holds it, and what is open into it. */
static void outline_fold(struct outline *o, bool open) {
    const struct outline_node *n = outline_selected(o);
    if (!n || o->flat)
        return;
    if (n->has_children && n->is_open != open && !outline_must_open(o, n)) {
        outline_toggle(o, n->key);
        outline_order(o);
    } else if (!open && n->parent >= 0) {
        o->key = o->nodes[n->parent].key;
        o->has_key = true;
        outline_settle(o);
    } else if (open && n->has_children)
        outline_select(o, o->list.selected + 1);
}

void outline_turn(struct outline *o) {
    const struct outline_node *n = outline_selected(o);
    if (n && n->has_children)
        outline_fold(o, !n->is_open);
}

static void outline_fold_all(struct outline *o) {
    const struct outline_node *n = outline_selected(o);
    bool any = false;
    for (size_t i = 0; i < o->n_nodes; i++)
        any |= o->nodes[i].has_children && !o->nodes[i].is_open;
    for (int p = !any && n && !o->flat ? n->parent : -1; p >= 0; p = o->nodes[p].parent)
        o->key = o->nodes[p].key; /* it will not be seen, what holds it is */
    o->open_depth = any ? INT_MAX : -1;
    o->n_toggled = 0;
    outline_order(o);
}

static bool outline_act_fold(struct outline *o, enum action action) {
    switch ((int)action) {
    case ACTION_LEFT:
    case ACTION_RIGHT:
        outline_fold(o, action == ACTION_RIGHT);
        return true;
    case ACTION_FOLD:
    case ACTION_UNFOLD: {
        const struct outline_node *n = outline_selected(o);
        if (n && n->has_children && n->is_open != (action == ACTION_UNFOLD))
            outline_fold(o, action == ACTION_UNFOLD);
        return true;
    }
    case ACTION_FOLD_ALL:
        outline_fold_all(o);
        return true;
    case ACTION_TREE:
        o->flat = !o->flat;
        outline_order(o);
        return true;
    default:
        return false;
    }
}

bool outline_act(struct outline *o, struct app *app, enum action action) {
    switch ((int)action) {
    case ACTION_SORT_NEXT:
    case ACTION_SORT_PREV:
        table_sort_step(&o->sort, o->def->columns, o->def->n_columns, action == ACTION_SORT_NEXT ? 1 : -1);
        outline_order(o);
        return true;
    case ACTION_SORT_INVERT:
        o->sort.descends = !o->sort.descends;
        outline_order(o);
        return true;
    case ACTION_SEARCH_NEXT:
    case ACTION_SEARCH_PREV:
        outline_search_on(o, app, action == ACTION_SEARCH_NEXT ? 1 : -1);
        return true;
    case ACTION_SCROLL_LEFT:
        o->scroll = o->scroll > OUTLINE_SCROLL ? o->scroll - OUTLINE_SCROLL : 0;
        return true;
    case ACTION_SCROLL_RIGHT:
        o->scroll += o->scroll < 1000 ? OUTLINE_SCROLL : 0;
        return true;
    case ACTION_SHOW_ALL:
        match_clear(&o->filter);
        o->tags.only = false;
        outline_order(o);
        return true;
    default:
        break;
    }
    if (outline_act_fold(o, action))
        return true;
    if (!list_move(&o->list, action))
        return false;
    outline_select(o, o->list.selected);
    return true;
}

/* ---- mouse ---- */

bool outline_mouse(struct outline *o, const struct input_event *e) {
    const struct rect *r = &o->area;
    int row = e->row - r->row - 1, wheel = e->button == INPUT_WHEEL_UP     ? -OUTLINE_WHEEL
                                           : e->button == INPUT_WHEEL_DOWN ? OUTLINE_WHEEL
                                                                           : 0;
    int left = r->col - (o->tags.n ? TAGS_COLS : 0); /* a click on the sign is one on the row */
    if (row < -1 || row >= r->rows - 1 || e->col < left || e->col >= r->col + r->cols)
        return false;
    if (wheel) {
        list_wheel(&o->list, wheel);
        outline_select(o, o->list.selected);
    } else if (row < 0 && e->button == INPUT_MENU)
        return false;
    else if (row < 0) {
        int column = table_column_at(o->widths, o->def->n_columns, e->col - r->col);
        if (column >= 0)
            table_sort_by(&o->sort, o->def->columns, column);
        outline_order(o);
    } else if (o->list.top + row < o->list.count) {
        int line = o->list.top + row;
        const struct outline_node *n = o->lines[line];
        bool on_mark = n->has_children && e->col - r->col < n->depth * OUTLINE_INDENT + OUTLINE_INDENT;
        outline_select(o, line);
        if (on_mark && e->button == INPUT_CLICK)
            outline_fold(o, !n->is_open);
    }
    return true;
}
