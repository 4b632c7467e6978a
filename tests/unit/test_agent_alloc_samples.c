/* SPDX-License-Identifier: Apache-2.0 */
/* Threads sample their allocations: how many, which live, what is dropped, and what a child inherits. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/alloc/alloc_samples.h"
#include "agent/alloc/alloc_sites.h"

#define MEAN 4096
#define BLOCK 512
#define BLOCKS 20000
#define THREADS 6

static struct alloc_sites sites;

static bool on_free(void *arg, uint32_t entry, uint64_t serial) {
    return alloc_sites_free(arg, entry, serial);
}

static size_t read_all(void) {
    struct pystack_self *copy;
    size_t n = 0;
    for (const struct alloc_record *r; (r = alloc_samples_next(&copy)); n++)
        alloc_sites_add(&sites, 1, r->domain, (struct alloc_sites_size){.size = r->size, .mean = r->mean},
                        r->entry, r->serial);
    alloc_samples_each_free(on_free, &sites);
    return n;
}

static void *allocate(size_t size) {
    struct alloc_thread *t = alloc_samples_enter();
    void *block = malloc(size);
    if (t)
        alloc_samples_leave(t, block, size, ALLOC_NATIVE, __builtin_return_address(0));
    return block;
}

static void release(void *block) {
    alloc_samples_forget(block);
    free(block);
}

static int begin(void **state) {
    (void)state;
    assert_int_equal(alloc_sites_init(&sites, ALLOC_SAMPLES_LIVE), 0);
    return alloc_samples_begin(NULL, NULL, MEAN);
}

static int end(void **state) {
    (void)state;
    alloc_samples_end();
    alloc_sites_fini(&sites);
    return 0;
}

static void test_live(void **state) {
    static void *blocks[BLOCKS];
    struct alloc_samples_stats stats;
    (void)state;
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = allocate(BLOCK);
        if (i % 500 == 0)
            read_all();
    }
    read_all();
    alloc_samples_get_stats(&stats);
    assert_true(stats.calls == BLOCKS && stats.lost == 0 && stats.strangers == 0);
    double all = (double)BLOCKS * BLOCK;
    assert_true(fabs(sites.sites[0].allocated / all - 1) < 0.12); /* 2350 samples: five deviations */
    assert_true(fabs(sites.sites[0].live / all - 1) < 0.12);
    for (size_t i = 0; i < BLOCKS; i += 2)
        release(blocks[i]);
    read_all();
    assert_true(fabs(sites.sites[0].live / (all / 2) - 1) < 0.17);
    for (size_t i = 1; i < BLOCKS; i += 2)
        release(blocks[i]);
    read_all();
    assert_true(fabs(sites.sites[0].live) < 1 && fabs(sites.sites[0].freed - sites.sites[0].allocated) < 1);
}

/* What is allocated within an allocation is part of it. */
static void test_nested(void **state) {
    struct alloc_samples_stats stats;
    (void)state;
    struct alloc_thread *t = alloc_samples_enter();
    assert_non_null(t);
    assert_null(alloc_samples_enter());
    alloc_samples_leave(t, &stats, 64 * MEAN, ALLOC_PYTHON, NULL);
    assert_non_null(t = alloc_samples_enter());
    alloc_samples_leave(t, NULL, 64 * MEAN, ALLOC_PYTHON, NULL); /* it failed */
    alloc_samples_get_stats(&stats);
    assert_true(stats.calls == 2 && stats.samples == 1);
    assert_int_equal(read_all(), 1);
}

/* A free that was not seen is noticed when the address is given out again. */
static void test_unseen_free(void **state) {
    char block[8];
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct alloc_thread *t = alloc_samples_enter();
        alloc_samples_forget(block);
        alloc_samples_leave(t, block, 100 * MEAN, ALLOC_NATIVE, NULL);
    }
    read_all();
    assert_true(fabs(sites.sites[0].live - 100 * MEAN) < 1 && fabs(sites.sites[0].freed - 100 * MEAN) < 1);
}

/* A buffer that is made again and again, at one address, before anybody reads: each end is known. */
static void test_one_address(void **state) {
    static char block[8];
    struct alloc_samples_stats stats;
    (void)state;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 200; i++) {
            struct alloc_thread *t = alloc_samples_enter();
            alloc_samples_leave(t, block, 100 * MEAN, ALLOC_NATIVE, NULL);
            alloc_samples_forget(block);
        }
        assert_int_equal(read_all(), 200);
        alloc_samples_get_stats(&stats);
        assert_int_equal(stats.unfollowed, 0);
        assert_true(fabs(sites.sites[0].live) < 1 && sites.sites[0].freed > 100 * MEAN);
    }
}

/* A full ring drops samples, and counts them; nothing of them stays in the table. */
static void test_full(void **state) {
    static char blocks[60000];
    struct alloc_samples_stats stats;
    (void)state;
    for (size_t i = 0; i < sizeof blocks; i++) {
        struct alloc_thread *t = alloc_samples_enter();
        alloc_samples_leave(t, blocks + i, 100 * MEAN, ALLOC_NATIVE, NULL);
    }
    alloc_samples_get_stats(&stats);
    assert_true(stats.samples == sizeof blocks && stats.lost > 0);
    assert_int_equal(read_all(), stats.samples - stats.lost);
    for (size_t i = 0; i < sizeof blocks; i++)
        alloc_samples_forget(blocks + i);
    read_all();
    assert_true(sites.n == 1 && fabs(sites.sites[0].live - sites.sites[0].unfollowed) < 1);
    for (size_t i = 0; i < 1000; i++) { /* and it goes on */
        struct alloc_thread *t = alloc_samples_enter();
        alloc_samples_leave(t, blocks + i, 100 * MEAN, ALLOC_NATIVE, NULL);
    }
    assert_int_equal(read_all(), 1000);
}

static uint32_t stop; /* atomic */

static void *work(void *arg) {
    void *held[64] = {NULL};
    uint64_t n = 0;
    (void)arg;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        release(held[n % 64]);
        held[n % 64] = allocate(64 + n % 1000);
        n++;
    }
    for (size_t i = 0; i < 64; i++)
        release(held[i]);
    return NULL;
}

/* Begun and ended under threads that allocate all the time. */
static void test_again_and_again(void **state) {
    pthread_t threads[THREADS];
    size_t n = 0;
    (void)state;
    stop = 0;
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, NULL), 0);
    for (int round = 0; round < 200; round++) {
        alloc_samples_end();
        alloc_sites_fini(&sites);
        assert_int_equal(alloc_sites_init(&sites, ALLOC_SAMPLES_LIVE), 0);
        while (alloc_samples_begin(NULL, NULL, MEAN) != 0)
            ; /* a thread that has no CPU is in the middle of a sample */
        for (int i = 0; i < 20; i++)
            n += read_all();
    }
    while (n < 1000)
        n += read_all();
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    read_all();
    for (size_t i = 0; i < sites.n; i++) /* all was freed */
        assert_true(fabs(sites.sites[i].live - sites.sites[i].unfollowed) < 1);
}

static void test_child(void **state) {
    int status = -1;
    (void)state;
    struct alloc_thread *t = alloc_samples_enter();
    assert_non_null(t);
    t->depth = 0;
    pid_t pid = fork();
    if (pid == 0) {
        alloc_samples_in_child();
        struct alloc_samples_stats stats;
        for (size_t i = 0; i < 1000; i++)
            release(allocate(100 * MEAN));
        alloc_samples_get_stats(&stats);
        _exit(alloc_samples_enter() == NULL && stats.samples == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_live, begin, end),
        cmocka_unit_test_setup_teardown(test_nested, begin, end),
        cmocka_unit_test_setup_teardown(test_unseen_free, begin, end),
        cmocka_unit_test_setup_teardown(test_one_address, begin, end),
        cmocka_unit_test_setup_teardown(test_full, begin, end),
        cmocka_unit_test_setup_teardown(test_again_and_again, begin, end),
        cmocka_unit_test_setup_teardown(test_child, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
