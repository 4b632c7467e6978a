/* SPDX-License-Identifier: Apache-2.0 */
/* sql_rewrite: see sql_rewrite.h. Tokens are SQLite's (tokenize.c of SQLite, "SQL As Understood
 * By SQLite"). */
#include "store/sql/sql_rewrite.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SQL_NUMBER_MAX 40 /* bytes of a number in an interval */

/* ---- tokens ---- */

static bool sql_is_word(unsigned char c) { return isalnum(c) || c == '_' || c == '$' || c >= 0x80; }

/* Length of a literal that ends with `close`, doubled inside. */
static size_t sql_quoted(const char *s, size_t n, char close) {
    size_t i = 1;
    for (; i < n; i++)
        if (s[i] == close && !(i + 1 < n && s[i + 1] == close && close != ']'))
            return i + 1;
        else if (s[i] == close)
            i++;
    return n;
}

static size_t sql_space(const char *s, size_t n) {
    size_t i = 0;
    if (n >= 2 && s[0] == '-' && s[1] == '-') {
        while (i < n && s[i] != '\n')
            i++;
        return i;
    }
    if (n >= 2 && s[0] == '/' && s[1] == '*') {
        for (i = 2; i + 1 < n; i++)
            if (s[i] == '*' && s[i + 1] == '/')
                return i + 2;
        return n;
    }
    while (i < n && isspace((unsigned char)s[i]))
        i++;
    return i;
}

static size_t sql_number(const char *s, size_t n) {
    size_t i = 0;
    while (i < n && (isalnum((unsigned char)s[i]) || s[i] == '.' || s[i] == '_' ||
                     ((s[i] == '+' || s[i] == '-') && i > 0 && (s[i - 1] == 'e' || s[i - 1] == 'E') &&
                      !(n > 1 && (s[1] == 'x' || s[1] == 'X')))))
        i++;
    return i;
}

struct sql_token sql_token_next(const char *sql, size_t len, size_t at) {
    struct sql_token t = {.kind = SQL_TOKEN_END, .at = at, .len = 0};
    if (at >= len)
        return t;
    const char *s = sql + at;
    size_t n = len - at, space = sql_space(s, n);
    if (space > 0)
        return (struct sql_token){SQL_TOKEN_SPACE, at, space};
    unsigned char c = (unsigned char)s[0];
    if (c == '\'')
        return (struct sql_token){SQL_TOKEN_STRING, at, sql_quoted(s, n, '\'')};
    if (c == '"' || c == '`')
        return (struct sql_token){SQL_TOKEN_NAME, at, sql_quoted(s, n, (char)c)};
    if (c == '[')
        return (struct sql_token){SQL_TOKEN_NAME, at, sql_quoted(s, n, ']')};
    if (isdigit(c) || (c == '.' && n > 1 && isdigit((unsigned char)s[1])))
        return (struct sql_token){SQL_TOKEN_NUMBER, at, sql_number(s, n)};
    if (!sql_is_word(c))
        return (struct sql_token){SQL_TOKEN_OTHER, at, 1};
    while (t.len < n && sql_is_word((unsigned char)s[t.len]))
        t.len++;
    t.kind = SQL_TOKEN_WORD;
    return t;
}

/* ---- intervals ---- */

static const struct sql_unit {
    const char *name; /* without the s of the plural */
    double seconds;
} sql_units[] = {
    {"us", 1e-6},       {"microsecond", 1e-6}, {"ms", 1e-3},    {"millisecond", 1e-3}, {"s", 1},
    {"sec", 1},         {"second", 1},         {"m", 60},       {"min", 60},           {"minute", 60},
    {"h", 3600},        {"hr", 3600},          {"hour", 3600},  {"d", 86400},          {"day", 86400},
    {"w", 604800},      {"week", 604800},      {"mon", 2592e3}, {"month", 2592e3},     {"y", 31557600},
    {"year", 31557600},
};

/* Seconds of one such unit; 0 for an unknown name. */
static double sql_unit_seconds(const char *s, size_t n) {
    for (size_t i = 0; i < sizeof sql_units / sizeof sql_units[0]; i++) {
        size_t len = strlen(sql_units[i].name);
        bool plural = n == len + 1 && len > 1 && (s[len] == 's' || s[len] == 'S');
        if ((n == len || plural) && strncasecmp(s, sql_units[i].name, len) == 0)
            return sql_units[i].seconds;
    }
    return 0;
}

static size_t sql_skip_space(const char *s, size_t n, size_t i) {
    while (i < n && isspace((unsigned char)s[i]))
        i++;
    return i;
}

/* Parse a number at `*i`. Returns whether there was one. */
static bool sql_take_number(const char *s, size_t n, size_t *i, double *out) {
    char buf[SQL_NUMBER_MAX];
    size_t len = 0;
    while (*i + len < n && len + 1 < sizeof buf &&
           (isdigit((unsigned char)s[*i + len]) || s[*i + len] == '.' ||
            (len == 0 && (s[*i] == '-' || s[*i] == '+')))) {
        buf[len] = s[*i + len];
        len++;
    }
    buf[len] = '\0';
    char *end;
    *out = strtod(buf, &end);
    *i += len;
    return len > 0 && *end == '\0' && isfinite(*out);
}

/* Parse "[-]H:M[:S]". Returns whether it is one. */
static bool sql_take_clock(const char *s, size_t n, double *seconds) {
    size_t i = sql_skip_space(s, n, 0), parts = 0;
    bool negative = i < n && s[i] == '-';
    double total = 0;
    i += negative;
    for (;; i++) {
        double part;
        if (i >= n || !isdigit((unsigned char)s[i]) || !sql_take_number(s, n, &i, &part) || parts == 3)
            return false;
        total = total * 60 + part;
        parts++;
        if (i >= n || s[i] != ':')
            break;
    }
    if (parts == 2)
        total *= 60;
    *seconds = negative ? -total : total;
    return parts >= 2 && sql_skip_space(s, n, i) == n;
}

int sql_interval_parse(const char *text, size_t len, double *seconds) {
    if (sql_take_clock(text, len, seconds))
        return 0;
    double total = 0;
    size_t parts = 0;
    for (size_t i = sql_skip_space(text, len, 0); i < len; i = sql_skip_space(text, len, i), parts++) {
        double number;
        if (!sql_take_number(text, len, &i, &number))
            return -1;
        i = sql_skip_space(text, len, i);
        size_t unit = i;
        while (i < len && isalpha((unsigned char)text[i]))
            i++;
        if (i == unit && (parts > 0 || i < len))
            return -1;
        double each = i == unit ? 1 : sql_unit_seconds(text + unit, i - unit);
        if (each == 0)
            return -1;
        total += number * each;
    }
    *seconds = total;
    return parts > 0 && isfinite(total) ? 0 : -1;
}

/* ---- rewriting ---- */

static struct sql_token sql_token_after_space(const char *sql, size_t len, size_t at) {
    struct sql_token t = sql_token_next(sql, len, at);
    while (t.kind == SQL_TOKEN_SPACE)
        t = sql_token_next(sql, len, t.at + t.len);
    return t;
}

static bool sql_word_is(const char *sql, struct sql_token t, const char *word) {
    return t.kind == SQL_TOKEN_WORD && t.len == strlen(word) && strncasecmp(sql + t.at, word, t.len) == 0;
}

/* Overwrite [from, to) with a number, keeping line breaks where they are. Returns whether it
 * fits. */
static bool sql_put_seconds(char *sql, size_t from, size_t to, double seconds) {
    char number[SQL_NUMBER_MAX];
    int n = snprintf(number, sizeof number, seconds < 0 ? "(%.15g)" : "%.15g", seconds);
    if (n < 0 || (size_t)n > to - from)
        return false;
    size_t used = 0;
    for (size_t i = from; i < to; i++) {
        /* A line break may be anywhere between the words; the number goes before the first. */
        if (used < (size_t)n)
            sql[i] = number[used++];
        else if (sql[i] != '\n')
            sql[i] = ' ';
    }
    return true;
}

/* Read the words after `interval`: the literal, and its end. 1 an interval, 0 something else, -1
 * an invalid one. */
static int sql_read_interval(const char *sql, size_t len, size_t after, size_t *end, double *seconds) {
    struct sql_token literal = sql_token_after_space(sql, len, after);
    bool string =
        literal.kind == SQL_TOKEN_STRING && literal.len >= 2 && sql[literal.at + literal.len - 1] == '\'';
    if (!string && literal.kind != SQL_TOKEN_NUMBER)
        return 0;
    *end = literal.at + literal.len;
    const char *text = sql + literal.at + (string ? 1 : 0);
    size_t n = literal.len - (string ? 2 : 0);
    struct sql_token unit = sql_token_after_space(sql, len, *end);
    double each = unit.kind == SQL_TOKEN_WORD ? sql_unit_seconds(sql + unit.at, unit.len) : 0;
    size_t i = sql_skip_space(text, n, 0);
    double number;
    /* interval '5' minute: the unit is outside the quotes. */
    if (each > 0 && sql_take_number(text, n, &i, &number) && sql_skip_space(text, n, i) == n) {
        *seconds = number * each;
        *end = unit.at + unit.len;
        return 1;
    }
    if (!string)
        return -1;
    return sql_interval_parse(text, n, seconds) == 0 ? 1 : -1;
}

int sql_rewrite(char *sql, size_t len, size_t *where, struct err *e) {
    struct sql_token before = {.kind = SQL_TOKEN_END}, t;
    for (size_t at = 0; (t = sql_token_next(sql, len, at)).kind != SQL_TOKEN_END; at = t.at + t.len) {
        if (t.kind == SQL_TOKEN_SPACE)
            continue;
        bool member = before.kind == SQL_TOKEN_OTHER && sql[before.at] == '.';
        before = t;
        if (member || !sql_word_is(sql, t, "interval"))
            continue;
        double seconds;
        size_t end;
        int found = sql_read_interval(sql, len, t.at + t.len, &end, &seconds);
        if (found == 0)
            continue;
        *where = t.at;
        if (found < 0)
            return err_set(e, ERR_FAILED,
                           "not an interval; write for example interval '5 minutes' or interval '1 hour'");
        if (!sql_put_seconds(sql, t.at, end, seconds))
            return err_set(e, ERR_FAILED, "the interval is too long");
        before = t = (struct sql_token){SQL_TOKEN_NUMBER, t.at, end - t.at};
    }
    return 0;
}
