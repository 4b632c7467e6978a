/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols_files: opens the files that the helper for symbols reads. Private to symbols.
 *
 * Names come from the target and from its files. Each is resolved below the target's root, must
 * be a regular file which the target could read itself, and is opened without blocking
 * (base/file.h). One thread at a time.
 */
#ifndef CLIENT_SYMBOLS_SYMBOLS_FILES_H
#define CLIENT_SYMBOLS_SYMBOLS_FILES_H

#include <stdbool.h>
#include <sys/types.h>

#include "client/symbols/symbols_protocol.h"

/* Of one file of process `pid`. */
struct symbols_files {
    pid_t pid;
    const char *path;   /* as the process knows it */
    unsigned next;      /* the next location of its debug information */
    char *given;        /* the last of those that was opened; NULL none */
    bool given_is_ours; /* from our own /usr/lib/debug, `given` is relative to it */
    uint64_t spent_ns;  /* recent time for answers about it */
    uint64_t asked_ns;  /* time of the last count */
};

/* The file itself, or the vdso. A descriptor, or -1. */
int symbols_files_open(const struct symbols_files *f);

/* The next candidate for the wanted file. A descriptor, or -1 if there is no other. */
int symbols_files_open_debug(struct symbols_files *f, const struct symbols_want *want);

#endif
