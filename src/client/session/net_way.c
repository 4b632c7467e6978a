/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_way: see net_way.h.
 *
 * Connecting makes the kernel check write permission in the socket's file system; for FUSE or a
 * network mount that may ask its server, even if the path is known. So the client connects
 * itself only to sockets on a file system of the kernel's own, and the agent then sees its pid;
 * otherwise the agent sees the child's.
 */
#include "client/session/net_way.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif
#ifndef BTRFS_SUPER_MAGIC
#define BTRFS_SUPER_MAGIC 0x9123683E
#endif
#ifndef OVERLAYFS_SUPER_MAGIC
#define OVERLAYFS_SUPER_MAGIC 0x794c7630
#endif

union net_way_control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int))];
};

/* True if the process has the same mounts as we have. Then only root could have put one over
 * another. */
static bool net_way_shares_mounts(pid_t pid) {
    char path[64];
    struct stat ours, its;
    snprintf(path, sizeof path, "/proc/%d/ns/mnt", (int)pid);
    return pid > 0 && stat(path, &its) == 0 && stat("/proc/self/ns/mnt", &ours) == 0 &&
           its.st_ino == ours.st_ino && its.st_dev == ours.st_dev;
}

static bool net_way_is_local(int socket, pid_t pid) {
    struct statfs st;
    if (fstatfs(socket, &st) != 0)
        return false;
    switch ((unsigned long)st.f_type) {
    case TMPFS_MAGIC:
    case RAMFS_MAGIC:
    case EXT4_SUPER_MAGIC:
    case XFS_SUPER_MAGIC:
    case BTRFS_SUPER_MAGIC:
        return true;
    case OVERLAYFS_SUPER_MAGIC:
        return net_way_shares_mounts(pid);
    default:
        return false;
    }
}

static void net_way_say(int to, const struct net_way_found *found, int fd) {
    union net_way_control control;
    struct iovec part = {.iov_base = (void *)(uintptr_t)found, .iov_len = sizeof *found};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    memset(&control, 0, sizeof control);
    if (fd >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(head), &fd, sizeof fd);
    }
    sendmsg(to, &message, MSG_NOSIGNAL);
}

/* A connection to the socket that `place` stands for, or -1 with errno. */
static int net_way_connect(int place) {
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    snprintf(sa.sun_path, sizeof sa.sun_path, "/proc/self/fd/%d", place);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&sa, sizeof sa) == 0)
        return fd;
    int saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

/* Runs in the child. */
static void net_way_work(void *arg, int to) {
    const struct net_way *way = arg;
    struct net_way_found found = {.kind = NET_WAY_NONE};
    if (tcp_is(way->path)) {
        found.kind = NET_WAY_TOKEN;
        if (tcp_find_token(way->path, found.token, sizeof found.token) != 0)
            found.token[0] = '\0';
        net_way_say(to, &found, -1);
        return;
    }
    int fd = open(way->path, O_PATH | O_CLOEXEC);
    if (fd >= 0 && net_way_is_local(fd, way->pid)) {
        found.kind = NET_WAY_SOCKET;
    } else if (fd >= 0) {
        found.kind = NET_WAY_CONNECTED;
        fd = net_way_connect(fd);
    }
    if (fd < 0) {
        found.kind = NET_WAY_NONE;
        found.error = errno;
    }
    net_way_say(to, &found, fd);
}

int net_way_start(struct guard *g, const struct net_way *way) {
    struct net_way mine = *way;
    return guard_start(g, net_way_work, &mine, way->pid, NET_WAY_MS);
}

int net_way_hear(const struct guard *g, struct net_way_found *found, int *fd) {
    union net_way_control control;
    struct iovec part = {.iov_base = found, .iov_len = sizeof *found};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t n = recvmsg(g->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    const struct cmsghdr *head = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    *fd = -1;
    if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
        memcpy(fd, CMSG_DATA(head), sizeof *fd);
    return n == (ssize_t)sizeof *found ? 0 : -1;
}
