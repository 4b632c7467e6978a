/* SPDX-License-Identifier: Apache-2.0 */
/* term_key: see term_key.h. */
#include "tui/term/term_key.h"

#include <ctype.h>
#include <ncurses.h>
#include <string.h>

#include "base/text.h"

enum { TERM_PASTE_BEGIN = KEY_MAX + 1, TERM_PASTE_END, TERM_ANSWER_BEGIN, TERM_STRING_END };

static const struct {
    unsigned curses;
    uint32_t key;
} term_key_codes[] = {
    {KEY_UP, INPUT_UP},
    {KEY_DOWN, INPUT_DOWN},
    {KEY_LEFT, INPUT_LEFT},
    {KEY_RIGHT, INPUT_RIGHT},
    {KEY_PPAGE, INPUT_PAGE_UP},
    {KEY_NPAGE, INPUT_PAGE_DOWN},
    {KEY_HOME, INPUT_HOME},
    {KEY_END, INPUT_END},
    {KEY_IC, INPUT_INSERT},
    {KEY_DC, INPUT_DELETE},
    {KEY_ENTER, INPUT_ENTER},
    {KEY_BTAB, INPUT_BACKTAB},
    {KEY_BACKSPACE, INPUT_BACKSPACE},
    {KEY_SR, INPUT_SHIFT_UP},
    {KEY_SF, INPUT_SHIFT_DOWN},
    {KEY_SLEFT, INPUT_SHIFT_LEFT},
    {KEY_SRIGHT, INPUT_SHIFT_RIGHT},
    {KEY_A1, INPUT_HOME},
    {KEY_A3, INPUT_PAGE_UP},
    {KEY_C1, INPUT_END},
    {KEY_C3, INPUT_PAGE_DOWN},
};

void term_key_init(void) {
    define_key("\033[200~", TERM_PASTE_BEGIN);
    define_key("\033[201~", TERM_PASTE_END);
    define_key("\033]11;", TERM_ANSWER_BEGIN);
    define_key("\033\\", TERM_STRING_END);
}

static uint32_t term_key_special(unsigned code) {
    if (code == TERM_STRING_END)
        return INPUT_ALT | '\\';
    for (size_t i = 0; i < sizeof term_key_codes / sizeof term_key_codes[0]; i++)
        if (term_key_codes[i].curses == code)
            return term_key_codes[i].key;
    return code > KEY_F0 && code <= KEY_F0 + 24 ? INPUT_F0 + (code - KEY_F0) : (uint32_t)INPUT_NONE;
}

static uint32_t term_key_char(unsigned ch) {
    switch (ch) {
    case '\r':
    case '\n':
        return INPUT_ENTER;
    case '\t':
        return INPUT_TAB;
    case 8:
    case 127:
        return INPUT_BACKSPACE;
    case 27:
        return INPUT_ESC;
    default:
        if (ch < 32)
            return INPUT_CTRL + (ch | (ch > 26 ? 0x40U : 0x60U));
        return ch >= 0x80 && ch < 0xa0 ? (uint32_t)INPUT_NONE : ch;
    }
}

static int term_key_get(struct term_keys *k, unsigned *ch) {
    if (k->has_next) {
        k->has_next = false;
        *ch = k->next;
        return k->next_rc;
    }
    wint_t w = 0;
    int rc = get_wch(&w);
    *ch = (unsigned)w;
    return rc;
}

static void term_key_add_paste(struct term_keys *k, unsigned ch) {
    if (k->paste_len + 5 > sizeof k->paste) {
        k->paste_is_cut = true;
        return;
    }
    k->paste_len += text_utf8_put(ch == '\r' ? '\n' : ch, k->paste + k->paste_len);
}

/* Take one more of an answer, "rgb:ffff/ffff/ffff" and BEL or ESC \. 1: it is complete; 0: not yet;
 * -1: this does not belong to it, so the answer is dropped. */
static int term_key_add_answer(struct term_keys *k, int rc, unsigned ch) {
    bool ends = (rc == OK && ch == '\a') || (rc == KEY_CODE_YES && ch == TERM_STRING_END);
    bool fits = rc == OK && ch < 0x80 && (isxdigit((int)ch) || strchr("rgba:/", (int)ch)) && ch &&
                k->answer_len + 1 < sizeof k->answer;
    if (fits) {
        k->answer[k->answer_len++] = (char)ch;
        return 0;
    }
    k->answer[k->answer_len] = '\0';
    k->answering = false;
    return ends ? 1 : -1;
}

/* ncurses parses everything that has arrived and returns the newest first; a click may be among the
 * older ones. */
static void term_key_mouse(struct term_keys *k) {
    MEVENT m;
    int most = (int)(sizeof k->mouse / sizeof k->mouse[0]);
    k->n_mouse = 0;
    while (k->n_mouse < most && getmouse(&m) == OK) {
        struct input_event e = {.kind = INPUT_EVENT_MOUSE, .row = m.y, .col = m.x};
        if (m.bstate & (BUTTON1_PRESSED | BUTTON1_CLICKED))
            e.button = INPUT_CLICK;
        else if (m.bstate & (BUTTON3_PRESSED | BUTTON3_CLICKED))
            e.button = INPUT_MENU;
        else if (m.bstate & BUTTON4_PRESSED)
            e.button = INPUT_WHEEL_UP;
        else if (m.bstate & BUTTON5_PRESSED)
            e.button = INPUT_WHEEL_DOWN;
        else
            continue;
        k->mouse[k->n_mouse++] = e;
    }
}

/* ESC with something right after it is Alt and that key. */
static uint32_t term_key_escape(struct term_keys *k) {
    unsigned ch;
    int rc = term_key_get(k, &ch);
    if (rc == ERR)
        return INPUT_ESC;
    if (rc == OK && ch > ' ' && ch != 127)
        return INPUT_ALT | ch;
    if (rc == OK && (ch == '\r' || ch == '\n' || ch == 127 || ch == 8))
        return INPUT_ALT | term_key_char(ch);
    k->has_next = true;
    k->next = ch;
    k->next_rc = rc;
    return INPUT_ESC;
}

bool term_key_read(struct term_keys *k, struct input_event *e) {
    unsigned ch;
    int rc;
    for (;;) {
        if (k->n_mouse > 0) {
            *e = k->mouse[--k->n_mouse];
            return true;
        }
        if ((rc = term_key_get(k, &ch)) == ERR)
            return false;
        memset(e, 0, sizeof *e);
        if (k->answering) {
            int done = term_key_add_answer(k, rc, ch);
            if (done > 0) {
                *e = (struct input_event){.kind = INPUT_EVENT_BACKGROUND, .text = k->answer};
                return true;
            }
            if (done == 0)
                continue;
        }
        if (rc == KEY_CODE_YES && ch == TERM_ANSWER_BEGIN) {
            k->answering = true;
            k->answer_len = 0;
        } else if (rc == KEY_CODE_YES && ch == TERM_PASTE_BEGIN) {
            k->pasting = true;
            k->paste_len = 0;
            k->paste_is_cut = false;
        } else if (rc == KEY_CODE_YES && ch == TERM_PASTE_END) {
            k->pasting = false;
            k->paste[k->paste_len] = '\0';
            *e = (struct input_event){.kind = INPUT_EVENT_PASTE, .text = k->paste, .is_cut = k->paste_is_cut};
            return true;
        } else if (k->pasting) {
            if (rc == OK)
                term_key_add_paste(k, ch);
        } else if (rc == KEY_CODE_YES && ch == KEY_MOUSE) {
            term_key_mouse(k);
        } else {
            e->kind = INPUT_EVENT_KEY;
            e->key = rc == KEY_CODE_YES ? term_key_special(ch) : term_key_char(ch);
            if (rc == OK && ch == 27)
                e->key = term_key_escape(k);
            if (e->key)
                return true;
        }
    }
}
