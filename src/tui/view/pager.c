/* SPDX-License-Identifier: Apache-2.0 */
/* pager: see pager.h. */
#include "tui/view/pager.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define PAGER_LINE 4096

int pager_init(struct pager *p, const char *text, size_t len) {
    memset(p, 0, sizeof *p);
    size_t shown = len > PAGER_MAX ? PAGER_MAX : len;
    p->text = malloc(shown + 1);
    if (!p->text)
        return -1;
    memcpy(p->text, text, shown);
    p->text[shown] = '\0';
    p->len = shown;
    p->left_out = len - shown;
    return 0;
}

void pager_fini(struct pager *p) {
    free(p->text);
    memset(p, 0, sizeof *p);
}

static bool pager_begins(const struct pager *p, size_t at) { return at == 0 || p->text[at - 1] == '\n'; }

static enum theme_role pager_role(int mark) {
    switch (mark) {
    case PAGER_STRONG:
        return ROLE_VALUE;
    case PAGER_BAD:
        return ROLE_PROMPT_FAILED;
    case PAGER_MUTED:
        return ROLE_MUTED;
    default:
        return ROLE_TEXT;
    }
}

/* Sanitise the line at byte `at` into `out`. Returns where the next one begins; `p->len` at the
 * end. */
static size_t pager_line(const struct pager *p, size_t at, int cols, char *out) {
    int used = 0;
    size_t n = 0;
    if (p->marked && pager_begins(p, at) && p->text[at] != '\n')
        at++;
    while (at < p->len && p->text[at] != '\n') {
        char raw[8], clean[16];
        uint32_t cp;
        size_t step = text_utf8_next(p->text + at, p->len - at, &cp);
        memcpy(raw, p->text + at, step);
        raw[step] = '\0';
        size_t wrote = cp == 0 ? 0 : text_sanitize(clean, sizeof clean, raw);
        int width = text_width(clean);
        if (cp == 0)
            width = 0;
        if ((used > 0 && used + width > cols) || n + wrote + 1 > PAGER_LINE)
            break;
        memcpy(out + n, clean, wrote);
        n += wrote;
        used += width;
        at += step;
    }
    out[n] = '\0';
    return at < p->len && p->text[at] == '\n' ? at + 1 : at;
}

static int pager_count(const struct pager *p, int cols) {
    char line[PAGER_LINE];
    int n = 0;
    for (size_t at = 0; at < p->len; n++)
        at = pager_line(p, at, cols, line);
    return n + (p->left_out > 0);
}

void pager_draw(struct pager *p, struct grid *g, struct rect area) {
    char line[PAGER_LINE];
    int cols = area.cols > 2 ? area.cols - 2 : 1, n = pager_count(p, cols), row = 0;
    enum theme_role role = ROLE_TEXT;
    list_fit(&p->list, n, area.rows);
    for (size_t at = 0; at < p->len && row < p->list.top + area.rows; row++) {
        if (p->marked && pager_begins(p, at))
            role = pager_role(p->text[at]);
        at = pager_line(p, at, cols, line);
        if (row < p->list.top)
            continue;
        grid_text(g, area, row - p->list.top, 1, role, line);
        match_highlight(&p->search, g, area, row - p->list.top);
    }
    if (p->left_out > 0)
        grid_printf(g, area, row - p->list.top, 1, ROLE_MUTED, "%zu bytes more are not shown", p->left_out);
}

bool pager_find(struct pager *p, int cols, int step) {
    char line[PAGER_LINE];
    int width = cols > 2 ? cols - 2 : 1, row = 0, best = -1;
    if (!p->search.active)
        return false;
    for (size_t at = 0; at < p->len; row++) {
        at = pager_line(p, at, width, line);
        if (!match_text(&p->search, line))
            continue;
        if (step < 0 ? row < p->list.top : row >= p->list.top + step) {
            best = row;
            if (step >= 0)
                break;
        }
    }
    if (best < 0)
        return false;
    list_wheel(&p->list, best - p->list.top);
    return true;
}
