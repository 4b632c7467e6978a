/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame_details: what else is known of the frame that is selected in the Flame screen: who calls it and whom it calls, wherever it is in
 * the tree, and the lines of its source, each with its share; see flame_state.h.
 *
 * Made anew when the tree or the selection is another one; the source is asked for by a wish, for reading it may take its time.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "tui/screens/flame/flame_state.h"
#include "tui/view/layout.h"

#define DETAILS_LEAST_ROWS 12 /* of the cells, from which they and the pane stand one above the other */
#define DETAILS_SIDE_COLS 64
#define DETAILS_HALVES_COLS 76 /* from here calls and source stand side by side */
#define DETAILS_SHARE_COLS 6
#define DETAILS_LINE_COLS 5
#define DETAILS_STACKED_ROWS 9 /* below, calls stand alone */
#define DETAILS_MARGIN 12 /* source is read again when so few lines are left around the one in question */

/* ---- what is known ---- */

/* Its file and the line in question: that of a node that is a line, else the one with the most of the time; 0 none. */
static int details_line(const struct flame_state *s, const struct model_frame *f) {
    if (!f || s->query.by == FLAME_BY_MODULE)
        return 0;
    if (s->query.by == FLAME_BY_LINE)
        return f->line;
    return s->calls.n_lines ? s->calls.lines[0].line : f->line;
}

static bool details_is_source(const struct app *app, const struct model_frame *f) {
    return app->source && f && f->file && strcmp(app->source->path, f->file) == 0;
}

static void details_want_source(const struct flame_state *s, struct app *app) {
    const struct model_frame *f = flame_frame(s->flame, s->selected);
    const struct source_text *t = app->source;
    int line = details_line(s, f);
    if (line <= 0 || !f->file)
        return;
    bool is_there = details_is_source(app, f) && (t->why.code || (line >= t->from && line < t->from + t->n));
    bool is_near_end = is_there && !t->why.code &&
                       ((t->from > 1 && line < t->from + DETAILS_MARGIN) ||
                        (t->n == SOURCE_MAX_LINES && line >= t->from + t->n - DETAILS_MARGIN));
    if (!is_there || is_near_end)
        app_want_source(app, f->file, line - SOURCE_MAX_LINES / 2);
}

void flame_follow_details(struct flame_state *s, struct app *app) {
    if (!s->details || !flame_is_there(s))
        return;
    if (s->calls_of != s->selected || s->calls_version != s->version) {
        s->calls_of = s->selected;
        s->calls_version = s->version;
        (void)flame_calls_build(&s->calls, s->flame, s->selected); /* without memory: empty */
    }
    details_want_source(s, app);
}

/* ---- drawing ---- */

struct rect flame_take_details(const struct flame_state *s, struct rect *cells) {
    struct rect pane = *cells;
    if (!s->details) {
        pane.rows = 0;
    } else if (cells->cols >= LAYOUT_WIDE_COLS) {
        pane.cols = DETAILS_SIDE_COLS;
        pane.col = cells->col + cells->cols - pane.cols;
        cells->cols -= pane.cols + 1;
    } else if (layout_has_panes(*cells) && cells->rows >= DETAILS_LEAST_ROWS) {
        pane.rows = cells->rows * 3 / 5;
        cells->rows -= pane.rows;
        pane.row = cells->row + cells->rows;
    } else
        cells->rows = 0; /* one pane at a time */
    return pane;
}

static void details_put_share(const struct flame_state *s, struct flame_weight part,
                              struct flame_weight whole, char *buf, size_t cap) {
    double pct = flame_share(s, part, whole);
    if (isnan(pct))
        (void)snprintf(buf, cap, "?");
    else
        (void)snprintf(buf, cap, "%.1f%%", pct);
}

static void details_draw_head(struct grid *g, struct rect area, int row, const char *title,
                              const char *text) {
    struct rect line = {area.row + row, area.col, 1, area.cols};
    grid_fill(g, line, ROLE_TABLE_HEAD);
    int col = 1 + grid_text(g, line, 0, 1, ROLE_TITLE, title) + 1;
    if (*text && col < area.cols)
        grid_text_fit(g, line, 0, col, area.cols - col, ROLE_TABLE_HEAD, GRID_TAIL, text);
}

static void details_draw_call(const struct flame_state *s, const struct app *app, const struct flame_call *c,
                              struct grid *g, struct rect area, int row) {
    char share[24], name[256];
    details_put_share(s, c->weight, s->calls.total, share, sizeof share);
    grid_text_fit(g, area, row, 1, DETAILS_SHARE_COLS, ROLE_VALUE, GRID_RIGHT, share);
    if (c->frame || c->node == FLAME_FRAMELESS)
        flame_label(s, app, c->node, name, sizeof name);
    else
        (void)snprintf(name, sizeof name, "(outermost)");
    enum theme_role role = c->frame ? data_frame_role(c->frame) : ROLE_MUTED;
    int col = DETAILS_SHARE_COLS + 2, room = area.cols - col;
    int width = grid_text_width(g, name) < room ? grid_text_width(g, name) : room;
    grid_text_fit(g, area, row, col, width, role, GRID_LEFT, name);
    const char *file = c->frame ? c->frame->file ? c->frame->file : c->frame->module : NULL;
    col += width + 2;
    if (file && s->query.by != FLAME_BY_MODULE && area.cols - col >= 8)
        grid_text_fit(g, area, row, col, area.cols - col, ROLE_FILE, GRID_TAIL, file);
}

/* A heading and as many calls as there is room for; rows used. */
static int details_draw_list(const struct flame_state *s, const struct app *app, const char *title,
                             const struct flame_call *calls, size_t n, struct grid *g, struct rect area) {
    char more[48] = "";
    int rows = area.rows - 1 < (int)n ? area.rows - 1 : (int)n;
    if (area.rows < 1)
        return 0;
    if ((size_t)rows < n)
        (void)snprintf(more, sizeof more, "%d of %zu", rows, n);
    details_draw_head(g, area, 0, title, more);
    for (int i = 0; i < rows; i++)
        details_draw_call(s, app, &calls[i], g, area, i + 1);
    return rows + 1;
}

static void details_draw_calls(const struct flame_state *s, const struct app *app, struct grid *g,
                               struct rect area) {
    int least = (area.rows + 1) / 2, want = (int)s->calls.n_callers + 1, others = (int)s->calls.n_callees + 1;
    int first = want < least ? want : area.rows - others > least ? area.rows - others : least;
    struct rect part = {area.row, area.col, first < area.rows ? first : area.rows, area.cols};
    int used = details_draw_list(s, app, "Called by", s->calls.callers, s->calls.n_callers, g, part);
    part.row += used;
    part.rows = area.rows - used;
    (void)details_draw_list(s, app, "Calls", s->calls.callees, s->calls.n_callees, g, part);
}

static void details_draw_line(const struct flame_state *s, const char *text, int number, bool is_it,
                              struct grid *g, struct rect area, int row) {
    char share[24] = "", no[16];
    const struct flame_line *l = NULL;
    for (size_t i = 0; i < s->calls.n_lines && !l; i++)
        l = s->calls.lines[i].line == number ? &s->calls.lines[i] : NULL;
    if (l)
        details_put_share(s, l->weight, s->calls.total, share, sizeof share);
    (void)snprintf(no, sizeof no, "%d", number);
    grid_text_fit(g, area, row, 0, DETAILS_LINE_COLS, ROLE_LINE, GRID_RIGHT, no);
    grid_text_fit(g, area, row, DETAILS_LINE_COLS + 1, DETAILS_SHARE_COLS, ROLE_VALUE, GRID_RIGHT, share);
    int col = DETAILS_LINE_COLS + DETAILS_SHARE_COLS + 2;
    if (area.cols > col)
        grid_text_fit(g, area, row, col, area.cols - col, l ? ROLE_VALUE : ROLE_TEXT, GRID_LEFT, text);
    if (is_it)
        grid_restyle(g, (struct rect){area.row + row, area.col, 1, area.cols}, ROLE_SELECTION_OTHER);
}

static const char *details_no_source(const struct flame_state *s, const struct app *app,
                                     const struct model_frame *f) {
    if (!f)
        return "no frame";
    if (s->query.by == FLAME_BY_MODULE)
        return "lines are of functions: L shows those";
    if (f->kind == MODEL_FRAME_NATIVE && !f->file)
        return "a native frame: its source is not known";
    if (!f->file || details_line(s, f) <= 0)
        return "its line is not known";
    if (!details_is_source(app, f))
        return "reading ...";
    return app->source->why.code ? app->source->why.text : NULL;
}

/* Blanks that all the lines begin with: there is no room for them. */
static size_t details_indent(const struct source_text *t, int first, int rows) {
    size_t least = SOURCE_LINE;
    for (int i = first - t->from; i < first - t->from + rows && i < t->n; i++) {
        size_t blanks = strspn(t->lines[i], " ");
        if (t->lines[i][blanks] && blanks < least)
            least = blanks;
    }
    return least;
}

static void details_draw_source(const struct flame_state *s, const struct app *app, struct grid *g,
                                struct rect area) {
    const struct model_frame *f = flame_frame(s->flame, s->selected);
    const struct source_text *t = app->source;
    const char *why = details_no_source(s, app, f);
    int line = details_line(s, f), rows = area.rows - 1;
    if (area.rows < 1)
        return;
    details_draw_head(g, area, 0, "Source", f && f->file ? f->file : "");
    if (why) {
        if (rows > 0)
            grid_text_fit(g, area, 1, 1, area.cols - 1, ROLE_MUTED, GRID_LEFT, why);
        return;
    }
    int first = line - rows / 2, last = t->from + t->n - 1;
    first = first + rows - 1 > last ? last - rows + 1 : first;
    first = first < t->from ? t->from : first;
    size_t indent = details_indent(t, first, rows);
    for (int i = 0; i < rows && first + i <= last; i++) {
        const char *text = t->lines[first + i - t->from];
        size_t blanks = strspn(text, " ");
        details_draw_line(s, text + (blanks < indent ? blanks : indent), first + i, first + i == line, g,
                          area, i + 1);
    }
}

void flame_draw_details(const struct flame_state *s, const struct app *app, struct grid *g,
                        struct rect area) {
    struct rect calls = area, source = area;
    if (area.col > 0 && area.rows > 0)
        for (int i = 0; i < area.rows; i++)
            (void)grid_text(g, (struct rect){area.row, area.col - 1, area.rows, 1}, i, 0, ROLE_BORDER,
                            glyph(g, GLYPH_VLINE));
    if (area.cols >= DETAILS_HALVES_COLS) {
        calls.cols = area.cols / 2 - 1;
        source.col += calls.cols + 1;
        source.cols = area.cols - calls.cols - 1;
    } else if (area.rows < DETAILS_STACKED_ROWS) {
        source.rows = 0;
    } else {
        calls.rows = area.rows * 2 / 5;
        source.row += calls.rows;
        source.rows -= calls.rows;
    }
    details_draw_calls(s, app, g, calls);
    details_draw_source(s, app, g, source);
}
