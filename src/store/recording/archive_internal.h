/* SPDX-License-Identifier: Apache-2.0 */
/* archive_internal: shared by writing and reading a recording: names of tables and types, and
 * opening a foreign file. */
#ifndef STORE_RECORDING_ARCHIVE_INTERNAL_H
#define STORE_RECORDING_ARCHIVE_INTERNAL_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/ring/ring.h"

/* "python.samples" is stored as python_samples. */
void archive_table_name(const char *full, char *buf, size_t cap);

/* The declared type of a column with which SQLite keeps its values unchanged. */
const char *archive_type(enum ring_type type);

/* ---- archive_guard.c ---- */

struct archive_guard {
    /* of SQLite's virtual machine left for a table; at 0 reading it ends */
    uint64_t operations;
    uint64_t share; /* the share of one table */
    uint64_t total; /* for all tables */
    /* as many as a file of that size can contain: reading more means going round in it */
    uint64_t rows;
};

/* True if the file has a journal that names another file (a super-journal). Playing it back,
 * SQLite could remove the named file; a recording's own journal never names one (pager.c,
 * pager_delsuper). Such a file is not opened for writing. */
bool archive_journal_is_foreign(const char *path);

/* Start the next table. */
void archive_guard_begin(struct archive_guard *g);

/* Make a new connection safe for a foreign file; `cut`: for one that is shorter than its header
 * says. `g` must outlive it. */
void archive_guard_install(struct archive_guard *g, sqlite3 *db, const char *path, bool cut);

#endif
