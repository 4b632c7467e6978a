/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stopping one thread for a moment: it stands still and goes on, signals and waiting calls take their course, one that cannot
 * stop now is let go when it does, and who is traced already is refused.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "inject/stop.h"

#define LONGEST_NS (10 * CLOCK_NS_PER_S)

/* What the child does and what came of it, shared with it. */
struct shared {
    atomic_ulong steps, signals;
    atomic_int result;
    atomic_bool ready, end;
};

static struct shared *shared;

static int set_up(void **state) {
    (void)state;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared == MAP_FAILED ? -1 : 0;
}

static int tear_down(void **state) {
    (void)state;
    return munmap(shared, sizeof *shared);
}

static void nap(void) { (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); }

static pid_t child_that(void (*fn)(void)) {
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed test leaves none behind */
        fn();
        _exit(0);
    }
    assert_true(pid > 0);
    uint64_t end = clock_mono_ns() + LONGEST_NS;
    while (!shared->ready && clock_mono_ns() < end)
        nap();
    assert_true(shared->ready);
    return pid;
}

static void bury(pid_t pid) {
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, __WALL), pid);
}

static char state_of(pid_t pid) {
    struct procfs_stat st;
    return procfs_read_stat(pid, pid, &st) == 0 ? st.state : '?';
}

static void wait_for_steps(unsigned long from) {
    uint64_t end = clock_mono_ns() + LONGEST_NS;
    while (shared->steps == from && clock_mono_ns() < end)
        nap();
    assert_true(shared->steps > from);
}

/* Stop it, however long it waits for a CPU on which it could. */
static void stop_surely(struct stop *s, pid_t pid) {
    uint64_t end = clock_mono_ns() + LONGEST_NS;
    while (stop_thread(s, pid) != 0) {
        assert_true(clock_mono_ns() < end);
        while (stop_tend(s) && clock_mono_ns() < end)
            nap();
    }
}

static void spin(void) {
    shared->ready = true;
    while (!shared->end)
        shared->steps++;
}

static void check_stands_still(void **state) {
    (void)state;
    struct stop s;
    pid_t pid = child_that(spin);
    stop_init(&s, pid);
    for (int i = 0; i < 20; i++) {
        wait_for_steps(shared->steps);
        stop_surely(&s, pid);
        assert_int_equal(state_of(pid), 't');
        unsigned long steps = shared->steps;
        nap();
        assert_int_equal(shared->steps, steps);
        assert_true(stop_release(&s) >= CLOCK_NS_PER_MS);
        assert_true(state_of(pid) != 't');
    }
    assert_int_equal(s.stops, 20);
    assert_false(stop_tend(&s));
    bury(pid);
}

static void on_signal(int number) {
    (void)number;
    shared->signals++;
}

static void signal_itself(void) {
    (void)signal(SIGUSR1, on_signal);
    shared->ready = true;
    while (!shared->end) {
        (void)raise(SIGUSR1);
        shared->steps++;
    }
    shared->result = shared->signals == shared->steps ? 1 : -1;
}

static void check_signals_arrive(void **state) {
    (void)state;
    struct stop s;
    int status;
    pid_t pid = child_that(signal_itself);
    stop_init(&s, pid);
    for (int i = 0; i < 300; i++) {
        stop_surely(&s, pid);
        (void)stop_release(&s);
    }
    shared->end = true;
    assert_int_equal(waitpid(pid, &status, __WALL), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(shared->result, 1);
}

static int wake_pipe[2];

static void wait_in_epoll(void) {
    struct epoll_event ev = {.events = EPOLLIN};
    int fd = epoll_create1(0);
    int added = epoll_ctl(fd, EPOLL_CTL_ADD, wake_pipe[0], &ev);
    shared->ready = true;
    int rc = epoll_wait(fd, &ev, 1, -1);
    shared->result = added != 0 || rc < 0 ? -errno : rc;
}

static void check_waiting_call_goes_on(void **state) {
    (void)state;
    struct stop s;
    assert_int_equal(pipe(wake_pipe), 0);
    pid_t pid = child_that(wait_in_epoll);
    uint64_t end = clock_mono_ns() + LONGEST_NS;
    while (state_of(pid) != 'S' && clock_mono_ns() < end)
        nap();
    stop_init(&s, pid);
    stop_surely(&s, pid);
    assert_true(stop_release(&s) > 0);
    assert_int_equal(write(wake_pipe[1], "", 1), 1);
    assert_int_equal(waitpid(pid, NULL, __WALL), pid);
    assert_int_equal(shared->result, 1);
    (void)close(wake_pipe[0]);
    (void)close(wake_pipe[1]);
}

#define MANY_BYTES 1000000

static char many[MANY_BYTES];

static void write_many(void) {
    shared->ready = true;
    shared->result = (int)write(wake_pipe[1], many, sizeof many);
}

/* A write that has begun would end there with what it has written. */
static void check_a_begun_write_is_not_cut(void **state) {
    (void)state;
    struct stop s;
    int left = MANY_BYTES, begun = 0;
    assert_int_equal(pipe(wake_pipe), 0);
    pid_t pid = child_that(write_many);
    uint64_t end = clock_mono_ns() + LONGEST_NS;
    while ((ioctl(wake_pipe[0], FIONREAD, &begun) != 0 || begun == 0 || state_of(pid) != 'S') &&
           clock_mono_ns() < end)
        nap();
    stop_init(&s, pid);
    assert_int_equal(stop_thread(&s, pid), -1);
    assert_int_equal(s.refused, 1);
    (void)close(wake_pipe[1]); /* ends, too, if the child has written less and is gone */
    while (left > 0) {
        ssize_t n = read(wake_pipe[0], many, sizeof many);
        if (n <= 0)
            break;
        left -= (int)n;
    }
    assert_int_equal(waitpid(pid, NULL, __WALL), pid);
    assert_int_equal(shared->result, MANY_BYTES);
    (void)close(wake_pipe[0]);
}

static int late_pipe[2];

/* The parent of a vfork waits in a way that nothing but a fatal signal interrupts. */
static void wait_for_vfork(void) {
    (void)close(late_pipe[1]);
    shared->ready = true;
    pid_t grandchild = vfork();
    if (grandchild == 0) {
        char byte;
        ssize_t n = read(late_pipe[0], &byte, 1);
        _exit(n < 0);
    }
    spin();
}

static void check_late_one_is_let_go(void **state) {
    (void)state;
    struct stop s;
    assert_int_equal(pipe(late_pipe), 0);
    pid_t pid = child_that(wait_for_vfork);
    (void)close(late_pipe[0]);
    uint64_t end = clock_mono_ns() + LONGEST_NS;
    while (state_of(pid) != 'D' && clock_mono_ns() < end)
        nap();
    if (state_of(pid) != 'D')
        skip(); /* a kernel that shows this wait otherwise */
    stop_init(&s, pid);
    assert_int_equal(stop_thread(&s, pid), -1);
    assert_true(stop_tend(&s));
    assert_int_equal(stop_thread(&s, pid), -1); /* it is ours already */
    assert_int_equal(s.refused, 2);
    (void)close(late_pipe[1]);
    while (stop_tend(&s) && clock_mono_ns() < end)
        nap();
    assert_false(stop_tend(&s));
    wait_for_steps(shared->steps);
    stop_surely(&s, pid); /* as any other from now on */
    (void)stop_release(&s);
    wait_for_steps(shared->steps);
    bury(pid);
}

static void check_dies_while_stopped(void **state) {
    (void)state;
    struct stop s;
    pid_t pid = child_that(spin);
    stop_init(&s, pid);
    stop_surely(&s, pid);
    assert_int_equal(kill(pid, SIGKILL), 0);
    (void)stop_release(&s);
    assert_int_equal(waitpid(pid, NULL, __WALL), pid);
    assert_int_equal(stop_thread(&s, pid), -1);
    assert_false(stop_tend(&s));
}

struct other {
    pid_t pid;
    sem_t traces, enough;
};

static void *trace(void *arg) {
    struct other *o = arg;
    assert_int_equal(ptrace(PTRACE_SEIZE, o->pid, 0, 0), 0);
    (void)sem_post(&o->traces);
    (void)sem_wait(&o->enough);
    return NULL;
}

/* Another of our programs, by its name; it lets go after a while. */
static void *trace_for_a_moment(void *arg) {
    struct other *o = arg;
    (void)prctl(PR_SET_NAME, "probing");
    assert_int_equal(ptrace(PTRACE_SEIZE, o->pid, 0, 0), 0);
    (void)sem_post(&o->traces);
    for (int i = 0; i < 100; i++)
        nap();
    return NULL;
}

static void check_waits_for_ours(void **state) {
    (void)state;
    struct err e = {0};
    struct other other = {.pid = child_that(spin)};
    pthread_t thread;
    (void)sem_init(&other.traces, 0, 0);
    assert_int_equal(pthread_create(&thread, NULL, trace_for_a_moment, &other), 0);
    (void)sem_wait(&other.traces);
    assert_int_equal(stop_check(other.pid, &e), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    bury(other.pid);
}

static void check_refuses(void **state) {
    (void)state;
    struct err e = {0};
    struct stop s;
    struct other other = {.pid = child_that(spin)};
    pthread_t thread;
    assert_int_equal(stop_check(other.pid, &e), 0);
    (void)sem_init(&other.traces, 0, 0);
    (void)sem_init(&other.enough, 0, 0);
    assert_int_equal(pthread_create(&thread, NULL, trace, &other), 0);
    (void)sem_wait(&other.traces);
    assert_int_equal(stop_check(other.pid, &e), -1);
    assert_int_equal(e.code, ERR_ATTACH);
    assert_non_null(strstr(e.text, "is being traced by process"));
    stop_init(&s, other.pid);
    assert_int_equal(stop_thread(&s, other.pid), -1);
    assert_int_equal(s.refused, 1);
    (void)sem_post(&other.enough);
    assert_int_equal(pthread_join(thread, NULL), 0);
    uint64_t end = clock_mono_ns() + LONGEST_NS;
    while (stop_check(other.pid, &e) != 0 && clock_mono_ns() < end)
        nap(); /* the kernel lets go of what a thread traced a little after it can be joined */
    assert_int_equal(stop_check(other.pid, &e), 0);
    wait_for_steps(shared->steps);
    bury(other.pid);
    assert_int_equal(stop_check(other.pid, &e), -1);
    assert_int_equal(e.code, ERR_LOST);
}

/* Tests where nobody may trace a child prove nothing. */
static bool may_trace(void) {
    struct err e;
    (void)set_up(NULL);
    pid_t pid = child_that(spin);
    bool may = stop_check(pid, &e) == 0;
    bury(pid);
    (void)tear_down(NULL);
    return may;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(check_stands_still, set_up, tear_down),
        cmocka_unit_test_setup_teardown(check_signals_arrive, set_up, tear_down),
        cmocka_unit_test_setup_teardown(check_waiting_call_goes_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(check_a_begun_write_is_not_cut, set_up, tear_down),
        cmocka_unit_test_setup_teardown(check_late_one_is_let_go, set_up, tear_down),
        cmocka_unit_test_setup_teardown(check_dies_while_stopped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(check_waits_for_ours, set_up, tear_down),
        cmocka_unit_test_setup_teardown(check_refuses, set_up, tear_down),
    };
    if (!may_trace()) {
        print_message("skipped: this user may not trace a child (kernel.yama.ptrace_scope?)\n");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
