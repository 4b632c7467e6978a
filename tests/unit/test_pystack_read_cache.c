/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recall: it tells what is there at its beginning, with few calls of the kernel, and survives places that go.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "pystack/read_cache.h"

static struct read_cache recall;
static struct mem mem, below;

static int begin(void **state) {
    (void)state;
    mem_init_process(&below, getpid());
    read_cache_init(&recall, &mem, &below);
    return 0;
}

static uint64_t address(const void *p) { return (uint64_t)(uintptr_t)p; }

static void reads_are_of_the_beginning(void **state) {
    static volatile uint64_t word = 1;
    uint64_t got = 0;
    (void)state;
    for (uint64_t i = 1; i < 5; i++) {
        word = i;
        read_cache_begin(&recall);
        uint64_t calls = below.reads;
        assert_int_equal(mem_read_u64(&mem, address((const void *)&word), &got), 0);
        assert_int_equal(got, i);
        word = 100 + i; /* it was read already */
        assert_int_equal(mem_read_u64(&mem, address((const void *)&word), &got), 0);
        assert_int_equal(got, i);
        assert_int_equal(below.reads - calls, i == 1); /* later all came at the beginning */
    }
}

/* Places that are gone do not keep the others from being read, and are no error but to whoever reads them. */
static void places_go(void **state) {
    static uint64_t words[64][128];
    uint64_t got;
    (void)state;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint64_t *gone = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(gone, MAP_FAILED);
    *gone = 7;
    for (size_t i = 0; i < 64; i++)
        words[i][0] = i;
    for (int round = 0; round < 4; round++) {
        read_cache_begin(&recall);
        for (size_t i = 0; i < 64; i++) {
            assert_int_equal(mem_read_u64(&mem, address(&words[i][0]), &got), 0);
            assert_int_equal(got, i);
            if (i == 10)
                assert_int_equal(mem_read_u64(&mem, address(gone), &got), round < 2 ? 0 : -1);
        }
        if (round == 1)
            assert_int_equal(munmap(gone, page), 0);
    }
    assert_int_equal(mem_read_u64(&mem, 8, &got), -1);
}

/* More places than are kept, and more bytes: all are read all the same. */
static void more_than_fits(void **state) {
    static uint8_t bytes[READ_CACHE_BYTES * 2];
    uint64_t got;
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 7);
    for (int round = 0; round < 3; round++) {
        static uint8_t copy[sizeof bytes];
        read_cache_begin(&recall);
        for (size_t at = 0; at + 8 <= sizeof bytes; at += 8) {
            assert_int_equal(mem_read_u64(&mem, address(bytes + at), &got), 0);
            assert_memory_equal(&got, bytes + at, 8);
        }
        assert_int_equal(mem_read(&mem, address(bytes), copy, sizeof bytes), 0);
        assert_memory_equal(copy, bytes, sizeof bytes);
        assert_true(recall.n <= READ_CACHE_PIECES && recall.n_bytes <= READ_CACHE_BYTES);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(reads_are_of_the_beginning, begin),
        cmocka_unit_test_setup(places_go, begin),
        cmocka_unit_test_setup(more_than_fits, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
