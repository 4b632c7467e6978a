/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export_svg: a flame graph in one file: a picture that every viewer shows, with zoom, search and keys in a browser.
 *
 * The root is at the top, as on the screen. Nothing is loaded from elsewhere. Names come from the job: they are cleaned and
 * escaped, and the script (export_svg.js) sets them as text alone. Frames below a threshold are left out, and the picture
 * says how much that is. Colours are those of a function wherever it stands, in every file.
 */
#include "client/export/export_svg.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "base/path.h"
#include "base/text.h"
#include "client/export/export_formats.h"
#include "client/export/export_tree.h"
#include "flame/stack_counts.h"

#define SVG_WIDTH 1200
#define SVG_MARGIN 10
#define SVG_ROW 18
#define SVG_TOP 98    /* of the frames; above are the title, facts, and room for buttons */
#define SVG_BOTTOM 52 /* below them: details of a frame, what was left out */
#define SVG_CHAR 7.3  /* width of a character, a bit more than that of most fonts */
#define SVG_COLORS 6  /* of each kind; as in the style */
#define SVG_THRESHOLD_PCT 0.01
#define SVG_MAX_FRAMES 20000 /* beyond that the threshold is raised: a browser has to move them all */
#define SVG_NAME_MAX 2048
#define SVG_TITLE_COLS 120

struct svg {
    struct strbuf *out;
    const struct export_data *data;
    struct export_tree tree;
    double least; /* what frames weigh that are drawn, at least */
    double threshold_pct;
    size_t left_out;
    double left_out_weight; /* what they and their callees weigh */
    uint32_t rows;
};

/* ---- text ---- */

/* Text from the job as XML has it: U+FFFE and U+FFFF are no characters there. At most `cols` columns; 0: all. */
static void svg_put_text(struct strbuf *out, const char *text, int cols) {
    char clean[SVG_NAME_MAX];
    size_t len = text_sanitize(clean, sizeof clean, text), fit = cols ? text_fit(clean, cols) : len;
    for (size_t i = 0, n; i < fit; i += n) {
        uint32_t cp;
        n = text_utf8_next(clean + i, fit - i, &cp);
        const char *entity = cp == '&'    ? "&amp;"
                             : cp == '<'  ? "&lt;"
                             : cp == '>'  ? "&gt;"
                             : cp == '"'  ? "&quot;"
                             : cp == '\'' ? "&#39;"
                                          : NULL;
        if (entity)
            (void)strbuf_adds(out, entity);
        else if ((cp & 0xFFFE) == 0xFFFE)
            (void)strbuf_adds(out, "\xEF\xBF\xBD");
        else
            (void)strbuf_add(out, clean + i, n);
    }
    if (fit < len)
        (void)strbuf_adds(out, "..");
}

static void svg_put_amount(const struct svg *s, double weight) {
    if (s->tree.in_us)
        (void)strbuf_addf(s->out, "%.*f s", weight < 1e6 ? 4 : 2, weight / 1e6);
    else
        (void)strbuf_addf(s->out, "%.0f sample%s", weight, weight == 1 ? "" : "s");
}

static double svg_percent(const struct svg *s, double weight) {
    double all = s->tree.nodes[EXPORT_TREE_ROOT].total;
    return all > 0 ? 100 * weight / all : 0;
}

/* ---- head ---- */

static void svg_put_time(const struct svg *s) {
    const struct export_data *d = s->data;
    time_t from = (time_t)(d->until_s - d->elapsed_s);
    struct tm tm;
    char text[64];
    if (d->until_s > 0 && d->until_s < 1e11 && gmtime_r(&from, &tm) &&
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &tm))
        (void)strbuf_addf(s->out, "%s, ", text);
    if (d->elapsed_s > 0)
        (void)strbuf_addf(s->out, "for %.1f s", d->elapsed_s);
    else
        (void)strbuf_adds(s->out, "one look");
}

static void svg_put_name(const struct svg *s) {
    const struct model_target *t = s->data->target;
    (void)strbuf_adds(s->out, "probing-top: ");
    svg_put_text(s->out, t->cmdline && *t->cmdline ? path_short_command(t->cmdline) : "?", SVG_TITLE_COLS);
}

static void svg_put_target(const struct svg *s) {
    const struct model_target *t = s->data->target;
    const struct {
        const char *label, *value;
    } facts[] = {{" on ", t->host}, {", Python ", t->python}, {", torch ", t->torch}};
    (void)strbuf_addf(s->out, "process %" PRId64, t->pid);
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        if (facts[i].value && *facts[i].value) {
            (void)strbuf_adds(s->out, facts[i].label);
            svg_put_text(s->out, facts[i].value, 40);
        }
    if (t->rank != MODEL_UNKNOWN)
        (void)strbuf_addf(s->out, ", rank %" PRId64, t->rank);
    (void)strbuf_adds(s->out, "; ");
    svg_put_time(s);
}

static void svg_put_sampling(const struct svg *s) {
    const struct export_data *d = s->data;
    const struct stack_counts_totals *totals = stack_counts_get_totals(d->fold);
    (void)strbuf_addf(s->out, "%" PRIu64 " sample%s of %zu thread%s", totals->samples,
                      totals->samples == 1 ? "" : "s", s->tree.threads, s->tree.threads == 1 ? "" : "s");
    if (d->elapsed_s > 0 && totals->kept_hz > 0)
        (void)strbuf_addf(s->out, ", each looked at %.1f times a second", totals->kept_hz);
    (void)strbuf_adds(s->out, s->tree.in_us ? "; widths are the time of " : "; widths are samples of ");
    svg_put_text(s->out, d->choice ? d->choice : "all threads, waiting too", 0);
    uint64_t lost = totals->dropped + totals->undefined;
    if (totals->torn)
        (void)strbuf_addf(s->out, "; %" PRIu64 " left out: moved while they were read", totals->torn);
    if (lost)
        (void)strbuf_addf(s->out, "; %" PRIu64 " lost on the way", lost);
    if (d->target->mode == MODEL_MODE_READONLY)
        (void)strbuf_adds(s->out, "; read from outside");
    else if (totals->mode == MODEL_SAMPLING_GENTLE)
        (void)strbuf_adds(s->out, "; stacks of running threads were read while they ran");
}

static void svg_put_legend(const struct svg *s) {
    static const struct {
        const char *kind, *text;
    } legend[] = {{"o", "own code"}, {"l", "libraries"}, {"n", "native"}};
    (void)strbuf_adds(s->out, "<g id=\"legend\">\n");
    for (int i = 0; i < 3; i++)
        (void)strbuf_addf(s->out,
                          "<rect class=\"%s1\" x=\"%d\" y=\"71\" width=\"12\" height=\"12\"/>"
                          "<text class=\"legend\" x=\"%d\" y=\"81\">%s</text>\n",
                          legend[i].kind, 900 + 100 * i, 918 + 100 * i, legend[i].text);
    (void)strbuf_adds(s->out, "</g>\n");
}

static void svg_put_head(const struct svg *s) {
    int height = SVG_TOP + SVG_ROW * (int)s->rows + SVG_BOTTOM;
    (void)strbuf_addf(
        s->out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"%d\" height=\"%d\" "
        "viewBox=\"0 0 %d %d\" font-size=\"12\" "
        "font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\">\n<title>",
        SVG_WIDTH, height, SVG_WIDTH, height);
    svg_put_name(s);
    (void)strbuf_adds(s->out, "</title>\n<desc>");
    svg_put_target(s);
    (void)strbuf_adds(s->out, "</desc>\n<style><![CDATA[\n");
    (void)strbuf_adds(s->out, export_svg_style);
    (void)strbuf_addf(s->out,
                      "]]></style>\n<rect class=\"page\" width=\"100%%\" height=\"100%%\"/>\n"
                      "<text class=\"title\" x=\"%d\" y=\"22\">",
                      SVG_MARGIN);
    svg_put_name(s);
    (void)strbuf_addf(s->out, "</text>\n<text class=\"fact\" x=\"%d\" y=\"41\">", SVG_MARGIN);
    svg_put_target(s);
    (void)strbuf_addf(s->out, "</text>\n<text id=\"sampling\" class=\"fact\" x=\"%d\" y=\"57\">", SVG_MARGIN);
    svg_put_sampling(s);
    (void)strbuf_adds(s->out, "</text>\n");
    svg_put_legend(s);
}

/* ---- frames ---- */

/* The class of its colour: kind and shade. */
static void svg_put_color(const struct svg *s, const struct model_frame *f) {
    if (!f) {
        (void)strbuf_adds(s->out, "x0");
        return;
    }
    const char *where = f->file ? f->file : f->module ? f->module : "";
    uint64_t h = hash_bytes(where, strlen(where)) * 31;
    if (f->func)
        h += hash_bytes(f->func, strlen(f->func));
    char kind = f->kind == MODEL_FRAME_NATIVE ? 'n' : f->file && path_is_library(f->file) ? 'l' : 'o';
    (void)strbuf_addf(s->out, "%c%u", kind, (unsigned)(hash_mix(h) % SVG_COLORS));
}

/* A frame from `start` on, in the unit of the tree. Weights are rounded where a frame begins and ends: they add up. */
static void svg_put_frame(const struct svg *s, uint32_t node, double start) {
    const struct export_node *n = &s->tree.nodes[node];
    double all = s->tree.nodes[EXPORT_TREE_ROOT].total;
    double scale = all > 0 ? (SVG_WIDTH - 2 * SVG_MARGIN) / all : 0;
    double x = SVG_MARGIN + start * scale, width = n->total * scale;
    int y = SVG_TOP + SVG_ROW * (int)n->depth, room = (int)((width - 6) / SVG_CHAR),
        cols = text_width(n->name);
    long long from = llround(start), to = llround(start + n->total);
    (void)strbuf_addf(s->out, "<g data-f=\"%lld %lld %" PRIu32 " %lld\"><title>", from, to - from, n->depth,
                      llround(n->self));
    svg_put_text(s->out, n->name, 0);
    (void)strbuf_adds(s->out, "\n");
    svg_put_amount(s, n->total);
    (void)strbuf_addf(s->out, ", %.2f %%; own ", svg_percent(s, n->total));
    svg_put_amount(s, n->self);
    (void)strbuf_addf(s->out, ", %.2f %%", svg_percent(s, n->self));
    const char *path = n->frame ? n->frame->file ? n->frame->file : n->frame->module : NULL;
    if (path) {
        (void)strbuf_adds(s->out, "\n");
        svg_put_text(s->out, path, 0);
    }
    (void)strbuf_adds(s->out, "</title><rect class=\"");
    svg_put_color(s, n->frame);
    (void)strbuf_addf(s->out,
                      "\" x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\"/><text x=\"%.2f\" y=\"%d\">", x, y,
                      width, SVG_ROW - 1, x + 3, y + 13);
    if (room >= 3)
        svg_put_text(s->out, n->name, cols <= room ? 0 : room - 2);
    (void)strbuf_adds(s->out, "</text></g>\n");
}

/* Callers before their callees, siblings by name. A frame that is too small is left out with all it calls. */
static void svg_put_frames(struct svg *s) {
    double *start = calloc(s->rows + 1, sizeof *start); /* where the next frame of a depth begins */
    uint32_t at = start ? EXPORT_TREE_ROOT : EXPORT_TREE_NONE;
    if (!start)
        s->out->failed = true;
    while (at != EXPORT_TREE_NONE) {
        const struct export_node *n = &s->tree.nodes[at];
        bool drawn = at == EXPORT_TREE_ROOT || n->total >= s->least;
        if (drawn) {
            svg_put_frame(s, at, start[n->depth]);
            if (n->depth + 1 < s->rows)
                start[n->depth + 1] = start[n->depth];
        }
        start[n->depth] += n->total;
        at = export_tree_next(&s->tree, at, !drawn);
    }
    free(start);
}

/* ---- what is drawn ---- */

/* How much is drawn at a threshold, how deep that is, and what is left out. Callers have smaller numbers. */
static size_t svg_measure(struct svg *s) {
    const struct export_tree *t = &s->tree;
    size_t drawn = 0;
    s->least = t->nodes[EXPORT_TREE_ROOT].total * s->threshold_pct / 100;
    s->left_out = 0;
    s->left_out_weight = 0;
    s->rows = 1;
    for (uint32_t i = 0; i < t->n; i++) {
        const struct export_node *n = &t->nodes[i];
        if (i == EXPORT_TREE_ROOT || n->total >= s->least) {
            drawn++;
            s->rows = n->depth + 1 > s->rows ? n->depth + 1 : s->rows;
            continue;
        }
        s->left_out++;
        if (n->parent == EXPORT_TREE_ROOT || t->nodes[n->parent].total >= s->least)
            s->left_out_weight += n->total;
    }
    return drawn;
}

static void svg_put_foot(const struct svg *s) {
    int bottom = SVG_TOP + SVG_ROW * (int)s->rows;
    (void)strbuf_addf(s->out, "<text id=\"details\" x=\"%d\" y=\"%d\"></text>\n", SVG_MARGIN, bottom + 18);
    (void)strbuf_addf(s->out, "<text id=\"left-out\" class=\"fact\" x=\"%d\" y=\"%d\">", SVG_MARGIN,
                      bottom + 36);
    if (s->tree.nodes[EXPORT_TREE_ROOT].total <= 0)
        (void)strbuf_adds(s->out, "There were no samples of threads with Python.");
    else if (s->left_out)
        (void)strbuf_addf(s->out, "Left out: %zu frame%s of less than %g %% each, %.2f %% together.",
                          s->left_out, s->left_out == 1 ? "" : "s", s->threshold_pct,
                          svg_percent(s, s->left_out_weight));
    else
        (void)strbuf_adds(s->out, "No frame is left out.");
    if (s->tree.frameless > 0) {
        (void)strbuf_adds(s->out, " Threads without Python are not drawn (");
        svg_put_amount(s, s->tree.frameless);
        (void)strbuf_adds(s->out, "): --threads shows them.");
    }
    (void)strbuf_adds(s->out, "</text>\n<script><![CDATA[\n");
    (void)strbuf_adds(s->out, export_svg_script);
    (void)strbuf_adds(s->out, "]]></script>\n</svg>\n");
}

int export_render_svg(const struct export_data *data, struct strbuf *out, struct err *e) {
    struct svg s = {.out = out, .data = data, .threshold_pct = SVG_THRESHOLD_PCT};
    if (export_tree_build(&s.tree, data) != 0) {
        export_tree_fini(&s.tree);
        out->failed = true;
        return err_set(e, ERR_FAILED, "out of memory for the flame graph");
    }
    while (svg_measure(&s) > SVG_MAX_FRAMES)
        s.threshold_pct *= 2;
    svg_put_head(&s);
    (void)strbuf_addf(out, "<g id=\"frames\" data-top=\"%d\" data-rows=\"%" PRIu32 "\" data-unit=\"%s\">\n",
                      SVG_TOP, s.rows, s.tree.in_us ? "us" : "samples");
    svg_put_frames(&s);
    (void)strbuf_adds(out, "</g>\n");
    svg_put_foot(&s);
    export_tree_fini(&s.tree);
    return out->failed ? err_set(e, ERR_FAILED, "out of memory for the flame graph") : 0;
}
