/* SPDX-License-Identifier: Apache-2.0 */
/* top_compare: the Top screen where two times are compared: the other table, and the rows of both. */
#ifndef TUI_SCREENS_TOP_TOP_COMPARE_H
#define TUI_SCREENS_TOP_TOP_COMPARE_H

#include <stdbool.h>

#include "client/samples/sample_store_diff.h"
#include "tui/core/app.h"
#include "tui/screens/top/top_rows.h"

struct top_compare {
    bool on;                          /* the rows are those of `diff` */
    struct sample_store_table before; /* what is compared with; empty: it cannot be had */
    struct sample_store_diff diff;    /* of both */
    struct table_sort sort_other;     /* of the table that is not shown: compared, or not */
};

/* Make `table`, which is what is shown of `query`, and what it is compared with. Each of the two has its order in `*sort`. */
void top_compare_build(struct top_compare *c, struct app *app, const struct sample_store_query *query,
                       struct sample_store_table *table, struct table_sort *sort);
void top_compare_fini(struct top_compare *c);

/* The columns of what is shown. */
const struct table_column *top_compare_columns(const struct top_compare *c, int *n);

#endif
