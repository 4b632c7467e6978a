/* SPDX-License-Identifier: Apache-2.0 */
/* torch_profiler_files: see torch_profiler_files.h. */
#include "agent/torch/torch_profiler_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

#define FILES_FIRST "profile-"
#define FILES_LAST ".json"
#define FILES_MAX_ENTRIES 65536 /* entries of a folder */

void torch_profiler_files_name(const char *base, char *path, size_t cap) {
    (void)snprintf(path, cap, "%.400s/" FILES_FIRST "%ld-%.0f" FILES_LAST, base, (long)getpid(),
                   clock_epoch_s() * 1000);
}

/* When one of that name was written, in ms since the epoch; 0: no trace has such a name. */
static uint64_t files_time(const char *name) {
    char *end = NULL;
    if (strncmp(name, FILES_FIRST, sizeof FILES_FIRST - 1) != 0)
        return 0;
    const char *pid = name + sizeof FILES_FIRST - 1;
    if (strspn(pid, "0123456789") == 0 || pid[strspn(pid, "0123456789")] != '-')
        return 0;
    const char *at = pid + strspn(pid, "0123456789") + 1;
    uint64_t ms = *at >= '0' && *at <= '9' ? strtoull(at, &end, 10) : 0;
    return ms && strcmp(end, FILES_LAST) == 0 ? ms : 0;
}

/* Put it where it belongs among the newest, newest first; the oldest of them drops out. */
static void files_note(uint64_t *newest, size_t n, uint64_t ms) {
    size_t i = n;
    for (; i > 0 && newest[i - 1] < ms; i--)
        if (i < n)
            newest[i] = newest[i - 1];
    if (i < n)
        newest[i] = ms;
}

/* Is it a file, of this user? */
static bool files_is_ours(int dir, const char *name) {
    struct stat st;
    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid();
}

void torch_profiler_files_prune(const char *base) {
    uint64_t newest[TORCH_PROFILER_FILES_KEPT - 1] = {0}, *oldest = &newest[TORCH_PROFILER_FILES_KEPT - 2];
    const struct dirent *entry;
    DIR *d = opendir(base);
    if (!d)
        return;
    for (size_t i = 0; i < FILES_MAX_ENTRIES && (entry = readdir(d)); i++)
        if (files_time(entry->d_name) && files_is_ours(dirfd(d), entry->d_name))
            files_note(newest, TORCH_PROFILER_FILES_KEPT - 1, files_time(entry->d_name));
    rewinddir(d);
    for (size_t i = 0; i < FILES_MAX_ENTRIES && (entry = readdir(d)); i++) {
        uint64_t ms = files_time(entry->d_name);
        if (ms && ms < *oldest && files_is_ours(dirfd(d), entry->d_name))
            (void)unlinkat(dirfd(d), entry->d_name, 0);
    }
    (void)closedir(d);
}
