/* SPDX-License-Identifier: Apache-2.0 */
/* flame_svg: see flame_svg.h. */
#include "flame/flame_svg.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/path.h"
#include "base/text.h"
#include "base/xml.h"

#define SVG_WIDTH 1200
#define SVG_MARGIN 10
#define SVG_ROW 18
#define SVG_TOP 98       /* height above the frames: title, facts, and room for buttons */
#define SVG_BOTTOM 52    /* height below the frames: details of a frame, omitted weight */
#define SVG_TOP_INNER 26 /* the same within a page: facts; omitted weight */
#define SVG_BOTTOM_INNER 24
#define SVG_CHAR 7.3 /* width of a character, slightly more than in most fonts */
#define SVG_COLORS 6 /* of each kind; same number as in the style */
#define SVG_TITLE_COLS 120

struct svg {
    struct strbuf *out;
    const struct flame_svg *picture;
    struct flame_stacks_tree tree;
    double least; /* smallest weight of a drawn frame */
    double threshold_pct;
    int top, bottom;
    size_t left_out;
    double left_out_weight; /* weight of the omitted frames and their callees */
    uint32_t rows;
};

static double svg_total(const struct svg *s, uint32_t node) {
    return flame_stacks_weight(&s->tree, flame_node(s->tree.tree, node)->total);
}

static double svg_own(const struct svg *s, uint32_t node) {
    return flame_stacks_weight(&s->tree, flame_node(s->tree.tree, node)->self);
}

/* ---- text ---- */

static void svg_put_amount(const struct svg *s, double weight) {
    if (s->tree.in_us)
        strbuf_addf(s->out, "%.*f s", weight < 1e6 ? 4 : 2, weight / 1e6);
    else
        strbuf_addf(s->out, "%.0f sample%s", weight, weight == 1 ? "" : "s");
}

static double svg_percent(const struct svg *s, double weight) {
    double all = svg_total(s, FLAME_ROOT);
    return all > 0 ? 100 * weight / all : 0;
}

/* ---- head ---- */

static void svg_put_time(const struct svg *s) {
    const struct flame_svg *d = s->picture;
    if (d->began)
        strbuf_addf(s->out, "%s, ", d->began);
    if (d->elapsed_s > 0)
        strbuf_addf(s->out, "for %.1f s", d->elapsed_s);
    else
        strbuf_adds(s->out, "one snapshot");
}

static void svg_put_name(const struct svg *s) {
    const struct model_target *t = s->picture->target;
    strbuf_adds(s->out, "probing-top: ");
    xml_put_text(s->out, t->cmdline && *t->cmdline ? path_short_command(t->cmdline) : "?", SVG_TITLE_COLS);
}

static void svg_put_target(const struct svg *s) {
    const struct model_target *t = s->picture->target;
    const struct {
        const char *label, *value;
    } facts[] = {{" on ", t->host}, {", Python ", t->python}, {", torch ", t->torch}};
    strbuf_addf(s->out, "process %" PRId64, t->pid);
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        if (facts[i].value && *facts[i].value) {
            strbuf_adds(s->out, facts[i].label);
            xml_put_text(s->out, facts[i].value, 40);
        }
    if (t->rank != MODEL_UNKNOWN)
        strbuf_addf(s->out, ", rank %" PRId64, t->rank);
    strbuf_adds(s->out, "; ");
    svg_put_time(s);
}

static void svg_put_sampling(const struct svg *s) {
    const struct flame_svg *d = s->picture;
    const struct stack_counts_totals *totals = stack_counts_get_totals(d->stacks.counts);
    strbuf_addf(s->out, "%" PRIu64 " sample%s of %zu thread%s", totals->samples,
                totals->samples == 1 ? "" : "s", s->tree.threads, s->tree.threads == 1 ? "" : "s");
    if (d->elapsed_s > 0 && totals->kept_hz > 0)
        strbuf_addf(s->out, ", each sampled %.1f times a second", totals->kept_hz);
    strbuf_adds(s->out, s->tree.in_us ? "; widths are the time of " : "; widths are samples of ");
    xml_put_text(s->out, d->choice ? d->choice : "all threads, waiting too", 0);
    uint64_t lost = totals->dropped + totals->undefined;
    if (totals->torn)
        strbuf_addf(s->out, "; %" PRIu64 " left out: moved while they were read", totals->torn);
    if (lost)
        strbuf_addf(s->out, "; %" PRIu64 " lost on the way", lost);
    if (totals->left_out)
        strbuf_addf(s->out, "; %" PRIu64 " left out for lack of space", totals->left_out);
    if (d->target->mode == MODEL_MODE_READONLY)
        strbuf_adds(s->out, "; read from outside");
    else if (totals->mode == MODEL_SAMPLING_GENTLE)
        strbuf_adds(s->out, "; stacks of running threads were read while they ran");
}

/* The colour of a frame: a class of the style, or an attribute. */
static void svg_put_color(const struct svg *s, char kind, unsigned shade) {
    if (s->picture->style)
        strbuf_addf(s->out, "class=\"%c%u\"", kind, shade);
    else if (kind == 'x')
        strbuf_adds(s->out, "fill=\"#d5d8dc\"");
    else
        strbuf_addf(s->out, "fill=\"hsl(%u,70%%,%u%%)\"",
                    (kind == 'o'   ? 24
                     : kind == 'l' ? 194
                                   : 258) +
                        4 * shade,
                    68 + 2 * shade);
}

static void svg_put_legend(const struct svg *s) {
    static const struct {
        char kind;
        const char *text;
    } legend[] = {{'o', "own code"}, {'l', "libraries"}, {'n', "native"}};
    strbuf_adds(s->out, "<g id=\"legend\">\n");
    for (int i = 0; i < 3; i++) {
        strbuf_adds(s->out, "<rect ");
        svg_put_color(s, legend[i].kind, 1);
        strbuf_addf(s->out,
                    " x=\"%d\" y=\"71\" width=\"12\" height=\"12\"/>"
                    "<text class=\"legend\" x=\"%d\" y=\"81\">%s</text>\n",
                    900 + 100 * i, 918 + 100 * i, legend[i].text);
    }
    strbuf_adds(s->out, "</g>\n");
}

static void svg_put_root(const struct svg *s) {
    int height = s->top + SVG_ROW * (int)s->rows + s->bottom;
    strbuf_addf(s->out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"%d\" height=\"%d\" "
                "viewBox=\"0 0 %d %d\" font-size=\"12\" "
                "font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\">\n",
                SVG_WIDTH, height, SVG_WIDTH, height);
}

static void svg_put_head(const struct svg *s) {
    strbuf_adds(s->out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    svg_put_root(s);
    strbuf_adds(s->out, "<title>");
    svg_put_name(s);
    strbuf_adds(s->out, "</title>\n<desc>");
    svg_put_target(s);
    strbuf_adds(s->out, "</desc>\n");
    if (s->picture->style) {
        strbuf_adds(s->out, "<style><![CDATA[\n");
        strbuf_adds(s->out, s->picture->style);
        strbuf_adds(s->out, "]]></style>\n");
    }
    strbuf_addf(s->out,
                "<rect class=\"page\"%s width=\"100%%\" height=\"100%%\"/>\n"
                "<text class=\"title\" x=\"%d\" y=\"22\">",
                s->picture->style ? "" : " fill=\"#fff\"", SVG_MARGIN);
    svg_put_name(s);
    strbuf_addf(s->out, "</text>\n<text class=\"fact\" x=\"%d\" y=\"41\">", SVG_MARGIN);
    svg_put_target(s);
    strbuf_addf(s->out, "</text>\n<text id=\"sampling\" class=\"fact\" x=\"%d\" y=\"57\">", SVG_MARGIN);
    svg_put_sampling(s);
    strbuf_adds(s->out, "</text>\n");
    svg_put_legend(s);
}

static void svg_put_inner_head(const struct svg *s) {
    svg_put_root(s);
    strbuf_addf(s->out, "<text class=\"fact\" x=\"%d\" y=\"16\">", SVG_MARGIN);
    svg_put_sampling(s);
    strbuf_adds(s->out, "</text>\n");
}

/* ---- frames ---- */

/* Kind and shade of a frame. */
static void svg_put_frame_color(const struct svg *s, const struct model_frame *f) {
    if (!f) {
        svg_put_color(s, 'x', 0);
        return;
    }
    const char *where = f->file ? f->file : f->module ? f->module : "";
    uint64_t h = hash_bytes(where, strlen(where)) * 31;
    if (f->func)
        h += hash_bytes(f->func, strlen(f->func));
    char kind = f->kind == MODEL_FRAME_NATIVE ? 'n' : f->file && path_is_library(f->file) ? 'l' : 'o';
    svg_put_color(s, kind, (unsigned)(hash_mix(h) % SVG_COLORS));
}

/* A frame from `start` on, in the unit of the tree. Its beginning and its end are rounded, so
 * widths add up. */
static void svg_put_frame(const struct svg *s, uint32_t node, double start) {
    const char *name = flame_stacks_name(&s->tree, node);
    const struct model_frame *frame = flame_frame(s->tree.tree, node);
    uint32_t depth = flame_node(s->tree.tree, node)->depth;
    double total = svg_total(s, node), own = svg_own(s, node), all = svg_total(s, FLAME_ROOT);
    double scale = all > 0 ? (SVG_WIDTH - 2 * SVG_MARGIN) / all : 0;
    double x = SVG_MARGIN + start * scale, width = total * scale;
    int y = s->top + SVG_ROW * (int)depth, fits = (int)((width - 6) / SVG_CHAR), cols = text_width(name);
    long long from = llround(start), to = llround(start + total);
    strbuf_addf(s->out, "<g data-f=\"%lld %lld %" PRIu32 " %lld\"><title>", from, to - from, depth,
                llround(own));
    xml_put_text(s->out, name, 0);
    strbuf_adds(s->out, "\n");
    svg_put_amount(s, total);
    strbuf_addf(s->out, ", %.2f %%; own ", svg_percent(s, total));
    svg_put_amount(s, own);
    strbuf_addf(s->out, ", %.2f %%", svg_percent(s, own));
    const char *path = frame ? frame->file ? frame->file : frame->module : NULL;
    if (path) {
        strbuf_adds(s->out, "\n");
        xml_put_text(s->out, path, 0);
    }
    strbuf_adds(s->out, "</title><rect ");
    svg_put_frame_color(s, frame);
    strbuf_addf(s->out, " x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\"/><text x=\"%.2f\" y=\"%d\">", x, y,
                width, SVG_ROW - 1, x + 3, y + 13);
    if (fits >= 3)
        xml_put_text(s->out, name, cols <= fits ? 0 : fits - 2);
    strbuf_adds(s->out, "</text></g>\n");
}

/* Callers before their callees, siblings by name. A frame that is too small is omitted with all
 * its callees. */
static void svg_put_frames(struct svg *s) {
    struct flame *tree = s->tree.tree;
    double *start = calloc(s->rows + 1, sizeof *start); /* start of the next frame of each depth */
    uint32_t at = start ? FLAME_ROOT : FLAME_NO_NODE;
    if (!start)
        s->out->failed = true;
    while (at != FLAME_NO_NODE) {
        uint32_t depth = flame_node(tree, at)->depth;
        double total = svg_total(s, at);
        bool drawn = at == FLAME_ROOT || total >= s->least;
        if (drawn) {
            svg_put_frame(s, at, start[depth]);
            if (depth + 1 < s->rows)
                start[depth + 1] = start[depth];
        }
        start[depth] += total;
        at = flame_walk(tree, FLAME_ROOT, at, !drawn);
    }
    free(start);
}

/* ---- what is drawn ---- */

/* Measure the number of frames at a threshold, their depth, and the omitted weight. Callers have
 * smaller numbers. */
static size_t svg_measure(struct svg *s) {
    const struct flame *tree = s->tree.tree;
    size_t drawn = 0;
    s->least = svg_total(s, FLAME_ROOT) * s->threshold_pct / 100;
    s->left_out = 0;
    s->left_out_weight = 0;
    s->rows = 1;
    for (uint32_t i = 0; i < flame_count(tree); i++) {
        const struct flame_node *n = flame_node(tree, i);
        double total = svg_total(s, i);
        if (i == FLAME_ROOT || total >= s->least) {
            drawn++;
            s->rows = n->depth + 1 > s->rows ? n->depth + 1 : s->rows;
            continue;
        }
        s->left_out++;
        if (n->parent == FLAME_ROOT || svg_total(s, n->parent) >= s->least)
            s->left_out_weight += total;
    }
    return drawn;
}

static void svg_put_foot(const struct svg *s) {
    int bottom = s->top + SVG_ROW * (int)s->rows;
    if (!s->picture->inner)
        strbuf_addf(s->out, "<text id=\"details\" x=\"%d\" y=\"%d\"></text>\n", SVG_MARGIN, bottom + 18);
    strbuf_addf(s->out, "<text%s class=\"fact\" x=\"%d\" y=\"%d\">",
                s->picture->inner ? "" : " id=\"left-out\"", SVG_MARGIN, bottom + s->bottom - 16);
    if (svg_total(s, FLAME_ROOT) <= 0)
        strbuf_adds(s->out, "There were no samples of threads with Python.");
    else if (s->left_out)
        strbuf_addf(s->out, "Left out: %zu frame%s of less than %g %% each, %.2f %% together.", s->left_out,
                    s->left_out == 1 ? "" : "s", s->threshold_pct, svg_percent(s, s->left_out_weight));
    else
        strbuf_adds(s->out, "No frame is left out.");
    double frameless = flame_stacks_weight(&s->tree, s->tree.frameless);
    if (frameless > 0) {
        strbuf_adds(s->out, " Threads without Python are not drawn (");
        svg_put_amount(s, frameless);
        strbuf_adds(s->out, s->picture->script ? "): --threads shows them." : ").");
    }
    strbuf_adds(s->out, "</text>\n");
    if (s->picture->script && !s->picture->inner) {
        strbuf_adds(s->out, "<script><![CDATA[\n");
        strbuf_adds(s->out, s->picture->script);
        strbuf_adds(s->out, "]]></script>\n");
    }
    strbuf_adds(s->out, "</svg>\n");
}

int flame_svg_put(const struct flame_svg *picture, struct strbuf *out) {
    struct svg s = {.out = out,
                    .picture = picture,
                    .threshold_pct = picture->threshold_pct,
                    .top = picture->inner ? SVG_TOP_INNER : SVG_TOP,
                    .bottom = picture->inner ? SVG_BOTTOM_INNER : SVG_BOTTOM};
    if (flame_stacks_build(&s.tree, &picture->stacks) != 0) {
        flame_stacks_fini(&s.tree);
        out->failed = true;
        return -1;
    }
    while (svg_measure(&s) > picture->max_frames)
        s.threshold_pct *= 2;
    if (picture->inner)
        svg_put_inner_head(&s);
    else
        svg_put_head(&s);
    strbuf_addf(out, "<g%s class=\"frames\" data-top=\"%d\" data-rows=\"%" PRIu32 "\" data-unit=\"%s\">\n",
                picture->inner ? "" : " id=\"frames\"", s.top, s.rows, s.tree.in_us ? "us" : "samples");
    svg_put_frames(&s);
    strbuf_adds(out, "</g>\n");
    svg_put_foot(&s);
    flame_stacks_fini(&s.tree);
    return out->failed ? -1 : 0;
}
