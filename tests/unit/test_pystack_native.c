/* SPDX-License-Identifier: Apache-2.0 */
/* Native stacks of this process, of threads that run and of threads that sleep, unwound from copies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "pystack/native.h"
#include "pystack/native_label.h"

#define DEPTH 12
#define WAIT_NS (20 * CLOCK_NS_PER_S)

static struct native_copy copy;
static struct model_frame frames[NATIVE_MAX_FRAMES];
static int copied, ready, end;
static pid_t tid;

__attribute__((noinline)) static int descend(int depth, int (*last)(void)) {
    int result = depth > 0 ? descend(depth - 1, last) : last();
    __asm__ volatile("" ::: "memory"); /* the call is not the last thing done */
    return result + 1;
}

static int spin(void) {
    unsigned n = 0;
    __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&end, __ATOMIC_RELAXED))
        n++;
    return (int)n;
}

static int doze(void) {
    __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&end, __ATOMIC_RELAXED))
        (void)nanosleep(&(struct timespec){.tv_sec = 3600}, NULL);
    return 0;
}

static void *thread_main(void *arg) {
    tid = (pid_t)syscall(SYS_gettid);
    (void)descend(DEPTH, (int (*)(void))(uintptr_t)arg);
    return NULL;
}

static void on_signal(int sig, siginfo_t *info, void *context) {
    (void)info;
    if (sig == SIGUSR1) {
        native_copy_context(&copy, context, getpid());
        __atomic_store_n(&copied, 1, __ATOMIC_RELEASE);
    }
}

static void wait_for(int *flag) {
    uint64_t until = clock_mono_ns() + WAIT_NS;
    while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE)) {
        assert_true(clock_mono_ns() < until);
        (void)usleep(200);
    }
}

static pthread_t start(int (*last)(void)) {
    pthread_t thread;
    struct sigaction sa = {.sa_flags = SA_SIGINFO | SA_RESTART};
    sa.sa_sigaction = on_signal;
    copied = ready = end = 0;
    assert_int_equal(sigaction(SIGUSR1, &sa, NULL), 0);
    sa.sa_flags = SA_SIGINFO; /* ends a sleep */
    assert_int_equal(sigaction(SIGUSR2, &sa, NULL), 0);
    assert_int_equal(pthread_create(&thread, NULL, thread_main, (void *)(uintptr_t)last), 0);
    wait_for(&ready);
    return thread;
}

static void finish(pthread_t thread) {
    __atomic_store_n(&end, 1, __ATOMIC_RELEASE);
    (void)pthread_kill(thread, SIGUSR2);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* Frames that return into descend(), by their addresses: all but the innermost are the same. */
static size_t count_recursion(size_t n) {
    size_t most = 0;
    for (size_t i = 0; i < n; i++) {
        size_t same = 0;
        for (size_t k = 0; k < n; k++)
            same += frames[k].module == frames[i].module && frames[k].address == frames[i].address;
        most = same > most ? same : most;
    }
    return most;
}

static bool is_whole(size_t n) { return n > 0 && (frames[n - 1].module || frames[n - 1].address); }

static void test_a_thread_that_runs(void **state) {
    struct native *native = native_new(0);
    pthread_t thread = start(spin);
    size_t first = 0;
    (void)state;
    for (int i = 0; i < 50; i++) {
        copied = 0;
        (void)syscall(SYS_tgkill, getpid(), tid, SIGUSR1);
        wait_for(&copied);
        size_t n = native_unwind(native, &copy, frames, NATIVE_MAX_FRAMES);
        assert_true(n >= DEPTH + 2);
        assert_true(is_whole(n));
        assert_true(count_recursion(n) >= DEPTH);
        assert_true(frames[0].module && strstr(frames[0].module, "test_pystack_native"));
        for (size_t k = 0; k < n; k++)
            assert_int_equal(frames[k].kind, MODEL_FRAME_NATIVE);
        first = i == 0 ? copy.stack_len : first;
        assert_true(i == 0 || copy.stack_len <= first); /* no more is copied than there is */
    }
    assert_true(copy.stack_len < NATIVE_STACK_MAX);
    assert_int_equal(native_get_stats(native)->cut, 0);
    assert_true(native_bytes(native) < 4 * 1024 * 1024);
    finish(thread);
    native_free(native);
}

static void test_a_thread_that_sleeps(void **state) {
    struct native *native = native_new(0);
    pthread_t thread = start(doze);
    uint64_t until = clock_mono_ns() + WAIT_NS;
    size_t n = 0;
    (void)state;
    while (native_copy_asleep(&copy, 0, tid) != 0) {
        assert_true(clock_mono_ns() < until);
        (void)usleep(1000);
    }
    native_refresh(native, 0);
    n = native_unwind(native, &copy, frames, NATIVE_MAX_FRAMES);
    assert_true(n >= DEPTH + 2);
    assert_true(is_whole(n));
    assert_true(count_recursion(n) >= DEPTH);
    finish(thread);
    native_free(native);
}

static void test_one_that_runs_does_not_sleep(void **state) {
    pthread_t thread = start(spin);
    (void)state;
    assert_int_equal(native_copy_asleep(&copy, 0, tid), -1);
    finish(thread);
    assert_int_equal(native_copy_asleep(&copy, 0, tid), -1); /* gone */
}

/* A stack deeper than what is copied, and one with nothing that makes sense, end in the mark. */
static void test_what_cannot_be_followed(void **state) {
    struct native *native = native_new(0);
    pthread_t thread = start(spin);
    (void)state;
    (void)syscall(SYS_tgkill, getpid(), tid, SIGUSR1);
    wait_for(&copied);
    finish(thread);
    copy.stack_len = 256;
    size_t n = native_unwind(native, &copy, frames, NATIVE_MAX_FRAMES);
    assert_true(n >= 2);
    assert_false(is_whole(n));
    assert_int_equal(copy.stack_end, 0);
    memset(copy.stack, 0x5a, sizeof copy.stack);
    n = native_unwind(native, &copy, frames, NATIVE_MAX_FRAMES);
    assert_true(n >= 2 && !is_whole(n));
    copy.regs[NATIVE_RIP] = 8;
    assert_int_equal(native_unwind(native, &copy, frames, NATIVE_MAX_FRAMES), 0);
    copy.known = 0;
    assert_int_equal(native_unwind(native, &copy, frames, NATIVE_MAX_FRAMES), 0);
    native_free(native);
}

static void test_a_bad_stack_pointer_is_not_read(void **state) {
    static const uint64_t bad[] = {0, 64, 1ULL << 47, UINT64_MAX - 4, 0xdead0000};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        copy.regs[NATIVE_RSP] = bad[i];
        copy.stack_end = 0;
        native_copy_stack(&copy, getpid());
        assert_int_equal(copy.stack_len, 0);
    }
}

/* The room for frames is never exceeded. */
static void test_a_deep_stack_in_little_room(void **state) {
    struct native *native = native_new(0);
    pthread_t thread = start(spin);
    (void)state;
    (void)syscall(SYS_tgkill, getpid(), tid, SIGUSR1);
    wait_for(&copied);
    for (size_t cap = 0; cap < 12; cap++) {
        memset(frames, 0x77, sizeof frames);
        size_t n = native_unwind(native, &copy, frames, cap);
        assert_true(n <= cap);
        assert_int_equal(frames[cap].line, 0x77777777);
    }
    finish(thread);
    native_free(native);
}

/* ---- names ---- */

static struct model_frame frame_of(struct native_maps *maps, uint64_t addr) {
    const struct native_module *m = native_maps_module(maps, addr);
    assert_non_null(m);
    return (struct model_frame){.kind = MODEL_FRAME_NATIVE, .module = m->path, .address = addr - m->elf.bias};
}

static void test_what_is_exported_has_a_name(void **state) {
    enum native_role roles[4];
    struct native *n = native_new(0);
    struct native_labels *labels = native_labels_new();
    (void)state;
    assert_non_null(n);
    assert_non_null(labels);
    native_refresh(n, 0);
    struct native_maps *maps = native_get_maps(n);
    uint64_t at = (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "strtol");
    for (int again = 0; again < 3; again++) { /* found, remembered, found again */
        struct model_frame list[] = {frame_of(maps, at + 2),
                                     frame_of(maps, at),
                                     {.kind = MODEL_FRAME_NATIVE},
                                     {.kind = MODEL_FRAME_NATIVE, .address = 4096}};
        native_label(labels, maps, list, 4, roles);
        assert_non_null(list[0].func);
        assert_non_null(strstr(list[0].func, "strtol"));
        assert_string_equal(list[0].func, list[1].func);
        assert_true(roles[0] == NATIVE_ROLE_PLAIN && roles[1] == NATIVE_ROLE_PLAIN);
        assert_true(roles[2] == NATIVE_ROLE_TRUNCATED && !list[2].func);
        assert_true(roles[3] == NATIVE_ROLE_PLAIN && !list[3].func);
        if (again == 1)
            native_labels_forget(labels);
    }
    struct model_frame private = frame_of(maps, (uint64_t)(uintptr_t)&frame_of);
    native_label(labels, maps, &private, 1, roles);
    assert_null(private.func);
    assert_true(native_labels_bytes(labels) > 0);
    native_labels_free(labels);
    native_free(n);
}

static void test_more_addresses_than_are_remembered(void **state) {
    enum native_role roles[NATIVE_MAX_FRAMES];
    struct native *n = native_new(0);
    struct native_labels *labels = native_labels_new();
    (void)state;
    native_refresh(n, 0);
    struct native_maps *maps = native_get_maps(n);
    uint64_t at = (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "strtol");
    size_t bytes = 0;
    for (uint64_t round = 0; round < 64; round++) {
        for (uint64_t i = 0; i < NATIVE_MAX_FRAMES; i++)
            frames[i] = frame_of(maps, at + round * NATIVE_MAX_FRAMES + i);
        native_label(labels, maps, frames, NATIVE_MAX_FRAMES, roles);
        bytes = native_labels_bytes(labels) > bytes ? native_labels_bytes(labels) : bytes;
        if (round == 0)
            assert_non_null(frames[0].func);
    }
    assert_true(bytes < (size_t)2 * 1024 * 1024);
    native_labels_free(labels);
    native_free(n);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_thread_that_runs),
        cmocka_unit_test(test_a_thread_that_sleeps),
        cmocka_unit_test(test_one_that_runs_does_not_sleep),
        cmocka_unit_test(test_what_cannot_be_followed),
        cmocka_unit_test(test_a_bad_stack_pointer_is_not_read),
        cmocka_unit_test(test_a_deep_stack_in_little_room),
        cmocka_unit_test(test_what_is_exported_has_a_name),
        cmocka_unit_test(test_more_addresses_than_are_remembered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
