/* SPDX-License-Identifier: Apache-2.0 */
/* facts: see facts.h. */
#include "tui/view/facts.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define FACTS_BARS 64

void facts_clear(struct facts *f) { f->n = 0; }

void facts_add(struct facts *f, const char *label, enum theme_role role, const char *fmt, ...) {
    va_list ap;
    if (f->n == FACTS_MAX)
        return;
    struct fact *one = &f->items[f->n++];
    snprintf(one->label, sizeof one->label, "%s", label);
    one->role = role;
    va_start(ap, fmt);
    vsnprintf(one->text, sizeof one->text, fmt, ap);
    va_end(ap);
}

static bool facts_ends_with(const char *name, const char *end) {
    size_t n = strlen(name), k = strlen(end);
    return n >= k && strcmp(name + n - k, end) == 0;
}

static void facts_add_value(struct facts *f, const struct result *rows, size_t row, size_t column) {
    const char *name = rows->columns[column].name;
    double v = result_number(rows, row, column);
    char text[FACTS_TEXT];
    if (result_kind(rows, row, column) == SQL_NULL) {
        facts_add(f, name, ROLE_MUTED, "?");
        return;
    }
    if (!isnan(v) && facts_ends_with(name, "bytes")) {
        text_human_bytes(text, sizeof text, v);
        facts_add(f, name, ROLE_VALUE, "%s (%.0f)", text, v);
        return;
    }
    if (!isnan(v) && facts_ends_with(name, "_s")) {
        text_human_duration(text, sizeof text, v);
        facts_add(f, name, ROLE_VALUE, "%s", text);
        return;
    }
    if (!isnan(v) && facts_ends_with(name, "_ms")) {
        facts_add(f, name, ROLE_VALUE, "%.3f ms", v);
        return;
    }
    result_text(rows, row, column, text, sizeof text);
    facts_add(f, name, ROLE_VALUE, "%s", text);
}

void facts_add_row(struct facts *f, const struct result *rows, size_t row, const char *const *but) {
    for (size_t i = 0; row < rows->n_rows && i < rows->n_columns; i++) {
        bool left_out = false;
        for (const char *const *b = but; b && *b; b++)
            left_out = left_out || strcmp(*b, rows->columns[i].name) == 0;
        if (!left_out)
            facts_add_value(f, rows, row, i);
    }
}

void facts_add_bars(struct facts *f, const struct grid *g, const char *label, const char *counts) {
    double values[FACTS_BARS], most = 0;
    char text[FACTS_TEXT] = "";
    int n = 0;
    for (const char *p = counts; *p && n < FACTS_BARS;) {
        char *end;
        values[n] = strtod(p, &end);
        if (end == p) {
            p++;
            continue;
        }
        most = values[n] > most ? values[n] : most;
        n++;
        p = end;
    }
    size_t len = 0;
    for (int i = 0; i < n && most > 0; i++) {
        const char *bar = glyph_level(g, values[i] / most);
        if (len + strlen(bar) + 1 >= sizeof text)
            break;
        len += (size_t)snprintf(text + len, sizeof text - len, "%s", bar);
    }
    facts_add(f, label, ROLE_METER_CPU, "%s", text);
}

static int facts_label_cols(const struct facts *f, int cols) {
    int width = 4;
    for (int i = 0; i < f->n; i++) {
        int w = text_width(f->items[i].label);
        width = w > width ? w : width;
    }
    return width > cols / 2 ? cols / 2 : width;
}

void facts_draw(struct facts *f, const char *title, bool focused, const struct match *search, struct grid *g,
                struct rect area) {
    int label_cols = facts_label_cols(f, area.cols);
    grid_fill(g, (struct rect){area.row, area.col, 1, area.cols}, ROLE_TABLE_HEAD);
    int col = grid_text(g, area, 0, 0, focused ? ROLE_TITLE_FOCUS : ROLE_TITLE, title);
    list_fit(&f->list, f->n, area.rows - 1);
    if (f->list.count > f->list.page && col + 16 < area.cols)
        grid_printf(g, area, 0, col + 1, ROLE_TABLE_HEAD, "%d-%d of %d", f->list.top + 1,
                    f->list.top + f->list.page, f->list.count);
    for (int i = 0; i < f->list.page && f->list.top + i < f->n; i++) {
        const struct fact *one = &f->items[f->list.top + i];
        struct rect row = {area.row + i + 1, area.col, 1, area.cols};
        int at = 1;
        if (one->label[0]) {
            grid_text_fit(g, row, 0, 1, label_cols, ROLE_LABEL, GRID_LEFT, one->label);
            at += label_cols + 1;
        }
        if (at < area.cols)
            grid_text_scroll(g, row, 0, at, area.cols - at, f->scroll, one->role, GRID_LEFT, one->text);
        if (focused && f->list.top + i == f->list.selected)
            grid_restyle(g, row, ROLE_SELECTION);
        match_highlight(search, g, row, 0);
    }
}
