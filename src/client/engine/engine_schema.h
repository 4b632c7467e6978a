/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_schema: the tables that a ClickHouse server keeps of the ranks of many jobs. One list of tables and
 * columns, from which CREATE TABLE, INSERT and SELECT are made.
 *
 *   python_steps, ...  one for each kept table of store/ring/tables.def, with its columns and names ('.' is '_')
 *   gpu_metrics        the GPUs of the ranks
 *   ranks              what each rank does, once a second (REPORT_RANK_FIELDS)
 *   states, groups     what a verdict is made of, while a rank may be stuck (REPORT_STATE_FIELDS,
 *                      REPORT_GROUP_FIELDS); rows of one reading of a host have the same ts
 *   hosts              a job on a host (REPORT_JOB_FIELDS), and its relay
 *   stacks             the frames of each stack, innermost first, once a day and job
 *   schema_version     which of these there are
 *
 * All but the last two begin with the columns of enum engine_common, which are also the sort key: a batch of rows
 * that is inserted again collapses (ReplacingMergeTree; SELECT ... FINAL sees each once). A row is known by its
 * process (rank, host, pid), by when its table was made (a process of the same number that was started again, and an
 * agent that was loaded again, have another one), and by its number in that table.
 * `timestamp` of a ring table and `taken_at` of ranks are ts.
 */
#ifndef CLIENT_ENGINE_ENGINE_SCHEMA_H
#define CLIENT_ENGINE_ENGINE_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "client/engine/engine_http.h"
#include "client/engine/row_binary.h"
#include "store/ring/ring_tables.h"

/* Raise it with each new table or column: a server with an older schema is refused then, until `probing cluster
 * init` has added what is missing. Nothing is ever removed or renamed. */
#define ENGINE_SCHEMA_VERSION 1

enum engine_common {
    ENGINE_DAY, /* UTC, of ts */
    ENGINE_JOB,
    ENGINE_RANK, /* -1: the row is not of a rank (hosts) */
    ENGINE_HOST,
    ENGINE_PID,
    ENGINE_CREATED_US, /* when its table was made, or the relay started; microseconds since the epoch */
    ENGINE_ROW,        /* its number there */
    ENGINE_TS,         /* seconds since the epoch, by the clock of its host */
    ENGINE_COMMON_COUNT
};

#define ENGINE_MAX_COLUMNS (ENGINE_COMMON_COUNT + RING_MAX_COLUMNS + 16)

/* Columns of hosts behind those of enum engine_common and REPORT_JOB_FIELDS: how the ranks are reached, the relay's
 * share of a core in percent, rows written and lost since it started, the age of the oldest row that is not written,
 * and by how much the clock of the host is ahead of the server's. */
enum engine_hosts {
    ENGINE_HOSTS_VIA,
    ENGINE_HOSTS_COST_PCT,
    ENGINE_HOSTS_WRITTEN,
    ENGINE_HOSTS_LOST,
    ENGINE_HOSTS_LAG_S,
    ENGINE_HOSTS_CLOCK_S,
    ENGINE_HOSTS_COUNT
};

/* Columns of stacks. */
enum engine_stacks {
    ENGINE_STACKS_DAY,
    ENGINE_STACKS_JOB,
    ENGINE_STACKS_STACK,
    ENGINE_STACKS_FUNC,
    ENGINE_STACKS_FILE,
    ENGINE_STACKS_LINE,
    ENGINE_STACKS_COUNT
};

struct engine_table {
    const char *name;
    const struct ring_table_def *ring; /* whose rows it has; NULL: none */
    const struct row_column *columns;  /* as they are written, the common ones first */
    size_t n;
    const char *alias; /* another name of ts; NULL none */
    /* Rows that come every second of each host: an old server gathers them (a table of its own, NAME_buffer, through
     * which they are written), and those of the last second are gone if it dies. */
    bool is_live;
    const char *order; /* the sort key */
};

/* All of them; ends with NULL. */
const struct engine_table *const *engine_tables(void);

/* By its name, or that of a ring table ("python.steps"). NULL. */
const struct engine_table *engine_table_find(const char *name);

/* Fill the common columns of a row; its day is that of `ts`. */
void engine_put_common(struct row_value *row, const char *job, int64_t rank, const char *host, int64_t pid,
                       uint64_t created_us, uint64_t number, double ts);

/* Fill the columns behind them with the values of a row of its ring table. */
void engine_put_ring(const struct engine_table *t, const union ring_value *values, struct row_value *row);

/* The day of a time, since the epoch, within what a Date holds. */
int64_t engine_day(double ts);

/* Append "INSERT INTO ... FORMAT RowBinary" for rows of all columns, for a server of that version
 * (engine_http_version). */
void engine_put_insert(struct strbuf *out, const struct engine_table *t, const char *database, int version);

/* Takes a statement. */
typedef int (*engine_statement_fn)(void *arg, const char *sql);

/* Give each statement that makes the schema where nothing is. `retention_days`: 0 keeps all. Stops where `give`
 * returns other than 0, and returns that. */
int engine_schema_each(const char *database, int version, int retention_days, engine_statement_fn give,
                       void *arg);

/* Make the schema on a server, or add what it lacks. Appends a line for each change to `notes`. `retention_days`: 0
 * leaves what there is. 0, or -1 with the error: among others, its schema is a newer one. */
int engine_schema_init(struct engine_http *h, int retention_days, struct strbuf *notes, struct err *e);

/* Check that a server has this schema, or a newer one. 0, or -1 with the error. */
int engine_schema_check(struct engine_http *h, struct err *e);

#endif
