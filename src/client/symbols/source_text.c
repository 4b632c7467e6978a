/* SPDX-License-Identifier: Apache-2.0 */
/* source_text: see source_text.h. */
#include "client/symbols/source_text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

#define SOURCE_TAB 4

/* The file that the process sees as `path`, relative to its root, into `out`. If its root is not
 * ours (chroot), the kernel shows its folder as we see it, including that root. 0, or -1 with
 * errno. */
static int source_from_root(pid_t pid, const char *path, char *out, size_t cap) {
    char link[64], root[PATH_MAX], folder[PATH_MAX];
    snprintf(link, sizeof link, "/proc/%ld/root", (long)pid);
    ssize_t n = readlink(link, root, sizeof root - 1);
    snprintf(link, sizeof link, "/proc/%ld/cwd", (long)pid);
    ssize_t m = readlink(link, folder, sizeof folder - 1);
    if (n <= 0 || m <= 0)
        return -1;
    root[n] = folder[m] = '\0';
    bool within = n > 1 && strncmp(folder, root, (size_t)n) == 0 && folder[n] == '/';
    int used = snprintf(out, cap, "%s/%s", within ? folder + n : folder, path);
    errno = ENAMETOOLONG;
    return used > 0 && (size_t)used < cap ? 0 : -1;
}

/* Links resolve below the root of the process only. After its end it has no root: then it is a
 * file of this machine, readable for this user. Only regular files are opened: opening a device
 * may do harm. */
static int source_open(pid_t pid, const char *path) {
    char folder[64], whole[PATH_MAX];
    snprintf(folder, sizeof folder, "/proc/%ld/root", (long)pid);
    int root = pid > 0 ? open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    if (root < 0 && *path != '/') {
        errno = ENOENT;
        return -1;
    }
    if (root < 0)
        return file_open_regular(AT_FDCWD, path, FILE_LINKS_FOLLOWED, O_RDONLY, FILE_ANY_OWNER);
    int fd = *path == '/' || source_from_root(pid, path, whole, sizeof whole) == 0
                 ? file_open_regular(root, *path == '/' ? path : whole, FILE_LINKS_IN_ROOT, O_RDONLY,
                                     FILE_ANY_OWNER)
                 : -1;
    int kept = errno;
    close(root);
    errno = kept;
    return fd;
}

/* Append a byte to a line. */
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
    out->from = from > 0 ? from : 1;
    out->n = 0;
    out->why = (struct err){0};
    snprintf(out->path, sizeof out->path, "%s", path);
    FILE *f = NULL;
    int fd = *path == '<' || !*path ? -1 : source_open(pid, path), rc = -1;
    if (*path == '<' || !*path)
        err_set(e, ERR_FAILED, "it does not come from a file");
    else if (fd < 0 && errno == EINVAL)
        err_set(e, ERR_FAILED, "%s is not a regular file", path);
    else if (fd < 0)
        err_set_errno(e, ERR_FAILED, errno, "cannot read %s", path);
    else if (!(f = fdopen(fd, "r")))
        err_set_errno(e, ERR_FAILED, errno, "cannot read %s", path);
    else {
        source_take(out, f, out->from);
        rc = out->n > 0 ? 0 : err_set(e, ERR_FAILED, "%s has no line %d", path, out->from);
    }
    if (f)
        fclose(f);
    else if (fd >= 0)
        close(fd);
    if (rc != 0)
        out->why = *e;
    return rc;
}
