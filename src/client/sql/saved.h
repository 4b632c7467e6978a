/* SPDX-License-Identifier: Apache-2.0 */
/*
 * saved: frequently used queries. One row is one query: its name, the question it answers, its
 * text.
 *
 * The user's queries are files NAME.sql in a folder, which can be edited, copied and shared like
 * any other; their first line, if it is a comment, is the question. Other files are ignored.
 */
#ifndef CLIENT_SQL_SAVED_H
#define CLIENT_SQL_SAVED_H

#include "base/err.h"
#include "client/sql/result.h"

#define SAVED_MAX_FILES 200
#define SAVED_MAX_BYTES ((size_t)64 * 1024) /* of one query */

struct saved_query {
    const char *name;
    const char *answers; /* the question, one line */
    const char *sql;
};

/* Ends with a NULL name. */
extern const struct saved_query saved_queries[];

/* $XDG_CONFIG_HOME/probing-top/queries, otherwise ~/.config/...; "" if neither is known. */
void saved_default_dir(char *buf, size_t cap);

/* One row a query: name, question, text; those of the folder first ("" none), sorted by name.
 * NULL: out of memory. */
struct result *saved_list(const char *dir);

/* Save a query under a name, replacing one with the same name; makes the folder. 0, or -1 with
 * the error. */
int saved_write(const char *dir, const char *name, const char *sql, struct err *e);

#endif
