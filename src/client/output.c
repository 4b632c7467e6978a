/* SPDX-License-Identifier: Apache-2.0 */
/* output: see output.h. */
#include "client/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool output_is_stdout(const char *path) { return !path || strcmp(path, "-") == 0; }

bool output_expand(const char *path, char *out, size_t cap) {
    const char *home = path[0] == '~' && path[1] == '/' ? getenv("HOME") : NULL;
    int n = home ? snprintf(out, cap, "%s%s", home, path + 1) : snprintf(out, cap, "%s", path);
    return n > 0 && (size_t)n < cap;
}

static int output_put(int fd, const struct strbuf *content) {
    for (size_t at = 0; at < content->len;) {
        ssize_t n = write(fd, content->data + at, content->len - at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EPIPE ? 0 : -1;
        at += (size_t)n;
    }
    return 0;
}

/* Folder of `path`, for a file beside it. */
static void output_dir(char *buf, size_t cap, const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash)
        (void)snprintf(buf, cap, ".");
    else
        (void)snprintf(buf, cap, "%.*s", slash == path ? 1 : (int)(slash - path), path);
}

int output_check(const char *path, struct err *e) {
    struct stat st;
    char dir[PATH_MAX];
    if (output_is_stdout(path))
        return 0;
    if (!path[0])
        return err_set(e, ERR_FAILED,
                       "the output file has no name: give -o FILE, or -o - for standard output");
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

/* Permissions of the file that is replaced, or those of a new one. */
static mode_t output_mode(const char *path) {
    struct stat st;
    if (stat(path, &st) == 0)
        return st.st_mode & 07777;
    mode_t mask = umask(0);
    (void)umask(mask);
    return 0666 & ~mask;
}

static int output_replace(const char *path, const struct strbuf *content, struct err *e) {
    /* A link is followed: what it names is replaced, not the link. */
    char real[PATH_MAX], temp[PATH_MAX];
    const char *final = realpath(path, real) ? real : path;
    int n = snprintf(temp, sizeof temp, "%s.XXXXXX", final);
    if (n < 0 || (size_t)n >= sizeof temp)
        return err_set_errno(e, ERR_FAILED, ENAMETOOLONG, "cannot write %s", path);
    int fd = mkostemp(temp, O_CLOEXEC);
    if (fd < 0)
        return err_set_errno(e, ERR_FAILED, errno, "cannot write %s", path);
    int failed = output_put(fd, content) != 0 || fchmod(fd, output_mode(final)) != 0 ? errno : 0;
    if (close(fd) != 0 && !failed)
        failed = errno;
    if (!failed && rename(temp, final) != 0)
        failed = errno;
    if (failed) {
        (void)unlink(temp);
        return err_set_errno(e, ERR_FAILED, failed, "cannot write %s", path);
    }
    return 0;
}

int output_write(const char *path, const struct strbuf *content, struct err *e) {
    struct stat st;
    if (content->failed)
        return err_set(e, ERR_FAILED, "out of memory for the output");
    if (output_is_stdout(path))
        return output_put(STDOUT_FILENO, content) == 0
                   ? 0
                   : err_set_errno(e, ERR_FAILED, errno, "cannot write standard output");
    if (stat(path, &st) != 0 || S_ISREG(st.st_mode))
        return output_replace(path, content, e);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return err_set_errno(e, ERR_FAILED, errno, "cannot write %s", path);
    int failed = output_put(fd, content) != 0 ? errno : 0;
    if (close(fd) != 0 && !failed)
        failed = errno;
    return failed ? err_set_errno(e, ERR_FAILED, failed, "cannot write %s", path) : 0;
}
