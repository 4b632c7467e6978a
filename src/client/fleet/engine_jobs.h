/* SPDX-License-Identifier: Apache-2.0 */
/* engine_jobs: the jobs of which a ClickHouse database has rows. */
#ifndef CLIENT_FLEET_ENGINE_JOBS_H
#define CLIENT_FLEET_ENGINE_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "client/engine/engine_http.h"

#define ENGINE_JOBS_MAX 1000 /* the newest */

struct engine_jobs_item {
    char name[256], user[64]; /* "" unknown */
    int64_t ranks, hosts;     /* ranks: -1 unknown */
    double first, last;       /* its rows; seconds since the epoch, by the server's clock */
    bool is_running;          /* there are rows of the last minute */
};

struct engine_jobs {
    struct engine_jobs_item *items; /* the newest first */
    size_t n;
};

/* Jobs of the last 30 days. 0, or -1 with the error; engine_jobs_fini frees, on failure too. */
int engine_jobs_read(struct engine_jobs *j, struct engine_http *h, struct err *e);
void engine_jobs_fini(struct engine_jobs *j);

/* The job of that name, or with "" the only one, and when its last row was. 0, or -1 with the error, which names
 * some that are there. */
int engine_jobs_choose(struct engine_http *h, const char *name, char *job, size_t cap, double *last,
                       struct err *e);

/* The moment of the past that is shown of a job whose hosts wrote their last rows at `last`: `at`, or its end if that
 * was before; `now` is the time by the server's clock. NAN: it goes on, and is shown as it is now. 0, or -1 with the
 * error. */
int engine_jobs_time_shown(struct engine_http *h, const char *job, double last, double at, double now,
                           double *moment, struct err *e);

/* The time by the server's clock, in whole seconds. 0, or -1 with the error. */
int engine_jobs_clock(struct engine_http *h, double *now, struct err *e);

#endif
