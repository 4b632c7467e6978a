/* SPDX-License-Identifier: Apache-2.0 */
/*
 * history: queries and commands, kept from one run of the program to the next.
 *
 * A file of lines, one entry a line, newest last; a line break in an entry is written "\n", a
 * backslash "\\". Entries are appended under a lock, together with reading what other instances
 * have appended. The file is shortened by a new one that takes its name, under the same lock.
 * Mode 0600. Without a file everything works for as long as the program runs. One thread.
 */
#ifndef CLIENT_HISTORY_H
#define CLIENT_HISTORY_H

#include <stddef.h>

#include "base/err.h"

#define HISTORY_MAX_ENTRIES 1000
#define HISTORY_MAX_ENTRY ((size_t)64 * 1024)
#define HISTORY_MAX_BYTES ((size_t)1024 * 1024)

struct history {
    char path[512];
    char **entries; /* oldest first */
    size_t n, cap;
    size_t bytes;
};

/* $XDG_STATE_HOME/probing-top/NAME, otherwise ~/.local/state/...; "" if neither is known. NAME is
 * "history" for queries, "commands" for the command line. */
void history_where(const char *name, char *buf, size_t cap);

/* The same, and makes the folders. */
void history_path(const char *name, char *buf, size_t cap);

/* Read `path`; "" keeps none. A missing file is empty. 0; -1 with the reason why entries will
 * not be kept: then the history is empty, has no file, and works. */
int history_open(struct history *h, const char *path, struct err *e);
void history_fini(struct history *h);

/* Add an entry at the end, unless it equals the last one; blank ones are left out. 0; -1 with
 * the reason why it was not written: it is in memory all the same. */
int history_add(struct history *h, const char *text, struct err *e);

/* The newest entry before number `before` that contains `text`; its number, or -1. */
long history_find(const struct history *h, const char *text, size_t before);

#endif
