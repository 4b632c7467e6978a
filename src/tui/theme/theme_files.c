/* SPDX-License-Identifier: Apache-2.0 */
/* theme_files: lists the themes by the files in the folders; see theme.h. */
#include "tui/theme/theme.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#define THEME_SUFFIX ".theme"

static size_t theme_add_name(char (*names)[THEME_MAX_NAME], size_t n, size_t cap, const char *name,
                             size_t len) {
    if (n == cap || len == 0 || len >= THEME_MAX_NAME)
        return n;
    for (size_t i = 0; i < n; i++)
        if (strlen(names[i]) == len && memcmp(names[i], name, len) == 0)
            return n;
    memcpy(names[n], name, len);
    names[n][len] = '\0';
    return n + 1;
}

static int theme_compare_names(const void *a, const void *b) { return strcmp(a, b); }

size_t theme_list(const struct theme_path *path, char (*names)[THEME_MAX_NAME], size_t cap) {
    size_t n = theme_add_name(names, 0, cap, "default", strlen("default"));
    n = theme_add_name(names, n, cap, THEME_AUTO, strlen(THEME_AUTO));
    for (size_t i = 0; i < sizeof path->dirs / sizeof path->dirs[0] && path->dirs[i]; i++) {
        DIR *dir = opendir(path->dirs[i]);
        const struct dirent *d;
        while (dir && (d = readdir(dir))) {
            size_t len = strlen(d->d_name), suffix = strlen(THEME_SUFFIX);
            if (len > suffix && d->d_name[0] != '.' && strcmp(d->d_name + len - suffix, THEME_SUFFIX) == 0)
                n = theme_add_name(names, n, cap, d->d_name, len - suffix);
        }
        if (dir)
            closedir(dir);
    }
    qsort(names, n, sizeof *names, theme_compare_names);
    return n;
}
