/* SPDX-License-Identifier: Apache-2.0 */
/* web_flame_svg: a flame graph as a picture that every viewer shows; see web_flame.h. Without a script: it is of the job's own server. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/server/http/web_flame_internal.h"
#include "base/hash.h"
#include "base/path.h"
#include "base/text.h"

#define SVG_WIDTH 1200
#define SVG_MARGIN 10
#define SVG_ROW 18
#define SVG_TOP 70 /* of the frames */
#define SVG_CHAR 7.3
#define SVG_LEAST_PX 0.3 /* narrower ones are left out */
#define SVG_NAME_MAX 1024

struct web_svg {
    const struct web_flame *f;
    struct strbuf *out;
    double *total, *start; /* of each node: what it and its callees weigh, and where it begins */
    uint32_t rows;
    size_t hidden;
};

/* Text from the job as XML has it; at most `cols` columns, 0: all. */
static void web_svg_put_text(struct strbuf *out, const char *text, int cols) {
    char clean[SVG_NAME_MAX];
    size_t len = text_sanitize(clean, sizeof clean, text), fit = cols ? text_fit(clean, cols) : len;
    for (size_t i = 0, n; i < fit; i += n) {
        uint32_t cp;
        n = text_utf8_next(clean + i, fit - i, &cp);
        if (cp == '&' || cp == '<' || cp == '>' || cp == '"' || cp == '\'')
            (void)strbuf_addf(out, "&#%u;", (unsigned)cp);
        else if ((cp & 0xFFFE) == 0xFFFE) /* no character of XML */
            (void)strbuf_adds(out, "\xEF\xBF\xBD");
        else
            (void)strbuf_add(out, clean + i, n);
    }
    if (fit < len)
        (void)strbuf_adds(out, "..");
}

/* Weights of all, callees before their callers; then where each begins, side by side below its caller. */
static void web_svg_lay_out(struct web_svg *s) {
    const struct web_flame_node *nodes = s->f->nodes;
    for (uint32_t n = s->f->n_nodes; n-- > 0;) {
        s->total[n] += nodes[n].us;
        if (n != WEB_FLAME_ROOT)
            s->total[nodes[n].parent] += s->total[n];
    }
    for (uint32_t n = 0; n < s->f->n_nodes; n++) {
        double at = s->start[n];
        for (uint32_t c = nodes[n].child; c; c = nodes[c].sibling) {
            s->start[c] = at;
            at += s->total[c];
        }
    }
}

static double web_svg_scale(const struct web_svg *s) {
    return s->total[WEB_FLAME_ROOT] > 0 ? (SVG_WIDTH - 2 * SVG_MARGIN) / s->total[WEB_FLAME_ROOT] : 0;
}

static void web_svg_measure(struct web_svg *s) {
    double scale = web_svg_scale(s);
    for (uint32_t n = 1; n < s->f->n_nodes; n++) {
        bool drawn = s->total[n] * scale >= SVG_LEAST_PX;
        s->hidden += !drawn;
        if (drawn && s->f->nodes[n].depth > s->rows)
            s->rows = s->f->nodes[n].depth;
    }
}

static void web_svg_put_head(const struct web_svg *s, const struct model_target *t, double elapsed_s) {
    const struct web_flame *f = s->f;
    (void)strbuf_addf(s->out,
                      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
                      "width=\"%d\" height=\"%u\" font-size=\"12\" font-family=\"monospace\">\n<title>",
                      SVG_WIDTH, SVG_TOP + SVG_ROW * (s->rows + 1) + SVG_MARGIN);
    web_svg_put_text(s->out, t->cmdline && *t->cmdline ? path_short_command(t->cmdline) : "?", 120);
    (void)strbuf_addf(
        s->out, "</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n<text x=\"%d\" y=\"22\">",
        SVG_MARGIN);
    web_svg_put_text(s->out, t->cmdline && *t->cmdline ? path_short_command(t->cmdline) : "?", 120);
    (void)strbuf_addf(s->out,
                      "</text>\n<text x=\"%d\" y=\"40\">process %" PRId64 ", %.1f s, %" PRIu64
                      " samples of %s; widths are time, waiting too</text>\n"
                      "<text x=\"%d\" y=\"58\">left out: %" PRIu64 " samples without Python, %" PRIu64
                      " that moved while they were read, %" PRIu64 " lost, %" PRIu64
                      " for want of room; %zu functions too narrow to be seen</text>\n",
                      SVG_MARGIN, t->pid, elapsed_s, f->samples, f->tid ? "one thread" : "all threads",
                      SVG_MARGIN, f->frameless, f->torn, f->dropped, f->left_out, s->hidden);
}

static void web_svg_put_frame(const struct web_svg *s, uint32_t n) {
    struct strbuf name;
    double scale = web_svg_scale(s), width = s->total[n] * scale;
    const struct web_flame_node *node = &s->f->nodes[n];
    unsigned row = node->depth, y = SVG_TOP + SVG_ROW * row;
    if (n != WEB_FLAME_ROOT && width < SVG_LEAST_PX)
        return;
    strbuf_init(&name, SVG_NAME_MAX);
    if (n == WEB_FLAME_ROOT)
        (void)strbuf_adds(&name, "all");
    else
        web_flame_name(s->f, n, &name);
    uint64_t h = hash_bytes(strbuf_str(&name), name.len);
    int room = (int)((width - 6) / SVG_CHAR), cols = text_width(strbuf_str(&name));
    (void)strbuf_adds(s->out, "<g><title>");
    web_svg_put_text(s->out, strbuf_str(&name), 0);
    (void)strbuf_addf(
        s->out,
        "\n%.3f s, %.2f %%; own %.3f s</title><rect x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%d\" "
        "fill=\"hsl(%u,70%%,%u%%)\"/>",
        s->total[n] / 1e6, s->total[WEB_FLAME_ROOT] > 0 ? 100 * s->total[n] / s->total[WEB_FLAME_ROOT] : 0,
        node->us / 1e6, SVG_MARGIN + s->start[n] * scale, y, width, SVG_ROW - 1, 15 + (unsigned)(h % 40),
        70 + (unsigned)(h / 64 % 12));
    if (room >= 3) {
        (void)strbuf_addf(s->out, "<text x=\"%.2f\" y=\"%u\">", SVG_MARGIN + s->start[n] * scale + 3, y + 13);
        web_svg_put_text(s->out, strbuf_str(&name), cols <= room ? 0 : room - 2);
        (void)strbuf_adds(s->out, "</text>");
    }
    (void)strbuf_adds(s->out, "</g>\n");
    strbuf_fini(&name);
}

void web_flame_put_svg(const struct web_flame *f, const struct model_target *t, double elapsed_s,
                       struct strbuf *out) {
    struct web_svg s = {.f = f, .out = out};
    s.total = calloc(f->n_nodes, sizeof *s.total);
    s.start = calloc(f->n_nodes, sizeof *s.start);
    if (s.total && s.start) {
        web_svg_lay_out(&s);
        web_svg_measure(&s);
        web_svg_put_head(&s, t, elapsed_s);
        for (uint32_t n = 0; n < f->n_nodes; n++)
            web_svg_put_frame(&s, n);
        (void)strbuf_adds(out, "</svg>\n");
    } else
        out->failed = true;
    free(s.total);
    free(s.start);
}
