/* SPDX-License-Identifier: Apache-2.0 */
/* sql: see sql.h. The session: its targets and their tables. */
#include "store/sql/sql.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/ring/ring_dir.h"
#include "store/ring/ring_tables.h"
#include "store/sql/sql_internal.h"

#define SQL_MAX_TABLES 256
#define SQL_MAX_FILES 64 /* of a target */

/* Schemas are attached, empty databases in memory, so that SQLite itself resolves
 * python.samples. */
static const char *const sql_schemas[] = {"python", "system", "probing", "cluster"};

int sql_db_error(struct sql *s, struct err *e, const char *what) {
    return err_set(e, ERR_FAILED, "%s: %s", what, sqlite3_errmsg(s->db));
}

static void sql_add_note(struct sql *s, const char *text) {
    if (!s->note[0])
        snprintf(s->note, sizeof s->note, "%s", text);
}

/* ---- tables ---- */

/* Names that differ only in case are one to SQLite. */
struct sql_table *sql_table_find(const struct sql *s, const char *full) {
    for (size_t i = 0; i < s->n_tables; i++)
        if (strcasecmp(s->tables[i]->full, full) == 0)
            return s->tables[i];
    return NULL;
}

/* True if SQLite, or this program, needs the name itself. */
static bool sql_is_reserved(const char *name) {
    return strncasecmp(name, "sqlite_", 7) == 0 || strcasecmp(name, "probing_table") == 0;
}

static bool sql_is_bare(const char *full, const char *name) {
    const char *dot = strchr(full, '.');
    return strcasecmp(dot ? dot + 1 : full, name) == 0;
}

/* True if a query means another table by this name without a schema: a table of that name in "main" would
 * hide it, or take its place. */
static bool sql_is_taken(const struct sql *s, const char *name) {
    for (size_t i = 0; i < RING_TABLE_COUNT; i++)
        if (sql_is_bare(RING_TABLES[i].name, name) ||
            (RING_TABLES[i].alias && strcasecmp(RING_TABLES[i].alias, name) == 0))
            return true;
    for (size_t i = 0; i < s->n_tables; i++)
        if (strcasecmp(s->tables[i]->name, name) == 0 || strcasecmp(s->tables[i]->alias, name) == 0)
            return true;
    return false;
}

/* Split "python.samples". Returns whether a table may have that name. */
static bool sql_split_name(const char *full, struct sql_table *t) {
    const char *dot = strchr(full, '.');
    if (strlen(full) >= RING_MAX_NAME)
        return false;
    snprintf(t->full, sizeof t->full, "%s", full);
    t->symbols = strcmp(full, RING_TABLES[RING_FRAMES].name) == 0;
    snprintf(t->name, sizeof t->name, "%s", dot ? dot + 1 : full);
    if (sql_is_reserved(t->name))
        return false;
    if (!dot)
        return true;
    snprintf(t->schema, sizeof t->schema, "%.*s", (int)(dot - full), full);
    for (size_t i = 0; i < sizeof sql_schemas / sizeof sql_schemas[0]; i++)
        if (strcmp(t->schema, sql_schemas[i]) == 0)
            return true;
    return false;
}

/* The table of that name, made if needed. NULL if it cannot be made. */
static struct sql_table *sql_table_make(struct sql *s, const char *full, const char *alias, const char *help,
                                        enum ring_cost cost, double retention_s) {
    struct sql_table *t = sql_table_find(s, full);
    if (t || s->n_tables == SQL_MAX_TABLES)
        return t;
    const struct ring_table_def *known = ring_table_find(full);
    t = calloc(1, sizeof *t);
    struct sql_table **more = realloc(s->tables, (s->n_tables + 1) * sizeof *more);
    if (more)
        s->tables = more;
    if (!t || !more || !sql_split_name(full, t) || (!known && !t->schema[0] && sql_is_taken(s, t->name))) {
        free(t);
        return NULL;
    }
    t->help = strdup(help ? help : "");
    /* An alias must not hide a table. */
    if (alias && !strchr(alias, '.') && !sql_is_reserved(alias) && (known || !sql_is_taken(s, alias)))
        snprintf(t->alias, sizeof t->alias, "%s", alias);
    t->cost = cost;
    t->retention_s = retention_s;
    t->changed = true;
    s->tables[s->n_tables++] = t;
    return t;
}

static const char *const sql_common[SQL_COMMON] = {"rank", "host", "pid"};

/* Index of the table's column of that name, added if needed; -1 if it cannot be added. */
static int sql_column_make(struct sql_table *t, const char *name, enum ring_type type, const char *unit,
                           const char *help) {
    for (size_t i = 0; i < SQL_COMMON; i++)
        if (strcasecmp(name, sql_common[i]) == 0)
            return -1;
    for (size_t i = 0; i < t->n_columns; i++)
        if (strcasecmp(name, t->columns[i].name) == 0)
            return (int)i;
    if (t->n_columns == RING_MAX_COLUMNS - SQL_COMMON)
        return -1;
    struct sql_column_info *more = realloc(t->columns, (t->n_columns + 1) * sizeof *more);
    if (!more)
        return -1;
    t->columns = more;
    struct sql_column_info c = {.name = strdup(name),
                                .unit = strdup(unit ? unit : ""),
                                .help = strdup(help ? help : ""),
                                .type = type};
    if (!c.name || !c.unit || !c.help) {
        free((char *)c.name);
        free((char *)c.unit);
        free((char *)c.help);
        return -1;
    }
    t->columns[t->n_columns] = c;
    t->changed = true;
    return (int)t->n_columns++;
}

static void sql_table_free(struct sql_table *t) {
    for (size_t i = 0; i < t->n_columns; i++) {
        free((char *)t->columns[i].name);
        free((char *)t->columns[i].unit);
        free((char *)t->columns[i].help);
    }
    for (size_t i = 0; i < t->n_sources; i++)
        sql_source_fini(&t->sources[i]);
    for (size_t i = 0; i < SQL_INDEXES; i++)
        sql_index_free(t->indexes[i]);
    free(t->columns);
    free(t->sources);
    free(t->help);
    free(t);
}

static struct sql_table *sql_table_of_def(struct sql *s, const struct ring_table_def *def) {
    struct sql_table *t = sql_table_make(s, def->name, def->alias, def->help, def->cost, def->retention_s);
    for (const struct ring_column_def *c = def->columns; t && c->name; c++)
        sql_column_make(t, c->name, c->type, c->unit, c->help);
    return t;
}

/* A new source of the table, all columns unknown. */
static struct sql_source *sql_source_add(struct sql_table *t, struct sql_target_state *target) {
    struct sql_source *more = realloc(t->sources, (t->n_sources + 1) * sizeof *more);
    if (!more)
        return NULL;
    t->sources = more;
    struct sql_source *src = &t->sources[t->n_sources++];
    *src = (struct sql_source){.target = target};
    for (int i = 0; i < RING_MAX_COLUMNS; i++)
        src->map[i] = -1;
    for (int i = 0; i < SQL_COMMON; i++)
        src->common[i] = -1;
    return src;
}

/* True if the table cannot be done without: one of ours, or without memory, when another time may succeed. */
static bool sql_is_needed(const struct sql *s, const struct sql_table *t) {
    bool needed = ring_table_find(t->full) || sqlite3_errcode(s->db) == SQLITE_NOMEM;
    for (size_t i = 0; !needed && i < t->n_sources; i++)
        needed = t->sources[i].provider;
    return needed;
}

/* Declare tables to SQLite that are new or have new columns. A file's table that SQLite refuses is left out: the
 * others are there. */
static int sql_declare_all(struct sql *s, struct err *e) {
    int rc = 0;
    s->guarded = false;
    for (size_t i = 0; rc == 0 && i < s->n_tables; i++) {
        struct sql_table *t = s->tables[i];
        struct err why;
        if (!t->changed || sql_vtab_declare(s, t, &why) == 0)
            continue;
        if (sql_is_needed(s, t)) {
            rc = err_set(e, ERR_FAILED, "%s", why.text);
        } else {
            sql_add_note(s, why.text);
            t->changed = false;
            t->absent = true;
        }
    }
    s->guarded = true;
    return rc;
}

/* ---- targets ---- */

static int sql_add_provider(struct sql *s, struct sql_target_state *target, const struct sql_provider *p) {
    struct sql_table *t = sql_table_of_def(s, p->def);
    struct sql_source *src = t ? sql_source_add(t, target) : NULL;
    if (!src)
        return -1;
    src->provider = p;
    for (int i = 0; p->def->columns[i].name; i++) {
        const struct ring_column_def *c = &p->def->columns[i];
        int column = sql_column_make(t, c->name, c->type, c->unit, c->help);
        if (column >= 0)
            src->map[column] = i;
        for (size_t k = 0; k < SQL_COMMON; k++)
            if (strcmp(c->name, sql_common[k]) == 0)
                src->common[k] = i;
    }
    return 0;
}

/* The target's identity, where it was not given. */
static void sql_learn(struct sql_target_state *target, const struct ring_info *info) {
    if (target->pid == RING_INT_NULL)
        target->pid = info->pid;
    if (target->rank == RING_INT_NULL)
        target->rank = info->rank;
    if (!target->host && info->host[0])
        target->host = strdup(info->host);
}

/* True for a table whose rows the client makes itself: a process has no files of it. */
static bool sql_is_live(const char *full, const struct ring_table_def *known) {
    return known ? known - RING_TABLES >= RING_TABLE_KEPT : strncasecmp(full, "cluster.", 8) == 0;
}

static void sql_use_file(struct sql *s, struct sql_target_state *target, struct ring_reader *reader,
                         ino_t inode) {
    const struct ring_info *info = ring_reader_info(reader);
    const struct ring_table_def *known = ring_table_find(info->name);
    bool refused = !target->is_recorded && sql_is_live(info->name, known);
    struct sql_table *t = refused ? NULL
                          : known ? sql_table_of_def(s, known)
                                  : sql_table_make(s, info->name, info->alias[0] ? info->alias : NULL,
                                                   info->help, info->cost, info->retention_s);
    struct sql_source *src = NULL;
    for (size_t i = 0; t && i < t->n_sources; i++)
        if (t->sources[i].target == target && !t->sources[i].provider)
            src = &t->sources[i];
    if (t && !src)
        src = sql_source_add(t, target);
    if (!src) {
        char note[sizeof s->note];
        snprintf(note, sizeof note, "a table that cannot be shown was left out: %s%s", info->name,
                 refused ? ", which a process does not write" : "");
        ring_reader_close(reader);
        sql_add_note(s, note);
        return;
    }
    sql_learn(target, info);
    ring_reader_close(src->reader);
    src->reader = reader;
    src->inode = inode;
    src->query = 0;
    for (int i = 0; i < RING_MAX_COLUMNS; i++)
        src->map[i] = -1;
    for (size_t i = 0; i < info->n_columns; i++) {
        const struct ring_column_info *c = &info->columns[i];
        /* Of a type of a newer version: skipped. */
        if (c->type < RING_TIMESTAMP || c->type > RING_BOOL)
            continue;
        int column = sql_column_make(t, c->name, (enum ring_type)c->type, c->unit, c->help);
        if (column >= 0)
            src->map[column] = (int)i;
    }
}

static bool sql_file_known(const struct sql *s, const struct sql_target_state *target, ino_t inode) {
    for (size_t i = 0; i < s->n_tables; i++)
        for (size_t k = 0; k < s->tables[i]->n_sources; k++) {
            const struct sql_source *src = &s->tables[i]->sources[k];
            if (src->target == target && src->reader && src->inode == inode)
                return true;
        }
    return false;
}

/* Add the new ring files of the target's folder. */
static int sql_scan_folder(struct sql *s, struct sql_target_state *target, struct err *e) {
    DIR *d = opendir(target->ring_dir);
    if (!d)
        return err_set_errno(e, ERR_FAILED, errno, "%s", target->ring_dir);
    size_t files = 0;
    for (struct dirent *entry; files < SQL_MAX_FILES && (entry = readdir(d));) {
        char path[RING_DIR_PATH + 300];
        struct stat st;
        struct err why;
        size_t n = strlen(entry->d_name), suffix = strlen(RING_DIR_SUFFIX);
        if (n <= suffix || strcmp(entry->d_name + n - suffix, RING_DIR_SUFFIX) != 0)
            continue;
        files++;
        snprintf(path, sizeof path, "%s/%s", target->ring_dir, entry->d_name);
        if (lstat(path, &st) != 0 || sql_file_known(s, target, st.st_ino))
            continue;
        struct ring_reader *reader = ring_reader_open(path, target->owner, &why);
        if (reader)
            sql_use_file(s, target, reader, st.st_ino);
        else
            sql_add_note(s, why.text);
    }
    closedir(d);
    return 0;
}

static void sql_use_descriptor(struct sql *s, struct sql_target_state *target, int fd) {
    struct stat st;
    struct err why;
    ino_t inode = fstat(fd, &st) == 0 ? st.st_ino : 0;
    struct ring_reader *reader = ring_reader_open_fd(fd, "a copy of a table", &why);
    if (reader)
        sql_use_file(s, target, reader, inode);
    else
        sql_add_note(s, why.text);
}

static void sql_target_free(struct sql_target_state *t) {
    free(t->host);
    free(t->ring_dir);
    free(t);
}

int sql_add_target(struct sql *s, const struct sql_target *t, struct err *e) {
    struct sql_target_state **more = realloc(s->targets, (s->n_targets + 1) * sizeof *more);
    if (more)
        s->targets = more;
    struct sql_target_state *target = calloc(1, sizeof *target);
    if (!more || !target || s->n_targets == SQL_MAX_TARGETS || s->running) {
        free(target);
        return err_set(e, ERR_FAILED, s->running ? "a query is running" : "too many targets");
    }
    *target = (struct sql_target_state){.index = (uint32_t)s->n_targets,
                                        .pid = t->pid,
                                        .rank = t->rank,
                                        .host = t->host ? strdup(t->host) : NULL,
                                        .ring_dir = t->ring_dir ? strdup(t->ring_dir) : NULL,
                                        .owner = t->owner,
                                        .is_recorded = t->is_recorded,
                                        .providers = t->providers,
                                        .n_providers = t->n_providers};
    if (t->ring_dir && (!target->ring_dir || sql_scan_folder(s, target, e) != 0)) {
        sql_target_free(target);
        return -1;
    }
    s->targets[s->n_targets++] = target;
    for (size_t i = 0; i < t->n_ring_fds; i++)
        sql_use_descriptor(s, target, t->ring_fds[i]);
    for (size_t i = 0; i < t->n_providers; i++)
        if (sql_add_provider(s, target, &t->providers[i]) != 0)
            return err_set(e, ERR_FAILED, "table %s cannot be added", t->providers[i].def->name);
    return sql_declare_all(s, e);
}

size_t sql_target_count(const struct sql *s) { return s->n_targets; }

int64_t sql_target_pid(const struct sql *s, size_t target) { return s->targets[target]->pid; }

int64_t sql_target_rank(const struct sql *s, size_t target) { return s->targets[target]->rank; }

bool sql_has_files(const struct sql *s, size_t target) {
    for (size_t i = 0; i < s->n_tables; i++)
        for (size_t k = 0; k < s->tables[i]->n_sources; k++)
            if (s->tables[i]->sources[k].target->index == target && s->tables[i]->sources[k].reader)
                return true;
    return false;
}

int sql_set_ring_dir(struct sql *s, size_t target, const char *ring_dir, uid_t owner, struct err *e) {
    if (s->running || target >= s->n_targets)
        return err_set(e, ERR_FAILED, s->running ? "a query is running" : "no such target");
    char *copy = strdup(ring_dir);
    if (!copy)
        return err_set(e, ERR_FAILED, "out of memory");
    free(s->targets[target]->ring_dir);
    s->targets[target]->ring_dir = copy;
    s->targets[target]->owner = owner;
    return sql_scan_folder(s, s->targets[target], e) == 0 ? sql_declare_all(s, e) : -1;
}

int sql_add_files(struct sql *s, size_t target, const int *fds, size_t n, struct err *e) {
    bool can = !s->running && target < s->n_targets;
    for (size_t i = 0; i < n; i++)
        if (can)
            sql_use_descriptor(s, s->targets[target], fds[i]);
        else
            close(fds[i]);
    if (!can)
        return err_set(e, ERR_FAILED, s->running ? "a query is running" : "no such target");
    return sql_declare_all(s, e);
}

int sql_refresh(struct sql *s, struct err *e) {
    if (s->running)
        return err_set(e, ERR_FAILED, "a query is running");
    for (size_t i = 0; i < s->n_targets; i++)
        if (s->targets[i]->ring_dir)
            sql_scan_folder(s, s->targets[i], NULL); /* the folder is gone: open files can still be read */
    return sql_declare_all(s, e);
}

void sql_limit_memory(int64_t bytes) { sqlite3_hard_heap_limit64(bytes); }

const char *sql_note(const struct sql *s) { return s->note; }

void sql_set_now(struct sql *s, double now) { s->fixed_now = now; }

/* ---- the session ---- */

static int sql_set_up(struct sql *s, struct err *e) {
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MEMORY | SQLITE_OPEN_NOMUTEX;
    if (sql_temp_register() != 0 || sqlite3_open_v2(":memory:", &s->db, flags, SQL_TEMP_VFS) != SQLITE_OK)
        return err_set(e, ERR_FAILED, "cannot start SQLite");
    sqlite3_hard_heap_limit64(SQL_MAX_MEMORY);
    /* Its files are memory (sql_temp.c): nothing is ever written to a disk, and a query that
     * exceeds it ends. */
    if (sqlite3_exec(s->db, "PRAGMA temp_store = FILE", NULL, NULL, NULL) != SQLITE_OK)
        return sql_db_error(s, e, "cannot set up SQLite");
    for (size_t i = 0; i < sizeof sql_schemas / sizeof sql_schemas[0]; i++) {
        char text[64];
        snprintf(text, sizeof text, "ATTACH ':memory:' AS %s", sql_schemas[i]);
        if (sqlite3_exec(s->db, text, NULL, NULL, NULL) != SQLITE_OK)
            return sql_db_error(s, e, "cannot set up SQLite");
    }
    if (sql_function_register(s, e) != 0 || sql_aggregate_register(s, e) != 0 ||
        sql_fold_register(s, e) != 0 || sql_vtab_register(s, e) != 0)
        return -1;
    for (int i = 0; i < RING_TABLE_KEPT; i++) {
        struct sql_table *t = sql_table_of_def(s, &RING_TABLES[i]);
        if (!t)
            return err_set(e, ERR_FAILED, "out of memory");
    }
    sql_guard_install(s);
    return sql_declare_all(s, e);
}

struct sql *sql_open(struct err *e) {
    struct sql *s = calloc(1, sizeof *s);
    if (!s) {
        err_set(e, ERR_FAILED, "out of memory");
        return NULL;
    }
    s->fixed_now = NAN;
    if (sql_set_up(s, e) != 0) {
        sql_close(s);
        return NULL;
    }
    return s;
}

void sql_set_demangle(struct sql *s, void (*demangle)(const char *symbol, char *out, size_t cap)) {
    s->demangle = demangle;
}

void sql_close(struct sql *s) {
    if (!s)
        return;
    sql_end(s->running);
    sql_drop_kept(s);
    sqlite3_close(s->db);
    for (size_t i = 0; i < s->n_tables; i++)
        sql_table_free(s->tables[i]);
    for (size_t i = 0; i < s->n_targets; i++)
        sql_target_free(s->targets[i]);
    sql_fold_free(s->fold);
    free(s->tables);
    free(s->targets);
    free(s);
}

/* ---- what there is ---- */

size_t sql_table_count(const struct sql *s) {
    size_t n = 0;
    for (size_t i = 0; i < s->n_tables; i++)
        n += !s->tables[i]->absent;
    return n;
}

bool sql_has_table(const struct sql *s, const char *name) {
    const struct sql_table *t = sql_table_find(s, name);
    return t && !t->absent;
}

/* Index of the `i`-th table by name. */
static size_t sql_table_by_name(const struct sql *s, size_t i) {
    for (size_t k = 0; k < s->n_tables; k++) {
        size_t before = 0;
        for (size_t j = 0; j < s->n_tables; j++)
            before += !s->tables[j]->absent && strcmp(s->tables[j]->full, s->tables[k]->full) < 0;
        if (!s->tables[k]->absent && before == i)
            return k;
    }
    return 0;
}

/* Add a ring's extent to the description. */
static void sql_add_extent(struct sql_source *src, struct sql_table_info *out) {
    uint64_t oldest, next;
    size_t n;
    if (!src->reader || ring_reader_refresh(src->reader, NULL) != 0)
        return;
    src->query = 0;
    ring_reader_range(src->reader, &oldest, &next);
    out->bytes += ring_reader_info(src->reader)->file_bytes;
    const struct ring_chunk *chunks = ring_reader_chunks(src->reader, &n);
    for (size_t i = 0; i < n; i++) {
        out->rows += chunks[i].rows;
        if (ring_reader_info(src->reader)->time_column < 0)
            continue;
        double first = (double)chunks[i].min_us / 1e6, last = (double)chunks[i].max_us / 1e6;
        out->oldest = first < out->oldest || isnan(out->oldest) ? first : out->oldest;
        out->newest = last > out->newest || isnan(out->newest) ? last : out->newest;
    }
}

static void sql_table_describe(struct sql *s, struct sql_table *t, struct sql_table_info *out) {
    *out = (struct sql_table_info){.name = t->full,
                                   .alias = t->alias,
                                   .help = t->help ? t->help : "",
                                   .cost = t->cost,
                                   .retention_s = t->retention_s,
                                   .oldest = NAN,
                                   .newest = NAN,
                                   .columns = t->columns,
                                   .n_columns = t->n_columns,
                                   .n_sources = t->n_sources};
    for (size_t i = 0; !s->running && i < t->n_sources; i++)
        sql_add_extent(&t->sources[i], out);
    /* how much a provider has is not known before it is read */
    for (size_t i = 0; i < t->n_sources; i++) {
        const struct sql_provider *p = t->sources[i].provider;
        out->cost = p ? RING_COST_NOW : out->cost;
        out->key = p && p->key ? p->key : out->key;
    }
}

const char *sql_table_name(const struct sql *s, size_t i) { return s->tables[sql_table_by_name(s, i)]->full; }

void sql_table_info(struct sql *s, size_t i, struct sql_table_info *out) {
    sql_table_describe(s, s->tables[sql_table_by_name(s, i)], out);
}

bool sql_source_info(const struct sql *s, const char *table, size_t source, struct sql_source_info *out) {
    const struct sql_table *t = sql_table_find(s, table);
    if (!t || source >= t->n_sources)
        return false;
    const struct sql_source *src = &t->sources[source];
    *out = (struct sql_source_info){.target = src->target->index,
                                    .has_file = src->reader != NULL,
                                    .made_at = src->reader ? ring_reader_info(src->reader)->created_at : NAN};
    return true;
}

double sql_newest(struct sql *s) {
    double newest = NAN;
    for (size_t i = 0; i < s->n_tables; i++) {
        struct sql_table_info info;
        sql_table_describe(s, s->tables[i], &info);
        newest = info.newest > newest || isnan(newest) ? info.newest : newest;
    }
    return newest;
}
