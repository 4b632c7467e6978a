/* SPDX-License-Identifier: Apache-2.0 */
/*
 * archive_guard: how the file of a recording is opened, which a stranger may have made.
 *
 * Follows SQLite's advice for such files (sqlite.org/security.html, "Untrusted SQLite Database
 * Files"): its schema is not trusted, cells are checked, limits are low, tables that are code
 * (views, triggers, virtual tables) are off, and an authoriser permits our few statements and no
 * function. Work is limited to what a file of that size can need: pages may point at each other
 * so that reading them never ends. On the reader's thread.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "store/recording/archive_internal.h"

#define ARCHIVE_LONGEST (1024 * 1024) /* bytes of a value or a row */
#define ARCHIVE_OPERATIONS_LEAST 1000000ULL
#define ARCHIVE_OPERATIONS_A_BYTE 256 /* for any number of targets, each of which reads every row */
/* bytes in a page: its start, its length and its number (sqlite.org/fileformat.html, 1.6) */
#define ARCHIVE_ROW_LEAST 4U
#define ARCHIVE_OPERATIONS_SHARES 4 /* for endless tables: those after them are still read */
#define ARCHIVE_OPERATIONS_BETWEEN_CHECKS 10000

bool archive_journal_is_foreign(const char *path) {
    static const unsigned char magic[8] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
    unsigned char end[sizeof magic];
    char journal[4096];
    struct stat st;
    if ((size_t)snprintf(journal, sizeof journal, "%s-journal", path) >= sizeof journal)
        return true;
    int fd = open(journal, O_PATH | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return access(journal, F_OK) == 0;
    fd = file_open_taken(fd, O_RDONLY, FILE_ANY_OWNER);
    bool plain = fd >= 0 && fstat(fd, &st) == 0;
    off_t at = plain ? st.st_size - (off_t)sizeof end : -1;
    bool foreign = !plain || (at >= 0 && (pread(fd, end, sizeof end, at) != (ssize_t)sizeof end ||
                                          memcmp(end, magic, sizeof end) == 0));
    if (fd >= 0)
        close(fd);
    return foreign;
}

static int archive_guard_poll(void *arg) {
    struct archive_guard *g = arg;
    const uint64_t done = ARCHIVE_OPERATIONS_BETWEEN_CHECKS;
    g->operations -= g->operations < done ? g->operations : done;
    g->total -= g->total < done ? g->total : done;
    return g->operations == 0;
}

void archive_guard_begin(struct archive_guard *g) {
    g->operations = g->share < g->total ? g->share : g->total;
}

/* Permit the actions of our statements, and nothing else. */
static int archive_guard_check(void *arg, int action, const char *a, const char *b, const char *database,
                               const char *trigger) {
    (void)arg;
    (void)database;
    (void)trigger;
    bool allowed = action == SQLITE_SELECT || action == SQLITE_READ ||
                   (action == SQLITE_FUNCTION && b && strcmp(b, "count") == 0) ||
                   (action == SQLITE_PRAGMA && a && strcmp(a, "table_xinfo") == 0);
    return allowed ? SQLITE_OK : SQLITE_DENY;
}

void archive_guard_install(struct archive_guard *g, sqlite3 *db, const char *path, bool cut) {
    static const struct {
        int id, value;
    } limits[] = {
        {SQLITE_LIMIT_LENGTH, ARCHIVE_LONGEST},
        {SQLITE_LIMIT_SQL_LENGTH, 64 * 1024},
        {SQLITE_LIMIT_COLUMN, 256},
        {SQLITE_LIMIT_EXPR_DEPTH, 50},
        {SQLITE_LIMIT_COMPOUND_SELECT, 2},
        {SQLITE_LIMIT_FUNCTION_ARG, 8},
        {SQLITE_LIMIT_ATTACHED, 0},
        {SQLITE_LIMIT_TRIGGER_DEPTH, 1},
        {SQLITE_LIMIT_VARIABLE_NUMBER, 8},
        {SQLITE_LIMIT_WORKER_THREADS, 0},
        {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 100},
    };
    static const struct {
        int id, value;
    } switches[] = {
        {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0}, {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
        {SQLITE_DBCONFIG_ENABLE_VIEW, 0},    {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
        {SQLITE_DBCONFIG_DQS_DML, 0},        {SQLITE_DBCONFIG_DQS_DDL, 0},
    };
    struct stat st;
    uint64_t bytes = stat(path, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
    g->share = ARCHIVE_OPERATIONS_LEAST + bytes * ARCHIVE_OPERATIONS_A_BYTE;
    g->total = ARCHIVE_OPERATIONS_SHARES * g->share;
    g->rows = bytes / ARCHIVE_ROW_LEAST;
    archive_guard_begin(g);
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        sqlite3_limit(db, limits[i].id, limits[i].value);
    for (size_t i = 0; i < sizeof switches / sizeof switches[0]; i++)
        sqlite3_db_config(db, switches[i].id, switches[i].value, NULL);
    /* SQLite reads a file that is shorter than its header says only for callers that could
     * repair it (btree.c, lockBtree). */
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, !cut, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_WRITABLE_SCHEMA, cut, NULL);
    sqlite3_drop_modules(db, NULL);
    sqlite3_busy_timeout(db, 1000);
    sqlite3_exec(db, "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0", NULL, NULL, NULL);
    sqlite3_progress_handler(db, ARCHIVE_OPERATIONS_BETWEEN_CHECKS, archive_guard_poll, g);
    sqlite3_set_authorizer(db, archive_guard_check, NULL);
}
