/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sql_rewrite: turns interval literals into what SQLite understands.
 *
 * A tokeniser, so that nothing within strings, names and comments is touched. `interval '5
 * minutes'`, `interval '5' minute` and `interval 5 minute` become seconds. The text keeps its
 * length and its lines, so positions in error messages are right.
 */
#ifndef STORE_SQL_SQL_REWRITE_H
#define STORE_SQL_SQL_REWRITE_H

#include <stddef.h>

#include "base/err.h"

enum sql_token_kind {
    SQL_TOKEN_END = 0,
    SQL_TOKEN_SPACE, /* white space and comments */
    SQL_TOKEN_WORD,  /* keyword or name */
    SQL_TOKEN_NAME,  /* "name", `name`, [name] */
    SQL_TOKEN_STRING,
    SQL_TOKEN_NUMBER,
    SQL_TOKEN_OTHER, /* one character */
};

struct sql_token {
    enum sql_token_kind kind;
    size_t at, len;
};

/* The token at byte `at` of `sql`, which has `len` bytes. An unterminated one goes to the end. */
struct sql_token sql_token_next(const char *sql, size_t len, size_t at);

/* Rewrite `sql` (`len` bytes) in place. 0, or -1 with the error and its position in `*where`. */
int sql_rewrite(char *sql, size_t len, size_t *where, struct err *e);

/* Seconds of "5 minutes", "1 hour 30 min", "00:05:00", "2d"; a bare number is seconds. 0, or -1
 * if it is not an interval. */
int sql_interval_parse(const char *text, size_t len, double *seconds);

#endif
