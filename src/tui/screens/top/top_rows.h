/* SPDX-License-Identifier: Apache-2.0 */
/*
 * top_rows: the rows of the Top screen, from a table of samples through threshold, filter and
 * order; and those of its pane of callers and callees. Pure.
 */
#ifndef TUI_SCREENS_TOP_TOP_ROWS_H
#define TUI_SCREENS_TOP_TOP_ROWS_H

#include <stdbool.h>
#include <stddef.h>

#include "client/samples/sample_store_table.h"
#include "tui/view/table.h"
#include "tui/view/match.h"
#include "tui/view/tags.h"

/* A function or line and its shares. */
struct top_row {
    const struct sample_store_row *row; /* in the table */
    double own_pct, total_pct;          /* NAN: unknown */
    /* While comparing: of the other; NAN: unknown, or not comparing. */
    double own_before, total_before;
    bool by_line;
};

/* A caller or callee; its share refers to the function whose calls these are. */
struct top_call {
    const struct sample_store_call *call;
    double pct;
    bool by_line;
};

struct top_rows {
    struct top_row *rows;
    const void **order; /* of struct top_row, sorted */
    size_t n;           /* shown */
    size_t total;       /* in the table */
};

/* The columns; each table ends with a NULL title. */
extern const struct table_column top_columns[];
extern const int top_n_columns;
extern const struct table_column top_diff_columns[]; /* while comparing */
extern const int top_n_diff_columns;
extern const struct table_column top_call_columns[];
extern const int top_n_call_columns;

/* Which rows are shown. */
struct top_filter {
    double threshold; /* % of the total */
    const struct match *match;
    const struct tags *tags; /* by top_row_key; NULL: all are shown */
};

/* Identifies a row: functions and lines have different keys. */
uint64_t top_row_key(const struct sample_store_row *row, bool by_line);

/* Make the rows of a table that are shown. Replaces the earlier ones. */
void top_rows_build(struct top_rows *r, const struct sample_store_table *table,
                    const struct top_filter *filter, struct table_sort sort);
void top_rows_fini(struct top_rows *r);

/* The same from two tables that are compared; a row passes the threshold if one of its shares does.
 * Sorted by top_diff_columns. */
void top_rows_build_diff(struct top_rows *r, const struct sample_store_diff *diff, bool by_line,
                         const struct top_filter *filter, struct table_sort sort);

const struct top_row *top_rows_at(const struct top_rows *r, size_t i);

/* Row of a function or line; -1: it is not shown. */
int top_rows_find(const struct top_rows *r, uint32_t id);

/* First row of a frame's function; -1: it is not shown. */
int top_rows_find_function(const struct top_rows *r, const struct model_frame *f);

/* A row as text: its shares and its place. */
void top_put_row(struct strbuf *out, const struct top_row *row);

/* Does a frame match by function or file? Ignores negation. */
bool top_matches(const struct model_frame *f, const struct match *m);

#endif
