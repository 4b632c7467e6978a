/* SPDX-License-Identifier: Apache-2.0 */
/* sheet: see sheet.h. */
#include "tui/view/sheet.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/hash.h"

#define SHEET_GAP 1
#define SHEET_BAR 10       /* columns of a full bar */
#define SHEET_MEASURED 500 /* rows whose values are examined for a width */
#define SHEET_WIDEST 32    /* columns, at first */
#define SHEET_FITTED 400   /* and when the user asks for a fitting width */
#define SHEET_NARROWEST 2
#define SHEET_STEP 4

static size_t sheet_count(const struct sheet *s) { return s->rows ? s->rows->n_columns : 0; }

/* The widths that the values of a column need, in rows [from, to). */
static int sheet_measure(const struct sheet *s, size_t column, size_t from, size_t to, int most) {
    char text[RESULT_CELL], clean[RESULT_CELL];
    text_sanitize(clean, sizeof clean, s->rows->columns[column].name);
    int width = text_width(clean) + 1; /* and the mark of the order */
    for (size_t i = from; i < to && i < sheet_rows(s); i++) {
        result_text(s->rows, sheet_row(s, (int)i), column, text, sizeof text);
        text_sanitize(clean, sizeof clean, text);
        int w = text_width(clean);
        if (w > width)
            width = w;
    }
    return width > most ? most : width < SHEET_NARROWEST ? SHEET_NARROWEST : width;
}

int sheet_init(struct sheet *s, struct result *rows) {
    memset(s, 0, sizeof *s);
    s->sort_column = -1;
    s->columns = calloc(rows->n_columns ? rows->n_columns : 1, sizeof *s->columns);
    if (!s->columns) {
        result_unref(rows);
        return -1;
    }
    s->rows = rows;
    for (size_t i = 0; i < rows->n_columns; i++) {
        struct sheet_column *c = &s->columns[i];
        c->numeric = strcmp(rows->columns[i].type, "timestamp") != 0 && result_is_numeric(rows, i);
        c->width = sheet_measure(s, i, 0, SHEET_MEASURED, SHEET_WIDEST);
    }
    list_fit(&s->list, (int)rows->n_rows, 1);
    return 0;
}

void sheet_fini(struct sheet *s) {
    result_unref(s->rows);
    free(s->columns);
    free(s->order);
    free(s->shown);
    tags_fini(&s->tags);
    memset(s, 0, sizeof *s);
}

size_t sheet_rows(const struct sheet *s) { return s->shown ? s->n_shown : s->rows ? s->rows->n_rows : 0; }

size_t sheet_row(const struct sheet *s, int at) {
    return s->shown ? s->shown[at] : s->order ? s->order[at] : (size_t)at;
}

bool sheet_has_cell(const struct sheet *s) { return sheet_rows(s) > 0 && sheet_count(s) > 0; }

static int sheet_cell_width(const struct sheet_column *c) { return c->width + (c->bar ? SHEET_BAR + 1 : 0); }

bool sheet_is_too_wide(const struct sheet *s, int cols) {
    int need = -SHEET_GAP;
    for (size_t i = 0; i < sheet_count(s); i++)
        need += s->columns[i].hidden ? 0 : sheet_cell_width(&s->columns[i]) + SHEET_GAP;
    return need > cols;
}

int sheet_hidden(const struct sheet *s) {
    int n = 0;
    for (size_t i = 0; i < sheet_count(s); i++)
        n += s->columns[i].hidden;
    return n;
}

/* The next visible column in steps of 1 or -1; the same one if there is none. */
static int sheet_next_column(const struct sheet *s, int from, int step) {
    for (int i = from + step; i >= 0 && i < (int)sheet_count(s); i += step)
        if (!s->columns[i].hidden)
            return i;
    return from;
}

/* ---- order ---- */

/* At the top the selection stays at the top; elsewhere it stays with the row. */
static void sheet_go_to(struct sheet *s, size_t row) {
    for (size_t i = 0; s->list.selected > 0 && i < sheet_rows(s); i++)
        if (sheet_row(s, (int)i) == row) {
            list_select(&s->list, (int)i);
            return;
        }
}

/* Make the visible rows again. */
static void sheet_choose_rows(struct sheet *s) {
    size_t n = s->rows ? s->rows->n_rows : 0;
    free(s->shown);
    s->shown = NULL;
    uint32_t *shown = s->tags.only ? malloc((s->tags.n + 1) * sizeof *shown) : NULL;
    s->tags.only = shown != NULL;
    size_t n_shown = 0;
    for (size_t i = 0; shown && i < n && n_shown < s->tags.n; i++)
        if (tags_has(&s->tags, sheet_row(s, (int)i)))
            shown[n_shown++] = (uint32_t)sheet_row(s, (int)i);
    s->shown = shown;
    s->n_shown = n_shown;
    list_fit(&s->list, (int)sheet_rows(s), s->list.page);
}

void sheet_renew_rows(struct sheet *s) {
    bool is_there = (size_t)s->list.selected < sheet_rows(s); /* a new result may be shorter */
    size_t row = is_there ? sheet_row(s, s->list.selected) : 0;
    sheet_choose_rows(s);
    sheet_go_to(s, row);
}

static void sheet_sort(struct sheet *s, int column, bool descends) {
    if (!sheet_has_cell(s))
        return;
    size_t row = sheet_row(s, s->list.selected);
    if (!s->order)
        s->order = malloc(s->rows->n_rows * sizeof *s->order);
    if (!s->order || result_sort(s->rows, (size_t)column, descends, s->order) != 0)
        return;
    s->sort_column = column;
    s->sort_descends = descends;
    sheet_choose_rows(s);
    sheet_go_to(s, row);
}

static bool sheet_act_order(struct sheet *s, enum action action) {
    bool same = s->sort_column == s->column;
    switch ((int)action) {
    case ACTION_SHEET_ASCEND:
    case ACTION_SHEET_DESCEND:
        sheet_sort(s, s->column, action == ACTION_SHEET_DESCEND);
        return true;
    case ACTION_SHEET_SORT:
        sheet_sort(s, s->column, same ? !s->sort_descends : s->columns[s->column].numeric);
        return true;
    case ACTION_SORT_INVERT:
        sheet_sort(s, same || s->sort_column < 0 ? s->column : s->sort_column,
                   s->sort_column < 0 || !s->sort_descends);
        return true;
    default:
        return false;
    }
}

/* ---- columns ---- */

static void sheet_toggle_bar(struct sheet *s) {
    struct sheet_column *c = &s->columns[s->column];
    c->bar = c->numeric && !c->bar;
    c->high = 0;
    for (size_t i = 0; c->bar && i < s->rows->n_rows; i++) {
        double v = result_number(s->rows, i, (size_t)s->column);
        if (v > c->high && isfinite(v))
            c->high = v;
    }
}

static void sheet_hide(struct sheet *s) {
    int other = sheet_next_column(s, s->column, 1);
    if (other == s->column)
        other = sheet_next_column(s, s->column, -1);
    if (other == s->column)
        return; /* the last one cannot be hidden */
    s->columns[s->column].hidden = true;
    s->column = other;
}

static void sheet_fit(struct sheet *s) {
    struct sheet_column *c = &s->columns[s->column];
    size_t from = (size_t)s->list.top, to = from + (size_t)s->list.page;
    c->width = c->fitted ? sheet_measure(s, (size_t)s->column, 0, SHEET_MEASURED, SHEET_WIDEST)
                         : sheet_measure(s, (size_t)s->column, from, to, SHEET_FITTED);
    c->fitted = !c->fitted;
}

static bool sheet_act_column(struct sheet *s, enum action action) {
    struct sheet_column *c = &s->columns[s->column];
    switch ((int)action) {
    case ACTION_SHEET_NARROW:
        c->width = c->width > SHEET_NARROWEST + SHEET_STEP ? c->width - SHEET_STEP : SHEET_NARROWEST;
        return true;
    case ACTION_SHEET_WIDEN:
        c->width += c->width < SHEET_FITTED ? SHEET_STEP : 0;
        return true;
    case ACTION_SHEET_FIT:
        sheet_fit(s);
        return true;
    case ACTION_SHEET_HIDE:
        sheet_hide(s);
        return true;
    case ACTION_SHOW_ALL:
        for (size_t i = 0; i < sheet_count(s); i++)
            s->columns[i].hidden = false;
        return true;
    case ACTION_SHEET_BAR:
        sheet_toggle_bar(s);
        return true;
    default:
        return false;
    }
}

/* ---- motion ---- */

/* One value a line: up and down go through the columns of a row, then to the next row. */
static bool sheet_move_vertical(struct sheet *s, enum action action) {
    int column;
    if (action == ACTION_UP || action == ACTION_DOWN) {
        int step = action == ACTION_DOWN ? 1 : -1, next = s->list.selected + step;
        column = sheet_next_column(s, s->column, step);
        if (column == s->column && next >= 0 && next < s->list.count) {
            list_select(&s->list, next);
            column = sheet_next_column(s, step > 0 ? -1 : (int)sheet_count(s), step);
        }
        s->column = column;
        return true;
    }
    if (action == ACTION_LEFT || action == ACTION_RIGHT) {
        list_select(&s->list, s->list.selected + (action == ACTION_RIGHT ? 1 : -1));
        return true;
    }
    return list_move(&s->list, action);
}

bool sheet_act(struct sheet *s, enum action action) {
    if (!s->rows || sheet_count(s) == 0)
        return false;
    if (action == ACTION_SHEET_VERTICAL) {
        s->vertical = !s->vertical;
        return true;
    }
    if (sheet_act_order(s, action) || sheet_act_column(s, action))
        return true;
    if (s->vertical)
        return sheet_move_vertical(s, action);
    switch ((int)action) {
    case ACTION_LEFT:
        s->column = sheet_next_column(s, s->column, -1);
        return true;
    case ACTION_RIGHT:
        s->column = sheet_next_column(s, s->column, 1);
        return true;
    case ACTION_SHEET_FIRST_COLUMN:
        s->column = sheet_next_column(s, -1, 1);
        return true;
    case ACTION_SHEET_LAST_COLUMN:
        s->column = sheet_next_column(s, (int)sheet_count(s), -1);
        return true;
    default:
        return list_move(&s->list, action);
    }
}

/* ---- search ---- */

bool sheet_find(struct sheet *s, int step) {
    char text[RESULT_CELL];
    size_t columns = sheet_count(s), total = sheet_rows(s) * columns;
    if (!s->search.active || total == 0)
        return false;
    size_t here = (size_t)s->list.selected * columns + (size_t)s->column;
    for (size_t i = step ? 1 : 0; i <= total; i++) {
        size_t at = step < 0 ? (here + total - i % total) % total : (here + i) % total;
        size_t column = at % columns;
        if (s->columns[column].hidden)
            continue;
        result_text(s->rows, sheet_row(s, (int)(at / columns)), column, text, sizeof text);
        if (!match_text(&s->search, text))
            continue;
        list_select(&s->list, (int)(at / columns));
        s->column = (int)column;
        return true;
    }
    return false;
}

/* ---- mouse ---- */

static int sheet_column_at(const struct sheet *s, int col) {
    int at = 0;
    for (int i = s->left; i < (int)sheet_count(s); i++) {
        if (s->columns[i].hidden)
            continue;
        at += sheet_cell_width(&s->columns[i]) + SHEET_GAP;
        if (col < at)
            return i;
    }
    return -1;
}

/* One value a line: the lines of a row. */
static int sheet_lines_a_row(const struct sheet *s) { return 1 + (int)sheet_count(s) - sheet_hidden(s); }

/* ---- drawing ---- */

#define SHEET_NAME_COLS 30

/* Scroll sideways until the selected column is visible. */
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

void sheet_click(struct sheet *s, int row, int col) {
    if (!sheet_has_cell(s))
        return;
    if (s->vertical) {
        int lines = sheet_lines_a_row(s), line = s->line_top + row;
        if (line / lines < s->list.count)
            list_select(&s->list, line / lines);
        return;
    }
    int column = sheet_column_at(s, col - (s->tags.n ? TAGS_COLS : 0));
    if (column < 0)
        return;
    s->column = column;
    if (row == 0)
        sheet_act_order(s, ACTION_SHEET_SORT);
    else if (s->list.top + row - 1 < s->list.count)
        list_select(&s->list, s->list.top + row - 1);
}

void sheet_wheel(struct sheet *s, int rows) { list_wheel(&s->list, rows); }

static void sheet_draw_bar(const struct sheet_column *c, double v, struct grid *g, struct rect area, int row,
                           int col) {
    if (!(v > 0) || !(c->high > 0))
        return;
    int halves = (int)(fmin(v / c->high, 1) * SHEET_BAR * 2 + 0.5), x = 0;
    if (halves == 0)
        halves = 1;
    for (; halves >= 2 && x < SHEET_BAR; halves -= 2, x++)
        grid_text(g, area, row, col + x, ROLE_METER_CPU, glyph(g, GLYPH_BAR));
    if (halves == 1 && x < SHEET_BAR)
        grid_text(g, area, row, col + x, ROLE_METER_CPU, glyph(g, GLYPH_BAR_HALF));
}

/* The drawn width of a column at `x`: the last text takes the rest. */
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

/* The names, with a sign at each edge where columns, or a part of one, are hidden. */
static void sheet_draw_head(const struct sheet *s, struct grid *g, struct rect area) {
    struct rect line = {area.row, area.col, 1, area.cols};
    int x = 0, sign = sheet_hides_left(s), end = 0;
    grid_fill(g, line, ROLE_TABLE_HEAD);
    if (sign)
        grid_text(g, line, 0, 0, ROLE_TABLE_HEAD, glyph(g, GLYPH_MORE_LEFT));
    for (int i = s->left; i < (int)s->rows->n_columns; i++) {
        const struct sheet_column *c = &s->columns[i];
        char title[256];
        bool sorted = i == s->sort_column;
        if (c->hidden)
            continue;
        const char *mark = sorted ? glyph(g, s->sort_descends ? GLYPH_SORT_DOWN : GLYPH_SORT_UP) : "";
        snprintf(title, sizeof title, "%.200s%s", s->rows->columns[i].name, mark);
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
        grid_text(g, line, 0, area.cols - 1, ROLE_TABLE_HEAD, glyph(g, GLYPH_MORE_RIGHT));
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
            grid_text(g, line, 0, x, ROLE_BORDER, glyph(g, GLYPH_HLINE));
        return;
    }
    char text[4096];
    size_t row = sheet_row(s, at);
    bool is_null = result_kind(s->rows, row, (size_t)column) == SQL_NULL;
    grid_text_fit(g, line, 0, 0, names, ROLE_LABEL, GRID_LEFT, s->rows->columns[column].name);
    grid_text(g, line, 0, names + 1, ROLE_BORDER, glyph(g, GLYPH_VLINE));
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

/* ---- tagged rows of a result in the one that takes its place ---- */

/* Rows are equal if all their values are. */

/* A tagged row that has not been found yet. */
struct sheet_tagged {
    uint64_t hash;
    bool found;
};

static uint64_t sheet_hash_row(const struct result *r, size_t row) {
    uint64_t h = 0;
    for (size_t i = 0; i < r->n_columns; i++) {
        enum sql_kind kind = result_kind(r, row, i);
        const union result_value *v = &r->columns[i].values[row];
        uint64_t value = (uint64_t)kind << 60;
        if (kind == SQL_INTEGER)
            value ^= hash_bytes(&v->i, sizeof v->i);
        else if (kind == SQL_REAL)
            value ^= hash_bytes(&v->f, sizeof v->f);
        else if (kind != SQL_NULL)
            value ^= hash_bytes(v->s, result_length(r, row, i));
        h = hash_mix(h ^ value);
    }
    return h;
}

static int sheet_compare_tagged(const void *a, const void *b) {
    uint64_t x = ((const struct sheet_tagged *)a)->hash, y = ((const struct sheet_tagged *)b)->hash;
    return (x > y) - (x < y);
}

/* The first one with that hash that has not been found yet; NULL: none. */
static struct sheet_tagged *sheet_find_tagged(struct sheet_tagged *all, size_t n, uint64_t hash) {
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (all[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < n && all[low].hash == hash; low++)
        if (!all[low].found)
            return &all[low];
    return NULL;
}

void sheet_take_tags(struct sheet *to, const struct sheet *from) {
    size_t n = from->tags.n, left = n;
    struct sheet_tagged *all = n ? calloc(n, sizeof *all) : NULL;
    if (!all)
        return;
    for (size_t i = 0; i < n; i++)
        all[i].hash = sheet_hash_row(from->rows, (size_t)from->tags.keys[i]);
    qsort(all, n, sizeof *all, sheet_compare_tagged);
    for (size_t i = 0; left > 0 && i < to->rows->n_rows; i++) {
        struct sheet_tagged *t = sheet_find_tagged(all, n, sheet_hash_row(to->rows, i));
        if (!t || !tags_toggle(&to->tags, i))
            continue;
        t->found = true;
        left--;
    }
    free(all);
    to->tags.only = from->tags.only && to->tags.n > 0;
    sheet_renew_rows(to);
}
