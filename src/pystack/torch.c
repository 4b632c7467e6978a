/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torch: the version of a PyTorch that is loaded, from the files beside it.
 *
 * Wheels and conda put libtorch_cpu.so into torch/lib and version.py into torch; Debian keeps the library elsewhere, but
 * torch/_C*.so is always in the package. No Python is run, nothing is written.
 */
#include "pystack/pystack_internal.h"

#include <string.h>
#include <unistd.h>

#include "base/procfs.h"
#include "base/strbuf.h"
#include "pystack/mapped.h"

#define TORCH_FILE_MAX ((size_t)64 * 1024)

struct torch_search {
    bool loaded;
    char folder[512]; /* of the package; "" not known */
    char file[512];   /* what it was told by, as mapped */
    uint64_t inode;
};

static int torch_match(const struct procfs_map *map, void *arg) {
    struct torch_search *s = arg;
    const char *name = strrchr(map->path, '/');
    if (map->path[0] != '/' || !name)
        return 0;
    size_t n = (size_t)(name - map->path);
    bool is_library = strncmp(name, "/libtorch_cpu.so", 16) == 0 || strcmp(name, "/libtorch.so") == 0;
    bool is_module = strncmp(name, "/_C.", 4) == 0 && n >= 6 && strncmp(name - 6, "/torch", 6) == 0;
    s->loaded = s->loaded || is_library || is_module;
    if (is_library && n >= 10 && strncmp(name - 10, "/torch/lib", 10) == 0)
        n -= 4;
    else if (!is_module)
        return 0;
    memcpy(s->folder, map->path, n);
    s->folder[n] = '\0';
    memcpy(s->file, map->path, sizeof s->file);
    s->inode = map->inode;
    return 1;
}

int pystack_parse_torch_version(const char *text, char *buf, size_t cap) {
    for (const char *line = text; line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
        if (strncmp(line, "__version__", 11) != 0)
            continue;
        const char *p = line + 11 + strcspn(line + 11, "'\"\n");
        if (*p != '\'' && *p != '"')
            continue;
        p++;
        size_t n = strspn(p, "0123456789abcdefghijklmnopqrstuvwxyz.");
        if (n == 0 || n >= cap)
            continue;
        memcpy(buf, p, n);
        buf[n] = '\0';
        return 0;
    }
    return -1;
}

int pystack_find_torch(pid_t pid, char *buf, size_t cap) {
    struct torch_search s = {.loaded = false};
    struct strbuf text;
    if (cap)
        buf[0] = '\0';
    if (procfs_each_map(pid, torch_match, &s) < 0 || !s.folder[0])
        return -1;
    int fd = mapped_open_beside(pid, s.folder, "version.py", s.file, s.inode);
    if (fd < 0)
        return -1;
    strbuf_init(&text, TORCH_FILE_MAX);
    int rc = strbuf_read_fd(&text, fd);
    (void)close(fd);
    if (rc == 0)
        rc = pystack_parse_torch_version(strbuf_str(&text), buf, cap);
    strbuf_fini(&text);
    return rc;
}
