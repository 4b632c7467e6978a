/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tasks_find: where _asyncio publishes how its tasks lie: the section .AsyncioDebug of its own library, or, when it is
 * built in, of the program or of libpython. The file must be the one that is mapped.
 */
#include "pystack/tasks.h"

#include <string.h>
#include <unistd.h>

#include "base/elf.h"
#include "base/procfs.h"
#include "pystack/mapped.h"

#define TASKS_SECTION ".AsyncioDebug"

struct tasks_search {
    struct pystack *ps;
    struct pystack_asyncio *out;
    char exe[512];
    bool unseen; /* a file that may have it is not to be read */
};

static bool tasks_may_have(const struct tasks_search *s, const struct procfs_map *map) {
    const char *slash = strrchr(map->path, '/');
    const char *name = slash ? slash + 1 : map->path;
    return map->offset == 0 && map->path[0] == '/' &&
           (strncmp(name, "_asyncio", 8) == 0 || strncmp(name, "libpython", 9) == 0 ||
            strcmp(map->path, s->exe) == 0);
}

static int tasks_try_map(const struct procfs_map *map, void *arg) {
    struct tasks_search *s = arg;
    struct elf_image image;
    struct elf_section section;
    uint8_t bytes[PYSTACK_ASYNCIO_BYTES];
    if (!tasks_may_have(s, map))
        return 0;
    int fd = mapped_open(s->ps->pid, map->path, map->inode);
    s->unseen = s->unseen || fd < 0;
    if (fd < 0)
        return 0;
    int found = elf_find_section(fd, TASKS_SECTION, &section) == 0 && section.size >= sizeof bytes &&
                elf_open_memory(&image, &s->ps->reader.mem, map->start) == 0 &&
                mem_read(&s->ps->reader.mem, image.bias + section.addr, bytes, sizeof bytes) == 0 &&
                pystack_asyncio_parse(bytes, sizeof bytes, s->out) == 0;
    (void)close(fd);
    return found;
}

bool pystack_knows_tasks(const struct pystack *ps) { return ps->reader.off.gen_iframe != 0; }

int pystack_asyncio_find(struct pystack *ps, struct pystack_asyncio *out) {
    struct tasks_search s = {.ps = ps, .out = out};
    if (!pystack_knows_tasks(ps))
        return -1;
    (void)procfs_read_exe(ps->pid, s.exe, sizeof s.exe);
    int rc = procfs_each_map(ps->pid, tasks_try_map, &s);
    return rc == 1 ? 0 : rc == 0 && !s.unseen ? 1 : -1;
}
