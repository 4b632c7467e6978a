/* SPDX-License-Identifier: Apache-2.0 */
/*
 * match: what is searched or filtered for.
 *
 * Plain text, alternatives separated by |, a leading ! turns the answer round (filters). Without a capital letter case
 * does not matter. Pure.
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
    bool active;               /* something was typed */
    bool negated;
    bool exact_case;
    size_t n;
    struct {
        char text[MATCH_MAX_TEXT];
        size_t len;
    } alternatives[MATCH_MAX_ALTERNATIVES];
};

/* Read what was typed. Empty text matches nothing and is not active. `allow_not`: a leading ! negates. */
void match_set(struct match *m, const char *text, bool allow_not);
void match_clear(struct match *m);

/* Is one of the alternatives in `text` (may be NULL)? Negation is not looked at. */
bool match_text(const struct match *m, const char *text);

/* First place in `text`: its offset and length in bytes; false when there is none. */
bool match_find(const struct match *m, const char *text, size_t *at, size_t *len);

/* Give the role of matches to every place in one row of `area` where an alternative stands. */
void match_highlight(const struct match *m, struct grid *g, struct rect area, int row);

#endif
