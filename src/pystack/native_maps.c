/* SPDX-License-Identifier: Apache-2.0 */
/* native_maps: see native_maps.h. .eh_frame_hdr: LSB 5.0 core, "Exception Frames". */
#include "pystack/native_maps.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/procfs.h"

#define MAPS_MAX ((size_t)16384)
#define MAPS_MAX_MODULES ((size_t)4096)
#define MAPS_MAX_PATHS ((size_t)8192)
#define MAPS_MAX_TEXT ((size_t)1024 * 1024)

/* Lists being read. */
struct maps_scan {
    struct native_maps *m;
    struct native_map *maps;
    size_t n, cap;
    struct native_module *modules;
    size_t n_modules, cap_modules;
    uint64_t inode; /* of the current module */
    const char *path;
    uint64_t hash;
    bool failed;
};

void native_maps_init(struct native_maps *m, pid_t pid, struct mem *mem) {
    *m = (struct native_maps){.pid = pid, .mem = mem};
    arena_init(&m->text, MAPS_MAX_TEXT);
}

void native_maps_fini(struct native_maps *m) {
    free(m->maps);
    free(m->modules);
    free(m->paths);
    arena_fini(&m->text);
}

size_t native_maps_bytes(const struct native_maps *m) {
    return m->cap * sizeof *m->maps + m->cap_modules * sizeof *m->modules + m->cap_paths * sizeof *m->paths +
           m->text.used;
}

/* `list` of `*cap` items enlarged for `n` + 1, at most `most`. NULL on failure (then it is
 * unchanged). */
static void *maps_grow(void *list, size_t n, size_t *cap, size_t most, size_t size) {
    if (n < *cap)
        return list;
    size_t more = *cap ? *cap * 2 : 256;
    void *p = n < most ? realloc(list, more * size) : NULL;
    if (p)
        *cap = more;
    return p;
}

/* The one copy of a path; NULL if there are too many. */
static const char *maps_path(struct native_maps *m, const char *path, size_t guess) {
    if (guess < m->n_modules && strcmp(m->modules[guess].path, path) == 0)
        return m->modules[guess].path;
    for (size_t i = 0; i < m->n_paths; i++)
        if (strcmp(m->paths[i], path) == 0)
            return m->paths[i];
    const char **paths = maps_grow(m->paths, m->n_paths, &m->cap_paths, MAPS_MAX_PATHS, sizeof *paths);
    if (!paths)
        return NULL;
    m->paths = paths;
    const char *copy = arena_strdup(&m->text, path);
    if (copy)
        m->paths[m->n_paths++] = copy;
    return copy;
}

static int maps_begin_module(struct maps_scan *s, const struct procfs_map *map) {
    struct native_module *modules =
        maps_grow(s->modules, s->n_modules, &s->cap_modules, MAPS_MAX_MODULES, sizeof *modules);
    const char *path = modules ? maps_path(s->m, map->path, s->n_modules) : NULL;
    s->modules = modules ? modules : s->modules;
    s->path = NULL;
    if (!path)
        return -1;
    s->modules[s->n_modules++] = (struct native_module){.base = map->start, .path = path};
    s->path = path;
    s->inode = map->inode;
    return 0;
}

static int maps_add(const struct procfs_map *map, void *arg) {
    struct maps_scan *s = arg;
    bool vdso = strcmp(map->path, "[vdso]") == 0, file = map->path[0] == '/' || vdso;
    bool executable = map->perms[2] == 'x';
    if (!file && !executable)
        return 0;
    if (file && map->offset == 0 && map->perms[0] == 'r' &&
        !(s->path && s->inode == map->inode && strcmp(s->path, map->path) == 0))
        maps_begin_module(s, map);
    bool same = file && s->path && s->inode == map->inode && strcmp(s->path, map->path) == 0;
    struct native_map *maps = maps_grow(s->maps, s->n, &s->cap, MAPS_MAX, sizeof *maps);
    if (!maps) {
        s->failed = true;
        return 1;
    }
    s->maps = maps;
    s->maps[s->n++] = (struct native_map){.start = map->start,
                                          .end = map->end,
                                          .executable = executable,
                                          .readable = file && map->perms[0] == 'r',
                                          .steady = file && map->perms[0] == 'r' && map->perms[1] != 'w',
                                          .module = same ? (int)s->n_modules - 1 : -1};
    if (executable)
        s->hash = hash_mix(s->hash ^ map->start) ^ hash_mix(map->end ^ map->inode << 1);
    return 0;
}

int native_maps_read(struct native_maps *m) {
    struct maps_scan s = {.m = m};
    if (procfs_each_map(m->pid, maps_add, &s) < 0 || (s.failed && s.n == 0)) {
        free(s.maps);
        free(s.modules);
        return -1;
    }
    bool same = m->maps && s.hash == m->hash && s.n_modules == m->n_modules;
    /* Facts about modules at the same place stay. */
    for (size_t i = 0; same && i < s.n_modules; i++)
        same = s.modules[i].base == m->modules[i].base && s.modules[i].path == m->modules[i].path;
    if (same && s.n_modules)
        memcpy(s.modules, m->modules, s.n_modules * sizeof *s.modules);
    free(m->maps);
    free(m->modules);
    m->maps = s.maps;
    m->n = s.n;
    m->cap = s.cap;
    m->modules = s.modules;
    m->n_modules = s.n_modules;
    m->cap_modules = s.cap_modules;
    m->hash = s.hash;
    return same ? 0 : 1;
}

int native_maps_set(struct native_maps *m, uint64_t base, uint64_t size) {
    m->maps = calloc(1, sizeof *m->maps);
    m->modules = calloc(1, sizeof *m->modules);
    if (!m->maps || !m->modules)
        return -1;
    *m->maps = (struct native_map){
        .start = base, .end = base + size, .executable = true, .readable = true, .steady = true};
    *m->modules = (struct native_module){.base = base, .path = "memory"};
    m->n = m->cap = m->n_modules = m->cap_modules = 1;
    m->given = true;
    return 0;
}

const struct native_map *native_maps_at(const struct native_maps *m, uint64_t addr) {
    size_t low = 0, high = m->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (addr < m->maps[middle].start)
            high = middle;
        else if (addr >= m->maps[middle].end)
            low = middle + 1;
        else
            return &m->maps[middle];
    }
    return NULL;
}

/* The one encoding that linkers write: version 1, sdata4 relative to the header. */
static void maps_find_table(struct native_maps *m, struct native_module *module) {
    uint8_t head[12];
    uint32_t count;
    uint64_t at = module->elf.eh_frame_hdr;
    if (!at || mem_read(m->mem, at, head, sizeof head) != 0)
        return;
    if (head[0] != 1 || head[1] != 0x1b || head[2] != 0x03 || head[3] != 0x3b)
        return;
    memcpy(&count, head + 8, sizeof count);
    module->table = at + sizeof head;
    module->n_table = count;
}

static struct native_module *maps_get_open(struct native_maps *m, struct native_module *module) {
    if (!module->opened) {
        module->opened = elf_open_memory(&module->elf, m->mem, module->base) == 0 ? 1 : -1;
        if (module->opened == 1)
            maps_find_table(m, module);
    }
    return module->opened == 1 ? module : NULL;
}

struct native_module *native_maps_module(struct native_maps *m, uint64_t addr) {
    const struct native_map *map = native_maps_at(m, addr);
    if (!map || !map->executable || map->module < 0)
        return NULL;
    return maps_get_open(m, &m->modules[map->module]);
}

struct native_module *native_maps_find(struct native_maps *m, const char *path) {
    for (size_t i = 0; i < m->n_modules; i++)
        if (m->modules[i].path == path)
            return maps_get_open(m, &m->modules[i]);
    return NULL;
}
