/* SPDX-License-Identifier: Apache-2.0 */
/* history: see history.h. */
#include "client/history.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strbuf.h"

#define HISTORY_LOCK_TRIES 50 /* of 4 ms: others hold it for a write */
#define HISTORY_LOCK_MS 4

void history_where(const char *name, char *buf, size_t cap) {
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    char dir[480];
    bool has_state = state && state[0] == '/', has_home = home && home[0] == '/';
    buf[0] = '\0';
    int n = has_state  ? snprintf(dir, sizeof dir, "%s/probing-top", state)
            : has_home ? snprintf(dir, sizeof dir, "%s/.local/state/probing-top", home)
                       : -1;
    if (n >= 0 && (size_t)n < sizeof dir)
        snprintf(buf, cap, "%s/%s", dir, name);
}

void history_path(const char *name, char *buf, size_t cap) {
    history_where(name, buf, cap);
    for (char *p = buf + (buf[0] != '\0'); *p; p++)
        if (*p == '/') {
            *p = '\0';
            mkdir(buf, 0700);
            *p = '/';
        }
}

/* ---- entries in memory ---- */

static void history_clear(struct history *h) {
    for (size_t i = 0; i < h->n; i++)
        free(h->entries[i]);
    h->n = h->bytes = 0;
}

void history_fini(struct history *h) {
    history_clear(h);
    free(h->entries);
    memset(h, 0, sizeof *h);
}

static void history_drop_oldest(struct history *h) {
    h->bytes -= strlen(h->entries[0]);
    free(h->entries[0]);
    h->n--;
    memmove(h->entries, h->entries + 1, h->n * sizeof *h->entries);
}

/* Takes `text`, and frees it if it is not added. */
static void history_push(struct history *h, char *text) {
    if (!text)
        return;
    if (h->n > 0 && strcmp(h->entries[h->n - 1], text) == 0) {
        free(text);
        return;
    }
    if (h->n == h->cap) {
        size_t cap = h->cap ? h->cap * 2 : 64;
        char **more = realloc(h->entries, cap * sizeof *more);
        if (!more) {
            free(text);
            return;
        }
        h->entries = more;
        h->cap = cap;
    }
    h->entries[h->n++] = text;
    h->bytes += strlen(text);
    while (h->n > HISTORY_MAX_ENTRIES || (h->bytes > HISTORY_MAX_BYTES && h->n > 1))
        history_drop_oldest(h);
}

/* ---- lines of the file ---- */

static void history_write_line(struct strbuf *out, const char *text) {
    for (const char *p = text; *p; p++) {
        if (*p == '\n' || *p == '\\')
            strbuf_addc(out, '\\');
        strbuf_addc(out, *p == '\n' ? 'n' : *p);
    }
    strbuf_addc(out, '\n');
}

static char *history_read_line(const char *line, size_t len) {
    char *text = len <= 2 * HISTORY_MAX_ENTRY ? malloc(len + 1) : NULL;
    size_t n = 0;
    for (size_t i = 0; text && i < len; i++) {
        char c = line[i];
        if (c == '\\' && i + 1 < len)
            c = line[++i] == 'n' ? '\n' : line[i];
        if (c)
            text[n++] = c;
    }
    if (!text || n == 0 || n > HISTORY_MAX_ENTRY) {
        free(text);
        return NULL;
    }
    text[n] = '\0';
    return text;
}

static void history_read_text(struct history *h, const char *text, size_t len) {
    while (len > 0) {
        const char *end = memchr(text, '\n', len);
        size_t line = end ? (size_t)(end - text) : len;
        history_push(h, history_read_line(text, line));
        size_t used = line + (end ? 1 : 0);
        text += used;
        len -= used;
    }
}

/* Read the file's last bytes, as many as can matter. 0, or -1 with errno. */
static int history_read_file(int fd, off_t size, struct strbuf *out) {
    off_t most = (off_t)(4 * HISTORY_MAX_BYTES), at = size > most ? size - most : 0;
    char buf[16384];
    ssize_t n;
    while ((n = pread(fd, buf, sizeof buf, at)) > 0) {
        if (strbuf_add(out, buf, (size_t)n) != 0)
            return -1;
        at += n;
    }
    return n < 0 ? -1 : 0;
}

/* ---- the file ---- */

/* Only a regular file of our own is read and written: not a device, a pipe, or another user's. */
static int history_check(int fd, const char *path, struct stat *st, struct err *e) {
    if (fstat(fd, st) != 0)
        return err_set_errno(e, ERR_FAILED, errno, "cannot read the history %s", path);
    if (!S_ISREG(st->st_mode) || st->st_uid != geteuid())
        return err_set(e, ERR_FAILED, "history is not saved: %s is not your file", path);
    return 0;
}

/* Open and lock the file that has the name now. Descriptor, or -1 with the error. */
static int history_lock(const char *path, struct stat *st, struct err *e) {
    for (int tries = 0; tries < HISTORY_LOCK_TRIES; tries++) {
        struct stat named;
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
        if (fd < 0)
            return err_set_errno(e, ERR_FAILED, errno, "history is not saved: cannot open %s", path);
        if (history_check(fd, path, st, e) != 0) {
            close(fd);
            return -1;
        }
        bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
        /* Another instance may have put a new file in its place before we had the lock. */
        if (locked && stat(path, &named) == 0 && named.st_ino == st->st_ino && named.st_dev == st->st_dev &&
            fstat(fd, st) == 0)
            return fd;
        close(fd);
        if (!locked)
            poll(NULL, 0, HISTORY_LOCK_MS);
    }
    return err_set(e, ERR_FAILED, "history is not saved: %s is in use by another program", path);
}

int history_open(struct history *h, const char *path, struct err *e) {
    struct stat st;
    struct strbuf text;
    memset(h, 0, sizeof *h);
    if (!*path)
        return 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno != ENOENT)
        return err_set_errno(e, ERR_FAILED, errno, "history is not saved: cannot open %s", path);
    if (fd >= 0) {
        strbuf_init(&text, 8 * HISTORY_MAX_BYTES);
        int rc = history_check(fd, path, &st, e);
        if (rc == 0 && history_read_file(fd, st.st_size, &text) == 0)
            history_read_text(h, strbuf_str(&text), text.len);
        strbuf_fini(&text);
        close(fd);
        if (rc != 0)
            return -1;
    }
    snprintf(h->path, sizeof h->path, "%s", path);
    return 0;
}

static int history_write_all(int fd, const struct strbuf *b) {
    for (size_t at = 0; at < b->len;) {
        ssize_t n = write(fd, b->data + at, b->len - at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        at += (size_t)n;
    }
    return 0;
}

/* Replace a file that has grown too long by one with our entries. */
static int history_shorten(const struct history *h) {
    char path[sizeof h->path + 16];
    struct strbuf out;
    snprintf(path, sizeof path, "%s.new", h->path);
    unlink(path); /* left by a killed instance: the lock says that nobody else is here */
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -1;
    strbuf_init(&out, 8 * HISTORY_MAX_BYTES);
    for (size_t i = 0; i < h->n; i++)
        history_write_line(&out, h->entries[i]);
    int rc = out.failed ? -1 : history_write_all(fd, &out);
    strbuf_fini(&out);
    if (close(fd) != 0)
        rc = -1;
    if (rc == 0)
        rc = rename(path, h->path);
    if (rc != 0)
        unlink(path);
    return rc;
}

/* With the lock: read what others wrote, append our own. */
static int history_append(struct history *h, int fd, off_t size, const char *text) {
    struct strbuf b;
    strbuf_init(&b, 8 * HISTORY_MAX_BYTES);
    int rc = history_read_file(fd, size, &b);
    bool cut = b.len > 0 && b.data[b.len - 1] != '\n';
    if (rc == 0) {
        history_clear(h);
        history_read_text(h, strbuf_str(&b), b.len);
    }
    bool again = h->n > 0 && strcmp(h->entries[h->n - 1], text) == 0;
    history_push(h, strdup(text));
    strbuf_clear(&b);
    if (cut)
        strbuf_addc(&b, '\n');
    history_write_line(&b, text);
    if (rc == 0 && !again)
        rc = b.failed || lseek(fd, 0, SEEK_END) < 0 ? -1 : history_write_all(fd, &b);
    bool is_long = size + (off_t)b.len > (off_t)(2 * HISTORY_MAX_BYTES);
    strbuf_fini(&b);
    if (rc == 0 && is_long)
        rc = history_shorten(h);
    return rc;
}

int history_add(struct history *h, const char *text, struct err *e) {
    struct stat st;
    if (!text[strspn(text, " \t\r\n")] || strlen(text) > HISTORY_MAX_ENTRY)
        return 0;
    if (!*h->path) {
        history_push(h, strdup(text));
        return 0;
    }
    int fd = history_lock(h->path, &st, e);
    if (fd < 0) {
        history_push(h, strdup(text));
        return -1;
    }
    int rc = history_append(h, fd, st.st_size, text);
    if (rc != 0)
        err_set_errno(e, ERR_FAILED, errno, "history is not saved: cannot write %s", h->path);
    close(fd);
    return rc;
}

long history_find(const struct history *h, const char *text, size_t before) {
    for (size_t i = before < h->n ? before : h->n; i-- > 0;)
        if (strcasestr(h->entries[i], text))
            return (long)i;
    return -1;
}
