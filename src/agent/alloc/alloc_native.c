/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc_native: see alloc_native.h. Sources: System V gABI and x86-64 psABI (R_X86_64_JUMP_SLOT,
 * R_X86_64_GLOB_DAT, PT_GNU_RELRO), glibc's elf/dl-reloc.c (_dl_protect_relro), dl_iterate_phdr(3),
 * dlinfo(3), malloc(3); c10/core/impl/alloc_cpu.cpp.
 */
#include "agent/alloc/alloc_native.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/alloc/alloc_samples.h"
#include "base/elf.h"
#include "base/mem.h"
#include "base/procfs.h"

#define ALLOC_NATIVE_IMAGES 1024
#define ALLOC_NATIVE_SLOTS 8192
#define ALLOC_NATIVE_PATH 512

enum alloc_native_name {
    ALLOC_NATIVE_MALLOC = 0,
    ALLOC_NATIVE_CALLOC,
    ALLOC_NATIVE_REALLOC,
    ALLOC_NATIVE_FREE,
    ALLOC_NATIVE_POSIX_MEMALIGN,
    ALLOC_NATIVE_ALIGNED_ALLOC,
    ALLOC_NATIVE_MEMALIGN,
    ALLOC_NATIVE_REALLOCARRAY,
    ALLOC_NATIVE_NAMES,
};

static const char *const alloc_native_names[ALLOC_NATIVE_NAMES] = {
    "malloc", "calloc", "realloc", "free", "posix_memalign", "aligned_alloc", "memalign", "reallocarray"};

/* The functions themselves, of the first library in the order of the loader that defines them. Never
 * cleared: a thread may be on its way to one. */
static struct {
    void *(*malloc)(size_t size);
    void *(*calloc)(size_t n, size_t size);
    void *(*realloc)(void *block, size_t size);
    void (*free)(void *block);
    int (*posix_memalign)(void **out, size_t alignment, size_t size);
    void *(*aligned_alloc)(size_t alignment, size_t size);
    void *(*memalign)(size_t alignment, size_t size);
    void *(*reallocarray)(void *block, size_t n, size_t size);
} alloc_native_real;

/* ---- the hooks ---- */

static size_t alloc_native_product(size_t n, size_t size) {
    size_t bytes;
    return __builtin_mul_overflow(n, size, &bytes) ? 0 : bytes;
}

/* A block is given out. If a sample is said to live there, its free was not seen. */
static inline void alloc_native_leave(struct alloc_thread *t, const void *block, size_t size,
                                      const void *caller) {
    alloc_samples_forget(block);
    if (t)
        alloc_samples_leave(t, block, size, ALLOC_NATIVE, caller);
}

static void *alloc_native_malloc(size_t size) {
    struct alloc_thread *t = alloc_samples_enter();
    void *block = alloc_native_real.malloc(size);
    alloc_native_leave(t, block, size, __builtin_return_address(0));
    return block;
}

static void *alloc_native_calloc(size_t n, size_t size) {
    struct alloc_thread *t = alloc_samples_enter();
    void *block = alloc_native_real.calloc(n, size);
    alloc_native_leave(t, block, alloc_native_product(n, size), __builtin_return_address(0));
    return block;
}

static void *alloc_native_realloc(void *old, size_t size) {
    struct alloc_thread *t = alloc_samples_enter();
    alloc_samples_forget(old);
    void *block = alloc_native_real.realloc(old, size);
    alloc_native_leave(t, block, size, __builtin_return_address(0));
    return block;
}

static void *alloc_native_reallocarray(void *old, size_t n, size_t size) {
    struct alloc_thread *t = alloc_samples_enter();
    alloc_samples_forget(old);
    void *block = alloc_native_real.reallocarray(old, n, size);
    alloc_native_leave(t, block, alloc_native_product(n, size), __builtin_return_address(0));
    return block;
}

static void alloc_native_free(void *block) {
    alloc_samples_forget(block);
    alloc_native_real.free(block);
}

static int alloc_native_posix_memalign(void **out, size_t alignment, size_t size) {
    struct alloc_thread *t = alloc_samples_enter();
    int rc = alloc_native_real.posix_memalign(out, alignment, size);
    alloc_native_leave(t, rc == 0 ? *out : NULL, size, __builtin_return_address(0));
    return rc;
}

static void *alloc_native_aligned_alloc(size_t alignment, size_t size) {
    struct alloc_thread *t = alloc_samples_enter();
    void *block = alloc_native_real.aligned_alloc(alignment, size);
    alloc_native_leave(t, block, size, __builtin_return_address(0));
    return block;
}

static void *alloc_native_memalign(size_t alignment, size_t size) {
    struct alloc_thread *t = alloc_samples_enter();
    void *block = alloc_native_real.memalign(alignment, size);
    alloc_native_leave(t, block, size, __builtin_return_address(0));
    return block;
}

#define ALLOC_NATIVE_ADDRESS(function) ((uint64_t)(uintptr_t)(function))

static uint64_t alloc_native_hook(size_t name) {
    switch ((enum alloc_native_name)name) {
    case ALLOC_NATIVE_MALLOC:
        return ALLOC_NATIVE_ADDRESS(alloc_native_malloc);
    case ALLOC_NATIVE_CALLOC:
        return ALLOC_NATIVE_ADDRESS(alloc_native_calloc);
    case ALLOC_NATIVE_REALLOC:
        return ALLOC_NATIVE_ADDRESS(alloc_native_realloc);
    case ALLOC_NATIVE_FREE:
        return ALLOC_NATIVE_ADDRESS(alloc_native_free);
    case ALLOC_NATIVE_POSIX_MEMALIGN:
        return ALLOC_NATIVE_ADDRESS(alloc_native_posix_memalign);
    case ALLOC_NATIVE_ALIGNED_ALLOC:
        return ALLOC_NATIVE_ADDRESS(alloc_native_aligned_alloc);
    case ALLOC_NATIVE_MEMALIGN:
        return ALLOC_NATIVE_ADDRESS(alloc_native_memalign);
    case ALLOC_NATIVE_REALLOCARRAY:
        return ALLOC_NATIVE_ADDRESS(alloc_native_reallocarray);
    case ALLOC_NATIVE_NAMES:
        break;
    }
    return 0;
}

/* ---- libraries ---- */

struct alloc_native_image {
    uint64_t bias, base, end; /* end: of its last segment */
    void *handle;             /* keeps it loaded; NULL: nothing of it is changed */
    bool is_torch, is_done;   /* is_done: it was examined */
    char path[ALLOC_NATIVE_PATH];
};

/* A word that is changed. */
struct alloc_native_slot {
    uint64_t *at;
    uint64_t was;
    uint32_t name;
    int prot; /* of its page, while it is being written: PROT_READ, or with PROT_WRITE */
    bool is_in;
};

/* Never freed: the sampler's thread may be reading it. */
static struct {
    struct alloc_native_image images[ALLOC_NATIVE_IMAGES];
    size_t n; /* atomic: those before do not change while hooks are in */
    struct alloc_native_slot slots[ALLOC_NATIVE_SLOTS];
    size_t n_slots;
    uint64_t real[ALLOC_NATIVE_NAMES];    /* addresses that count as the function itself */
    uint64_t visible[ALLOC_NATIVE_NAMES]; /* and as dlsym knows it: of a program that is not
                                           * position-independent its own stub */
    struct mem mem;
    uint32_t in; /* atomic */
    bool full;
} alloc_native;

struct alloc_native_list {
    struct alloc_native_image *images;
    size_t n;
};

/* With a lock of the loader: nothing is called that could need another one. */
static int alloc_native_note_image(struct dl_phdr_info *info, size_t size, void *arg) {
    struct alloc_native_list *list = arg;
    struct alloc_native_image *i = &list->images[list->n];
    (void)size;
    if (list->n == ALLOC_NATIVE_IMAGES)
        return 1;
    *i = (struct alloc_native_image){.bias = info->dlpi_addr, .base = UINT64_MAX};
    for (size_t k = 0; k < info->dlpi_phnum; k++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[k];
        uint64_t at = info->dlpi_addr + p->p_vaddr;
        if (p->p_type != PT_LOAD)
            continue;
        i->base = at < i->base ? at & ~4095ULL : i->base;
        i->end = at + p->p_memsz > i->end ? at + p->p_memsz : i->end;
    }
    size_t len = strnlen(info->dlpi_name ? info->dlpi_name : "", sizeof i->path - 1);
    memcpy(i->path, info->dlpi_name ? info->dlpi_name : "", len);
    i->path[len] = '\0';
    list->n += i->base < i->end;
    return 0;
}

static int alloc_native_note_loads(struct dl_phdr_info *info, size_t size, void *arg) {
    if (size >= offsetof(struct dl_phdr_info, dlpi_adds) + sizeof info->dlpi_adds)
        *(uint64_t *)arg = info->dlpi_adds;
    return 1;
}

uint64_t alloc_native_loads(void) {
    uint64_t loads = 0;
    dl_iterate_phdr(alloc_native_note_loads, &loads);
    return loads;
}

static bool alloc_native_contains(const struct alloc_native_image *i, uint64_t address) {
    return address >= i->base && address < i->end;
}

static const char *alloc_native_file(const struct alloc_native_image *i) {
    const char *slash = strrchr(i->path, '/');
    return slash ? slash + 1 : i->path;
}

static bool alloc_native_begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

/* The C library and the loader call their own functions, and ours call them. */
static bool alloc_native_is_left_out(const struct alloc_native_image *i) {
    static const char *const files[] = {"ld-",        "ld64",   "ld.so",  "libc.so",    "libc-",
                                        "libpthread", "libdl.", "libdl-", "linux-vdso", "linux-gate"};
    const char *file = alloc_native_file(i);
    for (size_t k = 0; k < sizeof files / sizeof files[0]; k++)
        if (alloc_native_begins(file, files[k]))
            return true;
    if (alloc_native_contains(i, ALLOC_NATIVE_ADDRESS(alloc_native_malloc)))
        return true;
    for (size_t k = 0; k < ALLOC_NATIVE_NAMES; k++)
        if (alloc_native_contains(i, alloc_native.real[k]))
            return true;
    return false;
}

/* Where the functions are. The loader searches its list from the beginning, too. 0, or -1 if one that
 * everybody needs is missing. */
static int alloc_native_find_real(const struct alloc_native_list *list) {
    for (size_t k = 0; k < ALLOC_NATIVE_NAMES; k++)
        alloc_native.real[k] = alloc_native.visible[k] = 0;
    for (size_t i = 0; i < list->n; i++) {
        struct elf_image img;
        if (elf_open_memory(&img, &alloc_native.mem, list->images[i].base) != 0)
            continue;
        for (size_t k = 0; k < ALLOC_NATIVE_NAMES; k++)
            if (!alloc_native.real[k] &&
                elf_find_symbol(&img, alloc_native_names[k], &alloc_native.real[k], NULL) != 0)
                alloc_native.real[k] = 0;
    }
    _Static_assert(sizeof alloc_native_real == sizeof alloc_native.real, "a pointer for each name");
    for (size_t k = 0; k < ALLOC_NATIVE_NAMES; k++)
        alloc_native.visible[k] = (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, alloc_native_names[k]);
    for (size_t k = 0; k <= ALLOC_NATIVE_FREE; k++)
        if (!alloc_native.real[k])
            return -1;
    memcpy(&alloc_native_real, alloc_native.real, sizeof alloc_native_real);
    return 0;
}

/* ---- words ---- */

static void alloc_native_note_slot(void *arg, size_t name, uint64_t at) {
    const struct alloc_native_image *i = arg;
    uint64_t value, real = alloc_native.real[name];
    if (at % sizeof value || !alloc_native_contains(i, at) || !real ||
        mem_read_u64(&alloc_native.mem, at, &value) != 0 ||
        (value != real && value != alloc_native.visible[name]))
        return; /* it is filled at its first call, or leads elsewhere */
    alloc_native.full = alloc_native.n_slots == ALLOC_NATIVE_SLOTS;
    if (alloc_native.full)
        return;
    alloc_native.slots[alloc_native.n_slots++] = (struct alloc_native_slot){
        .at = (uint64_t *)(uintptr_t)at, .was = value, .name = (uint32_t)name, .prot = PROT_NONE};
}

/* The rights of the pages of slots: of those from `first` on, which are sorted. */
struct alloc_native_pages {
    size_t first;
};

static int alloc_native_note_page(const struct procfs_map *map, void *arg) {
    struct alloc_native_pages *p = arg;
    for (size_t i = p->first; i < alloc_native.n_slots; i++) {
        struct alloc_native_slot *s = &alloc_native.slots[i];
        uint64_t at = (uint64_t)(uintptr_t)s->at;
        if (at < map->start || at >= map->end)
            continue;
        s->prot = PROT_NONE;
        if (strncmp(map->perms, "r--", 3) == 0)
            s->prot = PROT_READ;
        else if (strncmp(map->perms, "rw-", 3) == 0)
            s->prot = PROT_READ | PROT_WRITE;
    }
    return 0;
}

static bool alloc_native_exchange(struct alloc_native_slot *s, bool in) {
    uint64_t from = in ? s->was : alloc_native_hook(s->name);
    return __atomic_compare_exchange_n(s->at, &from, in ? alloc_native_hook(s->name) : s->was, false,
                                       __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* Write one word, or put it back; its page has its old rights afterwards. */
static bool alloc_native_write(struct alloc_native_slot *s, bool in) {
    uintptr_t size = (uintptr_t)procfs_page_size();
    void *page = (void *)((uintptr_t)s->at / size * size);
    if (s->prot == PROT_NONE)
        return false;
    if (s->prot & PROT_WRITE)
        return alloc_native_exchange(s, in);
    if (mprotect(page, size, PROT_READ | PROT_WRITE) != 0)
        return false;
    bool done = alloc_native_exchange(s, in);
    mprotect(page, size, PROT_READ);
    return done;
}

/* ---- in and out ---- */

static bool alloc_native_is_known(const struct alloc_native_image *new) {
    for (size_t i = 0; i < alloc_native.n; i++)
        if (alloc_native.images[i].base == new->base && strcmp(alloc_native.images[i].path, new->path) == 0)
            return true;
    return false;
}

/* Keep it loaded. A library that is just being loaded is waited for. NULL if it is gone. */
static void *alloc_native_pin(const struct alloc_native_image *i) {
    struct link_map *map = NULL;
    void *handle = dlopen(i->path[0] ? i->path : NULL, RTLD_LAZY | RTLD_NOLOAD);
    if (handle && dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_addr == i->bias)
        return handle;
    if (handle)
        dlclose(handle);
    return NULL;
}

static void alloc_native_examine(const struct alloc_native_image *new) {
    struct elf_image img;
    size_t before = alloc_native.n_slots, n = alloc_native.n;
    if (n == ALLOC_NATIVE_IMAGES || alloc_native.full)
        return;
    struct alloc_native_image *i = &alloc_native.images[n];
    *i = *new;
    i->is_torch = alloc_native_begins(alloc_native_file(i), "libc10");
    i->handle = alloc_native_is_left_out(i) ? NULL : alloc_native_pin(i);
    if (i->handle && elf_open_memory(&img, &alloc_native.mem, i->base) == 0)
        elf_each_import(&img, alloc_native_names, ALLOC_NATIVE_NAMES, alloc_native_note_slot, i);
    if (i->handle && before == alloc_native.n_slots) {
        dlclose(i->handle);
        i->handle = NULL;
    }
    __atomic_store_n(&alloc_native.n, n + 1, __ATOMIC_RELEASE);
}

int alloc_native_insert(char *why, size_t cap) {
    struct alloc_native_list list = {.n = 0};
    size_t first = alloc_native.n_slots;
    struct alloc_native_pages pages = {.first = first};
    int in = 0;
    list.images = calloc(ALLOC_NATIVE_IMAGES + 1, sizeof *list.images);
    if (!list.images) {
        snprintf(why, cap, "no memory for hooks in libraries");
        return -1;
    }
    mem_init_process(&alloc_native.mem, getpid());
    dl_iterate_phdr(alloc_native_note_image, &list);
    if (!alloc_native_is_in() && alloc_native_find_real(&list) != 0) {
        free(list.images);
        mem_fini(&alloc_native.mem);
        snprintf(why, cap, "malloc was not found in this process");
        return -1;
    }
    __atomic_store_n(&alloc_native.in, 1, __ATOMIC_RELEASE);
    for (size_t i = 0; i < list.n; i++)
        if (!alloc_native_is_known(&list.images[i]))
            alloc_native_examine(&list.images[i]);
    free(list.images);
    mem_fini(&alloc_native.mem);
    procfs_each_map(0, alloc_native_note_page, &pages);
    for (size_t i = first; i < alloc_native.n_slots; i++)
        alloc_native.slots[i].is_in = alloc_native_write(&alloc_native.slots[i], true);
    for (size_t i = 0; i < alloc_native.n_slots; i++)
        in += alloc_native.slots[i].is_in;
    return in;
}

int alloc_native_remove(void) {
    int changed = 0;
    if (!alloc_native_is_in())
        return 0;
    for (size_t i = alloc_native.n_slots; i-- > 0;)
        if (alloc_native.slots[i].is_in)
            changed += !alloc_native_write(&alloc_native.slots[i], false);
    for (size_t i = 0; i < alloc_native.n; i++)
        if (alloc_native.images[i].handle)
            dlclose(alloc_native.images[i].handle);
    __atomic_store_n(&alloc_native.n, 0, __ATOMIC_RELEASE);
    alloc_native.n_slots = 0;
    alloc_native.full = false;
    __atomic_store_n(&alloc_native.in, 0, __ATOMIC_RELEASE);
    return changed;
}

bool alloc_native_is_in(void) { return __atomic_load_n(&alloc_native.in, __ATOMIC_ACQUIRE) != 0; }

/* ---- callers ---- */

void alloc_native_find_caller(uint64_t address, struct alloc_native_caller *out) {
    struct elf_function function = {.addr = address - 1}; /* of the call, not of what follows it */
    struct elf_image img;
    struct mem mem;
    *out = (struct alloc_native_caller){.library = NULL};
    size_t n = __atomic_load_n(&alloc_native.n, __ATOMIC_ACQUIRE);
    for (size_t i = 0; i < n; i++) {
        const struct alloc_native_image *image = &alloc_native.images[i];
        if (!alloc_native_contains(image, address))
            continue;
        out->library = image->path[0] ? image->path : "the program";
        out->is_torch = image->is_torch;
        mem_init_process(&mem, getpid());
        if (elf_open_memory(&img, &mem, image->base) == 0)
            elf_find_functions(&img, &function, 1);
        if (function.name && mem_read_cstr(&mem, function.name, out->function, sizeof out->function) < 0)
            out->function[0] = '\0';
        mem_fini(&mem);
        return;
    }
}
