/* SPDX-License-Identifier: Apache-2.0 */
/* mapped: see mapped.h. */
#include "pystack/mapped.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

/* In the job itself (pid 0) no call is made that its sandbox might not expect. */
static int mapped_open_own(const char *path) {
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static int mapped_open_below_root(pid_t pid, const char *path) {
    char root_path[48];
    if (pid == 0)
        return mapped_open_own(path);
    snprintf(root_path, sizeof root_path, "/proc/%d/root", (int)pid);
    int root = open(root_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return -1;
    int fd = file_open_regular(root, path, FILE_LINKS_IN_ROOT, O_RDONLY, FILE_ANY_OWNER);
    close(root);
    return fd;
}

static int mapped_check(int fd, uint64_t inode) {
    struct stat st;
    if (fd >= 0 && (fstat(fd, &st) != 0 || st.st_ino != inode)) {
        close(fd); /* the file was replaced since it was mapped */
        fd = -1;
    }
    return fd;
}

/* The kernel gives names as we see them where it can: then the process's own root (chroot) is
 * part of the name. None of the kernel's names leads through a link. */
static int mapped_open_here(pid_t pid, const char *path) {
    return pid == 0 ? -1 : file_open_regular(AT_FDCWD, path, FILE_LINKS_REFUSED, O_RDONLY, FILE_ANY_OWNER);
}

int mapped_open(pid_t pid, const char *path, uint64_t inode) {
    char exe[48];
    if (path && path[0] != '/')
        return -1;
    if (path) {
        int fd = mapped_check(mapped_open_below_root(pid, path), inode);
        return fd >= 0 ? fd : mapped_check(mapped_open_here(pid, path), inode);
    }
    if (pid == 0)
        return mapped_check(mapped_open_own("/proc/self/exe"), inode);
    snprintf(exe, sizeof exe, "/proc/%d/exe", (int)pid);
    return mapped_check(file_open_regular(AT_FDCWD, exe, FILE_LINKS_FOLLOWED, O_RDONLY, FILE_ANY_OWNER),
                        inode);
}

int mapped_open_beside(pid_t pid, const char *folder, const char *name, const char *path, uint64_t inode) {
    char file[640];
    int n = snprintf(file, sizeof file, "%s/%s", folder, name);
    if (n < 0 || (size_t)n >= sizeof file || folder[0] != '/')
        return -1;
    int fd = mapped_open_below_root(pid, file);
    if (fd >= 0)
        return fd;
    int known = mapped_check(mapped_open_here(pid, path), inode);
    if (known < 0)
        return -1;
    close(known);
    return mapped_open_here(pid, file);
}
