/* SPDX-License-Identifier: Apache-2.0 */
/* top_compare: see top_compare.h. */
#include "tui/screens/top/top_compare.h"

#include "tui/core/app_diff.h"
#include "tui/core/app_history.h"

void top_compare_build(struct top_compare *c, struct app *app, const struct sample_store_query *query,
                       struct sample_store_table *table, struct table_sort *sort) {
    struct app_diff_side side;
    struct sample_store_query q = *query;
    q.window = app_history_window(app, query->window);
    if (app->data.tally)
        (void)sample_store_table_build(table, app->data.tally, &q);
    if (app->diff.on != c->on) {
        struct table_sort other = c->sort_other;
        c->sort_other = *sort;
        *sort = other;
        c->on = app->diff.on;
    }
    top_compare_fini(c);
    if (!c->on)
        return;
    bool has_side = app_diff_find(app, query->window, query->tid, &side);
    if (has_side) {
        q.window = side.window;
        q.tid = side.tid;
        (void)sample_store_table_build(&c->before, side.tally, &q);
    }
    /* What cannot be had is unknown, not left out. */
    (void)sample_store_diff_build(&c->diff, table, &c->before, has_side && side.is_foreign);
}

void top_compare_fini(struct top_compare *c) {
    sample_store_table_fini(&c->before);
    sample_store_diff_fini(&c->diff);
}

const struct table_column *top_compare_columns(const struct top_compare *c, int *n) {
    *n = c->on ? top_n_diff_columns : top_n_columns;
    return c->on ? top_diff_columns : top_columns;
}
