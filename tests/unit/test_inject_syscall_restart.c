/* SPDX-License-Identifier: Apache-2.0 */
/* How an interrupted call goes on through a signal frame: as the kernel would do it, x86 goes back over the two bytes of the
 * syscall instruction. And when a thread is on its way through the frames, when back already. */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "inject/syscall_restart.h"
#include "inject/sigreturn_chain.h"

#define RESTARTBLOCK (-516LL)

/* mov $nr, %eax; syscall */
static const uint8_t code_poll[] = {0xb8, SYS_poll, 0, 0, 0, 0x0f, 0x05};
static const uint8_t code_sleep[] = {0xb8, SYS_clock_nanosleep, 0, 0, 0, 0x0f, 0x05};
static const uint8_t code_other[] = {0x89, SYS_poll, 0, 0, 0, 0x0f, 0x05};

static struct user_regs_struct after(const uint8_t *code, long long rax, long long orig_rax) {
    return (struct user_regs_struct){.rip = (uint64_t)(uintptr_t)code + sizeof code_poll,
                                     .rax = (unsigned long long)rax,
                                     .orig_rax = (unsigned long long)orig_rax};
}

static long call;

static struct user_regs_struct resolved(struct user_regs_struct r) {
    struct mem mem;
    mem_init_process(&mem, getpid());
    syscall_restart_resolve(&mem, call, &r);
    mem_fini(&mem);
    return r;
}

static void test_calls_are_made_again(void **state) {
    static const int codes[] = {512, 513, 514, 516};
    (void)state;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        struct user_regs_struct r = resolved(after(code_poll, -codes[i], SYS_poll));
        assert_int_equal(r.rip, (uint64_t)(uintptr_t)code_poll + 5);
        assert_int_equal(r.rax, SYS_poll);
        assert_int_equal((int64_t)r.orig_rax, -1);
    }
}

static void test_what_has_ended_is_not_made_again(void **state) {
    (void)state;
    struct user_regs_struct ended = resolved(after(code_poll, -EINTR, SYS_poll));
    assert_int_equal(ended.rip, (uint64_t)(uintptr_t)code_poll + 7);
    assert_int_equal((int64_t)ended.rax, -EINTR);
    struct user_regs_struct running = resolved(after(code_poll, -512, -1));
    assert_int_equal(running.rip,
                     (uint64_t)(uintptr_t)code_poll + 7); /* no call: the value is the program's own */
    assert_int_equal((int64_t)running.rax, -512);
}

/* restart_syscall means nothing to one who comes through rt_sigreturn: the kernel has forgotten what it was. */
static void test_a_second_interruption(void **state) {
    (void)state;
    struct user_regs_struct r = resolved(after(code_poll, RESTARTBLOCK, SYS_restart_syscall));
    assert_int_equal(r.rip, (uint64_t)(uintptr_t)code_poll + 5);
    assert_int_equal(r.rax, SYS_poll);
    r = resolved(after(code_other, RESTARTBLOCK, SYS_restart_syscall));
    assert_int_equal(r.rip, (uint64_t)(uintptr_t)code_other + 7);
    assert_int_equal((int64_t)r.rax, -EINTR); /* not known which it was: said so, not made up */
    call = SYS_futex;
    r = resolved(after(code_other, RESTARTBLOCK, SYS_restart_syscall));
    call = 0;
    assert_int_equal(r.rax, SYS_futex);
}

static void test_the_time_that_is_left(void **state) {
    (void)state;
    struct user_regs_struct r = after(code_sleep, RESTARTBLOCK, SYS_restart_syscall);
    r.rdi = CLOCK_MONOTONIC;
    r.rdx = 0x1000;
    r.r10 = 0x2000;
    r = resolved(r);
    assert_int_equal(r.rax, SYS_clock_nanosleep);
    assert_int_equal(r.rdx, 0x2000); /* where the kernel has written it */
    r = after(code_sleep, RESTARTBLOCK, SYS_clock_nanosleep);
    r.rsi = TIMER_ABSTIME;
    r.rdx = 0x1000;
    r.r10 = 0x2000;
    assert_int_equal(resolved(r).rdx, 0x1000);
    r = after(code_sleep, RESTARTBLOCK, SYS_nanosleep);
    r.rdi = 0x1000;
    assert_int_equal(resolved(r).rdi, 0x1000); /* nobody asked for it */
    r.rsi = 0x3000;
    assert_int_equal(resolved(r).rdi, 0x3000);
}

static void test_on_the_way_back(void **state) {
    static struct sigreturn_chain c;
    (void)state;
    assert_int_equal(sigreturn_chain_place(&c, 0x7fff00001234, 2696, 0x401000, 0x402000), 0);
    assert_true(c.back + frame_size(2696) <= 0x7fff00001234 - FRAME_RED_ZONE);
    assert_int_equal(c.back % FRAME_ALIGN, 0);
    assert_int_equal(c.at + SIGRETURN_CHAIN_HEAD, c.back);
    c.mask = 0x55;
    struct user_regs_struct r = {.rip = 0x401002, .rsp = c.back};
    assert_true(sigreturn_chain_is_intact(&c, &r, 0x55));
    assert_false(sigreturn_chain_is_intact(
        &c, &r, 0)); /* the mask is the last thing to be restored, with everything else */
    c.mask |= 3ULL << 31;
    assert_true(sigreturn_chain_is_intact(&c, &r, 0x55)); /* libc's own signals */
    r.rsp = c.release;
    assert_true(sigreturn_chain_is_intact(&c, &r, 0x5555)); /* one more was put off */
    r.rsp = c.release + 16;
    assert_false(sigreturn_chain_is_intact(&c, &r, 0x55));
    r = (struct user_regs_struct){.rip = 0x402007, .rsp = c.back + 8};
    assert_true(sigreturn_chain_is_intact(&c, &r, 0x55));
    r.rip = 0x400fff;
    assert_false(sigreturn_chain_is_intact(&c, &r, 0x55));
    assert_int_equal(sigreturn_chain_place(&c, 0x7fff00001234, FRAME_MAX, 0x401000, 0x402000), -1);
}

static uint64_t bit(int sig) { return 1ULL << (sig - 1); }

/* A call that our stop has ended goes on unless a signal came that does something. */
static void test_wanted_signals(void **state) {
    (void)state;
    struct procfs_status st = {.sig_pending = bit(SIGUSR1)};
    assert_int_equal(syscall_restart_wanted_signals(&st), bit(SIGUSR1));
    st.sig_blocked = bit(SIGUSR1);
    assert_int_equal(syscall_restart_wanted_signals(&st), 0);
    st = (struct procfs_status){.sig_pending = bit(SIGUSR1), .sig_ignored = bit(SIGUSR1)};
    assert_int_equal(syscall_restart_wanted_signals(&st), 0);
    st = (struct procfs_status){.sig_shared_pending = bit(SIGCHLD) | bit(SIGWINCH) | bit(SIGURG)};
    assert_int_equal(syscall_restart_wanted_signals(&st), 0);
    st.sig_caught = bit(SIGCHLD);
    assert_int_equal(syscall_restart_wanted_signals(&st), bit(SIGCHLD));
    st = (struct procfs_status){.sig_shared_pending = bit(SIGTSTP) | bit(SIGTERM)};
    assert_int_equal(syscall_restart_wanted_signals(&st), bit(SIGTSTP) | bit(SIGTERM));
}

static struct procfs_syscall call_of(long nr, uint64_t fd, uint64_t second, uint64_t third, uint64_t fourth) {
    return (struct procfs_syscall){.nr = nr, .args = {fd, second, third, fourth}};
}

static bool is_partial(struct procfs_syscall c) { return syscall_restart_is_partial(getpid(), &c); }

static void test_calls_that_may_be_partly_done(void **state) {
    int fds[2], event = eventfd(0, 0);
    (void)state;
    assert_int_equal(pipe(fds), 0);
    uint64_t to = (uint64_t)fds[1];
    assert_true(is_partial(call_of(SYS_write, to, 0, PIPE_BUF + 1, 0)));
    assert_false(is_partial(call_of(SYS_write, to, 0, PIPE_BUF, 0))); /* all or nothing */
    assert_false(is_partial(call_of(SYS_write, (uint64_t)event, 0, 8, 0)));
    assert_true(is_partial(call_of(SYS_write, 9999, 0, 1, 0))); /* of what kind is not known */
    assert_true(is_partial(call_of(SYS_sendto, 0, 0, 1, 0)));
    assert_true(is_partial(call_of(SYS_recvfrom, 0, 0, 1, MSG_WAITALL)));
    assert_false(is_partial(call_of(SYS_recvfrom, 0, 0, 1, 0)));
    assert_true(is_partial(call_of(SYS_recvmsg, 0, 0, MSG_WAITALL, 0)));
    assert_false(is_partial(call_of(SYS_read, (uint64_t)fds[0], 0, 1 << 20, 0)));
    assert_false(is_partial(call_of(SYS_futex, 0, 0, 0, 0)));
    (void)close(fds[0]);
    (void)close(fds[1]);
    (void)close(event);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wanted_signals),
        cmocka_unit_test(test_calls_are_made_again),
        cmocka_unit_test(test_calls_that_may_be_partly_done),
        cmocka_unit_test(test_what_has_ended_is_not_made_again),
        cmocka_unit_test(test_a_second_interruption),
        cmocka_unit_test(test_the_time_that_is_left),
        cmocka_unit_test(test_on_the_way_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
