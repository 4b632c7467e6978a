/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc_python: see alloc_python.h. Sources: Include/cpython/pymem.h (PyMemAllocatorEx, since
 * 3.5), Objects/obmalloc.c (_PyMem_Raw, _PyMem, _PyObject: a call reads the function and its ctx
 * one after the other, that of the domain RAW without the GIL), Modules/_tracemalloc.c.
 *
 * PyMem_SetAllocator copies five words while other threads call through them. So our struct has
 * the ctx of the one before, and any mixture of the two works. A call may sleep within a hook
 * while it is taken out: what the hook needs is never cleared.
 */
#include "agent/alloc/alloc_python.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "agent/alloc/alloc_samples.h"

enum alloc_python_domain { ALLOC_PYTHON_RAW = 0, ALLOC_PYTHON_MEM, ALLOC_PYTHON_OBJ, ALLOC_PYTHON_DOMAINS };

static struct pyapi_allocator alloc_python_below[ALLOC_PYTHON_DOMAINS];
static uint32_t alloc_python_in; /* atomic: bits of domains in whose chain our hook is, as far as is known */
static uint32_t alloc_python_lost; /* atomic: the same when an interpreter had ended; another may be made */

/* ---- the hooks ---- */

/* A product that overflows is for the allocator below to refuse. */
static size_t alloc_python_product(size_t n, size_t size) {
    size_t bytes;
    return __builtin_mul_overflow(n, size, &bytes) ? 0 : bytes;
}

#define ALLOC_PYTHON_HOOKS(name, domain)                                                                       \
    static void *alloc_python_malloc_##name(void *ctx, size_t size) {                                          \
        struct alloc_thread *t = alloc_samples_enter();                                                        \
        void *block = alloc_python_below[domain].malloc(ctx, size);                                            \
        if (t)                                                                                                 \
            alloc_samples_leave(t, block, size, ALLOC_PYTHON, NULL);                                           \
        return block;                                                                                          \
    }                                                                                                          \
    static void *alloc_python_calloc_##name(void *ctx, size_t n, size_t size) {                                \
        struct alloc_thread *t = alloc_samples_enter();                                                        \
        void *block = alloc_python_below[domain].calloc(ctx, n, size);                                         \
        if (t)                                                                                                 \
            alloc_samples_leave(t, block, alloc_python_product(n, size), ALLOC_PYTHON, NULL);                  \
        return block;                                                                                          \
    }                                                                                                          \
    /* the end of one block and the beginning of another; so it is for tracemalloc, and of a                 \
     * failure, after which the old one lives on, nothing is known any more */ \
    static void *alloc_python_realloc_##name(void *ctx, void *old, size_t size) {                              \
        struct alloc_thread *t = alloc_samples_enter();                                                        \
        alloc_samples_forget(old);                                                                             \
        void *block = alloc_python_below[domain].realloc(ctx, old, size);                                      \
        if (t)                                                                                                 \
            alloc_samples_leave(t, block, size, ALLOC_PYTHON, NULL);                                           \
        return block;                                                                                          \
    }                                                                                                          \
    static void alloc_python_free_##name(void *ctx, void *block) {                                             \
        alloc_samples_forget(block);                                                                           \
        alloc_python_below[domain].free(ctx, block);                                                           \
    }

ALLOC_PYTHON_HOOKS(raw, ALLOC_PYTHON_RAW)
ALLOC_PYTHON_HOOKS(mem, ALLOC_PYTHON_MEM)
ALLOC_PYTHON_HOOKS(obj, ALLOC_PYTHON_OBJ)

#define ALLOC_PYTHON_STRUCT(name)                                                                            \
    {                                                                                                        \
        NULL, alloc_python_malloc_##name, alloc_python_calloc_##name, alloc_python_realloc_##name,           \
            alloc_python_free_##name                                                                         \
    }

static const struct pyapi_allocator alloc_python_ours[ALLOC_PYTHON_DOMAINS] = {
    [ALLOC_PYTHON_RAW] = ALLOC_PYTHON_STRUCT(raw),
    [ALLOC_PYTHON_MEM] = ALLOC_PYTHON_STRUCT(mem),
    [ALLOC_PYTHON_OBJ] = ALLOC_PYTHON_STRUCT(obj),
};

/* ---- in and out ---- */

/* Ours, with the ctx of the one below. */
static struct pyapi_allocator alloc_python_own(int domain) {
    struct pyapi_allocator own = alloc_python_ours[domain];
    own.ctx = alloc_python_below[domain].ctx;
    return own;
}

static bool alloc_python_is_ours(int domain, const struct pyapi_allocator *a) {
    struct pyapi_allocator own = alloc_python_own(domain);
    return memcmp(&own, a, sizeof own) == 0;
}

/* Whether a call of the domain's allocator comes to our hook. */
static bool alloc_python_is_called(const struct pyapi_allocator *top) {
    struct alloc_thread *t = alloc_samples_enter();
    if (!t)
        return true; /* unknown: nothing is put in a second time */
    t->depth = 0;
    uint64_t before = t->calls;
    void *block = top->malloc(top->ctx, 1);
    bool called = t->calls != before;
    top->free(top->ctx, block);
    return called;
}

int alloc_python_insert(const struct pyapi *api, bool has_gil, char *why, size_t cap) {
    if (!api->PyMem_GetAllocator || !has_gil) {
        snprintf(why, cap, "%s",
                 has_gil ? "this Python shows no PyMem_SetAllocator"
                         : "the allocators of a Python without a GIL cannot be changed while it runs");
        return -1;
    }
    for (int i = 0; i < ALLOC_PYTHON_DOMAINS; i++) {
        struct pyapi_allocator top;
        api->PyMem_GetAllocator(i, &top);
        uint32_t lost = __atomic_fetch_and(&alloc_python_lost, ~(1U << i), __ATOMIC_ACQ_REL);
        bool was_in = (__atomic_load_n(&alloc_python_in, __ATOMIC_RELAXED) | lost) & 1U << i;
        /* put above itself the hook would call itself without end */
        if (top.malloc == alloc_python_ours[i].malloc || (was_in && alloc_python_is_called(&top))) {
            __atomic_fetch_or(&alloc_python_in, 1U << i, __ATOMIC_RELEASE);
            continue;
        }
        alloc_python_below[i] = top;
        struct pyapi_allocator own = alloc_python_own(i);
        __atomic_fetch_or(&alloc_python_in, 1U << i, __ATOMIC_RELEASE);
        api->PyMem_SetAllocator(i, &own);
    }
    return 0;
}

int alloc_python_remove(const struct pyapi *api) {
    int stay = 0;
    for (int i = 0; i < ALLOC_PYTHON_DOMAINS; i++) {
        struct pyapi_allocator top;
        if (!(__atomic_load_n(&alloc_python_in, __ATOMIC_RELAXED) & 1U << i))
            continue;
        api->PyMem_GetAllocator(i, &top);
        if (!alloc_python_is_ours(i, &top)) {
            stay++;
            continue;
        }
        api->PyMem_SetAllocator(i, &alloc_python_below[i]);
        __atomic_fetch_and(&alloc_python_in, ~(1U << i), __ATOMIC_RELEASE);
    }
    return stay;
}

bool alloc_python_is_in(void) { return __atomic_load_n(&alloc_python_in, __ATOMIC_ACQUIRE) != 0; }

void alloc_python_lose(void) {
    uint32_t in = __atomic_exchange_n(&alloc_python_in, 0, __ATOMIC_ACQ_REL);
    __atomic_fetch_or(&alloc_python_lost, in, __ATOMIC_RELEASE);
}
