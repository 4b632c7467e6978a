/* SPDX-License-Identifier: Apache-2.0 */
/* saved: queries that are often of use. One row is one query: its name, the question it answers, its text. */
#ifndef CLIENT_SAVED_H
#define CLIENT_SAVED_H

#include "client/rowset.h"

struct saved_query {
    const char *name;
    const char *answers; /* the question, one line */
    const char *sql;
};

/* Ends with a NULL name. */
extern const struct saved_query saved_queries[];

/* A row a query: name, question, text. NULL: out of memory. */
struct rowset *saved_list(void);

#endif
