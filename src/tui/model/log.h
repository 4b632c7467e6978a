/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log: events in their order, for the Log screen and the end of Overview.
 *
 * A bounded ring: the oldest entries are dropped and counted. An entry that is repeated immediately
 * is counted, not listed again. The caller gives the time. One thread.
 */
#ifndef TUI_MODEL_LOG_H
#define TUI_MODEL_LOG_H

#include <stddef.h>
#include <stdint.h>

#define LOG_ENTRIES 1024 /* that are kept */
#define LOG_TEXT 1024    /* bytes of an entry, at most */

enum log_level {
    LOG_LEVEL_INFO = 0, /* something happened */
    LOG_LEVEL_WARN,     /* the display is incomplete, or the job was slowed */
    LOG_LEVEL_BAD,      /* something failed, or ended */
};

struct log_entry {
    double epoch_s; /* when; the first time, if it is repeated */
    double last_s;  /* and the last time */
    uint32_t times;
    enum log_level level;
    int64_t pid;      /* of the target it is about; 0: none, or there is only one */
    const char *text; /* unchanged: grid_text makes it safe to draw */
};

struct log;

struct log *log_new(void); /* NULL: out of memory; then nothing is logged */
void log_free(struct log *l);

/* Add an entry; `epoch_s` seconds since the epoch. `l` may be NULL. */
void log_add(struct log *l, double epoch_s, enum log_level level, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* The same about one of several targets. */
void log_add_of(struct log *l, int64_t pid, double epoch_s, enum log_level level, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

/* How many entries are kept; the one at `i`, 0 is the oldest, borrowed until the next is added, or
 * NULL. */
size_t log_count(const struct log *l);
const struct log_entry *log_at(const struct log *l, size_t i);

/* Incremented by every change, so that a reader sees whether there is something new. */
uint64_t log_serial(const struct log *l);

/* Entries that were dropped for newer ones, or for lack of memory. */
uint64_t log_lost(const struct log *l);

/* "info", "warning", "error". */
const char *log_level_name(enum log_level level);

#endif
