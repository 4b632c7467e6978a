/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapped: files that a process has mapped, and those beside them, as that process sees them.
 *
 * Its own word for where they are is not believed: what is not a plain file is not opened, links lead nowhere but below its root,
 * and a file that is said to be mapped must be the very one. Of this process itself files are opened as it would open them.
 */
#ifndef PYSTACK_MAPPED_H
#define PYSTACK_MAPPED_H

#include <stdint.h>
#include <sys/types.h>

/* The file `path` of /proc/PID/maps (NULL: the program itself), to be read, if it has that inode. A descriptor, or -1. */
int mapped_open(pid_t pid, const char *path, uint64_t inode);

/* The file `name` in `folder`, which is named as `path`'s folder is. A descriptor, or -1. */
int mapped_open_beside(pid_t pid, const char *folder, const char *name, const char *path, uint64_t inode);

#endif
