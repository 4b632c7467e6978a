/* SPDX-License-Identifier: Apache-2.0 */
/*
 * archive: what targets' tables hold, as an ordinary SQLite database, and back. Its schema is docs/recording.md.
 *
 * Written a transaction at a time, so that what is there at any moment can be opened. Read into tables in memory, of the same form as a
 * process writes them: a query sees no difference. A file is foreign: nothing in it is run, what cannot be is unknown. One thread at a time.
 */
#ifndef STORE_RECORDING_ARCHIVE_H
#define STORE_RECORDING_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "store/sql/sql.h"

#define ARCHIVE_SCHEMA_VERSION 1
#define ARCHIVE_MAX_TARGETS 256

/* ---- writing ---- */

struct archive_writer;

/* Begin a recording at `path`, where nothing may be. NULL with the error. */
struct archive_writer *archive_create(const char *path, struct err *e);

/* Add what the session's tables hold and the recording does not; with `now`, also what tables that are made when they are read say
 * at this moment. 0, or -1 with the error: then what was added before is there. */
int archive_append(struct archive_writer *w, struct sql *s, bool now, struct err *e);

uint64_t archive_rows(const struct archive_writer *w);

/* End it. 0, or -1 with the error. */
int archive_finish(struct archive_writer *w, struct err *e);

/* ---- reading ---- */

struct archive;

/* Is this file a database of SQLite, by its first bytes? */
bool archive_is_one(const char *path);

/* Read a recording. NULL with the error. */
struct archive *archive_open(const char *path, struct err *e);
void archive_close(struct archive *a);

size_t archive_targets(const struct archive *a);

/* Tables of target `i` as files in memory (ring_reader_open_fd); `fds` has room for `cap`, they are the caller's from here. How many. */
size_t archive_take_rings(struct archive *a, size_t i, int *fds, size_t cap);

/* What is missing and why; "" nothing. */
const char *archive_note(const struct archive *a);

#endif
