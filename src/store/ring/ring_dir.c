/* SPDX-License-Identifier: Apache-2.0 */
/* ring_dir: see ring_dir.h. */
#include "store/ring/ring_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/endpoint.h"

#define RING_DIR_NEW ".new" /* after the name of a table that is being made */
#define RING_DIR_SAME_PID 9 /* folders for one pid and start, from other pid namespaces */

int ring_dir_base(char *buf, int i, const char *data_dir, uid_t uid, pid_t pid) {
    if (i > 0)
        return endpoint_user_dir(buf, RING_DIR_PATH / 2, i == 1 ? "/dev/shm" : "/tmp", uid, pid);
    int n = data_dir && data_dir[0] == '/' ? snprintf(buf, RING_DIR_PATH, "%s", data_dir) : -1;
    return n > 0 && n < RING_DIR_PATH / 2 ? 0 : -1;
}

/* Open a folder of ours that nobody else may write to: its descriptor, or -1 with errno. */
static int ring_dir_open_own(const char *path) {
    struct stat st;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) != 0 || st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        close(fd);
        errno = EPERM;
        return -1;
    }
    return fd;
}

static bool ring_dir_ends_with(const char *name, const char *suffix) {
    size_t n = strlen(name), length = strlen(suffix);
    return n > length && strcmp(name + n - length, suffix) == 0;
}

static bool ring_dir_is_table(const char *name) {
    return ring_dir_ends_with(name, RING_DIR_SUFFIX) ||
           ring_dir_ends_with(name, RING_DIR_SUFFIX RING_DIR_NEW);
}

/* Call `fn` for every table of the folder, finished or not. */
static void ring_dir_tables(int dir, void (*fn)(int dir, const char *name, void *arg), void *arg) {
    int again = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = again < 0 ? NULL : fdopendir(again);
    if (!d) {
        if (again >= 0)
            close(again);
        return;
    }
    for (struct dirent *entry; (entry = readdir(d));)
        if (ring_dir_is_table(entry->d_name))
            fn(dir, entry->d_name, arg);
    closedir(d);
}

static void ring_dir_unlink(int dir, const char *name, void *arg) {
    (void)arg;
    unlinkat(dir, name, 0);
}

static void ring_dir_clear(int dir) {
    ring_dir_tables(dir, ring_dir_unlink, NULL);
    unlinkat(dir, RING_DIR_FATAL, 0);
}

int ring_dir_create(const char *base, int64_t pid, uint64_t start_ticks, char *path, struct err *e) {
    if (mkdir(base, 0700) != 0 && errno != EEXIST)
        return err_set_errno(e, ERR_FAILED, errno, "%s: cannot be made", base);
    int own = ring_dir_open_own(base);
    if (own < 0)
        return err_set_errno(e, ERR_FAILED, errno, "%s: is not a private folder of this user", base);
    close(own);
    int problem = EEXIST;
    for (int i = 1; i <= RING_DIR_SAME_PID; i++) {
        char more[8] = "";
        if (i > 1)
            snprintf(more, sizeof more, "-%d", i);
        snprintf(path, RING_DIR_PATH, "%s/%" PRId64 "-%" PRIu64 "%s", base, pid, start_ticks, more);
        if (mkdir(path, 0700) != 0 && errno != EEXIST)
            return err_set_errno(e, ERR_FAILED, errno, "%s: cannot be made", path);
        int dir = ring_dir_open_own(path);
        if (dir >= 0 && flock(dir, LOCK_EX | LOCK_NB) == 0) {
            ring_dir_clear(dir);
            return dir;
        }
        problem = errno;
        if (dir >= 0)
            close(dir);
    }
    return err_set_errno(e, ERR_FAILED, problem, "%s: is used by another process", path);
}

int ring_dir_begin_file(int dir, const char *table) {
    char name[128];
    snprintf(name, sizeof name, "%s%s%s", table, RING_DIR_SUFFIX, RING_DIR_NEW);
    return openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

int ring_dir_finish_file(int dir, const char *table) {
    char name[128], begun[128 + sizeof RING_DIR_NEW];
    snprintf(name, sizeof name, "%s%s", table, RING_DIR_SUFFIX);
    snprintf(begun, sizeof begun, "%s%s", name, RING_DIR_NEW);
    return renameat(dir, begun, dir, name);
}

void ring_dir_remove(int dir, const char *path) {
    ring_dir_clear(dir);
    rmdir(path);
}

/* Take the lock if it is free. 1 another process has it, 0 we have it, -1 with errno. */
static int ring_dir_lock(int dir, int how) {
    if (flock(dir, how | LOCK_NB) == 0)
        return 0;
    return errno == EWOULDBLOCK ? 1 : -1;
}

int ring_dir_alive(const char *path) {
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return -1;
    int rc = ring_dir_lock(dir, LOCK_SH);
    int saved = errno;
    close(dir);
    errno = saved;
    return rc;
}

static void ring_dir_add(int dir, const char *name, void *arg) {
    struct ring_dir_entry *entry = arg;
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return;
    double at = (double)st.st_mtim.tv_sec + (double)st.st_mtim.tv_nsec / 1e9;
    entry->modified_at = at > entry->modified_at ? at : entry->modified_at;
    entry->bytes += (uint64_t)st.st_blocks * 512;
}

/* Fill `entry` from a folder's name and state. Returns whether it is one of ours. */
static bool ring_dir_inspect(const char *base, const char *name, uid_t uid, struct ring_dir_entry *out) {
    struct stat st;
    int used = 0;
    if (sscanf(name, "%" SCNd64 "-%" SCNu64 "%n", &out->pid, &out->start_ticks, &used) != 2 || used == 0 ||
        (name[used] != '\0' && name[used] != '-') || out->pid <= 0)
        return false;
    if (snprintf(out->path, sizeof out->path, "%s/%s", base, name) >= (int)sizeof out->path)
        return false;
    int dir = open(out->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return false;
    bool ours = fstat(dir, &st) == 0 && st.st_uid == uid;
    if (ours) {
        out->modified_at = (double)st.st_mtim.tv_sec;
        ring_dir_tables(dir, ring_dir_add, out);
        out->alive = ring_dir_lock(dir, LOCK_SH) != 0;
    }
    close(dir);
    return ours;
}

int ring_dir_each(const char *base, uid_t uid, int (*fn)(const struct ring_dir_entry *entry, void *arg),
                  void *arg) {
    DIR *d = opendir(base);
    int rc = 0;
    if (!d)
        return 0;
    for (struct dirent *entry; rc == 0 && (entry = readdir(d));) {
        struct ring_dir_entry found = {.pid = 0};
        if (ring_dir_inspect(base, entry->d_name, uid, &found))
            rc = fn(&found, arg);
    }
    closedir(d);
    return rc;
}

struct ring_dir_pruning {
    struct ring_dir_entry *dead;
    size_t n;
};

static int ring_dir_note_dead(const struct ring_dir_entry *entry, void *arg) {
    struct ring_dir_pruning *p = arg;
    if (!entry->alive)
        p->dead[p->n++] = *entry;
    return p->n == RING_DIR_MAX_PRUNED;
}

static int ring_dir_newer_first(const void *a, const void *b) {
    const struct ring_dir_entry *x = a, *y = b;
    return (x->modified_at < y->modified_at) - (x->modified_at > y->modified_at);
}

/* Returns whether it was removed. */
static bool ring_dir_prune_one(const struct ring_dir_entry *entry) {
    int dir = ring_dir_open_own(entry->path);
    /* Only with the lock: a new writer may just have taken it over. */
    bool removed = dir >= 0 && ring_dir_lock(dir, LOCK_EX) == 0;
    if (removed)
        ring_dir_remove(dir, entry->path);
    if (dir >= 0)
        close(dir);
    return removed;
}

int ring_dir_prune(const char *base, uid_t uid, double before, uint64_t keep_bytes) {
    struct ring_dir_pruning p = {.dead = calloc(RING_DIR_MAX_PRUNED, sizeof *p.dead)};
    uint64_t kept = 0;
    int removed = 0;
    if (!p.dead)
        return 0;
    ring_dir_each(base, uid, ring_dir_note_dead, &p);
    qsort(p.dead, p.n, sizeof *p.dead, ring_dir_newer_first);
    for (size_t i = 0; i < p.n; i++) {
        bool old = p.dead[i].modified_at < before || p.dead[i].bytes > keep_bytes - kept;
        if (!old)
            kept += p.dead[i].bytes;
        else
            removed += ring_dir_prune_one(&p.dead[i]);
    }
    free(p.dead);
    return removed;
}

uint64_t ring_dir_free_bytes(const char *base) {
    struct statvfs fs;
    if (statvfs(base, &fs) != 0)
        return 0;
    return (uint64_t)fs.f_bavail * fs.f_frsize / 4;
}
