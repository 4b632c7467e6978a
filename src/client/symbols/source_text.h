/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_text: lines of a file that a frame of a process names, as that process sees it: below
 * its root, or from its folder.
 *
 * Bounded: regular files only, a maximum of lines, each cut; nothing beyond SOURCE_MAX_BYTES is
 * searched. Reading may block on a file system: never on a thread that draws. The bytes are the
 * file's: the drawing code makes them harmless.
 */
#ifndef CLIENT_SYMBOLS_SOURCE_TEXT_H
#define CLIENT_SYMBOLS_SOURCE_TEXT_H

#include <sys/types.h>

#include "base/err.h"

#define SOURCE_MAX_LINES 80
#define SOURCE_LINE 320
#define SOURCE_MAX_BYTES ((size_t)16 * 1024 * 1024)

struct source_text {
    char path[1024];
    int from; /* number of the first line, from 1 */
    int n;
    /* tabs become blanks, the end of a long line is left out */
    char lines[SOURCE_MAX_LINES][SOURCE_LINE];
    struct err why; /* why there are none, if n is 0 */
};

/* Read up to SOURCE_MAX_LINES lines from `from` on of the file `path` of process `pid` (0: of
 * this machine). 0, or -1 with the error, which is in out->why too. */
int source_read(struct source_text *out, pid_t pid, const char *path, int from, struct err *e);

#endif
