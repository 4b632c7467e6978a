/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_rows: the rows of the Loader screen: the DataLoaders that the job iterates over now, each with its worker processes, and their last
 * minutes. Pure.
 */
#ifndef TUI_SCREENS_LOADER_LOADER_ROWS_H
#define TUI_SCREENS_LOADER_LOADER_ROWS_H

#include "tui/view/outline.h"
#include "tui/model/meter.h"

#define LOADER_GONE_S 5.0 /* one without a row for so long is iterated over no more */

/* A loader, or a worker of one. Texts are the result's; NULL, NAN and APP_FEED_UNKNOWN are unknown. */
struct loader_row {
    int64_t loader;
    bool is_worker;
    const char *dataset; /* of a loader: */
    double timestamp, workers, prefetch, ready, wait_ms, batches;
    double under_way;                /* asked for and not given out yet, made or not; of a worker too */
    struct meter *readies, *waits;   /* a value a row of it */
    const char *state, *func, *file; /* of a worker: */
    double worker, pid, cpu_pct, rss_bytes, lineno;
    int alive;
    size_t line; /* of its result */
};

struct loader_rows {
    struct result *loaders, *workers; /* a reference each */
    struct loader_row *items;
    struct meter *meters;
    size_t n, n_loaders; /* the loaders come first */
};

extern const struct outline_def loader_outline; /* nodes' rows are struct loader_row */

/* Make nodes of two result (either may be NULL) and give them to the outline. Replaces what was there. */
void loader_rows_build(struct loader_rows *r, struct result *loaders, struct result *workers,
                       struct outline *out);
void loader_rows_fini(struct loader_rows *r);

/* The loader that a row is, or is of; NULL none. */
const struct loader_row *loader_of_row(const struct loader_rows *r, const struct loader_row *row);

/* Batches that may be under way at once; NAN unknown. */
double loader_capacity(const struct loader_row *l);

#endif
