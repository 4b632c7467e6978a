/* SPDX-License-Identifier: Apache-2.0 */
/* match: see match.h. */
#include "tui/view/match.h"

#include <stdio.h>
#include <string.h>
#include <wctype.h>

#include "base/text.h"

static uint32_t match_fold(uint32_t cp) {
    if (cp < 0x80)
        return cp >= 'A' && cp <= 'Z' ? cp + 32 : cp;
    return (uint32_t)towlower((wint_t)cp);
}

static bool match_has_upper(const char *s) {
    for (size_t len = strlen(s); len > 0;) {
        uint32_t cp;
        size_t n = text_utf8_next(s, len, &cp);
        if (match_fold(cp) != cp)
            return true;
        s += n;
        len -= n;
    }
    return false;
}

void match_clear(struct match *m) { memset(m, 0, sizeof *m); }

void match_set(struct match *m, const char *text, bool allow_not) {
    match_clear(m);
    snprintf(m->text, sizeof m->text, "%s", text);
    const char *s = m->text;
    if (allow_not && *s == '!') {
        m->negated = true;
        s++;
    }
    m->exact_case = match_has_upper(s);
    while (*s && m->n < MATCH_MAX_ALTERNATIVES) {
        size_t len = strcspn(s, "|");
        if (len) {
            memcpy(m->alternatives[m->n].text, s, len);
            m->alternatives[m->n].text[len] = '\0';
            m->alternatives[m->n++].len = len;
        }
        s += len;
        s += *s == '|';
    }
    m->active = m->n > 0;
}

/* Length in bytes of the beginning of `text` that equals `want`; 0: it does not. */
static size_t match_here(const struct match *m, const char *text, size_t len, const char *want,
                         size_t want_len) {
    size_t used = 0;
    while (want_len > 0) {
        uint32_t a, b;
        if (used == len)
            return 0;
        used += text_utf8_next(text + used, len - used, &a);
        size_t n = text_utf8_next(want, want_len, &b);
        want += n;
        want_len -= n;
        if (a != b && (m->exact_case || match_fold(a) != match_fold(b)))
            return 0;
    }
    return used;
}

bool match_find(const struct match *m, const char *text, size_t *at, size_t *len) {
    if (!text)
        return false;
    size_t total = strlen(text);
    for (size_t i = 0; i < total;) {
        for (size_t a = 0; a < m->n; a++) {
            size_t n = match_here(m, text + i, total - i, m->alternatives[a].text, m->alternatives[a].len);
            if (n) {
                *at = i;
                *len = n;
                return true;
            }
        }
        uint32_t cp;
        i += text_utf8_next(text + i, total - i, &cp);
    }
    return false;
}

bool match_text(const struct match *m, const char *text) {
    size_t at, len;
    return match_find(m, text, &at, &len);
}

void match_highlight(const struct match *m, struct grid *g, struct rect area, int row) {
    char text[2048];
    int columns[2048];
    if (!m->active)
        return;
    grid_row_text(g, area, row, text, sizeof text, columns);
    size_t base = 0, at, len;
    while (match_find(m, text + base, &at, &len)) {
        int first = columns[base + at], last = columns[base + at + len - 1];
        grid_restyle(g, (struct rect){area.row + row, first, 1, last - first + 1}, ROLE_MATCH);
        base += at + len;
    }
}
