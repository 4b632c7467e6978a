/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resident: the runtime's variables, if they stay where they are for as long as the process lives.
 *
 * Sources: dl_iterate_phdr(3) (the program itself is listed first), dlclose(3) and glibc's
 * elf/dl-close.c (what was loaded with the program is never unloaded);
 * Include/internal/pycore_runtime.h and pycore_interp.h of 3.11 to 3.15 (_PyRuntime contains the
 * main interpreter, and that its first thread state).
 */
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/elf.h"
#include "base/mem.h"
#include "pystack/pystack_internal.h"

#define RESIDENT_FIRST_MINOR 11
#define RESIDENT_VARIABLE "_PyRuntime"
#define RESIDENT_PROGRAM "python"
#define RESIDENT_NAME 256

struct resident_images {
    uint64_t runtime;         /* an address within it */
    uint64_t program, python; /* where they are mapped; 0: not found */
    char name[RESIDENT_NAME]; /* the file of the second, without its folder; "" unknown */
};

bool pystack_image_has(const struct dl_phdr_info *info, uint64_t addr, uint64_t *base) {
    bool has = false;
    *base = UINT64_MAX;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uint64_t at = info->dlpi_addr + p->p_vaddr;
        if (p->p_type != PT_LOAD)
            continue;
        *base = at < *base ? at : *base;
        has = has || (addr >= at && addr - at < p->p_memsz);
    }
    return has;
}

/* Called with a lock of the loader, which it holds only while it changes its list. */
static int resident_note_image(struct dl_phdr_info *info, size_t size, void *arg) {
    struct resident_images *images = arg;
    uint64_t base;
    bool has = pystack_image_has(info, images->runtime, &base);
    (void)size;
    if (!images->program)
        images->program = base;
    if (!has)
        return 0;
    const char *name = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    if (name && strlen(name) < sizeof images->name)
        memcpy(images->name, name + 1, strlen(name));
    images->python = base;
    return 1;
}

/* True if the file of the program is called as one of `python` is: python, python3, python3.12. Another
 * program may have several threads take turns with one thread state, up to the end of Python. */
static bool resident_is_python(void) {
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    path[n > 0 ? n : 0] = '\0';
    const char *name = strrchr(path, '/');
    size_t len = strlen(RESIDENT_PROGRAM);
    if (!name || strncmp(name + 1, RESIDENT_PROGRAM, len) != 0)
        return false;
    name += 1 + len;
    return name[strspn(name, "0123456789.")] == '\0';
}

/* True if the program was loaded with the library that has the runtime. */
static bool resident_is_needed(struct mem *mem, const struct resident_images *images) {
    struct elf_image elf;
    return elf_open_memory(&elf, mem, images->program) == 0 && elf_needs(&elf, images->name);
}

void pystack_find_resident(struct pystack *ps, uint64_t *from, uint64_t *to) {
    struct resident_images images = {.runtime = ps->info.runtime};
    struct elf_image elf;
    uint64_t addr, size;
    *from = *to = 0;
    if (!ps->self || ps->info.minor < RESIDENT_FIRST_MINOR || ps->reader.off.gil_enabled >= 0)
        return;
    dl_iterate_phdr(resident_note_image, &images);
    if (!images.python || !resident_is_python() ||
        (images.python != images.program && !resident_is_needed(&ps->reader.mem, &images)))
        return;
    if (elf_open_memory(&elf, &ps->reader.mem, images.python) != 0 ||
        elf_find_symbol(&elf, RESIDENT_VARIABLE, &addr, &size) != 0 || addr != ps->info.runtime)
        return;
    *from = addr;
    *to = addr + size;
}
