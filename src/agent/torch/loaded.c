/* SPDX-License-Identifier: Apache-2.0 */
/* loaded: see loaded.h. */
#include "agent/torch/loaded.h"

#include <stdbool.h>
#include <string.h>

#include "base/procfs.h"

/* Mapped files with that name, by the address of their beginning. */
struct loaded_search {
    const char *name;
    uint64_t base;
    unsigned n;
};

static int loaded_match(const struct procfs_map *map, void *arg) {
    struct loaded_search *s = arg;
    const char *file = strrchr(map->path, '/');
    if (!file || map->offset != 0 || strncmp(file + 1, s->name, strlen(s->name)) != 0)
        return 0;
    s->base = s->n ? s->base : map->start;
    s->n++;
    return 0;
}

/* Pages to be checked for write protection, except by the mapping that follows: while an image
 * is being mapped all of it has the rights of its first segment. */
struct loaded_pages {
    uint64_t at, end; /* up to `at` they are protected */
    bool relocated;
};

static int loaded_check(const struct procfs_map *map, void *arg) {
    struct loaded_pages *p = arg;
    if (map->end <= p->at)
        return 0;
    if (map->start > p->at)
        return 1;
    if (p->at >= p->end) {
        p->relocated = map->perms[1] == 'w';
        return 1;
    }
    if (strncmp(map->perms, "r--", 3) != 0)
        return 1;
    p->at = map->end;
    return p->at > p->end;
}

/* Both ends are rounded down, as in glibc. */
static bool loaded_find_pages(const struct elf_image *image, struct loaded_pages *out) {
    uint64_t page = (uint64_t)procfs_page_size();
    *out =
        (struct loaded_pages){.at = image->relro_start / page * page, .end = image->relro_end / page * page};
    return out->end > out->at;
}

enum loaded_state loaded_inspect(const char *name, struct mem *mem, struct elf_image *image) {
    struct loaded_search s = {.name = name};
    struct loaded_pages pages;
    if (procfs_each_map(0, loaded_match, &s) < 0 || s.n == 0)
        return LOADED_ABSENT;
    if (s.n > 1)
        return LOADED_SEVERAL;
    if (elf_open_memory(image, mem, s.base) != 0)
        return LOADED_UNREADABLE;
    if (!loaded_find_pages(image, &pages))
        return LOADED_UNTOLD;
    procfs_each_map(0, loaded_check, &pages);
    return pages.relocated ? LOADED_RELOCATED : LOADED_BEGUN;
}
