/* SPDX-License-Identifier: Apache-2.0 */
/*
 * catalog: a copy of the list of tables, with their columns, that may be read while queries run
 * elsewhere.
 *
 * Made by the thread that owns the session, and constant after that.
 */
#ifndef CLIENT_SQL_CATALOG_H
#define CLIENT_SQL_CATALOG_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "client/sql/result.h"
#include "store/ring/ring.h"
#include "store/sql/sql.h"

struct catalog_column {
    const char *name, *unit, *help; /* unit and help: "" none */
    enum ring_type type;
};

struct catalog_table {
    const char *name, *alias, *help; /* alias: "" none */
    enum ring_cost cost;
    uint64_t rows, bytes;
    double oldest, newest; /* seconds since the epoch; NAN unknown */
    const struct catalog_column *columns;
    size_t n_columns; /* including rank, host and pid */
};

struct catalog {
    struct arena arena;
    struct catalog_table *tables; /* sorted by name */
    size_t n_tables;
};

/* The tables that always exist. NULL: out of memory. */
struct catalog *catalog_of_definitions(void);

/* The tables of a session. NULL: out of memory. */
struct catalog *catalog_of_session(struct sql *s);
void catalog_free(struct catalog *c);

/* The table of that name or alias, ignoring case; or NULL. `len` bytes of `name`. */
const struct catalog_table *catalog_find(const struct catalog *c, const char *name, size_t len);

/* One row a table; one row a column of a table. NULL: out of memory. */
struct result *catalog_list_tables(const struct catalog *c);
struct result *catalog_list_columns(const struct catalog_table *t);

#endif
