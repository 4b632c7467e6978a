/* SPDX-License-Identifier: Apache-2.0 */
/* pipe: see pipe.h. */
#include "wire/pipe.h"

#include <stdint.h>
#include <string.h>

#include "base/text.h"
#include "wire/wire.h"

#define PIPE_HEAD 4
#define PIPE_READ_MAX ((size_t)256 * 1024) /* that may be added beyond a whole message */

int pipe_put(struct strbuf *out, const void *message, size_t len) {
    if (len == 0 || len > WIRE_MAX_MESSAGE)
        return -1;
    const unsigned char head[PIPE_HEAD] = {(unsigned char)(len >> 24), (unsigned char)(len >> 16),
                                           (unsigned char)(len >> 8), (unsigned char)len};
    return strbuf_add(out, head, sizeof head) == 0 ? strbuf_add(out, message, len) : -1;
}

void pipe_reader_init(struct pipe_reader *r, bool begun) {
    *r = (struct pipe_reader){.is_begun = begun};
    strbuf_init(&r->bytes, WIRE_MAX_MESSAGE + PIPE_HEAD + PIPE_READ_MAX);
}

void pipe_reader_fini(struct pipe_reader *r) { strbuf_fini(&r->bytes); }

int pipe_reader_add(struct pipe_reader *r, const void *data, size_t len) {
    if (r->from > 0) {
        r->bytes.len -= r->from;
        memmove(r->bytes.data, r->bytes.data + r->from, r->bytes.len);
        r->from = 0;
    }
    return strbuf_add(&r->bytes, data, len);
}

/* Keep the end of what is not the line. */
static void pipe_keep_banner(struct pipe_reader *r, size_t len) {
    char raw[sizeof r->banner];
    size_t n = len < sizeof raw - 1 ? len : sizeof raw - 1;
    while (n > 0 && strchr("\r\n ", r->bytes.data[len - 1])) {
        len--;
        n = len < n ? len : n;
    }
    memcpy(raw, r->bytes.data + len - n, n);
    raw[n] = '\0';
    if (n > 0)
        text_sanitize(r->banner, sizeof r->banner, raw);
}

/* Skip up to the line's end. 1, 0 or -1 as pipe_reader_next. */
static int pipe_begin(struct pipe_reader *r, struct err *e) {
    size_t n = strlen(PIPE_MAGIC);
    const char *line = r->bytes.len ? memmem(r->bytes.data, r->bytes.len, PIPE_MAGIC, n) : NULL;
    size_t before = line ? (size_t)(line - r->bytes.data) : r->bytes.len;
    if (before > 0)
        pipe_keep_banner(r, before);
    if (before > PIPE_BANNER_MAX)
        return err_set(e, ERR_FAILED, "it is not a relay: it printed '%s'", r->banner);
    if (!line)
        return 0;
    r->from = before + n;
    r->is_begun = true;
    return 1;
}

int pipe_reader_next(struct pipe_reader *r, const void **message, size_t *len, struct err *e) {
    if (!r->is_begun) {
        int rc = pipe_begin(r, e);
        if (rc <= 0)
            return rc;
    }
    size_t left = r->bytes.len - r->from;
    if (left < PIPE_HEAD)
        return 0;
    const unsigned char *head = (const unsigned char *)r->bytes.data + r->from;
    size_t n = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
    if (n == 0 || n > WIRE_MAX_MESSAGE)
        return err_set(e, ERR_FAILED, "it sent a message of %zu bytes; at most %zu are allowed", n,
                       WIRE_MAX_MESSAGE);
    if (left - PIPE_HEAD < n)
        return 0;
    *message = head + PIPE_HEAD;
    *len = n;
    r->from += PIPE_HEAD + n;
    return 1;
}
