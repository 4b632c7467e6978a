/* SPDX-License-Identifier: Apache-2.0 */
/* config_line: see config_line.h. */
#include "tui/core/config_line.h"

#include <stdio.h>
#include <string.h>

static char *config_line_trim(char *s) {
    s += strspn(s, " \t\r");
    size_t len = strlen(s);
    while (len && strchr(" \t\r", s[len - 1]))
        s[--len] = '\0';
    return s;
}

static void config_line_bad(struct config_line *out, const char *what) {
    out->kind = CONFIG_LINE_BAD;
    snprintf(out->key, sizeof out->key, "%s", what);
}

static void config_line_section(struct config_cursor *c, struct config_line *out, const char *name) {
    bool is_settings = strcmp(name, "[settings]") == 0, is_keys = strcmp(name, "[keys]") == 0;
    c->section = is_settings ? CONFIG_SECTION_SETTINGS : is_keys ? CONFIG_SECTION_KEYS : CONFIG_SECTION_OTHER;
    out->section = c->section;
    out->kind = CONFIG_LINE_SECTION;
    if (c->section == CONFIG_SECTION_OTHER) {
        out->kind = CONFIG_LINE_BAD;
        snprintf(out->key, sizeof out->key, "there is no section %.80s: [settings] and [keys] are", name);
    }
}

bool config_line_next(struct config_cursor *c, struct config_line *out) {
    char copy[CONFIG_LINE_MAX];
    if (c->at >= c->len)
        return false;
    const char *begin = c->text + c->at, *newline = memchr(begin, '\n', c->len - c->at);
    size_t n = newline ? (size_t)(newline - begin) : c->len - c->at;
    *out = (struct config_line){.number = ++c->number, .section = c->section, .begin = c->at};
    c->at += n + (newline ? 1 : 0);
    out->end = c->at;
    if (n >= sizeof copy || memchr(begin, '\0', n)) {
        config_line_bad(out, "not a line of text, or too long");
        return true;
    }
    memcpy(copy, begin, n);
    copy[n] = '\0';
    char *line = config_line_trim(copy);
    if (!*line || *line == '#')
        return true;
    char *equals = strchr(line, '=');
    if (*line == '[') {
        config_line_section(c, out, line);
    } else if (!equals) {
        config_line_bad(out, "no '=': lines are 'setting = value'");
    } else {
        *equals = '\0';
        out->kind = CONFIG_LINE_PAIR;
        snprintf(out->key, sizeof out->key, "%s", config_line_trim(line));
        snprintf(out->value, sizeof out->value, "%s", config_line_trim(equals + 1));
    }
    return true;
}
