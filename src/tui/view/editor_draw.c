/* SPDX-License-Identifier: Apache-2.0 */
/* editor_draw: draws the text of an editor in the colours of SQL, and finds places of it on the
 * screen. */
#include "tui/view/editor.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "client/sql/sql_words.h"
#include "store/sql/sql_rewrite.h"

#define EDITOR_RUN 1024 /* bytes drawn in one piece */

static enum theme_role editor_token_role(const char *text, struct sql_token t) {
    switch (t.kind) {
    case SQL_TOKEN_SPACE:
        return text[t.at] == '-' || text[t.at] == '/' ? ROLE_SQL_COMMENT : ROLE_TEXT;
    case SQL_TOKEN_WORD:
        return sql_is_keyword(text + t.at, t.len)    ? ROLE_SQL_KEYWORD
               : sql_is_function(text + t.at, t.len) ? ROLE_SQL_FUNCTION
                                                     : ROLE_TEXT;
    case SQL_TOKEN_STRING:
        return ROLE_SQL_STRING;
    case SQL_TOKEN_NUMBER:
        return ROLE_SQL_NUMBER;
    case SQL_TOKEN_END:
    case SQL_TOKEN_NAME:
    case SQL_TOKEN_OTHER:
        break;
    }
    return ROLE_TEXT;
}

/* Columns that `n` bytes take in this grid: what cannot be drawn is one column. */
static int editor_columns(const struct grid *g, const char *s, size_t n) {
    char raw[EDITOR_RUN + 1], clean[3 * EDITOR_RUN + 1];
    int cols = 0;
    while (n > 0) {
        size_t part = n < EDITOR_RUN ? n : EDITOR_RUN;
        while (part < n && part > 1 && ((unsigned char)s[part] & 0xc0) == 0x80)
            part--;
        memcpy(raw, s, part);
        raw[part] = '\0';
        text_sanitize(clean, sizeof clean, raw);
        cols += grid_text_width(g, clean);
        s += part;
        n -= part;
    }
    return cols;
}

void editor_place(const struct editor *e, const struct grid *g, size_t at, int *line, int *col) {
    size_t begin = 0;
    *line = 0;
    for (size_t i = 0; i < at && i < e->len; i++)
        if (e->text[i] == '\n') {
            ++*line;
            begin = i + 1;
        }
    *col = editor_columns(g, e->text + begin, at - begin);
}

/* Keep the cursor visible. */
static void editor_scroll(struct editor *e, struct rect area, int line, int col) {
    int lines = editor_lines(e);
    if (line < e->top)
        e->top = line;
    if (line >= e->top + area.rows)
        e->top = line - area.rows + 1;
    if (e->top > 0 && e->top + area.rows > lines)
        e->top = lines > area.rows ? lines - area.rows : 0;
    if (col < e->left)
        e->left = col > 8 ? col - 8 : 0;
    if (col >= e->left + area.cols)
        e->left = col - area.cols + 1;
}

/* Draw a piece of a line that begins at display column `col`; returns the column after it. */
static int editor_draw_piece(const struct editor *e, struct grid *g, struct rect area, int row, int col,
                             const char *s, size_t n, enum theme_role role) {
    char raw[EDITOR_RUN + 1];
    while (n > 0) {
        size_t part = n < EDITOR_RUN ? n : EDITOR_RUN;
        while (part < n && part > 1 && ((unsigned char)s[part] & 0xc0) == 0x80)
            part--;
        memcpy(raw, s, part);
        raw[part] = '\0';
        int width = editor_columns(g, s, part), at = col - e->left, skip = at < 0 ? -at : 0;
        if (row >= 0 && row < area.rows && skip < width && at < area.cols) {
            int x = at < 0 ? 0 : at, room = width - skip < area.cols - x ? width - skip : area.cols - x;
            grid_text_skip(g, area, row, x, room, skip, role, raw);
        }
        col += width;
        s += part;
        n -= part;
    }
    return col;
}

/* Draw one token, which may span lines. */
static void editor_draw_token(const struct editor *e, struct grid *g, struct rect area, struct sql_token t,
                              int *line, int *col) {
    enum theme_role role = editor_token_role(e->text, t);
    const char *s = e->text + t.at, *end = s + t.len;
    while (s < end) {
        const char *stop = memchr(s, '\n', (size_t)(end - s));
        size_t n = (size_t)((stop ? stop : end) - s);
        *col = editor_draw_piece(e, g, area, *line - e->top, *col, s, n, role);
        s += n;
        if (stop) {
            ++*line;
            *col = 0;
            s++;
        }
    }
}

/* The token at the error, or the cell after the text. */
static void editor_draw_error(const struct editor *e, struct grid *g, struct rect area) {
    int line, col;
    size_t at = (size_t)e->error_at;
    struct sql_token t = sql_token_next(e->text, e->len, at);
    editor_place(e, g, at, &line, &col);
    int width =
        t.kind == SQL_TOKEN_END || t.kind == SQL_TOKEN_SPACE ? 1 : editor_columns(g, e->text + at, t.len);
    if (t.kind == SQL_TOKEN_STRING && memchr(e->text + at, '\n', t.len))
        width = 1;
    struct rect cells = {area.row + line - e->top, area.col + col - e->left, 1, width > 0 ? width : 1};
    if (line < e->top || line >= e->top + area.rows || cells.col + cells.cols <= area.col)
        return;
    if (cells.col < area.col) {
        cells.cols -= area.col - cells.col;
        cells.col = area.col;
    }
    if (cells.col + cells.cols > area.col + area.cols)
        cells.cols = area.col + area.cols - cells.col;
    if (cells.cols > 0)
        grid_restyle(g, cells, ROLE_SQL_ERROR);
}

void editor_draw(struct editor *e, struct grid *g, struct rect area, int *row, int *col) {
    int line, at;
    struct sql_token t;
    editor_place(e, g, e->cursor, &line, &at);
    editor_scroll(e, area, line, at);
    *row = area.row + line - e->top;
    *col = area.col + at - e->left;
    grid_fill(g, area, ROLE_TEXT);
    line = at = 0;
    if (e->plain) {
        editor_draw_token(e, g, area, (struct sql_token){.kind = SQL_TOKEN_OTHER, .len = e->len}, &line, &at);
        return;
    }
    for (size_t i = 0; (t = sql_token_next(e->text, e->len, i)).kind != SQL_TOKEN_END; i = t.at + t.len)
        editor_draw_token(e, g, area, t, &line, &at);
    if (e->error_at >= 0)
        editor_draw_error(e, g, area);
}

void editor_click(struct editor *e, const struct grid *g, int row, int col) {
    size_t at = 0;
    for (int line = e->top + row; line > 0 && at < e->len; at++)
        line -= e->text[at] == '\n';
    size_t begin = at;
    while (at < e->len && e->text[at] != '\n') {
        uint32_t cp;
        size_t n = text_utf8_next(e->text + at, e->len - at, &cp);
        if (editor_columns(g, e->text + begin, at + n - begin) > col + e->left)
            break;
        at += n;
    }
    e->cursor = at;
    e->want_col = -1;
    e->last = EDITOR_NOTHING;
}
