/* SPDX-License-Identifier: Apache-2.0 */
/* Work in a child that can be left: it is done, it hangs, it crashes, it is interrupted. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "client/guard.h"

#define LONG_MS 60000U
#define MUCH (2ULL << 30)

struct work {
    int number, open_files;
    pid_t pid;
};

static void adds(void *arg) {
    struct work *w = arg;
    w->number++;
    w->pid = getpid();
    for (int fd = 3; fd < 64; fd++)
        w->open_files += fcntl(fd, F_GETFD) >= 0;
}

static void hangs(void *arg) {
    (void)arg;
    for (;;)
        (void)pause();
}

static void crashes(void *arg) {
    (void)arg;
    (void)kill(getpid(), SIGKILL);
}

/* As the injector does: it sees that it is asked to end. */
static void waits_for_sigterm(void *arg) {
    struct work *w = arg;
    sigset_t term;
    int got;
    (void)sigemptyset(&term);
    (void)sigaddset(&term, SIGTERM);
    (void)sigwait(&term, &got);
    w->number = got;
}

static void test_done(void **state) {
    struct work w = {.number = 41};
    (void)state;
    assert_int_equal(guard_run(adds, &w, sizeof w, LONG_MS), GUARD_DONE);
    assert_int_equal(w.number, 42);
    assert_int_not_equal(w.pid, getpid());
    assert_int_equal(w.open_files, 1); /* by which it answers */
    assert_int_equal(waitpid(w.pid, NULL, WNOHANG), -1);
}

static void test_held(void **state) {
    struct work w = {.number = 1};
    uint64_t began = clock_mono_ns();
    (void)state;
    assert_int_equal(guard_run(hangs, &w, sizeof w, 100), GUARD_BLOCKED);
    assert_true(clock_mono_ns() - began < 20 * CLOCK_NS_PER_S);
    assert_int_equal(w.number, 1);
}

static void computes(void *arg) {
    struct work *w = arg;
    for (uint64_t began = clock_self_cpu_ns(); clock_self_cpu_ns() - began < 500 * CLOCK_NS_PER_MS;)
        w->number++;
    w->number = 42;
}

/* One that still computes has been kept from it by others, and is not stuck. */
static void test_busy(void **state) {
    struct work w = {.number = 1};
    (void)state;
    assert_int_equal(guard_run(computes, &w, sizeof w, 50), GUARD_DONE);
    assert_int_equal(w.number, 42);
}

static void test_broken(void **state) {
    struct work w = {.number = 1};
    (void)state;
    assert_int_equal(guard_run(crashes, &w, sizeof w, LONG_MS), GUARD_BROKEN);
    assert_int_equal(w.number, 1);
}

/* The signal is not lost: it is there afterwards. */
static void asked(void (*work)(void *arg), enum guard_end end, int number) {
    struct work w = {.number = 1};
    sigset_t interrupt, kept;
    (void)sigemptyset(&interrupt);
    (void)sigaddset(&interrupt, SIGINT);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &interrupt, &kept), 0);
    assert_int_equal(kill(getpid(), SIGINT), 0);
    uint64_t began = clock_mono_ns();
    assert_int_equal(guard_run(work, &w, sizeof w, LONG_MS), end);
    assert_true(clock_mono_ns() - began < 30 * CLOCK_NS_PER_S);
    assert_int_equal(w.number, number);
    int got = 0;
    assert_int_equal(sigwait(&interrupt, &got), 0);
    assert_int_equal(got, SIGINT);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &kept, NULL), 0);
}

static void test_interrupted(void **state) {
    (void)state;
    asked(waits_for_sigterm, GUARD_DONE, SIGTERM);
    asked(hangs, GUARD_INTERRUPTED, 1);
}

/* It was reaped, or is now: soon, or somewhat later on a machine that is busy. */
static bool is_gone(pid_t child) {
    uint64_t until = clock_mono_ns() + 20 * CLOCK_NS_PER_S;
    pid_t got;
    while ((got = waitpid(child, NULL, WNOHANG)) == 0 && clock_mono_ns() < until)
        (void)nanosleep(&(struct timespec){.tv_nsec = (long)CLOCK_NS_PER_MS}, NULL);
    return got == child || (got < 0 && errno == ECHILD);
}

static void says_two(void *arg, int fd) {
    const int *first = arg;
    for (int n = *first; n < *first + 2; n++)
        (void)write(fd, &n, sizeof n);
}

static void says_nothing(void *arg, int fd) {
    (void)fd;
    hangs(arg);
}

/* Message by message, and then the end; it is gone when it is stopped. */
static void test_says(void **state) {
    struct guard g;
    int first = 7, n;
    (void)state;
    assert_int_equal(guard_start(&g, says_two, &first, getpid(), LONG_MS), 0);
    pid_t child = g.child;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(read(g.fd, &n, sizeof n), sizeof n);
        assert_int_equal(n, first + i);
    }
    assert_int_equal(read(g.fd, &n, sizeof n), 0);
    guard_stop(&g, getpid());
    assert_true(is_gone(child));
    assert_int_equal(g.fd, -1);
    guard_stop(&g, 0); /* there is none any more */
}

/* So much memory that to give it back takes longer than a child that was killed is waited for. */
static void has_much(void *arg, int fd) {
    char *memory =
        mmap(NULL, MUCH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    (void)arg;
    if (memory != MAP_FAILED)
        (void)write(fd, memory, 1);
    hangs(NULL);
}

/* Who is still dying, as on a machine that others keep busy, is not held up: the same process may be looked at again at once. */
static void test_dies_slowly(void **state) {
    struct guard g;
    struct sysinfo machine;
    char byte;
    (void)state;
    if (sysinfo(&machine) != 0 || (machine.freeram + machine.bufferram) * machine.mem_unit < 2 * MUCH) {
        print_message("needs memory: %llu bytes\n", 2 * MUCH);
        skip();
    }
    assert_int_equal(guard_start(&g, has_much, NULL, getpid(), LONG_MS), 0);
    assert_int_equal(read(g.fd, &byte, 1), 1);
    pid_t child = g.child;
    guard_stop(&g, getpid());
    assert_false(guard_is_blocked(getpid()));
    assert_true(is_gone(child));
}

static void test_is_stopped(void **state) {
    struct guard g;
    (void)state;
    assert_int_equal(guard_start(&g, says_nothing, NULL, getpid(), LONG_MS), 0);
    pid_t child = g.child;
    guard_stop(&g, getpid());
    assert_true(is_gone(child));
    assert_false(guard_is_blocked(getpid())); /* nothing of the kernel's held it */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_done),       cmocka_unit_test(test_says),
        cmocka_unit_test(test_is_stopped), cmocka_unit_test(test_dies_slowly),
        cmocka_unit_test(test_held),       cmocka_unit_test(test_busy),
        cmocka_unit_test(test_broken),     cmocka_unit_test(test_interrupted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
