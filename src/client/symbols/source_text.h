/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_text: lines of a file that a frame of a process names, as that process sees the file: below its root, or from its folder.
 *
 * Bounded: regular files only, so many lines, each cut; what is beyond SOURCE_MAX_BYTES is not looked for. Reading may wait for a
 * file system: never on a thread that draws. The bytes are the file's: whoever draws them makes them harmless.
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
    char lines[SOURCE_MAX_LINES][SOURCE_LINE]; /* tabs are blanks, the end of a long line is left out */
    struct err why;                            /* n is 0: why there are none */
};

/* Read up to SOURCE_MAX_LINES lines from `from` on of the file `path` of process `pid` (0: of this machine). 0, or -1 with the error,
 * which is in out->why too. */
int source_read(struct source_text *out, pid_t pid, const char *path, int from, struct err *e);

#endif
