/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame_draw: the picture of the Flame screen: head, cells, details of the selected frame; see
 * flame_state.h.
 *
 * A cell begins with a border, so that neighbours can be distinguished without colours; in ASCII it
 * ends with one, too.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "tui/core/app.h"
#include "tui/core/app_screen.h"
#include "tui/screens/flame/flame_color.h"
#include "tui/screens/flame/flame_state.h"
#include "tui/screens/top/top_head.h"
#include "tui/view/diff_cell.h"
#include "tui/view/layout.h"

/* Rows from which on the head takes two, and so do the details of a frame. */
#define FLAME_TWO_LINES 10
#define FLAME_NAME 256

static const char *const flame_bys[] = {
    [FLAME_BY_FUNCTION] = "function", [FLAME_BY_LINE] = "line", [FLAME_BY_MODULE] = "module"};
static const char *const flame_times[] = {
    [FLAME_ON_CPU] = "ON CPU", [FLAME_ALL_TIME] = "WALL", [FLAME_GIL_HOLDING] = "GIL HELD"};

/* ---- names ---- */

static const char *flame_base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* "torch.nn.modules.module" for a file in Python's library folders, else the file's name. */
void flame_module_name(const struct model_frame *f, char *buf, size_t cap) {
    static const char *const folders[] = {"/site-packages/", "/dist-packages/", "/lib/python",
                                          "/lib64/python"};
    const char *path = f->kind == MODEL_FRAME_NATIVE && f->module ? f->module : f->file, *inside = NULL;
    for (size_t i = 0; path && !inside && i < sizeof folders / sizeof folders[0]; i++) {
        const char *at = strstr(path, folders[i]);
        inside = at ? at + strlen(folders[i]) : NULL;
        /* The version is in the folder's name. */
        if (inside && folders[i][strlen(folders[i]) - 1] != '/')
            inside = strchr(inside, '/') ? strchr(inside, '/') + 1 : NULL;
    }
    if (!inside || f->kind == MODEL_FRAME_NATIVE) {
        snprintf(buf, cap, "%s", path ? flame_base_name(path) : "?");
        return;
    }
    snprintf(buf, cap, "%s", inside);
    static const char *const ends[] = {".py", "/__init__"};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        size_t len = strlen(buf), end = strlen(ends[i]);
        if (len > end && strcmp(buf + len - end, ends[i]) == 0)
            buf[len - end] = '\0';
    }
    for (char *p = buf; *p; p++)
        *p = *p == '/' ? '.' : *p;
}

/* A frame of the only module that is shown, or NULL. */
static const struct model_frame *flame_module_frame(const struct flame_state *s) {
    bool is_there =
        s->query.module && flame_is_there(s) && s->query.module <= sample_flame_count_frames(s->samples);
    return is_there ? sample_flame_frame(s->samples, s->query.module - 1) : NULL;
}

void flame_label(const struct flame_state *s, const struct app *app, uint32_t node, char *buf, size_t cap) {
    const struct model_frame *f = flame_frame(s->flame, node);
    char raw[FLAME_NAME];
    const char *thread = NULL;
    if (node == FLAME_ROOT && s->query.tid && app->data.tally) {
        thread = stack_counts_thread_name(sample_store_counts(app->data.tally), s->query.tid);
        snprintf(raw, sizeof raw, "thread %s", thread ? thread : "?");
    } else if (node == FLAME_ROOT && flame_module_frame(s)) {
        snprintf(raw, sizeof raw, "module ");
        flame_module_name(flame_module_frame(s), raw + strlen(raw), sizeof raw - strlen(raw));
    } else if (!f)
        snprintf(raw, sizeof raw, "%s", node == FLAME_ROOT ? "all threads" : "(no Python frame)");
    else if (s->query.by == FLAME_BY_MODULE)
        flame_module_name(f, raw, sizeof raw);
    else if (s->query.by == FLAME_BY_LINE && f->line > 0)
        snprintf(raw, sizeof raw, "%s:%d", f->func ? f->func : "?", f->line);
    else
        snprintf(raw, sizeof raw, "%s", f->func ? f->func : "?");
    text_sanitize(buf, cap, raw);
}

/* Where a frame is, as far as the granularity tells. */
static void flame_place(const struct flame_state *s, uint32_t node, char *buf, size_t cap) {
    const struct model_frame *f = flame_frame(s->flame, node);
    const char *path = f ? (f->file ? f->file : f->module) : NULL;
    if (path && s->query.by == FLAME_BY_LINE && f->line > 0)
        snprintf(buf, cap, "%s:%d", path, f->line);
    else
        snprintf(buf, cap, "%s", path ? path : "");
}

/* ---- cells ---- */

static enum theme_role flame_role(const struct flame_state *s, const struct flame_cell *c) {
    if (c->node == FLAME_NO_NODE)
        return ROLE_FLAME_SMALL;
    const struct model_frame *f = flame_frame(s->flame, c->node);
    if (flame_is_hit(s, c->node))
        return ROLE_FLAME_MATCH;
    if (s->compared)
        return diff_role(flame_delta(s, c));
    if (!f || flame_node(s->flame, c->node)->depth < flame_node(s->flame, s->zoom)->depth)
        return ROLE_FLAME_OUTER;
    return flame_color_of(f, s->query.by == FLAME_BY_MODULE);
}

/* The text of a cell: its name, and its share if there is room. */
static void flame_cell_text(const struct flame_state *s, const struct app *app, const struct grid *g,
                            const struct flame_cell *c, int room, char *buf, size_t cap) {
    if (c->node == FLAME_NO_NODE) {
        snprintf(buf, cap, "+%u", c->n);
        return;
    }
    char share[32], delta[24];
    flame_label(s, app, c->node, buf, cap);
    double pct = flame_share(s, c->weight, flame_node(s->flame, FLAME_ROOT)->total);
    diff_text(flame_delta(s, c), delta, sizeof delta);
    if (s->compared)
        snprintf(share, sizeof share, "  %s", delta);
    else
        snprintf(share, sizeof share, "  %.1f%%", pct);
    size_t used = strlen(buf);
    if (!isnan(pct) && grid_text_width(g, buf) + (int)strlen(share) <= room && used + sizeof share < cap)
        snprintf(buf + used, cap - used, "%s", share);
}

/* The beginning of a cell; while comparing the sign of the difference, so that it needs no
 * colours. */
static const char *flame_border(const struct flame_state *s, const struct grid *g, const struct flame_cell *c,
                                char *sign) {
    char delta = s->compared ? diff_sign(flame_delta(s, c)) : '=';
    sign[0] = delta;
    sign[1] = '\0';
    if (delta == '+' || delta == '-')
        return sign;
    return c->width > 1 ? glyph(g, GLYPH_CELL) : glyph(g, GLYPH_CELL_THIN);
}

static void flame_draw_cell(const struct flame_state *s, const struct app *app, struct grid *g,
                            const struct flame_cell *c, bool is_selected) {
    int row = s->flipped ? s->area.rows - 1 - c->row : c->row;
    struct rect cell = {s->area.row + row, s->area.col + c->col, 1, c->width};
    enum theme_role role = is_selected ? ROLE_FLAME_SELECTION : flame_role(s, c);
    const char *end = glyph(g, GLYPH_CELL_END);
    int borders = *end && c->width > 1 ? 2 : 1, room = c->width - borders;
    char text[FLAME_NAME + 64], sign[2];
    bool is_tagged = c->node != FLAME_NO_NODE && flame_is_tagged(s, c->node);
    grid_fill(g, cell, role);
    grid_text(g, cell, 0, 0, is_tagged ? ROLE_TAG : role,
              is_tagged ? glyph(g, GLYPH_TAG) : flame_border(s, g, c, sign));
    if (borders == 2)
        grid_text(g, cell, 0, c->width - 1, role, end);
    if (room <= 0)
        return;
    flame_cell_text(s, app, g, c, room, text, sizeof text);
    if (room < 3) /* a mark for the cut would take too much of it */
        grid_text_skip(g, cell, 0, 1, room, 0, role, text);
    else
        grid_text_fit(g, cell, 0, 1, room, role, GRID_LEFT, text);
}

/* `marks`: the selected cell is marked. */
static void flame_draw_cells(struct flame_state *s, const struct app *app, struct grid *g, bool marks) {
    struct flame_view view = {.zoom = s->zoom,
                              .cols = s->area.cols,
                              .top = s->top,
                              .rows = s->area.rows,
                              .permille = (int)(flame_threshold_pct(s) * 10 + 0.5)};
    if (flame_layout_build(&s->layout, s->flame, &view) != 0)
        return;
    const struct flame_cell *selected = marks ? flame_layout_find(&s->layout, s->flame, s->selected) : NULL;
    for (size_t i = 0; i < s->layout.n; i++)
        flame_draw_cell(s, app, g, &s->layout.cells[i], &s->layout.cells[i] == selected);
}

static void flame_empty_text(const struct flame_state *s, const struct app *app, char *buf, size_t cap) {
    static const char *const none[] = {
        [FLAME_ON_CPU] = "almost nothing ran on the CPU: a includes waiting time",
        [FLAME_ALL_TIME] = "no samples in this time",
        [FLAME_GIL_HOLDING] = "no thread was seen holding the GIL: a shows time on the CPU",
    };
    static const char *const past[] = {
        [FLAME_ON_CPU] = "nothing ran on a CPU in this time: a includes waiting time",
        [FLAME_ALL_TIME] = "no samples of this time: sampling runs while Flame or Top is open",
        [FLAME_GIL_HOLDING] = "no thread held the GIL in this time: a shows time on the CPU",
    };
    struct sample_store_health h = {0};
    const char *text = NULL;
    if (app->data.tally)
        sample_store_get_health(app->data.tally, &h);
    if (!s->flame)
        text = "out of memory";
    else if (s->filter.active && h.samples >= FLAME_FIRST_SAMPLES)
        text = "nothing matches: A shows all";
    else if (s->tags->only && h.samples >= FLAME_FIRST_SAMPLES)
        text = "no stack has a frame that is tagged: A shows all";
    else if (data_is_stepped(&app->data))
        text = past[s->query.time];
    else if (app->data.paused)
        text = "frozen before the first sample: Z shows the latest";
    else if (h.samples >= FLAME_FIRST_SAMPLES && s->query.tid)
        text = "no samples of this thread: ( and ) go to others, a shows other time";
    else if (h.samples >= FLAME_FIRST_SAMPLES)
        text = none[s->query.time];
    top_head_empty(app, FLAME_FIRST_SAMPLES, buf, cap);
    bool is_early = app->data.state == SESSION_CONNECTED && *buf;
    if (!is_early && (text || !*buf))
        snprintf(buf, cap, "%s", text ? text : "sampling ...");
}

/* ---- the selected frame ---- */

static void flame_put_time(const struct flame_state *s, struct flame_weight w, char *buf, size_t cap) {
    double seconds = (double)w.ns / 1e9;
    if (flame_node(s->flame, FLAME_ROOT)->total.ns <= 0)
        snprintf(buf, cap, "%lld sample%s", (long long)w.samples, w.samples == 1 ? "" : "s");
    else if (seconds < 1000)
        snprintf(buf, cap, "%.2fs", seconds);
    else
        text_human_duration(buf, cap, seconds);
}

void flame_fact(struct grid *g, struct rect area, int row, int *col, const char *label, const char *value) {
    int need = grid_text_width(g, label) + 1 + grid_text_width(g, value);
    if (*col + need > area.cols)
        return;
    *col += grid_text(g, area, row, *col, ROLE_LABEL, label) + 1;
    *col += grid_text(g, area, row, *col, ROLE_VALUE, value) + 2;
}

/* A share in percent; '?' if the whole is empty. */
static void flame_put_share(const struct flame_state *s, struct flame_weight part, struct flame_weight whole,
                            char *buf, size_t cap) {
    double pct = flame_share(s, part, whole);
    if (isnan(pct))
        snprintf(buf, cap, "?");
    else
        snprintf(buf, cap, "%.1f%%", pct);
}

static void flame_fact_weight(const struct flame_state *s, struct grid *g, struct rect area, int row,
                              int *col, const char *label, struct flame_weight w) {
    char text[96], time[48], share[32];
    flame_put_time(s, w, time, sizeof time);
    flame_put_share(s, w, flame_node(s->flame, FLAME_ROOT)->total, share, sizeof share);
    snprintf(text, sizeof text, "%s %s", share, time);
    flame_fact(g, area, row, col, label, text);
}

static void flame_draw_facts(struct flame_state *s, struct grid *g, struct rect area, int row, int col) {
    const struct flame_node *n = flame_node(s->flame, s->selected);
    char text[64];
    unsigned callees = 0;
    flame_fact_weight(s, g, area, row, &col, "total", n->total);
    flame_fact_weight(s, g, area, row, &col, "self", n->self);
    if (s->zoom != FLAME_ROOT && flame_is_above(s->flame, s->zoom, s->selected)) {
        flame_put_share(s, n->total, flame_node(s->flame, s->zoom)->total, text, sizeof text);
        flame_fact(g, area, row, &col, "of zoom", text);
    }
    snprintf(text, sizeof text, "%lld", (long long)n->total.samples);
    flame_fact(g, area, row, &col, "samples", text);
    for (uint32_t c = n->child; c != FLAME_NO_NODE; c = flame_node(s->flame, c)->next)
        callees += flame_amount(s->flame, flame_node(s->flame, c)->total) > 0;
    snprintf(text, sizeof text, "%u", callees);
    flame_fact(g, area, row, &col, "calls", text);
    snprintf(text, sizeof text, "%u", n->depth);
    flame_fact(g, area, row, &col, "depth", text);
}

/* One or two lines: which frame it is, and its share of the time. */
static void flame_draw_selected(struct flame_state *s, const struct app *app, struct grid *g,
                                struct rect area) {
    char name[FLAME_NAME], place[1024];
    struct rect title = {area.row, area.col, 1, area.cols};
    flame_label(s, app, s->selected, name, sizeof name);
    flame_place(s, s->selected, place, sizeof place);
    name[text_fit(name, area.cols / 2)] = '\0';
    grid_fill(g, title, ROLE_TABLE_HEAD);
    int col = 1 + grid_text(g, title, 0, 1, ROLE_TITLE, name) + 2;
    if (area.rows < 2) {
        if (s->compared)
            flame_draw_compared(s, app, g, title, 0, col);
        else
            flame_draw_facts(s, g, title, 0, col);
        return;
    }
    if (*place && col < area.cols)
        grid_text_fit(g, title, 0, col, area.cols - col, ROLE_TABLE_HEAD, GRID_TAIL, place);
    if (s->compared)
        flame_draw_compared(s, app, g, area, 1, 1);
    else
        flame_draw_facts(s, g, area, 1, 1);
}

/* ---- the screen ---- */

static void flame_draw_head(const struct flame_state *s, const struct app *app, struct grid *g,
                            struct rect area) {
    struct top_head facts = {.tid = s->query.tid,
                             .compared = s->compared,
                             .by = flame_bys[s->query.by],
                             .time = flame_times[s->query.time],
                             .gc_pct = NAN};
    size_t n = 0;
    const struct flame_thread *threads = s->flame ? sample_flame_threads(s->samples, &n) : NULL;
    for (size_t i = 0; i < n; i++)
        facts.n_tids += threads[i].samples > 0;
    if (flame_is_there(s))
        facts.samples = (uint64_t)flame_node(s->flame, FLAME_ROOT)->total.samples;
    top_head_draw(&facts, app, g, area);
}

/* Are there enough samples for a picture? */
static bool flame_has_cells(const struct flame_state *s) {
    return flame_is_there(s) && s->built_samples >= FLAME_FIRST_SAMPLES &&
           flame_node(s->flame, FLAME_ROOT)->total.samples > 0;
}

static void flame_draw_empty(const struct flame_state *s, const struct app *app, struct grid *g,
                             struct rect area) {
    char text[128];
    flame_empty_text(s, app, text, sizeof text);
    grid_text(g, area, area.rows > 1 ? 1 : 0, 2, ROLE_MUTED, text);
}

void flame_picture_draw(struct flame_state *s, const struct app *app, struct grid *g, struct rect area) {
    s->area = area;
    s->layout.n = 0;
    if (flame_has_cells(s))
        flame_draw_cells(s, app, g, false);
    else
        flame_draw_empty(s, app, g, area);
}

void flame_draw(void *state, struct app *app, struct grid *g, struct rect area) {
    struct flame_state *s = state;
    int two = area.rows >= FLAME_TWO_LINES ? 2 : 1;
    flame_draw_head(s, app, g, (struct rect){area.row, area.col, two, area.cols});
    bool is_shown = flame_has_cells(s);
    s->area = (struct rect){area.row + two, area.col, area.rows - 2 * two, area.cols};
    struct rect cells = s->area, details = flame_take_details(s, &s->area);
    s->layout.n = 0;
    if (!is_shown) {
        flame_draw_empty(s, app, g, s->area);
        return;
    }
    flame_select(s, s->selected); /* the height may have changed */
    if (s->area.rows > 0)
        flame_draw_cells(s, app, g, true);
    if (details.rows > 0)
        flame_draw_details(s, app, g, details);
    flame_draw_selected(s, app, g, (struct rect){cells.row + cells.rows, area.col, two, area.cols});
}

void flame_status(const void *state, const struct app *app, struct strbuf *out) {
    const struct flame_state *s = state;
    if (!flame_is_there(s))
        return;
    const struct flame_node *zoom = flame_node(s->flame, s->zoom);
    char name[FLAME_NAME], share[32];
    flame_label(s, app, s->zoom, name, sizeof name);
    name[text_fit(name, 32)] = '\0';
    flame_put_share(s, zoom->total, flame_node(s->flame, FLAME_ROOT)->total, share, sizeof share);
    if (s->zoom != FLAME_ROOT)
        strbuf_addf(out, "ZOOM %s %s", name, share);
    else
        strbuf_adds(out, "Flame");
    if (s->flipped)
        strbuf_adds(out, "   flipped");
    if (flame_module_frame(s)) {
        char module[FLAME_NAME];
        flame_module_name(flame_module_frame(s), name, sizeof name);
        text_sanitize(module, sizeof module, name);
        module[text_fit(module, 32)] = '\0';
        strbuf_addf(out, "   MODULE %s", module);
    }
    if (app_screen_shows_native(app, CONTEXT_FLAME))
        strbuf_adds(out, "   native");
    if (s->threshold)
        strbuf_addf(out, "   from %g%%", flame_threshold_pct(s));
    if (s->filter.active)
        strbuf_addf(out, "   FILTER %s", s->filter.text);
    tags_put_text(s->tags, out);
    flame_put_share(s, s->hits.covered, zoom->total, share, sizeof share);
    if (s->search.active)
        strbuf_addf(out, "   /%s: %zu, %s of the %s", s->search.text, s->hits.n, s->hits.n ? share : "0.0%",
                    s->zoom == FLAME_ROOT ? "time" : "zoom");
    if (s->layout.has_more)
        strbuf_adds(out, s->flipped ? "   more above" : "   more below");
}

/* ---- flame details ---- */

/*
 * Details of the selected frame: its callers and callees anywhere in the tree, and the lines of its
 * source, each with its share. Updated when the tree or the selection changes; the source is
 * requested from the host, because reading it may take time.
 */

#define DETAILS_LEAST_ROWS 12 /* of the cells, from which on the pane is below them */
#define DETAILS_SIDE_COLS 64
#define DETAILS_HALVES_COLS 76 /* from which on calls and source are side by side */
#define DETAILS_SHARE_COLS 6
#define DETAILS_LINE_COLS 5
#define DETAILS_STACKED_ROWS 9 /* below this, only calls are shown */
/* Source is read again if so few lines are left around the current one. */
#define DETAILS_MARGIN 12

/* ---- what is known ---- */

/* Its file and the current line: that of a node that is a line, else the one with the most time; 0:
 * none. */
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
        flame_calls_build(&s->calls, s->samples, s->selected); /* out of memory: empty */
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
        /* One pane at a time. */
    } else
        cells->rows = 0;
    return pane;
}

static void details_put_share(const struct flame_state *s, struct flame_weight part,
                              struct flame_weight whole, char *buf, size_t cap) {
    double pct = flame_share(s, part, whole);
    if (isnan(pct))
        snprintf(buf, cap, "?");
    else
        snprintf(buf, cap, "%.1f%%", pct);
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
        snprintf(name, sizeof name, "(outermost)");
    enum theme_role role = c->frame ? data_frame_role(c->frame) : ROLE_MUTED;
    int col = DETAILS_SHARE_COLS + 2, room = area.cols - col;
    int width = grid_text_width(g, name) < room ? grid_text_width(g, name) : room;
    grid_text_fit(g, area, row, col, width, role, GRID_LEFT, name);
    const char *file = c->frame ? c->frame->file ? c->frame->file : c->frame->module : NULL;
    col += width + 2;
    if (file && s->query.by != FLAME_BY_MODULE && area.cols - col >= 8)
        grid_text_fit(g, area, row, col, area.cols - col, ROLE_FILE, GRID_TAIL, file);
}

/* A heading and as many calls as fit; returns the rows used. */
static int details_draw_list(const struct flame_state *s, const struct app *app, const char *title,
                             const struct flame_call *calls, size_t n, struct grid *g, struct rect area) {
    char more[48] = "";
    int rows = area.rows - 1 < (int)n ? area.rows - 1 : (int)n;
    if (area.rows < 1)
        return 0;
    if ((size_t)rows < n)
        snprintf(more, sizeof more, "%d of %zu", rows, n);
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
    details_draw_list(s, app, "Calls", s->calls.callees, s->calls.n_callees, g, part);
}

static void details_draw_line(const struct flame_state *s, const char *text, int number, bool is_it,
                              struct grid *g, struct rect area, int row) {
    char share[24] = "", no[16];
    const struct flame_line *l = NULL;
    for (size_t i = 0; i < s->calls.n_lines && !l; i++)
        l = s->calls.lines[i].line == number ? &s->calls.lines[i] : NULL;
    if (l)
        details_put_share(s, l->weight, s->calls.total, share, sizeof share);
    snprintf(no, sizeof no, "%d", number);
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
        return "lines are of functions: l shows those";
    if (f->kind == MODEL_FRAME_NATIVE && !f->file)
        return "a native frame: its source is not known";
    if (!f->file || details_line(s, f) <= 0)
        return "its line is not known";
    if (!details_is_source(app, f))
        return "reading ...";
    return app->source->why.code ? app->source->why.text : NULL;
}

/* Blanks that all lines begin with: they are left out. */
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
            grid_text(g, (struct rect){area.row, area.col - 1, area.rows, 1}, i, 0, ROLE_BORDER,
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
