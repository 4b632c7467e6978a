/* SPDX-License-Identifier: Apache-2.0 */
/* outline: see outline.h. */
#include "tui/view/outline.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"

#define OUTLINE_MAX_TOGGLED 65536
#define OUTLINE_MAX_INDENT 32

uint64_t outline_key(const char *text, uint64_t seed) {
    return hash_bytes(text ? text : "", text ? strlen(text) : 0) ^ (seed * 0x9e3779b97f4a7c15ULL);
}

void outline_fini(struct outline *o) {
    free(o->nodes);
    free(o->lines);
    free(o->toggled);
    view_fini(&o->view);
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

/* Does it match the filter, and is it tagged if only tagged ones are shown? */
static bool outline_passes(const struct outline *o, const struct outline_node *n) {
    return !n->is_group &&
           (!o->view.filter.active || o->def->matches(n, &o->view.filter) != o->view.filter.negated) &&
           (!o->view.own_tags.only || n->is_tagged);
}

/* Is it open because it holds a match, whatever was folded? */
static bool outline_must_open(const struct outline *o, const struct outline_node *n) {
    return o->view.filter.active || (o->view.own_tags.only && n->holds_tagged);
}

static const char *outline_mark(const struct outline *o, const struct outline_node *n) {
    if (o->flat)
        return "";
    if (!n->has_children)
        return "  ";
    return o->ascii ? (n->is_open ? "- " : "+ ") : (n->is_open ? "\xe2\x96\xbe " : "\xe2\x96\xb8 "); /* ▾ ▸ */
}

/* Set depths, groups, tags, and what is shown, for nodes and for those that hold them. */
static void outline_update(struct outline *o) {
    o->things = o->wanted = 0;
    for (size_t i = 0; i < o->n_nodes; i++) {
        struct outline_node *n = &o->nodes[i];
        const struct outline_node *above = n->parent >= 0 ? &o->nodes[n->parent] : NULL;
        n->depth = above ? above->depth + 1 : 0;
        n->is_tagged =
            o->view.own_tags.n && ((above && above->is_tagged) || tags_has(&o->view.own_tags, n->key));
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

/* Nodes by parent, sorted: the children of node i are at first[i + 1] to first[i + 2] of `row`. */
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

/* The lines of a tree, depth first; without recursion, because a tree of the job may have any
 * depth. `next`: the next child of each node, which outline_bucket left at the end. */
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
        table_sort_rows(o->def->columns, o->view.sort, sorted, n);
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
    view_settle(&o->view);
}

void outline_take(struct outline *o, struct outline_node *nodes, size_t n) {
    free(o->nodes);
    o->nodes = nodes;
    o->n_nodes = nodes ? n : 0;
    view_set_columns(&o->view, o->def->columns, o->def->n_columns);
    o->rows.matches = o->def->matches;
    outline_order(o);
}

const struct outline_node *outline_selected(const struct outline *o) { return view_row(&o->view); }

/* ---- drawing ---- */

void outline_put_name(const struct outline_node *n, const char *name, char *buf, size_t cap) {
    int indent = n->depth * OUTLINE_INDENT;
    indent = indent > OUTLINE_MAX_INDENT ? OUTLINE_MAX_INDENT : indent;
    snprintf(buf, cap, "%*s%s%s", indent, "", n->mark, name);
}

void outline_status(const struct outline *o, const char *things, struct strbuf *out) {
    strbuf_addf(out, "%s %zu", things, o->wanted);
    if (o->wanted != o->things)
        strbuf_addf(out, " of %zu", o->things);
    view_put_filter(&o->view, out);
    view_put_sort(&o->view, out);
    if (o->view.search.active) {
        size_t hits = 0;
        for (size_t i = 0; i < o->n_nodes; i++)
            hits +=
                o->nodes[i].wanted && !o->nodes[i].is_group && o->def->matches(&o->nodes[i], &o->view.search);
        strbuf_addf(out, "   /%s: %zu", o->view.search.text, hits);
    }
}

/* ---- lines, for the view ---- */

static int outline_count(const void *owner) { return (int)((const struct outline *)owner)->n_lines; }

static const void *outline_line(const void *owner, int at) {
    return ((const struct outline *)owner)->lines[at];
}

static uint64_t outline_line_key(const void *line) { return ((const struct outline_node *)line)->key; }

static void outline_put_line(const void *owner, const void *line, struct screen_pick *what,
                             struct strbuf *one, struct strbuf *whole) {
    const struct outline *o = owner;
    (void)what;
    o->def->put_name(((const struct outline_node *)line)->row, one);
    table_put_row(o->def->columns, o->def->n_columns, line, whole);
}

static void outline_rebuild(void *owner, struct app *app) {
    (void)app;
    outline_order(owner);
}

/* ---- search and filter ---- */

/* Open everything that holds a node. */
static void outline_reveal(struct outline *o, const struct outline_node *n) {
    bool changed = false;
    for (int p = o->flat ? -1 : n->parent; p >= 0; p = o->nodes[p].parent)
        if (!o->nodes[p].is_open && !outline_must_open(o, &o->nodes[p])) {
            outline_toggle(o, o->nodes[p].key);
            changed = true;
        }
    o->view.has_key = true;
    o->view.key = n->key;
    if (changed)
        outline_order(o);
    else
        view_settle(&o->view);
}

/* The first match among those that are folded. */
static bool outline_reveal_match(void *owner, struct app *app) {
    struct outline *o = owner;
    (void)app;
    for (size_t i = 0; i < o->n_nodes; i++)
        if (o->nodes[i].wanted && !o->nodes[i].is_group && o->def->matches(&o->nodes[i], &o->view.search)) {
            outline_reveal(o, &o->nodes[i]);
            return true;
        }
    return false;
}

void outline_init(struct outline *o, const struct outline_def *def, bool ascii) {
    o->def = def;
    o->ascii = ascii;
    o->rows = (struct view_def){.count = outline_count,
                                .row = outline_line,
                                .key = outline_line_key,
                                .matches = def->matches,
                                .put = outline_put_line,
                                .rebuild = outline_rebuild,
                                .reveal = outline_reveal_match};
    view_init(&o->view, &o->rows, o, &o->view.own_tags);
    view_set_columns(&o->view, def->columns, def->n_columns);
}

/* ---- folding ---- */

/* Open or fold the selected node. Folding a leaf or a folded node selects its parent; opening an
 * open one selects its first child. */
static void outline_fold(struct outline *o, bool open) {
    const struct outline_node *n = outline_selected(o);
    if (!n || o->flat)
        return;
    if (n->has_children && n->is_open != open && !outline_must_open(o, n)) {
        outline_toggle(o, n->key);
        outline_order(o);
    } else if (!open && n->parent >= 0) {
        o->view.key = o->nodes[n->parent].key;
        o->view.has_key = true;
        view_settle(&o->view);
    } else if (open && n->has_children)
        view_select(&o->view, NULL, o->view.list.selected + 1);
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
        o->view.key = o->nodes[p].key; /* it will be hidden; its parent is visible */
    o->open_depth = any ? INT_MAX : -1;
    o->n_toggled = 0;
    outline_order(o);
}

bool outline_act(struct outline *o, enum action action) {
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

bool outline_mouse(struct outline *o, struct app *app, const struct input_event *e) {
    const struct rect *area = &o->view.area;
    int col = e->col - area->col;
    if (e->row < area->row || e->row >= area->row + area->rows || col < 0 || col >= area->cols ||
        !view_mouse(&o->view, app, e, NULL))
        return false;
    const struct outline_node *n = outline_selected(o);
    int mark = n ? n->depth * OUTLINE_INDENT + OUTLINE_INDENT + (o->view.own_tags.n ? TAGS_COLS : 0) : 0;
    if (e->button == INPUT_CLICK && e->row > area->row && n && n->has_children && col < mark)
        outline_fold(o, !n->is_open);
    return true;
}
