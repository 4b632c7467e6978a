/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_peer: see tcp_peer.h. proc(5), namespaces(7). */
#include "agent/access/tcp_peer.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/clock.h"

#define TCP_PEER_PROCESSES 4096 /* the newest of those that there are */
#define TCP_PEER_CPU_NS (20 * CLOCK_NS_PER_MS)
#define TCP_PEER_EVERY 32 /* descriptors, until the time is looked at again */
#define TCP_PEER_NS 3

static const char *const tcp_peer_ns[TCP_PEER_NS] = {"user", "pid", "mnt"};

struct tcp_peer {
    char wanted[32]; /* what the link of a descriptor reads */
    uid_t uid;
    struct stat own[TCP_PEER_NS];
    uint64_t
        until_ns; /* of this thread's time on a processor: a machine that is busy makes nobody a stranger */
};

/* Is process `pid` our user's, in our namespaces? One that we may not look at is not known to be. Asked before its descriptors are read,
 * so that those of who lives elsewhere, however many, take no time. */
static bool tcp_peer_is_near(const struct tcp_peer *n, int proc, int pid) {
    char path[48];
    struct stat st;
    (void)snprintf(path, sizeof path, "%d", pid);
    if (fstatat(proc, path, &st, 0) != 0 || st.st_uid != n->uid)
        return false;
    for (int i = 0; i < TCP_PEER_NS; i++) {
        (void)snprintf(path, sizeof path, "%d/ns/%s", pid, tcp_peer_ns[i]);
        if (fstatat(proc, path, &st, 0) != 0 || st.st_dev != n->own[i].st_dev ||
            st.st_ino != n->own[i].st_ino)
            return false;
    }
    return true;
}

static bool tcp_peer_has(const struct tcp_peer *n, int proc, int pid) {
    char path[32], link[64];
    bool has = false;
    (void)snprintf(path, sizeof path, "%d/fd", pid);
    int fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d && fd >= 0)
        (void)close(fd);
    unsigned seen = 0;
    for (struct dirent *entry; d && !has && (entry = readdir(d));) {
        if (++seen % TCP_PEER_EVERY == 0 && clock_self_cpu_ns() > n->until_ns)
            break;
        ssize_t len = entry->d_name[0] == '.' ? 0 : readlinkat(fd, entry->d_name, link, sizeof link - 1);
        if (len <= 0)
            continue;
        link[len] = '\0';
        has = strcmp(link, n->wanted) == 0;
    }
    if (d)
        (void)closedir(d);
    return has;
}

/* The processes that there are, in a ring of those that were read last: /proc has them in the order of their numbers. How many were
 * read. */
static size_t tcp_peer_list(const struct tcp_peer *n, int proc, int *pids) {
    size_t count = 0;
    int fd = openat(proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d && fd >= 0)
        (void)close(fd);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        int pid = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' ? atoi(entry->d_name) : 0;
        if (pid > 0)
            pids[count++ % TCP_PEER_PROCESSES] = pid;
        if (count % TCP_PEER_EVERY == 0 && clock_self_cpu_ns() > n->until_ns)
            break;
    }
    if (d)
        (void)closedir(d);
    return count;
}

bool tcp_peer_has_socket(uint64_t inode, int *last) {
    struct tcp_peer n = {.uid = geteuid(), .until_ns = clock_self_cpu_ns() + TCP_PEER_CPU_NS};
    bool holds = false;
    (void)snprintf(n.wanted, sizeof n.wanted, "socket:[%llu]", (unsigned long long)inode);
    int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int *pids = proc >= 0 ? malloc(TCP_PEER_PROCESSES * sizeof *pids) : NULL;
    bool known = pids != NULL;
    for (int i = 0; known && i < TCP_PEER_NS; i++) {
        char path[32];
        (void)snprintf(path, sizeof path, "self/ns/%s", tcp_peer_ns[i]);
        known = fstatat(proc, path, &n.own[i], 0) == 0;
    }
    holds = known && *last > 0 && tcp_peer_is_near(&n, proc, *last) && tcp_peer_has(&n, proc, *last);
    size_t count = known && !holds ? tcp_peer_list(&n, proc, pids) : 0;
    size_t kept = count < TCP_PEER_PROCESSES ? count : TCP_PEER_PROCESSES;
    for (size_t i = 0; !holds && i < kept && clock_self_cpu_ns() <= n.until_ns; i++) {
        int pid = pids[(count - 1 - i) % TCP_PEER_PROCESSES];
        holds = tcp_peer_is_near(&n, proc, pid) && tcp_peer_has(&n, proc, pid);
        *last = holds ? pid : *last;
    }
    free(pids);
    if (proc >= 0)
        (void)close(proc);
    return holds;
}
