/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input: what the user does, as the rest of the program sees it: keys, the mouse, pasted text; and
 * what the terminal answers.
 *
 * A key is a number: a Unicode code point, one of INPUT_..., or either of them with INPUT_ALT. The
 * terminal's own codes stay in term/. Keys have names ("ctrl-l", "F3", "Space"), which the action
 * table, the help and the tests use. Pure functions.
 */
#ifndef TUI_KEYS_INPUT_H
#define TUI_KEYS_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum input_key {
    INPUT_NONE = 0,
    INPUT_SPECIAL = 0x200000, /* above every code point */
    INPUT_UP,
    INPUT_DOWN,
    INPUT_LEFT,
    INPUT_RIGHT,
    INPUT_PAGE_UP,
    INPUT_PAGE_DOWN,
    INPUT_HOME,
    INPUT_END,
    INPUT_INSERT,
    INPUT_DELETE,
    INPUT_ENTER,
    INPUT_ESC,
    INPUT_TAB,
    INPUT_BACKTAB,
    INPUT_BACKSPACE,
    INPUT_SHIFT_UP,
    INPUT_SHIFT_DOWN,
    INPUT_SHIFT_LEFT,
    INPUT_SHIFT_RIGHT,
    INPUT_F0 = 0x200100,   /* INPUT_F0 + n is function key n; 13..24 are the shifted ones */
    INPUT_CTRL = 0x210000, /* INPUT_CTRL + 'a' */
    INPUT_ALT = 0x400000,  /* bit: with Alt */
};

/* INPUT_EVENT_BACKGROUND: the terminal's answer to term_ask_background. */
enum input_kind {
    INPUT_EVENT_NONE = 0,
    INPUT_EVENT_KEY,
    INPUT_EVENT_MOUSE,
    INPUT_EVENT_PASTE,
    INPUT_EVENT_BACKGROUND
};

/* INPUT_MENU: the right button; a screen selects the row there, as with a click, and does nothing
 * else. */
enum input_button { INPUT_CLICK = 1, INPUT_WHEEL_UP, INPUT_WHEEL_DOWN, INPUT_MENU };

struct input_event {
    enum input_kind kind;
    uint32_t key;             /* INPUT_EVENT_KEY */
    enum input_button button; /* INPUT_EVENT_MOUSE */
    int row, col;             /* INPUT_EVENT_MOUSE, from 0 */
    const char *text;         /* INPUT_EVENT_PASTE, or the colour: borrowed for the call */
    bool is_cut;              /* INPUT_EVENT_PASTE: the end is missing, it was too long */
};

/* Name of a key: "q", "Space", "ctrl-l", "alt-x", "F3", "S-F3". */
void input_key_name(uint32_t key, char *buf, size_t cap);

/* The key with that name, or INPUT_NONE. */
uint32_t input_key_parse(const char *name);

#endif
