/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reread: reads a small file of the kernel, of /proc or /sys, again and again.
 *
 * Finding such a file by its name costs as much as reading it, so it can stay open in between. No
 * thread of its own; usable inside the job, where a descriptor may only stay open in a table that
 * is not the job's (agent/fds.h).
 */
#ifndef BASE_REREAD_H
#define BASE_REREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* All zero: not open. */
struct reread {
    int number; /* of its descriptor, + 1 */
};

/* Read the file from its beginning, at most `cap` - 1 bytes and a NUL, with one call. It is opened
 * by its path if it is not open, and stays open with `keep`, until it cannot be read. Returns the
 * number of bytes, or -1 with errno. */
ssize_t reread_file(struct reread *f, const char *path, bool keep, char *buf, size_t cap);

void reread_close(struct reread *f);

#endif
