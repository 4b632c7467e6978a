/* SPDX-License-Identifier: Apache-2.0 */
/* target: see target.h. r_debug: glibc elf/link.h. .eh_frame_hdr: LSB 5.0 core, "Exception
 * Frames". */
#include "inject/target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/agent_abi.h"
#include "base/procfs.h"

#define TARGET_MAX_MAPS ((size_t)1 << 20)
#define TARGET_R_STATE_OFFSET 24 /* offsetof(struct r_debug, r_state) on LP64 */
#define TARGET_SCAN_CHUNK ((size_t)64 * 1024)

/* --- the snapshot ---------------------------------------------------------------------------------------------- */

static const char *target_basename(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* "libc.so.6" or "libc-2.31.so", with or without " (deleted)". */
static bool target_is_lib(const char *name, const char *stem, const char *soname) {
    size_t n = strlen(stem), m = strlen(soname);
    if (strncmp(name, soname, m) == 0 && (name[m] == '\0' || name[m] == ' '))
        return true;
    return strncmp(name, stem, n) == 0 && name[n] == '-' && name[n + 1] >= '0' && name[n + 1] <= '9';
}

static bool target_is_allocator(const char *name) {
    static const char *const names[] = {"libjemalloc", "libtcmalloc", "libmimalloc",
                                        "libsnmalloc", "libhoard",    "libtbbmalloc"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static void target_note_image(struct target *t, struct target_image *img, int index) {
    const char *name = img->name;
    if (t->libc < 0 && target_is_lib(name, "libc", "libc.so.6"))
        t->libc = index;
    else if (t->loader < 0 && target_is_lib(name, "ld", "ld-linux-x86-64.so.2")) {
        t->loader = index;
        img->place = TARGET_LOADER;
    } else if (t->libpthread < 0 && target_is_lib(name, "libpthread", "libpthread.so.0"))
        t->libpthread = index;
    else if (t->libdl < 0 && target_is_lib(name, "libdl", "libdl.so.2")) {
        t->libdl = index;
        img->place = TARGET_LOADER;
    } else if (target_is_allocator(name))
        img->place = TARGET_ALLOCATOR;
    else if (strncmp(name, "ld-musl-", 8) == 0)
        t->musl = true;
    else if (strncmp(name, "memfd:" AGENT_MEMFD_NAME, sizeof "memfd:" AGENT_MEMFD_NAME - 1) == 0 ||
             strcmp(name, AGENT_MEMFD_NAME) == 0 || strcmp(name, AGENT_MEMFD_NAME " (deleted)") == 0)
        t->agent = index;
}

static int target_add_image(struct target *t, const struct procfs_map *m) {
    if (t->image_count == t->image_cap) {
        size_t cap = t->image_cap ? t->image_cap * 2 : 256;
        struct target_image *grown = realloc(t->images, cap * sizeof *grown);
        if (!grown)
            return -1;
        t->images = grown;
        t->image_cap = cap;
    }
    struct target_image *img = &t->images[t->image_count];
    *img = (struct target_image){.base = m->start, .end = m->end};
    snprintf(img->name, sizeof img->name, "%.63s", target_basename(m->path));
    return (int)t->image_count++;
}

struct target_scan {
    struct target *t;
    char path[512]; /* of the current image */
    uint64_t inode;
    int image;
    int failed;
};

static int target_add_map(const struct procfs_map *m, void *arg) {
    struct target_scan *scan = arg;
    struct target *t = scan->t;
    if (t->map_count == t->map_cap) {
        size_t cap = t->map_cap ? t->map_cap * 2 : 2048;
        struct target_map *grown = cap > TARGET_MAX_MAPS ? NULL : realloc(t->maps, cap * sizeof *grown);
        if (!grown)
            return scan->failed = 1;
        t->maps = grown;
        t->map_cap = cap;
    }
    bool file = m->path[0] == '/' || strcmp(m->path, "[vdso]") == 0;
    bool same = scan->image >= 0 && m->inode == scan->inode && strcmp(m->path, scan->path) == 0;
    if (file && m->offset == 0 && m->perms[0] == 'r') {
        scan->image = target_add_image(t, m);
        if (scan->image < 0)
            return scan->failed = 1;
        scan->inode = m->inode;
        memcpy(scan->path, m->path, sizeof scan->path);
    } else if (file && same) {
        t->images[scan->image].end = m->end;
    }
    struct target_map *map = &t->maps[t->map_count++];
    *map = (struct target_map){
        .start = m->start,
        .end = m->end,
        .readable = m->perms[0] == 'r',
        .writable = m->perms[1] == 'w',
        .executable = m->perms[2] == 'x',
        .file = file,
        .image = file && scan->image >= 0 && strcmp(m->path, scan->path) == 0 ? scan->image : -1};
    if (map->executable && map->image >= 0)
        target_note_image(t, &t->images[map->image], map->image);
    return 0;
}

int target_init(struct target *t, pid_t pid, const struct mem *mem, struct err *e) {
    *t = (struct target){
        .pid = pid, .process = -1, .libc = -1, .loader = -1, .libpthread = -1, .libdl = -1, .agent = -1};
    if (mem)
        mem_share_image(&t->mem, mem);
    else
        mem_open_image(&t->mem, pid);
    t->process = (int)syscall(SYS_pidfd_open, pid, 0);
    struct target_scan scan = {.t = t, .image = -1};
    int rc = procfs_each_map(pid, target_add_map, &scan);
    if (scan.failed)
        return err_set(e, ERR_FAILED, "process %d: its memory map is too large to read", (int)pid);
    if (rc < 0)
        return err_set_errno(e, errno == ENOENT || errno == ESRCH ? ERR_LOST : ERR_ATTACH, errno,
                             "cannot read the memory map of process %d", (int)pid);
    return 0;
}

void target_fini(struct target *t) {
    mem_fini(&t->mem);
    if (t->process >= 0)
        close(t->process);
    t->process = -1;
    free(t->maps);
    free(t->images);
    t->maps = NULL;
    t->images = NULL;
    t->map_count = t->image_count = 0;
}

int target_lost(const struct target *t, struct err *e) {
    if (procfs_is_ending(t->pid))
        return err_set(e, ERR_LOST, "process %d ended while it was being attached to", (int)t->pid);
    return err_set(e, ERR_LOST,
                   "process %d started another program (exec) while it was being attached to: the new "
                   "program was not touched",
                   (int)t->pid);
}

struct target_span {
    uint64_t start, end;
};

static int target_match_unwritable(const struct procfs_map *map, void *arg) {
    const struct target_span *s = arg;
    return map->start < s->end && map->end > s->start && map->perms[1] != 'w';
}

bool target_has_stack(const struct target *t, uint64_t sp, uint64_t at, size_t len) {
    struct target_span s = {at, at + len};
    if (!target_map_at(t, sp)) /* a stack made after the snapshot */
        return procfs_each_map(t->pid, target_match_unwritable, &s) == 0;
    for (size_t i = 0; i < t->map_count; i++)
        if (t->maps[i].start < s.end && t->maps[i].end > s.start && !t->maps[i].writable)
            return false;
    return true;
}

const struct target_map *target_map_at(const struct target *t, uint64_t addr) {
    size_t lo = 0, hi = t->map_count;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (addr < t->maps[mid].start)
            hi = mid;
        else if (addr >= t->maps[mid].end)
            lo = mid + 1;
        else
            return &t->maps[mid];
    }
    return NULL;
}

/* --- images ---------------------------------------------------------------------------------------------------- */

/* The binary search table of .eh_frame_hdr, in the one encoding that linkers write (sdata4,
 * relative to the header). */
static void target_find_unwind_table(struct target *t, struct target_image *img) {
    uint8_t head[12];
    uint32_t count;
    uint64_t at = img->elf.eh_frame_hdr;
    if (!at || mem_read(&t->mem, at, head, sizeof head) != 0)
        return;
    if (head[0] != 1 || head[1] != 0x1b || head[2] != 0x03 || head[3] != 0x3b)
        return;
    memcpy(&count, head + 8, sizeof count);
    img->unwind_table = at + sizeof head;
    img->unwind_count = count;
}

static struct target_image *target_open_image(struct target *t, int index) {
    if (index < 0)
        return NULL;
    struct target_image *img = &t->images[index];
    if (!img->opened) {
        img->opened = elf_open_memory(&img->elf, &t->mem, img->base) == 0 ? 1 : -1;
        if (img->opened == 1)
            target_find_unwind_table(t, img);
    }
    return img->opened == 1 ? img : NULL;
}

struct target_image *target_image_at(struct target *t, uint64_t addr) {
    const struct target_map *map = target_map_at(t, addr);
    return map && map->executable ? target_open_image(t, map->image) : NULL;
}

enum target_place target_place_at(struct target *t, uint64_t addr) {
    for (size_t i = 0; i < t->range_count; i++)
        if (addr >= t->ranges[i].start && addr < t->ranges[i].end)
            return t->ranges[i].place;
    const struct target_map *map = target_map_at(t, addr);
    return map && map->image >= 0 ? t->images[map->image].place : TARGET_PLAIN;
}

bool target_loader_is_consistent(struct target *t) {
    uint32_t state;
    return mem_read_u32(&t->mem, t->sym.r_debug + TARGET_R_STATE_OFFSET, &state) == 0 && state == 0;
}

/* --- symbols --------------------------------------------------------------------------------------------------- */

/* Address of `name` in the first of libpthread, libdl and libc that has it: before glibc 2.34
 * they are three. */
static uint64_t target_symbol(struct target *t, const char *name, uint64_t *size) {
    const int order[] = {t->libpthread, t->libdl, t->libc};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        struct target_image *img = target_open_image(t, order[i]);
        uint64_t addr;
        if (img && elf_find_symbol(&img->elf, name, &addr, size) == 0)
            return addr;
    }
    return 0;
}

static void target_add_range(struct target *t, uint64_t start, uint64_t end, enum target_place place) {
    if (start < end && t->range_count < TARGET_MAX_RANGES)
        t->ranges[t->range_count++] = (struct target_range){start, end, place};
}

/* `names`: names of functions, separated by single spaces. */
static void target_add_functions(struct target *t, const char *names, enum target_place place) {
    char name[48];
    for (const char *p = names; *p; p += *p == ' ') {
        size_t n = strcspn(p, " ");
        snprintf(name, sizeof name, "%.*s", (int)n, p);
        p += n;
        uint64_t size = 0, at = target_symbol(t, name, &size);
        if (at)
            target_add_range(t, at, at + (size ? size : 1), place);
    }
}

/* libc's allocator is one object file: its exported functions stand together, with internal ones
 * (_int_malloc, arena_get2, sysmalloc, ...) in front of malloc. In glibc 2.17 to 2.40 they begin
 * at most 15 KB before it. Other code there (timers, message queues) is rarely seen, and a
 * refusal there costs nothing. */
#define TARGET_MALLOC_BEFORE 0x4000U
#define TARGET_MALLOC_AFTER 0x100U
#define TARGET_MALLOC_SPAN 0x10000U

static void target_add_allocator(struct target *t) {
    static const char *const names[] = {"malloc", "free", "calloc", "realloc", "memalign", "malloc_info"};
    uint64_t lo = UINT64_MAX, hi = 0, size = 0, malloc_at = target_symbol(t, "malloc", &size);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        uint64_t at = target_symbol(t, names[i], &size);
        /* moved to a compatibility object */
        if (!at || at > malloc_at + TARGET_MALLOC_SPAN || at + TARGET_MALLOC_SPAN < malloc_at)
            continue;
        lo = at < lo ? at : lo;
        hi = at + size > hi ? at + size : hi;
    }
    if (hi)
        target_add_range(t, lo - TARGET_MALLOC_BEFORE, hi + TARGET_MALLOC_AFTER, TARGET_ALLOCATOR);
}

static void target_add_ranges(struct target *t) {
    target_add_allocator(t);
    target_add_functions(t,
                         "dlopen dlclose dlsym dlvsym dlmopen dladdr dladdr1 dlinfo dl_iterate_phdr _dl_addr "
                         "__libc_dlopen_mode __libc_dlsym __libc_dlclose",
                         TARGET_LOADER);
    target_add_functions(t,
                         "pthread_create pthread_exit pthread_getattr_np pthread_setattr_default_np "
                         "pthread_getattr_default_np __libc_thread_freeres",
                         TARGET_THREADS);
    target_add_functions(
        t,
        "fork _Fork __fork __libc_fork vfork posix_spawn posix_spawnp system popen daemon exit "
        "quick_exit __cxa_finalize __cxa_atexit __cxa_thread_atexit_impl __register_atfork "
        "setuid setgid setgroups setresuid setresgid",
        TARGET_PROCESS);
    target_add_functions(
        t,
        "fgets fgetc getc getchar gets getline getdelim fread fwrite fputs fputc putc putchar puts "
        "fprintf printf vfprintf vprintf fflush fclose fopen fopen64 fseek ungetc scanf fscanf "
        "vfscanf __vfprintf_chk __fprintf_chk __printf_chk _IO_file_underflow _IO_file_overflow "
        "_IO_file_write _IO_file_read _IO_getc _IO_putc perror flockfile",
        TARGET_STDIO);
}

/* First occurrence of `bytes` in [start, end), or 0. */
static uint64_t target_scan(struct target *t, uint64_t start, uint64_t end, const void *bytes, size_t len) {
    uint8_t *buf = malloc(TARGET_SCAN_CHUNK);
    uint64_t found = 0;
    for (uint64_t at = start; buf && !found && at + len <= end; at += TARGET_SCAN_CHUNK - len + 1) {
        size_t n = end - at < TARGET_SCAN_CHUNK ? (size_t)(end - at) : TARGET_SCAN_CHUNK;
        if (mem_read(&t->mem, at, buf, n) != 0)
            break;
        const uint8_t *hit = memmem(buf, n, bytes, len);
        if (hit)
            found = at + (uint64_t)(hit - buf);
    }
    free(buf);
    return found;
}

static void target_find_gadgets(struct target *t) {
    static const uint8_t syscall_ret[] = {0x0f, 0x05, 0xc3};
    static const uint8_t sigreturn[] = {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};
    for (size_t i = 0; i < t->map_count && !(t->sym.syscall_ret && t->sym.sigreturn); i++) {
        const struct target_map *m = &t->maps[i];
        if (!m->executable || (m->image != t->libc && m->image != t->libpthread))
            continue;
        if (!t->sym.syscall_ret)
            t->sym.syscall_ret = target_scan(t, m->start, m->end, syscall_ret, sizeof syscall_ret);
        if (!t->sym.sigreturn)
            t->sym.sigreturn = target_scan(t, m->start, m->end, sigreturn, sizeof sigreturn);
    }
}

int target_find_symbols(struct target *t, struct err *e) {
    struct target_symbols *s = &t->sym;
    const struct {
        const char *name;
        uint64_t *at;
    } needed[] = {
        {"pthread_create", &s->pthread_create},
        {"pthread_attr_init", &s->attr_init},
        {"pthread_attr_setstacksize", &s->attr_setstacksize},
        {"pthread_attr_destroy", &s->attr_destroy},
        {"pthread_self", &s->pthread_self},
        {"pthread_detach", &s->pthread_detach},
        {"__errno_location", &s->errno_location},
        {"munmap", &s->munmap},
        {"dlopen", &s->dlopen},
        {"dlsym", &s->dlsym},
        {"dlerror", &s->dlerror},
        {"dlclose", &s->dlclose},
    };
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        *needed[i].at = target_symbol(t, needed[i].name, NULL);
        if (!*needed[i].at)
            return err_set(e, ERR_ATTACH,
                           "process %d: its C library has no %s, so nothing can be loaded into it; it can "
                           "only be read from outside",
                           (int)t->pid, needed[i].name);
    }
    struct target_image *loader = target_open_image(t, t->loader);
    if (!loader || elf_find_symbol(&loader->elf, "_r_debug", &s->r_debug, NULL) != 0)
        return err_set(e, ERR_ATTACH,
                       "process %d: its dynamic loader is not known here; it can only be read from outside",
                       (int)t->pid);
    target_find_gadgets(t);
    if (!s->syscall_ret || !s->sigreturn)
        return err_set(e, ERR_ATTACH,
                       "process %d: its C library is not known here; it can only be read from outside",
                       (int)t->pid);
    target_add_ranges(t);
    return 0;
}
