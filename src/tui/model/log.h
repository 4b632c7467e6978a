/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log: what happened, in the order it did, for the Log screen and the end of Overview.
 *
 * A bounded ring: the oldest entries give way, and how many did is known. What is said again at once is counted, not listed
 * again. Time is what the caller says it is. One thread.
 */
#ifndef TUI_MODEL_LOG_H
#define TUI_MODEL_LOG_H

#include <stddef.h>
#include <stdint.h>

#define LOG_ENTRIES 1024 /* that are kept */
#define LOG_TEXT 1024    /* bytes of one, at most */

enum log_level {
    LOG_LEVEL_INFO = 0, /* something happened */
    LOG_LEVEL_WARN,     /* and what is shown is less than it could be, or the job was slowed */
    LOG_LEVEL_BAD,      /* something failed, or ended */
};

struct log_entry {
    double epoch_s; /* when; the first time, if it was said more than once */
    double last_s;  /* and the last time */
    uint32_t times;
    enum log_level level;
    int64_t pid;      /* of the target it is about; 0: of none, or there is only one */
    const char *text; /* as it was given: not yet fit to be drawn (grid_text sees to that) */
};

struct log;

struct log *log_new(void); /* NULL without memory; then nothing is logged */
void log_free(struct log *l);

/* Add an entry; `epoch_s` seconds since the epoch. `l` may be NULL. */
void log_add(struct log *l, double epoch_s, enum log_level level, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* The same about one of several targets. */
void log_add_of(struct log *l, int64_t pid, double epoch_s, enum log_level level, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

/* Entries that are kept; the one at `i`, 0 the oldest, borrowed until the next is added, or NULL. */
size_t log_count(const struct log *l);
const struct log_entry *log_at(const struct log *l, size_t i);

/* Counts up with every change: a reader that kept it knows whether there is something new. */
uint64_t log_serial(const struct log *l);

/* Entries that gave way to newer ones, or found no memory. */
uint64_t log_lost(const struct log *l);

/* "info", "warning", "error". */
const char *log_level_name(enum log_level level);

#endif
