/* SPDX-License-Identifier: Apache-2.0 */
/* sql_value: passes a value of a table to SQLite. An unknown value stays NULL: a result that is
 * not set. */
#include <string.h>

#include "store/sql/sql_internal.h"

void sql_put_common(sqlite3_context *x, const struct sql_target_state *t, int column) {
    if (column == SQL_HOST) {
        if (t->host)
            sqlite3_result_text(x, t->host, -1, SQLITE_STATIC); /* lives as long as the session */
        return;
    }
    int64_t n = column == SQL_RANK ? t->rank : t->pid;
    if (n != RING_INT_NULL)
        sqlite3_result_int64(x, n);
}

/* True for a name made by a C++ or Rust compiler. */
static bool sql_is_mangled(const struct ring_cell *c) {
    return c->kind == RING_CELL_TEXT && c->len > 2 && c->len <= RING_MAX_TEXT && c->s[0] == '_' &&
           (c->s[1] == 'Z' || c->s[1] == 'R');
}

void sql_demangle(const struct sql *s, const struct ring_cell *c, char *out) {
    char name[RING_MAX_TEXT + 1];
    memcpy(name, c->s, c->len);
    name[c->len] = '\0';
    if (s->demangle && sql_is_mangled(c))
        s->demangle(name, out, RING_MAX_TEXT + 1);
    else
        memcpy(out, name, c->len + 1);
}

void sql_put_symbol(const struct sql *s, sqlite3_context *x, const struct ring_cell *c) {
    char plain[RING_MAX_TEXT + 1];
    if (!s->demangle || !sql_is_mangled(c)) {
        sql_put_cell(x, NULL, false, c);
        return;
    }
    sql_demangle(s, c, plain);
    sqlite3_result_text(x, plain, -1, SQLITE_TRANSIENT);
}

void sql_put_cell(sqlite3_context *x, const struct sql_target_state *t, bool id, const struct ring_cell *c) {
    switch (c->kind) {
    case RING_CELL_INT:
        sqlite3_result_int64(x, id ? sql_scoped_id(t, c->i) : c->i);
        break;
    case RING_CELL_REAL:
        sqlite3_result_double(x, c->f);
        break;
    case RING_CELL_TEXT:
        sqlite3_result_text(x, c->s, (int)c->len, SQLITE_TRANSIENT);
        break;
    case RING_CELL_NULL:
        break;
    }
}

void sql_put_value(sqlite3_context *x, const struct sql_target_state *t, const struct ring_column_def *def,
                   const union ring_value *v) {
    size_t labels = 0;
    switch (def->type) {
    case RING_TIMESTAMP:
    case RING_DOUBLE:
        sqlite3_result_double(x, v->f); /* NAN becomes NULL */
        return;
    case RING_TEXT:
        if (v->s)
            sqlite3_result_text(x, v->s, -1, SQLITE_TRANSIENT);
        return;
    case RING_ENUM:
        while (def->labels && def->labels[labels])
            labels++;
        if (v->i >= 0 && (uint64_t)v->i < labels)
            sqlite3_result_text(x, def->labels[v->i], -1, SQLITE_STATIC);
        return;
    case RING_INT64:
    case RING_INT32:
    case RING_UINT32:
    case RING_ID:
    case RING_BOOL:
        if (v->i != RING_INT_NULL)
            sqlite3_result_int64(x, def->type == RING_ID ? sql_scoped_id(t, v->i) : v->i);
        return;
    }
}
