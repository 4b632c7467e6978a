/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tags: rows that the user has tagged, by what identifies them (a thread's id, a function's key),
 * so that they stay tagged when rows move, disappear and return. Bounded. Pure.
 */
#ifndef TUI_VIEW_TAGS_H
#define TUI_VIEW_TAGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "tui/view/grid.h"

#define TAGS_MAX ((size_t)1 << 16)
#define TAGS_COLS 2 /* that rows give up for the sign, while there are tags */

struct tags {
    uint64_t *keys; /* ascending */
    size_t n, cap;
    bool only;        /* only tagged rows are shown */
    unsigned changes; /* counts changes of the keys, for who derives something from them */
};

void tags_fini(struct tags *t); /* works on a zeroed one */

bool tags_has(const struct tags *t, uint64_t key);

/* Is a row shown? */
bool tags_shows(const struct tags *t, uint64_t key);

/* Toggle the tag. False: out of memory, or too many. */
bool tags_toggle(struct tags *t, uint64_t key);

/* Remove all tags; all rows are shown. */
void tags_clear(struct tags *t);

/* "   2 tagged", "   ONLY 2 tagged", for a status line; nothing while nothing is tagged. */
void tags_put_text(const struct tags *t, struct strbuf *out);

/* Reserve the columns of the sign at the left of an area; nothing while nothing is tagged. */
void tags_take_rect(const struct tags *t, struct rect *area);

/* Draw the sign of a tagged row, left of the area that was reduced, in its row `y`. */
void tags_draw(const struct tags *t, uint64_t key, struct grid *g, struct rect area, int y);

#endif
