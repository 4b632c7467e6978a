/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sql: SQL over the tables of one or many targets.
 *
 * SQLite's virtual tables over ring files and over what targets answer when they are asked. Every table has the columns
 * rank, host, pid first, and is the union over all targets. Read-only but for temporary tables; bounded in memory; one query at a
 * time, on any one thread; only sql_interrupt may be called meanwhile, from another. Client only.
 */
#ifndef STORE_SQL_SQL_H
#define STORE_SQL_SQL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "store/ring/ring.h"

#define SQL_MAX_TARGETS 4096
#define SQL_MAX_MEMORY ((int64_t)1024 * 1024 * 1024) /* of all queries of this process together */

struct sql;

/* ---- tables that are made when they are read ---- */

struct sql_sink;

/* Give a row: a value for each column of the provider's definition; strings are copied. 0; -1 when there were too many, and the scan
 * should end. */
int sql_sink_put(struct sql_sink *sink, const union ring_value *row);

/* Should the scan end early: interrupted, or out of time? To be asked while waiting. */
bool sql_sink_cancelled(const struct sql_sink *sink);

/* The table that is scanned. */
const struct ring_table_def *sql_sink_table(const struct sql_sink *sink);

/* What the provider's key must equal in this query, in `*value`; false: the query does not say. */
bool sql_sink_key(const struct sql_sink *sink, int64_t *value);

/* The provider's key; NULL none. */
const char *sql_sink_key_name(const struct sql_sink *sink);

struct sql_provider {
    const struct ring_table_def *def;
    const char *
        key; /* an integer column: the rows are those of one value of it, which the scan is told; NULL none */
    /* Put all rows as they are now. `columns`: bit i says that column i of the definition is wanted. Called once a query.
     * 0, or -1 with the error, which ends the query. */
    int (*scan)(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e);
    void *arg;
};

/* ---- targets ---- */

struct sql_target {
    int64_t pid;          /* RING_INT_NULL: as the ring files say */
    int64_t rank;         /* RING_INT_NULL unknown: as the ring files say */
    const char *host;     /* NULL: as the ring files say */
    const char *ring_dir; /* folder with ring files; NULL none */
    uid_t owner;          /* whose the files must be; RING_ANY_UID */
    const int
        *ring_fds; /* open ring files (of copies: ring_replica_open), which then belong to the session */
    size_t n_ring_fds;
    const struct sql_provider *providers; /* must outlive the session */
    size_t n_providers;
};

/* A session without targets: the tables that are always collected are there, and empty. NULL with the error. */
struct sql *sql_open(struct err *e);
void sql_close(struct sql *s);

/* Functions of python.frames may have names as linkers know them: `demangle` makes of one what people write, into `out`, cut to `cap`. */
void sql_set_demangle(struct sql *s, void (*demangle)(const char *symbol, char *out, size_t cap));

/* Add a target. Files that cannot be read are left out; sql_note says why. 0, or -1 with the error. */
int sql_add_target(struct sql *s, const struct sql_target *t, struct err *e);

size_t sql_target_count(const struct sql *s);

/* Whose the rows of a target are, as its files say where it was not told; RING_INT_NULL unknown. */
int64_t sql_target_pid(const struct sql *s, size_t target);
int64_t sql_target_rank(const struct sql *s, size_t target);

/* Where the files of target `target` (from 0, in the order they were added) lie now. 0, or -1 with the error. */
int sql_set_ring_dir(struct sql *s, size_t target, const char *ring_dir, uid_t owner, struct err *e);

/* More open ring files of target `target`, which then belong to the session; one of a table that is there replaces what it was read
 * from. 0, or -1 with the error. */
int sql_add_files(struct sql *s, size_t target, const int *fds, size_t n, struct err *e);

/* Is there a file of it that can be read? */
bool sql_has_files(const struct sql *s, size_t target);

/* Look for ring files that have come or were made anew since. 0, or -1 with the error. */
int sql_refresh(struct sql *s, struct err *e);

/* What was left out and why; "" nothing. */
const char *sql_note(const struct sql *s);

/* What now() is; NAN: the clock. For recordings and dead targets, whose time stands still. */
void sql_set_now(struct sql *s, double now);

/* The time of the newest row of any target, seconds since the epoch; NAN without any. */
double sql_newest(struct sql *s);

struct sql_column_info {
    const char *name, *unit, *help; /* unit and help: "" none */
    enum ring_type type;
};

struct sql_table_info {
    const char *name;  /* as in a query: "python.samples" */
    const char *alias; /* "" none */
    const char *help;
    enum ring_cost cost;
    double retention_s;
    uint64_t rows, bytes;                  /* of all targets; 0 for those made when they are read */
    double oldest, newest;                 /* seconds since the epoch; NAN unknown or without a time */
    const struct sql_column_info *columns; /* after rank, host, pid */
    size_t n_columns;
};

/* Tables in the order of their names. Pointers live until the next sql_add_target or sql_refresh. */
size_t sql_table_count(const struct sql *s);
void sql_table_info(struct sql *s, size_t i, struct sql_table_info *out);

/* ---- queries ---- */

/* A name with a colon, and the number that it stands for. */
struct sql_named {
    const char *name;
    double value;
};

struct sql_query {
    uint64_t max_rows;             /* 0: no limit */
    double timeout_s;              /* 0: no limit */
    const struct sql_named *named; /* values of names in the text, as ":from"; those of others are NULL */
    size_t n_named;
    const char *whole; /* what the text is the rest of, to say in errors where in it; NULL: it is all */
};

struct sql_error {
    long at; /* byte of the text (of the whole, if there is one); -1 unknown */
};

struct sql_result;

/* Begin the first statement of `text`. `*tail` (NULL: not wanted) is what follows it. NULL with the error, and its place in
 * `where` (may be NULL); NULL with ERR_OK when there is no statement left. */
struct sql_result *sql_begin(struct sql *s, const char *text, const struct sql_query *q, const char **tail,
                             struct sql_error *where, struct err *e);

/* The next row: 1; 0 at the end (see sql_result_truncated); -1 with the error. */
int sql_next(struct sql_result *r, struct err *e);
void sql_end(struct sql_result *r);

/* Time in which the reader of the rows kept the query waiting does not count against its timeout. */
void sql_extend(struct sql_result *r, uint64_t ns);

/* End the query that runs, from another thread or a signal handler. */
void sql_interrupt(struct sql *s);

enum sql_kind { SQL_NULL = 0, SQL_INTEGER, SQL_REAL, SQL_TEXT, SQL_BLOB };

size_t sql_result_columns(const struct sql_result *r);
const char *sql_result_name(const struct sql_result *r, size_t i);
const char *sql_result_type(const struct sql_result *r,
                            size_t i); /* "timestamp", "integer", ..; "" an expression */
enum sql_kind sql_result_kind(const struct sql_result *r, size_t i);
int64_t sql_result_int(const struct sql_result *r, size_t i);
double sql_result_real(const struct sql_result *r, size_t i);
const char *sql_result_text(const struct sql_result *r, size_t i,
                            size_t *len); /* NULL for SQL_NULL; until the next row */

bool sql_result_truncated(const struct sql_result *r); /* max_rows left some out */
uint64_t sql_result_rows(const struct sql_result *r);
uint64_t sql_result_lost(const struct sql_result *r); /* chunks that were overwritten while they were read */
double sql_result_elapsed_s(const struct sql_result *r);

/* Names of the functions that are ours, with a line of help each; ends with a NULL name. */
struct sql_function_info {
    const char *name, *arguments, *help;
};
const struct sql_function_info *sql_functions(void);

#endif
