/* SPDX-License-Identifier: Apache-2.0 */
/* term_key: translates ncurses' codes into the project's events. Internal to term/. */
#ifndef TUI_TERM_TERM_KEY_H
#define TUI_TERM_TERM_KEY_H

#include <stdbool.h>
#include <stddef.h>

#include "tui/keys/input.h"

#define TERM_KEY_MAX_PASTE ((size_t)64 * 1024)

/* What remains between two calls: a key that was read too far, an incomplete paste. */
struct term_keys {
    bool has_next;
    int next_rc;
    unsigned next;
    struct input_event mouse[8]; /* to be delivered from the last to the first */
    int n_mouse;
    bool pasting;
    bool paste_is_cut; /* there was more than fits */
    size_t paste_len;
    char paste[TERM_KEY_MAX_PASTE];
    bool answering; /* the terminal's answer about its background has begun */
    size_t answer_len;
    char answer[32];
};

/* Make ncurses recognise the marks around pasted text and the terminal's answer. Call it after
 * newterm. */
void term_key_init(void);

/* Next event on stdscr; false: none now. */
bool term_key_read(struct term_keys *k, struct input_event *e);

#endif
