/* SPDX-License-Identifier: Apache-2.0 */
/* sql_complete: see sql_complete.h. */
#include "client/sql/sql_complete.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "client/sql/sql_words.h"
#include "store/sql/sql_rewrite.h"

#define SQL_COMPLETE_BYTES ((size_t)256 * 1024)
#define SQL_COMPLETE_TABLES 16 /* of one statement */

/* A table named in the statement. */
struct sql_mention {
    const struct catalog_table *table;
    const char *alias; /* within the text; `alias_len` 0: none */
    size_t alias_len;
};

/* The context of the cursor. */
struct sql_context {
    const char *text;
    size_t len;
    size_t from;           /* of the word being typed; it ends at the cursor */
    const char *qualifier; /* "s" of "s.ti"; NULL none */
    size_t qualifier_len;
    const char *word; /* the typed part of the word itself */
    size_t word_len;
    bool begins; /* a statement begins here */
    /* within: a string or a comment, where nothing is completed */
    bool wants_table, after_table, within;
    struct sql_mention mentions[SQL_COMPLETE_TABLES];
    size_t n_mentions;
};

static bool sql_is_name_char(char c) {
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static bool sql_token_is(const char *text, struct sql_token t, const char *word) {
    return t.kind == SQL_TOKEN_WORD && t.len == strlen(word) && strncasecmp(text + t.at, word, t.len) == 0;
}

static bool sql_token_is_any(const char *text, struct sql_token t, const char *const *words) {
    for (; *words; words++)
        if (sql_token_is(text, t, *words))
            return true;
    return false;
}

static bool sql_token_is_char(const char *text, struct sql_token t, char c) {
    return t.kind == SQL_TOKEN_OTHER && text[t.at] == c;
}

static struct sql_token sql_solid_token(const char *text, size_t len, size_t at) {
    struct sql_token t = sql_token_next(text, len, at);
    while (t.kind == SQL_TOKEN_SPACE)
        t = sql_token_next(text, len, t.at + t.len);
    return t;
}

/* Find the word before the cursor, and the name before its dot. */
static void sql_find_word(struct sql_context *x, size_t cursor) {
    size_t from = cursor;
    while (from > 0 && sql_is_name_char(x->text[from - 1]))
        from--;
    x->from = from;
    x->word = x->text + from;
    x->word_len = cursor - from;
    if (from == 0 || x->text[from - 1] != '.')
        return;
    size_t name = from - 1;
    while (name > 0 && (sql_is_name_char(x->text[name - 1]) || x->text[name - 1] == '.'))
        name--;
    x->qualifier = x->text + name;
    x->qualifier_len = from - 1 - name;
}

/* Record the name at a token of a FROM clause: schema.table or table, and its alias. */
static void sql_read_mention(struct sql_context *x, const struct catalog *c, struct sql_token t) {
    size_t at = t.at, end = t.at + t.len;
    struct sql_token next = sql_token_next(x->text, x->len, end);
    if (sql_token_is_char(x->text, next, '.')) {
        struct sql_token name = sql_token_next(x->text, x->len, next.at + 1);
        if (name.kind == SQL_TOKEN_WORD)
            end = name.at + name.len;
    }
    struct sql_mention m = {.table = catalog_find(c, x->text + at, end - at)};
    next = sql_solid_token(x->text, x->len, end);
    if (sql_token_is(x->text, next, "AS"))
        next = sql_solid_token(x->text, x->len, next.at + next.len);
    /* it is being typed, and may become anything */
    bool typed = next.at + next.len == x->from + x->word_len;
    if (next.kind == SQL_TOKEN_WORD && !typed && !sql_is_keyword(x->text + next.at, next.len)) {
        m.alias = x->text + next.at;
        m.alias_len = next.len;
    }
    if (m.table && x->n_mentions < SQL_COMPLETE_TABLES)
        x->mentions[x->n_mentions++] = m;
}

/* Scan the tokens of one statement: its tables, and the token before the word. */
static void sql_read_statement(struct sql_context *x, const struct catalog *c, size_t begin) {
    static const char *const before_table[] = {"FROM", "JOIN", "INTO", "TABLE", "UPDATE", NULL};
    static const char *const after_from[] = {"WHERE",  "GROUP",  "ORDER", "HAVING", "LIMIT",
                                             "ON",     "USING",  "UNION", "SELECT", "INTERSECT",
                                             "EXCEPT", "WINDOW", "SET",   NULL};
    bool in_from = false, decided = false;
    struct sql_token last = {.kind = SQL_TOKEN_END}, t;
    size_t word_begin = x->qualifier ? (size_t)(x->qualifier - x->text) : x->from;
    for (size_t at = begin;; at = t.at + t.len) {
        t = sql_solid_token(x->text, x->len, at);
        bool ends = t.kind == SQL_TOKEN_END || sql_token_is_char(x->text, t, ';');
        bool wants = sql_token_is_any(x->text, last, before_table) ||
                     (in_from && sql_token_is_char(x->text, last, ','));
        if (!decided && (ends || t.at >= word_begin)) {
            decided = true;
            x->begins = last.kind == SQL_TOKEN_END;
            x->wants_table = wants;
            x->after_table = in_from && !wants && last.kind == SQL_TOKEN_WORD &&
                             !sql_is_keyword(x->text + last.at, last.len);
        }
        if (ends)
            return;
        if (sql_token_is_any(x->text, t, after_from))
            in_from = false;
        else if (wants && t.kind == SQL_TOKEN_WORD) {
            in_from = true;
            sql_read_mention(x, c, t);
        }
        last = t;
    }
}

/* Find the statement of the cursor, and whether the cursor is in a string or a comment. */
static void sql_find_context(struct sql_context *x, const struct catalog *c, size_t cursor) {
    size_t begin = 0;
    struct sql_token t;
    sql_find_word(x, cursor);
    for (size_t at = 0; (t = sql_token_next(x->text, x->len, at)).kind != SQL_TOKEN_END; at = t.at + t.len) {
        if (t.at >= cursor)
            break;
        bool inside = cursor < t.at + t.len || t.at + t.len == x->len;
        bool is_comment = t.kind == SQL_TOKEN_SPACE && (x->text[t.at] == '-' || x->text[t.at] == '/');
        if (t.kind == SQL_TOKEN_STRING || t.kind == SQL_TOKEN_NAME) {
            bool closed =
                t.len > 1 && x->text[t.at + t.len - 1] == (x->text[t.at] == '[' ? ']' : x->text[t.at]);
            x->within |= cursor < t.at + t.len || (inside && !closed);
        } else if (is_comment)
            x->within |= inside && !(cursor == t.at + t.len && x->text[t.at] == '/');
        if (sql_token_is_char(x->text, t, ';') && t.at < cursor)
            begin = t.at + 1;
    }
    sql_read_statement(x, c, begin);
}

/* ---- items ---- */

/* 0 the word is its beginning, 1 the beginning of a part of it, 2 inside it; -1 no match. */
static int sql_word_fits(const struct sql_context *x, const char *text) {
    if (strncasecmp(text, x->word, x->word_len) == 0)
        return 0;
    for (const char *p = text + 1; *text && *p; p++)
        if (strncasecmp(p, x->word, x->word_len) == 0)
            return p[-1] == '_' || p[-1] == '.' ? 1 : x->word_len > 1 ? 2 : -1;
    return -1;
}

static void sql_add_item(struct sql_completion *out, const struct sql_context *x, const char *text,
                         const char *help, enum sql_complete_kind kind) {
    int fits = sql_word_fits(x, text);
    /* Keywords and functions match only by their beginning. */
    if (fits < 0 || out->n == SQL_COMPLETE_MAX || (fits > 0 && kind >= SQL_COMPLETE_FUNCTION))
        return;
    for (size_t i = 0; i < out->n; i++)
        if (strcasecmp(out->items[i].text, text) == 0)
            return;
    out->items[out->n] =
        (struct sql_complete_item){text, help ? help : "", kind, fits * 10 + (int)kind, out->n};
    out->n++;
}

static void sql_add_columns(struct sql_completion *out, const struct sql_context *x,
                            const struct catalog_table *t) {
    for (size_t i = 3; i < t->n_columns; i++) /* those of all tables last */
        sql_add_item(out, x, t->columns[i].name, t->columns[i].help, SQL_COMPLETE_COLUMN);
    for (size_t i = 0; i < 3 && i < t->n_columns; i++)
        sql_add_item(out, x, t->columns[i].name, t->columns[i].help, SQL_COMPLETE_COLUMN);
}

static void sql_add_tables(struct sql_completion *out, const struct sql_context *x, const struct catalog *c) {
    for (size_t i = 0; i < c->n_tables; i++) {
        const struct catalog_table *t = &c->tables[i];
        if (!x->qualifier) {
            sql_add_item(out, x, t->name, t->help, SQL_COMPLETE_TABLE);
            if (*t->alias)
                sql_add_item(out, x, t->alias, t->help, SQL_COMPLETE_TABLE);
        } else if (strncasecmp(t->name, x->qualifier, x->qualifier_len) == 0 &&
                   t->name[x->qualifier_len] == '.')
            sql_add_item(out, x, t->name + x->qualifier_len + 1, t->help, SQL_COMPLETE_TABLE);
    }
}

/* After a name and a dot: columns of that table, or tables of that schema. */
static void sql_add_members(struct sql_completion *out, const struct sql_context *x,
                            const struct catalog *c) {
    const char *q = x->qualifier;
    size_t n = x->qualifier_len;
    for (size_t i = 0; i < x->n_mentions; i++) {
        const struct sql_mention *m = &x->mentions[i];
        const char *bare = strchr(m->table->name, '.');
        bool is_alias = m->alias && m->alias_len == n && strncasecmp(m->alias, q, n) == 0;
        bool is_bare = bare && strlen(bare + 1) == n && strncasecmp(bare + 1, q, n) == 0;
        if (is_alias || is_bare || catalog_find(c, q, n) == m->table)
            sql_add_columns(out, x, m->table);
    }
    if (out->n == 0 && catalog_find(c, q, n))
        sql_add_columns(out, x, catalog_find(c, q, n));
    sql_add_tables(out, x, c);
}

/* The word in lower case, if the typed part has a lower-case letter. */
static const char *sql_in_case(struct sql_completion *out, const struct sql_context *x, const char *word) {
    bool small = false;
    for (size_t i = 0; i < x->word_len; i++)
        small |= islower((unsigned char)x->word[i]) != 0;
    char *copy = small ? arena_strdup(&out->arena, word) : NULL;
    for (char *p = copy; p && *p; p++)
        *p = (char)tolower((unsigned char)*p);
    return copy ? copy : word;
}

/* "round(", or "now()" for a function without arguments. */
static const char *sql_call_text(struct sql_completion *out, const char *name, const char *arguments) {
    char text[80];
    snprintf(text, sizeof text, "%s%s", name, strcmp(arguments, "()") == 0 ? "()" : "(");
    const char *copy = arena_strdup(&out->arena, text);
    return copy ? copy : name;
}

static const char *sql_call_help(struct sql_completion *out, const char *name, const char *arguments,
                                 const char *help) {
    char text[256];
    snprintf(text, sizeof text, "%s%s: %s", name, arguments, help);
    const char *copy = arena_strdup(&out->arena, text);
    return copy ? copy : help;
}

static void sql_add_function(struct sql_completion *out, const struct sql_context *x, const char *name,
                             const char *arguments, const char *help) {
    if (strncasecmp(name, x->word, x->word_len) == 0)
        sql_add_item(out, x, sql_call_text(out, name, arguments), sql_call_help(out, name, arguments, help),
                     SQL_COMPLETE_FUNCTION);
}

static void sql_add_expression(struct sql_completion *out, const struct sql_context *x,
                               const struct catalog *c) {
    for (size_t i = 0; x->after_table && sql_keywords[i]; i++)
        sql_add_item(out, x, sql_in_case(out, x, sql_keywords[i]), "", SQL_COMPLETE_KEYWORD);
    if (x->after_table)
        return;
    for (size_t i = 0; i < x->n_mentions; i++)
        sql_add_columns(out, x, x->mentions[i].table);
    for (size_t i = 0; i < x->n_mentions; i++)
        if (x->mentions[i].alias_len) {
            const char *alias = arena_strndup(&out->arena, x->mentions[i].alias, x->mentions[i].alias_len);
            if (alias && x->word_len)
                sql_add_item(out, x, alias, x->mentions[i].table->name, SQL_COMPLETE_TABLE);
        }
    /* Before there is a FROM, any column is possible. */
    for (size_t i = 0; x->n_mentions == 0 && x->word_len > 0 && i < c->n_tables; i++)
        sql_add_columns(out, x, &c->tables[i]);
    for (const struct sql_function_info *f = sql_functions(); f->name; f++)
        sql_add_function(out, x, f->name, f->arguments, f->help);
    for (const struct sql_builtin *b = sql_builtins; b->name; b++)
        sql_add_function(out, x, b->name, b->arguments, b->help);
    for (size_t i = 0; sql_keywords[i]; i++)
        sql_add_item(out, x, sql_in_case(out, x, sql_keywords[i]), "", SQL_COMPLETE_KEYWORD);
}

static int sql_compare_items(const void *a, const void *b) {
    const struct sql_complete_item *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->kind == SQL_COMPLETE_COLUMN ? (x->place < y->place ? -1 : 1) : strcasecmp(x->text, y->text);
}

int sql_complete(struct sql_completion *out, const struct catalog *c, const char *text, size_t cursor) {
    static const char *const beginnings[] = {"SELECT", "WITH", "EXPLAIN QUERY PLAN", "VALUES", NULL};
    struct sql_context x = {.text = text, .len = strlen(text)};
    memset(out, 0, sizeof *out);
    arena_init(&out->arena, SQL_COMPLETE_BYTES);
    out->items = arena_calloc(&out->arena, SQL_COMPLETE_MAX, sizeof *out->items);
    if (!out->items) {
        sql_complete_fini(out);
        return -1;
    }
    if (cursor > x.len)
        cursor = x.len;
    sql_find_context(&x, c, cursor);
    out->from = x.from;
    out->to = cursor;
    if (x.within)
        return 0;
    if (x.begins && !x.qualifier)
        for (size_t i = 0; beginnings[i]; i++)
            sql_add_item(out, &x, sql_in_case(out, &x, beginnings[i]), "", SQL_COMPLETE_KEYWORD);
    else if (x.wants_table)
        sql_add_tables(out, &x, c);
    else if (x.qualifier)
        sql_add_members(out, &x, c);
    else
        sql_add_expression(out, &x, c);
    qsort(out->items, out->n, sizeof *out->items, sql_compare_items);
    return 0;
}

void sql_complete_fini(struct sql_completion *out) {
    arena_fini(&out->arena);
    memset(out, 0, sizeof *out);
}

size_t sql_complete_common(const struct sql_completion *c) {
    size_t n = c->n ? strlen(c->items[0].text) : 0;
    for (size_t i = 1; i < c->n; i++) {
        size_t k = 0;
        while (k < n &&
               tolower((unsigned char)c->items[i].text[k]) == tolower((unsigned char)c->items[0].text[k]))
            k++;
        n = k;
    }
    return n;
}
