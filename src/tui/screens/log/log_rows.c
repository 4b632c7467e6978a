/* SPDX-License-Identifier: Apache-2.0 */
/* log_rows: see log_rows.h. */
#include "tui/screens/log/log_rows.h"

#include <stdio.h>
#include <time.h>

#define LOG_TEXT_AT 12 /* after the time and the mark of the level */

enum theme_role log_level_role(enum log_level level) {
    return level == LOG_LEVEL_BAD ? ROLE_CONN_LOST : level == LOG_LEVEL_WARN ? ROLE_CONN_WAIT : ROLE_TEXT;
}

/* How often it was said, and of whom it is: before the text. */
static int log_put_head(const struct log_entry *e, char *buf, size_t cap) {
    int n = 0;
    buf[0] = '\0';
    if (e->pid)
        n = snprintf(buf, cap, "%lld: ", (long long)e->pid);
    if (e->times > 1)
        n += snprintf(buf + n, cap - (size_t)n, "%u times: ", e->times);
    return n;
}

int log_text_cols(const struct log_entry *e, int cols) {
    char head[64];
    return cols - LOG_TEXT_AT - log_put_head(e, head, sizeof head);
}

void log_draw_entry(const struct log_entry *e, int scroll, struct grid *g, struct rect row) {
    static const char *const marks[] = {" ", "!", "E"};
    char when[16] = "?", head[64];
    time_t t = (time_t)e->last_s;
    struct tm tm;
    if (localtime_r(&t, &tm))
        (void)strftime(when, sizeof when, "%H:%M:%S", &tm);
    (void)grid_text(g, row, 0, 1, ROLE_MUTED, when);
    (void)grid_text(g, row, 0, 10, log_level_role(e->level), marks[e->level]);
    int at = LOG_TEXT_AT + log_put_head(e, head, sizeof head);
    (void)grid_text(g, row, 0, LOG_TEXT_AT, ROLE_LABEL, head);
    if (at < row.cols)
        grid_text_scroll(g, row, 0, at, row.cols - at, scroll, log_level_role(e->level), GRID_LEFT, e->text);
}
