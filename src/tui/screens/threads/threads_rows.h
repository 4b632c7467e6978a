/* SPDX-License-Identifier: Apache-2.0 */
/* threads_rows: the rows of the Threads table, from a snapshot, filtered and sorted. Pure. */
#ifndef TUI_SCREENS_THREADS_THREADS_ROWS_H
#define TUI_SCREENS_THREADS_THREADS_ROWS_H

#include "tui/model/data.h"
#include "tui/view/table.h"
#include "tui/view/match.h"
#include "tui/view/tags.h"

/* A thread, with what only a series of snapshots shows. */
struct thread_row {
    const struct model_thread *thread; /* in the shot */
    const struct model_snapshot *snapshot;
    double age_s;                    /* NAN: unknown */
    double gil_pct, wait_pct;        /* shares of the newest snapshots; NAN: unknown */
    bool no_gil;                     /* this Python has no GIL */
    const struct data_child *child;  /* its process; NULL: the target itself */
    char branch[TARGET_TREE_PREFIX]; /* before its name */
};

/* Which rows are left out. */
struct thread_filter {
    const struct match *match; /* NULL: all match */
    bool hide_idle;
    bool hide_native;
    const struct tags *tags; /* by the keys of rows; NULL: all are shown */
};

struct thread_rows {
    struct thread_row *rows;
    struct thread_row *child_rows, *other_rows;
    const void **order; /* of struct thread_row, sorted */
    size_t n;           /* shown */
    size_t total;       /* in the snapshot, and in those of children */
};

/* The columns; the table ends with a NULL title. */
extern const struct table_column thread_columns[];
extern const int thread_n_columns;
#define THREAD_WIDE_COLS 84 /* with less there is no room for the last of them */

/* The column that threads are sorted by at first: CPU%. */
int thread_column_cpu(void);

/* Make the rows of a shot (NULL: none), sorted. Replaces the earlier ones. */
void thread_rows_build(struct thread_rows *r, const struct data_shot *shot,
                       const struct thread_filter *filter, struct table_sort sort);
void thread_rows_fini(struct thread_rows *r);

const struct thread_row *thread_rows_at(const struct thread_rows *r, size_t i);

/* Add the threads of children below: processes in the order of the tree, the threads of each
 * sorted. */
void thread_rows_add_children(struct thread_rows *r, const struct data_children *children,
                              const struct thread_filter *filter, struct table_sort sort, bool ascii);

/* The same with those of other targets. Call it once. */
void thread_rows_add_others(struct thread_rows *r, const struct data_children *others,
                            const struct thread_filter *filter, struct table_sort sort, bool ascii);

/* Identifies a row: the thread's id and, of a child, its process. */
int64_t thread_row_key(const struct thread_row *row);

/* The row with a key; -1: it is not shown. */
int thread_rows_find(const struct thread_rows *r, int64_t key);

/* Does it match by name, id, or a frame's function or file? Ignores negation. */
bool thread_matches(const struct model_thread *t, const struct match *m);

/* Is it certain that the thread has not run since the last snapshot? */
bool thread_is_idle(const struct model_thread *t);

/* What it waits for, and who holds that, drawable, in short for the table; "": nothing is known. */
void thread_put_wait(const struct thread_row *row, bool brief, char *buf, size_t cap);

/* The frame that represents what the thread does; NULL: none. */
const struct model_frame *thread_top(const struct model_thread *t);

/* Last part of a path. */
const char *thread_base_name(const char *path);

#endif
