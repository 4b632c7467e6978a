/* SPDX-License-Identifier: Apache-2.0 */
/* archive_write: see archive.h. Tables of a session into an SQLite file. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/recording/archive.h"
#include "store/recording/archive_internal.h"
#include "store/ring/ring.h"

#define ARCHIVE_COMMON 3 /* rank, host, pid */
#define ARCHIVE_MAX_TABLES 512
#define ARCHIVE_NOTE 512
#define ARCHIVE_MAKINGS 64      /* of a target's tables */
#define ARCHIVE_TOGETHER_S 0.25 /* tables that are made so soon after each other were made together */
#define ARCHIVE_ID_BITS 26      /* of a number of a stack or frame, in what was made later */

/* Position up to which a source of a table was written. */
struct archive_mark {
    size_t target;
    size_t making; /* of its file: index in its target's, or ARCHIVE_MAKINGS: too many */
    bool is_seen;
    /* of a table that is made when it is read: time of the newest row, and of those of earlier turns */
    double newest, before;
    bool any;
};

struct archive_table {
    char name[RING_MAX_NAME * 2];
    size_t n_columns;           /* with which it was made */
    struct archive_mark *marks; /* per source */
    uint64_t *next; /* per source: number of the first unwritten row; UINT64_MAX: no row is wanted */
    size_t n_marks;
};

/* When a target's tables were made: after a change of their size, or by a new agent, once more. Numbers of rows,
 * stacks and frames begin again with each. */
struct archive_origin {
    double made_at[ARCHIVE_MAKINGS];
    size_t n;
    bool is_wide; /* its first numbers leave no room for others */
};

struct archive_writer {
    sqlite3 *db;
    struct archive_origin *origins; /* per target */
    size_t n_origins;
    char missing[ARCHIVE_NOTE], unread[ARCHIVE_NOTE];
    struct archive_table tables[ARCHIVE_MAX_TABLES];
    size_t n_tables;
    uint64_t rows;
};

static int archive_fail(struct archive_writer *w, struct err *e) {
    return err_set(e, ERR_FAILED, "the recording cannot be written: %s", sqlite3_errmsg(w->db));
}

static int archive_exec(struct archive_writer *w, const char *text, struct err *e) {
    return sqlite3_exec(w->db, text, NULL, NULL, NULL) == SQLITE_OK ? 0 : archive_fail(w, e);
}

void archive_table_name(const char *full, char *buf, size_t cap) {
    snprintf(buf, cap, "%s", full);
    for (char *p = buf; *p; p++)
        if (*p == '.')
            *p = '_';
}

/* Make a new, empty file that only this user may read, because a recording may contain values.
 * No existing file is used, not through a link either. Its path without links goes into `real`
 * (PATH_MAX), its status into `st`. 0, or -1 with the error. */
static int archive_make_file(const char *path, char *real, struct stat *st, struct err *e) {
    char dir[PATH_MAX], folder[PATH_MAX];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    snprintf(dir, sizeof dir, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    if (!realpath(slash ? dir : ".", folder))
        return err_set_errno(e, ERR_FAILED, errno, "%s cannot be written", path);
    if (snprintf(real, PATH_MAX, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, name) >= PATH_MAX)
        return err_set_errno(e, ERR_FAILED, ENAMETOOLONG, "%s cannot be written", path);
    int fd = open(real, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST)
        return err_set(e, ERR_FAILED, "%s already exists: choose another name", path);
    if (fd < 0)
        return err_set_errno(e, ERR_FAILED, errno, "%s cannot be written", path);
    int rc = fstat(fd, st);
    close(fd);
    return rc == 0 ? 0 : err_set_errno(e, ERR_FAILED, errno, "%s cannot be written", path);
}

/* True if the file that SQLite has opened by name is the one that was made. */
static bool archive_is_created(const char *real, const struct stat *made) {
    struct stat st;
    return lstat(real, &st) == 0 && st.st_dev == made->st_dev && st.st_ino == made->st_ino;
}

struct archive_writer *archive_create(const char *path, struct err *e) {
    static const char schema[] =
        "PRAGMA journal_mode = DELETE; PRAGMA synchronous = OFF; PRAGMA page_size = 8192; BEGIN;"
        "CREATE TABLE probing_recording(key TEXT PRIMARY KEY, value);"
        "CREATE TABLE probing_tables(name TEXT PRIMARY KEY, stored_as TEXT, alias TEXT, help TEXT, cost "
        "INTEGER,"
        " retention_s REAL);"
        "CREATE TABLE probing_columns(table_name TEXT, position INTEGER, name TEXT, type INTEGER, unit TEXT, "
        "help TEXT);";
    struct stat made;
    char text[128], real[PATH_MAX];
    struct archive_writer *w = calloc(1, sizeof *w);
    if (!w || archive_make_file(path, real, &made, e) != 0) {
        if (!w)
            err_set(e, ERR_FAILED, "%s: out of memory", path);
        free(w);
        return NULL;
    }
    snprintf(text, sizeof text,
             "INSERT INTO probing_recording VALUES ('schema_version', %d), ('began_at', %.6f); COMMIT",
             ARCHIVE_SCHEMA_VERSION, clock_epoch_s());
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_NOMUTEX;
    if (sqlite3_open_v2(real, &w->db, flags, NULL) != SQLITE_OK) {
        err_set(e, ERR_FAILED, "%s cannot be written: %s", path, sqlite3_errmsg(w->db));
    } else if (!archive_is_created(real, &made)) {
        err_set(e, ERR_FAILED, "%s cannot be written: another program has replaced the file", path);
    } else if (archive_exec(w, schema, e) == 0 && archive_exec(w, text, e) == 0) {
        return w;
    }
    sqlite3_close(w->db);
    if (archive_is_created(real, &made))
        unlink(real);
    free(w);
    return NULL;
}

/* ---- tables ---- */

static int archive_describe(struct archive_writer *w, const struct sql_table_info *t, const char *stored,
                            struct err *e) {
    char *text = sqlite3_mprintf("INSERT OR REPLACE INTO probing_tables VALUES (%Q, %Q, %Q, %Q, %d, %f);"
                                 "DELETE FROM probing_columns WHERE table_name = %Q",
                                 t->name, stored, t->alias[0] ? t->alias : NULL, t->help, (int)t->cost,
                                 t->retention_s, t->name);
    int rc = text ? archive_exec(w, text, e) : err_set(e, ERR_FAILED, "out of memory");
    sqlite3_free(text);
    for (size_t i = 0; rc == 0 && i < t->n_columns; i++) {
        const struct sql_column_info *c = &t->columns[i];
        text = sqlite3_mprintf("INSERT INTO probing_columns VALUES (%Q, %d, %Q, %d, %Q, %Q)", t->name, (int)i,
                               c->name, (int)c->type, c->unit, c->help);
        rc = text ? archive_exec(w, text, e) : err_set(e, ERR_FAILED, "out of memory");
        sqlite3_free(text);
    }
    return rc;
}

/* Make the table with its present columns; earlier it may have had fewer. */
static int archive_make_table(struct archive_writer *w, const struct sql_table_info *t, struct err *e) {
    char stored[RING_MAX_NAME * 2];
    archive_table_name(t->name, stored, sizeof stored);
    sqlite3_str *s = sqlite3_str_new(w->db);
    sqlite3_str_appendf(s, "CREATE TABLE IF NOT EXISTS \"%w\"(rank INTEGER, host TEXT, pid INTEGER", stored);
    for (size_t i = 0; i < t->n_columns; i++)
        sqlite3_str_appendf(s, ", \"%w\" %s", t->columns[i].name, archive_type(t->columns[i].type));
    sqlite3_str_appendf(s, ")");
    if (t->alias[0])
        sqlite3_str_appendf(s, "; CREATE VIEW IF NOT EXISTS \"%w\" AS SELECT * FROM \"%w\"", t->alias,
                            stored);
    char *text = sqlite3_str_finish(s);
    int rc = text ? archive_exec(w, text, e) : err_set(e, ERR_FAILED, "out of memory");
    sqlite3_free(text);
    for (size_t i = 0; rc == 0 && i < t->n_columns; i++) {
        /* It fails if the column exists, which is the usual case. */
        text = sqlite3_mprintf("ALTER TABLE \"%w\" ADD COLUMN \"%w\" %s", stored, t->columns[i].name,
                               archive_type(t->columns[i].type));
        int known = sqlite3_table_column_metadata(w->db, NULL, stored, t->columns[i].name, NULL, NULL, NULL,
                                                  NULL, NULL);
        if (text && known != SQLITE_OK)
            rc = archive_exec(w, text, e);
        sqlite3_free(text);
    }
    return rc == 0 ? archive_describe(w, t, stored, e) : -1;
}

static struct archive_table *archive_find(struct archive_writer *w, const char *name) {
    for (size_t i = 0; i < w->n_tables; i++)
        if (strcmp(w->tables[i].name, name) == 0)
            return &w->tables[i];
    if (w->n_tables == ARCHIVE_MAX_TABLES)
        return NULL;
    struct archive_table *t = &w->tables[w->n_tables++];
    snprintf(t->name, sizeof t->name, "%s", name);
    return t;
}

/* Keep the first one. */
static void archive_note_once(char note[ARCHIVE_NOTE], const char *text) {
    if (!note[0])
        snprintf(note, ARCHIVE_NOTE, "%s", text);
}

/* ---- what was written ---- */

/* 0, or -1 without memory. */
static int archive_grow_marks(struct archive_table *t, size_t n) {
    if (n <= t->n_marks)
        return 0;
    struct archive_mark *marks = realloc(t->marks, n * sizeof *marks);
    if (marks)
        t->marks = marks;
    uint64_t *next = realloc(t->next, n * sizeof *next);
    if (next)
        t->next = next;
    if (!marks || !next)
        return -1;
    memset(marks + t->n_marks, 0, (n - t->n_marks) * sizeof *marks);
    memset(next + t->n_marks, 0, (n - t->n_marks) * sizeof *next);
    t->n_marks = n;
    return 0;
}

/* The target; NULL without memory. */
static struct archive_origin *archive_find_origin(struct archive_writer *w, size_t target) {
    if (target >= w->n_origins) {
        struct archive_origin *more = realloc(w->origins, (target + 1) * sizeof *more);
        if (!more)
            return NULL;
        memset(more + w->n_origins, 0, (target + 1 - w->n_origins) * sizeof *more);
        w->origins = more;
        w->n_origins = target + 1;
    }
    return &w->origins[target];
}

/* Which of the target's makings a file belongs to; ARCHIVE_MAKINGS: there are too many. */
static size_t archive_find_making(struct archive_origin *o, double made_at) {
    for (size_t i = o->n; i-- > 0;)
        if (o->made_at[i] == made_at || fabs(o->made_at[i] - made_at) < ARCHIVE_TOGETHER_S)
            return i;
    if (o->n == ARCHIVE_MAKINGS || o->is_wide || !isfinite(made_at))
        return ARCHIVE_MAKINGS;
    o->made_at[o->n] = made_at;
    return o->n++;
}

/* Note the sources of a table as they are now: a file that was made again is read from its first row. 0, or -1. */
static int archive_begin_table(struct archive_writer *w, struct sql *s, struct archive_table *t,
                               const struct sql_table_info *info, struct err *e) {
    if (archive_grow_marks(t, info->n_sources) != 0)
        return err_set(e, ERR_FAILED, "out of memory for a recording");
    for (size_t i = 0; i < info->n_sources; i++) {
        struct sql_source_info source;
        struct archive_mark *m = &t->marks[i];
        struct archive_origin *o =
            sql_source_info(s, info->name, i, &source) ? archive_find_origin(w, source.target) : NULL;
        if (!o)
            return err_set(e, ERR_FAILED, "out of memory for a recording");
        size_t making = source.has_file ? archive_find_making(o, source.made_at) : 0;
        m->before = m->newest;
        m->target = source.target;
        if (m->is_seen && m->making == making)
            continue;
        bool more = making < ARCHIVE_MAKINGS;
        if (!more)
            archive_note_once(w->missing,
                              "tables were made again too often: later rows are not in the recording");
        else if (m->is_seen)
            archive_note_once(w->missing,
                              "tables were made again, with another size or by another agent: rows of "
                              "the moment before may be missing");
        m->is_seen = true;
        m->making = making;
        m->any = false;
        t->next[i] = more ? 0 : UINT64_MAX;
    }
    return 0;
}

/* What is added to numbers of stacks and frames: those of another making of the tables are others. */
static int64_t archive_id_offset(const struct archive_mark *m) {
    return m->making < ARCHIVE_MAKINGS ? (int64_t)m->making << ARCHIVE_ID_BITS : 0;
}

/* True for a new row, which is then noted as written: by its number, or by its time where it has
 * none that stays (`time`, otherwise NULL). */
static bool archive_is_new(struct archive_table *t, int64_t rowid, const double *time) {
    size_t source = (size_t)((uint64_t)rowid >> SQL_ROW_BITS);
    uint64_t number = (uint64_t)rowid & ((1ULL << SQL_ROW_BITS) - 1);
    if (source >= t->n_marks)
        return false;
    struct archive_mark *m = &t->marks[source];
    if (time ? m->any && !(*time > m->before) : number < t->next[source])
        return false;
    if (!time) {
        t->next[source] = number + 1;
        return true;
    }
    m->newest = !m->any || *time > m->newest ? *time : m->newest;
    m->before = m->any ? m->before : -INFINITY;
    m->any = true;
    return true;
}

/* The number of a stack or frame, of all of the target's makings; false: it has none there. */
static bool archive_number(struct archive_writer *w, const struct archive_mark *m, int64_t *id) {
    int64_t own = *id & UINT32_MAX;
    bool wide = own >> ARCHIVE_ID_BITS != 0;
    if (wide && m->making == 0)
        w->origins[m->target].is_wide = true;
    *id += archive_id_offset(m);
    return !wide || m->making == 0;
}

static void archive_bind(sqlite3_stmt *st, int at, const struct sql_result *r, size_t i) {
    size_t len;
    switch (sql_result_kind(r, i)) {
    case SQL_INTEGER:
        sqlite3_bind_int64(st, at, sql_result_int(r, i));
        break;
    case SQL_REAL:
        sqlite3_bind_double(st, at, sql_result_real(r, i));
        break;
    case SQL_TEXT: {
        const char *text = sql_result_text(r, i, &len);
        sqlite3_bind_text(st, at, text, (int)len, SQLITE_TRANSIENT);
        break;
    }
    case SQL_BLOB:
    case SQL_NULL:
        sqlite3_bind_null(st, at);
        break;
    }
}

/* The numbers of stacks and frames of a row of a file. */
static void archive_bind_numbers(struct archive_writer *w, const struct archive_mark *m,
                                 const struct sql_table_info *info, const struct sql_result *r,
                                 sqlite3_stmt *st) {
    for (size_t i = 0; i < info->n_columns; i++) {
        size_t at = i + ARCHIVE_COMMON + 1;
        if (info->columns[i].type != RING_ID || sql_result_kind(r, at) != SQL_INTEGER)
            continue;
        int64_t id = sql_result_int(r, at);
        if (archive_number(w, m, &id))
            sqlite3_bind_int64(st, (int)at, id);
        else
            sqlite3_bind_null(st, (int)at);
    }
}

/* Copy the result's columns after the rowid, in their order, into the table of the same columns. */
static int archive_copy_rows(struct archive_writer *w, struct archive_table *t,
                             const struct sql_table_info *info, int time_column, struct sql_result *r,
                             struct err *e) {
    bool kept = info->cost != RING_COST_NOW;
    char stored[RING_MAX_NAME * 2];
    archive_table_name(info->name, stored, sizeof stored);
    sqlite3_str *s = sqlite3_str_new(w->db);
    sqlite3_str_appendf(s, "INSERT INTO \"%w\"(rank, host, pid", stored);
    for (size_t i = 0; i < info->n_columns; i++)
        sqlite3_str_appendf(s, ", \"%w\"", info->columns[i].name);
    sqlite3_str_appendf(s, ") VALUES (?1");
    for (size_t i = 1; i < info->n_columns + ARCHIVE_COMMON; i++)
        sqlite3_str_appendf(s, ", ?%d", (int)i + 1);
    sqlite3_str_appendf(s, ")");
    char *text = sqlite3_str_finish(s);
    sqlite3_stmt *st = NULL;
    int rc = text && sqlite3_prepare_v2(w->db, text, -1, &st, NULL) == SQLITE_OK ? 0 : archive_fail(w, e),
        more = 0;
    while (rc == 0 && (more = sql_next(r, e)) == 1) {
        double time = time_column >= 0 ? sql_result_real(r, (size_t)time_column + ARCHIVE_COMMON + 1) : NAN;
        if ((kept || time_column >= 0) && !archive_is_new(t, sql_result_int(r, 0), kept ? NULL : &time))
            continue;
        for (size_t i = 0; i < info->n_columns + ARCHIVE_COMMON; i++)
            archive_bind(st, (int)i + 1, r, i + 1);
        if (kept)
            archive_bind_numbers(w, &t->marks[(uint64_t)sql_result_int(r, 0) >> SQL_ROW_BITS], info, r, st);
        rc = sqlite3_step(st) == SQLITE_DONE ? 0 : archive_fail(w, e);
        sqlite3_reset(st);
        w->rows += rc == 0;
    }
    sqlite3_finalize(st);
    sqlite3_free(text);
    return rc == 0 && more == 0 ? 0 : -1;
}

/* The place of the time of a row; -1: it has none. */
static int archive_time_column(const struct sql_table_info *t) {
    for (size_t i = 0; i < t->n_columns; i++)
        if (t->columns[i].type == RING_TIMESTAMP && strcmp(t->columns[i].name, "timestamp") == 0)
            return (int)i;
    return -1;
}

/* True if the table has only the present: what is made when it is read, unless its rows have times. */
static bool archive_is_present(const struct sql_table_info *t) {
    return t->cost == RING_COST_NOW && archive_time_column(t) < 0;
}

/* Only who asks for them has them: reading blocks stops the job for longer than anything else does, and a
 * list of processes keeps the driver from others. */
static bool archive_is_left_out(const struct sql_table_info *t) {
    return strcmp(t->name, "python.gpu_blocks") == 0 || strcmp(t->name, "gpu_processes") == 0;
}

/* True if the file itself cannot be written. */
static bool archive_is_failing(const struct archive_writer *w) {
    int rc = sqlite3_errcode(w->db);
    return rc != SQLITE_OK && rc != SQLITE_DONE && rc != SQLITE_ROW;
}

/* Add new rows of one source, or of all (-1). */
static int archive_add_part(struct archive_writer *w, struct sql *s, const struct sql_table_info *info,
                            struct archive_table *t, const char *text, long source, struct err *e) {
    bool kept = info->cost != RING_COST_NOW;
    const struct sql_part part = {
        .table = info->name, .source = source, .next = t->next, .n = kept ? t->n_marks : 0};
    const struct sql_query unlimited = {.part = &part};
    struct sql_result *r = sql_begin(s, text, &unlimited, NULL, NULL, e);
    int rc = r ? archive_copy_rows(w, t, info, archive_time_column(info), r, e) : -1;
    sql_end(r);
    return rc;
}

/* A table that is made when it is read may be unavailable: then the rest is kept, and a note says so. One target
 * after the other, because one that has ended would cost all others their rows. */
static int archive_add_live(struct archive_writer *w, struct sql *s, const struct sql_table_info *info,
                            struct archive_table *t, const char *text, struct err *e) {
    int rc = 0;
    for (size_t i = 0; rc == 0 && !info->key && i < info->n_sources; i++) {
        rc = archive_add_part(w, s, info, t, text, (long)i, e);
        if (rc != 0 && !archive_is_failing(w)) {
            char note[ARCHIVE_NOTE];
            snprintf(note, sizeof note, "not all of %s is recorded: %s", info->name, err_text(e));
            archive_note_once(w->unread, note);
            rc = 0;
        }
    }
    return rc;
}

static int archive_add_table(struct archive_writer *w, struct sql *s, const struct sql_table_info *info,
                             struct err *e) {
    struct archive_table *t = archive_find(w, info->name);
    if (!t)
        return err_set(e, ERR_FAILED, "too many tables for a recording");
    if (archive_begin_table(w, s, t, info, e) != 0)
        return -1;
    sqlite3_str *q = sqlite3_str_new(w->db);
    sqlite3_str_appendf(q, "SELECT %s, rank, host, pid", archive_is_present(info) ? "0" : "rowid");
    for (size_t i = 0; i < info->n_columns; i++)
        sqlite3_str_appendf(q, ", \"%w\"", info->columns[i].name);
    sqlite3_str_appendf(q, " FROM %s", info->name);
    char *text = sqlite3_str_finish(q);
    int rc = !text                         ? err_set(e, ERR_FAILED, "out of memory")
             : info->cost == RING_COST_NOW ? archive_add_live(w, s, info, t, text, e)
                                           : archive_add_part(w, s, info, t, text, -1, e);
    sqlite3_free(text);
    return rc;
}

/* Make and describe the table, unless that was done. */
static int archive_declare(struct archive_writer *w, const struct sql_table_info *info, struct err *e) {
    struct archive_table *t = archive_find(w, info->name);
    if (!t)
        return err_set(e, ERR_FAILED, "too many tables for a recording");
    int rc = t->n_columns == info->n_columns ? 0 : archive_make_table(w, info, e);
    t->n_columns = rc == 0 ? info->n_columns : 0;
    return rc;
}

/* Add rows of the tables whose numbers others refer to (`named`: stacks, frames), or of all
 * others. */
static int archive_add_tables(struct archive_writer *w, struct sql *s, bool now, bool named, struct err *e) {
    int rc = 0;
    /* Backwards: stacks before their frames. */
    for (size_t i = sql_table_count(s); rc == 0 && i-- > 0;) {
        struct sql_table_info info;
        sql_table_info(s, i, &info);
        bool is_named = strcmp(info.name, "python.stacks") == 0 || strcmp(info.name, "python.frames") == 0;
        if (is_named != named || (archive_is_present(&info) && !now) || archive_is_left_out(&info))
            continue;
        rc = archive_add_table(w, s, &info, e);
    }
    return rc;
}

int archive_append(struct archive_writer *w, struct sql *s, bool now, struct err *e) {
    int rc = archive_exec(w, "BEGIN", e);
    /* The list of tables comes before all rows in the file: without it the rest of a shortened
     * file could not be read. */
    for (size_t i = 0; rc == 0 && i < sql_table_count(s); i++) {
        struct sql_table_info info;
        sql_table_info(s, i, &info);
        if ((!archive_is_present(&info) || now) && !archive_is_left_out(&info))
            rc = archive_declare(w, &info, e);
        if (rc != 0 && info.cost == RING_COST_NOW && !archive_is_failing(w))
            rc = 0;
    }
    /* The job goes on at the same time: no stack that a sample refers to may be missing. */
    rc = rc == 0 ? archive_add_tables(w, s, now, false, e) : rc;
    rc = rc == 0 ? archive_add_tables(w, s, now, true, e) : rc;
    if (rc == 0)
        rc = archive_exec(w, "COMMIT", e);
    else
        sqlite3_exec(w->db, "ROLLBACK", NULL, NULL, NULL);
    for (size_t i = 0; rc != 0 && i < w->n_tables; i++)
        w->tables[i].n_columns = 0;
    return rc;
}

uint64_t archive_rows(const struct archive_writer *w) { return w->rows; }

const char *archive_missing(const struct archive_writer *w) { return w->missing; }

const char *archive_unread(const struct archive_writer *w) { return w->unread; }

int archive_finish(struct archive_writer *w, struct err *e) {
    char text[96];
    if (!w)
        return 0;
    snprintf(text, sizeof text, "INSERT INTO probing_recording VALUES ('ended_at', %.6f)", clock_epoch_s());
    int rc = archive_exec(w, text, e);
    if (sqlite3_close(w->db) != SQLITE_OK && rc == 0)
        rc = err_set(e, ERR_FAILED, "the recording cannot be closed");
    for (size_t i = 0; i < w->n_tables; i++) {
        free(w->tables[i].marks);
        free(w->tables[i].next);
    }
    free(w->origins);
    free(w);
    return rc;
}
