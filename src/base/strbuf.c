/* SPDX-License-Identifier: Apache-2.0 */
/* strbuf: see strbuf.h. */
#include "base/strbuf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

void strbuf_init(struct strbuf *b, size_t limit) { *b = (struct strbuf){.limit = limit}; }

void strbuf_fini(struct strbuf *b) {
    free(b->data);
    *b = (struct strbuf){.limit = b->limit};
}

void strbuf_clear(struct strbuf *b) {
    b->len = 0;
    b->failed = false;
    if (b->data)
        b->data[0] = '\0';
}

const char *strbuf_str(const struct strbuf *b) { return b->data ? b->data : ""; }

/* Make room for `more` bytes and a NUL. */
static int strbuf_reserve(struct strbuf *b, size_t more) {
    if (b->failed)
        return -1;
    if (more > SIZE_MAX - b->len - 1 || (b->limit && b->len + more > b->limit)) {
        b->failed = true;
        return -1;
    }
    size_t need = b->len + more + 1;
    if (need <= b->cap)
        return 0;
    size_t cap = b->cap ? b->cap : 128;
    while (cap < need)
        cap = cap > SIZE_MAX / 2 ? need : cap * 2;
    char *p = realloc(b->data, cap);
    if (!p) {
        b->failed = true;
        return -1;
    }
    b->data = p;
    b->cap = cap;
    return 0;
}

int strbuf_add(struct strbuf *b, const void *data, size_t len) {
    if (strbuf_reserve(b, len) != 0)
        return -1;
    if (len)
        memcpy(b->data + b->len, data, len);
    b->len += len;
    b->data[b->len] = '\0';
    return 0;
}

int strbuf_adds(struct strbuf *b, const char *s) { return strbuf_add(b, s, strlen(s)); }

int strbuf_addc(struct strbuf *b, char c) { return strbuf_add(b, &c, 1); }

int strbuf_addv(struct strbuf *b, const char *fmt, va_list ap) {
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (n < 0 || strbuf_reserve(b, (size_t)n) != 0)
        return -1;
    (void)vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
    b->len += (size_t)n;
    return 0;
}

int strbuf_addf(struct strbuf *b, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    int rc = strbuf_addv(b, fmt, ap);
    va_end(ap);
    return rc;
}

int strbuf_add_clean(struct strbuf *b, const char *s, size_t len) {
    for (size_t at = 0; at < len;) {
        uint32_t cp;
        size_t n = text_utf8_next(s + at, len - at, &cp);
        if (text_is_control(cp) || cp == TEXT_REPLACEMENT)
            (void)strbuf_adds(b, "\xef\xbf\xbd");
        else
            (void)strbuf_add(b, s + at, n);
        at += n;
    }
    return b->failed ? -1 : 0;
}

int strbuf_read_fd(struct strbuf *b, int fd) {
    for (;;) {
        char buf[4096];
        ssize_t n = read(fd, buf, sizeof buf);
        if (n == 0)
            return 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (strbuf_add(b, buf, (size_t)n) != 0) {
            errno = EFBIG;
            return -1;
        }
    }
}

int strbuf_read_file(struct strbuf *b, const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    int rc = strbuf_read_fd(b, fd), saved = errno;
    (void)close(fd);
    errno = saved;
    return rc;
}
