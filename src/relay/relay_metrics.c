/* SPDX-License-Identifier: Apache-2.0 */
/* relay_metrics: see relay_metrics.h. */
#include "relay/relay_metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/address.h"
#include "base/text.h"

#define METRICS_MS 100 /* for a client to send its request, and to take the answer */
#define METRICS_BACKLOG 8

int relay_metrics_listen(const char *address, struct err *e) {
    struct address a;
    int on = 1;
    if (address_parse(&a, address, e) != 0)
        return -1;
    if (!address_is_loopback(&a))
        return err_set(e, ERR_USAGE, "--metrics is for this host: '%.60s' is not an address of loopback",
                       address);
    int fd = socket(a.at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(fd, &a.at.any, a.len) != 0 || listen(fd, METRICS_BACKLOG) != 0) {
        err_set_errno(e, ERR_FAILED, errno, "--metrics: cannot listen at %.60s", address);
        if (fd >= 0)
            close(fd);
        return -1;
    }
    return fd;
}

void relay_metrics_answer(int fd, const struct strbuf *text) {
    char request[2048];
    struct strbuf out;
    struct timeval limit = {.tv_usec = METRICS_MS * 1000};
    int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    if (client < 0)
        return;
    struct pollfd p = {.fd = client, .events = POLLIN};
    setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (poll(&p, 1, METRICS_MS) == 1 && recv(client, request, sizeof request, MSG_DONTWAIT) > 0) {
        strbuf_init(&out, 0);
        strbuf_addf(&out,
                    "HTTP/1.0 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: %zu\r\n"
                    "Connection: close\r\n\r\n",
                    text->len);
        strbuf_add(&out, strbuf_str(text), text->len);
        for (size_t at = 0; !out.failed && at < out.len;) {
            ssize_t n = send(client, out.data + at, out.len - at, MSG_NOSIGNAL);
            if (n <= 0)
                break;
            at += (size_t)n;
        }
        strbuf_fini(&out);
        shutdown(client, SHUT_WR);
    }
    close(client);
}

void relay_metrics_put_type(struct strbuf *out, const char *name, const char *type) {
    strbuf_addf(out, "# TYPE probing_%s %s\n", name, type);
}

void relay_metrics_put(struct strbuf *out, const char *name, const char *job, int64_t rank, double value) {
    if (isnan(value))
        return;
    strbuf_addf(out, "probing_%s", name);
    if (job) {
        strbuf_adds(out, "{job=\"");
        for (; *job; job++) {
            if (*job == '"' || *job == '\\')
                strbuf_addc(out, '\\');
            strbuf_addc(out, *job);
        }
        strbuf_addf(out, "\",rank=\"%" PRId64 "\"}", rank);
    }
    strbuf_addf(out, " %.17g\n", value);
}
