/* SPDX-License-Identifier: Apache-2.0 */
/* config_line: the lines of a settings file, one after the other. Takes any bytes; bounded;
 * pure. */
#ifndef TUI_CORE_CONFIG_LINE_H
#define TUI_CORE_CONFIG_LINE_H

#include <stdbool.h>
#include <stddef.h>

#define CONFIG_LINE_MAX 512

enum config_line_kind {
    CONFIG_LINE_BLANK,   /* blank, or a comment */
    CONFIG_LINE_SECTION, /* "[keys]" */
    CONFIG_LINE_PAIR,    /* "key = value" */
    CONFIG_LINE_BAD,     /* none of these: key says what is wrong */
};

enum config_section { CONFIG_SECTION_SETTINGS, CONFIG_SECTION_KEYS, CONFIG_SECTION_OTHER };

struct config_line {
    enum config_line_kind kind;
    enum config_section section; /* the section it is in */
    int number;                  /* from 1 */
    size_t begin, end;           /* bytes of the text, including the newline */
    char key[CONFIG_LINE_MAX], value[CONFIG_LINE_MAX];
};

struct config_cursor {
    const char *text;
    size_t len, at;
    int number;
    enum config_section section;
};

/* The next line; false at the end. */
bool config_line_next(struct config_cursor *c, struct config_line *out);

#endif
