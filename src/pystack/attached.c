/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attached: where a thread keeps the thread state that it is attached with.
 *
 * Sources: Python/pystate.c of 3.13 to 3.15 (_Py_tss_tstate, current_fast_set, current_fast_clear,
 * PyThreadState_GetUnchecked); dl_iterate_phdr(3); ELF Handling For Thread-Local Storage, 3.4.6
 * (x86-64: the blocks of what is loaded with the program lie below the thread pointer, in every
 * thread at the same distance).
 */
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/elf.h"
#include "pystack/pystack_internal.h"

#define ATTACHED_FIRST_MINOR 13
#define ATTACHED_GETTER "PyThreadState_GetUnchecked"

struct attached_image {
    uint64_t runtime;           /* an address within it */
    uint64_t base;              /* 0: not found */
    volatile uintptr_t *locals; /* its thread-local variables, of the calling thread; NULL none */
    size_t n;                   /* words of them */
};

/* Called with a lock of the loader, which it holds only while it changes its list. */
static int attached_note_image(struct dl_phdr_info *info, size_t size, void *arg) {
    struct attached_image *image = arg;
    uint64_t base;
    size_t bytes = 0;
    if (!pystack_image_has(info, image->runtime, &base))
        return 0;
    for (size_t i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_TLS)
            bytes = info->dlpi_phdr[i].p_memsz;
    image->base = base;
    if (size >= offsetof(struct dl_phdr_info, dlpi_tls_data) + sizeof info->dlpi_tls_data) {
        image->locals = info->dlpi_tls_data;
        image->n = bytes / sizeof image->locals[0];
    }
    return 1;
}

/* True if the variables lie where each thread has them at the same distance from its
 * pthread_self. The C library puts these between the stack of a thread and its own struct; those
 * of what was loaded later are allocated, and nothing else is allocated there. */
static bool attached_is_static(const struct attached_image *image) {
    uintptr_t here = (uintptr_t)__builtin_frame_address(0), end = (uintptr_t)pthread_self();
    uintptr_t from = (uintptr_t)image->locals;
    return from > here && from < end && image->n <= (end - from) / sizeof image->locals[0];
}

/* The one of the calling thread's variables that `get` returns. No Python runs on this thread, so
 * it is one that is 0. NULL if there is none. */
static volatile uintptr_t *attached_find_variable(const struct attached_image *image, void *(*get)(void)) {
    uintptr_t mark = (uintptr_t)image;
    for (size_t i = 0; i < image->n; i++) {
        volatile uintptr_t *word = &image->locals[i];
        if (*word != 0)
            continue;
        *word = mark;
        bool found = get() == (void *)mark;
        *word = 0;
        if (found)
            return word;
    }
    return NULL;
}

int64_t pystack_find_attached(struct pystack *ps) {
    struct attached_image image = {.runtime = ps->info.runtime};
    struct elf_image elf;
    uint64_t getter;
    void *(*get)(void);
    if (!ps->self || ps->info.minor < ATTACHED_FIRST_MINOR || ps->reader.off.gil_enabled >= 0)
        return 0;
    dl_iterate_phdr(attached_note_image, &image);
    if (!image.base || !image.locals || !attached_is_static(&image) ||
        elf_open_memory(&elf, &ps->reader.mem, image.base) != 0 ||
        elf_find_symbol(&elf, ATTACHED_GETTER, &getter, NULL) != 0 || getter < elf.text_start ||
        getter >= elf.text_end)
        return 0;
    memcpy(&get, &getter, sizeof get);
    volatile uintptr_t *word = get() == NULL ? attached_find_variable(&image, get) : NULL;
    return word ? (int64_t)((uintptr_t)word - (uintptr_t)pthread_self()) : 0;
}
