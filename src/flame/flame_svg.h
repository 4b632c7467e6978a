/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame_svg: a flame graph as an SVG picture for every viewer: the root at the top, as on the
 * screen.
 *
 * With a style and a script a browser can zoom and search it; without them, colours are
 * attributes, for places that allow neither. Names come from the job: they are sanitised and
 * escaped. Frames below a threshold are omitted, and the picture shows their weight. A function
 * has the same colour everywhere, in every file.
 */
#ifndef FLAME_FLAME_SVG_H
#define FLAME_FLAME_SVG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/model.h"
#include "base/strbuf.h"
#include "flame/flame_stacks.h"

struct flame_svg {
    struct flame_stacks stacks;
    const struct model_target *target;
    /* description of the samples; NULL: all threads, also waiting ones */
    const char *choice;
    const char *style, *script; /* without "]]>"; NULL: neither */
    /* part of a page that has the style already: without a declaration, a title, ids and script */
    bool inner;
    double elapsed_s;     /* duration of the sampling; 0: one snapshot */
    const char *began;    /* start time as text; NULL unknown */
    double threshold_pct; /* frames with a smaller share of the whole are omitted */
    size_t max_frames;    /* the most to draw: the threshold rises until they are enough */
};

/* 0, or -1 without memory (then `out` has failed). */
int flame_svg_put(const struct flame_svg *picture, struct strbuf *out);

#endif
