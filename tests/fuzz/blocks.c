/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large blocks of memory in the fuzzers (linked with --wrap). Freed ones are kept, and given out again when the same size is asked for:
 * AddressSanitizer maps and unmaps blocks of this size, which took half of the time of targets that open one thing for each input.
 *
 * A kept block is poisoned, so that its use is found; one that nobody frees is still reachable, and no leak is told of it: those of
 * small blocks of the same owner are.
 *
 * FUZZ_BLOCK_MB, where it is set, is the size above which there is no memory: SQLite gets and clears tens of megabytes for a record that
 * only says that it is large, which is no fault of a reader's, and takes much longer than all the rest.
 */
#include <sanitizer/asan_interface.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLOCKS_MAX 64
#define BLOCKS_LEAST ((size_t)128 * 1024)
#define BLOCKS_MOST ((size_t)2 * 1024 * 1024) /* as many of these as are kept are still no burden */

/* NOLINTBEGIN: names that the linker gives */
void *__real_malloc(size_t size);
void *__real_realloc(void *p, size_t size);
void __real_free(void *p);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void __wrap_free(void *p);
/* NOLINTEND */

static struct block {
    void *p;
    size_t size;
    bool is_free;
} blocks[BLOCKS_MAX];

static struct block *block_find(const void *p) {
    for (size_t i = 0; p && i < BLOCKS_MAX; i++)
        if (blocks[i].p == p)
            return &blocks[i];
    return NULL;
}

static bool block_refused(size_t size) {
    static size_t limit;
    if (!limit) {
        const char *mb = getenv("FUZZ_BLOCK_MB");
        unsigned long n = mb ? strtoul(mb, NULL, 10) : 0;
        limit = n ? n << 20 : SIZE_MAX;
    }
    return size > limit;
}

/* NULL: there is none of that size, and no place for one more. */
static void *block_take(size_t size) {
    struct block *empty = NULL;
    for (size_t i = 0; i < BLOCKS_MAX; i++) {
        struct block *b = &blocks[i];
        if (b->p && b->is_free && b->size == size) {
            b->is_free = false;
            __asan_unpoison_memory_region(b->p, size);
            return b->p;
        }
        if (!b->p && !empty)
            empty = b;
    }
    void *p = empty ? __real_malloc(size) : NULL;
    if (p)
        *empty = (struct block){.p = p, .size = size};
    return p;
}

void *__wrap_malloc(size_t size) {
    if (block_refused(size))
        return NULL;
    void *p = size >= BLOCKS_LEAST && size <= BLOCKS_MOST ? block_take(size) : NULL;
    return p ? p : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes))
        return NULL;
    void *p = __wrap_malloc(bytes);
    return p ? memset(p, 0, bytes) : NULL;
}

void __wrap_free(void *p) {
    struct block *b = block_find(p);
    if (!b) {
        __real_free(p);
        return;
    }
    if (b->is_free)
        abort(); /* freed twice */
    b->is_free = true;
    __asan_poison_memory_region(p, b->size);
}

void *__wrap_realloc(void *p, size_t size) {
    const struct block *b = block_find(p);
    if (!b)
        return block_refused(size) ? NULL : __real_realloc(p, size);
    void *to = __wrap_malloc(size);
    if (to) {
        memcpy(to, p, size < b->size ? size : b->size);
        __wrap_free(p);
    }
    return to;
}
