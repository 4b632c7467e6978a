/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks in Python's allocators are put in once, whatever was lost or put above them meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "agent/alloc/alloc_python.h"
#include "agent/alloc/alloc_samples.h"

#define DOMAINS 3
#define MEAN 4096

/* What stands for Python's: one struct a domain. */
static struct pyapi_allocator allocators[DOMAINS], below;
static size_t calls, above;

static void *base_malloc(void *ctx, size_t size) {
    assert_ptr_equal(ctx, &calls);
    calls++;
    return malloc(size);
}

static void *base_calloc(void *ctx, size_t n, size_t size) {
    (void)ctx;
    return calloc(n, size);
}

static void *base_realloc(void *ctx, void *old, size_t size) {
    (void)ctx;
    return realloc(old, size);
}

static void base_free(void *ctx, void *block) {
    (void)ctx;
    free(block);
}

/* Somebody else's, above ours. */
static void *other_malloc(void *ctx, size_t size) {
    (void)ctx;
    above++;
    return below.malloc(below.ctx, size);
}

static void other_free(void *ctx, void *block) {
    (void)ctx;
    below.free(below.ctx, block);
}

static void get_allocator(int domain, struct pyapi_allocator *out) { *out = allocators[domain]; }

static void set_allocator(int domain, const struct pyapi_allocator *to) { allocators[domain] = *to; }

static const struct pyapi api = {.PyMem_GetAllocator = get_allocator, .PyMem_SetAllocator = set_allocator};

static int begin(void **state) {
    (void)state;
    for (size_t i = 0; i < DOMAINS; i++)
        allocators[i] = (struct pyapi_allocator){&calls, base_malloc, base_calloc, base_realloc, base_free};
    calls = above = 0;
    return alloc_samples_begin(NULL, NULL, MEAN);
}

static int end(void **state) {
    (void)state;
    alloc_samples_end();
    return 0;
}

static void insert(void) {
    char why[64];
    assert_int_equal(alloc_python_insert(&api, true, why, sizeof why), 0);
    assert_true(alloc_python_is_in());
}

/* One call of a domain comes to Python's own once. */
static void call(size_t domain) {
    size_t before = calls;
    void *block = allocators[domain].malloc(allocators[domain].ctx, 8);
    assert_non_null(block);
    assert_int_equal(calls, before + 1);
    allocators[domain].free(allocators[domain].ctx, block);
}

static void take_out(void) {
    assert_int_equal(alloc_python_remove(&api), 0);
    assert_false(alloc_python_is_in());
    for (size_t i = 0; i < DOMAINS; i++)
        assert_ptr_equal(allocators[i].malloc, base_malloc);
}

static void test_in_and_out(void **state) {
    (void)state;
    insert();
    for (size_t i = 0; i < DOMAINS; i++) {
        assert_ptr_not_equal(allocators[i].malloc, base_malloc);
        call(i);
    }
    insert();
    call(0);
    take_out();
}

/* The interpreter ends and another one is made, in which the same structs are. */
static void test_after_the_interpreter(void **state) {
    (void)state;
    insert();
    alloc_python_lose();
    assert_false(alloc_python_is_in());
    insert();
    for (size_t i = 0; i < DOMAINS; i++)
        call(i);
    take_out();
}

/* The same, below another allocator. */
static void test_below_another(void **state) {
    (void)state;
    insert();
    below = allocators[0];
    allocators[0].malloc = other_malloc;
    allocators[0].free = other_free;
    alloc_python_lose();
    insert();
    assert_ptr_equal(allocators[0].malloc, other_malloc);
    above = 0;
    call(0);
    assert_int_equal(above, 1);
    assert_int_equal(alloc_python_remove(&api), 1);
    allocators[0] = below;
    take_out();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_in_and_out, begin, end),
        cmocka_unit_test_setup_teardown(test_after_the_interpreter, begin, end),
        cmocka_unit_test_setup_teardown(test_below_another, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
