/* SPDX-License-Identifier: Apache-2.0 */
/* path: see path.h. */
#include "base/path.h"

#include <stddef.h>
#include <string.h>

const char *path_short(const char *path) {
    static const char *const roots[] = {"/site-packages/", "/dist-packages/"};
    for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++) {
        const char *root = strstr(path, roots[i]);
        if (root)
            return root + strlen(roots[i]);
    }
    const char *base = strrchr(path, '/');
    if (!base)
        return path;
    if (strcmp(base, "/__init__.py") != 0 && strcmp(base, "/__main__.py") != 0)
        return base + 1;
    while (base > path && base[-1] != '/')
        base--;
    return base;
}

bool path_is_library(const char *path) {
    static const char *const folders[] = {"/site-packages/", "/dist-packages/", "/lib/python",
                                          "/lib64/python"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        if (strstr(path, folders[i]))
            return true;
    return *path == '<';
}

const char *path_short_command(const char *cmdline) {
    size_t start = 0;
    for (size_t i = 0; cmdline[0] == '/' && cmdline[i] && cmdline[i] != ' '; i++)
        if (cmdline[i] == '/' && cmdline[i + 1] && cmdline[i + 1] != ' ')
            start = i + 1;
    return cmdline + start;
}
