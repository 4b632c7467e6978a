/* SPDX-License-Identifier: Apache-2.0 */
/* frame_file: see frame_file.h. */
#include "client/frame_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

/* Does the process have the root folder that we have? True too where that cannot be seen. */
static bool frame_file_same_root(pid_t pid) {
    char link[64];
    struct stat theirs, ours;
    (void)snprintf(link, sizeof link, "/proc/%ld/root/.", (long)pid);
    return stat(link, &theirs) != 0 || stat("/", &ours) != 0 ||
           (theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino);
}

int frame_file_find(pid_t pid, const char *file, char *buf, size_t cap, struct err *e) {
    char clean[256];
    struct stat st;
    int n;
    if (!file || !*file || *file == '<')
        return err_set(e, ERR_FAILED, "this frame has no file: its code was not read from one");
    text_sanitize(clean, sizeof clean, file);
    if (*file != '/' && pid <= 0)
        return err_set(e, ERR_FAILED, "cannot tell where %s is: its process is gone", clean);
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
        return err_set(e, ERR_FAILED, "%s is no file that can be edited", clean);
    return 0;
}
