/* SPDX-License-Identifier: Apache-2.0 */
/* endpoint: see endpoint.h. */
#include "base/endpoint.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/procfs.h"

static int endpoint_fits(int written, size_t cap) {
    if (written < 0 || (size_t)written >= cap || written >= ENDPOINT_PATH_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return 0;
}

int endpoint_dir(char *buf, size_t cap, uid_t uid) {
    return endpoint_fits(snprintf(buf, cap, "/tmp/probing-%u", (unsigned)uid), cap);
}

int endpoint_path(char *buf, size_t cap, uid_t uid, pid_t pid) {
    return endpoint_fits(snprintf(buf, cap, "/tmp/probing-%u/%d.sock", (unsigned)uid, (int)pid), cap);
}

/* The uid the target itself sees: /proc/PID/uid_map maps (inside outside count); identity when it cannot be read. */
static unsigned endpoint_inner_uid(pid_t pid, unsigned outer) {
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/uid_map", (int)pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return outer;
    unsigned inside, outside, count, result = outer;
    while (fscanf(f, "%u %u %u", &inside, &outside, &count) == 3)
        if (outer >= outside && outer - outside < count) {
            result = inside + (outer - outside);
            break;
        }
    (void)fclose(f);
    return result;
}

int endpoint_path_from_outside(char *buf, size_t cap, pid_t pid, struct err *e) {
    struct procfs_status st;
    if (procfs_read_status(pid, 0, &st) != 0)
        return err_set(e, ERR_ATTACH, "no process %d: check the pid with 'probing list'", (int)pid);
    unsigned uid = endpoint_inner_uid(pid, (unsigned)st.uid);
    int n = snprintf(buf, cap, "/proc/%d/root/tmp/probing-%u/%d.sock", (int)pid, uid, (int)st.ns_pid);
    if (endpoint_fits(n, cap) != 0)
        return err_set_errno(e, ERR_FAILED, errno, "socket path of process %d", (int)pid);
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
    (void)close(fd);
    errno = saved;
    if (rc == 0 || saved == EAGAIN || saved == EINPROGRESS)
        return 1;
    return saved == ENOENT || saved == ECONNREFUSED || saved == ENOTDIR ? 0 : -1;
}
