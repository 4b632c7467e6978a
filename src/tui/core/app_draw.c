/* SPDX-License-Identifier: Apache-2.0 */
/* app_draw: see app_draw.h. */
#include "tui/core/app_draw.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tui/core/command.h"
#include "tui/core/footer.h"
#include "tui/core/header.h"
#include "tui/core/screen.h"
#include "tui/core/tabs.h"
#include "tui/view/layout.h"

bool app_banner(const struct app *a, char *buf, size_t cap) {
    const struct data *d = &a->data;
    if (a->screens[0].def == &screen_picker)
        return false;
    if (!data_is_over(d)) {
        if (d->state == SESSION_CONNECTED && !data_is_recorded(d) &&
            debuggers_put_line(&d->holds, a->now_s, buf, cap))
            return true;
        const char *why = d->has_target && d->target.mode != MODEL_MODE_AGENT ? d->target.mode_reason : NULL;
        if (!why || strncmp(why, "--", 2) == 0)
            return false;
        snprintf(buf, cap, "%s: %s", data_is_recorded(d) ? "ENDED" : "READ-ONLY", why);
        return true;
    }
    char when[64] = "";
    const struct data_shot *shot = data_shown(d);
    if (shot) {
        time_t t = (time_t)shot->snapshot.timestamp;
        struct tm tm;
        if (localtime_r(&t, &tm))
            strftime(when, sizeof when, " Last snapshot: %H:%M:%S.", &tm);
    }
    snprintf(buf, cap, "%s: %s.%s q quits.", d->state == SESSION_LOST ? "TARGET GONE" : "NO AGENT",
             *d->why.text ? d->why.text : "the connection ended", when);
    return true;
}

/* Take `rows` from the top of `from` (negative: from the bottom). */
static struct rect app_take_rows(struct rect *from, int rows) {
    struct rect part = *from;
    if (rows < 0) {
        part.rows = -rows;
        part.row = from->row + from->rows + rows;
        from->rows += rows;
    } else {
        part.rows = rows;
        from->row += rows;
        from->rows -= rows;
    }
    return part;
}

void app_draw(struct app *a, struct grid *g) {
    a->dirty = false;
    a->cursor_row = a->footer_row = a->tabs.row = -1;
    g->ascii = a->config.ascii;
    a->drawn_rows = g->rows;
    a->drawn_cols = g->cols;
    grid_clear(g);
    a->too_small = g->cols < LAYOUT_MIN_COLS || g->rows < LAYOUT_MIN_ROWS;
    if (a->too_small) {
        toosmall_draw(a, g);
        return;
    }
    struct rect rest = grid_rect(g);
    footer_draw(a, g, app_take_rows(&rest, -1));
    struct rect status = app_take_rows(&rest, -1);
    header_draw(a, g, app_take_rows(&rest, header_rows(a, g->rows)));
    if (tabs_rows(a, g->rows))
        tabs_draw(a, g, app_take_rows(&rest, 1));
    footer_draw_status(a, g, status);
    char banner[512];
    if (app_banner(a, banner, sizeof banner)) {
        struct rect line = app_take_rows(&rest, 1);
        grid_fill(g, line, ROLE_BANNER);
        grid_text_fit(g, line, 0, 1, line.cols - 1, ROLE_BANNER, GRID_LEFT, banner);
    }
    a->body = rest;
    int first = a->n_screens - 1;
    while (first > 0 && a->screens[first].def->is_overlay)
        first--;
    for (int i = first; i < a->n_screens; i++)
        a->screens[i].def->draw(a->screens[i].state, a, g, rest);
    command_line_draw(a, g, rest);
}
