/* SPDX-License-Identifier: Apache-2.0 */
/* A child is stopped, sent elsewhere, and goes back through the frame alone: registers, vectors and mask as they were. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "inject/syscall_restart.h"
#include "inject/sigreturn_chain.h"
#include "inject/thread.h"

#define WAIT_NS (10 * CLOCK_NS_PER_S)

/* The same code in the child: it was forked. */
__asm__(".text\n"
        ".globl frame_test_sigreturn\n"
        "frame_test_sigreturn:\n"
        "    mov $15, %eax\n"
        "    syscall\n");
extern const char frame_test_sigreturn[];

/* Computes in registers until `go_on` is 0. 0 when neither the numbers nor the signal mask suffered. */
static int child_work(volatile int *go_on) {
    double a = 1.0, b = 2.0;
    sigset_t now;
    while (*go_on) {
        a = a * 0.5 + b * 0.25;
        b = b * 0.5 + a * 0.5 + 0.125;
    }
    if (sigprocmask(SIG_BLOCK, NULL, &now) != 0 || sigismember(&now, SIGTERM) != 1 ||
        sigismember(&now, SIGINT) != 0)
        return 2;
    return a == a && b == b && a < 100 && b < 100 ? 0 : 3;
}

static void test_sizes(void **state) {
    (void)state;
    assert_true(frame_size(2696) > 2696 + 440);
    for (uint64_t sp = 0x7fff00000000; sp < 0x7fff00000000 + 256; sp += 8) {
        uint64_t at = frame_place(sp, 2696);
        assert_int_equal(at % FRAME_ALIGN, 0);
        assert_true(at + frame_size(2696) <= sp - 128); /* x86-64 psABI, 3.2.2: the red zone */
    }
}

static void test_refuses_nonsense(void **state) {
    static uint8_t buf[FRAME_MAX], xstate[THREAD_XSTATE_MAX];
    struct user_regs_struct r = {0};
    (void)state;
    assert_int_equal(frame_build(buf, 0x1001, &r, xstate, 2696, 0, 0), -1); /* not aligned */
    assert_int_equal(frame_build(buf, 0x1000, &r, xstate, 100, 0, 0), -1);  /* no whole vector state */
    assert_int_equal(frame_build(buf, 0x1000, &r, xstate, FRAME_MAX, 0, 0), -1);
}

static volatile int go_on = 1;

/* A child at work with a mask of its own, stopped; skips where it may not be. */
static void start_child(struct thread *t) {
    struct err e = {0};
    pid_t pid = fork();
    if (pid == 0) {
        sigset_t set;
        (void)sigemptyset(&set);
        (void)sigaddset(&set, SIGTERM);
        (void)sigprocmask(SIG_SETMASK, &set, NULL);
        _exit(child_work(&go_on));
    }
    *t = (struct thread){.pid = pid, .tid = pid};
    if (thread_stop(t, WAIT_NS, &e) != 0) {
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
        print_message("needs ptrace: %s\n", e.text);
        skip();
    }
}

/* Into rt_sigreturn with the frame at `at`, everything else different from what the frame says; to the call's end. */
static void go_astray(struct thread *t, const struct user_regs_struct *regs, const uint8_t *xstate, size_t n,
                      uint64_t at) {
    static uint8_t other[THREAD_XSTATE_MAX];
    struct user_regs_struct away = *regs;
    away.rbx = away.rbp = away.r12 = away.r13 = away.r14 = away.r15 = away.rdi = 0x5555;
    away.rip = (uint64_t)(uintptr_t)frame_test_sigreturn;
    away.rsp = at + 8; /* as after popping the first word */
    away.orig_rax = ~0ULL;
    assert_int_equal(thread_set_regs(t, &away), 0);
    assert_int_equal(thread_set_mask(t, ~0ULL), 0);
    memcpy(other, xstate, n);
    memset(other + 160, 0xee, 256); /* the xmm registers */
    assert_int_equal(thread_set_xstate(t, other, n), 0);
    for (int stops = 0; stops < 2; stops++) {
        assert_int_equal(thread_run(t, PTRACE_SYSCALL), 0);
        assert_int_equal(thread_wait(t, WAIT_NS), THREAD_SYSCALL);
    }
}

static void test_the_way_back(void **state) {
    static uint8_t buf[FRAME_MAX], xstate[THREAD_XSTATE_MAX], after[THREAD_XSTATE_MAX];
    struct user_regs_struct regs, back;
    struct mem mem;
    uint64_t mask, mask_after;
    struct thread t;
    int stop = 0, status = 0;
    (void)state;
    start_child(&t);
    assert_int_equal(thread_get_regs(&t, &regs), 0);
    ssize_t n = thread_get_xstate(&t, xstate, sizeof xstate);
    assert_true(n > 0);
    assert_int_equal(thread_get_mask(&t, &mask), 0);
    uint64_t at = frame_place(regs.rsp, (size_t)n);
    struct user_regs_struct resume = regs;
    mem_open_image(&mem, t.pid);
    syscall_restart_resolve(&mem, 0, &resume);
    assert_int_equal(
        frame_build(buf, at, &resume, xstate, (size_t)n, mask, (uint64_t)(uintptr_t)frame_test_sigreturn), 0);
    assert_int_equal(mem_write(&mem, at, buf, frame_size((size_t)n)), 0);
    go_astray(&t, &regs, xstate, (size_t)n, at);

    assert_int_equal(thread_get_regs(&t, &back), 0);
    back.orig_rax = resume.orig_rax;
    assert_memory_equal(&back, &resume, sizeof resume);
    assert_int_equal(thread_get_mask(&t, &mask_after), 0);
    assert_int_equal(mask_after, mask);
    assert_int_equal(thread_get_xstate(&t, after, sizeof after), n);
    assert_memory_equal(after, xstate, 464); /* x87, MXCSR, xmm */
    assert_memory_equal(after + 576, xstate + 576, (size_t)n - 576);

    assert_int_equal(mem_write(&mem, (uint64_t)(uintptr_t)&go_on, &stop, sizeof stop), 0);
    pid_t pid = t.pid;
    thread_release(&t);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_refuses_nonsense),
        cmocka_unit_test(test_the_way_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
