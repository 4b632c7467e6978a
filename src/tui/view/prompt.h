/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prompt: one line that is typed. Every printable key types; the usual line-editing keys move and
 * delete. Pure.
 */
#ifndef TUI_VIEW_PROMPT_H
#define TUI_VIEW_PROMPT_H

#include <stdbool.h>
#include <stdint.h>

#include "tui/view/grid.h"

#define PROMPT_MAX 1024
#define PROMPT_LABEL_MAX 64

enum prompt_result { PROMPT_UNCHANGED, PROMPT_CHANGED, PROMPT_ACCEPTED, PROMPT_CANCELLED };

struct prompt {
    char label[PROMPT_LABEL_MAX];
    char text[PROMPT_MAX]; /* UTF-8 */
    size_t cursor;         /* byte */
};

/* Start with a text to edit (may be ""). `label` is copied, and cut if it is long. */
void prompt_start(struct prompt *p, const char *label, const char *text);

enum prompt_result prompt_key(struct prompt *p, uint32_t key);

/* Insert pasted text; line ends and controls become blanks. */
void prompt_paste(struct prompt *p, const char *text);

/* Draw in one row; `cursor_col` gets the column of the cursor. */
void prompt_draw(const struct prompt *p, struct grid *g, struct rect area, bool failed, int *cursor_col);

#endif
