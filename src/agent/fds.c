/* SPDX-License-Identifier: Apache-2.0 */
/* fds: see fds.h. */
#include "agent/fds.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436 /* the same number on every architecture */
#endif
#define FDS_UNSHARE 2U /* CLOSE_RANGE_UNSHARE of linux/close_range.h */

#define FDS_MAX 64

/* A descriptor and the identity of its file, so that a file which the job has opened under the
 * same number meanwhile is not mistaken for it. */
struct fds_entry {
    int number; /* + 1; 0 if free, -1 while it is written */
    dev_t dev;
    ino_t ino;
};

/* Written by the agent's threads, read in the child of a fork, which may happen at any time. */
static struct fds_entry fds_noted[FDS_MAX];
static bool fds_are_private;

bool fds_make_private(void) {
    fds_are_private = false;
    if (syscall(SYS_close_range, 0U, UINT_MAX, FDS_UNSHARE) != 0)
        return false;
    fds_are_private = true;
    for (int i = 0; i < 3; i++)
        open("/dev/null", O_RDWR | O_CLOEXEC);
    return true;
}

bool fds_is_private(void) { return fds_are_private; }

void fds_note(int fd) {
    struct stat st;
    if (fds_are_private || fd < 0 || fstat(fd, &st) != 0)
        return;
    for (int i = 0; i < FDS_MAX; i++) {
        int expected = 0;
        struct fds_entry *e = &fds_noted[i];
        if (!__atomic_compare_exchange_n(&e->number, &expected, -1, false, __ATOMIC_ACQUIRE,
                                         __ATOMIC_RELAXED))
            continue;
        e->dev = st.st_dev;
        e->ino = st.st_ino;
        __atomic_store_n(&e->number, fd + 1, __ATOMIC_RELEASE);
        return;
    }
}

void fds_forget(int fd) {
    for (int i = 0; i < FDS_MAX && fd >= 0; i++) {
        int expected = fd + 1;
        if (__atomic_compare_exchange_n(&fds_noted[i].number, &expected, 0, false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED))
            return;
    }
}

/* Read the counter of an eventfd (proc(5), fdinfo). 0, or -1 if it is not an eventfd. */
static int fds_read_counter(int fd, uint64_t *out) {
    static const char key[] = "eventfd-count:";
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    int info = open(path, O_RDONLY | O_CLOEXEC);
    if (info < 0)
        return -1;
    ssize_t n = read(info, text, sizeof text - 1);
    close(info);
    text[n > 0 ? n : 0] = '\0';
    const char *at = strstr(text, key);
    return at && sscanf(at + sizeof key - 1, "%" SCNx64, out) == 1 ? 0 : -1;
}

static bool fds_follows(int fd, void (*bump)(void *arg), void *arg) {
    uint64_t before, after;
    for (int i = 0; i < 2; i++) {
        if (fds_read_counter(fd, &before) != 0)
            return false;
        bump(arg);
        if (fds_read_counter(fd, &after) != 0 || after != before + 1)
            return false;
    }
    return true;
}

int fds_find_eventfd(void (*bump)(void *arg), void *arg) {
    int found = -1;
    DIR *d = fds_are_private ? NULL : opendir("/proc/self/fd");
    for (struct dirent *entry; d && (entry = readdir(d));) {
        char *end;
        long fd = strtol(entry->d_name, &end, 10);
        if (*end || fd < 0 || fd > INT_MAX || !fds_follows((int)fd, bump, arg))
            continue;
        if (found >= 0) {
            /* one of the job's matched by chance: it is better to leak ours than to close that */
            found = -1;
            break;
        }
        found = (int)fd;
    }
    if (d)
        closedir(d);
    return found;
}

bool fds_lack_eventfd(void) {
    bool any = false;
    for (int fd = 0; fd < FDS_MAX && fds_are_private;
         fd++) { /* opens no file, because descriptors are scarce here */
        char path[64], link[64];
        snprintf(path, sizeof path, "/proc/thread-self/fd/%d", fd);
        ssize_t n = readlink(path, link, sizeof link - 1);
        link[n > 0 ? n : 0] = '\0';
        any = any || n > 0;
        if (strstr(link, "[eventfd]"))
            return false;
    }
    return any;
}

void fds_close_in_child(void) {
    for (int i = 0; i < FDS_MAX; i++) {
        struct stat st;
        int fd = __atomic_load_n(&fds_noted[i].number, __ATOMIC_ACQUIRE) - 1;
        if (fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == fds_noted[i].dev && st.st_ino == fds_noted[i].ino)
            close(fd);
        fds_noted[i] = (struct fds_entry){0};
    }
}
