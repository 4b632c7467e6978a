/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_rows: rows of a ClickHouse database (engine/engine_schema.h) as the reports that a fleet is made of
 * (report.h). Whatever comes is bounded, and its texts are made safe for a terminal. A connection belongs to one thread.
 */
#ifndef CLIENT_FLEET_ENGINE_ROWS_H
#define CLIENT_FLEET_ENGINE_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "client/engine/engine_http.h"
#include "client/fleet/report.h"

/* A job on a host, and its relay, in the table `hosts`. */
struct engine_job {
    REPORT_JOB_FIELDS(REPORT_MEMBER)
    const char *via;
    double cost_pct, lag_s, clock_s;
    int64_t written, lost;
};
extern const struct report_table ENGINE_ROWS_JOB;

/* What is read of a table: which report its rows become, and fields of that with another name there. */
struct engine_rows {
    const char *table; /* of engine_tables */
    const struct report_table *report;
    size_t size; /* of a row of the report */
    const char
        *one_by; /* the newest row of each of these columns alone; NULL: all, ordered by rank and number */
    struct engine_rows_alias {
        const char *field, *column; /* NULL: it is not read */
    } aliases[8];
};

extern const struct engine_rows ENGINE_ROWS_JOBS, ENGINE_ROWS_RANKS, ENGINE_ROWS_STATES, ENGINE_ROWS_GROUPS,
    ENGINE_ROWS_STEPS;

/* Takes a row of the report; `host` is not valid later, its texts are the arena's. Other than 0 ends it. */
typedef int (*engine_rows_fn)(void *arg, const char *host, double ts, const void *row);

/* Append the condition for a job and times: above `from`, up to `to` (seconds since the epoch). */
void engine_rows_put_where(struct strbuf *out, const char *job, double from, double to);

/* Read the rows for which `where` holds. 0, or -1 with the error. */
int engine_rows_read(struct engine_http *h, const struct engine_rows *what, const char *where,
                     struct arena *texts, engine_rows_fn take, void *arg, struct err *e);

/* Takes the frames of a stack, innermost first. */
typedef void (*engine_stacks_fn)(void *arg, int64_t id, const struct model_frame *frames, size_t n);

#define ENGINE_ROWS_STACKS 256 /* that are asked for together */

/* Read the frames of stacks of a job, around the time `at`. 0, or -1 with the error. */
int engine_rows_read_stacks(struct engine_http *h, const char *job, double at, const int64_t *ids, size_t n,
                            struct arena *texts, engine_stacks_fn take, void *arg, struct err *e);

/* One number; NULL is NAN. 0, or -1 with the error. */
int engine_rows_read_number(struct engine_http *h, const char *sql, double *out, struct err *e);

#endif
