/* SPDX-License-Identifier: Apache-2.0 */
/* tui_capture: see tui_capture.h. */
#include "unit/tui_capture.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <vterm.h>

#include "base/text.h"
#include "tui/core/app_draw.h"
#include "tui/term/term.h"

#define CAPTURE_STYLES 60

struct capture {
    VTerm *vt;
    VTermScreen *screen;
    int rows, cols;
    char styles[CAPTURE_STYLES][64];
    int n_styles;
};

static void capture_color(char *buf, size_t cap, const VTermColor *c, bool is_default) {
    if (is_default)
        (void)snprintf(buf, cap, "-");
    else if (VTERM_COLOR_IS_INDEXED(c))
        (void)snprintf(buf, cap, "%d", c->indexed.idx);
    else
        (void)snprintf(buf, cap, "#%02x%02x%02x", c->rgb.red, c->rgb.green, c->rgb.blue);
}

static void capture_put_style(const VTermScreenCell *cell, char *buf, size_t cap) {
    char fg[16], bg[16];
    capture_color(fg, sizeof fg, &cell->fg, VTERM_COLOR_IS_DEFAULT_FG(&cell->fg));
    capture_color(bg, sizeof bg, &cell->bg, VTERM_COLOR_IS_DEFAULT_BG(&cell->bg));
    (void)snprintf(buf, cap, "%s on %s%s%s%s%s", fg, bg, cell->attrs.bold ? " bold" : "",
                   cell->attrs.reverse ? " reverse" : "", cell->attrs.underline ? " underline" : "",
                   cell->attrs.italic ? " italic" : "");
}

/* Letter of a cell's style; '.' is plain. */
static char capture_style(struct capture *c, const VTermScreenCell *cell) {
    char text[64];
    capture_put_style(cell, text, sizeof text);
    if (strcmp(text, "- on -") == 0)
        return '.';
    int i = 0;
    while (i < c->n_styles && strcmp(c->styles[i], text) != 0)
        i++;
    if (i == c->n_styles) {
        if (i == CAPTURE_STYLES)
            return '?';
        (void)snprintf(c->styles[c->n_styles++], sizeof c->styles[0], "%s", text);
    }
    return (char)(i < 26 ? 'a' + i : i < 52 ? 'A' + i - 26 : '0' + i - 52);
}

static void capture_put_text(struct capture *c, struct strbuf *out) {
    for (int y = 0; y < c->rows; y++) {
        (void)strbuf_addc(out, '|');
        for (int x = 0; x < c->cols; x++) {
            VTermScreenCell cell;
            if (!vterm_screen_get_cell(c->screen, (VTermPos){y, x}, &cell))
                continue;
            if (!cell.chars[0])
                (void)strbuf_addc(out, ' ');
            for (int i = 0; i < VTERM_MAX_CHARS_PER_CELL && cell.chars[i]; i++) {
                char utf8[4];
                (void)strbuf_add(out, utf8, text_utf8_put(cell.chars[i], utf8));
            }
            x += cell.width > 1 ? cell.width - 1 : 0;
        }
        (void)strbuf_adds(out, "|\n");
    }
}

static void capture_put_styles(struct capture *c, struct strbuf *out) {
    (void)strbuf_adds(out, "styles\n");
    for (int y = 0; y < c->rows; y++) {
        (void)strbuf_addc(out, '|');
        for (int x = 0; x < c->cols; x++) {
            VTermScreenCell cell;
            if (vterm_screen_get_cell(c->screen, (VTermPos){y, x}, &cell))
                (void)strbuf_addc(out, capture_style(c, &cell));
        }
        (void)strbuf_adds(out, "|\n");
    }
    for (int i = 0; i < c->n_styles; i++)
        (void)strbuf_addf(out, "%c %s\n",
                          i < 26   ? 'a' + i
                          : i < 52 ? 'A' + i - 26
                                   : '0' + i - 52,
                          c->styles[i]);
}

/* Paint cells on a terminal at the far end of a pipe and feed libvterm with what comes out. */
static bool capture_paint(const struct grid *g, int cursor_row, int cursor_col,
                          const struct capture_config *config, struct capture *c) {
    int out[2], in[2];
    struct err e;
    if (pipe2(out, O_CLOEXEC | O_NONBLOCK) != 0 || pipe2(in, O_CLOEXEC) != 0)
        return false;
    (void)fcntl(out[1], F_SETPIPE_SZ, 1 << 20);
    struct term_config tc = {.type = config->term,
                             .in_fd = in[0],
                             .out_fd = out[1],
                             .rows = config->rows,
                             .cols = config->cols,
                             .color = config->color,
                             .theme = config->theme};
    struct term *t = term_open(&tc, &e);
    bool ok = t != NULL;
    if (ok) {
        ok = term_paint(t, g, cursor_row, cursor_col) && term_flush(t);
        char buf[65536];
        ssize_t n;
        while ((n = read(out[0], buf, sizeof buf)) > 0)
            (void)vterm_input_write(c->vt, buf, (size_t)n);
    } else
        (void)fprintf(stderr, "%s\n", e.text);
    term_close(t);
    for (int i = 0; i < 2; i++) {
        (void)close(in[i]);
        (void)close(out[i]);
    }
    return ok;
}

static void capture_init(struct capture *c, int rows, int cols) {
    *c = (struct capture){.vt = vterm_new(rows, cols), .rows = rows, .cols = cols};
    vterm_set_utf8(c->vt, 1);
    c->screen = vterm_obtain_screen(c->vt);
    vterm_screen_enable_altscreen(c->screen, 1);
    vterm_screen_reset(c->screen, 1);
}

bool capture_grid(const struct grid *g, const struct capture_config *config,
                  void (*cell)(void *arg, int row, int col, const char *text, const char *style), void *arg) {
    struct capture c;
    capture_init(&c, g->rows, g->cols);
    bool ok = capture_paint(g, -1, -1, config, &c);
    for (int y = 0; ok && y < g->rows; y++)
        for (int x = 0; x < g->cols; x++) {
            VTermScreenCell at;
            char text[4 * VTERM_MAX_CHARS_PER_CELL + 1] = " ", style[64];
            size_t n = 0;
            if (!vterm_screen_get_cell(c.screen, (VTermPos){y, x}, &at))
                continue;
            for (int i = 0; i < VTERM_MAX_CHARS_PER_CELL && at.chars[i]; i++)
                n += text_utf8_put(at.chars[i], text + n);
            text[n ? n : 1] = '\0';
            capture_put_style(&at, style, sizeof style);
            cell(arg, y, x, text, style);
            x += at.width > 1 ? at.width - 1 : 0;
        }
    vterm_free(c.vt);
    return ok;
}

static bool capture_run(struct app *a, const struct capture_config *config, bool styles, struct strbuf *out) {
    struct capture c;
    struct grid g;
    if (grid_init(&g, config->rows, config->cols) != 0)
        return false;
    capture_init(&c, config->rows, config->cols);
    app_draw(a, &g);
    bool ok = capture_paint(&g, a->cursor_row, a->cursor_col, config, &c);
    grid_fini(&g);
    if (ok)
        capture_put_text(&c, out);
    if (ok && styles)
        capture_put_styles(&c, out);
    vterm_free(c.vt);
    return ok;
}

bool capture_app(struct app *a, const struct capture_config *config, struct strbuf *out) {
    return capture_run(a, config, true, out);
}

bool capture_text(struct app *a, int rows, int cols, struct strbuf *out) {
    struct theme theme;
    theme_init_default(&theme);
    struct capture_config config = {.rows = rows, .cols = cols, .term = "xterm-256color", .theme = &theme};
    return capture_run(a, &config, false, out);
}
