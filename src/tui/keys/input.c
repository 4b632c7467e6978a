/* SPDX-License-Identifier: Apache-2.0 */
/* input: see input.h. */
#include "tui/keys/input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static const struct {
    uint32_t key;
    const char *name;
} input_names[] = {
    {INPUT_UP, "Up"},
    {INPUT_DOWN, "Down"},
    {INPUT_LEFT, "Left"},
    {INPUT_RIGHT, "Right"},
    {INPUT_PAGE_UP, "PgUp"},
    {INPUT_PAGE_DOWN, "PgDn"},
    {INPUT_HOME, "Home"},
    {INPUT_END, "End"},
    {INPUT_INSERT, "Ins"},
    {INPUT_DELETE, "Del"},
    {INPUT_ENTER, "Enter"},
    {INPUT_ESC, "Esc"},
    {INPUT_TAB, "Tab"},
    {INPUT_BACKTAB, "S-Tab"},
    {INPUT_BACKSPACE, "Backspace"},
    {INPUT_SHIFT_UP, "S-Up"},
    {INPUT_SHIFT_DOWN, "S-Down"},
    {INPUT_SHIFT_LEFT, "S-Left"},
    {INPUT_SHIFT_RIGHT, "S-Right"},
    {' ', "Space"},
};

void input_key_name(uint32_t key, char *buf, size_t cap) {
    if (key & INPUT_ALT) {
        snprintf(buf, cap, "alt-");
        if (cap > 4)
            input_key_name(key & ~(uint32_t)INPUT_ALT, buf + 4, cap - 4);
        return;
    }
    for (size_t i = 0; i < sizeof input_names / sizeof input_names[0]; i++)
        if (input_names[i].key == key) {
            snprintf(buf, cap, "%s", input_names[i].name);
            return;
        }
    if (key > INPUT_CTRL && key < INPUT_CTRL + 0x80)
        snprintf(buf, cap, "ctrl-%c", (int)(key - INPUT_CTRL));
    else if (key > INPUT_F0 + 12 && key <= INPUT_F0 + 24)
        snprintf(buf, cap, "S-F%u", (unsigned)(key - INPUT_F0 - 12));
    else if (key > INPUT_F0 && key <= INPUT_F0 + 12)
        snprintf(buf, cap, "F%u", (unsigned)(key - INPUT_F0));
    else if (key < INPUT_SPECIAL) {
        char utf8[4];
        size_t n = text_utf8_put(key, utf8);
        snprintf(buf, cap, "%.*s", (int)n, utf8);
    } else
        snprintf(buf, cap, "?");
}

/* "F3", or with `shift` the F3 of "S-F3". */
static uint32_t input_parse_function(const char *name, uint32_t shift) {
    if (name[0] != 'F' || name[1] < '1' || name[1] > '9')
        return INPUT_NONE;
    char *end;
    unsigned long n = strtoul(name + 1, &end, 10);
    return *end || n > 12 ? INPUT_NONE : INPUT_F0 + shift + (uint32_t)n;
}

uint32_t input_key_parse(const char *name) {
    if (strncmp(name, "alt-", 4) == 0) {
        uint32_t key = input_key_parse(name + 4);
        return key ? key | INPUT_ALT : INPUT_NONE;
    }
    if (strncmp(name, "ctrl-", 5) == 0)
        return name[5] > ' ' && name[5] < 0x7f && !name[6] ? INPUT_CTRL + (uint32_t)name[5] : INPUT_NONE;
    for (size_t i = 0; i < sizeof input_names / sizeof input_names[0]; i++)
        if (strcmp(input_names[i].name, name) == 0)
            return input_names[i].key;
    uint32_t function =
        strncmp(name, "S-", 2) == 0 ? input_parse_function(name + 2, 12) : input_parse_function(name, 0);
    if (function)
        return function;
    size_t len = strlen(name);
    uint32_t cp;
    return len && text_utf8_next(name, len, &cp) == len && cp > ' ' ? cp : (uint32_t)INPUT_NONE;
}
