/* SPDX-License-Identifier: Apache-2.0 */
/* tunnel_reason: see tunnel_reason.h. */
#include "client/target/tunnel_reason.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/text.h"

#define TUNNEL_REASON_PATH 128

static void tunnel_reason_path(const char *path, char out[TUNNEL_REASON_PATH]) {
    snprintf(out, TUNNEL_REASON_PATH, "%.100s.why", path);
}

void tunnel_reason_put(const char *path, const char *why) {
    char name[TUNNEL_REASON_PATH];
    tunnel_reason_path(path, name);
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    /* less than the whole is as good */
    ssize_t n = write(fd, why, strlen(why));
    if (n < 0)
        unlink(name);
    close(fd);
}

void tunnel_reason_get(const char *path, char *buf, size_t cap) {
    char name[TUNNEL_REASON_PATH], text[TUNNEL_REASON_MAX];
    tunnel_reason_path(path, name);
    int fd = open(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    text[n > 0 ? n : 0] = '\0';
    text_sanitize(buf, cap, text);
    if (fd >= 0)
        close(fd);
}

void tunnel_reason_remove(const char *path) {
    char name[TUNNEL_REASON_PATH];
    tunnel_reason_path(path, name);
    unlink(name);
}
