/* SPDX-License-Identifier: Apache-2.0 */
/* pager: a text to read: broken at its line ends and at the width, scrolled by lines. Pure. */
#ifndef TUI_VIEW_PAGER_H
#define TUI_VIEW_PAGER_H

#include <stddef.h>

#include "tui/view/grid.h"
#include "tui/view/list.h"
#include "tui/view/match.h"

#define PAGER_MAX ((size_t)1024 * 1024) /* longer texts are cut, and the last line says so */

enum pager_mark { PAGER_PLAIN = 1, PAGER_STRONG, PAGER_BAD, PAGER_MUTED };

struct pager {
    char *text; /* owned */
    /* Each line begins with an enum pager_mark, which is not shown but says how it looks. */
    bool marked;
    size_t len;      /* of the part that is kept */
    size_t left_out; /* bytes that are not kept */
    struct list list;
    struct match search;
};

/* Show a copy of `len` bytes. 0, or -1: out of memory. */
int pager_init(struct pager *p, const char *text, size_t len);
void pager_fini(struct pager *p);
void pager_draw(struct pager *p, struct grid *g, struct rect area);

/* Scroll to the next line that matches, in steps of 1 or -1; 0: from the top line on. For an area
 * as last drawn. */
bool pager_find(struct pager *p, int cols, int step);

#endif
