/* SPDX-License-Identifier: Apache-2.0 */
/* log: see log.h. */
#include "tui/model/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct log {
    struct log_entry entries[LOG_ENTRIES]; /* a ring; texts are owned */
    size_t first, n;
    uint64_t serial, lost;
};

struct log *log_new(void) {
    return calloc(1, sizeof(struct log));
}

/* The ring owns the text of an entry; readers get it as const. */
static void log_drop_text(struct log_entry *e) {
    free((char *)(uintptr_t)e->text);
    e->text = NULL;
}

void log_free(struct log *l) {
    if (!l)
        return;
    for (size_t i = 0; i < LOG_ENTRIES; i++)
        log_drop_text(&l->entries[i]);
    free(l);
}

static struct log_entry *log_slot(struct log *l, size_t i) {
    return &l->entries[(l->first + i) % LOG_ENTRIES];
}

static void log_put(struct log *l, int64_t pid, double epoch_s, enum log_level level, const char *text) {
    struct log_entry *last = l->n ? log_slot(l, l->n - 1) : NULL;
    l->serial++;
    if (last && last->level == level && last->pid == pid && strcmp(last->text, text) == 0) {
        last->times++;
        last->last_s = epoch_s;
        return;
    }
    char *kept = strdup(text);
    if (!kept) {
        l->lost++;
        return;
    }
    if (l->n == LOG_ENTRIES) {
        log_drop_text(&l->entries[l->first]);
        l->first = (l->first + 1) % LOG_ENTRIES;
        l->n--;
        l->lost++;
    }
    *log_slot(l, l->n++) = (struct log_entry){epoch_s, epoch_s, 1, level, pid, kept};
}

void log_add(struct log *l, double epoch_s, enum log_level level, const char *fmt, ...) {
    char text[LOG_TEXT];
    va_list ap;
    if (!l)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    log_put(l, 0, epoch_s, level, text);
}

void log_add_of(struct log *l, int64_t pid, double epoch_s, enum log_level level, const char *fmt, ...) {
    char text[LOG_TEXT];
    va_list ap;
    if (!l)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    log_put(l, pid, epoch_s, level, text);
}

size_t log_count(const struct log *l) { return l ? l->n : 0; }

const struct log_entry *log_at(const struct log *l, size_t i) {
    return l && i < l->n ? &l->entries[(l->first + i) % LOG_ENTRIES] : NULL;
}

uint64_t log_serial(const struct log *l) { return l ? l->serial : 0; }

uint64_t log_lost(const struct log *l) { return l ? l->lost : 0; }

const char *log_level_name(enum log_level level) {
    return level == LOG_LEVEL_BAD ? "error" : level == LOG_LEVEL_WARN ? "warning" : "info";
}
