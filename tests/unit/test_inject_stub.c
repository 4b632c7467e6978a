/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stub, copied to other pages of this process and run there: it needs nothing outside itself, and unmaps the region when
 * nobody runs in it any more.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "inject/sigreturn_chain.h"
#include "inject/stub.h"
#include "inject/target.h"

#define CODE_SIZE ((size_t)8192)
#define DATA_SIZE ((size_t)8192)
#define WAIT_NS (5 * CLOCK_NS_PER_S)

static int start_answer;
static struct agent_start start_seen;

static int start_agent(struct agent_start *start) {
    start_seen = *start;
    strcpy(start->error, "no reason");
    return start_answer;
}

/* Code and params as the injector lays them out. */
static struct stub_params *make_region(void) {
    size_t len = (size_t)(__stop_inject_stub - __start_inject_stub);
    assert_true(len > 0 && len <= CODE_SIZE);
    uint8_t *at =
        mmap(NULL, CODE_SIZE + DATA_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(at != MAP_FAILED);
    memcpy(at, __start_inject_stub, len);
    assert_int_equal(mprotect(at, CODE_SIZE, PROT_READ | PROT_EXEC), 0);
    struct stub_params *p = (struct stub_params *)(void *)(at + CODE_SIZE);
    *p = (struct stub_params){
        .region = (uint64_t)at,
        .region_size = CODE_SIZE + DATA_SIZE,
        .fn_munmap = (uint64_t)munmap,
        .fn_pthread_self = (uint64_t)pthread_self,
        .fn_pthread_detach = (uint64_t)pthread_detach,
        .fn_dlopen = (uint64_t)dlopen,
        .fn_dlsym = (uint64_t)dlsym,
        .fn_dlerror = (uint64_t)dlerror,
        .fn_dlclose = (uint64_t)dlclose,
        .go_wait_ns = WAIT_NS,
        .out = {.fd = -1},
        .thread_name = "stub-test",
        .file_name = "libprobing.so",
        .symbol = AGENT_ENTRY,
    };
    return p;
}

static void run(struct stub_params *p) {
    pthread_t thread;
    void *(*entry)(void *) =
        (void *(*)(void *))(p->region + (uint64_t)(inject_stub_thread - __start_inject_stub));
    assert_int_equal(pthread_create(&thread, NULL, entry, p), 0);
}

/* Until the phase is reached; false when the region is gone or it takes too long. */
static bool reaches(struct stub_params *p, int32_t phase) {
    struct mem mem;
    uint32_t now = 0;
    uint64_t until = clock_mono_ns() + WAIT_NS;
    mem_init_process(&mem, getpid());
    while (clock_mono_ns() < until) {
        if (mem_read_u32(&mem, (uint64_t)&p->phase, &now) != 0)
            return false;
        if ((int32_t)now >= phase)
            return true;
        usleep(200);
    }
    return false;
}

static bool goes_away(uint64_t region) {
    struct mem mem;
    uint32_t word;
    uint64_t until = clock_mono_ns() + WAIT_NS;
    mem_init_process(&mem, getpid());
    while (clock_mono_ns() < until) {
        if (mem_read_u32(&mem, region, &word) != 0)
            return true;
        usleep(200);
    }
    return false;
}

static void test_a_file_that_is_no_library(void **state) {
    (void)state;
    struct stub_params *p = make_region();
    uint64_t region = p->region;
    run(p);
    assert_true(reaches(p, STUB_WAITING));
    int fd = p->fd;
    assert_int_equal(write(fd, "no library", 10), 10);
    __atomic_store_n(&p->go, 1, __ATOMIC_RELEASE);
    assert_true(reaches(p, STUB_DONE));
    assert_int_equal(p->result, STUB_NO_LOAD);
    assert_non_null(strstr(p->start.error, p->path));
    __atomic_store_n(&p->ack, 1, __ATOMIC_RELEASE);
    assert_true(goes_away(region));
    assert_int_equal(write(fd, "x", 1), -1);
    assert_int_equal(errno, EBADF);
}

static void test_cancelled(void **state) {
    (void)state;
    struct stub_params *p = make_region();
    uint64_t region = p->region;
    run(p);
    assert_true(reaches(p, STUB_WAITING));
    __atomic_store_n(&p->cancel, 1, __ATOMIC_RELEASE);
    assert_true(goes_away(region));
}

static struct stub_params *late;

/* What the stub calls last before it starts the agent. */
static uint64_t cancel_at_the_last_moment(void) {
    int32_t phase = __atomic_load_n(&late->phase, __ATOMIC_SEQ_CST);
    if (phase < STUB_STARTING)
        __atomic_store_n(&late->cancel, 1, __ATOMIC_SEQ_CST);
    return (uint64_t)pthread_self();
}

/* Who sees after cancelling that it was not starting yet can rely on it that it never will. */
static void test_cancelled_at_the_last_moment(void **state) {
    (void)state;
    late = make_region();
    uint64_t region = late->region;
    late->entry = (uint64_t)start_agent;
    late->fn_pthread_self = (uint64_t)cancel_at_the_last_moment;
    late->go = 1;
    start_answer = AGENT_FAILED;
    start_seen.size = 0;
    run(late);
    assert_true(goes_away(region));
    assert_int_equal(start_seen.size, 0); /* it was not called */
}

static void test_nobody_comes(void **state) {
    (void)state;
    struct stub_params *p = make_region();
    uint64_t region = p->region;
    p->go_wait_ns = CLOCK_NS_PER_MS;
    run(p);
    assert_true(goes_away(region));
}

static void test_an_agent_that_is_loaded(void **state) {
    (void)state;
    struct stub_params *p = make_region();
    uint64_t region = p->region;
    p->entry = (uint64_t)start_agent;
    p->go = 1;
    start_answer = AGENT_FAILED;
    run(p);
    assert_true(reaches(p, STUB_DONE));
    assert_int_equal(p->result, STUB_REFUSED);
    assert_string_equal(p->start.error, "no reason");
    assert_int_equal(start_seen.size, sizeof start_seen);
    assert_int_equal(start_seen.abi_version, AGENT_ABI_VERSION);
    assert_int_equal(start_seen.region, region);
    assert_int_equal(start_seen.region_size, CODE_SIZE + DATA_SIZE);
    assert_int_equal(start_seen.fd, -1);
    p->ack = 1;
    assert_true(goes_away(region));
}

static void test_a_started_agent_owns_the_region(void **state) {
    (void)state;
    struct stub_params *p = make_region();
    p->entry = (uint64_t)start_agent;
    p->go = p->ack = 1;
    start_answer = AGENT_STARTED;
    run(p);
    assert_true(reaches(p, STUB_DONE));
    assert_int_equal(p->result, STUB_STARTED);
    assert_int_equal(pthread_join((pthread_t)start_seen.thread, NULL), 0);
    assert_int_equal(p->result, STUB_STARTED); /* still mapped: ours to unmap, as the agent does */
    assert_int_equal(munmap((void *)start_seen.region, start_seen.region_size), 0);
}

/* Nobody else may still run an instruction in it. */
static void test_the_region_stays_while_somebody_is_in_it(void **state) {
    (void)state;
    struct stub_params *p = make_region();
    uint64_t region = p->region, until = clock_mono_ns() + 20 * CLOCK_NS_PER_MS;
    p->out.here = 1;
    p->cancel = 1;
    run(p);
    while (clock_mono_ns() < until) {
        assert_int_equal(__atomic_load_n(&p->phase, __ATOMIC_ACQUIRE), STUB_NOT_BORN);
        usleep(200);
    }
    p->out.here = 0;
    assert_true(goes_away(region));
}

/* Whoever gives signs of life is waited for. */
static void test_a_pulse(void **state) {
    (void)state;
    struct stub_params *p = make_region();
    uint64_t region = p->region, until = clock_mono_ns() + CLOCK_NS_PER_S;
    /* longer than this test may be held up on a busy machine */
    p->go_wait_ns = 500 * CLOCK_NS_PER_MS;
    run(p);
    assert_true(reaches(p, STUB_WAITING));
    for (int32_t pulse = 1; clock_mono_ns() < until; pulse++) {
        __atomic_store_n(&p->pulse, pulse, __ATOMIC_RELEASE);
        if (__atomic_load_n(&p->phase, __ATOMIC_ACQUIRE) != STUB_WAITING)
            break; /* held up ourselves for so long, on a busy machine */
        usleep(200);
    }
    assert_true(goes_away(region));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_file_that_is_no_library),
        cmocka_unit_test(test_cancelled),
        cmocka_unit_test(test_cancelled_at_the_last_moment),
        cmocka_unit_test(test_nobody_comes),
        cmocka_unit_test(test_an_agent_that_is_loaded),
        cmocka_unit_test(test_a_started_agent_owns_the_region),
        cmocka_unit_test(test_the_region_stays_while_somebody_is_in_it),
        cmocka_unit_test(test_a_pulse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
