/* SPDX-License-Identifier: Apache-2.0 */
/* file: see file.h. openat2(2), Linux 5.6; open(2) about O_PATH. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#define FILE_TAKE (O_PATH | O_CLOEXEC)

/* Missing from linux/magic.h of older kernel headers. */
#define FILE_CONFIGFS 0x62656570
#define FILE_FUSECTL 0x65735543

static void file_close_keeping_errno(int fd) {
    int saved = errno;
    close(fd);
    errno = saved;
}

/* Component by component, for kernels and seccomp filters without openat2. Follows no link and
 * refuses "..", which would lead outside if a folder is moved in between. */
static int file_walk(int folder, const char *path) {
    char name[NAME_MAX + 1];
    struct stat st;
    int at = fcntl(folder, F_DUPFD_CLOEXEC, 0);
    path += strspn(path, "/");
    while (at >= 0 && *path) {
        size_t len = strcspn(path, "/");
        if (len >= sizeof name || (len == 2 && memcmp(path, "..", 2) == 0)) {
            errno = len == 2 ? EXDEV : ENAMETOOLONG;
            file_close_keeping_errno(at);
            return -1;
        }
        memcpy(name, path, len);
        name[len] = '\0';
        path += len;
        path += strspn(path, "/");
        int next = openat(at, name, FILE_TAKE | O_NOFOLLOW);
        file_close_keeping_errno(at);
        at = next;
        if (at >= 0 && (fstat(at, &st) != 0 || S_ISLNK(st.st_mode))) {
            close(at);
            errno = ELOOP;
            return -1;
        }
    }
    return at;
}

/* The same for a folder that is not open. */
static int file_walk_from(int folder, const char *path) {
    if (folder != AT_FDCWD)
        return file_walk(folder, path);
    folder = open(".", FILE_TAKE | O_DIRECTORY);
    int fd = folder >= 0 ? file_walk(folder, path) : -1;
    if (folder >= 0)
        file_close_keeping_errno(folder);
    return fd;
}

int file_take(int folder, const char *path, enum file_links links) {
    if (links == FILE_LINKS_FOLLOWED)
        return openat(folder, path, FILE_TAKE);
    struct open_how how = {.flags = FILE_TAKE};
    if (links == FILE_LINKS_IN_ROOT)
        how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
    else
        how.resolve = RESOLVE_NO_SYMLINKS | (*path == '/' ? 0 : RESOLVE_BENEATH);
    int fd = (int)syscall(SYS_openat2, folder, path, &how, sizeof how);
    if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
        return fd;
    if (links == FILE_LINKS_IN_ROOT || *path != '/')
        return file_walk_from(folder, path);
    int root = open("/", FILE_TAKE | O_DIRECTORY);
    fd = root >= 0 ? file_walk(root, path) : -1;
    if (root >= 0)
        file_close_keeping_errno(root);
    return fd;
}

/* Files of the kernel's own file systems. Opening or reading some of them has effects, though
 * they look like regular files (reading empties /proc/kmsg and trace_pipe), and nobody else has
 * a reason to name one. */
static bool file_is_kernels(int taken) {
    struct statfs fs;
    if (fstatfs(taken, &fs) != 0)
        return true;
    switch ((unsigned long)fs.f_type) {
    case PROC_SUPER_MAGIC:
    case SYSFS_MAGIC:
    case DEBUGFS_MAGIC:
    case TRACEFS_MAGIC:
    case SECURITYFS_MAGIC:
    case BPF_FS_MAGIC:
    case EFIVARFS_MAGIC:
    case PSTOREFS_MAGIC:
    case FILE_CONFIGFS:
    case FILE_FUSECTL:
        return true;
    default:
        return false;
    }
}

int file_open_taken(int taken, int flags, int64_t owner) {
    struct stat st, now;
    char link[32];
    int fd = -1;
    if (fstat(taken, &st) != 0) {
        file_close_keeping_errno(taken);
        return -1;
    }
    bool plain = S_ISREG(st.st_mode) && !file_is_kernels(taken);
    if (!plain || (owner != FILE_ANY_OWNER && (int64_t)st.st_uid != owner)) {
        close(taken);
        errno = plain ? EPERM : EINVAL;
        return -1;
    }
    snprintf(link, sizeof link, "/proc/self/fd/%d", taken);
    fd = open(link, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    file_close_keeping_errno(taken);
    /* Whatever /proc is here, it must have led to the same file. */
    if (fd >= 0 && (fstat(fd, &now) != 0 || now.st_dev != st.st_dev || now.st_ino != st.st_ino)) {
        close(fd);
        errno = ESTALE;
        return -1;
    }
    return fd;
}

int file_open_regular(int folder, const char *path, enum file_links links, int flags, int64_t owner) {
    int taken = file_take(folder, path, links);
    return taken < 0 ? -1 : file_open_taken(taken, flags, owner);
}
