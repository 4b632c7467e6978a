/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grid: the cells of a screen, as screens draw them and term/ shows them.
 *
 * A cell is a character, its width and a role. All text is sanitised here, so nothing from a target
 * can move the cursor. Drawing outside a rectangle is cut, never an error. With `ascii` set, other
 * characters become '?'. Pure.
 */
#ifndef TUI_VIEW_GRID_H
#define TUI_VIEW_GRID_H

#include <stdbool.h>
#include <stdint.h>

#include "tui/theme/theme.h"

#define GRID_MAX_MARKS 2

struct grid_cell {
    uint32_t cp;                    /* 0: the right half of a wide character */
    uint32_t marks[GRID_MAX_MARKS]; /* combining characters; 0: none */
    uint8_t width;                  /* 1 or 2; 0 for a right half */
    uint8_t role;                   /* enum theme_role */
};

struct grid {
    int rows, cols;
    bool ascii;
    struct grid_cell *cells; /* rows * cols */
};

/* Cells from (row, col); may be empty. */
struct rect {
    int row, col, rows, cols;
};

enum grid_align {
    GRID_LEFT,   /* too long: the end is cut */
    GRID_RIGHT,  /* numbers: too long is drawn as '#' */
    GRID_TAIL,   /* paths: the beginning is cut */
    GRID_MIDDLE, /* names in a tree: the middle is cut */
};

/* Special characters, each with an ASCII twin. */
#define GLYPH_METER_STEPS 8

enum glyph {
    GLYPH_ELLIPSIS,
    GLYPH_VLINE,
    GLYPH_HLINE,
    GLYPH_DOT,
    GLYPH_PAUSED,
    GLYPH_SORT_DOWN,
    GLYPH_SORT_UP,
    GLYPH_UNKNOWN,
    GLYPH_CURSOR,
    GLYPH_BAR,
    GLYPH_BAR_HALF,
    GLYPH_CELL,      /* left border of a cell */
    GLYPH_CELL_THIN, /* the whole of a cell one column wide */
    GLYPH_CELL_END,  /* right border; "": not needed */
    GLYPH_TAG,       /* of a tagged row */
    GLYPH_GAP,       /* a slice of time of which nothing is known */
    GLYPH_MORE_LEFT, /* scrolled sideways: the text continues to the left */
    GLYPH_MORE_RIGHT,
    GLYPH_METER, /* the empty level, and this many more from here */
    GLYPH_COUNT = GLYPH_METER + GLYPH_METER_STEPS + 1,
};

/* A grid of that size; 0, or -1: out of memory (then it is empty). */
int grid_init(struct grid *g, int rows, int cols);
void grid_fini(struct grid *g);

/* Change the size; the content is cleared. 0, or -1: out of memory, and the size stays. */
int grid_resize(struct grid *g, int rows, int cols);

/* Blank cells of one role. */
void grid_fill(struct grid *g, struct rect area, enum theme_role role);
void grid_clear(struct grid *g);
struct rect grid_rect(const struct grid *g);

/* Text at row, col of `area` (from 0). Returns its columns, at most what is left of the row. */
int grid_text(struct grid *g, struct rect area, int row, int col, enum theme_role role, const char *text);
int grid_printf(struct grid *g, struct rect area, int row, int col, enum theme_role role, const char *fmt,
                ...) __attribute__((format(printf, 6, 7)));

/* Text in exactly `width` columns. */
void grid_text_fit(struct grid *g, struct rect area, int row, int col, int width, enum theme_role role,
                   enum grid_align align, const char *text);

/* The same without the first `skip` columns of the text. */
void grid_text_skip(struct grid *g, struct rect area, int row, int col, int width, int skip,
                    enum theme_role role, const char *text);

/* Text that scrolls sideways: the same, with a sign at each edge where it continues. A text that is
 * not scrolled and not GRID_LEFT is fitted as by grid_text_fit; so is any text if `scroll` is
 * negative, in a place that does not scroll. */
void grid_text_scroll(struct grid *g, struct rect area, int row, int col, int width, int scroll,
                      enum theme_role role, enum grid_align align, const char *text);

/* Columns that sanitised text takes; differs from text_width if the grid is ASCII. */
int grid_text_width(const struct grid *g, const char *text);

/* Change the role of cells already drawn. */
void grid_restyle(struct grid *g, struct rect area, enum theme_role role);

/* Text of a row as UTF-8 without trailing blanks, NUL-terminated. `columns`, if not NULL, gets for
 * each byte the column where it is drawn (room for `cap`). */
void grid_row_text(const struct grid *g, struct rect area, int row, char *buf, size_t cap, int *columns);

/* Columns from `from` to the end of the row's text, if it ends there. */
int grid_row_length(const struct grid *g, int row);

/* UTF-8 of a glyph, or its ASCII twin. */
const char *glyph(const struct grid *g, enum glyph id);

/* The bar for `share` (0 to 1) of its cell, rounded up to eighths; values outside are clipped, an
 * unknown one is 0. */
const char *glyph_level(const struct grid *g, double share);

#endif
