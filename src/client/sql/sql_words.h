/* SPDX-License-Identifier: Apache-2.0 */
/* sql_words: the words of SQL that a person types in a query, for colours and completion. Pure. */
#ifndef CLIENT_SQL_SQL_WORDS_H
#define CLIENT_SQL_SQL_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* Upper case, sorted; ends with NULL. */
extern const char *const sql_keywords[];

bool sql_is_keyword(const char *word, size_t len);

/* SQLite's own functions, sorted; ends with a NULL name. Ours are in sql_functions(). */
struct sql_builtin {
    const char *name, *arguments, *help;
};
extern const struct sql_builtin sql_builtins[];

/* True for the name of a function, of SQLite's or of ours. */
bool sql_is_function(const char *word, size_t len);

#endif
