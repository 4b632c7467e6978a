/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sql: SQL over the tables of one or many targets.
 *
 * SQLite's virtual tables over ring files and over answers of targets. Every table has the
 * columns rank, host, pid first, and is the union over all targets. Read-only except for
 * temporary tables; bounded in memory; one query at a time, on any one thread; only
 * sql_interrupt may be called during a query, from another thread. Client only.
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

/* Less than that, from here on. */
void sql_limit_memory(int64_t bytes);

struct sql;

/* ---- tables that are made when they are read ---- */

struct sql_sink;

/* Emit a row: a value for each column of the provider's definition; strings are copied. 0, or -1
 * when there are too many rows, and the scan should end. */
int sql_sink_put(struct sql_sink *sink, const union ring_value *row);

/* True if the scan should end early: interrupted, or out of time. To be called while waiting. */
bool sql_sink_cancelled(const struct sql_sink *sink);

/* The scanned table. */
const struct ring_table_def *sql_sink_table(const struct sql_sink *sink);

/* Which rows a query needs, as far as its conditions show that. All of it is optional: a scan may
 * emit other rows, too, which SQLite leaves out. What the provider does not use is not set. */
struct sql_wanted {
    /* bounds of the definition's RING_TIMESTAMP, both inclusive, in microseconds since the epoch; INT64_MIN
     * and INT64_MAX: none */
    int64_t min_us, max_us;
    /* bounds of the rank, both inclusive; INT64_MIN and INT64_MAX: none. `ranks`: it is one of these,
     * ascending; NULL: any within the bounds */
    int64_t min_rank, max_rank;
    const int64_t *ranks;
    size_t n_ranks;
    /* a column of the definition that equals a value; -1 none */
    int equal_column;
    int64_t equal;
    const char *equal_text; /* of a text or an enum; NULL: it equals the number */
    /* so many rows suffice, if all of the above is applied exactly; 0: all are needed */
    uint64_t limit;
};

/* Valid until the scan ends. */
const struct sql_wanted *sql_sink_wanted(const struct sql_sink *sink);

/* The provider's key; NULL none. */
const char *sql_sink_key_name(const struct sql_sink *sink);

enum sql_uses { SQL_USES_TIME = 1, SQL_USES_RANK = 2, SQL_USES_EQUAL = 4, SQL_USES_LIMIT = 8 };

struct sql_provider {
    /* its columns rank, host and pid, if it has any, are those of each row; otherwise the target's */
    const struct ring_table_def *def;
    /* an integer column: the rows are those of one value of it, which the scan is given as
     * sql_wanted.equal; NULL none */
    const char *key;
    /* the parts of struct sql_wanted that its scan is given, of enum sql_uses; those that it would ignore only
     * make it scan again */
    unsigned uses;
    /* Emit all rows as they are now. `columns`: bit i for column i of the definition. Called
     * once per query, and again where the query needs rows that what was wanted before left out. 0, or -1
     * with the error, which ends the query. */
    int (*scan)(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e);
    void *arg;
};

/* ---- targets ---- */

struct sql_target {
    int64_t pid;          /* RING_INT_NULL: taken from the ring files */
    int64_t rank;         /* RING_INT_NULL unknown: taken from the ring files */
    const char *host;     /* NULL: taken from the ring files */
    const char *ring_dir; /* folder with ring files; NULL none */
    uid_t owner;          /* required owner of the files; RING_ANY_UID */
    /* its files are of the past, and may be of tables that are otherwise made when they are read; such files of a
     * living process are left out: it would write in the name of this program */
    bool is_recorded;
    /* open ring files (of copies: ring_replica_open), owned by the session from here */
    const int *ring_fds;
    size_t n_ring_fds;
    const struct sql_provider *providers; /* must outlive the session */
    size_t n_providers;
};

/* A session without targets: the tables that are always collected exist, and are empty. NULL
 * with the error. */
struct sql *sql_open(struct err *e);
void sql_close(struct sql *s);

/* Functions of python.frames may have the linker's names: `demangle` writes the readable form of
 * one to `out`, cut to `cap`. */
void sql_set_demangle(struct sql *s, void (*demangle)(const char *symbol, char *out, size_t cap));

/* Add a target. Unreadable files are left out; sql_note says why. 0, or -1 with the error. */
int sql_add_target(struct sql *s, const struct sql_target *t, struct err *e);

size_t sql_target_count(const struct sql *s);

/* The pid of a target's rows, from its files if it was not given; RING_INT_NULL unknown. */
int64_t sql_target_pid(const struct sql *s, size_t target);
int64_t sql_target_rank(const struct sql *s, size_t target);

/* Set the present folder of the files of target `target` (from 0, in the order of adding). 0, or
 * -1 with the error. */
int sql_set_ring_dir(struct sql *s, size_t target, const char *ring_dir, uid_t owner, struct err *e);

/* Add open ring files of target `target`, owned by the session from here; one of an existing
 * table replaces its source. 0, or -1 with the error. */
int sql_add_files(struct sql *s, size_t target, const int *fds, size_t n, struct err *e);

/* True if the target has a readable file. */
bool sql_has_files(const struct sql *s, size_t target);

/* Look for new ring files, and for those that were made again. 0, or -1 with the error. */
int sql_refresh(struct sql *s, struct err *e);

/* What was left out and why; "" nothing. */
const char *sql_note(const struct sql *s);

/* Set the value of now(); NAN: the clock. For recordings and dead targets, whose time stands
 * still. */
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
    uint64_t rows, bytes; /* of all targets; 0 for those made when they are read */
    /* seconds since the epoch; NAN unknown or without a time */
    double oldest, newest;
    const struct sql_column_info *columns; /* after rank, host, pid */
    size_t n_columns;
    size_t n_sources; /* at most one of each target */
    const char *key;  /* the column whose value a query must name; NULL none */
};

/* Where the rows of a table come from that have this number in the upper bits of their rowid. */
struct sql_source_info {
    size_t target;
    bool has_file;  /* else they are made when they are read */
    double made_at; /* the file, seconds since the epoch: another one counts from 0 again */
};

#define SQL_ROW_BITS 48 /* of a rowid: the row's number within its source; above it the source's */

/* Tables in the order of their names. Pointers are valid until the next sql_add_target or
 * sql_refresh. */
size_t sql_table_count(const struct sql *s);
bool sql_has_table(const struct sql *s, const char *name);
const char *sql_table_name(const struct sql *s, size_t i);
void sql_table_info(struct sql *s, size_t i, struct sql_table_info *out);

/* Of a table's source, below its n_sources. False: there is none. */
bool sql_source_info(const struct sql *s, const char *table, size_t source, struct sql_source_info *out);

/* ---- queries ---- */

/* A part of one table, which a query reads of it. */
struct sql_part {
    const char *table; /* its full name */
    long source;       /* only that one; -1: all */
    /* of files: rows with a number below that of their source are left out, without being read; those of further
     * sources are all read */
    const uint64_t *next;
    size_t n;
};

/* A parameter of a query: a name with a colon, and its number. */
struct sql_named {
    const char *name;
    double value;
};

struct sql_query {
    uint64_t max_rows; /* 0: no limit */
    double timeout_s;  /* 0: no limit */
    /* values of parameters in the text, such as ":from"; all others are NULL */
    const struct sql_named *named;
    size_t n_named;
    /* the text that this one is the rest of, for positions in errors; NULL: it is complete */
    const char *whole;
    const struct sql_part *part; /* until the query ends; NULL: all tables are read whole */
    /* this text comes again and again: it stays prepared, which takes as long as a short query */
    bool again;
};

struct sql_error {
    long at; /* byte of the text (of the whole, if given); -1 unknown */
};

struct sql_result;

/* Start the first statement of `text`. `*tail` (NULL: not wanted) is the text after it. NULL
 * with the error, and its position in `where` (may be NULL); NULL with ERR_OK if there is no
 * statement left. */
struct sql_result *sql_begin(struct sql *s, const char *text, const struct sql_query *q, const char **tail,
                             struct sql_error *where, struct err *e);

/* The next row: 1; 0 at the end (see sql_result_truncated); -1 with the error. */
int sql_next(struct sql_result *r, struct err *e);
void sql_end(struct sql_result *r);

/* Run a statement without rows. 0 or -1. */
int sql_execute(struct sql *s, const char *text);

/* Time in which the reader of the rows kept the query waiting does not count against its
 * timeout. */
void sql_extend(struct sql_result *r, uint64_t ns);

/* End the running query, from another thread or a signal handler. */
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
/* chunks that were overwritten while they were read */
uint64_t sql_result_lost(const struct sql_result *r);
double sql_result_elapsed_s(const struct sql_result *r);

/* Names of our functions, with a line of help each; ends with a NULL name. */
struct sql_function_info {
    const char *name, *arguments, *help;
};
const struct sql_function_info *sql_functions(void);

/* text LIKE pattern ESCAPE '\\' */
bool sql_is_like(const char *text, const char *pattern);

#endif
