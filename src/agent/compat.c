/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat: functions that C libraries before glibc 2.33 do not export. The job's library may be
 * older than the one of the build.
 *
 * The agent is linked so that stat and similar functions are these (mk/agent.symver), and so
 * that functions of threads and signals are looked up by names that every glibc has had. Any
 * thread.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As stat(2), fstat(2), lstat(2), fstatat(2). */
int compat_stat(const char *path, struct stat *st);
int compat_fstat(int fd, struct stat *st);
int compat_lstat(const char *path, struct stat *st);
int compat_fstatat(int dir, const char *path, struct stat *st, int flags);

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
