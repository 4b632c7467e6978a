/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapped: files that a process has mapped, and those beside them, as that process sees them.
 *
 * The process's own paths are not trusted: only regular files are opened, links resolve below
 * its root only, and a mapped file must be the very one. In this process itself files are opened
 * as it would open them.
 */
#ifndef PYSTACK_MAPPED_H
#define PYSTACK_MAPPED_H

#include <stdint.h>
#include <sys/types.h>

/* Open the file `path` of /proc/PID/maps (NULL: the program itself) for reading, if it has that
 * inode. A descriptor, or -1. */
int mapped_open(pid_t pid, const char *path, uint64_t inode);

/* Open the file `name` in `folder`, which is named like `path`'s folder. A descriptor, or -1. */
int mapped_open_beside(pid_t pid, const char *folder, const char *name, const char *path, uint64_t inode);

#endif
