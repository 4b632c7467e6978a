/* SPDX-License-Identifier: Apache-2.0 */
/* rings: see rings.h. */
#include "client/target/rings.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/endpoint.h"
#include "base/file.h"
#include "base/procfs.h"
#include "store/ring/ring_tables.h"

#define RINGS_VARIABLE "PROBING_DATA_DIR"
#define RINGS_MAX_TIDS 65536

struct rings_search {
    pid_t outer; /* of a live process; 0: none */
    int64_t pid;
    uint64_t start_ticks; /* 0: any */
    uid_t owner;          /* of the folder being searched */
    struct rings_place *best;
    bool found;
    bool is_proven; /* the process holds its lock */
    bool others;    /* tables of a user other than best's were found too */
};

/* Another process of this pid that started in the same tick, in another container, may have a folder here. Whose it
 * is shows who holds its lock: 1 the process, 0 another one, -1 not known. */
static int rings_find_holder(const char *path, pid_t pid) {
    struct stat st;
    return lstat(path, &st) == 0 ? procfs_has_lock(pid, st.st_dev, st.st_ino) : -1;
}

static int rings_on_entry(const struct ring_dir_entry *entry, void *arg) {
    struct rings_search *s = arg;
    if (entry->pid != s->pid || (s->start_ticks && entry->start_ticks != s->start_ticks))
        return 0;
    int holds = s->outer && entry->alive ? rings_find_holder(entry->path, s->outer) : -1;
    if (holds == 0 || (s->is_proven && holds < 0))
        return 0;
    /* Anyone may name a folder after any pid: our own tables come before those of others,
     * however new these are. */
    bool ours = s->owner == geteuid(), foreign = s->found && s->best->owner != s->owner;
    bool better = !s->found || entry->alive > s->best->alive ||
                  (entry->alive == s->best->alive && entry->modified_at > s->best->modified_at);
    if (foreign)
        better = ours;
    /* of another container's process the lock may not be seen, and what is not known gives way to what is */
    better |= holds > 0 && !s->is_proven;
    s->is_proven |= holds > 0;
    s->others = (s->others || foreign) && !ours && s->best->owner != geteuid();
    if (!better)
        return 0;
    *s->best = (struct rings_place){.pid = entry->pid,
                                    .start_ticks = entry->start_ticks,
                                    .owner = s->owner,
                                    .modified_at = entry->modified_at,
                                    .alive = entry->alive};
    snprintf(s->best->path, sizeof s->best->path, "%s", entry->path);
    s->found = true;
    return 0;
}

int rings_owner(pid_t pid, struct rings_owner *out) {
    struct procfs_status status;
    struct procfs_stat stat;
    if (procfs_read_status(pid, 0, &status) != 0 || procfs_read_stat(pid, 0, &stat) != 0)
        return -1;
    *out = (struct rings_owner){
        .outer = pid, .pid = status.ns_pid, .uid = status.uid, .start_ticks = stat.start_ticks};
    if (procfs_read_environ(pid, RINGS_VARIABLE, out->data_dir, sizeof out->data_dir) != 0)
        out->data_dir[0] = '\0';
    return 0;
}

int rings_base(const struct rings_owner *o, int i, char *base) {
    return ring_dir_base(base, i, o->data_dir, endpoint_inner_uid(o->outer, (unsigned)o->uid), o->outer);
}

int rings_find(pid_t pid, struct rings_place *out) {
    struct rings_owner owner;
    if (rings_owner(pid, &owner) != 0)
        return 0;
    struct rings_search s = {.outer = pid,
                             .pid = owner.pid,
                             .start_ticks = owner.start_ticks,
                             .owner = (uid_t)owner.uid,
                             .best = out};
    for (int i = 0; i < RING_DIR_BASES; i++) {
        char base[RING_DIR_PATH], path[RING_DIR_PATH + 32];
        if (rings_base(&owner, i, base) != 0)
            continue;
        snprintf(path, sizeof path, "/proc/%d/root%s", (int)pid, base);
        ring_dir_each(path, s.owner, rings_on_entry, &s);
        if (s.found && out->alive)
            break;
    }
    return s.found;
}

/* True if this is the name of a folder of rings that may belong to `owner`. In a user namespace
 * of its own (a second number) the user differs. */
static bool rings_is_base(const char *name, uid_t owner) {
    unsigned uid;
    int used = 0, more = 0;
    if (sscanf(name, "probing-%u%n", &uid, &used) != 1)
        return false;
    if (!name[used])
        return uid == owner;
    return sscanf(name + used, "-%*u%n", &more) == 0 && more > 1 && !name[used + more];
}

/* Folders "probing-UID" in `above`: of our user, or of all users for root. */
static void rings_search_below(const char *above, struct rings_search *s) {
    DIR *d = opendir(above);
    if (!d)
        return;
    for (struct dirent *entry; (entry = readdir(d));) {
        char path[RING_DIR_PATH];
        struct stat st;
        snprintf(path, sizeof path, "%s/%.200s", above, entry->d_name);
        if (lstat(path, &st) != 0 || !S_ISDIR(st.st_mode) || !rings_is_base(entry->d_name, st.st_uid) ||
            (geteuid() != 0 && st.st_uid != geteuid()))
            continue;
        s->owner = st.st_uid;
        ring_dir_each(path, st.st_uid, rings_on_entry, s);
    }
    closedir(d);
}

int rings_find_dead(int64_t pid, struct rings_place *out, struct err *e) {
    struct rings_search s = {.pid = pid, .owner = geteuid(), .best = out};
    const char *data_dir = getenv(RINGS_VARIABLE);
    if (data_dir && data_dir[0] == '/')
        ring_dir_each(data_dir, s.owner, rings_on_entry, &s);
    rings_search_below("/dev/shm", &s);
    rings_search_below("/tmp", &s);
    if (!s.others)
        return s.found;
    return err_set(e, ERR_ATTACH,
                   "process %" PRId64 " has ended, and several users have tables of it: name the folder: %s, "
                   "or another probing-UID in /dev/shm or /tmp",
                   pid, out->path);
}

static bool rings_is_table(const char *name) {
    size_t n = strlen(name), suffix = strlen(RING_DIR_SUFFIX);
    return n > suffix && strcmp(name + n - suffix, RING_DIR_SUFFIX) == 0;
}

int rings_inspect(const char *path, struct rings_place *out, struct err *e) {
    struct stat st;
    *out = (struct rings_place){.pid = 0};
    if (strlen(path) >= sizeof out->path)
        return err_set(e, ERR_FAILED, "%.200s...: the path is too long", path);
    DIR *d = opendir(path);
    if (!d)
        return errno == ENOTDIR || errno == ENOENT ? 0 : err_set_errno(e, ERR_FAILED, errno, "%s", path);
    bool found = false;
    for (struct dirent *entry; (entry = readdir(d));)
        if (rings_is_table(entry->d_name) &&
            fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
            double at = (double)st.st_mtim.tv_sec + (double)st.st_mtim.tv_nsec / 1e9;
            out->modified_at = at > out->modified_at ? at : out->modified_at;
            found = true;
        }
    if (found && fstat(dirfd(d), &st) == 0)
        out->owner = st.st_uid;
    closedir(d);
    snprintf(out->path, sizeof out->path, "%s", path);
    out->alive = ring_dir_alive(path) == 1;
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    while (n > 0 && path[n - 1] != '/')
        n--;
    if (sscanf(path + n, "%" SCNd64 "-%" SCNu64, &out->pid, &out->start_ticks) != 2)
        out->pid = 0;
    return found;
}

/* ---- in memory only ---- */

/* True for the kernel's name of a table's memory: "/memfd:python.samples (deleted)". */
static bool rings_is_memory(const char *link) {
    char name[128];
    if (sscanf(link, "/memfd:%127s", name) != 1)
        return false;
    const struct ring_table_def *def = ring_table_find(name);
    return def && strcmp(def->name, name) == 0;
}

/* Open a table's memory, from the folder of a thread's descriptors. The kernel's name of it may
 * be that of any file in a root of its own, so it is checked before it is opened. A descriptor,
 * or -1. */
static int rings_open_fd(int folder, const char *name, int64_t owner) {
    struct stat st;
    int fd = openat(folder, name, O_PATH | O_CLOEXEC);
    if (fd >= 0)
        fd = file_open_taken(fd, O_RDONLY, owner);
    if (fd >= 0 && (fstat(fd, &st) != 0 || st.st_nlink != 0)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Open those of thread `tid`: the agent's threads have a descriptor table of their own. */
static size_t rings_open_of_thread(pid_t pid, pid_t tid, int64_t owner, int *fds, size_t cap) {
    char path[64], link[160];
    size_t n = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/fd", (int)pid, (int)tid);
    DIR *d = opendir(path);
    if (!d)
        return 0;
    for (struct dirent *entry; n < cap && (entry = readdir(d));) {
        ssize_t len = readlinkat(dirfd(d), entry->d_name, link, sizeof link - 1);
        if (len <= 0)
            continue;
        link[len] = '\0';
        int fd = rings_is_memory(link) ? rings_open_fd(dirfd(d), entry->d_name, owner) : -1;
        if (fd >= 0)
            fds[n++] = fd;
    }
    closedir(d);
    return n;
}

size_t rings_open_memory(pid_t pid, int *fds, size_t cap) {
    struct procfs_status st;
    pid_t *list = calloc(RINGS_MAX_TIDS, sizeof *list);
    if (!list || procfs_read_status(pid, 0, &st) != 0) {
        free(list);
        return 0;
    }
    ssize_t found = procfs_list_tids(pid, list, RINGS_MAX_TIDS);
    size_t n = 0;
    /* the agent's threads are among the newest */
    for (ssize_t i = found < RINGS_MAX_TIDS ? found : RINGS_MAX_TIDS; n == 0 && i-- > 0;)
        n = rings_open_of_thread(pid, list[i], st.uid, fds, cap);
    free(list);
    return n;
}

double rings_time_of_ticks(uint64_t ticks) {
    struct timespec real, boot;
    if (clock_gettime(CLOCK_REALTIME, &real) != 0 || clock_gettime(CLOCK_BOOTTIME, &boot) != 0)
        return NAN;
    return (double)real.tv_sec - (double)boot.tv_sec + (double)ticks / (double)procfs_ticks_per_s();
}
