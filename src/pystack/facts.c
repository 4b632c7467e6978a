/* SPDX-License-Identifier: Apache-2.0 */
/* facts: what a process is, for the answer to hello: from procfs and from discovery. Any thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/procfs.h"
#include "base/rank_env.h"
#include "base/strbuf.h"
#include "pystack/mapped.h"
#include "pystack/pystack.h"
#include "pystack/pystack_internal.h"

#define FACTS_ARENA ((size_t)256 * 1024)
#define FACTS_CMDLINE ((size_t)64 * 1024)

/* True if our host name is the process's too. A container may have another, which cannot be read
 * from here. */
static bool facts_same_host(pid_t pid) {
    char path[64];
    struct stat ours, theirs;
    if (pid == 0)
        return true;
    snprintf(path, sizeof path, "/proc/%d/ns/uts", (int)pid);
    return stat("/proc/self/ns/uts", &ours) == 0 && stat(path, &theirs) == 0 &&
           ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev;
}

void pystack_read_target(pid_t pid, struct pystack *ps, struct model_target *out) {
    char text[4096];
    struct strbuf cmdline;
    struct procfs_status st;
    bool known = procfs_read_status(pid, 0, &st) == 0;
    *out = (struct model_target){.pid = pid ? pid : getpid(), .uid = (int64_t)geteuid()};
    if (pid) {
        out->pid = known && st.ns_pid > 0 ? st.ns_pid : pid;
        out->uid = known ? st.uid : MODEL_UNKNOWN;
    }
    arena_init(&out->arena, FACTS_ARENA);
    out->started_at = procfs_started_at(pid);
    if (facts_same_host(pid) && gethostname(text, sizeof text) == 0) {
        text[sizeof text - 1] = '\0';
        out->host = arena_strdup(&out->arena, text);
    }
    if (procfs_read_exe(pid, text, sizeof text) == 0)
        out->exe = arena_strdup(&out->arena, text);
    if (pystack_find_torch(pid, text, sizeof text) == 0)
        out->torch = arena_strdup(&out->arena, text);
    int32_t world, rank = rank_env_rank(pid, &world);
    rank = pystack_choose_rank(out->torch ? ps : NULL, rank, world);
    out->rank = rank >= 0 ? rank : MODEL_UNKNOWN;
    strbuf_init(&cmdline, FACTS_CMDLINE);
    if (procfs_read_cmdline(pid, &cmdline) == 0)
        out->cmdline = arena_strdup(&out->arena, strbuf_str(&cmdline));
    strbuf_fini(&cmdline);
    if (!ps)
        return;
    const struct pystack_info *info = pystack_get_info(ps);
    out->python = arena_strdup(&out->arena, info->version);
    out->discovery = arena_strdup(&out->arena, info->discovery);
    out->python_untested = info->untested;
}

/* ---- the version of a PyTorch that is loaded, from the files beside it ----
 *
 * Wheels and conda put libtorch_cpu.so into torch/lib and version.py into torch; Debian keeps the library elsewhere, but
 * torch/_C*.so is always in the package. No Python is run, nothing is written. */

#define TORCH_FILE_MAX ((size_t)64 * 1024)

struct torch_search {
    bool loaded;
    char folder[512]; /* of the package; "" unknown */
    char file[512];   /* the file that showed it, as mapped */
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
    close(fd);
    if (rc == 0)
        rc = pystack_parse_torch_version(strbuf_str(&text), buf, cap);
    strbuf_fini(&text);
    return rc;
}
