/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_listener: see tcp_listener.h. tcp(7). */
#include "agent/server/tcp_listener.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#define TCP_LISTENER_BACKLOG 32
#define TCP_LISTENER_IDLE_S 30 /* seconds of silence before the other end is probed */
#define TCP_LISTENER_EVERY_S 10
#define TCP_LISTENER_ASKED 3 /* number of probes */
#define TCP_LISTENER_UNREAD_MS (60 * 1000)

/* Best effort: without it a dead connection is noticed later. */
static void tcp_listener_set(int fd, int level, int option, int value) {
    setsockopt(fd, level, option, &value, sizeof value);
}

static int tcp_listener_bind(struct tcp_listener *d, const char *text, struct err *e) {
    struct address a;
    if (address_parse(&a, text, e) != 0)
        return -1;
    d->fd = socket(a.at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (d->fd < 0)
        return err_set_errno(e, ERR_FAILED, errno, "no socket can be made for %s", text);
    tcp_listener_set(d->fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (a.at.any.sa_family == AF_INET6)
        tcp_listener_set(d->fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    address_format(&a, d->address, sizeof d->address);
    if (bind(d->fd, &a.at.any, a.len) != 0 || listen(d->fd, TCP_LISTENER_BACKLOG) != 0)
        return err_set_errno(e, ERR_FAILED, errno, "cannot listen at %s", d->address);
    a.len = sizeof a.at;
    if (getsockname(d->fd, &a.at.any, &a.len) != 0)
        return err_set_errno(e, ERR_FAILED, errno, "the port of %s is not known", d->address);
    address_format(&a, d->address, sizeof d->address);
    return 0;
}

/* PID.sock becomes PID.door and PID.curl. */
static int tcp_listener_name_files(struct tcp_listener *d, const char *socket, struct err *e) {
    if (endpoint_tcp_file(d->file, sizeof d->file, socket) != 0 ||
        endpoint_header_file(d->header, sizeof d->header, socket) != 0)
        return err_set(e, ERR_FAILED, "no name for the file of the tokens beside %s", socket);
    return 0;
}

int tcp_listener_open(struct tcp_listener *d, const char *address, bool looking, const char *socket,
                      struct err *e) {
    *d = (struct tcp_listener){.fd = -1, .looking = looking};
    int rc = tcp_listener_bind(d, address, e);
    if (rc == 0 && !looking)
        rc = token_make(&d->all, e);
    if (rc == 0)
        rc = token_make(&d->looker, e);
    if (rc == 0)
        rc = tcp_listener_name_files(d, socket, e);
    if (rc == 0)
        rc = token_write(d->file, d->address, looking ? NULL : &d->all, &d->looker, e);
    if (rc == 0) {
        rc = token_write_header(d->header, looking ? &d->looker : &d->all, e);
        if (rc == 0)
            return 0;
        unlink(d->file);
    }
    if (d->fd >= 0)
        close(d->fd);
    *d = (struct tcp_listener){.fd = -1};
    return -1;
}

void tcp_listener_remove(struct tcp_listener *d) {
    if (d->file[0])
        unlink(d->file);
    if (d->header[0])
        unlink(d->header);
    /* immediately, not only when the descriptor is closed */
    if (d->fd >= 0)
        shutdown(d->fd, SHUT_RDWR);
    *d = (struct tcp_listener){.fd = -1};
}

int tcp_listener_accept(int fd) {
    int got = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (got < 0)
        return -1;
    tcp_listener_set(got, IPPROTO_TCP, TCP_NODELAY, 1);
    tcp_listener_set(got, SOL_SOCKET, SO_KEEPALIVE, 1);
    tcp_listener_set(got, IPPROTO_TCP, TCP_KEEPIDLE, TCP_LISTENER_IDLE_S);
    tcp_listener_set(got, IPPROTO_TCP, TCP_KEEPINTVL, TCP_LISTENER_EVERY_S);
    tcp_listener_set(got, IPPROTO_TCP, TCP_KEEPCNT, TCP_LISTENER_ASKED);
    tcp_listener_set(got, IPPROTO_TCP, TCP_USER_TIMEOUT, TCP_LISTENER_UNREAD_MS);
    return got;
}
