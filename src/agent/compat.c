/* SPDX-License-Identifier: Apache-2.0 */
/* compat: see compat.h. On x86-64 the kernel's struct stat is the C library's. */
#include "agent/compat.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

int compat_stat(const char *path, struct stat *st) {
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, st, 0);
}

int compat_fstat(int fd, struct stat *st) { return (int)syscall(SYS_newfstatat, fd, "", st, AT_EMPTY_PATH); }

int compat_fstatat(int dir, const char *path, struct stat *st, int flags) {
    return (int)syscall(SYS_newfstatat, dir, path, st, flags);
}

int compat_lstat(const char *path, struct stat *st) {
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}
