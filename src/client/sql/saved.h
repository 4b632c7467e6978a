/* SPDX-License-Identifier: Apache-2.0 */
/*
 * saved: queries that are often of use. One row is one query: its name, the question it answers, its text.
 *
 * Those of the user are files NAME.sql in a folder, to be edited, copied and given away like any other; their first line, if it
 * is a comment, is the question. What is no such file is passed over.
 */
#ifndef CLIENT_SQL_SAVED_H
#define CLIENT_SQL_SAVED_H

#include "base/err.h"
#include "client/sql/result.h"

#define SAVED_MAX_FILES 200
#define SAVED_MAX_BYTES ((size_t)64 * 1024) /* of one */

struct saved_query {
    const char *name;
    const char *answers; /* the question, one line */
    const char *sql;
};

/* Ends with a NULL name. */
extern const struct saved_query saved_queries[];

/* $XDG_CONFIG_HOME/probing-top/queries, else ~/.config/...; "" when neither is known. */
void saved_default_dir(char *buf, size_t cap);

/* A row a query: name, question, text; those of the folder first ("" none), by their names. NULL: out of memory. */
struct result *saved_list(const char *dir);

/* Keep a query under a name, in place of one that has it; makes the folder. 0, or -1 with the error. */
int saved_write(const char *dir, const char *name, const char *sql, struct err *e);

#endif
