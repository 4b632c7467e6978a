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
#include <sys/mman.h>
#include <unistd.h>

#include "base/text.h"

#define STRBUF_MAPPED ((size_t)64 * 1024) /* from this size on with pages of its own */
#define STRBUF_PAGE ((size_t)4096)

void strbuf_init(struct strbuf *b, size_t limit) { *b = (struct strbuf){.limit = limit}; }

static void strbuf_free(struct strbuf *b) {
    if (b->mapped)
        munmap(b->data, b->cap);
    else
        free(b->data);
}

void strbuf_fini(struct strbuf *b) {
    strbuf_free(b);
    *b = (struct strbuf){.limit = b->limit};
}

void strbuf_fit(struct strbuf *b) {
    size_t cap = b->len + 1;
    char *p = b->data && !b->mapped && cap < b->cap ? realloc(b->data, cap) : NULL;
    /* pages that were never written take no memory */
    if (!p)
        return;
    b->data = p;
    b->cap = cap;
}

void strbuf_clear(struct strbuf *b) {
    b->len = 0;
    b->failed = false;
    if (b->data)
        b->data[0] = '\0';
}

const char *strbuf_str(const struct strbuf *b) { return b->data ? b->data : ""; }

/* Unwritten pages take no memory, so a huge page, which takes all of it immediately, is not
 * wanted. */
static char *strbuf_map(size_t cap) {
    void *p = mmap(NULL, cap, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    madvise(p, cap, MADV_NOHUGEPAGE);
    return p;
}

/* Move the content to memory of `cap` bytes. NULL on failure; then nothing has changed. */
static char *strbuf_move(struct strbuf *b, size_t *cap) {
    if (*cap < STRBUF_MAPPED)
        return realloc(b->data, *cap);
    *cap = (*cap + STRBUF_PAGE - 1) / STRBUF_PAGE * STRBUF_PAGE;
    if (b->mapped) {
        void *p = mremap(b->data, b->cap, *cap, MREMAP_MAYMOVE);
        return p == MAP_FAILED ? NULL : p;
    }
    char *p = strbuf_map(*cap);
    if (p && b->data)
        memcpy(p, b->data, b->len + 1);
    if (p)
        free(b->data);
    b->mapped = p != NULL;
    return p;
}

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
        cap = cap > SIZE_MAX / 4 ? need : cap * 2;
    if (cap > SIZE_MAX - STRBUF_PAGE) {
        b->failed = true;
        return -1;
    }
    char *p = strbuf_move(b, &cap);
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
    vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
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
            strbuf_adds(b, "\xef\xbf\xbd");
        else
            strbuf_add(b, s + at, n);
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
    close(fd);
    errno = saved;
    return rc;
}
