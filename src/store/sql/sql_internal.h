/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sql_internal: shared by the files of src/store/sql/: the session, its targets and tables, and
 * rows in memory.
 *
 * A table is a list of sources, one per target: a ring file, or a provider. What a query reads
 * (chunks, provider's rows, indexes) is read once and kept until the query ends, so all parts of
 * it see the same moment.
 */
#ifndef STORE_SQL_SQL_INTERNAL_H
#define STORE_SQL_SQL_INTERNAL_H

#include <sqlite3.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "store/ring/ring_reader.h"
#include "store/sql/sql.h"

#define SQL_RANK 0 /* columns that every table has */
#define SQL_HOST 1
#define SQL_PID 2
#define SQL_COMMON 3

#define SQL_INDEXES 4 /* of a table */
#define SQL_SINK_BYTES ((size_t)256 * 1024 * 1024)

#define SQL_RANKS 4096 /* of a set that a provider is given */

/* A provider's rows, for one query. They stay as they are: where more are needed, others replace them, while
 * cursors go on with these. */
struct sql_rows {
    unsigned refs;
    union ring_value *values; /* columns of the definition, row after row */
    size_t n, n_columns, cap;
    uint64_t columns; /* the requested ones */
    uint64_t query;
    unsigned scans; /* how often the provider was asked in this query */
    struct sql_wanted wanted;
    struct arena text; /* of the values, and of `wanted` */
    /* the rows by the value of an integer column, as in sql_index.c */
    int hashed; /* the column of the definition; -1 none */
    uint32_t *slots, *next;
    uint64_t mask;
};

struct sql_target_state {
    uint32_t index;
    int64_t pid, rank;
    char *host, *ring_dir;
    uid_t owner;
    bool is_recorded;
    const struct sql_provider *providers;
    size_t n_providers;
};

struct sql_source {
    struct sql_target_state *target;
    struct ring_reader *reader; /* NULL: a provider */
    ino_t inode;                /* of the file, to notice that it was made again */
    const struct sql_provider *provider;
    int map[RING_MAX_COLUMNS]; /* column of the table -> of the file or definition; -1 none */
    int common[SQL_COMMON];    /* the same for rank, host and pid; -1: the target's */
    uint64_t query;            /* the query that the chunks belong to */
    struct sql_rows *rows;     /* of the newest scan; NULL none */
};

/* Position of a row in a table. */
struct sql_place {
    uint32_t source, chunk, row;
};

struct sql_index; /* rows by the value of one column; sql_index.c */

struct sql_table {
    char schema[RING_MAX_NAME]; /* "" main */
    char name[RING_MAX_NAME];
    char full[2 * RING_MAX_NAME];
    char alias[RING_MAX_NAME];
    char *help;
    enum ring_cost cost;
    double retention_s;
    struct sql_column_info *columns; /* strings owned */
    size_t n_columns;
    struct sql_source *sources;
    size_t n_sources;
    bool changed; /* to be declared to SQLite */
    bool absent;  /* SQLite has refused it */
    bool known;   /* exists without a source too */
    bool symbols; /* it is python.frames */
    /* of one query */
    uint64_t query;
    struct sql_index *indexes[SQL_INDEXES];
    uint8_t lookups[RING_MAX_COLUMNS]; /* by value of that column; 2: two or more */
};

/* A statement that is not in use, for the next query with its text. */
struct sql_kept {
    char *key; /* the caller's text */
    sqlite3_stmt *stmt;
};

struct sql {
    sqlite3 *db;
    struct sql_target_state **targets;
    size_t n_targets;
    struct sql_table **tables;
    size_t n_tables;
    uint64_t query; /* number of the query, from 1 */
    double fixed_now, now;
    bool guarded; /* the authoriser is on */
    char denied[160];
    char failure[512]; /* of a source, in this query */
    char note[512];
    atomic_bool interrupted;
    uint64_t deadline_ns; /* monotonic; 0 none */
    uint64_t lost;
    struct sql_fold *fold;
    struct sql_result *running;
    const struct sql_part *part; /* of the query; NULL */
    const struct sql_table *part_of;
    struct sql_kept *kept; /* statements for queries that come again, the one used last at the end */
    size_t n_kept;
    void (*demangle)(const char *symbol, char *out, size_t cap); /* NULL: names stay unchanged */
};

/* sql_vtab.c: register the module; declare changed tables to SQLite. 0 or -1. */
int sql_vtab_register(struct sql *s, struct err *e);
int sql_vtab_declare(struct sql *s, struct sql_table *t, struct err *e);

/* sql_value.c: a column of every table; a cell of a ring; a value of a provider's definition.
 * `id`: a RING_ID. */
void sql_put_common(sqlite3_context *x, const struct sql_target_state *t, int column);
void sql_put_cell(sqlite3_context *x, const struct sql_target_state *t, bool id, const struct ring_cell *c);
/* The same for a function's name in python.frames. `out` has room for RING_MAX_TEXT + 1. */
void sql_put_symbol(const struct sql *s, sqlite3_context *x, const struct ring_cell *c);
void sql_demangle(const struct sql *s, const struct ring_cell *c, char *out);
void sql_put_value(sqlite3_context *x, const struct sql_target_state *t, const struct ring_column_def *def,
                   const union ring_value *v);

/* sql_source.c */
int sql_source_refresh(struct sql *s, struct sql_source *src);
/* The provider's rows with these columns of the table, owned by the caller (sql_rows_unref). `w`: which ones
 * are needed, its column of the definition. NULL with s->failure. */
struct sql_rows *sql_source_scan(struct sql *s, struct sql_source *src, uint64_t columns,
                                 const struct sql_wanted *w);
void sql_rows_unref(struct sql_rows *r); /* NULL is allowed */

/* The first row with that value in an integer column of the definition, or the one after a row, whose column is the
 * same; UINT32_MAX: there is none. */
uint32_t sql_rows_first(struct sql_rows *r, int column, int64_t value);
uint32_t sql_rows_after(const struct sql_rows *r, uint32_t row, int column, int64_t value);
void sql_source_fini(struct sql_source *src);
uint64_t sql_source_columns(const struct sql_source *src, uint64_t of_table);

/* sql_index.c: drop the table's data of an earlier query. */
void sql_table_begin(struct sql *s, struct sql_table *t);

/* The rows of all ring sources of the table, by an integer column of the table (from 0, without
 * the common ones). NULL without memory, or if the table has its maximum of indexes. */
struct sql_index *sql_index_get(struct sql *s, struct sql_table *t, int column);
void sql_index_free(struct sql_index *x);
/* The first row with that value, or the one after a row: its number, UINT32_MAX if there is
 * none. */
uint32_t sql_index_first(const struct sql_index *x, int64_t value);
uint32_t sql_index_after(const struct sql_index *x, uint32_t number);
/* A row's block, its index there, and its source. */
const struct ring_block *sql_index_row(const struct sql_index *x, uint32_t number, uint32_t *row,
                                       uint32_t *source);

/* The value of an integer cell in a query: ids of different targets differ. */
int64_t sql_scoped_id(const struct sql_target_state *t, int64_t id);

/* sql_result.c: finalize the statements that are kept. */
void sql_drop_kept(struct sql *s);

/* sql_function.c, sql_aggregate.c, sql_fold.c: add our functions. 0 or -1. */
int sql_function_register(struct sql *s, struct err *e);
int sql_aggregate_register(struct sql *s, struct err *e);
int sql_fold_register(struct sql *s, struct err *e);
void sql_fold_free(struct sql_fold *f);

/* sql_temp.c: temporary files in memory. 0 or -1. */
#define SQL_TEMP_VFS "probing-temp"
int sql_temp_register(void);

/* sql_guard.c: permissions and time limit of a query. */
void sql_guard_install(struct sql *s);
bool sql_cancelled(const struct sql *s);

/* Find a table by schema and name. */
struct sql_table *sql_table_find(const struct sql *s, const char *full);

int sql_db_error(struct sql *s, struct err *e, const char *what);

#endif
