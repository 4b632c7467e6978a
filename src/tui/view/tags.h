/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tags: rows that the user has picked out, by what tells each from all others (a thread's id, a function's number), so that they
 * stay tagged when rows move, go and come back. Bounded. Pure.
 */
#ifndef TUI_VIEW_TAGS_H
#define TUI_VIEW_TAGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "tui/view/grid.h"

#define TAGS_MAX ((size_t)1 << 16)
#define TAGS_COLS 2 /* that rows give away for the sign, while there are tags */

struct tags {
    uint64_t *keys; /* rising */
    size_t n, cap;
    bool only;        /* other rows are not shown */
    unsigned changes; /* of the keys; for those who keep what they made of them */
};

void tags_fini(struct tags *t); /* a zeroed one too */

bool tags_has(const struct tags *t, uint64_t key);

/* Is a row to be shown? */
bool tags_shows(const struct tags *t, uint64_t key);

/* Tag it, or take the tag off. False without memory, or when there are too many. */
bool tags_toggle(struct tags *t, uint64_t key);

/* None is tagged, all rows are shown. */
void tags_clear(struct tags *t);

/* "   2 tagged", "   only 2 tagged", for a status line; nothing while nothing is tagged. */
void tags_put_text(const struct tags *t, struct strbuf *out);

/* Take the columns of the sign from the left of an area; nothing while nothing is tagged. */
void tags_take_rect(const struct tags *t, struct rect *area);

/* The sign of a tagged row, left of the area that was cut, in its row `y`. */
void tags_draw(const struct tags *t, uint64_t key, struct grid *g, struct rect area, int y);

#endif
