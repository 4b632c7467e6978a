/* SPDX-License-Identifier: Apache-2.0 */
/*
 * querier: runs queries, makes verdicts and writes exports on a thread of its own, over a database
 * of its own; host_query.h says which screens share one.
 *
 * The loop never waits: it asks, a descriptor becomes readable, it takes the answer. One thing at a
 * time. The database is opened, used and closed by that thread alone; a cancel comes from the loop.
 * Temporary tables live as long as the querier, for all whose queries it runs. A thread that does
 * not end in time when the querier is freed is abandoned.
 */
#ifndef TUI_WORKERS_QUERIER_H
#define TUI_WORKERS_QUERIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "client/sql/catalog.h"
#include "client/repl/magic.h"
#include "client/sql/result.h"
#include "client/session/session.h"
#include "client/verdict/verdict.h"

#define QUERIER_MAX_ROWS ((size_t)100000)
#define QUERIER_MAX_BYTES ((size_t)64 * 1024 * 1024)

enum querier_kind { QUERIER_LIST_TABLES = 0, QUERIER_RUN, QUERIER_EXPORT, QUERIER_JUDGE, QUERIER_MAGIC };

/* An answer. */
struct querier_answer {
    enum querier_kind kind;
    struct result *rows; /* of the last statement that has any; NULL: none. Owned */
    struct err error;    /* ERR_OK: no error */
    long error_at;       /* byte of the text; -1: unknown */
    double elapsed_s;
    uint64_t lost;            /* chunks that were overwritten while they were read */
    bool truncated;           /* there were more rows */
    bool cancelled;           /* by querier_cancel */
    size_t statements;        /* that have run */
    size_t exported;          /* rows, of QUERIER_EXPORT */
    bool is_past;             /* the target has ended: now() is its last moment */
    char note[640];           /* what cannot be seen, and why; "": nothing */
    struct catalog *catalog;  /* the tables; NULL: unknown. Owned */
    struct strbuf text;       /* of QUERIER_MAGIC */
    struct verdicts verdicts; /* of QUERIER_JUDGE, the worst first. Owned */
};

/* Free what an answer owns. */
void querier_answer_fini(struct querier_answer *a);

/* A result as it is shown, for a file. */
struct querier_export {
    struct result *rows; /* one reference, owned */
    uint32_t *order;     /* numbers of the rows, owned; NULL: all, in the order of the result */
    size_t n_order;
    uint8_t *hidden; /* which columns are left out; owned, NULL: none */
    char format[16];
    char path[512];
};

void querier_export_fini(struct querier_export *x);

/* The format that the ending of a file's name means: "csv" for "a.csv"; NULL with ERR_USAGE: there
 * is none. */
const char *querier_export_format(const char *path, struct err *e);

struct querier;

/* For the target at `addr`, which is copied; NULL: none, and all tables are empty. NULL with the
 * error. */
struct querier *querier_new(const struct target_address *addr, struct err *e);

/* For a job that a database has (client/fleet/job_database.h). NULL with the error. */
struct querier *querier_new_job(const char *target, struct err *e);
void querier_free(struct querier *q);

/* Readable when there is an answer, until querier_take. */
int querier_fd(const struct querier *q);

/* Something was requested and its answer not taken yet: nothing else can be requested. */
bool querier_is_busy(const struct querier *q);

/* The values of ":from" and ":to" in later queries, seconds since the epoch; NAN, the default, is
 * NULL. Not while one is running. */
void querier_set_window(struct querier *q, double from_s, double to_s);

/* List the tables; run all statements of a text; write a result (*x is moved out in any case). 0,
 * or -1 with the error. */
int querier_list_tables(struct querier *q, struct err *e);
int querier_run(struct querier *q, const char *text, struct err *e);
int querier_write(struct querier *q, struct querier_export *x, struct err *e);

/* Make the verdicts about the target (client/verdict/verdict.h). 0, or -1 with the error. */
int querier_judge(struct querier *q, struct err *e);

/* Run a line of client/repl/magic.h that is a query (magic_is_query), for `cols` columns; *m is moved
 * out in any case. 0, or -1 with the error. */
int querier_do(struct querier *q, struct magic *m, int cols, struct err *e);

/* End what is running; its answer arrives all the same, soon. */
void querier_cancel(struct querier *q);

/* The answer, now the caller's. False: none yet. */
bool querier_take(struct querier *q, struct querier_answer *out);

#endif
