/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_rows: the rows of the Loader screen: the DataLoaders that the job iterates over now, each
 * with its worker processes, and their last minutes. Pure.
 */
#ifndef TUI_SCREENS_LOADER_LOADER_ROWS_H
#define TUI_SCREENS_LOADER_LOADER_ROWS_H

#include "tui/view/outline.h"
#include "tui/model/meter.h"

#define LOADER_GONE_S 5.0 /* after so long without a row, a loader is no longer iterated over */

/* A loader, or one of its workers. Texts belong to the result; NULL, NAN and APP_FEED_UNKNOWN:
 * unknown. */
struct loader_row {
    int64_t loader;
    bool is_worker;
    const char *dataset; /* of a loader: */
    double timestamp, workers, prefetch, ready, wait_ms, batches;
    /* Requested and not returned yet, made or not; of a worker, too. */
    double under_way;
    struct meter *readies, *waits;   /* one value for each of its rows */
    const char *state, *func, *file; /* of a worker: */
    double worker, pid, cpu_pct, rss_bytes, lineno;
    int alive;
    size_t line; /* in its result */
};

struct loader_rows {
    struct result *loaders, *workers; /* one reference each */
    struct loader_row *items;
    struct meter *meters;
    size_t n, n_loaders; /* the loaders come first */
};

extern const struct outline_def loader_outline; /* nodes' rows are struct loader_row */

/* Make nodes from two results (either may be NULL) and give them to the outline. Replaces the
 * earlier ones. */
void loader_rows_build(struct loader_rows *r, struct result *loaders, struct result *workers,
                       struct outline *out);
void loader_rows_fini(struct loader_rows *r);

/* The loader that a row is, or belongs to; NULL: none. */
const struct loader_row *loader_of_row(const struct loader_rows *r, const struct loader_row *row);

/* How many batches may be under way together; NAN: unknown. */
double loader_capacity(const struct loader_row *l);

#endif
