/* SPDX-License-Identifier: Apache-2.0 */
/* listener: see listener.h. Unix sockets and their credentials (SO_PEERCRED): unix(7). */
#include "agent/server/listener.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/procfs.h"

#define LISTENER_BACKLOG 16
/* the kernel's id for users unknown to a namespace (overflowuid) */
#define LISTENER_UNMAPPED_UID 65534U
#define LISTENER_TRIES 10
#define LISTENER_SWEEP 64       /* sockets to check */
#define LISTENER_SWEEP_AGE_S 60 /* a younger one may be in the making */

/* Check that the folder is ours alone; make it if it does not exist. */
static int listener_check_dir(const char *dir, struct err *e) {
    struct stat st;
    int tries = LISTENER_TRIES;
    do {
        if (mkdir(dir, 0700) == 0)
            /* The umask may have removed more bits than intended. The folder is ours: nobody else
             * can put another one in its place. */
            chmod(dir, 0700);
        else if (errno != EEXIST)
            return err_set_errno(e, ERR_FAILED, errno, "folder %s cannot be made", dir);
        if (lstat(dir, &st) == 0)
            break;
        /* gone: see listener_listen */
        if (errno != ENOENT || --tries == 0)
            return err_set_errno(e, ERR_FAILED, errno, "folder %s cannot be read", dir);
    } while (true);
    if (!S_ISDIR(st.st_mode))
        return err_set(e, ERR_FAILED, "%s is not a folder: remove it and try again", dir);
    if (st.st_uid != geteuid())
        return err_set(e, ERR_FAILED, "folder %s belongs to user %u: it must be removed", dir,
                       (unsigned)st.st_uid);
    if ((st.st_mode & 07777) != 0700)
        return err_set(e, ERR_FAILED,
                       "folder %s has mode %04o, which lets others in: 'chmod 700' it or remove it", dir,
                       (unsigned)st.st_mode & 07777U);
    return 0;
}

/* Remove what is at the path of the socket: only a socket of ours that nobody answers on. */
static int listener_clear_path(const char *path, struct err *e) {
    struct stat st;
    if (lstat(path, &st) != 0)
        return errno == ENOENT ? 0 : err_set_errno(e, ERR_FAILED, errno, "%s cannot be read", path);
    if (!S_ISSOCK(st.st_mode) || st.st_uid != geteuid())
        return err_set(e, ERR_FAILED, "%s is not a socket of this user: remove it and try again", path);
    int alive = endpoint_probe(path);
    if (alive > 0)
        return err_set(e, ERR_FAILED, "another process listens at %s (a container with the same /tmp?)",
                       path);
    if (alive < 0)
        return err_set_errno(e, ERR_FAILED, errno, "%s cannot be tried", path);
    if (unlink(path) != 0 && errno != ENOENT)
        return err_set_errno(e, ERR_FAILED, errno, "dead socket %s cannot be removed", path);
    return 0;
}

static int listener_listen(struct listener *l, struct err *e) {
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    memcpy(sa.sun_path, l->path, strlen(l->path));
    l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (l->fd < 0)
        return err_set_errno(e, ERR_FAILED, errno, "no socket can be made");
    int rc = bind(l->fd, (const struct sockaddr *)&sa, sizeof sa);
    /* An agent that leaves removes the empty folder, perhaps at this very time. */
    for (int i = 0; i < LISTENER_TRIES && rc != 0 && errno == ENOENT; i++) {
        if (listener_check_dir(l->dir, e) != 0)
            return -1;
        rc = bind(l->fd, (const struct sockaddr *)&sa, sizeof sa);
    }
    if (rc != 0)
        return err_set_errno(e, ERR_FAILED, errno, "socket %s cannot be made", l->path);
    if (chmod(l->path, 0600) != 0 || listen(l->fd, LISTENER_BACKLOG) != 0) {
        int saved = errno;
        unlink(l->path);
        return err_set_errno(e, ERR_FAILED, saved, "socket %s cannot be listened on", l->path);
    }
    return 0;
}

static int listener_try(struct listener *l, const char *place, struct err *e) {
    if (endpoint_dir_in(l->dir, sizeof l->dir, place, geteuid()) != 0 ||
        endpoint_path_in(l->path, sizeof l->path, place, geteuid(), getpid()) != 0)
        return err_set_errno(e, ERR_FAILED, errno, "path of the agent's socket");
    if (listener_check_dir(l->dir, e) != 0 || listener_clear_path(l->path, e) != 0)
        return -1;
    endpoint_sweep(l->dir, LISTENER_SWEEP, LISTENER_SWEEP_AGE_S);
    return listener_listen(l, e);
}

/* True if a folder can be made here. A folder of another user is skipped, because the user
 * cannot remove it. Other errors are reported. */
static bool listener_may_make(const char *place) {
    char dir[ENDPOINT_PATH_MAX], folder[ENDPOINT_PLACE_MAX];
    struct stat st;
    if (endpoint_place(folder, sizeof folder, place, geteuid()) != 0)
        return false;
    if (access(folder, W_OK | X_OK) != 0)
        return errno != EROFS && errno != ENOENT && errno != EACCES && errno != ENOTDIR;
    return endpoint_dir_in(dir, sizeof dir, place, geteuid()) != 0 || lstat(dir, &st) != 0 ||
           st.st_uid == geteuid();
}

int listener_open(struct listener *l, struct err *e) {
    const char *place = endpoint_places[0];
    for (const char *const *p = endpoint_places; *p; p++)
        if (listener_may_make(*p)) {
            place = *p;
            break;
        }
    *l = (struct listener){.fd = -1};
    if (listener_try(l, place, e) == 0)
        return 0;
    if (l->fd >= 0)
        close(l->fd);
    /* a foreign file at the path is not ours: listener_remove must not touch it */
    *l = (struct listener){.fd = -1};
    return -1;
}

void listener_remove(struct listener *l) {
    if (l->path[0])
        unlink(l->path);
    if (l->dir[0])
        rmdir(l->dir);
    l->path[0] = l->dir[0] = '\0';
}

int listener_who(int fd, int64_t *uid, int64_t *pid) {
    struct ucred who;
    socklen_t len = sizeof who;
    if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) != 0)
        return -1;
    *uid = who.uid;
    *pid = who.pid > 0 ? who.pid : -1;
    return 0;
}

int listener_accept(const struct listener *l) {
    int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return -1;
    struct ucred who;
    socklen_t len = sizeof who;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 &&
        (who.uid == geteuid() || who.uid == 0 ||
         /* From outside our user namespace only root passes the folder's mode. */
         (who.uid == LISTENER_UNMAPPED_UID && procfs_in_inner_user_ns(0))))
        return fd;
    close(fd);
    errno = EACCES;
    return -1;
}
