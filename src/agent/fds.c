/* SPDX-License-Identifier: Apache-2.0 */
/* fds: see fds.h. */
#include "agent/fds.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436 /* the same number on every architecture */
#endif
#define FDS_UNSHARE 2U /* CLOSE_RANGE_UNSHARE of linux/close_range.h */

#define FDS_MAX 64

/* A descriptor and what it was, so that one the job has opened under the same number meanwhile is not taken for it. */
struct fds_entry {
    int number; /* + 1; 0 free, -1 being written */
    dev_t dev;
    ino_t ino;
};

/* Written by the agent's threads, read in the child of a fork that may happen at any moment. */
static struct fds_entry fds_noted[FDS_MAX];
static bool fds_are_private;

bool fds_make_private(void) {
    fds_are_private = false;
    if (syscall(SYS_close_range, 0U, UINT_MAX, FDS_UNSHARE) != 0)
        return false;
    fds_are_private = true;
    for (int i = 0; i < 3; i++)
        (void)open("/dev/null", O_RDWR | O_CLOEXEC);
    return true;
}

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

void fds_close_in_child(void) {
    for (int i = 0; i < FDS_MAX; i++) {
        struct stat st;
        int fd = __atomic_load_n(&fds_noted[i].number, __ATOMIC_ACQUIRE) - 1;
        if (fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == fds_noted[i].dev && st.st_ino == fds_noted[i].ino)
            (void)close(fd);
        fds_noted[i] = (struct fds_entry){0};
    }
}
