/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks in libraries: they are called, others are left alone, and every byte is put back. */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/alloc/alloc_native.h"
#include "agent/alloc/alloc_samples.h"
#include "base/mem.h"

#define MEAN 4096
#define BYTES ((size_t)8 * 1024 * 1024)

/* operator new and delete: they call malloc and free by the words of libstdc++. */
static void *(*new_block)(size_t size);
static void (*delete_block)(void *block);

/* What is protected after relocation, of all libraries; and the rights of all pages of files. */
struct state {
    uint8_t *bytes;
    size_t n;
    char *maps;
};

static int copy_image(struct dl_phdr_info *info, size_t size, void *arg) {
    struct state *s = arg;
    struct mem mem; /* there are poisoned bytes with a sanitizer */
    (void)size;
    mem_init_process(&mem, getpid());
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type != PT_GNU_RELRO || s->n + p->p_memsz > BYTES)
            continue;
        if (mem_read(&mem, info->dlpi_addr + p->p_vaddr, s->bytes + s->n, p->p_memsz) == 0)
            s->n += p->p_memsz;
    }
    return 0;
}

static void read_state(struct state *s) {
    static char line[1024];
    size_t n = 0, cap = 1024 * 1024;
    if (!s->bytes) { /* once, so that reading does not change what is read */
        s->bytes = calloc(1, BYTES);
        s->maps = calloc(1, cap);
    }
    assert_true(s->bytes && s->maps);
    s->n = 0;
    dl_iterate_phdr(copy_image, s);
    FILE *f = fopen("/proc/self/maps", "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        if (strstr(line, ".so") && n + strlen(line) < cap)
            n += (size_t)snprintf(s->maps + n, cap - n, "%s", line);
    fclose(f);
}

static void fini_state(struct state *s) {
    free(s->bytes);
    free(s->maps);
}

static int begin(void **state) {
    (void)state;
    void *library = dlopen("libstdc++.so.6", RTLD_NOW);
    if (!library)
        return -1;
    void *new = dlsym(library, "_Znwm"), *delete = dlsym(library, "_ZdlPv");
    memcpy(&new_block, &new, sizeof new);
    memcpy(&delete_block, &delete, sizeof delete);
    return new &&delete ? 0 : -1;
}

static size_t count(const struct alloc_record **last, bool *freed) {
    static struct alloc_record copy;
    struct pystack_self *s;
    size_t n = 0;
    for (const struct alloc_record *r; (r = alloc_samples_next(&s)); n++)
        copy = *r;
    *last = &copy;
    (void)freed;
    return n;
}

static size_t n_freed;

static bool on_free(void *arg, uint32_t entry, uint64_t serial) {
    (void)arg;
    (void)entry;
    (void)serial;
    n_freed++;
    return true;
}

__attribute__((unused)) static void test_calls(void **state) {
    struct alloc_native_caller caller;
    const struct alloc_record *last;
    char why[128] = "";
    (void)state;
    assert_int_equal(alloc_samples_begin(NULL, NULL, MEAN), 0);
    int words = alloc_native_insert(why, sizeof why);
    assert_true(words >= 2 && alloc_native_is_in());
    assert_int_equal(alloc_native_insert(why, sizeof why), words); /* no word has two */
    void *block = new_block(1000 * MEAN);
    assert_int_equal(count(&last, NULL), 1);
    assert_true(last->size == 1000 * MEAN && last->domain == ALLOC_NATIVE && last->n_frames == 0);
    alloc_native_find_caller(last->caller, &caller);
    assert_true(caller.library && strstr(caller.library, "libstdc++") && !caller.is_torch);
    assert_string_equal(caller.function, "_Znwm");
    delete_block(block);
    n_freed = 0;
    alloc_samples_each_free(on_free, NULL);
    assert_int_equal(n_freed, 1);
    alloc_samples_stop();
    assert_int_equal(alloc_native_remove(), 0);
    assert_false(alloc_native_is_in());
    block = new_block(1000 * MEAN);
    delete_block(block);
    assert_int_equal(count(&last, NULL), 0);
    alloc_samples_end();
}

/* Every byte that the loader protects, and the rights of every page, are as before. */
__attribute__((unused)) static void test_put_back(void **state) {
    static struct state before, within, after;
    char why[128];
    (void)state;
    read_state(&before);
    read_state(&within); /* its memory is there, too */
    read_state(&after);
    read_state(&before);
    for (int i = 0; i < 20; i++) {
        assert_true(alloc_native_insert(why, sizeof why) > 0);
        read_state(&within);
        assert_int_equal(alloc_native_remove(), 0);
        read_state(&after);
        assert_true(before.n == after.n && before.n > 0);
        assert_memory_equal(before.bytes, after.bytes, before.n);
        assert_string_equal(before.maps, after.maps);
        assert_string_equal(before.maps, within.maps);
    }
    fini_state(&before);
    fini_state(&within);
    fini_state(&after);
}

static void test_loads(void **state) {
    uint64_t before = alloc_native_loads();
    (void)state;
    void *library = dlopen("libm.so.6", RTLD_NOW | RTLD_NOLOAD);
    assert_int_equal(alloc_native_loads(), before);
    if (library)
        dlclose(library);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#ifndef __SANITIZE_ADDRESS__ /* which has operators and an allocator of its own, and changes words itself */
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_put_back),
#endif
        cmocka_unit_test(test_loads),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
