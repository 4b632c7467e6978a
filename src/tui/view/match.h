/* SPDX-License-Identifier: Apache-2.0 */
/*
 * match: the text of a search or a filter.
 *
 * Plain text, alternatives separated by |; a leading ! negates (filters). Without a capital letter
 * case is ignored. Pure.
 */
#ifndef TUI_VIEW_MATCH_H
#define TUI_VIEW_MATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "tui/view/grid.h"

#define MATCH_MAX_TEXT 256
#define MATCH_MAX_ALTERNATIVES 16

struct match {
    char text[MATCH_MAX_TEXT]; /* as typed */
    bool active;               /* there is a text */
    bool negated;
    bool exact_case;
    size_t n;
    struct {
        char text[MATCH_MAX_TEXT];
        size_t len;
    } alternatives[MATCH_MAX_ALTERNATIVES];
};

/* Read what was typed. An empty text matches nothing and is not active. `allow_not`: a leading !
 * negates. */
void match_set(struct match *m, const char *text, bool allow_not);
void match_clear(struct match *m);

/* Is one of the alternatives in `text` (may be NULL)? Ignores negation. */
bool match_text(const struct match *m, const char *text);

/* First match in `text`: its offset and length in bytes; false: none. */
bool match_find(const struct match *m, const char *text, size_t *at, size_t *len);

/* Highlight all matches in one row of `area`. */
void match_highlight(const struct match *m, struct grid *g, struct rect area, int row);

#endif
