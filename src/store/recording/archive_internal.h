/* SPDX-License-Identifier: Apache-2.0 */
/* archive_internal: what writing and reading a recording share: how tables and types are called there; how a foreign file is opened. */
#ifndef STORE_RECORDING_ARCHIVE_INTERNAL_H
#define STORE_RECORDING_ARCHIVE_INTERNAL_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/ring/ring.h"

/* "python.samples" is stored as python_samples. */
void archive_table_name(const char *full, char *buf, size_t cap);

/* How a column is declared, so that SQLite keeps its values as they are. */
const char *archive_type(enum ring_type type);

/* ---- archive_guard.c ---- */

struct archive_guard {
    uint64_t
        operations; /* of SQLite's virtual machine that are left for a table; 0: what is read of it ends */
    uint64_t share; /* what a table has of them */
    uint64_t total; /* what all have */
    uint64_t rows;  /* as many as a file of that size can hold: who comes to more goes round in it */
};

/* Has the file a journal that names another one (a super-journal)? SQLite, playing that back, could remove what it names; a recording's
 * own never does (pager.c, pager_delsuper). Such a file is not opened for writing. */
bool archive_journal_is_foreign(const char *path);

/* Begin with the next table. */
void archive_guard_begin(struct archive_guard *g);

/* Make a connection that was just opened safe for a foreign file; `cut`: for one that is shorter than it says. `g` must outlive it. */
void archive_guard_install(struct archive_guard *g, sqlite3 *db, const char *path, bool cut);

#endif
