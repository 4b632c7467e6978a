/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file: opens files whose names come from others: a target, an agent, a recording.
 *
 * Opening a device or a FIFO has effects (a watchdog is armed, a tape rewinds, a FIFO waits for
 * its other end), and a link leads where its owner likes. So a file is taken with O_PATH first,
 * which has no effect on it. Its type and owner are checked. Then that very file, not its name
 * again, is opened through /proc/self/fd. Any thread may call anything.
 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>
#include <stdint.h>

enum file_links {
    FILE_LINKS_REFUSED, /* no symbolic link anywhere in the path, and no ".." above the folder */
    /* followed with the folder as their root; refused where the kernel lacks openat2 */
    FILE_LINKS_IN_ROOT,
    FILE_LINKS_FOLLOWED,
};

#define FILE_ANY_OWNER (-1)

/* Take `path`, relative to the open folder `folder` (or AT_FDCWD), without opening it. Returns a
 * descriptor that only stands for the file (O_PATH), or -1 with errno: ELOOP for a refused link,
 * EXDEV for a path that leaves the folder. */
int file_take(int folder, const char *path, enum file_links links);

/* Open what `taken` stands for, if it is a regular file of user `owner` (FILE_ANY_OWNER: of
 * anyone), with `flags` (O_RDONLY ... O_RDWR). Closes `taken` in any case. Returns a descriptor,
 * or -1 with errno: EINVAL if it is not a regular file, or one of /proc, /sys and similar file
 * systems; EPERM if it belongs to another user. */
int file_open_taken(int taken, int flags, int64_t owner);

/* Both. */
int file_open_regular(int folder, const char *path, enum file_links links, int flags, int64_t owner);

#endif
