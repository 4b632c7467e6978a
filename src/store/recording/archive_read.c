/* SPDX-License-Identifier: Apache-2.0 */
/*
 * archive_read: see archive.h. Reads an SQLite file into tables in memory, one target after the
 * other.
 *
 * Only tables are read, by names that are checked; views, triggers and functions of the file are
 * not run. Where SQLite finds damage, the table ends, and the note says so.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "store/recording/archive.h"
#include "store/recording/archive_internal.h"
#include "store/ring/ring.h"

#define ARCHIVE_VERSIONS_AT 18 /* in a file: versions of its format, for writing and reading */
#define ARCHIVE_COMMON 3
#define ARCHIVE_MAX_TABLES 256
#define ARCHIVE_MAX_BYTES ((size_t)2 * 1024 * 1024 * 1024) /* of all tables in memory */
#define ARCHIVE_MAX_REAL 256                               /* columns of a table of the file */
/* tables of the file, of any kind */
#define ARCHIVE_MAX_STORED 1024
#define ARCHIVE_NAME (2 * RING_MAX_NAME) /* of these */
#define ARCHIVE_TEXT_PERCENT 40
#define ARCHIVE_MAGIC "SQLite format 3"

struct archive_def {
    struct ring_table_def def;
    char name[RING_MAX_NAME], alias[RING_MAX_NAME], help[512];
    struct ring_column_def columns[RING_MAX_COLUMNS];
    char names[RING_MAX_COLUMNS][RING_MAX_NAME];
    char units[RING_MAX_COLUMNS][24];
    char helps[RING_MAX_COLUMNS][256];
    size_t n;
};

/* The real columns of the file's table, whatever its description says. */
struct archive_real {
    char names[ARCHIVE_MAX_REAL][RING_MAX_NAME];
    size_t n;
};

struct archive_target {
    int64_t pid, rank; /* RING_INT_NULL */
    char host[256];    /* "" unknown */
    int fds[ARCHIVE_MAX_TABLES];
    size_t n_fds;
};

struct archive {
    sqlite3 *db;
    struct archive_guard guard;
    double opened_at;
    size_t bytes; /* of all tables in memory */
    char (*stored)[ARCHIVE_NAME];
    size_t n_stored;
    struct archive_target targets[ARCHIVE_MAX_TARGETS];
    size_t n_targets;
    char note[512];
};

const char *archive_type(enum ring_type type) {
    switch (type) {
    case RING_TIMESTAMP:
    case RING_DOUBLE:
        return "REAL";
    case RING_TEXT:
    case RING_ENUM:
        return "TEXT";
    case RING_INT64:
    case RING_INT32:
    case RING_UINT32:
    case RING_ID:
    case RING_BOOL:
        break;
    }
    return "INTEGER";
}

bool archive_is_one(const char *path) {
    char head[sizeof ARCHIVE_MAGIC];
    int fd = file_open_regular(AT_FDCWD, path, FILE_LINKS_FOLLOWED, O_RDONLY, FILE_ANY_OWNER);
    ssize_t n = fd < 0 ? -1 : read(fd, head, sizeof head);
    if (fd >= 0)
        close(fd);
    return n == (ssize_t)sizeof head && memcmp(head, ARCHIVE_MAGIC, sizeof head) == 0;
}

/* True if the file asks for a write-ahead log (sqlite.org/fileformat.html, 1.3.3). SQLite would
 * then make and map files beside it, which their owner may shorten at any time. No recorder
 * writes such files. */
static bool archive_wants_log(const char *path) {
    unsigned char versions[2] = {0, 0};
    int fd = file_open_regular(AT_FDCWD, path, FILE_LINKS_FOLLOWED, O_RDONLY, FILE_ANY_OWNER);
    bool wants =
        fd >= 0 && pread(fd, versions, 2, ARCHIVE_VERSIONS_AT) == 2 && (versions[0] > 1 || versions[1] > 1);
    if (fd >= 0)
        close(fd);
    return wants;
}

/* Keep the first note. */
static void archive_say(struct archive *a, const char *text, const char *name, const char *why) {
    if (!a->note[0])
        snprintf(a->note, sizeof a->note, "%s: %s%s%s", text, name, why[0] ? ": " : "", why);
}

static void archive_add_note(struct archive *a, const char *what) {
    archive_say(a, "the recording is damaged or was cut: what can be read of it is shown", what,
                a->guard.operations ? sqlite3_errmsg(a->db) : "reading it takes too long");
}

static void archive_copy_text(char *buf, size_t cap, sqlite3_stmt *st, int column) {
    const char *text = (const char *)sqlite3_column_text(st, column);
    snprintf(buf, cap, "%s", text ? text : "");
}

/* Prepare a statement made by sqlite3_mprintf, which is freed. NULL if it fails. */
static sqlite3_stmt *archive_ask(struct archive *a, char *text) {
    sqlite3_stmt *st = NULL;
    if (text && sqlite3_prepare_v2(a->db, text, -1, &st, NULL) != SQLITE_OK) {
        sqlite3_finalize(st);
        st = NULL;
    }
    sqlite3_free(text);
    return st;
}

/* ---- definitions ---- */

/* The list of tables is read once: that may take long in a damaged file. */
static void archive_list_tables(struct archive *a) {
    sqlite3_stmt *st = archive_ask(a, sqlite3_mprintf("SELECT name FROM sqlite_master WHERE type = 'table'"));
    a->stored = calloc(ARCHIVE_MAX_STORED, sizeof *a->stored);
    while (st && a->stored && a->n_stored < ARCHIVE_MAX_STORED && sqlite3_step(st) == SQLITE_ROW)
        archive_copy_text(a->stored[a->n_stored++], sizeof *a->stored, st, 0);
    sqlite3_finalize(st);
}

static bool archive_is_table(const struct archive *a, const char *name) {
    for (size_t i = 0; i < a->n_stored; i++)
        if (strcmp(a->stored[i], name) == 0)
            return true;
    return false;
}

/* Its columns that are values in the file (a computed one is code) and may be ours. */
static void archive_read_real(struct archive *a, const char *stored, struct archive_real *out) {
    sqlite3_stmt *st = archive_is_table(a, stored)
                           ? archive_ask(a, sqlite3_mprintf("PRAGMA table_xinfo(%Q)", stored))
                           : NULL;
    out->n = 0;
    while (st && out->n < ARCHIVE_MAX_REAL && sqlite3_step(st) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(st, 1);
        /* hidden or computed: nothing of such a table is read */
        if (sqlite3_column_int(st, 6) != 0) {
            out->n = 0;
            break;
        }
        if (name && strlen(name) < RING_MAX_NAME && ring_name_ok(name, false))
            snprintf(out->names[out->n++], RING_MAX_NAME, "%s", name);
    }
    sqlite3_finalize(st);
}

static bool archive_has(const struct archive_real *real, const char *name) {
    for (size_t i = 0; i < real->n; i++)
        if (sqlite3_stricmp(real->names[i], name) == 0)
            return true;
    return false;
}

static bool archive_is_common(const char *name) {
    return sqlite3_stricmp(name, "rank") == 0 || sqlite3_stricmp(name, "host") == 0 ||
           sqlite3_stricmp(name, "pid") == 0;
}

static bool archive_is_named(const struct archive_def *d, const char *name) {
    for (size_t i = 0; i < d->n; i++)
        if (sqlite3_stricmp(d->names[i], name) == 0)
            return true;
    return false;
}

static void archive_read_columns(struct archive *a, struct archive_def *d, const struct archive_real *real) {
    sqlite3_stmt *st = archive_ask(a, sqlite3_mprintf("SELECT name, type, unit, help FROM probing_columns "
                                                      "NOT INDEXED WHERE table_name = %Q ORDER BY rowid",
                                                      d->name));
    bool timed = false;
    while (st && d->n + 1 + ARCHIVE_COMMON < RING_MAX_COLUMNS && sqlite3_step(st) == SQLITE_ROW) {
        int type = sqlite3_column_int(st, 1);
        size_t i = d->n;
        archive_copy_text(d->names[i], sizeof d->names[i], st, 0);
        archive_copy_text(d->units[i], sizeof d->units[i], st, 2);
        archive_copy_text(d->helps[i], sizeof d->helps[i], st, 3);
        if (!archive_has(real, d->names[i]) || archive_is_common(d->names[i]) ||
            archive_is_named(d, d->names[i]) || type < RING_TIMESTAMP || type > RING_BOOL ||
            (type == RING_TIMESTAMP && timed))
            continue;
        timed = timed || type == RING_TIMESTAMP;
        d->columns[d->n++] =
            (struct ring_column_def){.name = d->names[i],
                                     .type = type == RING_ENUM ? RING_TEXT : (enum ring_type)type,
                                     .unit = d->units[i],
                                     .help = d->helps[i]};
    }
    sqlite3_finalize(st);
}

static bool archive_read_def(struct archive *a, sqlite3_stmt *st, struct archive_def *d) {
    struct archive_real real;
    char stored[ARCHIVE_NAME];
    *d = (struct archive_def){.n = 0};
    archive_copy_text(d->name, sizeof d->name, st, 0);
    archive_copy_text(d->alias, sizeof d->alias, st, 1);
    archive_copy_text(d->help, sizeof d->help, st, 2);
    int cost = sqlite3_column_int(st, 3);
    archive_table_name(d->name, stored, sizeof stored);
    archive_read_real(a, stored, &real);
    if (archive_has(&real, "rank") && archive_has(&real, "host") && archive_has(&real, "pid"))
        archive_read_columns(a, d, &real);
    double retention_s = sqlite3_column_double(st, 4);
    d->def = (struct ring_table_def){.name = d->name,
                                     .alias = ring_name_ok(d->alias, true) ? d->alias : NULL,
                                     .help = d->help,
                                     .cost = cost >= RING_COST_NOW && cost <= RING_COST_PROBE
                                                 ? (enum ring_cost)cost
                                                 : RING_COST_BACKGROUND,
                                     .weight = 1,
                                     .retention_s = retention_s >= 0 && retention_s < 1e12 ? retention_s : 0,
                                     .text_percent = ARCHIVE_TEXT_PERCENT,
                                     .columns = d->columns};
    return ring_name_ok(d->name, true) && d->n > 0;
}

/* ---- rows ---- */

static union ring_value archive_value(sqlite3_stmt *st, int column, enum ring_type type) {
    bool null = sqlite3_column_type(st, column) == SQLITE_NULL;
    switch (type) {
    case RING_TIMESTAMP:
    case RING_DOUBLE:
        return (union ring_value){.f = null ? NAN : sqlite3_column_double(st, column)};
    case RING_TEXT:
    case RING_ENUM:
        return (union ring_value){.s = null ? NULL : (const char *)sqlite3_column_text(st, column)};
    case RING_ID: /* the upper bits make those of several targets different */
        return (union ring_value){.i = null ? RING_INT_NULL : sqlite3_column_int64(st, column) & UINT32_MAX};
    case RING_INT64:
    case RING_INT32:
    case RING_UINT32:
    case RING_BOOL:
        break;
    }
    return (union ring_value){.i = null ? RING_INT_NULL : sqlite3_column_int64(st, column)};
}

static sqlite3_stmt *archive_select(struct archive *a, const struct archive_def *d,
                                    const struct archive_target *t, bool count) {
    char stored[ARCHIVE_NAME];
    archive_table_name(d->name, stored, sizeof stored);
    if (!archive_is_table(a, stored))
        return NULL;
    sqlite3_str *s = sqlite3_str_new(a->db);
    sqlite3_str_appendf(s, "SELECT %s", count ? "count(*)" : "");
    for (size_t i = 0; !count && i < d->n; i++)
        sqlite3_str_appendf(s, "%s\"%w\"", i ? ", " : "", d->names[i]);
    sqlite3_str_appendf(s, " FROM \"%w\" NOT INDEXED WHERE pid IS ?1 AND rank IS ?2 AND host IS ?3", stored);
    if (!count)
        sqlite3_str_appendf(s, " ORDER BY rowid");
    sqlite3_stmt *st = archive_ask(a, sqlite3_str_finish(s));
    if (!st)
        return NULL;
    if (t->pid != RING_INT_NULL)
        sqlite3_bind_int64(st, 1, t->pid);
    if (t->rank != RING_INT_NULL)
        sqlite3_bind_int64(st, 2, t->rank);
    if (t->host[0])
        sqlite3_bind_text(st, 3, t->host, -1, SQLITE_STATIC);
    return st;
}

/* What archive_fill returns instead of a descriptor. */
enum { ARCHIVE_FULL = -1, ARCHIVE_NOTHING = -2, ARCHIVE_NO_FILE = -3 };

/* All rows into a ring of `bytes`. Returns a descriptor; ARCHIVE_FULL if they do not fit, or without
 * memory; ARCHIVE_NOTHING if there is nothing to read; ARCHIVE_NO_FILE if none can be made. `*cut`: texts that
 * are not whole. */
static int archive_fill(struct archive *a, const struct archive_def *d, const struct archive_target *t,
                        size_t bytes, uint64_t *cut) {
    struct ring_owner owner = {.pid = t->pid,
                               .rank = t->rank,
                               .host = t->host[0] ? t->host : NULL,
                               .started_at = NAN,
                               .made_at = a->opened_at};
    union ring_value row[RING_MAX_COLUMNS];
    sqlite3_stmt *st = archive_select(a, d, t, false);
    uint64_t rows = 0;
    int rc = SQLITE_ERROR;
    bool kept = false;
    if (!st)
        return ARCHIVE_NOTHING;
    int fd = (int)syscall(SYS_memfd_create, d->name, MFD_CLOEXEC);
    int copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) {
        int why = errno;
        if (fd >= 0)
            close(fd);
        sqlite3_finalize(st);
        errno = why;
        return ARCHIVE_NO_FILE;
    }
    struct ring *r = ring_create(fd, &d->def, &owner, bytes, NULL);
    while (r && (rc = sqlite3_step(st)) == SQLITE_ROW && rows++ < a->guard.rows) {
        for (size_t i = 0; i < d->n; i++)
            row[i] = archive_value(st, (int)i, d->columns[i].type);
        ring_append(r, row);
    }
    if (rc == SQLITE_ROW)
        a->guard.operations = 0;
    if (r) {
        struct ring_counts counts;
        if (rc != SQLITE_DONE)
            archive_add_note(a, d->name);
        ring_flush(r);
        ring_get_counts(r, &counts);
        kept = counts.oldest_seq == 0 && counts.lost == 0;
        *cut = counts.cut;
    }
    ring_close(r);
    sqlite3_finalize(st);
    if (kept)
        return copy;
    close(copy);
    return ARCHIVE_FULL;
}

/* How many bytes all tables in memory may still have. */
static size_t archive_bytes_left(const struct archive *a) { return ARCHIVE_MAX_BYTES - a->bytes; }

/* The rows in a table that has room for them. Small tables have small chunks, in which long texts are cut: those
 * get larger ones. As archive_fill. */
static int archive_fill_all(struct archive *a, const struct archive_def *d, const struct archive_target *t,
                            size_t *bytes, uint64_t *cut) {
    size_t whole = ring_whole_text_bytes(&d->def);
    int fd = ARCHIVE_FULL;
    while (fd == ARCHIVE_FULL && *bytes <= archive_bytes_left(a) && a->guard.operations > 0) {
        fd = archive_fill(a, d, t, *bytes, cut);
        if (fd == ARCHIVE_FULL)
            *bytes *= 2;
    }
    if (fd < 0 || *cut == 0 || *bytes >= whole || whole > archive_bytes_left(a) || a->guard.operations == 0)
        return fd;
    uint64_t less = 0;
    int better = archive_fill(a, d, t, whole, &less);
    if (better < 0)
        return fd;
    close(fd);
    *bytes = whole;
    *cut = less;
    return better;
}

/* Returns whether the target has the table now. Without rows it needs none, which would be as many open files as
 * there are targets; with `empty` it gets one. */
static bool archive_load_table(struct archive *a, const struct archive_def *d, struct archive_target *t,
                               bool empty) {
    sqlite3_stmt *st = archive_select(a, d, t, true);
    bool is_counted = st && sqlite3_step(st) == SQLITE_ROW;
    /* In a damaged file this is the number of the rows that may remain. */
    int64_t rows = is_counted ? sqlite3_column_int64(st, 0) : st ? 1024 : 0;
    sqlite3_finalize(st);
    if (is_counted && rows == 0 && !empty)
        return false;
    if (rows < 0 || (uint64_t)rows > a->guard.rows)
        rows = (int64_t)a->guard.rows;
    size_t bytes = RING_MIN_BYTES * 4 + (size_t)rows * (8 + 4 * d->n);
    uint64_t cut = 0;
    int fd = archive_fill_all(a, d, t, &bytes, &cut);
    if (fd >= 0) {
        t->fds[t->n_fds++] = fd;
        a->bytes += bytes;
        if (cut)
            archive_say(a, "not all of the recording is shown", d->name, "long texts are cut");
    } else if (fd == ARCHIVE_NO_FILE) {
        archive_say(a, "not all of the recording is shown", d->name, strerror(errno));
    } else if (fd == ARCHIVE_FULL && a->guard.operations > 0) {
        archive_say(a, "not all of the recording is shown", d->name, "too large to be read");
    } else {
        archive_add_note(a, d->name);
    }
    return fd >= 0;
}

/* ---- targets ---- */

static void archive_add_target(struct archive *a, sqlite3_stmt *st) {
    struct archive_target t = {.pid = RING_INT_NULL, .rank = RING_INT_NULL};
    if (sqlite3_column_type(st, 0) == SQLITE_INTEGER)
        t.pid = sqlite3_column_int64(st, 0);
    if (sqlite3_column_type(st, 1) == SQLITE_INTEGER)
        t.rank = sqlite3_column_int64(st, 1);
    archive_copy_text(t.host, sizeof t.host, st, 2);
    if (sqlite3_column_bytes(st, 2) != (int)strlen(t.host)) {
        archive_say(a, "not all of the recording is shown", "host", "an invalid name");
        return;
    }
    for (size_t i = 0; i < a->n_targets; i++)
        if (a->targets[i].pid == t.pid && a->targets[i].rank == t.rank &&
            strcmp(a->targets[i].host, t.host) == 0)
            return;
    if (a->n_targets < ARCHIVE_MAX_TARGETS)
        a->targets[a->n_targets++] = t;
}

static void archive_find_targets(struct archive *a, const struct archive_def *d) {
    char stored[ARCHIVE_NAME];
    archive_table_name(d->name, stored, sizeof stored);
    if (!archive_is_table(a, stored))
        return;
    sqlite3_stmt *st =
        archive_ask(a, sqlite3_mprintf("SELECT DISTINCT pid, rank, host FROM \"%w\" NOT INDEXED LIMIT %d",
                                       stored, ARCHIVE_MAX_TARGETS));
    while (st && sqlite3_step(st) == SQLITE_ROW)
        archive_add_target(a, st);
    sqlite3_finalize(st);
}

/* Read the table's targets, or its rows of each target. Returns whether that succeeded. */
static bool archive_take(struct archive *a, const struct archive_def *d, bool load) {
    archive_guard_begin(&a->guard);
    if (!load)
        archive_find_targets(a, d);
    bool any = false;
    for (size_t i = 0; load && i < a->n_targets; i++)
        any = archive_load_table(a, d, &a->targets[i], false) || any;
    /* a table without rows is there as well, once */
    if (load && !any && a->n_targets > 0 && a->guard.operations > 0)
        archive_load_table(a, d, &a->targets[0], true);
    if (a->guard.operations == 0)
        archive_add_note(a, d->name);
    bool done = a->guard.operations > 0;
    archive_guard_begin(&a->guard);
    return done;
}

static bool archive_was_seen(char (*seen)[RING_MAX_NAME], size_t n, const char *name) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(seen[i], name) == 0)
            return true;
    return false;
}

/* The targets of all tables, or all tables, except those in `skip`, whose rows are endless. */
static void archive_each(struct archive *a, bool load, bool *skip) {
    struct archive_def *d = malloc(sizeof *d);
    char(*seen)[RING_MAX_NAME] = calloc(ARCHIVE_MAX_TABLES, sizeof *seen);
    sqlite3_stmt *st = archive_ask(
        a, sqlite3_mprintf(
               "SELECT name, alias, help, cost, retention_s FROM probing_tables NOT INDEXED ORDER BY rowid"));
    for (size_t n = 0; d && seen && st && n < ARCHIVE_MAX_TABLES && sqlite3_step(st) == SQLITE_ROW; n++) {
        bool whole = archive_read_def(a, st, d);
        if (!whole || archive_was_seen(seen, n, d->name))
            archive_say(a, "not all of the recording is shown", d->name,
                        whole ? "there are two with that name" : "not a table as this program writes it");
        else if (!skip[n])
            skip[n] = !archive_take(a, d, load);
        snprintf(seen[n], sizeof seen[n], "%s", whole ? d->name : "");
    }
    sqlite3_finalize(st);
    free(seen);
    free(d);
}

static int archive_check(struct archive *a, const char *path, struct err *e) {
    static const char *const tables[] = {"probing_recording", "probing_tables", "probing_columns"};
    struct archive_real real;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        archive_read_real(a, tables[i], &real);
        if (real.n == 0)
            return err_set(e, ERR_FAILED, "%s: not a recording of this program: no table %s", path,
                           tables[i]);
    }
    sqlite3_stmt *st = archive_ask(
        a, sqlite3_mprintf("SELECT value FROM probing_recording NOT INDEXED WHERE key = 'schema_version'"));
    int version = st && sqlite3_step(st) == SQLITE_ROW ? sqlite3_column_int(st, 0) : 0;
    sqlite3_finalize(st);
    if (version == ARCHIVE_SCHEMA_VERSION)
        return 0;
    if (version > ARCHIVE_SCHEMA_VERSION)
        return err_set(e, ERR_FAILED, "%s: a recording of a newer version (%d): read it with that", path,
                       version);
    return err_set(e, ERR_FAILED, "%s: not a recording of this program: %s", path, sqlite3_errmsg(a->db));
}

/* `cut`: the file is shorter than its header says. */
static int archive_connect(struct archive *a, const char *path, int flags, bool cut) {
    int rc = sqlite3_open_v2(path, &a->db, flags | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc != SQLITE_OK)
        return rc;
    archive_guard_install(&a->guard, a->db, path, cut);
    return sqlite3_exec(a->db, "SELECT name FROM sqlite_master LIMIT 1", NULL, NULL, NULL);
}

struct archive *archive_open(const char *path, struct err *e) {
    /* A writer that was killed leaves a journal to play back; where that is impossible, the file
     * is read as it is. */
    static const struct {
        int flags;
        bool cut;
    } ways[] = {{SQLITE_OPEN_READWRITE, false}, {SQLITE_OPEN_READONLY, false}, {SQLITE_OPEN_READONLY, true}};
    struct archive *a = calloc(1, sizeof *a);
    int rc = SQLITE_ERROR;
    if (!a) {
        err_set(e, ERR_FAILED, "%s: out of memory", path);
        return NULL;
    }
    a->opened_at = clock_epoch_s();
    if (archive_wants_log(path)) {
        err_set(e, ERR_FAILED,
                "%s: it uses a write-ahead log, which recordings do not: sqlite3 FILE 'PRAGMA journal_mode = "
                "DELETE' changes that",
                path);
        free(a);
        return NULL;
    }
    for (size_t i = archive_journal_is_foreign(path); rc != SQLITE_OK && i < sizeof ways / sizeof ways[0];
         i++) {
        sqlite3_close(a->db);
        rc = archive_connect(a, path, ways[i].flags, ways[i].cut);
        if (rc == SQLITE_OK && ways[i].cut)
            snprintf(a->note, sizeof a->note, "%s is damaged or was cut: what can be read of it is shown",
                     path);
    }
    if (rc != SQLITE_OK)
        err_set(e, ERR_FAILED, "%s: %s%s", path,
                rc == SQLITE_CORRUPT ? "it is damaged or was cut: its list of tables cannot be read: " : "",
                sqlite3_errmsg(a->db));
    if (rc == SQLITE_OK)
        archive_list_tables(a);
    if (rc != SQLITE_OK || archive_check(a, path, e) != 0) {
        archive_close(a);
        return NULL;
    }
    bool skip[ARCHIVE_MAX_TABLES] = {false};
    archive_each(a, false, skip);
    archive_each(a, true, skip);
    sqlite3_close(a->db);
    a->db = NULL;
    return a;
}

void archive_close(struct archive *a) {
    if (!a)
        return;
    for (size_t i = 0; i < a->n_targets; i++)
        for (size_t k = 0; k < a->targets[i].n_fds; k++)
            close(a->targets[i].fds[k]);
    sqlite3_close(a->db);
    free(a->stored);
    free(a);
}

size_t archive_targets(const struct archive *a) { return a->n_targets; }

size_t archive_take_rings(struct archive *a, size_t i, int *fds, size_t cap) {
    struct archive_target *t = &a->targets[i];
    size_t n = 0;
    while (n < cap && t->n_fds > 0)
        fds[n++] = t->fds[--t->n_fds];
    return n;
}

const char *archive_note(const struct archive *a) { return a->note; }
