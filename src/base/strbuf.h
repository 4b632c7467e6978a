/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strbuf: a growing byte string, always NUL-terminated.
 *
 * A failed allocation or the limit sets `failed` and drops what came after; callers check once,
 * at the end. A long string has pages of its own, which go back to the system when it is freed.
 * Memory from malloc would stay with the process, and inside a job each large free also moves
 * malloc's own mapping threshold. Embedded in its owner (init/fini). One thread at a time.
 */
#ifndef BASE_STRBUF_H
#define BASE_STRBUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct strbuf {
    char *data; /* never NULL after the first successful append; strbuf_str gives "" before */
    size_t len;
    size_t cap;
    size_t limit; /* most bytes of content; 0 for no limit */
    bool failed;
    bool mapped; /* `data` is pages of its own, not malloc's */
};

void strbuf_init(struct strbuf *b, size_t limit);
void strbuf_fini(struct strbuf *b);

/* Give back memory that the content does not need. */
void strbuf_fit(struct strbuf *b);

/* Forget the content, keep the memory. Clears `failed`. */
void strbuf_clear(struct strbuf *b);

/* The content as a C string, owned by the buffer; "" when empty. */
const char *strbuf_str(const struct strbuf *b);

/* Append; return 0, or -1 when it did not fit (`failed` stays set). */
int strbuf_add(struct strbuf *b, const void *data, size_t len);
int strbuf_adds(struct strbuf *b, const char *s);
int strbuf_addc(struct strbuf *b, char c);
int strbuf_addf(struct strbuf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int strbuf_addv(struct strbuf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

/* Append UTF-8 that is safe for a terminal, in lines: characters that a terminal obeys
 * (text_is_control) and invalid UTF-8 become U+FFFD. As above. */
int strbuf_add_clean(struct strbuf *b, const char *s, size_t len);

/* Read all of `path` (a file of unknown size, such as one under /proc) up to the limit. 0, or -1
 * with errno. */
int strbuf_read_file(struct strbuf *b, const char *path);

/* The same for an open file, from its current offset; the descriptor stays the caller's. */
int strbuf_read_fd(struct strbuf *b, int fd);

#endif
