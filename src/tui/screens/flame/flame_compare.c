/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame_compare: the Flame screen where two times are compared: cells are as wide as the newer one has them and coloured by
 * how their shares differ; see flame_state.h.
 */
#include <math.h>
#include <stdio.h>

#include "base/text.h"
#include "tui/view/diff_cell.h"
#include "tui/screens/flame/flame_state.h"

#define COMPARE_GONE 8 /* callees that are no more, named at most */

void flame_compare_end(struct flame_state *s) {
    flame_diff_fini(&s->diff);
    flame_free(s->before);
    s->before = NULL;
    s->compared = false;
}

void flame_compare(struct flame_state *s, struct app *app) {
    struct app_diff_side side;
    if (!app->diff.on) {
        flame_compare_end(s);
        return;
    }
    s->compared = true;
    if (!s->before)
        s->before = flame_new();
    if (!s->before || !app_diff_find(app, s->query.window, s->query.tid, &side)) {
        flame_diff_fini(&s->diff);
        return;
    }
    struct flame_query q = s->query;
    q.window = side.window;
    q.tid = side.tid;
    if (flame_update(s->before, side.tally, &q) != 0 || flame_diff_update(&s->diff, s->flame, s->before) != 0)
        flame_diff_fini(&s->diff);
}

double flame_delta(const struct flame_state *s, const struct flame_cell *c) {
    if (!s->diff.now || c->node == FLAME_NO_NODE)
        return NAN;
    return flame_diff_now(&s->diff, c->node) - flame_diff_before(&s->diff, c->node);
}

static void flame_compare_share(double pct, char *buf, size_t cap) {
    if (isnan(pct))
        (void)snprintf(buf, cap, "?");
    else
        (void)snprintf(buf, cap, "%.1f%%", pct);
}

/* Name of a node of the other tree. */
static void flame_gone_name(const struct flame_state *s, uint32_t node, char *buf, size_t cap) {
    const struct model_frame *f = flame_frame(s->before, node);
    char raw[160];
    const char *text = !f ? "(no Python frame)" : s->query.by == FLAME_BY_MODULE ? f->file : f->func;
    if (f && s->query.by == FLAME_BY_LINE && f->line > 0)
        (void)snprintf(raw, sizeof raw, "%s:%d", f->func ? f->func : "?", f->line);
    else
        (void)snprintf(raw, sizeof raw, "%s", text ? text : "?");
    text_sanitize(buf, cap, raw);
    buf[text_fit(buf, 40)] = '\0';
}

static void flame_draw_gone(const struct flame_state *s, struct grid *g, struct rect area, int row,
                            int *col) {
    struct flame_gone gone[COMPARE_GONE];
    size_t n = flame_diff_gone(&s->diff, s->selected, gone, COMPARE_GONE), shown = 0;
    char name[160], text[220];
    for (; shown < n && shown < COMPARE_GONE; shown++) {
        flame_gone_name(s, gone[shown].node, name, sizeof name);
        (void)snprintf(text, sizeof text, "%s %.1f%%", name, gone[shown].before_pct);
        int need = grid_text_width(g, text) + 1,
            label = shown ? 0 : grid_text_width(g, "called no more:") + 1;
        if (*col + need + label + (shown + 1 < n ? 6 : 0) > area.cols)
            break;
        if (!shown)
            *col += grid_text(g, area, row, *col, ROLE_LABEL, "called no more:") + 1;
        *col += grid_text(g, area, row, *col, ROLE_DIFF_LESS_2, text) + 1;
    }
    if (shown < n)
        *col +=
            grid_printf(g, area, row, *col, ROLE_LABEL, shown ? "+%zu" : "called no more: %zu", n - shown);
}

void flame_draw_compared(const struct flame_state *s, const struct app *app, struct grid *g, struct rect area,
                         int row, int col) {
    char now[32], before[32], delta[32];
    (void)app;
    double now_pct = s->diff.now ? flame_diff_now(&s->diff, s->selected) : NAN,
           before_pct = s->diff.now ? flame_diff_before(&s->diff, s->selected) : NAN;
    flame_compare_share(now_pct, now, sizeof now);
    flame_compare_share(before_pct, before, sizeof before);
    diff_text(now_pct - before_pct, delta, sizeof delta);
    flame_fact(g, area, row, &col, "now", now);
    flame_fact(g, area, row, &col, "before", before);
    if (col + 12 <= area.cols) {
        col += grid_text(g, area, row, col, ROLE_LABEL, "delta") + 1;
        col += grid_text(g, area, row, col, diff_role(now_pct - before_pct), delta) + 2;
    }
    if (s->diff.now)
        flame_draw_gone(s, g, area, row, &col);
}
