/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame_file: where the file of a frame is, as this program can open it.
 *
 * What a frame names is as its process sees it: in another root folder (a container) it is below
 * /proc/PID/root, and what is relative is in the folder where the process is now. Pure but for
 * looking at the files.
 */
#ifndef CLIENT_SYMBOLS_FRAME_FILE_H
#define CLIENT_SYMBOLS_FRAME_FILE_H

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

/* Path of a readable `file` of a frame of process `pid` (0: it has ended, or is unknown). 0, or
 * -1 with the error: it is not a file, or cannot be read here; or we are root, and users other
 * than the one who runs sudo might have written or replaced it: an editor obeys commands in a
 * file, and writes to the place where its name leads. */
int frame_file_find(pid_t pid, const char *file, char *buf, size_t cap, struct err *e);

#endif
