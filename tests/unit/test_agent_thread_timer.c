/* SPDX-License-Identifier: Apache-2.0 */
/* Timers on threads' CPU clocks, and the stacks on which their signals are handled. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/sampler/alt_stack.h"
#include "agent/sampler/thread_timer.h"
#include "base/clock.h"

#ifdef __SANITIZE_ADDRESS__
/* Threads have no alternative stack unless they ask for one: the sanitizer would give one to each. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "use_sigaltstack=0"; }
#endif

#define TIMER_VALUE 77
#define BUSY_NS (200 * CLOCK_NS_PER_MS)
#define BUSY_INTERVAL_NS (10 * CLOCK_NS_PER_MS)

static struct {
    volatile long expired, foreign;
    volatile uint64_t cpu_ns; /* the thread's clock when it was last told */
    pid_t tid;
} got;

static void on_timer(int sig, siginfo_t *info, void *context) {
    (void)sig, (void)context;
    bool is_ours = info->si_code == SI_TIMER && info->si_value.sival_int == TIMER_VALUE;
    if (!is_ours || (pid_t)syscall(SYS_gettid) != got.tid) {
        got.foreign++;
        return;
    }
    got.cpu_ns = clock_self_cpu_ns();
    got.expired += 1 + info->si_overrun;
}

static void handle(void (*handler)(int, siginfo_t *, void *), int flags) {
    struct sigaction sa = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    assert_int_equal(sigaction(SIGURG, &sa, NULL), 0);
}

static void use_cpu(uint64_t ns) {
    uint64_t until = clock_self_cpu_ns() + ns;
    while (clock_self_cpu_ns() < until)
        ;
}

static void check_a_timer_counts_the_thread_s_own_time(void **state) {
    struct timespec rest = {.tv_nsec = (long)BUSY_NS};
    (void)state;
    got.tid = (pid_t)syscall(SYS_gettid);
    handle(on_timer, 0);
    assert_in_range(thread_timer_tick_ns(), 100 * CLOCK_NS_PER_US, 20 * CLOCK_NS_PER_MS);
    int timer = thread_timer_create(got.tid, SIGURG, TIMER_VALUE);
    assert_true(timer >= 0);
    uint64_t began_ns = clock_self_cpu_ns();
    assert_int_equal(thread_timer_start(timer, BUSY_INTERVAL_NS, BUSY_INTERVAL_NS), 0);
    /* a sleep is neither counted nor interrupted */
    assert_int_equal(nanosleep(&rest, NULL), 0);
    assert_in_range(got.expired, 0, 1);
    use_cpu(BUSY_NS);
    /* The kernel looks at its ticks, which may all fall into the turns of others: at the next one that does not, all is counted. */
    for (long seen = got.expired; got.expired == seen;)
        ;
    uint64_t due = (got.cpu_ns - began_ns) / BUSY_INTERVAL_NS;
    assert_in_range(due, BUSY_NS / BUSY_INTERVAL_NS, UINT64_MAX);
    assert_in_range(got.expired, due - 1, due + 1);
    thread_timer_delete(timer);
    long before = got.expired;
    use_cpu(BUSY_NS / 4);
    assert_int_equal(got.expired, before);
    assert_int_equal(got.foreign, 0);
    assert_int_equal(thread_timer_create(999999999, SIGURG, TIMER_VALUE), -1);
}

static void *memory;
static enum alt_stack_state was;
static char *ran_at;

static void on_install(int sig, siginfo_t *info, void *context) {
    (void)sig, (void)info;
    ran_at = __builtin_frame_address(0);
    was = alt_stack_install(memory, context);
}

static void interrupt_self(void) {
    assert_int_equal(syscall(SYS_tgkill, getpid(), (pid_t)syscall(SYS_gettid), SIGURG), 0);
}

static stack_t stack_now(void) {
    stack_t now;
    assert_int_equal(sigaltstack(NULL, &now), 0);
    return now;
}

/* A thread has none, then ours, and the next signal is handled there. */
static void *install(void *arg) {
    memory = alt_stack_of((int64_t)syscall(SYS_gettid));
    assert_non_null(memory);
    assert_true(stack_now().ss_flags & SS_DISABLE);
    interrupt_self();
    assert_int_equal(was, ALT_STACK_NONE);
    stack_t now = stack_now();
    assert_ptr_equal(now.ss_sp, memory);
    assert_false(now.ss_flags & SS_DISABLE);
    interrupt_self();
    assert_int_equal(was, ALT_STACK_READY);
    assert_true(ran_at >= (char *)memory && ran_at < (char *)memory + now.ss_size);
    assert_ptr_equal(alt_stack_of((int64_t)syscall(SYS_gettid)), memory);
    if (arg) /* as some runtimes do when a thread ends */
        assert_int_equal(munmap(now.ss_sp, now.ss_size), 0);
    return memory;
}

static void *in_thread(void *(*body)(void *), void *arg) {
    pthread_t thread;
    void *result;
    assert_int_equal(pthread_create(&thread, NULL, body, arg), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    return result;
}

static void check_a_stack_is_installed_and_used_again(void **state) {
    (void)state;
    handle(on_install, SA_ONSTACK);
    void *first = in_thread(install, NULL);
    assert_ptr_equal(in_thread(install, NULL), first);
    (void)in_thread(install, state);
    (void)in_thread(install, NULL); /* the one before is not there any more */
}

static void *keep_own(void *arg) {
    stack_t own = {.ss_size = (size_t)64 * 1024};
    own.ss_sp = malloc(own.ss_size);
    memory = alt_stack_of((int64_t)syscall(SYS_gettid));
    assert_int_equal(sigaltstack(&own, NULL), 0);
    interrupt_self();
    assert_int_equal(was, ALT_STACK_READY);
    assert_ptr_equal(stack_now().ss_sp, own.ss_sp);
    own.ss_flags = SS_DISABLE;
    assert_int_equal(sigaltstack(&own, NULL), 0);
    free(own.ss_sp);
    return arg;
}

static void check_a_stack_of_the_job_stays(void **state) {
    (void)state;
    handle(on_install, SA_ONSTACK);
    (void)in_thread(keep_own, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_a_timer_counts_the_thread_s_own_time),
        cmocka_unit_test(check_a_stack_is_installed_and_used_again),
        cmocka_unit_test(check_a_stack_of_the_job_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
