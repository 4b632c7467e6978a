/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_maps: the target's mappings as far as unwinding needs them: code, and its modules.
 *
 * Private to native. Bounded; names of modules are never freed before native_maps_fini, so
 * frames may point to them.
 */
#ifndef PYSTACK_NATIVE_MAPS_H
#define PYSTACK_NATIVE_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/elf.h"
#include "base/mem.h"

struct native_map {
    uint64_t start, end;
    bool executable;
    bool readable; /* of a file, or the vdso */
    bool steady;   /* the same, and its bytes do not change */
    int module;    /* number, or -1 */
};

struct native_module {
    uint64_t base;
    const char *path;
    int opened; /* 0 not tried, 1 usable, -1 not */
    struct elf_image elf;
    uint64_t table, n_table; /* the sorted table of .eh_frame_hdr; 0 if there is none */
};

struct native_maps {
    pid_t pid; /* for procfs */
    struct mem *mem;
    struct native_map *maps;
    size_t n, cap;
    struct native_module *modules;
    size_t n_modules, cap_modules;
    const char **paths; /* all paths ever seen */
    size_t n_paths, cap_paths;
    struct arena text;
    uint64_t hash; /* of the list */
    bool given;    /* native_maps_set: there is nothing to read */
};

void native_maps_init(struct native_maps *m, pid_t pid, struct mem *mem);
void native_maps_fini(struct native_maps *m);

/* Read the list again. 1 it has changed, 0 it has not, -1 (the old one stays). */
int native_maps_read(struct native_maps *m);

/* Set one module and nothing else, for tests. 0, or -1 without memory. */
int native_maps_set(struct native_maps *m, uint64_t base, uint64_t size);

/* The mapping that contains `addr`, or NULL. */
const struct native_map *native_maps_at(const struct native_maps *m, uint64_t addr);

/* The module whose code contains `addr`, opened; NULL if there is none or it is not a usable
 * ELF. */
struct native_module *native_maps_module(struct native_maps *m, uint64_t addr);

/* The module with this path (the same pointer as in frames), opened; NULL as above. */
struct native_module *native_maps_find(struct native_maps *m, const char *path);

size_t native_maps_bytes(const struct native_maps *m);

#endif
