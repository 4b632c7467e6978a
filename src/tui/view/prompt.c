/* SPDX-License-Identifier: Apache-2.0 */
/* prompt: see prompt.h. */
#include "tui/view/prompt.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "tui/keys/input.h"

void prompt_start(struct prompt *p, const char *label, const char *text) {
    snprintf(p->label, sizeof p->label, "%s", label);
    snprintf(p->text, sizeof p->text, "%s", text);
    p->cursor = strlen(p->text);
}

static void prompt_insert(struct prompt *p, const char *s, size_t n) {
    size_t len = strlen(p->text);
    if (len + n + 1 > sizeof p->text)
        return;
    memmove(p->text + p->cursor + n, p->text + p->cursor, len - p->cursor + 1);
    memcpy(p->text + p->cursor, s, n);
    p->cursor += n;
}

static size_t prompt_previous(const struct prompt *p) {
    size_t at = p->cursor;
    while (at > 0 && ((unsigned char)p->text[--at] & 0xc0) == 0x80)
        ;
    return at;
}

static size_t prompt_next(const struct prompt *p) {
    size_t len = strlen(p->text);
    uint32_t cp;
    return p->cursor < len ? p->cursor + text_utf8_next(p->text + p->cursor, len - p->cursor, &cp) : len;
}

static void prompt_erase(struct prompt *p, size_t from, size_t to) {
    memmove(p->text + from, p->text + to, strlen(p->text + to) + 1);
    p->cursor = from;
}

static size_t prompt_word_start(const struct prompt *p) {
    size_t at = p->cursor;
    while (at > 0 && p->text[at - 1] == ' ')
        at--;
    while (at > 0 && p->text[at - 1] != ' ')
        at--;
    return at;
}

enum prompt_result prompt_key(struct prompt *p, uint32_t key) {
    char utf8[4];
    if (key < INPUT_SPECIAL) {
        prompt_insert(p, utf8, text_utf8_put(key, utf8));
        return PROMPT_CHANGED;
    }
    switch (key) {
    case INPUT_ENTER:
        return PROMPT_ACCEPTED;
    case INPUT_ESC:
    case INPUT_CTRL + 'c':
        return PROMPT_CANCELLED;
    case INPUT_BACKSPACE:
        if (!*p->text)
            return PROMPT_CANCELLED;
        prompt_erase(p, prompt_previous(p), p->cursor);
        return PROMPT_CHANGED;
    case INPUT_DELETE:
        prompt_erase(p, p->cursor, prompt_next(p));
        return PROMPT_CHANGED;
    case INPUT_CTRL + 'u':
        prompt_erase(p, 0, p->cursor);
        return PROMPT_CHANGED;
    case INPUT_CTRL + 'k':
        p->text[p->cursor] = '\0';
        return PROMPT_CHANGED;
    case INPUT_CTRL + 'w':
        prompt_erase(p, prompt_word_start(p), p->cursor);
        return PROMPT_CHANGED;
    case INPUT_LEFT:
    case INPUT_CTRL + 'b':
        p->cursor = prompt_previous(p);
        return PROMPT_UNCHANGED;
    case INPUT_RIGHT:
    case INPUT_CTRL + 'f':
        p->cursor = prompt_next(p);
        return PROMPT_UNCHANGED;
    case INPUT_HOME:
    case INPUT_CTRL + 'a':
        p->cursor = 0;
        return PROMPT_UNCHANGED;
    case INPUT_END:
    case INPUT_CTRL + 'e':
        p->cursor = strlen(p->text);
        return PROMPT_UNCHANGED;
    default:
        return PROMPT_UNCHANGED;
    }
}

void prompt_paste(struct prompt *p, const char *text) {
    char clean[PROMPT_MAX];
    text_sanitize(clean, sizeof clean, text);
    prompt_insert(p, clean, strlen(clean));
}

void prompt_draw(const struct prompt *p, struct grid *g, struct rect area, bool failed, int *cursor_col) {
    grid_fill(g, area, ROLE_PROMPT);
    int at = grid_text(g, area, 0, 0, ROLE_LABEL, p->label);
    char before[PROMPT_MAX];
    memcpy(before, p->text, p->cursor);
    before[p->cursor] = '\0';
    int width = text_width(before), room = area.cols - at - 1;
    int skip = width > room ? width - room : 0;
    grid_text_skip(g, area, 0, at, area.cols - at, skip, failed ? ROLE_PROMPT_FAILED : ROLE_PROMPT, p->text);
    *cursor_col = area.col + at + width - skip;
}
