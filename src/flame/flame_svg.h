/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame_svg: a flame graph as a picture that every viewer shows: the root at the top, as on the screen.
 *
 * With a style and a script it can be zoomed and searched in a browser; without, colours are attributes, for places where
 * neither is allowed. Names come from the job: they are cleaned and escaped. Frames below a threshold are left out, and the
 * picture says how much that is. Colours are those of a function wherever it stands, in every file.
 */
#ifndef FLAME_FLAME_SVG_H
#define FLAME_FLAME_SVG_H

#include <stddef.h>

#include "base/model.h"
#include "base/strbuf.h"
#include "flame/flame_stacks.h"

struct flame_svg {
    struct flame_stacks stacks;
    const struct model_target *target;
    const char *choice;         /* which samples these are, in words; NULL: all threads, waiting too */
    const char *style, *script; /* without "]]>"; NULL: neither */
    double elapsed_s;           /* of the sampling; 0: one look */
    const char *began;          /* when, as text; NULL unknown */
    double threshold_pct;       /* frames with less of all there is are left out, */
    size_t max_frames;          /* and more, so that no more than these are drawn */
};

/* 0, or -1 without memory (`out` has failed then). */
int flame_svg_put(const struct flame_svg *picture, struct strbuf *out);

#endif
