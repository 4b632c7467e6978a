/* SPDX-License-Identifier: Apache-2.0 */
/* editor: see editor.h. Drawing is in editor_draw.c. */
#include "tui/view/editor.h"

#include <stdlib.h>
#include <string.h>
#include <wctype.h>

#include "base/text.h"
#include "tui/keys/input.h"

int editor_init(struct editor *e) {
    memset(e, 0, sizeof *e);
    e->error_at = e->want_col = -1;
    e->text = calloc(1, 1);
    return e->text ? 0 : -1;
}

static void editor_forget_undo(struct editor *e, int from) {
    for (int i = from; i < e->n_past; i++)
        free(e->past[i].text);
    e->n_past = from;
}

void editor_fini(struct editor *e) {
    editor_forget_undo(e, 0);
    free(e->text);
    free(e->killed);
    memset(e, 0, sizeof *e);
}

/* ---- undo ---- */

/* Save the text as it is now. */
static void editor_remember(struct editor *e) {
    editor_forget_undo(e, e->at_past);
    char *copy = strdup(e->text);
    if (!copy)
        return;
    if (e->n_past == EDITOR_UNDO) {
        free(e->past[0].text);
        memmove(e->past, e->past + 1, sizeof e->past[0] * (EDITOR_UNDO - 1));
        e->n_past--;
    }
    e->past[e->n_past++] = (struct editor_undo){copy, e->cursor};
    e->at_past = e->n_past;
}

/* Before a change: a series of like changes is undone together. */
static void editor_begin_change(struct editor *e, enum editor_change what) {
    if (what == EDITOR_OTHER || e->last != what || e->at_past != e->n_past)
        editor_remember(e);
    e->last = what;
    e->error_at = e->want_col = -1;
}

static void editor_go_back_to(struct editor *e, int at) {
    char *copy = strdup(e->past[at].text);
    if (!copy)
        return;
    free(e->text);
    e->text = copy;
    e->len = strlen(copy);
    e->cursor = e->past[at].cursor <= e->len ? e->past[at].cursor : e->len;
    e->at_past = at;
    e->last = EDITOR_NOTHING;
    e->error_at = e->want_col = -1;
}

static void editor_undo(struct editor *e) {
    if (e->at_past == 0)
        return;
    int at = e->at_past - 1;
    if (e->at_past == e->n_past) { /* the current text, for redo */
        editor_remember(e);
        at = e->n_past - 2;
    }
    if (at >= 0)
        editor_go_back_to(e, at);
}

static void editor_redo(struct editor *e) {
    if (e->at_past + 1 < e->n_past)
        editor_go_back_to(e, e->at_past + 1);
}

/* ---- changes ---- */

/* Replace [from, to) by `n` bytes; false: too long. */
static bool editor_splice(struct editor *e, size_t from, size_t to, const char *s, size_t n) {
    size_t len = e->len - (to - from) + n;
    if (len > EDITOR_MAX)
        return false;
    char *text = malloc(len + 1);
    if (!text)
        return false;
    memcpy(text, e->text, from);
    memcpy(text + from, s, n);
    memcpy(text + from + n, e->text + to, e->len - to);
    text[len] = '\0';
    free(e->text);
    e->text = text;
    e->len = len;
    e->cursor = from + n;
    return true;
}

/* A text from elsewhere, made fit for editing; the caller frees it. NULL: too long, or out of
 * memory. */
static char *editor_clean(const char *text, size_t *n) {
    size_t len = strlen(text);
    char *clean = len <= EDITOR_MAX ? malloc(3 * len + 1) : NULL;
    *n = 0;
    for (size_t i = 0; clean && i < len;) {
        uint32_t cp;
        i += text_utf8_next(text + i, len - i, &cp);
        bool is_control = cp < 0x20 || (cp >= 0x7f && cp < 0xa0);
        if (cp == '\r')
            continue;
        *n += text_utf8_put(is_control && cp != '\n' && cp != '\t' ? ' ' : cp, clean + *n);
    }
    return clean;
}

void editor_set(struct editor *e, const char *text) {
    size_t n;
    char *clean = strcmp(e->text, text) != 0 ? editor_clean(text, &n) : NULL;
    if (!clean)
        return;
    editor_begin_change(e, EDITOR_OTHER);
    editor_splice(e, 0, e->len, clean, n);
    free(clean);
}

void editor_insert(struct editor *e, const char *text, size_t len) {
    editor_begin_change(e, EDITOR_TYPED);
    editor_splice(e, e->cursor, e->cursor, text, len);
    if (len && (text[len - 1] == ' ' || text[len - 1] == '\n'))
        e->last = EDITOR_OTHER; /* undo removes a word */
}

bool editor_paste(struct editor *e, const char *text) {
    size_t n;
    char *clean = editor_clean(text, &n);
    if (!clean)
        return false;
    editor_begin_change(e, EDITOR_OTHER);
    bool fits = editor_splice(e, e->cursor, e->cursor, clean, n);
    free(clean);
    return fits;
}

void editor_replace(struct editor *e, size_t from, size_t to, const char *text) {
    if (from > to || to > e->len)
        return;
    editor_begin_change(e, EDITOR_OTHER);
    editor_splice(e, from, to, text, strlen(text));
}

bool editor_key(struct editor *e, uint32_t key) {
    char utf8[4];
    if (key >= INPUT_SPECIAL || key < ' ')
        return false;
    editor_insert(e, utf8, text_utf8_put(key, utf8));
    return true;
}

void editor_mark_error(struct editor *e, long at) { e->error_at = at > (long)e->len ? (long)e->len : at; }

/* Remove [from, to) and keep it for yanking; a series of kills is joined. */
static void editor_kill(struct editor *e, size_t from, size_t to, bool before) {
    if (from >= to)
        return;
    bool more = e->last == EDITOR_KILLED && e->killed;
    size_t old = more ? strlen(e->killed) : 0, n = to - from;
    char *killed = malloc(old + n + 1);
    if (!killed)
        return;
    if (old)
        memcpy(killed + (before ? n : 0), e->killed, old);
    memcpy(killed + (before ? 0 : old), e->text + from, n);
    killed[old + n] = '\0';
    free(e->killed);
    e->killed = killed;
    editor_begin_change(e, EDITOR_KILLED);
    editor_splice(e, from, to, "", 0);
}

static void editor_erase(struct editor *e, size_t from, size_t to) {
    if (from >= to)
        return;
    editor_begin_change(e, EDITOR_ERASED);
    editor_splice(e, from, to, "", 0);
}

/* ---- places ---- */

/* A character with its combining marks is one step. */
static size_t editor_after(const struct editor *e, size_t at) {
    uint32_t cp;
    if (at >= e->len)
        return e->len;
    at += text_utf8_next(e->text + at, e->len - at, &cp);
    while (at < e->len) {
        size_t n = text_utf8_next(e->text + at, e->len - at, &cp);
        if (cp < 0x80 || text_cp_width(cp) != 0)
            break;
        at += n;
    }
    return at;
}

static size_t editor_before(const struct editor *e, size_t at) {
    uint32_t cp = 0;
    while (at > 0) {
        do
            at--;
        while (at > 0 && ((unsigned char)e->text[at] & 0xc0) == 0x80);
        text_utf8_next(e->text + at, e->len - at, &cp);
        if (cp < 0x80 || text_cp_width(cp) != 0)
            break;
    }
    return at;
}

static bool editor_is_word(const struct editor *e, size_t at) {
    uint32_t cp = 0;
    if (at >= e->len)
        return false;
    text_utf8_next(e->text + at, e->len - at, &cp);
    return cp == '_' || iswalnum((wint_t)cp);
}

static size_t editor_word_after(const struct editor *e, size_t at) {
    while (at < e->len && !editor_is_word(e, at))
        at = editor_after(e, at);
    while (at < e->len && editor_is_word(e, at))
        at = editor_after(e, at);
    return at;
}

static size_t editor_word_before(const struct editor *e, size_t at) {
    while (at > 0 && !editor_is_word(e, editor_before(e, at)))
        at = editor_before(e, at);
    while (at > 0 && editor_is_word(e, editor_before(e, at)))
        at = editor_before(e, at);
    return at;
}

/* Like ctrl-w: back to a blank. */
static size_t editor_blank_before(const struct editor *e, size_t at) {
    while (at > 0 && (e->text[at - 1] == ' ' || e->text[at - 1] == '\n' || e->text[at - 1] == '\t'))
        at--;
    while (at > 0 && e->text[at - 1] != ' ' && e->text[at - 1] != '\n' && e->text[at - 1] != '\t')
        at--;
    return at;
}

static size_t editor_line_begin(const struct editor *e, size_t at) {
    while (at > 0 && e->text[at - 1] != '\n')
        at--;
    return at;
}

static size_t editor_line_end(const struct editor *e, size_t at) {
    while (at < e->len && e->text[at] != '\n')
        at++;
    return at;
}

int editor_lines(const struct editor *e) {
    int n = 1;
    for (size_t i = 0; i < e->len; i++)
        n += e->text[i] == '\n';
    return n;
}

/* Columns of the line before a byte, on a terminal that can draw everything. */
static int editor_width(const struct editor *e, size_t from, size_t to) {
    int cols = 0;
    while (from < to) {
        uint32_t cp;
        from += text_utf8_next(e->text + from, e->len - from, &cp);
        cols += cp < ' ' ? 1 : text_cp_width(cp);
    }
    return cols;
}

/* To the line above or below, keeping the column; false at the edge. */
static bool editor_go_line(struct editor *e, bool down) {
    size_t begin = editor_line_begin(e, e->cursor), end = editor_line_end(e, e->cursor);
    if (down ? end == e->len : begin == 0)
        return false;
    int col = e->want_col >= 0 ? e->want_col : editor_width(e, begin, e->cursor);
    size_t at = down ? end + 1 : editor_line_begin(e, begin - 1);
    size_t stop = editor_line_end(e, at), first = at;
    while (at < stop && editor_width(e, first, editor_after(e, at)) <= col)
        at = editor_after(e, at);
    e->cursor = at;
    e->want_col = col;
    e->last = EDITOR_NOTHING;
    return true;
}

static void editor_go(struct editor *e, size_t at) {
    e->cursor = at;
    e->want_col = -1;
    e->last = EDITOR_NOTHING;
}

/* ---- actions ---- */

static bool editor_act_motion(struct editor *e, enum action action) {
    switch ((int)action) {
    case ACTION_EDIT_LEFT:
        editor_go(e, editor_before(e, e->cursor));
        return true;
    case ACTION_EDIT_RIGHT:
        editor_go(e, editor_after(e, e->cursor));
        return true;
    case ACTION_EDIT_WORD_LEFT:
        editor_go(e, editor_word_before(e, e->cursor));
        return true;
    case ACTION_EDIT_WORD_RIGHT:
        editor_go(e, editor_word_after(e, e->cursor));
        return true;
    case ACTION_EDIT_LINE_BEGIN:
        editor_go(e, editor_line_begin(e, e->cursor));
        return true;
    case ACTION_EDIT_LINE_END:
        editor_go(e, editor_line_end(e, e->cursor));
        return true;
    case ACTION_EDIT_TEXT_BEGIN:
        editor_go(e, 0);
        return true;
    case ACTION_EDIT_TEXT_END:
        editor_go(e, e->len);
        return true;
    default:
        return false;
    }
}

bool editor_act(struct editor *e, enum action action) {
    if (editor_act_motion(e, action))
        return true;
    size_t end = editor_line_end(e, e->cursor), begin = editor_line_begin(e, e->cursor);
    switch ((int)action) {
    case ACTION_EDIT_UP:
        return editor_go_line(e, false);
    case ACTION_EDIT_DOWN:
        return editor_go_line(e, true);
    case ACTION_EDIT_NEWLINE:
        editor_insert(e, "\n", 1);
        return true;
    case ACTION_EDIT_ERASE:
        editor_erase(e, editor_before(e, e->cursor), e->cursor);
        return true;
    case ACTION_EDIT_DELETE:
        editor_erase(e, e->cursor, editor_after(e, e->cursor));
        return true;
    case ACTION_EDIT_KILL_LINE: /* at the end of a line: its line break */
        editor_kill(e, e->cursor, end > e->cursor || end == e->len ? end : end + 1, false);
        return true;
    case ACTION_EDIT_KILL_TO_BEGIN:
        editor_kill(e, begin, e->cursor, true);
        return true;
    case ACTION_EDIT_KILL_BLANK:
        editor_kill(e, editor_blank_before(e, e->cursor), e->cursor, true);
        return true;
    case ACTION_EDIT_KILL_WORD_LEFT:
        editor_kill(e, editor_word_before(e, e->cursor), e->cursor, true);
        return true;
    case ACTION_EDIT_KILL_WORD_RIGHT:
        editor_kill(e, e->cursor, editor_word_after(e, e->cursor), false);
        return true;
    case ACTION_EDIT_YANK:
        if (e->killed)
            editor_replace(e, e->cursor, e->cursor, e->killed);
        return true;
    case ACTION_EDIT_UNDO:
        editor_undo(e);
        return true;
    case ACTION_EDIT_REDO:
        editor_redo(e);
        return true;
    default:
        return false;
    }
}
