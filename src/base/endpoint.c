/* SPDX-License-Identifier: Apache-2.0 */
/* endpoint: see endpoint.h. */
#include "base/endpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/procfs.h"

#define ENDPOINT_NS_MAX 48

static int endpoint_fits(int written, size_t cap) {
    if (written < 0 || (size_t)written >= cap || written >= ENDPOINT_PATH_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return 0;
}

/* In all but the last two anyone can take a user's folder name first; in /run only root can. */
#define ENDPOINT_USERS "/run/user"
const char *const endpoint_places[] = {"/tmp", "/dev/shm", "/var/tmp", "/run", ENDPOINT_USERS, NULL};

int endpoint_place(char *buf, size_t cap, const char *place, uid_t uid) {
    bool users = strcmp(place, ENDPOINT_USERS) == 0;
    int n = users ? snprintf(buf, cap, "%s/%u", place, (unsigned)uid) : snprintf(buf, cap, "%s", place);
    return endpoint_fits(n, cap);
}

/* Write what follows the user's number for process `pid` (0: this one): nothing, or, in a user
 * namespace of its own, "-", the namespace's number and the process's start time. Namespace
 * numbers are reused, and nobody can remove what others have left under such a name. */
static void endpoint_put_ns(char *buf, size_t cap, pid_t pid) {
    char path[64];
    struct stat st;
    struct procfs_stat process;
    buf[0] = '\0';
    if (!procfs_in_inner_user_ns(pid))
        return;
    snprintf(path, sizeof path, pid ? "/proc/%d/ns/user" : "/proc/self/ns/user", (int)pid);
    if (stat(path, &st) == 0 && procfs_read_stat(pid, 0, &process) == 0)
        snprintf(buf, cap, "-%llu-%llu", (unsigned long long)st.st_ino,
                 (unsigned long long)process.start_ticks);
}

int endpoint_user_dir(char *buf, size_t cap, const char *place, uid_t uid, pid_t pid) {
    char path[64];
    struct stat st;
    int n = snprintf(buf, cap, "%s/probing-%u", place, (unsigned)uid);
    snprintf(path, sizeof path, pid ? "/proc/%d/ns/user" : "/proc/self/ns/user", (int)pid);
    if (n > 0 && (size_t)n < cap && procfs_in_inner_user_ns(pid) && stat(path, &st) == 0)
        n += snprintf(buf + n, cap - (size_t)n, "-%llu", (unsigned long long)st.st_ino);
    if (n > 0 && (size_t)n < cap)
        return 0;
    errno = ENAMETOOLONG;
    return -1;
}

int endpoint_dir_in(char *buf, size_t cap, const char *place, uid_t uid) {
    char ns[ENDPOINT_NS_MAX];
    endpoint_put_ns(ns, sizeof ns, 0);
    if (endpoint_place(buf, cap, place, uid) != 0)
        return -1;
    size_t n = strlen(buf);
    return endpoint_fits(snprintf(buf + n, cap - n, "/probing-%u%s", (unsigned)uid, ns), cap - n);
}

int endpoint_path_in(char *buf, size_t cap, const char *place, uid_t uid, pid_t pid) {
    if (endpoint_dir_in(buf, cap, place, uid) != 0)
        return -1;
    size_t n = strlen(buf);
    return endpoint_fits(snprintf(buf + n, cap - n, "/%d.sock", (int)pid), cap - n);
}

int endpoint_dir(char *buf, size_t cap, uid_t uid) {
    return endpoint_dir_in(buf, cap, endpoint_places[0], uid);
}

int endpoint_path(char *buf, size_t cap, uid_t uid, pid_t pid) {
    return endpoint_path_in(buf, cap, endpoint_places[0], uid, pid);
}

/* /proc/PID/uid_map maps (inside outside count). */
unsigned endpoint_inner_uid(pid_t pid, unsigned outer) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/uid_map", (int)pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return outer;
    unsigned inside, outside, count, result = outer;
    while (fscanf(f, "%u %u %u", &inside, &outside, &count) == 3)
        if (outer >= outside && outer - outside < count) {
            result = inside + (outer - outside);
            break;
        }
    fclose(f);
    return result;
}

/* True if the folder of the socket belongs to another user. Anyone may make one of that name in
 * a /tmp. */
static bool endpoint_is_anothers(const char *socket, uid_t uid) {
    char dir[ENDPOINT_PATH_MAX];
    struct stat st;
    const char *end = strrchr(socket, '/');
    snprintf(dir, sizeof dir, "%.*s", (int)(end - socket), socket);
    return lstat(dir, &st) == 0 && st.st_uid != uid;
}

int endpoint_path_from_outside(char *buf, size_t cap, pid_t pid, struct err *e) {
    struct procfs_status st;
    if (procfs_read_status(pid, 0, &st) != 0)
        return err_set(e, ERR_ATTACH, "no process %d: check the pid with 'probing list'", (int)pid);
    unsigned uid = endpoint_inner_uid(pid, (unsigned)st.uid);
    char ns[ENDPOINT_NS_MAX];
    endpoint_put_ns(ns, sizeof ns, pid);
    for (const char *const *place = endpoint_places;; place++) {
        char where[ENDPOINT_PLACE_MAX];
        endpoint_place(where, sizeof where, *place ? *place : endpoint_places[0], uid);
        int n = snprintf(buf, cap, "/proc/%d/root%s/probing-%u%s/%d.sock", (int)pid, where, uid, ns,
                         (int)st.ns_pid);
        if (endpoint_fits(n, cap) != 0)
            return err_set_errno(e, ERR_FAILED, errno, "socket path of process %d", (int)pid);
        if (!*place ||
            (!endpoint_is_anothers(buf, (uid_t)st.uid) && (access(buf, F_OK) == 0 || errno == EACCES)))
            return 0;
    }
}

/* Skip the digits at `p`; false if there are none. */
static bool endpoint_pass_digits(const char **p) {
    size_t n = strspn(*p, "0123456789");
    *p += n;
    return n > 0;
}

bool endpoint_is_name(const char *path) {
    for (const char *const *place = endpoint_places; *place; place++) {
        static const char folder[] = "/probing-";
        size_t n = strlen(*place);
        const char *p = path + n;
        if (strncmp(path, *place, n) != 0)
            continue;
        bool users = strcmp(*place, ENDPOINT_USERS) == 0;
        if ((users && (*p++ != '/' || !endpoint_pass_digits(&p))) ||
            strncmp(p, folder, sizeof folder - 1) != 0)
            continue;
        p += sizeof folder - 1;
        bool well = endpoint_pass_digits(&p);
        while (well && *p == '-') { /* of a user namespace: see endpoint_put_ns */
            p++;
            well = endpoint_pass_digits(&p);
        }
        if (well && *p++ == '/' && endpoint_pass_digits(&p) && strcmp(p, ".sock") == 0)
            return true;
    }
    return false;
}

int endpoint_check_peer(int fd, pid_t pid, struct err *e) {
    struct ucred who;
    socklen_t len = sizeof who;
    struct procfs_status st;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) != 0)
        return err_set_errno(e, ERR_ATTACH, errno, "who listens at the socket of process %d is not known",
                             (int)pid);
    /* 0: a process of an outer namespace, which has no number here. Only its user is known then. */
    if (who.pid != 0 && who.pid != pid)
        return err_set(e, ERR_ATTACH,
                       "another process listens at the agent's socket of process %d: process %d (user %u); "
                       "nothing was sent to it",
                       (int)pid, (int)who.pid, (unsigned)who.uid);
    if (procfs_read_status(pid, 0, &st) != 0)
        return err_set(e, ERR_LOST, "process %d has ended", (int)pid);
    if ((int64_t)who.uid != st.uid && (int64_t)who.uid != st.real_uid && (int64_t)who.uid != st.saved_uid)
        return err_set(e, ERR_ATTACH,
                       "at the agent's socket of process %d user %u listens, who is not its owner (%lld); "
                       "nothing was sent to it",
                       (int)pid, (unsigned)who.uid, (long long)st.uid);
    return 0;
}

int endpoint_probe(const char *path) {
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    size_t n = strlen(path);
    if (n >= sizeof sa.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(sa.sun_path, path, n);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    int rc = connect(fd, (const struct sockaddr *)&sa, sizeof sa);
    int saved = errno;
    close(fd);
    errno = saved;
    if (rc == 0 || saved == EAGAIN || saved == EINPROGRESS)
        return 1;
    return saved == ENOENT || saved == ECONNREFUSED || saved == ENOTDIR ? 0 : -1;
}

/* True if the entry `name` of the folder is a socket that a process has left behind. A live
 * agent answers, also from another pid namespace. */
static bool endpoint_is_dead(const char *dir, const char *name, int age_s) {
    char path[ENDPOINT_PATH_MAX], *end;
    struct stat st;
    long pid = strtol(name, &end, 10);
    int n = snprintf(path, sizeof path, "%s/%s", dir, name);
    if (pid <= 0 || strcmp(end, ".sock") != 0 || n < 0 || (size_t)n >= sizeof path)
        return false;
    if (kill((pid_t)pid, 0) == 0 || errno != ESRCH)
        return false;
    if (lstat(path, &st) != 0 || !S_ISSOCK(st.st_mode))
        return false;
    /* A socket that is just being made has no listener yet. */
    return time(NULL) - st.st_mtime >= age_s && endpoint_probe(path) == 0;
}

/* A socket's name with another suffix. */
static int endpoint_beside(char *buf, size_t cap, const char *socket, const char *end) {
    size_t n = strlen(socket), tail = strlen(".sock");
    if (n <= tail || strcmp(socket + n - tail, ".sock") != 0)
        return -1;
    int used = snprintf(buf, cap, "%.*s%s", (int)(n - tail), socket, end);
    return used > 0 && (size_t)used < cap ? 0 : -1;
}

int endpoint_tcp_file(char *buf, size_t cap, const char *socket) {
    return endpoint_beside(buf, cap, socket, ".door");
}

int endpoint_header_file(char *buf, size_t cap, const char *socket) {
    return endpoint_beside(buf, cap, socket, ".curl");
}

int endpoint_state_file(char *buf, size_t cap, const char *socket) {
    return endpoint_beside(buf, cap, socket, ".open");
}

int endpoint_sweep(const char *dir, int most, int age_s) {
    struct stat st;
    char beside[ENDPOINT_PATH_MAX];
    int removed = 0, fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return 0;
    DIR *d = fstat(fd, &st) == 0 && st.st_uid == geteuid() ? fdopendir(fd) : NULL;
    if (!d) {
        close(fd);
        return 0;
    }
    for (struct dirent *entry; most > 0 && (entry = readdir(d));) {
        if (entry->d_name[0] == '.')
            continue;
        most--;
        if (!endpoint_is_dead(dir, entry->d_name, age_s) || unlinkat(fd, entry->d_name, 0) != 0)
            continue;
        removed++;
        if (endpoint_tcp_file(beside, sizeof beside, entry->d_name) == 0)
            unlinkat(fd, beside, 0);
        if (endpoint_header_file(beside, sizeof beside, entry->d_name) == 0)
            unlinkat(fd, beside, 0);
        if (endpoint_state_file(beside, sizeof beside, entry->d_name) == 0)
            unlinkat(fd, beside, 0);
    }
    closedir(d);
    return removed;
}
