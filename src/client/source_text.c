/* SPDX-License-Identifier: Apache-2.0 */
/* source_text: see source_text.h. */
#include "client/source_text.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SOURCE_FLAGS (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
#define SOURCE_TAB 4

/* Below a folder as if it were the root, links too (openat2(2), RESOLVE_IN_ROOT, Linux 5.6). */
static int source_open_below(int dir, const char *path) {
    struct open_how how = {.flags = SOURCE_FLAGS, .resolve = RESOLVE_IN_ROOT};
    int fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
    if (fd < 0 && (errno == ENOSYS || errno == EPERM))
        fd = openat(dir, path + strspn(path, "/"), SOURCE_FLAGS);
    return fd;
}

/* A process that has ended has no root any more: then it is a file of this machine. */
static int source_open(pid_t pid, const char *path) {
    char folder[64];
    (void)snprintf(folder, sizeof folder, "/proc/%ld/%s", (long)pid, *path == '/' ? "root" : "cwd");
    int dir = pid > 0 ? open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    if (dir < 0 && *path != '/') {
        errno = ENOENT;
        return -1;
    }
    if (dir < 0)
        return open(path, SOURCE_FLAGS);
    int fd = *path == '/' ? source_open_below(dir, path) : openat(dir, path, SOURCE_FLAGS), kept = errno;
    (void)close(dir);
    errno = kept;
    return fd;
}

/* A byte more of a line. */
static void source_put(char *line, size_t *len, int c) {
    int n = c == '\t' ? SOURCE_TAB - (int)(*len % SOURCE_TAB) : 1;
    for (; n > 0 && *len < SOURCE_LINE - 1; n--)
        line[(*len)++] = (char)(c == '\t' ? ' ' : c == '\0' ? '?' : c);
    line[*len] = '\0';
}

static void source_take(struct source_text *out, FILE *f, int from) {
    int at = 1, c = 0;
    size_t len = 0;
    for (size_t seen = 0; seen < SOURCE_MAX_BYTES && (c = getc_unlocked(f)) != EOF; seen++) {
        if (at >= from && out->n == at - from)
            out->lines[out->n++][0] = '\0';
        if (at >= from && c != '\n' && c != '\r')
            source_put(out->lines[out->n - 1], &len, c);
        if (c != '\n')
            continue;
        at++;
        len = 0;
        if (at - from >= SOURCE_MAX_LINES)
            return;
    }
}

int source_read(struct source_text *out, pid_t pid, const char *path, int from, struct err *e) {
    struct stat st;
    out->from = from > 0 ? from : 1;
    out->n = 0;
    out->why = (struct err){0};
    (void)snprintf(out->path, sizeof out->path, "%s", path);
    FILE *f = NULL;
    int fd = *path == '<' || !*path ? -1 : source_open(pid, path), rc = -1;
    if (*path == '<' || !*path)
        (void)err_set(e, ERR_FAILED, "it is not from a file");
    else if (fd < 0)
        (void)err_set_errno(e, ERR_FAILED, errno, "cannot read %s", path);
    else if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        (void)err_set(e, ERR_FAILED, "%s is no regular file", path);
    else if (!(f = fdopen(fd, "r")))
        (void)err_set_errno(e, ERR_FAILED, errno, "cannot read %s", path);
    else {
        source_take(out, f, out->from);
        rc = out->n > 0 ? 0 : err_set(e, ERR_FAILED, "%s has no line %d", path, out->from);
    }
    if (f)
        (void)fclose(f);
    else if (fd >= 0)
        (void)close(fd);
    if (rc != 0)
        out->why = *e;
    return rc;
}
