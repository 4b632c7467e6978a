/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fleet_tables: what a fleet knows as tables: rows for programs, and tables of SQL that are read as they
 * are then.
 *
 * A table is a row of fleet_tables.c: its columns, and who writes its rows.
 */
#ifndef CLIENT_FLEET_FLEET_TABLES_H
#define CLIENT_FLEET_FLEET_TABLES_H

#include "client/fleet/fleet.h"
#include "client/fleet/fleet_source.h"
#include "client/sql/result.h"
#include "store/sql/sql.h"

enum fleet_table {
    FLEET_TABLE_NODES,
    FLEET_TABLE_RANKS,
    FLEET_TABLE_STACKS,
    FLEET_TABLE_TREE,
    FLEET_TABLE_COUNT,
};

/* The rows of a table, `truncated` if not all fit. NULL: out of memory. */
struct result *fleet_table_rows(const struct fleet *f, enum fleet_table table);

/* All of them for SQL: each query reads them again, once the last time is a second ago. */
struct fleet_tables {
    struct fleet_source *source; /* the owner's; NULL: none of them can be read now */
    uint64_t read_ns;            /* when a round was last waited for; 0 never */
    struct fleet_table_source {
        struct fleet_tables *owner;
        enum fleet_table table;
    } sources[FLEET_TABLE_COUNT];
    struct sql_provider providers[FLEET_TABLE_COUNT];
};

void fleet_tables_init(struct fleet_tables *t, struct fleet_source *source);

/* True if a statement reads such a table, by its text. */
bool fleet_tables_is_read(const char *sql);

/* Append the frames of a stack that ends in a node, as fold() of SQL does: from the outermost inwards,
 * separated by ';'. */
void fleet_put_stack(const struct stack_classes *c, uint32_t node, struct strbuf *out);

#endif
