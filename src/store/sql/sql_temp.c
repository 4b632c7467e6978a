/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sql_temp: SQLite's temporary files, in memory.
 *
 * With temp_store = MEMORY SQLite sorts a million rows as a million small allocations; with
 * files it sorts runs that fit a cache, twice as fast, but may fill a disk. So it uses files,
 * and these are its files: blocks of memory, counted like all of SQLite's. No other file can be
 * opened through here.
 */
#include <string.h>

#include "store/sql/sql_internal.h"

#define SQL_TEMP_BLOCK ((sqlite3_int64)256 * 1024)

struct sql_temp_file {
    sqlite3_file base;
    char **blocks;
    sqlite3_int64 n_blocks, size;
};

static int sql_temp_close(sqlite3_file *base) {
    struct sql_temp_file *f = (struct sql_temp_file *)base;
    for (sqlite3_int64 i = 0; i < f->n_blocks; i++)
        sqlite3_free(f->blocks[i]);
    sqlite3_free(f->blocks);
    f->blocks = NULL;
    f->n_blocks = f->size = 0;
    return SQLITE_OK;
}

/* Bytes of the block that contains `at`, at most `left`. */
static sqlite3_int64 sql_temp_piece(sqlite3_int64 at, sqlite3_int64 left) {
    sqlite3_int64 room = SQL_TEMP_BLOCK - at % SQL_TEMP_BLOCK;
    return room < left ? room : left;
}

static int sql_temp_read(sqlite3_file *base, void *data, int n, sqlite3_int64 at) {
    const struct sql_temp_file *f = (const struct sql_temp_file *)base;
    sqlite3_int64 there = at >= f->size ? 0 : f->size - at < n ? f->size - at : n;
    char *to = data;
    for (sqlite3_int64 left = there, piece; left > 0; left -= piece, at += piece, to += piece) {
        piece = sql_temp_piece(at, left);
        memcpy(to, f->blocks[at / SQL_TEMP_BLOCK] + at % SQL_TEMP_BLOCK, (size_t)piece);
    }
    if (there == n)
        return SQLITE_OK;
    memset(to, 0, (size_t)(n - there));
    return SQLITE_IOERR_SHORT_READ;
}

/* Make blocks up to `size`. */
static int sql_temp_grow(struct sql_temp_file *f, sqlite3_int64 size) {
    sqlite3_int64 wanted = (size + SQL_TEMP_BLOCK - 1) / SQL_TEMP_BLOCK;
    if (wanted <= f->n_blocks)
        return SQLITE_OK;
    char **more = sqlite3_realloc64(f->blocks, (sqlite3_uint64)wanted * sizeof *more);
    if (!more)
        return SQLITE_NOMEM;
    f->blocks = more;
    while (f->n_blocks < wanted) {
        char *block = sqlite3_malloc64((sqlite3_uint64)SQL_TEMP_BLOCK);
        if (!block)
            return SQLITE_NOMEM;
        memset(block, 0, (size_t)SQL_TEMP_BLOCK);
        f->blocks[f->n_blocks++] = block;
    }
    return SQLITE_OK;
}

static int sql_temp_write(sqlite3_file *base, const void *data, int n, sqlite3_int64 at) {
    struct sql_temp_file *f = (struct sql_temp_file *)base;
    const char *from = data;
    int rc = sql_temp_grow(f, at + n);
    if (rc != SQLITE_OK)
        return rc;
    f->size = at + n > f->size ? at + n : f->size;
    for (sqlite3_int64 left = n, piece; left > 0; left -= piece, at += piece, from += piece) {
        piece = sql_temp_piece(at, left);
        memcpy(f->blocks[at / SQL_TEMP_BLOCK] + at % SQL_TEMP_BLOCK, from, (size_t)piece);
    }
    return SQLITE_OK;
}

static int sql_temp_truncate(sqlite3_file *base, sqlite3_int64 size) {
    struct sql_temp_file *f = (struct sql_temp_file *)base;
    if (size < f->size) {
        /* Later writes behind it must not reveal the old content. */
        sqlite3_int64 keep = (size + SQL_TEMP_BLOCK - 1) / SQL_TEMP_BLOCK;
        while (f->n_blocks > keep)
            sqlite3_free(f->blocks[--f->n_blocks]);
        if (size % SQL_TEMP_BLOCK)
            memset(f->blocks[keep - 1] + size % SQL_TEMP_BLOCK, 0,
                   (size_t)(SQL_TEMP_BLOCK - size % SQL_TEMP_BLOCK));
        f->size = size;
    }
    return SQLITE_OK;
}

static int sql_temp_sync(sqlite3_file *base, int flags) {
    (void)base;
    (void)flags;
    return SQLITE_OK;
}

static int sql_temp_size(sqlite3_file *base, sqlite3_int64 *out) {
    *out = ((const struct sql_temp_file *)base)->size;
    return SQLITE_OK;
}

static int sql_temp_lock(sqlite3_file *base, int level) {
    (void)base;
    (void)level;
    return SQLITE_OK;
}

static int sql_temp_reserved(sqlite3_file *base, int *out) {
    (void)base;
    *out = 0;
    return SQLITE_OK;
}

static int sql_temp_control(sqlite3_file *base, int op, void *arg) {
    (void)base;
    (void)op;
    (void)arg;
    return SQLITE_NOTFOUND;
}

static int sql_temp_sector(sqlite3_file *base) {
    (void)base;
    return 4096;
}

static int sql_temp_traits(sqlite3_file *base) {
    (void)base;
    return SQLITE_IOCAP_SAFE_APPEND | SQLITE_IOCAP_SEQUENTIAL | SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static int sql_temp_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *base, int flags, int *out_flags) {
    static const sqlite3_io_methods methods = {
        .iVersion = 1,
        .xClose = sql_temp_close,
        .xRead = sql_temp_read,
        .xWrite = sql_temp_write,
        .xTruncate = sql_temp_truncate,
        .xSync = sql_temp_sync,
        .xFileSize = sql_temp_size,
        .xLock = sql_temp_lock,
        .xUnlock = sql_temp_lock,
        .xCheckReservedLock = sql_temp_reserved,
        .xFileControl = sql_temp_control,
        .xSectorSize = sql_temp_sector,
        .xDeviceCharacteristics = sql_temp_traits,
    };
    (void)vfs;
    *(struct sql_temp_file *)base = (struct sql_temp_file){.base = {.pMethods = NULL}};
    if (name || !(flags & SQLITE_OPEN_DELETEONCLOSE))
        return SQLITE_CANTOPEN;
    base->pMethods = &methods;
    if (out_flags)
        *out_flags = flags;
    return SQLITE_OK;
}

static int sql_temp_delete(sqlite3_vfs *vfs, const char *name, int sync) {
    (void)vfs;
    (void)name;
    (void)sync;
    return SQLITE_IOERR_DELETE;
}

static int sql_temp_access(sqlite3_vfs *vfs, const char *name, int flags, int *out) {
    (void)vfs;
    (void)name;
    (void)flags;
    *out = 0;
    return SQLITE_OK;
}

int sql_temp_register(void) {
    static sqlite3_vfs mine;
    const sqlite3_vfs *standard = sqlite3_vfs_find(NULL);
    if (sqlite3_vfs_find(SQL_TEMP_VFS))
        return 0;
    if (!standard)
        return -1;
    /* Time, randomness and names are the standard ones; files are ours. */
    mine = *standard;
    mine.pNext = NULL;
    mine.zName = SQL_TEMP_VFS;
    mine.szOsFile = (int)sizeof(struct sql_temp_file);
    mine.xOpen = sql_temp_open;
    mine.xDelete = sql_temp_delete;
    mine.xAccess = sql_temp_access;
    return sqlite3_vfs_register(&mine, 0) == SQLITE_OK ? 0 : -1;
}
