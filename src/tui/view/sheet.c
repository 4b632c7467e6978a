/* SPDX-License-Identifier: Apache-2.0 */
/* sheet: see sheet.h. Drawing is in sheet_draw.c. */
#include "tui/view/sheet.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "tui/view/sheet_columns.h"

#define SHEET_MEASURED 500 /* rows whose values are looked at for a width */
#define SHEET_WIDEST 32    /* that a column is made by itself */
#define SHEET_FITTED 400   /* that it is made when it is asked for */
#define SHEET_NARROWEST 2
#define SHEET_STEP 4

static size_t sheet_count(const struct sheet *s) { return s->rows ? s->rows->n_columns : 0; }

/* What the values of a column need, in rows [from, to). */
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

int sheet_cell_width(const struct sheet_column *c) { return c->width + (c->bar ? SHEET_BAR + 1 : 0); }

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

/* The next column that is shown, in steps of 1 or -1; the same when there is none. */
static int sheet_next_column(const struct sheet *s, int from, int step) {
    for (int i = from + step; i >= 0 && i < (int)sheet_count(s); i += step)
        if (!s->columns[i].hidden)
            return i;
    return from;
}

/* ---- order ---- */

/* At the top one stays there; elsewhere one stays with the row. */
static void sheet_go_to(struct sheet *s, size_t row) {
    for (size_t i = 0; s->list.selected > 0 && i < sheet_rows(s); i++)
        if (sheet_row(s, (int)i) == row) {
            list_select(&s->list, (int)i);
            return;
        }
}

/* The rows that are shown, anew. */
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
        return; /* the last one stays */
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

/* A value a line: up and down go through the columns of a row, then to the next one. */
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
        (void)sheet_act_order(s, ACTION_SHEET_SORT);
    else if (s->list.top + row - 1 < s->list.count)
        list_select(&s->list, s->list.top + row - 1);
}

void sheet_wheel(struct sheet *s, int rows) { list_wheel(&s->list, rows); }

int sheet_lines_a_row(const struct sheet *s) { return 1 + (int)sheet_count(s) - sheet_hidden(s); }
