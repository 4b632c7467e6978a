/* SPDX-License-Identifier: Apache-2.0 */
/* output: see output.h. */
#include "client/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

#define OUTPUT_COLUMNS 80 /* of a terminal that does not know its size */
#define OUTPUT_PIECE ((size_t)256 * 1024)

bool output_is_stdout(const char *path) { return !path || strcmp(path, "-") == 0; }

int output_columns(void) {
    struct winsize w;
    if (!isatty(STDOUT_FILENO))
        return 0;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : OUTPUT_COLUMNS;
}

bool output_has_colour(void) {
    const char *off = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(STDOUT_FILENO) && !(off && *off) && term && *term && strcmp(term, "dumb") != 0;
}

bool output_expand(const char *path, char *out, size_t cap) {
    const char *home = path[0] == '~' && path[1] == '/' ? getenv("HOME") : NULL;
    int n = home ? snprintf(out, cap, "%s%s", home, path + 1) : snprintf(out, cap, "%s", path);
    return n > 0 && (size_t)n < cap;
}

/* ---- terminals ---- */

/* Text colours and weight: 0 to 2, 22, 30 to 37, 39, 90 to 97. None of them hides text or moves
 * anything. */
static bool output_is_colour(long n) {
    return (n >= 0 && n <= 2) || n == 22 || (n >= 30 && n <= 37) || n == 39 || (n >= 90 && n <= 97);
}

/* Length of the sequence at `text` that sets only those, "ESC [ 1 ; 31 m"; 0 for any other. */
static size_t output_colour(const char *text, size_t len) {
    size_t at = 2;
    if (len < 3 || text[0] != '\x1b' || text[1] != '[')
        return 0;
    for (;;) {
        long n = 0;
        size_t digits = 0;
        for (; at < len && text[at] >= '0' && text[at] <= '9' && digits < 3; at++, digits++)
            n = 10 * n + (text[at] - '0');
        if (at == len || digits == 3 || !output_is_colour(n))
            return 0;
        if (text[at] == 'm')
            return at + 1;
        if (text[at++] != ';')
            return 0;
    }
}

int output_guard(struct strbuf *out, const char *text, size_t len) {
    while (len > 0) {
        const char *escape = memchr(text, '\x1b', len);
        size_t n = escape ? (size_t)(escape - text) : len;
        strbuf_add_clean(out, text, n);
        text += n;
        len -= n;
        n = output_colour(text, len);
        if (n)
            strbuf_add(out, text, n);
        else if (len)
            strbuf_add_clean(out, text, n = 1);
        text += n;
        len -= n;
    }
    return out->failed ? -1 : 0;
}

static int output_put_bytes(int fd, const char *data, size_t len) {
    for (size_t at = 0; at < len;) {
        ssize_t n = write(fd, data + at, len - at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EPIPE ? 0 : -1;
        at += (size_t)n;
    }
    return 0;
}

/* Bytes to check together: some lines. A longer line is cut anywhere: half a character or half a
 * sequence counts as invalid. */
static size_t output_piece(const char *text, size_t len) {
    size_t n = len < OUTPUT_PIECE ? len : OUTPUT_PIECE;
    const char *end = memrchr(text, '\n', n);
    return n == len || !end ? n : (size_t)(end - text) + 1;
}

/* `guard`: a terminal will show it, now or later. */
static int output_put(int fd, const struct strbuf *content, bool guard) {
    struct strbuf clean;
    if (!guard)
        return output_put_bytes(fd, strbuf_str(content), content->len);
    const char *text = strbuf_str(content);
    int rc = 0;
    strbuf_init(&clean, 0);
    for (size_t left = content->len, n; rc == 0 && left > 0; left -= n, text += n) {
        n = output_piece(text, left);
        strbuf_clear(&clean);
        if (output_guard(&clean, text, n) == 0) {
            rc = output_put_bytes(fd, strbuf_str(&clean), clean.len);
        } else {
            errno = ENOMEM;
            rc = -1;
        }
    }
    int saved = errno;
    strbuf_fini(&clean);
    errno = saved;
    return rc;
}

/* ---- a line that is replaced ---- */

static struct {
    pthread_mutex_t lock;
    size_t cols; /* that it takes now */
} output_line = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool output_is_watched(void) { return isatty(STDERR_FILENO) == 1; }

/* With the lock. Blanks erase on every terminal. */
static void output_replace_line(const char *line) {
    struct winsize w;
    char text[512];
    int cols = ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : OUTPUT_COLUMNS;
    size_t fits = text_fit(line, cols - 1), n = (size_t)text_width(line);
    if (line[fits])
        n = (size_t)cols - 1;
    size_t blanks = output_line.cols > n ? output_line.cols - n : 0;
    int len = snprintf(text, sizeof text, "\r%.*s%*s%s", (int)fits, line, (int)blanks, "", *line ? "" : "\r");
    if (len > 0 && (size_t)len < sizeof text)
        output_put_bytes(STDERR_FILENO, text, (size_t)len);
    output_line.cols = n;
}

void output_progress(const char *line) {
    pthread_mutex_lock(&output_line.lock);
    if (*line || output_line.cols)
        output_replace_line(line);
    pthread_mutex_unlock(&output_line.lock);
}

/* A failure cannot be reported to anybody. A log of stderr is read on a terminal some day. */
void output_say_text(const struct strbuf *text) {
    output_progress("");
    output_put(STDERR_FILENO, text, true);
}

void output_say(const char *fmt, ...) {
    struct strbuf text;
    va_list ap;
    strbuf_init(&text, 0);
    va_start(ap, fmt);
    strbuf_addv(&text, fmt, ap);
    va_end(ap);
    output_say_text(&text);
    strbuf_fini(&text);
}

/* ---- files ---- */

/* Folder of `path`, for a file beside it. */
static void output_dir(char *buf, size_t cap, const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash)
        snprintf(buf, cap, ".");
    else
        snprintf(buf, cap, "%.*s", slash == path ? 1 : (int)(slash - path), path);
}

/* Check that no other user has put a link or a FIFO there; in a /tmp anyone may. Root's are
 * expected: /dev/stdout. 0, or -1 with the error. */
static int output_check_planted(const char *path, struct err *e) {
    struct stat st;
    if (lstat(path, &st) != 0 || st.st_uid == geteuid() || st.st_uid == 0 ||
        !(S_ISLNK(st.st_mode) || S_ISFIFO(st.st_mode)))
        return 0;
    return err_set(e, ERR_FAILED, "%s is a %s of user %u: give another name", path,
                   S_ISLNK(st.st_mode) ? "link" : "FIFO", (unsigned)st.st_uid);
}

int output_check(const char *path, struct err *e) {
    struct stat st;
    char dir[PATH_MAX];
    if (output_is_stdout(path))
        return 0;
    if (!path[0])
        return err_set(e, ERR_FAILED,
                       "the output file has no name: give -o FILE, or -o - for standard output");
    if (output_check_planted(path, e) != 0)
        return -1;
    bool there = stat(path, &st) == 0;
    if (there && S_ISDIR(st.st_mode))
        return err_set(e, ERR_FAILED, "%s is a folder: give the name of a file", path);
    if (there && access(path, W_OK) != 0)
        return err_set_errno(e, ERR_FAILED, errno, "cannot write %s", path);
    output_dir(dir, sizeof dir, path);
    if ((!there || S_ISREG(st.st_mode)) && access(dir, W_OK | X_OK) != 0)
        return err_set_errno(e, ERR_FAILED, errno, "cannot write %s", path);
    return 0;
}

/* Mode of the replaced file, if it is this user's; otherwise private, because it may contain
 * values. */
static mode_t output_mode(const char *path) {
    struct stat st;
    return lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() ? st.st_mode & 0777 : 0600;
}

int output_file_begin(struct output_file *f, const char *path, struct err *e) {
    char real[PATH_MAX];
    f->fd = -1;
    /* A link is followed: its target is replaced, not the link. */
    int n = snprintf(f->final, sizeof f->final, "%s", realpath(path, real) ? real : path), m = -1;
    if (n >= 0 && (size_t)n < sizeof f->final)
        m = snprintf(f->temp, sizeof f->temp, "%s.XXXXXX", f->final);
    if (m < 0 || (size_t)m >= sizeof f->temp)
        return err_set_errno(e, ERR_FAILED, ENAMETOOLONG, "cannot write %s", path);
    f->fd = mkostemp(f->temp, O_CLOEXEC);
    return f->fd >= 0 ? 0 : err_set_errno(e, ERR_FAILED, errno, "cannot write %s", path);
}

int output_file_end(struct output_file *f, const char *path, struct err *e) {
    int failed = fchmod(f->fd, output_mode(f->final)) != 0 ? errno : 0;
    if (close(f->fd) != 0 && !failed)
        failed = errno;
    f->fd = -1;
    if (!failed && rename(f->temp, f->final) != 0)
        failed = errno;
    if (!failed)
        return 0;
    unlink(f->temp);
    return err_set_errno(e, ERR_FAILED, failed, "cannot write %s", path);
}

void output_file_drop(struct output_file *f) {
    if (f->fd < 0)
        return;
    close(f->fd);
    f->fd = -1;
    unlink(f->temp);
}

static int output_replace(const char *path, const struct strbuf *content, struct err *e) {
    struct output_file f;
    if (output_file_begin(&f, path, e) != 0)
        return -1;
    if (output_put_bytes(f.fd, strbuf_str(content), content->len) == 0)
        return output_file_end(&f, path, e);
    int failed = errno;
    output_file_drop(&f);
    return err_set_errno(e, ERR_FAILED, failed, "cannot write %s", path);
}

int output_write(const char *path, const struct strbuf *content, struct err *e) {
    struct stat st;
    if (content->failed)
        return err_set(e, ERR_FAILED, "out of memory for the output");
    if (output_is_stdout(path))
        return output_put(STDOUT_FILENO, content, isatty(STDOUT_FILENO) == 1) == 0
                   ? 0
                   : err_set_errno(e, ERR_FAILED, errno, "cannot write standard output");
    if (output_check_planted(path, e) != 0)
        return -1;
    if (stat(path, &st) != 0 || S_ISREG(st.st_mode))
        return output_replace(path, content, e);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return err_set_errno(e, ERR_FAILED, errno, "cannot write %s", path);
    int failed = output_put(fd, content, isatty(fd) == 1) != 0 ? errno : 0;
    if (close(fd) != 0 && !failed)
        failed = errno;
    return failed ? err_set_errno(e, ERR_FAILED, failed, "cannot write %s", path) : 0;
}

/* ---- standard output as a file ---- */

static struct output_redirection {
    struct output_file file; /* fd -1: written in place, or none */
    const char *path;        /* NULL: none */
} output_redirection = {.file = {.fd = -1}};

int output_redirect(const char *path, struct err *e) {
    struct output_redirection *r = &output_redirection;
    struct stat st;
    if (output_is_stdout(path))
        return 0;
    if (output_check_planted(path, e) != 0)
        return -1;
    bool in_place = stat(path, &st) == 0 && !S_ISREG(st.st_mode);
    int fd = in_place                                    ? open(path, O_WRONLY | O_CLOEXEC)
             : output_file_begin(&r->file, path, e) == 0 ? r->file.fd
                                                         : -1;
    if (fd < 0)
        return in_place ? err_set_errno(e, ERR_FAILED, errno, "cannot write %s", path) : -1;
    int rc = dup2(fd, STDOUT_FILENO) < 0 ? err_set_errno(e, ERR_FAILED, errno, "cannot write %s", path) : 0;
    if (in_place)
        close(fd);
    r->path = path;
    if (rc != 0)
        output_redirect_end(false, e);
    return rc;
}

int output_redirect_end(bool keep, struct err *e) {
    struct output_redirection *r = &output_redirection;
    bool is_file = r->path && r->file.fd >= 0;
    const char *path = r->path;
    r->path = NULL;
    if (is_file && keep)
        return output_file_end(&r->file, path, e);
    if (is_file)
        output_file_drop(&r->file);
    return 0;
}
