/* SPDX-License-Identifier: Apache-2.0 */
/* sheet_draw: the cells of a sheet, as a table or a value a line. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "tui/view/sheet_columns.h"

#define SHEET_NAME_COLS 30

/* Scroll sideways until the selected column is in sight. */
static void sheet_scroll_columns(struct sheet *s, int cols) {
    if (s->column < s->left)
        s->left = s->column;
    for (; s->left < s->column; s->left++) {
        int need = 0;
        for (int i = s->left; i <= s->column; i++)
            need +=
                s->columns[i].hidden ? 0 : sheet_cell_width(&s->columns[i]) + (i > s->left ? SHEET_GAP : 0);
        if (need <= cols)
            break;
    }
    while (s->left < s->column && s->columns[s->left].hidden)
        s->left++;
}

static void sheet_draw_bar(const struct sheet_column *c, double v, struct grid *g, struct rect area, int row,
                           int col) {
    if (!(v > 0) || !(c->high > 0))
        return;
    int halves = (int)(fmin(v / c->high, 1) * SHEET_BAR * 2 + 0.5), x = 0;
    if (halves == 0)
        halves = 1;
    for (; halves >= 2 && x < SHEET_BAR; halves -= 2, x++)
        (void)grid_text(g, area, row, col + x, ROLE_METER_CPU, glyph(g, GLYPH_BAR));
    if (halves == 1 && x < SHEET_BAR)
        (void)grid_text(g, area, row, col + x, ROLE_METER_CPU, glyph(g, GLYPH_BAR_HALF));
}

/* Columns that a column is drawn in at `x`: the last text takes what is left. */
static int sheet_width_left(const struct sheet *s, int column, int x, int cols) {
    const struct sheet_column *c = &s->columns[column];
    bool last = !c->numeric && !c->bar;
    for (size_t i = (size_t)column + 1; last && i < s->rows->n_columns; i++)
        last = s->columns[i].hidden;
    return last && cols - x > c->width ? cols - x : sheet_cell_width(c);
}

static void sheet_draw_cell(const struct sheet *s, int column, size_t row, struct grid *g, struct rect area,
                            int y, int x) {
    const struct sheet_column *c = &s->columns[column];
    char text[RESULT_CELL];
    bool is_null = result_kind(s->rows, row, (size_t)column) == SQL_NULL;
    bool whole = x + c->width <= area.cols; /* the edge of the screen may cut it */
    result_text(s->rows, row, (size_t)column, text, sizeof text);
    grid_text_fit(g, area, y, x, c->bar ? c->width : sheet_width_left(s, column, x, area.cols),
                  is_null ? ROLE_SQL_NULL : ROLE_TEXT, c->numeric && whole ? GRID_RIGHT : GRID_LEFT, text);
    if (c->bar)
        sheet_draw_bar(c, result_number(s->rows, row, (size_t)column), g, area, y, x + c->width + 1);
}

/* Are there columns before the first one that is drawn? */
static bool sheet_hides_left(const struct sheet *s) {
    for (int i = 0; i < s->left; i++)
        if (!s->columns[i].hidden)
            return true;
    return false;
}

/* The names, with a sign at each edge beyond which there are columns, or a part of one. */
static void sheet_draw_head(const struct sheet *s, struct grid *g, struct rect area) {
    struct rect line = {area.row, area.col, 1, area.cols};
    int x = 0, sign = sheet_hides_left(s), end = 0;
    grid_fill(g, line, ROLE_TABLE_HEAD);
    if (sign)
        (void)grid_text(g, line, 0, 0, ROLE_TABLE_HEAD, glyph(g, GLYPH_MORE_LEFT));
    for (int i = s->left; i < (int)s->rows->n_columns; i++) {
        const struct sheet_column *c = &s->columns[i];
        char title[256];
        bool sorted = i == s->sort_column;
        if (c->hidden)
            continue;
        const char *mark = sorted ? glyph(g, s->sort_descends ? GLYPH_SORT_DOWN : GLYPH_SORT_UP) : "";
        (void)snprintf(title, sizeof title, "%.200s%s", s->rows->columns[i].name, mark);
        int before = x == 0 ? sign : 0;
        grid_text_fit(g, line, 0, x + before, sheet_width_left(s, i, x, area.cols) - before,
                      sorted ? ROLE_TABLE_SORT : ROLE_TABLE_HEAD,
                      c->numeric && !c->bar && grid_text_width(g, title) <= c->width - before &&
                              x + c->width <= area.cols
                          ? GRID_RIGHT
                          : GRID_LEFT,
                      title);
        end = x + sheet_cell_width(c);
        x = end + SHEET_GAP;
    }
    if (end > area.cols)
        (void)grid_text(g, line, 0, area.cols - 1, ROLE_TABLE_HEAD, glyph(g, GLYPH_MORE_RIGHT));
}

static void sheet_draw_row(const struct sheet *s, int at, struct grid *g, struct rect area, int y,
                           bool focused) {
    struct rect line = {area.row + y, area.col, 1, area.cols}, cell = line;
    size_t row = sheet_row(s, at);
    int x = 0;
    cell.cols = 0;
    for (int i = s->left; i < (int)s->rows->n_columns && x < area.cols; i++) {
        const struct sheet_column *c = &s->columns[i];
        if (c->hidden)
            continue;
        sheet_draw_cell(s, i, row, g, area, y, x);
        if (i == s->column) {
            cell.col = area.col + x;
            cell.cols = sheet_width_left(s, i, x, area.cols);
            if (cell.cols > area.cols - x)
                cell.cols = area.cols - x;
        }
        x += sheet_cell_width(c) + SHEET_GAP;
    }
    tags_draw(&s->tags, row, g, area, y);
    if (at == s->list.selected) {
        grid_restyle(g, line, ROLE_SELECTION_OTHER);
        grid_restyle(g, cell, focused ? ROLE_SELECTION : ROLE_SELECTION_OTHER);
    }
    match_highlight(&s->search, g, line, 0);
}

/* ---- a value a line ---- */

static int sheet_name_width(const struct sheet *s) {
    int width = 4;
    for (size_t i = 0; i < s->rows->n_columns; i++) {
        char clean[256];
        text_sanitize(clean, sizeof clean, s->rows->columns[i].name);
        int w = text_width(clean);
        if (!s->columns[i].hidden && w > width)
            width = w;
    }
    return width > SHEET_NAME_COLS ? SHEET_NAME_COLS : width;
}

/* Line of a row's column among those of the row, from 1. */
static int sheet_line_of(const struct sheet *s, int column) {
    int line = 1;
    for (int i = 0; i < column; i++)
        line += !s->columns[i].hidden;
    return line;
}

static int sheet_column_of(const struct sheet *s, int line) {
    for (int i = 0; i < (int)s->rows->n_columns; i++)
        if (!s->columns[i].hidden && --line == 0)
            return i;
    return -1;
}

static void sheet_draw_line(const struct sheet *s, int at, int column, int names, struct grid *g,
                            struct rect line, bool focused) {
    if (column < 0) {
        bool tagged = tags_has(&s->tags, sheet_row(s, at));
        int x = grid_printf(g, line, 0, 0, ROLE_TITLE, "row %d%s", at + 1, tagged ? ", tagged" : "");
        for (x++; x < line.cols; x++)
            (void)grid_text(g, line, 0, x, ROLE_BORDER, glyph(g, GLYPH_HLINE));
        return;
    }
    char text[4096];
    size_t row = sheet_row(s, at);
    bool is_null = result_kind(s->rows, row, (size_t)column) == SQL_NULL;
    grid_text_fit(g, line, 0, 0, names, ROLE_LABEL, GRID_LEFT, s->rows->columns[column].name);
    (void)grid_text(g, line, 0, names + 1, ROLE_BORDER, glyph(g, GLYPH_VLINE));
    result_text(s->rows, row, (size_t)column, text, sizeof text);
    grid_text_fit(g, line, 0, names + 3, line.cols - names - 3, is_null ? ROLE_SQL_NULL : ROLE_TEXT,
                  GRID_LEFT, text);
    if (at == s->list.selected && column == s->column)
        grid_restyle(g, line, focused ? ROLE_SELECTION : ROLE_SELECTION_OTHER);
    match_highlight(&s->search, g, line, 0);
}

static void sheet_draw_vertical(struct sheet *s, struct grid *g, struct rect area, bool focused) {
    int lines = sheet_lines_a_row(s), names = sheet_name_width(s);
    long here = (long)s->list.selected * lines + sheet_line_of(s, s->column);
    long top = s->line_top, total = (long)s->list.count * lines;
    if (here - sheet_line_of(s, s->column) < top && here - 1 < top)
        top = here - sheet_line_of(s, s->column);
    if (here < top)
        top = here;
    if (here >= top + area.rows)
        top = here - area.rows + 1;
    s->line_top = (int)top;
    list_fit(&s->list, s->list.count, area.rows / lines > 0 ? area.rows / lines : 1);
    for (int y = 0; y < area.rows && top + y < total; y++) {
        struct rect line = {area.row + y, area.col, 1, area.cols};
        int part = (int)((top + y) % lines);
        sheet_draw_line(s, (int)((top + y) / lines), part ? sheet_column_of(s, part) : -1, names, g, line,
                        focused);
    }
}

void sheet_draw(struct sheet *s, struct grid *g, struct rect area, bool focused) {
    if (!s->rows || s->rows->n_columns == 0 || area.rows < 1)
        return;
    if (s->vertical && sheet_rows(s) > 0) {
        sheet_draw_vertical(s, g, area, focused);
        return;
    }
    tags_take_rect(&s->tags, &area);
    sheet_scroll_columns(s, area.cols);
    list_fit(&s->list, (int)sheet_rows(s), area.rows - 1);
    sheet_draw_head(s, g, area);
    for (int i = 0; i + 1 < area.rows && s->list.top + i < s->list.count; i++)
        sheet_draw_row(s, s->list.top + i, g, area, i + 1, focused);
}
