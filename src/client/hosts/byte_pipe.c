/* SPDX-License-Identifier: Apache-2.0 */
/* byte_pipe: see byte_pipe.h. */
#include "client/hosts/byte_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#define BYTE_PIPE_BYTES 65536

/* One way. */
struct byte_way {
    int from, to;
    size_t begin, end; /* of the bytes that were read and not written yet */
    char bytes[BYTE_PIPE_BYTES];
};

/* False: it is over. */
static bool byte_way_read(struct byte_way *w) {
    ssize_t n = read(w->from, w->bytes, sizeof w->bytes);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    w->begin = 0;
    w->end = (size_t)n;
    return n > 0;
}

static bool byte_way_write(struct byte_way *w) {
    ssize_t n = write(w->to, w->bytes + w->begin, w->end - w->begin);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    w->begin += (size_t)n;
    return true;
}

/* Reads only what there is room for: so neither way holds up the other. */
static bool byte_way_step(struct byte_way *w, const struct pollfd *from, const struct pollfd *to) {
    if (w->begin < w->end)
        return !to->revents || byte_way_write(w);
    if (from->revents && !byte_way_read(w))
        return false;
    return w->begin == w->end || byte_way_write(w);
}

void byte_pipe_run(struct byte_end a, struct byte_end b, int noise) {
    static struct byte_way ways[2];
    ways[0] = (struct byte_way){.from = a.in, .to = b.out};
    ways[1] = (struct byte_way){.from = b.in, .to = a.out};
    const int all[] = {a.in, a.out, b.in, b.out};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (fcntl(all[i], F_SETFL, O_NONBLOCK) != 0)
            return;
    for (;;) {
        struct pollfd fds[5] = {[4] = {.fd = noise, .events = POLLIN}};
        char dropped[4096];
        for (size_t i = 0; i < 2; i++) {
            bool full = ways[i].begin < ways[i].end;
            fds[2 * i] = (struct pollfd){.fd = full ? -1 : ways[i].from, .events = POLLIN};
            fds[2 * i + 1] = (struct pollfd){.fd = full ? ways[i].to : -1, .events = POLLOUT};
        }
        if (poll(fds, 5, -1) < 0 && errno != EINTR)
            return;
        if (fds[4].revents && read(noise, dropped, sizeof dropped) == 0)
            noise = -1;
        for (size_t i = 0; i < 2; i++)
            if (!byte_way_step(&ways[i], &fds[2 * i], &fds[2 * i + 1]))
                return;
    }
}
