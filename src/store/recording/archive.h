/* SPDX-License-Identifier: Apache-2.0 */
/*
 * archive: the tables of targets as an ordinary SQLite database, written and read. Its schema is
 * docs/recording.md.
 *
 * Written a transaction at a time, so the file can be opened at any moment. Read into tables in
 * memory of the same form as a process writes: a query sees no difference. A file is foreign:
 * nothing in it is run, and invalid values are unknown. One thread at a time.
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

/* Start a recording at `path`, which must not exist. NULL with the error. */
struct archive_writer *archive_create(const char *path, struct err *e);

/* Add what the session's tables have and the recording lacks; with `now`, also the present rows
 * of tables that are made when they are read (those whose rows have times are always added). 0, or -1 with the error: then everything added
 * before is there. */
int archive_append(struct archive_writer *w, struct sql *s, bool now, struct err *e);

uint64_t archive_rows(const struct archive_writer *w);

/* What the recording lacks of what was collected, and why; "" nothing. */
const char *archive_missing(const struct archive_writer *w);

/* Which table that is made when it is read could not be read, of some target, and why; "" none. */
const char *archive_unread(const struct archive_writer *w);

/* Finish the recording. 0, or -1 with the error. */
int archive_finish(struct archive_writer *w, struct err *e);

/* ---- reading ---- */

struct archive;

/* True if the first bytes of the file are those of an SQLite database. */
bool archive_is_one(const char *path);

/* Read a recording. NULL with the error. */
struct archive *archive_open(const char *path, struct err *e);
void archive_close(struct archive *a);

size_t archive_targets(const struct archive *a);

/* The tables of target `i` as files in memory (ring_reader_open_fd). `fds` has room for `cap`;
 * the caller owns them from here. Returns their number. */
size_t archive_take_rings(struct archive *a, size_t i, int *fds, size_t cap);

/* What is missing and why; "" nothing. */
const char *archive_note(const struct archive *a);

#endif
