/* SPDX-License-Identifier: Apache-2.0 */
/* sql_guard: what a query may do: read, and fill temporary tables in memory. And when it must
 * end. */
#include <string.h>

#include "base/clock.h"
#include "store/sql/sql_internal.h"

#define SQL_OPERATIONS_BETWEEN_CHECKS 2000

/* Actions on temporary objects only: the database they name must be "temp". */
static bool sql_guard_is_write(int action) {
    return action == SQLITE_INSERT || action == SQLITE_UPDATE || action == SQLITE_DELETE;
}

static const struct {
    int action;
    const char *what;
} sql_guard_names[] = {
    {SQLITE_ATTACH, "ATTACH"},
    {SQLITE_DETACH, "DETACH"},
    {SQLITE_PRAGMA, "PRAGMA"},
    {SQLITE_ANALYZE, "ANALYZE"},
    {SQLITE_REINDEX, "REINDEX"},
    {SQLITE_ALTER_TABLE, "ALTER TABLE"},
    {SQLITE_TRANSACTION, "a transaction"},
    {SQLITE_SAVEPOINT, "a savepoint"},
    {SQLITE_CREATE_VTABLE, "CREATE VIRTUAL TABLE"},
    {SQLITE_DROP_VTABLE, "dropping a table of the target"},
    {SQLITE_CREATE_TABLE, "CREATE TABLE (CREATE TEMP TABLE is)"},
    {SQLITE_CREATE_VIEW, "CREATE VIEW (CREATE TEMP VIEW is)"},
    {SQLITE_CREATE_INDEX, "CREATE INDEX"},
    {SQLITE_CREATE_TRIGGER, "CREATE TRIGGER"},
    {SQLITE_CREATE_TEMP_TRIGGER, "CREATE TRIGGER"},
    {SQLITE_INSERT, "INSERT into anything but temporary tables"},
    {SQLITE_UPDATE, "UPDATE of anything but temporary tables"},
    {SQLITE_DELETE, "DELETE from anything but temporary tables"},
    {SQLITE_FUNCTION, "this function"},
};

static int sql_guard_deny(struct sql *s, int action, const char *detail, bool catalogue) {
    const char *what = "this statement";
    /* SQLite performs the action by writing to its own catalogue; the error names the action
     * itself. */
    if (s->denied[0] && sql_guard_is_write(action))
        return SQLITE_DENY;
    for (size_t i = 0; i < sizeof sql_guard_names / sizeof sql_guard_names[0]; i++)
        if (sql_guard_names[i].action == action)
            what = sql_guard_names[i].what;
    if (catalogue)
        what = "to CREATE, ALTER or DROP anything but temporary tables";
    sqlite3_snprintf((int)sizeof s->denied, s->denied, "%s is not allowed%s%s: queries only read", what,
                     detail ? ", " : "", detail ? detail : "");
    return SQLITE_DENY;
}

static int sql_guard_check(void *arg, int action, const char *a, const char *b, const char *database,
                           const char *inner) {
    struct sql *s = arg;
    (void)inner;
    if (!s->guarded)
        return SQLITE_OK;
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
    case SQLITE_CREATE_TEMP_TABLE:
    case SQLITE_CREATE_TEMP_VIEW:
    case SQLITE_CREATE_TEMP_INDEX:
    case SQLITE_DROP_TEMP_TABLE:
    case SQLITE_DROP_TEMP_VIEW:
    case SQLITE_DROP_TEMP_INDEX:
        return SQLITE_OK;
    case SQLITE_FUNCTION:
        /* Functions that reach beyond SQL. */
        if (b && (strcmp(b, "load_extension") == 0 || strcmp(b, "fts3_tokenizer") == 0))
            return sql_guard_deny(s, action, b, false);
        return SQLITE_OK;
    case SQLITE_REINDEX: /* CREATE INDEX of a temporary table uses it */
        return database && strcmp(database, "temp") == 0 ? SQLITE_OK : sql_guard_deny(s, action, NULL, false);
    default:
        break;
    }
    if (sql_guard_is_write(action) && database && strcmp(database, "temp") == 0)
        return SQLITE_OK;
    bool catalogue = sql_guard_is_write(action) && a && strcmp(a, "sqlite_master") == 0;
    return sql_guard_deny(s, action, action == SQLITE_PRAGMA ? a : NULL, catalogue);
}

bool sql_cancelled(const struct sql *s) {
    return atomic_load_explicit(&s->interrupted, memory_order_relaxed) ||
           (s->deadline_ns != 0 && clock_mono_ns() > s->deadline_ns);
}

static int sql_guard_progress(void *arg) { return sql_cancelled(arg); }

void sql_guard_install(struct sql *s) {
    static const struct {
        int id, value;
    } limits[] = {
        {SQLITE_LIMIT_LENGTH, 64 * 1024 * 1024},
        {SQLITE_LIMIT_SQL_LENGTH, 1024 * 1024},
        {SQLITE_LIMIT_EXPR_DEPTH, 200},
        {SQLITE_LIMIT_COMPOUND_SELECT, 100},
        {SQLITE_LIMIT_ATTACHED, 3},
        {SQLITE_LIMIT_WORKER_THREADS, 0},
        {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000},
    };
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        sqlite3_limit(s->db, limits[i].id, limits[i].value);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
    sqlite3_set_authorizer(s->db, sql_guard_check, s);
    sqlite3_progress_handler(s->db, SQL_OPERATIONS_BETWEEN_CHECKS, sql_guard_progress, s);
}
