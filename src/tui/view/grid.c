/* SPDX-License-Identifier: Apache-2.0 */
/* grid: see grid.h. */
#include "tui/view/grid.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define GRID_MAX_TEXT 4096
#define GRID_ELLIPSIS 0x2026U /* marks a text that was cut before it got here */

static const char *const grid_glyphs[GLYPH_COUNT][2] = {
    [GLYPH_ELLIPSIS] = {"\xe2\x80\xa6", "~"},  /* … */
    [GLYPH_VLINE] = {"\xe2\x94\x82", "|"},     /* │ */
    [GLYPH_HLINE] = {"\xe2\x94\x80", "-"},     /* ─ */
    [GLYPH_DOT] = {"\xc2\xb7", "-"},           /* · */
    [GLYPH_PAUSED] = {"\xe2\x97\x8f", "*"},    /* ● */
    [GLYPH_SORT_DOWN] = {"\xe2\x96\xbe", "v"}, /* ▾ */
    [GLYPH_SORT_UP] = {"\xe2\x96\xb4", "^"},   /* ▴ */
    [GLYPH_UNKNOWN] = {"\xe2\x80\x94", "-"},   /* — */
    [GLYPH_CURSOR] = {"\xe2\x96\x8f", "_"},    /* ▏ */
    [GLYPH_BAR] = {"\xe2\x96\x88", "#"},       /* █ */
    [GLYPH_BAR_HALF] = {"\xe2\x96\x8c", "-"},  /* ▌ */
    [GLYPH_CELL] = {"\xe2\x96\x8f", "["},      /* ▏ */
    [GLYPH_CELL_THIN] = {"\xe2\x96\x8f", "|"},
    [GLYPH_CELL_END] = {"", "]"},
    [GLYPH_TAG] = {"\xe2\x9c\x93", "+"},        /* ✓ */
    [GLYPH_GAP] = {"\xe2\x96\x91", "?"},        /* ░ */
    [GLYPH_MORE_LEFT] = {"\xe2\x80\xb9", "<"},  /* ‹ */
    [GLYPH_MORE_RIGHT] = {"\xe2\x80\xba", ">"}, /* › */
    [GLYPH_METER] = {" ", " "},
    [GLYPH_METER + 1] = {"\xe2\x96\x81", "."}, /* ▁ to █ */
    [GLYPH_METER + 2] = {"\xe2\x96\x82", ":"},
    [GLYPH_METER + 3] = {"\xe2\x96\x83", "-"},
    [GLYPH_METER + 4] = {"\xe2\x96\x84", "="},
    [GLYPH_METER + 5] = {"\xe2\x96\x85", "+"},
    [GLYPH_METER + 6] = {"\xe2\x96\x86", "*"},
    [GLYPH_METER + 7] = {"\xe2\x96\x87", "#"},
    [GLYPH_METER + 8] = {"\xe2\x96\x88", "@"},
};

const char *glyph(const struct grid *g, enum glyph id) { return grid_glyphs[id][g->ascii ? 1 : 0]; }

const char *glyph_level(const struct grid *g, double share) {
    int step = share >= 1 ? GLYPH_METER_STEPS : share > 0 ? (int)ceil(share * GLYPH_METER_STEPS) : 0;
    return glyph(g, (enum glyph)(GLYPH_METER + step));
}

int grid_init(struct grid *g, int rows, int cols) {
    memset(g, 0, sizeof *g);
    return grid_resize(g, rows, cols);
}

void grid_fini(struct grid *g) {
    free(g->cells);
    memset(g, 0, sizeof *g);
}

int grid_resize(struct grid *g, int rows, int cols) {
    if (rows < 1)
        rows = 1;
    if (cols < 1)
        cols = 1;
    if (rows > 10000 || cols > 10000)
        return -1;
    struct grid_cell *cells = calloc((size_t)rows * (size_t)cols, sizeof *cells);
    if (!cells)
        return -1;
    free(g->cells);
    g->cells = cells;
    g->rows = rows;
    g->cols = cols;
    grid_clear(g);
    return 0;
}

struct rect grid_rect(const struct grid *g) {
    return (struct rect){0, 0, g->rows, g->cols};
}

/* The part of `r` that lies on the grid. */
static struct rect grid_clip(const struct grid *g, struct rect r) {
    int bottom = r.row + r.rows, right = r.col + r.cols;
    if (bottom > g->rows)
        bottom = g->rows;
    if (right > g->cols)
        right = g->cols;
    if (r.row < 0)
        r.row = 0;
    if (r.col < 0)
        r.col = 0;
    r.rows = bottom > r.row ? bottom - r.row : 0;
    r.cols = right > r.col ? right - r.col : 0;
    return r;
}

static const struct grid_cell grid_blank = {.cp = ' ', .width = 1, .role = ROLE_TEXT};

static struct grid_cell *grid_at(const struct grid *g, int row, int col) {
    return &g->cells[(size_t)row * (size_t)g->cols + (size_t)col];
}

/* Overwriting one half of a wide character leaves a blank for the other. */
static void grid_split_wide(struct grid *g, int row, int col) {
    struct grid_cell *c = grid_at(g, row, col);
    if (c->width == 0 && col > 0) {
        struct grid_cell *left = grid_at(g, row, col - 1);
        left->cp = ' ';
        left->width = 1;
        memset(left->marks, 0, sizeof left->marks);
    } else if (c->width == 2 && col + 1 < g->cols) {
        struct grid_cell *right = grid_at(g, row, col + 1);
        right->cp = ' ';
        right->width = 1;
    }
}

void grid_fill(struct grid *g, struct rect area, enum theme_role role) {
    struct rect r = grid_clip(g, area);
    for (int y = r.row; y < r.row + r.rows; y++) {
        if (r.cols > 0) {
            grid_split_wide(g, y, r.col);
            grid_split_wide(g, y, r.col + r.cols - 1);
        }
        for (int x = r.col; x < r.col + r.cols; x++) {
            struct grid_cell *c = grid_at(g, y, x);
            *c = grid_blank;
            c->role = (uint8_t)role;
        }
    }
}

void grid_clear(struct grid *g) {
    for (size_t i = 0; i < (size_t)g->rows * (size_t)g->cols; i++)
        g->cells[i] = grid_blank;
}

void grid_restyle(struct grid *g, struct rect area, enum theme_role role) {
    struct rect r = grid_clip(g, area);
    for (int y = r.row; y < r.row + r.rows; y++)
        for (int x = r.col; x < r.col + r.cols; x++)
            grid_at(g, y, x)->role = (uint8_t)role;
}

static void grid_add_mark(struct grid_cell *c, uint32_t cp) {
    for (int i = 0; i < GRID_MAX_MARKS; i++)
        if (!c->marks[i]) {
            c->marks[i] = cp;
            return;
        }
}

/* Put sanitised text into columns [x, end) of row y, without its first `skip` columns. Returns the
 * columns used. */
static int grid_put(struct grid *g, int y, int x, int end, int skip, enum theme_role role, const char *s) {
    int start = x, last = -1;
    for (size_t len = strlen(s); len > 0;) {
        uint32_t cp;
        size_t n = text_utf8_next(s, len, &cp);
        s += n;
        len -= n;
        int w = text_cp_width(cp);
        if (w == 0) {
            if (!g->ascii && last >= 0)
                grid_add_mark(grid_at(g, y, last), cp);
            continue;
        }
        if (g->ascii && cp > 0x7e) {
            cp = cp == GRID_ELLIPSIS ? (unsigned char)grid_glyphs[GLYPH_ELLIPSIS][1][0] : '?';
            w = 1;
        }
        if (skip > 0) {
            skip -= w;
            if (skip < 0 && x < end) { /* the right half of a wide character remains */
                cp = ' ';
                w = 1;
                skip = 0;
            } else
                continue;
        }
        if (x + w > end)
            break;
        grid_split_wide(g, y, x);
        if (w == 2)
            grid_split_wide(g, y, x + 1);
        *grid_at(g, y, x) = (struct grid_cell){.cp = cp, .width = (uint8_t)w, .role = (uint8_t)role};
        if (w == 2)
            *grid_at(g, y, x + 1) = (struct grid_cell){.cp = 0, .width = 0, .role = (uint8_t)role};
        last = x;
        x += w;
    }
    return x - start;
}

int grid_text_width(const struct grid *g, const char *s) {
    if (!g->ascii)
        return text_width(s);
    int cols = 0;
    for (size_t len = strlen(s); len > 0;) {
        uint32_t cp;
        size_t n = text_utf8_next(s, len, &cp);
        s += n;
        len -= n;
        cols += text_cp_width(cp) ? 1 : 0;
    }
    return cols;
}

/* Row, first and last column of a place in `area` on the grid; false: it is outside. */
static bool grid_place(const struct grid *g, struct rect area, int row, int col, int *y, int *x, int *end) {
    struct rect r = grid_clip(g, area);
    *y = area.row + row;
    *x = area.col + col;
    *end = r.col + r.cols;
    return row >= 0 && col >= 0 && *y >= r.row && *y < r.row + r.rows && *x >= r.col && *x < *end;
}

int grid_text(struct grid *g, struct rect area, int row, int col, enum theme_role role, const char *text) {
    char clean[GRID_MAX_TEXT];
    int y, x, end;
    if (!grid_place(g, area, row, col, &y, &x, &end))
        return 0;
    text_sanitize(clean, sizeof clean, text);
    return grid_put(g, y, x, end, 0, role, clean);
}

int grid_printf(struct grid *g, struct rect area, int row, int col, enum theme_role role, const char *fmt,
                ...) {
    char buf[GRID_MAX_TEXT];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(buf, sizeof buf, fmt, ap);
    va_end(ap);
    return grid_text(g, area, row, col, role, buf);
}

static struct rect grid_slot(struct rect area, int row, int col, int width) {
    int left = area.cols - col;
    return (struct rect){area.row + row, area.col + col, row < area.rows ? 1 : 0,
                         width < left ? width : left};
}

void grid_text_skip(struct grid *g, struct rect area, int row, int col, int width, int skip,
                    enum theme_role role, const char *text) {
    char clean[GRID_MAX_TEXT];
    int y, x, end;
    struct rect slot = grid_slot(area, row, col, width);
    grid_fill(g, slot, role);
    if (!grid_place(g, slot, 0, 0, &y, &x, &end))
        return;
    text_sanitize(clean, sizeof clean, text);
    grid_put(g, y, x, end, skip, role, clean);
}

void grid_text_scroll(struct grid *g, struct rect area, int row, int col, int width, int scroll,
                      enum theme_role role, enum grid_align align, const char *text) {
    char clean[GRID_MAX_TEXT];
    int y, x, end;
    if (scroll < 0 || (scroll == 0 && align != GRID_LEFT)) {
        grid_text_fit(g, area, row, col, width, role, align, text);
        return;
    }
    grid_text_skip(g, area, row, col, width, scroll, role, text);
    if (!grid_place(g, grid_slot(area, row, col, width), 0, 0, &y, &x, &end))
        return;
    text_sanitize(clean, sizeof clean, text);
    int need = grid_text_width(g, clean);
    if (scroll > 0 && need > 0)
        grid_put(g, y, x, end, 0, role, glyph(g, GLYPH_MORE_LEFT));
    if (need - scroll > end - x)
        grid_put(g, y, end - 1, end, 0, role, glyph(g, GLYPH_MORE_RIGHT));
}

void grid_text_fit(struct grid *g, struct rect area, int row, int col, int width, enum theme_role role,
                   enum grid_align align, const char *text) {
    char clean[GRID_MAX_TEXT];
    int y, x, end;
    struct rect slot = grid_slot(area, row, col, width);
    grid_fill(g, slot, role);
    if (!grid_place(g, slot, 0, 0, &y, &x, &end))
        return;
    text_sanitize(clean, sizeof clean, text);
    int room = end - x, need = grid_text_width(g, clean);
    if (need <= room) {
        grid_put(g, y, align == GRID_RIGHT ? end - need : x, end, 0, role, clean);
    } else if (align == GRID_RIGHT) {
        for (; x < end; x++)
            grid_put(g, y, x, end, 0, role, "#");
    } else if (align == GRID_TAIL) {
        int used = grid_put(g, y, x, end, 0, role, glyph(g, GLYPH_ELLIPSIS));
        grid_put(g, y, x + used, end, need - (room - used), role, clean);
    } else if (align == GRID_MIDDLE && room > 6) {
        int used = grid_put(g, y, x, x + room / 3, 0, role, clean);
        used += grid_put(g, y, x + used, end, 0, role, glyph(g, GLYPH_ELLIPSIS));
        grid_put(g, y, x + used, end, need - (room - used), role, clean);
    } else {
        int used = grid_put(g, y, x, end - 1, 0, role, clean);
        grid_put(g, y, x + used, end, 0, role, glyph(g, GLYPH_ELLIPSIS));
    }
}

void grid_row_text(const struct grid *g, struct rect area, int row, char *buf, size_t cap, int *columns) {
    struct rect r = grid_clip(g, area);
    size_t used = 0, solid = 0;
    int y = area.row + row;
    for (int x = r.col; y >= r.row && y < r.row + r.rows && x < r.col + r.cols; x++) {
        const struct grid_cell *c = grid_at(g, y, x);
        if (c->width == 0)
            continue;
        uint32_t parts[1 + GRID_MAX_MARKS] = {c->cp, c->marks[0], c->marks[1]};
        for (int i = 0; i < 1 + GRID_MAX_MARKS && parts[i]; i++) {
            char utf8[4];
            size_t n = text_utf8_put(parts[i], utf8);
            if (used + n + 1 > cap)
                break;
            memcpy(buf + used, utf8, n);
            for (size_t b = 0; columns && b < n; b++)
                columns[used + b] = x;
            used += n;
        }
        if (c->cp != ' ')
            solid = used;
    }
    buf[solid] = '\0';
}

int grid_row_length(const struct grid *g, int row) {
    int length = 0;
    for (int x = 0; x < g->cols; x++) {
        const struct grid_cell *c = grid_at(g, row, x);
        if (c->cp != ' ' || c->role != ROLE_TEXT)
            length = x + 1;
    }
    return length;
}
