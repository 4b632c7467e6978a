/* SPDX-License-Identifier: Apache-2.0 */
/* tui_picture: see tui_picture.h. */
#include "unit/tui_picture.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/core/app_draw.h"
#include "tui/core/app_life.h"
#include "tui/theme/theme.h"
#include "unit/tui_capture.h"

#define PICTURE_ROWS 50
#define PICTURE_COLS 200
#define PICTURE_STYLE 64
#define PICTURE_CELL 32

static const struct { int cols, rows; } picture_sizes[] = {{40, 12}, {80, 24}, {PICTURE_COLS, PICTURE_ROWS}};

/* Kinds of terminals; the text of the first is the picture's. */
static const struct picture_depth {
    const char *name, *color;
    const char *term[2]; /* in UTF-8; in ASCII */
} picture_depths[] = {
    {"256", NULL, {"xterm-256color", "tmux-256color"}},
    {"16", "16", {"xterm-256color", "xterm-256color"}},
    {"mono", "never", {"xterm-256color", "vt100"}},
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define DEPTHS COUNT(picture_depths)

/* How a role looks; of a cell where nothing stands only what can be seen of it. */
static char picture_styles[DEPTHS][ROLE_COUNT][2][PICTURE_STYLE];

/* One size and alphabet. */
struct picture {
    int rows, cols;
    bool ascii, is_bad;
    struct grid grid;
    size_t depth; /* that is painted */
    char cells[PICTURE_ROWS][PICTURE_COLS][PICTURE_CELL];
};

/* What can be seen of a cell where nothing stands: "- on 4 reverse". */
static void picture_blank_style(const char *style, char *buf, size_t cap) {
    const char *on = strstr(style, " on "), *end = on ? strchr(on + 4, ' ') : NULL;
    if (strstr(style, "reverse")) {
        (void)snprintf(buf, cap, "%.*s on - reverse", on ? (int)(on - style) : 0, style);
        return;
    }
    (void)snprintf(buf, cap, "- on %.*s%s", end ? (int)(end - on - 4) : (int)strlen(on ? on + 4 : ""),
                   on ? on + 4 : "", strstr(style, "underline") ? " underline" : "");
}

static void picture_take_style(struct picture *p, int row, int col, bool is_blank, const char *style) {
    enum theme_role role = (enum theme_role)p->grid.cells[row * p->cols + col].role;
    char *known = picture_styles[p->depth][role][is_blank], seen[PICTURE_STYLE];
    if (is_blank)
        picture_blank_style(style, seen, sizeof seen);
    else
        (void)snprintf(seen, sizeof seen, "%s", style);
    if (!*known)
        (void)snprintf(known, PICTURE_STYLE, "%s", seen);
    if (strcmp(known, seen) == 0 || p->is_bad)
        return;
    print_error("row %d, column %d: the role '%s' is '%s' at %s colours here, and '%s' elsewhere\n", row, col,
                theme_role_name(role), seen, picture_depths[p->depth].name, known);
    p->is_bad = true;
}

static void picture_cell(void *arg, int row, int col, const char *text, const char *style) {
    struct picture *p = arg;
    char *cell = p->cells[row][col];
    if (p->depth == 0)
        (void)snprintf(cell, PICTURE_CELL, "%s", text);
    else if (strcmp(cell, text) != 0 && !p->is_bad) {
        print_error("row %d, column %d: '%s' at %s colours, '%s' at %s\n", row, col, cell,
                    picture_depths[0].name, text, picture_depths[p->depth].name);
        p->is_bad = true;
    }
    /* The last cell is shifted into its place where a terminal wraps after it; this emulator forgets its background then. */
    if (row != p->rows - 1 || col != p->cols - 1)
        picture_take_style(p, row, col, strcmp(text, " ") == 0, style);
}

static void picture_paint(struct picture *p) {
    static struct theme theme;
    theme_init_default(&theme);
    memset(p->cells, 0, sizeof p->cells);
    for (p->depth = 0; p->depth < DEPTHS; p->depth++) {
        const struct picture_depth *d = &picture_depths[p->depth];
        struct capture_config config = {
            .rows = p->rows, .cols = p->cols, .term = d->term[p->ascii], .color = d->color, .theme = &theme};
        if (!capture_grid(&p->grid, &config, picture_cell, p))
            p->is_bad = true;
    }
}

static void picture_row_text(const struct picture *p, int row, struct strbuf *out) {
    int cols = p->cols;
    strbuf_clear(out);
    while (cols > 0 && (!*p->cells[row][cols - 1] || strcmp(p->cells[row][cols - 1], " ") == 0))
        cols--;
    for (int x = 0; x < cols; x++)
        (void)strbuf_adds(out, p->cells[row][x]);
}

/* Roles of a row: "label*4 .2 value*7"; . is plain text, and is left out at the end. */
static void picture_row_roles(const struct picture *p, int row, struct strbuf *out) {
    const struct grid_cell *cells = p->grid.cells + (size_t)row * (size_t)p->cols;
    strbuf_clear(out);
    for (int x = 0, n = 0; x < p->cols; x += n) {
        for (n = 1; x + n < p->cols && cells[x + n].role == cells[x].role; n++)
            ;
        if (cells[x].role == ROLE_TEXT && x + n == p->cols)
            break;
        if (cells[x].role == ROLE_TEXT)
            (void)strbuf_addf(out, "%s.%d", out->len ? " " : "", n);
        else
            (void)strbuf_addf(out, "%s%s*%d", out->len ? " " : "",
                              theme_role_name((enum theme_role)cells[x].role), n);
    }
}

static void picture_put_roles(int first, int last, const struct strbuf *roles, struct strbuf *out) {
    if (last < first)
        return;
    if (first == last)
        (void)strbuf_addf(out, "%d", first);
    else
        (void)strbuf_addf(out, "%d-%d", first, last);
    (void)strbuf_addf(out, "  %s\n", roles->len ? strbuf_str(roles) : ".");
}

/* The rows, or with `other` those that differ from its. */
static void picture_put_text(const struct picture *p, const struct picture *other, struct strbuf *out) {
    struct strbuf line, before;
    int blank = 0;
    strbuf_init(&line, 1 << 16);
    strbuf_init(&before, 1 << 16);
    for (int y = 0; y < p->rows; y++) {
        picture_row_text(p, y, &line);
        if (other)
            picture_row_text(other, y, &before);
        if (other && strcmp(strbuf_str(&line), strbuf_str(&before)) != 0)
            (void)strbuf_addf(out, "%d|%s\n", y, strbuf_str(&line));
        if (other)
            continue;
        if (blank && line.len)
            (void)strbuf_addf(out, "(%d blank)\n", blank);
        blank = line.len ? 0 : blank + 1;
        if (line.len)
            (void)strbuf_addf(out, "|%s\n", strbuf_str(&line));
    }
    if (blank)
        (void)strbuf_addf(out, "(%d blank)\n", blank);
    strbuf_fini(&line);
    strbuf_fini(&before);
}

/* The roles of the rows that are not plain, or with `other` of those that differ from its. */
static void picture_put_all_roles(const struct picture *p, const struct picture *other, struct strbuf *out) {
    struct strbuf line, before, run;
    int first = 0, last = -1; /* rows with the roles of `run` */
    strbuf_init(&line, 1 << 16);
    strbuf_init(&before, 1 << 16);
    strbuf_init(&run, 1 << 16);
    for (int y = 0; y < p->rows; y++) {
        picture_row_roles(p, y, &line);
        if (other)
            picture_row_roles(other, y, &before);
        bool is_left_out = other ? strcmp(strbuf_str(&line), strbuf_str(&before)) == 0 : line.len == 0;
        if (!is_left_out && last == y - 1 && last >= first &&
            strcmp(strbuf_str(&line), strbuf_str(&run)) == 0) {
            last = y;
            continue;
        }
        picture_put_roles(first, last, &run, out);
        first = y;
        last = is_left_out ? y - 1 : y;
        strbuf_clear(&run);
        (void)strbuf_adds(&run, strbuf_str(&line));
    }
    picture_put_roles(first, last, &run, out);
    strbuf_fini(&run);
    strbuf_fini(&line);
    strbuf_fini(&before);
}

bool picture_draw(struct app *(*make)(const void *arg, bool ascii), const void *arg, struct strbuf *out) {
    static struct picture pictures[2];
    bool ok = true;
    for (size_t i = 0; i < COUNT(picture_sizes); i++)
        for (int k = 0; k < 2; k++) {
            struct picture *p = &pictures[k];
            struct app *a = make(arg, k == 1);
            assert_non_null(a);
            p->rows = picture_sizes[i].rows;
            p->cols = picture_sizes[i].cols;
            p->ascii = k == 1;
            p->is_bad = false;
            assert_int_equal(grid_init(&p->grid, p->rows, p->cols), 0);
            app_draw(a, &p->grid);
            app_free(a);
            picture_paint(p);
            ok = ok && !p->is_bad;
            (void)strbuf_addf(out, "== %dx%d%s\n", p->cols, p->rows, k ? " ascii" : "");
            picture_put_text(p, k ? &pictures[0] : NULL, out);
            picture_put_all_roles(p, k ? &pictures[0] : NULL, out);
            if (k) {
                grid_fini(&pictures[0].grid);
                grid_fini(&pictures[1].grid);
            }
        }
    return ok;
}

void picture_put_styles(struct strbuf *out) {
    (void)strbuf_adds(
        out, "foreground on background (- the terminal's own), attributes; 256 colours | 16 | mono\n");
    for (int role = 0; role < ROLE_COUNT; role++) {
        bool has_text = picture_styles[0][role][0][0];
        if (!has_text && !picture_styles[0][role][1][0])
            continue;
        (void)strbuf_addf(out, "%s%s:", theme_role_name((enum theme_role)role), has_text ? "" : " (blank)");
        for (size_t d = 0; d < DEPTHS; d++)
            (void)strbuf_addf(out, "%s %s", d ? " |" : "", picture_styles[d][role][!has_text]);
        (void)strbuf_adds(out, "\n");
    }
}

/* ---- files ---- */

static bool picture_write(const char *path, const struct strbuf *b) {
    FILE *f = fopen(path, "w");
    bool ok = f && fwrite(strbuf_str(b), 1, b->len, f) == b->len;
    return f && fclose(f) == 0 && ok;
}

int picture_compare(const char *name, const struct strbuf *got) {
    char path[1024], mine[1024];
    struct strbuf want;
    (void)snprintf(path, sizeof path, "%s/tests/screens/%s.txt", PROBING_SOURCE_DIR, name);
    if (getenv("UPDATE_GOLDEN"))
        return picture_write(path, got) ? 0 : 1;
    strbuf_init(&want, 4 << 20);
    bool is_same = strbuf_read_file(&want, path) == 0 && strcmp(strbuf_str(&want), strbuf_str(got)) == 0;
    strbuf_fini(&want);
    if (is_same)
        return 0;
    const char *folder = getenv("TMPDIR"), *base = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
    (void)snprintf(mine, sizeof mine, "%s/%s.got", folder ? folder : "/tmp", base);
    (void)picture_write(mine, got);
    print_error("%s differs from what is drawn now: diff %s %s; make golden-update\n", path, path, mine);
    return 1;
}
