/* SPDX-License-Identifier: Apache-2.0 */
/* Is there room on a stack: threads of every size, one that has been near its end, and the main thread. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/sampler/stack_headroom.h"
#include "base/clock.h"

#define KIB ((size_t)1024)
#define RESERVED (128 * KIB * KIB) /* below the end of the main thread's stack */

/* A thread that waits, touches the end of its stack when it is told to, and waits again. */
struct worker {
    pthread_t thread;
    pthread_barrier_t barrier;
    void *low;
    size_t size;
    pid_t tid;
};

static void worker_meet(struct worker *w) { (void)pthread_barrier_wait(&w->barrier); }

static void *worker_main(void *arg) {
    struct worker *w = arg;
    pthread_attr_t attr;
    (void)pthread_getattr_np(pthread_self(), &attr);
    (void)pthread_attr_getstack(&attr, &w->low, &w->size);
    (void)pthread_attr_destroy(&attr);
    w->tid = (pid_t)syscall(SYS_gettid);
    worker_meet(w);
    worker_meet(w);
    *(volatile char *)w->low = 1; /* as a deep call would */
    worker_meet(w);
    worker_meet(w);
    return NULL;
}

static void worker_start(struct worker *w, size_t size) {
    pthread_attr_t attr;
    memset(w, 0, sizeof *w);
    assert_int_equal(pthread_barrier_init(&w->barrier, NULL, 2), 0);
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, size), 0);
    assert_int_equal(pthread_create(&w->thread, &attr, worker_main, w), 0);
    assert_int_equal(pthread_attr_destroy(&attr), 0);
    worker_meet(w);
}

static void worker_end(struct worker *w) {
    worker_meet(w);
    assert_int_equal(pthread_join(w->thread, NULL), 0);
    (void)pthread_barrier_destroy(&w->barrier);
}

/* Find it as it is now. */
static struct stack_headroom_stack find(int64_t tid, pthread_t ident) {
    struct stack_headroom_stack stack;
    stack_headroom_forget();
    assert_true(stack_headroom_find(tid, (uint64_t)ident, clock_mono_ns(), &stack));
    return stack;
}

static void check_threads(void **state) {
    static const struct {
        size_t size;
        bool enough;
    } cases[] = {
        {32 * KIB, false}, {64 * KIB, false}, {256 * KIB, true}, {1024 * KIB, true}, {8192 * KIB, true}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct worker w;
        worker_start(&w, cases[i].size);
        struct stack_headroom_stack stack = find(w.tid, w.thread);
        assert_int_equal(stack.low, (uintptr_t)w.low);
        assert_true(stack.high > stack.low && stack.high <= (uintptr_t)w.low + w.size);
        assert_false(stack.grows);
        assert_int_equal(stack.own, stack.low);
        assert_int_equal(stack_headroom_is_enough(&stack), cases[i].enough);
        worker_meet(&w);
        worker_meet(&w);
        assert_false(
            stack_headroom_is_enough(&stack)); /* it has been at the end of its stack, and may be again */
        worker_end(&w);
    }
}

/* What lies below the stack, in the same mapping, is in use: as where guard pages are no mapping of their own. */
static void check_a_stack_within_a_mapping(void **state) {
    const size_t size = 1024 * KIB;
    struct worker w = {.tid = 0};
    pthread_attr_t attr;
    (void)state;
    char *block = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(block, MAP_FAILED);
    memset(block, 1, size);
    assert_int_equal(pthread_barrier_init(&w.barrier, NULL, 2), 0);
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstack(&attr, block + size, size), 0);
    assert_int_equal(pthread_create(&w.thread, &attr, worker_main, &w), 0);
    assert_int_equal(pthread_attr_destroy(&attr), 0);
    worker_meet(&w);
    struct stack_headroom_stack stack = find(w.tid, w.thread);
    assert_int_equal(stack.low, (uintptr_t)block + size);
    assert_int_equal(stack.own, stack.low); /* the memory below is not its own */
    assert_true(stack_headroom_is_enough(&stack));
    worker_meet(&w);
    worker_meet(&w);
    assert_false(stack_headroom_is_enough(&stack));
    worker_end(&w);
    assert_int_equal(munmap(block, 2 * size), 0);
}

static void check_main_thread(void **state) {
    struct rlimit limit;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_STACK, &limit), 0);
    struct stack_headroom_stack stack = find(getpid(), pthread_self());
    assert_true(stack.grows);
    assert_in_range((uintptr_t)&limit, stack.own, stack.high);
    assert_true(stack.own >= stack.low && stack.high - stack.own <= RESERVED);
    if (limit.rlim_cur != RLIM_INFINITY)
        assert_true(stack.high - stack.low <= limit.rlim_cur);
    assert_true(stack_headroom_is_enough(&stack));
    /* As if it ended just below here. */
    stack.low = ((uintptr_t)&limit & ~(uintptr_t)4095) - 8 * KIB;
    assert_false(stack_headroom_is_enough(&stack));
}

static void check_unknown(void **state) {
    struct stack_headroom_stack stack;
    (void)state;
    stack_headroom_forget();
    uint64_t now = clock_mono_ns();
    assert_false(stack_headroom_find(1, 0x1000, now, &stack));
    assert_false(stack_headroom_is_enough(&stack));
    assert_false(
        stack_headroom_find(1, (uint64_t)(uintptr_t)&check_unknown, now, &stack)); /* code is no stack */
    /* What was read before a thread was seen says nothing of it, and is not read again at once. */
    assert_false(stack_headroom_find(getpid(), 0, clock_mono_ns() + CLOCK_NS_PER_S, &stack));
    assert_true(stack_headroom_find(getpid(), 0, now, &stack));
    assert_true(stack_headroom_bytes() > 0);
    stack_headroom_forget();
    assert_int_equal(stack_headroom_bytes(), 0);
}

static void check_needed(void **state) {
    (void)state;
    assert_int_equal(stack_headroom_needed(32 * KIB, 3376), 64 * KIB + 4096);
    assert_int_equal(stack_headroom_needed(8192 * KIB, 3376), 512 * KIB);
    assert_int_equal(stack_headroom_needed(2048 * KIB, 3376), 256 * KIB);
    assert_int_equal(stack_headroom_needed(1024 * KIB, 200 * KIB), 264 * KIB);
    assert_int_equal(stack_headroom_needed((uint64_t)1 << 40, 16384), 512 * KIB);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_threads),     cmocka_unit_test(check_a_stack_within_a_mapping),
        cmocka_unit_test(check_main_thread), cmocka_unit_test(check_unknown),
        cmocka_unit_test(check_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
