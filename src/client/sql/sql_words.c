/* SPDX-License-Identifier: Apache-2.0 */
/* sql_words: see sql_words.h. The words are those of "SQL As Understood By SQLite" that a query
 * can use. */
#include "client/sql/sql_words.h"

#include <string.h>
#include <strings.h>

#include "store/sql/sql.h"

const char *const sql_keywords[] = {
    "ALL",     "AND",       "AS",       "ASC",     "BETWEEN", "BY",      "CASE",      "CAST",
    "COLLATE", "CREATE",    "CROSS",    "CURRENT", "DELETE",  "DESC",    "DISTINCT",  "DROP",
    "ELSE",    "END",       "EXCEPT",   "EXISTS",  "EXPLAIN", "FILTER",  "FIRST",     "FOLLOWING",
    "FROM",    "FULL",      "GLOB",     "GROUP",   "HAVING",  "IF",      "IN",        "INNER",
    "INSERT",  "INTERSECT", "INTERVAL", "INTO",    "IS",      "ISNULL",  "JOIN",      "LAST",
    "LEFT",    "LIKE",      "LIMIT",    "NATURAL", "NOT",     "NOTNULL", "NULL",      "NULLS",
    "OFFSET",  "ON",        "OR",       "ORDER",   "OUTER",   "OVER",    "PARTITION", "PRECEDING",
    "RANGE",   "RECURSIVE", "RIGHT",    "ROWS",    "SELECT",  "SET",     "TABLE",     "TEMP",
    "THEN",    "UNBOUNDED", "UNION",    "UPDATE",  "USING",   "VALUES",  "VIEW",      "WHEN",
    "WHERE",   "WINDOW",    "WITH",     NULL,
};

const struct sql_builtin sql_builtins[] = {
    {"abs", "(x)", "without its sign"},
    {"avg", "(x)", "mean of the values; an aggregate"},
    {"coalesce", "(a, b, ...)", "the first that is not NULL"},
    {"count", "(x)", "how many are not NULL; count(*) rows; an aggregate"},
    {"date", "(t, 'unixepoch')", "day of a time, as text"},
    {"datetime", "(t, 'unixepoch')", "day and time, as text"},
    {"dense_rank", "()", "place in the window, without gaps"},
    {"first_value", "(x)", "of the first row of the window"},
    {"format", "(text, ...)", "text with values in it, as printf"},
    {"group_concat", "(x, between)", "all values as one text; an aggregate"},
    {"ifnull", "(a, b)", "a, or b when a is NULL"},
    {"iif", "(condition, a, b)", "a if it is so, else b"},
    {"instr", "(text, part)", "place of a part in a text, from 1; 0 none"},
    {"lag", "(x, n)", "x of the row n before in the window"},
    {"last_value", "(x)", "of the last row of the window"},
    {"lead", "(x, n)", "x of the row n after in the window"},
    {"length", "(text)", "characters of a text"},
    {"lower", "(text)", "in small letters"},
    {"max", "(x)", "the largest; an aggregate"},
    {"min", "(x)", "the smallest; an aggregate"},
    {"ntile", "(n)", "part of the window, 1 to n"},
    {"nullif", "(a, b)", "NULL if both are equal, else a"},
    {"rank", "()", "place in the window"},
    {"replace", "(text, what, by)", "a text with parts replaced"},
    {"round", "(x, digits)", "rounded"},
    {"row_number", "()", "number of the row in the window"},
    {"strftime", "(format, t, 'unixepoch')", "a time as text"},
    {"substr", "(text, from, n)", "part of a text, from 1"},
    {"sum", "(x)", "sum; NULL of nothing; an aggregate"},
    {"time", "(t, 'unixepoch')", "time of day, as text"},
    {"total", "(x)", "sum; 0.0 of nothing; an aggregate"},
    {"trim", "(text)", "without blanks around it"},
    {"typeof", "(x)", "null, integer, real, text or blob"},
    {"upper", "(text)", "in capitals"},
    {.name = NULL},
};

static bool sql_word_equals(const char *name, const char *word, size_t len) {
    return strlen(name) == len && strncasecmp(name, word, len) == 0;
}

bool sql_is_keyword(const char *word, size_t len) {
    for (size_t i = 0; sql_keywords[i]; i++)
        if (sql_word_equals(sql_keywords[i], word, len))
            return true;
    return false;
}

bool sql_is_function(const char *word, size_t len) {
    for (const struct sql_builtin *b = sql_builtins; b->name; b++)
        if (sql_word_equals(b->name, word, len))
            return true;
    for (const struct sql_function_info *f = sql_functions(); f->name; f++)
        if (sql_word_equals(f->name, word, len))
            return true;
    return false;
}
