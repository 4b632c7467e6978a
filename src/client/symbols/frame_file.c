/* SPDX-License-Identifier: Apache-2.0 */
/* frame_file: see frame_file.h. */
#include "client/symbols/frame_file.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

/* True if the process has our root folder, or if that cannot be determined. */
static bool frame_file_same_root(pid_t pid) {
    char link[64];
    struct stat theirs, ours;
    snprintf(link, sizeof link, "/proc/%ld/root/.", (long)pid);
    return stat(link, &theirs) != 0 || stat("/", &ours) != 0 ||
           (theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino);
}

/* ---- as root ---- */

/* Root, or a user who is root by sudo(8), editing their own files. */
static bool frame_file_is_trusted(uid_t uid) {
    const char *sudo = getenv("SUDO_UID");
    char *end = NULL;
    unsigned long by = sudo && *sudo ? strtoul(sudo, &end, 10) : 0;
    return uid == 0 || (end && *end == '\0' && uid == (uid_t)by);
}

/* True if an untrusted user has written this file, or could put another in its place. `path` is
 * below `root` ("" our own). */
static bool frame_file_is_others(const char *root, const char *path) {
    char part[PATH_MAX];
    struct stat st;
    size_t base = strlen(root), n = base + strlen(path);
    if (n >= sizeof part)
        return true;
    snprintf(part, sizeof part, "%s%s", root, path);
    for (size_t at = base; at <= n; at++) {
        if (part[at] != '/' && part[at] != '\0')
            continue;
        char kept = part[at];
        part[at] = '\0';
        bool bad =
            at > base && (lstat(part, &st) != 0 || S_ISLNK(st.st_mode) || !frame_file_is_trusted(st.st_uid) ||
                          ((st.st_mode & S_IWOTH) && !(st.st_mode & S_ISVTX)));
        part[at] = kept;
        if (bad)
            return true;
    }
    return false;
}

/* An editor obeys modelines in a file, and writes where its name leads by then. 0, or -1 with
 * the error. */
static int frame_file_check_root(pid_t pid, const char *path, const char *clean, struct err *e) {
    char root[64], real[PATH_MAX];
    size_t n = (size_t)snprintf(root, sizeof root, "/proc/%ld/root", (long)pid);
    bool below = strncmp(path, root, n) == 0;
    if (geteuid() != 0 || !(below ? frame_file_is_others(root, path + n)
                                  : !realpath(path, real) || frame_file_is_others("", real)))
        return 0;
    return err_set(e, ERR_FAILED,
                   "other users may change %s, and editors run commands from files: it is not opened as root",
                   clean);
}

int frame_file_find(pid_t pid, const char *file, char *buf, size_t cap, struct err *e) {
    char clean[256];
    struct stat st;
    int n;
    if (!file || !*file || *file == '<')
        return err_set(e, ERR_FAILED, "this frame has no file: its code was not read from one");
    text_sanitize(clean, sizeof clean, file);
    if (*file != '/' && pid <= 0)
        return err_set(e, ERR_FAILED, "cannot determine where %s is: its process has ended", clean);
    if (*file != '/')
        n = snprintf(buf, cap, "/proc/%ld/cwd/%s", (long)pid, file);
    else if (pid > 0 && !frame_file_same_root(pid))
        n = snprintf(buf, cap, "/proc/%ld/root%s", (long)pid, file);
    else
        n = snprintf(buf, cap, "%s", file);
    if (n < 0 || (size_t)n >= cap)
        return err_set(e, ERR_FAILED, "the path of %s is too long", clean);
    if (access(buf, R_OK) != 0)
        return err_set_errno(e, ERR_FAILED, errno, "cannot read %s here", clean);
    if (stat(buf, &st) != 0 || !S_ISREG(st.st_mode))
        return err_set(e, ERR_FAILED, "%s is not a file that can be edited", clean);
    return frame_file_check_root(pid, buf, clean, e);
}
