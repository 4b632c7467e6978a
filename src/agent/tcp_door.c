/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_door: see tcp_door.h. tcp(7). */
#include "agent/tcp_door.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#define TCP_DOOR_BACKLOG 32
#define TCP_DOOR_IDLE_S 30 /* of silence, until the other end is asked whether it is there, */
#define TCP_DOOR_EVERY_S 10
#define TCP_DOOR_ASKED 3 /* so often */
#define TCP_DOOR_UNREAD_MS (60 * 1000)

/* Best effort: a connection without it is only noticed later to be dead. */
static void tcp_door_set(int fd, int level, int option, int value) {
    (void)setsockopt(fd, level, option, &value, sizeof value);
}

static int tcp_door_bind(struct tcp_door *d, const char *text, struct err *e) {
    struct address a;
    if (address_parse(&a, text, e) != 0)
        return -1;
    d->fd = socket(a.at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (d->fd < 0)
        return err_set_errno(e, ERR_FAILED, errno, "no socket can be made for %s", text);
    tcp_door_set(d->fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (a.at.any.sa_family == AF_INET6)
        tcp_door_set(d->fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    address_format(&a, d->address, sizeof d->address);
    if (bind(d->fd, &a.at.any, a.len) != 0 || listen(d->fd, TCP_DOOR_BACKLOG) != 0)
        return err_set_errno(e, ERR_FAILED, errno, "cannot listen at %s", d->address);
    a.len = sizeof a.at;
    if (getsockname(d->fd, &a.at.any, &a.len) != 0)
        return err_set_errno(e, ERR_FAILED, errno, "the port of %s is not known", d->address);
    address_format(&a, d->address, sizeof d->address);
    return 0;
}

/* PID.sock becomes PID.door and PID.curl. */
static int tcp_door_name_files(struct tcp_door *d, const char *socket, struct err *e) {
    if (endpoint_door_file(d->file, sizeof d->file, socket) != 0 ||
        endpoint_header_file(d->header, sizeof d->header, socket) != 0)
        return err_set(e, ERR_FAILED, "no name for the file of the tokens beside %s", socket);
    return 0;
}

int tcp_door_open(struct tcp_door *d, const char *address, bool looking, const char *socket, struct err *e) {
    *d = (struct tcp_door){.fd = -1, .looking = looking};
    int rc = tcp_door_bind(d, address, e);
    if (rc == 0 && !looking)
        rc = token_make(&d->all, e);
    if (rc == 0)
        rc = token_make(&d->looker, e);
    if (rc == 0)
        rc = tcp_door_name_files(d, socket, e);
    if (rc == 0)
        rc = token_write(d->file, d->address, looking ? NULL : &d->all, &d->looker, e);
    if (rc == 0) {
        rc = token_write_header(d->header, looking ? &d->looker : &d->all, e);
        if (rc == 0)
            return 0;
        (void)unlink(d->file);
    }
    if (d->fd >= 0)
        (void)close(d->fd);
    *d = (struct tcp_door){.fd = -1};
    return -1;
}

void tcp_door_remove(struct tcp_door *d) {
    if (d->file[0])
        (void)unlink(d->file);
    if (d->header[0])
        (void)unlink(d->header);
    if (d->fd >= 0)
        (void)shutdown(d->fd, SHUT_RDWR); /* from now on, not when the descriptor is closed at last */
    *d = (struct tcp_door){.fd = -1};
}

int tcp_door_accept(int fd) {
    int got = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (got < 0)
        return -1;
    tcp_door_set(got, IPPROTO_TCP, TCP_NODELAY, 1);
    tcp_door_set(got, SOL_SOCKET, SO_KEEPALIVE, 1);
    tcp_door_set(got, IPPROTO_TCP, TCP_KEEPIDLE, TCP_DOOR_IDLE_S);
    tcp_door_set(got, IPPROTO_TCP, TCP_KEEPINTVL, TCP_DOOR_EVERY_S);
    tcp_door_set(got, IPPROTO_TCP, TCP_KEEPCNT, TCP_DOOR_ASKED);
    tcp_door_set(got, IPPROTO_TCP, TCP_USER_TIMEOUT, TCP_DOOR_UNREAD_MS);
    return got;
}

int tcp_door_ends(int fd, struct address *near, struct address *far) {
    near->len = far->len = sizeof near->at;
    return getsockname(fd, &near->at.any, &near->len) == 0 && getpeername(fd, &far->at.any, &far->len) == 0
               ? 0
               : -1;
}
