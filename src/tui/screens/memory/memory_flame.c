/* SPDX-License-Identifier: Apache-2.0 */
/* memory_flame: see memory_flame.h. */
#include "tui/screens/memory/memory_flame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "tui/core/app_feed.h"
#include "tui/screens/flame/flame_color.h"

#define MEMORY_FLAME_SLOTS (4 * MEMORY_FLAME_NAMES)
#define MEMORY_FLAME_TEXT 256
#define MEMORY_FLAME_DEPTH 512

bool memory_flame_is_there(const struct memory_flame *f) { return f->tree && flame_count(f->tree) > 1; }

static void memory_flame_forget(struct memory_flame *f) {
    for (size_t i = 0; i < f->n_names; i++)
        free(f->names[i]);
    f->n_names = 0;
    if (f->slots)
        memset(f->slots, 0, MEMORY_FLAME_SLOTS * sizeof *f->slots);
    if (f->tree)
        flame_clear(f->tree);
}

void memory_flame_fini(struct memory_flame *f) {
    memory_flame_forget(f);
    flame_free(f->tree);
    stack_counts_free(f->none);
    free(f->names);
    free(f->slots);
    flame_layout_fini(&f->layout);
    memset(f, 0, sizeof *f);
}

static int memory_flame_open(struct memory_flame *f) {
    f->tree = f->tree ? f->tree : flame_new();
    f->none = f->none ? f->none : stack_counts_new();
    f->names = f->names ? f->names : calloc(MEMORY_FLAME_NAMES, sizeof *f->names);
    f->slots = f->slots ? f->slots : calloc(MEMORY_FLAME_SLOTS, sizeof *f->slots);
    return f->tree && f->none && f->names && f->slots ? 0 : -1;
}

/* The number of a name; -1: no room, or no memory. */
static int64_t memory_flame_name(struct memory_flame *f, const char *text, size_t len) {
    size_t at = hash_mix(hash_fnv(HASH_FNV_START, text, len)) % MEMORY_FLAME_SLOTS;
    while (f->slots[at]) {
        const char *name = f->names[f->slots[at] - 1];
        if (strlen(name) == len && memcmp(name, text, len) == 0)
            return f->slots[at] - 1;
        at = (at + 1) % MEMORY_FLAME_SLOTS;
    }
    char *copy = f->n_names < MEMORY_FLAME_NAMES ? strndup(text, len) : NULL;
    if (!copy)
        return -1;
    f->names[f->n_names] = copy;
    f->slots[at] = (uint32_t)++f->n_names;
    return (int64_t)f->n_names - 1;
}

static struct flame_name memory_flame_order(const void *arg, const struct flame *tree, uint32_t node) {
    const struct memory_flame *f = arg;
    return (struct flame_name){node == FLAME_ROOT ? "" : f->names[flame_node(tree, node)->key], NULL, 0};
}

static void memory_flame_add(struct memory_flame *f, const char *stack, int64_t bytes) {
    uint32_t node = FLAME_ROOT;
    for (int depth = 0; *stack && depth < MEMORY_FLAME_DEPTH; depth++) {
        size_t len = strcspn(stack, ";");
        int64_t name = memory_flame_name(f, stack, len);
        uint32_t below =
            name < 0 ? FLAME_NO_NODE : flame_put_node(f->tree, node, (uint32_t)name, FLAME_NO_FRAME, 0);
        if (below == FLAME_NO_NODE)
            break;
        node = below;
        stack += len + (stack[len] == ';');
    }
    flame_add(f->tree, node, (struct flame_weight){.ns = bytes, .samples = bytes}, true);
}

/* The names from the root to a node, and back to a node of another tree. */
static uint32_t memory_flame_path(const struct memory_flame *f, uint32_t node,
                                  char names[][MEMORY_FLAME_TEXT], uint32_t cap) {
    uint32_t n = flame_node(f->tree, node)->depth;
    if (n > cap)
        return 0;
    for (uint32_t i = n; i > 0; i--, node = flame_node(f->tree, node)->parent)
        snprintf(names[i - 1], MEMORY_FLAME_TEXT, "%s", f->names[flame_node(f->tree, node)->key]);
    return n;
}

static uint32_t memory_flame_find(struct memory_flame *f, char names[][MEMORY_FLAME_TEXT], uint32_t n) {
    uint32_t node = FLAME_ROOT;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t c = flame_first_child(f->tree, node);
        while (c != FLAME_NO_NODE &&
               strncmp(f->names[flame_node(f->tree, c)->key], names[i], MEMORY_FLAME_TEXT - 1) != 0)
            c = flame_node(f->tree, c)->next;
        if (c == FLAME_NO_NODE)
            break;
        node = c;
    }
    return node;
}

void memory_flame_build(struct memory_flame *f, const struct result *rows) {
    char(*path)[MEMORY_FLAME_TEXT] = NULL;
    uint32_t n = 0;
    if (memory_flame_is_there(f) && f->selected != FLAME_ROOT) {
        uint32_t depth = flame_node(f->tree, f->selected)->depth;
        path = calloc(depth, sizeof *path);
        n = path ? memory_flame_path(f, f->selected, path, depth) : 0;
    }
    memory_flame_forget(f);
    f->selected = FLAME_ROOT;
    if (rows && rows->n_rows && memory_flame_open(f) == 0 &&
        flame_begin(f->tree, f->none, memory_flame_order, f) == 0) {
        int stack = app_feed_column(rows, "stack"), bytes = app_feed_column(rows, "bytes");
        for (size_t i = 0; i < rows->n_rows; i++) {
            const char *text = app_feed_text(rows, i, stack);
            double b = app_feed_number(rows, i, bytes);
            if (text && b >= 1 && b < 1e18)
                memory_flame_add(f, text, (int64_t)b);
        }
        f->selected = memory_flame_find(f, path, n);
    }
    free(path);
}

const char *memory_flame_selected(const struct memory_flame *f) {
    return memory_flame_is_there(f) && f->selected != FLAME_ROOT
               ? f->names[flame_node(f->tree, f->selected)->key]
               : NULL;
}

/* ---- drawing ---- */

static void memory_flame_draw_cell(const struct memory_flame *f, struct grid *g, const struct flame_cell *c) {
    struct rect cell = {f->area.row + c->row, f->area.col + c->col, 1, c->width};
    const char *end = glyph(g, GLYPH_CELL_END);
    int room = c->width - (*end && c->width > 1 ? 2 : 1);
    char text[MEMORY_FLAME_TEXT], size[32];
    enum theme_role role = ROLE_FLAME_SMALL;
    if (c->node == FLAME_NO_NODE)
        snprintf(text, sizeof text, "+%u", c->n);
    else if (c->node == FLAME_ROOT) {
        role = ROLE_FLAME_OUTER;
        snprintf(text, sizeof text, "all that lives");
    } else {
        const char *name = f->names[flame_node(f->tree, c->node)->key];
        role = flame_color_of(&(struct model_frame){.func = name}, false);
        text_sanitize(text, sizeof text, name);
    }
    if (c->node == f->selected)
        role = ROLE_FLAME_SELECTION;
    text_human_bytes(size, sizeof size, (double)c->weight.ns);
    size_t used = strlen(text);
    if (grid_text_width(g, text) + 2 + (int)strlen(size) <= room && used + sizeof size < sizeof text)
        snprintf(text + used, sizeof text - used, "  %s", size);
    grid_fill(g, cell, role);
    grid_text(g, cell, 0, 0, role, glyph(g, c->width > 1 ? GLYPH_CELL : GLYPH_CELL_THIN));
    if (*end && c->width > 1)
        grid_text(g, cell, 0, c->width - 1, role, end);
    if (room > 0 && room < 3)
        grid_text_skip(g, cell, 0, 1, room, 0, role, text);
    else if (room > 0)
        grid_text_fit(g, cell, 0, 1, room, role, GRID_LEFT, text);
}

void memory_flame_draw(struct memory_flame *f, struct grid *g, struct rect area) {
    char name[MEMORY_FLAME_TEXT], size[32];
    f->area = (struct rect){area.row + 1, area.col, area.rows - 1, area.cols};
    grid_fill(g, area, ROLE_TEXT);
    if (!memory_flame_is_there(f) || f->area.rows < 1)
        return;
    const struct flame_node *n = flame_node(f->tree, f->selected);
    const struct flame_node *all = flame_node(f->tree, FLAME_ROOT);
    text_sanitize(name, sizeof name, f->selected == FLAME_ROOT ? "all that lives" : f->names[n->key]);
    text_human_bytes(size, sizeof size, (double)n->total.ns);
    grid_printf(g, area, 0, 1, ROLE_FUNC, "%s   %s, %.1f %%", name, size,
                all->total.ns > 0 ? 100.0 * (double)n->total.ns / (double)all->total.ns : 0.0);
    int top = (int)n->depth - f->area.rows + 2;
    const struct flame_view view = {.zoom = FLAME_ROOT,
                                    .cols = f->area.cols > FLAME_MAX_COLS ? FLAME_MAX_COLS : f->area.cols,
                                    .top = top > 0 ? top : 0,
                                    .rows = f->area.rows};
    if (flame_layout_build(&f->layout, f->tree, &view) != 0)
        return;
    for (size_t i = 0; i < f->layout.n; i++)
        memory_flame_draw_cell(f, g, &f->layout.cells[i]);
}

/* ---- motion ---- */

bool memory_flame_move(struct memory_flame *f, int dx, int dy) {
    if (!memory_flame_is_there(f))
        return false;
    const struct flame_node *n = flame_node(f->tree, f->selected);
    uint32_t to = FLAME_NO_NODE;
    if (dy < 0)
        to = n->parent;
    for (uint32_t c = dy > 0 ? flame_first_child(f->tree, f->selected) : FLAME_NO_NODE; c != FLAME_NO_NODE;
         c = flame_node(f->tree, c)->next)
        if (to == FLAME_NO_NODE || flame_node(f->tree, c)->total.ns > flame_node(f->tree, to)->total.ns)
            to = c;
    if (dx) {
        const struct flame_cell *here = flame_layout_find(&f->layout, f->tree, f->selected);
        int col = !here ? -1 : dx < 0 ? here->col - 1 : here->col + here->width;
        const struct flame_cell *there = col >= 0 ? flame_layout_at(&f->layout, here->row, col) : NULL;
        to = there ? there->node : FLAME_NO_NODE;
    }
    if (to == FLAME_NO_NODE)
        return false;
    f->selected = to;
    return true;
}

bool memory_flame_click(struct memory_flame *f, int row, int col) {
    const struct flame_cell *c =
        memory_flame_is_there(f) ? flame_layout_at(&f->layout, row - f->area.row, col - f->area.col) : NULL;
    if (!c || c->node == FLAME_NO_NODE)
        return false;
    f->selected = c->node;
    return true;
}
