/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A borrowed thread on a machine that has no processor for it: what is in the way of a stop does not lose it, and who has put
 * himself back in the meantime is not put back once more. The child counts, from its registers, and sees a number twice.
 */
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "inject/borrow.h"

#define ROUNDS 20
#define LONGEST_NS (20 * CLOCK_NS_PER_S)

struct shared {
    atomic_ulong steps, bad, signals;
    atomic_int go; /* begin another program */
};

static struct shared *shared;
static struct target target;
static struct thread thread;
static struct borrow borrow;

static void nap(void) { (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); }

static void on_signal(int number) {
    (void)number;
    (void)atomic_fetch_add(&shared->signals, 1);
}

static void count(void) {
    for (unsigned long own = 0;; own++) {
        if (atomic_load(&shared->go)) {
            (void)execl("/proc/self/exe", "another", "sleeps", (char *)NULL);
            _exit(1);
        }
        if (atomic_exchange(&shared->steps, own + 1) != own)
            (void)atomic_fetch_add(&shared->bad, 1);
        (void)poll(NULL, 0, 2);
    }
}

static pid_t counting_child(void) {
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)signal(SIGUSR1, on_signal);
        count();
    }
    return pid;
}

static void await_more(atomic_ulong *what, unsigned long than) {
    uint64_t until = clock_mono_ns() + LONGEST_NS;
    while (atomic_load(what) <= than) {
        assert_true(clock_mono_ns() < until);
        nap();
    }
}

static int set_up(void **state) {
    (void)state;
    struct err e;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return -1;
    pid_t pid = counting_child();
    thread = (struct thread){.pid = pid, .tid = pid};
    if (pid < 0 || target_init(&target, pid, NULL, &e) != 0 || target_find_symbols(&target, &e) != 0)
        return -1;
    await_more(&shared->steps, 0);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    int status;
    (void)kill(thread.pid, SIGKILL);
    (void)waitpid(thread.pid, &status, __WALL);
    target_fini(&target);
    return munmap(shared, sizeof *shared);
}

/* Nothing but its own counting has happened to it. */
static void check_goes_on(void) {
    await_more(&shared->steps, atomic_load(&shared->steps));
    assert_int_equal(atomic_load(&shared->bad), 0);
    assert_int_equal(kill(thread.pid, 0), 0);
}

static void stop(void) {
    struct err e = {.code = ERR_OK};
    if (thread_stop(&thread, LONGEST_NS, &e) == 0)
        return;
    if (e.code == ERR_ATTACH)
        skip(); /* no ptrace here */
    fail_msg("%s", e.text);
}

static void begin(void) {
    struct err e = {.code = ERR_OK};
    stop();
    assert_int_equal(borrow_begin(&borrow, &target, &thread, clock_mono_ns() + LONGEST_NS, &e), 0);
}

/* The interruption ends its system call, whose end is a stop too: that comes first, and takes the interruption's place. */
static void test_a_stop_in_the_way(void **state) {
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        stop();
        for (int call = 0; call < i % 3; call++) {
            assert_int_equal(thread_run(&thread, PTRACE_SYSCALL), 0);
            assert_int_equal(thread_wait(&thread, LONGEST_NS), THREAD_SYSCALL);
        }
        assert_int_equal(thread_run(&thread, PTRACE_SYSCALL), 0);
        assert_int_equal(thread_interrupt(&thread, LONGEST_NS), 0);
        assert_true(thread.stopped && thread.at_rest);
        thread_release(&thread);
    }
    check_goes_on();
}

static void test_borrowed_and_put_back(void **state) {
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        struct stub_params params = {.entry = 0};
        struct err e;
        begin();
        assert_int_equal(borrow_make_region(&borrow, &params, &e), 0);
        borrow_drop_region(&borrow);
        assert_int_equal(borrow.region, 0);
        borrow_end(&borrow);
        /* Its own calls do not get so deep: what is there is what was there. */
        uint8_t now[SIGRETURN_CHAIN_MAX];
        assert_int_equal(mem_read(&target.mem, borrow.chain.at, now, borrow.chain.len), 0);
        assert_memory_equal(now, borrow.under, borrow.chain.len);
    }
    check_goes_on();
}

/* Nobody has come for so long that it went back through its frames; then we come. */
static void test_who_has_put_himself_back_stays(void **state) {
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        struct stub_params params = {.entry = 0};
        struct err e;
        begin();
        assert_int_equal(borrow_make_region(&borrow, &params, &e), 0);
        unsigned long steps = atomic_load(&shared->steps);
        assert_int_equal(thread_run(&thread, PTRACE_CONT), 0);
        await_more(&shared->steps, steps + 2);
        /* A signal that comes now is the job's. */
        unsigned long signals = atomic_load(&shared->signals);
        assert_int_equal(kill(thread.pid, SIGUSR1), 0);
        borrow_end(&borrow);
        await_more(&shared->signals, signals);
        check_goes_on();
    }
}

/* Does it run the other program, and not in the middle of its beginning? */
static bool sleeps(void) {
    struct procfs_status st;
    struct procfs_syscall call;
    char words[64];
    return procfs_read_file(thread.pid, 0, "cmdline", words, sizeof words) > 8 &&
           strcmp(words, "another") == 0 && procfs_read_status(thread.pid, 0, &st) == 0 && st.state == 'S' &&
           procfs_read_syscall(thread.pid, thread.pid, &call) == 0 && call.nr == SYS_pause;
}

/* Another program has begun where the thread was: it is not touched, neither its memory nor its registers. */
static void test_another_program(void **state) {
    static struct borrow other;
    struct user_regs_struct before, after;
    struct err e = {.code = ERR_OK};
    struct mem now;
    uint64_t until = clock_mono_ns() + LONGEST_NS;
    (void)state;
    atomic_store(&shared->go, 1);
    while (!sleeps()) {
        assert_true(clock_mono_ns() < until);
        nap();
    }
    thread = (struct thread){.pid = thread.pid, .tid = thread.pid};
    assert_int_equal(thread_stop(&thread, LONGEST_NS, &e), 0);
    assert_int_equal(thread_get_regs(&thread, &before), 0);
    uint8_t under[4096], later[4096];
    mem_open_image(&now, thread.pid);
    assert_int_equal(mem_read(&now, before.rsp - sizeof under, under, sizeof under), 0);
    assert_int_equal(borrow_begin(&other, &target, &thread, clock_mono_ns() + LONGEST_NS, &e), -1);
    assert_int_equal(e.code, ERR_LOST);
    assert_non_null(strstr(e.text, "started another program"));
    assert_int_equal(thread_get_regs(&thread, &after), 0);
    assert_memory_equal(&before, &after, sizeof before);
    assert_int_equal(mem_read(&now, before.rsp - sizeof later, later, sizeof later), 0);
    assert_memory_equal(under, later, sizeof under);
    mem_fini(&now);
    thread_release(&thread);
    /* One that keeps the old memory alive does not change that: the mark is not seen where it was written. */
    mem_fini(&target.mem);
    mem_open_image(&target.mem, getpid());
    assert_int_equal(thread_stop(&thread, LONGEST_NS, &e), 0);
    assert_int_not_equal(borrow_begin(&other, &target, &thread, clock_mono_ns() + LONGEST_NS, &e), 0);
    assert_int_equal(thread_get_regs(&thread, &after), 0);
    assert_memory_equal(&before, &after, offsetof(struct user_regs_struct, orig_rax));
    thread_release(&thread);
}

/* It begins while it is traced: it is let go at once, and runs as if nobody had been there. */
static void test_another_program_while_traced(void **state) {
    struct err e;
    uint64_t until = clock_mono_ns() + LONGEST_NS;
    (void)state;
    assert_int_equal(thread_stop(&thread, LONGEST_NS, &e), 0);
    atomic_store(&shared->go, 1);
    enum thread_event event = THREAD_STOPPED;
    while (event != THREAD_GONE) {
        assert_true(clock_mono_ns() < until);
        assert_int_equal(thread_run(&thread, PTRACE_CONT), 0);
        event = thread_wait(&thread, LONGEST_NS);
        assert_int_not_equal(event, THREAD_TIMEOUT);
    }
    assert_true(thread.replaced);
    assert_false(thread.seized);
    while (!sleeps()) {
        assert_true(clock_mono_ns() < until);
        nap();
    }
    struct procfs_status st;
    assert_int_equal(procfs_read_status(thread.pid, 0, &st), 0);
    assert_int_equal(st.tracer_pid, 0);
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "sleeps") == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            (void)syscall(SYS_pause);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_stop_in_the_way, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_borrowed_and_put_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_who_has_put_himself_back_stays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_another_program, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_another_program_while_traced, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
