/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the handler does to a system call that it has interrupted: finding its number in the code before it, and making it
 * begin again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/sampler/rewind.h"
#include "base/clock.h"
#include "base/procfs.h"

#define LIMIT_MS 150
#define TRIES 100

struct sequence {
    const char *bytes;
    size_t n;
    int number;
};

#define SEQUENCE(text, result)                                                                               \
    { text, sizeof(text) - 1, result }

static void check_numbers_are_found(void **state) {
    static const struct sequence all[] = {
        SEQUENCE("\xb8\xe8\x00\x00\x00", 232),
        SEQUENCE("\x90\x90\xb8\xe8\x00\x00\x00", 232),
        SEQUENCE("\x41\xb9\x08\x00\x00\x00\xb8\x19\x01\x00\x00", 281),
        SEQUENCE("\xb8\x19\x01\x00\x00\x8b\x7c\x24\x04", 281),         /* mov 4(%rsp),%edi after it */
        SEQUENCE("\xb8\xca\x00\x00\x00\x45\x31\xc0\x48\x89\xef", 202), /* xor %r8d,%r8d; mov %rbp,%rdi */
        SEQUENCE("\xb8\xca\x00\x00\x00\x48\x8d\x74\x24\x10", 202),     /* lea 16(%rsp),%rsi */
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_int_equal(rewind_find_number((const uint8_t *)all[i].bytes, all[i].n), all[i].number);
}

static void check_what_is_not_certain_is_left(void **state) {
    static const struct sequence all[] = {
        SEQUENCE("", -1),
        SEQUENCE("\x48\x89\xf8", -1),                             /* mov %rdi,%rax */
        SEQUENCE("\x41\xb8\xe8\x00\x00\x00", -1),                 /* mov $232,%r8d */
        SEQUENCE("\xb8\xe8\x00\x00\x00\x89\xf8", -1),             /* then mov %edi,%eax */
        SEQUENCE("\xb8\xe8\x00\x00\x00\x31\xc0", -1),             /* then xor %eax,%eax */
        SEQUENCE("\xb8\xe8\x00\x00\x00\x8b\x04\x24", -1),         /* then mov (%rsp),%eax */
        SEQUENCE("\xb8\xe8\x00\x00\x00\xe8\x00\x00\x00\x00", -1), /* then a call */
        SEQUENCE("\xb8\xe8\x00\x00\x00\x74\x02", -1),             /* then a jump */
        SEQUENCE("\xb8\x00\x00\x01\x00", -1),                     /* no such number */
        SEQUENCE("\xb8\xe8\x00\x00", -1),                         /* cut off */
        SEQUENCE("\xb8\xca\x00\x00\x00\x48\x8d\x84\x24\x10", -1), /* a displacement that is not all there */
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_int_equal(rewind_find_number((const uint8_t *)all[i].bytes, all[i].n), -1);
}

static void check_arguments_of_syscall_are_found(void **state) {
    static const struct sequence all[] = {
        SEQUENCE("\xbf\xca\x00\x00\x00\x31\xc0\xe8\x59\xfd\xff\xff", 202),
        SEQUENCE("\xbf\xca\x00\x00\x00\xff\x15\x00\x00\x00\x00", 202),
        SEQUENCE("\xbf\xca\x00\x00\x00\x48\x89\xc7\xe8\x59\xfd\xff\xff", -1), /* then mov %rax,%rdi */
        SEQUENCE("\x89\xdf\xe8\x59\xfd\xff\xff", -1),
        SEQUENCE("\xbf\xca\x00\x00\x00", -1),
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_int_equal(rewind_find_argument((const uint8_t *)all[i].bytes, all[i].n), all[i].number);
}

static void check_places_of_the_stack_are_found(void **state) {
    static const struct sequence calls[] = {
        SEQUENCE("\x48\x8b\x44\x24\x20", 32),
        SEQUENCE("\x49\x89\xca\x48\x8b\x44\x24\x20", 32),         /* mov %rcx,%r10 before it */
        SEQUENCE("\x48\x8b\x44\x24\x20\x49\x89\xca", 32),         /* and behind it */
        SEQUENCE("\x48\x8b\x44\x24\x20\x41\x50", -1),             /* then push %r8 */
        SEQUENCE("\x48\x8b\x44\x24\x20\x48\x83\xec\x08", -1),     /* then sub $8,%rsp */
        SEQUENCE("\x48\x8b\x44\x24\x20\x89\xf8", -1),             /* then mov %edi,%eax */
        SEQUENCE("\x48\x8b\x44\x24\x20\xe8\x59\xfd\xff\xff", -1), /* then a call */
        SEQUENCE("\x48\x8b\x44\x24\x88", -1),                     /* below the stack pointer */
        SEQUENCE("\x48\x8b\x74\x24\x30", -1),                     /* of another register */
        SEQUENCE("\x48\x8b\x44\x24", -1),
        SEQUENCE("", -1),
    };
    static const struct sequence wrapped[] = {
        /* glibc 2.43 */
        SEQUENCE("\x41\x50\x48\x8b\x74\x24\x30\x49\x89\xc0\x4c\x89\xd7\xe8\xfc\xb4\x00\x00", 48),
        SEQUENCE("\x48\x8b\x74\x24\x30\x41\x50\xe8\xfc\xb4\x00\x00", -1),
        SEQUENCE("\x48\x8b\x74\x24\x30\x48\x89\xce\xe8\xfc\xb4\x00\x00", -1), /* then mov %rcx,%rsi */
        SEQUENCE("\x48\x8b\x74\x24\x30", -1),
        SEQUENCE("\xe8\xfc\xb4\x00", -1),
    };
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        assert_int_equal(rewind_find_slot((const uint8_t *)calls[i].bytes, calls[i].n, false),
                         calls[i].number);
    for (size_t i = 0; i < sizeof wrapped / sizeof *wrapped; i++)
        assert_int_equal(rewind_find_slot((const uint8_t *)wrapped[i].bytes, wrapped[i].n, true),
                         wrapped[i].number);
}

static void check_only_some_calls_are_repeatable(void **state) {
    static const int yes[] = {SYS_poll, SYS_epoll_wait, SYS_futex, SYS_nanosleep, SYS_read, SYS_semtimedop};
    static const int no[] = {SYS_connect, SYS_close,        SYS_ioctl, SYS_fork,
                             SYS_execve,  SYS_rt_sigreturn, -1,        9999};
    (void)state;
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        assert_true(rewind_is_repeatable(yes[i]));
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        assert_false(rewind_is_repeatable(no[i]));
}

/* ---- live: a thread asleep in a call is sent a signal ---- */

static volatile sig_atomic_t outcome; /* of the signal that met the call; REWIND_NOTHING: none has */
static volatile sig_atomic_t again;   /* signal that is sent to the thread while the handler runs; 0 none */
static int blocking_fd;

static void on_signal(int sig, siginfo_t *info, void *context) {
    int other = again;
    (void)info;
    again = 0;
    if (other)
        (void)syscall(SYS_tgkill, getpid(), (pid_t)syscall(SYS_gettid), other);
    enum rewind_result result = rewind_interrupted(sig, context);
    if (result != REWIND_NOTHING)
        outcome = (sig_atomic_t)result;
}

static int sleep_in_epoll(void) {
    struct epoll_event event;
    return epoll_wait(blocking_fd, &event, 1, LIMIT_MS);
}

static int sleep_in_poll(void) { return poll(NULL, 0, LIMIT_MS); }

static sigset_t inside; /* the mask with which these wait: that of the test */
static const struct timespec limit = {.tv_nsec = LIMIT_MS * (long)CLOCK_NS_PER_MS};

static int sleep_in_ppoll(void) { return ppoll(NULL, 0, &limit, &inside); }

static int sleep_in_pselect(void) { return pselect(0, NULL, NULL, NULL, &limit, &inside); }

static int sleep_in_pselect_without_mask(void) { return pselect(0, NULL, NULL, NULL, &limit, NULL); }

static int sleep_in_epoll_pwait(void) {
    struct epoll_event event;
    return epoll_pwait(blocking_fd, &event, 1, LIMIT_MS, &inside);
}

static int sleep_in_sigsuspend(void) { return sigsuspend(&inside); }

struct sleeper {
    int (*call)(void);
    bool waits_for_signal; /* SIGUSR1 is blocked around the call */
    volatile pid_t tid;
    int result, error;
    uint64_t slept_ns;
    volatile bool done;
};

static void *sleeper_main(void *arg) {
    struct sleeper *s = arg;
    sigset_t blocked;
    (void)sigemptyset(&blocked);
    (void)sigaddset(&blocked, SIGUSR1);
    if (s->waits_for_signal)
        (void)pthread_sigmask(SIG_BLOCK, &blocked, NULL);
    s->tid = (pid_t)syscall(SYS_gettid);
    uint64_t began = clock_mono_ns();
    errno = 0;
    s->result = s->call();
    s->error = errno;
    s->slept_ns = clock_mono_ns() - began;
    s->done = true;
    return NULL;
}

static bool is_asleep(pid_t tid) {
    struct procfs_stat st;
    return tid && procfs_read_stat(getpid(), tid, &st) == 0 && st.state == 'S';
}

/* Send one signal to the sleeping thread, and `other` from its handler; 0 none. Once more if the
 * machine was so busy that the call had ended before. A thread that waits for its signal gets that,
 * and again if it goes on sleeping. */
static void sleep_through_signal(struct sleeper *s, int other) {
    struct sigaction sa = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART}, before;
    pthread_t thread;
    (void)sigfillset(&sa.sa_mask);
    assert_int_equal(sigaction(SIGURG, &sa, &before), 0);
    outcome = REWIND_NOTHING;
    for (int tries = 0; outcome == REWIND_NOTHING && tries < TRIES; tries++) {
        *s = (struct sleeper){.call = s->call, .waits_for_signal = s->waits_for_signal};
        again = other;
        assert_int_equal(pthread_create(&thread, NULL, sleeper_main, s), 0);
        for (uint64_t sent_ns = 0; !s->done;) {
            struct timespec pause = {.tv_nsec = (long)CLOCK_NS_PER_MS};
            (void)nanosleep(&pause, NULL);
            bool due = !sent_ns || (s->waits_for_signal && clock_mono_ns() - sent_ns > CLOCK_NS_PER_S);
            if (due && is_asleep(s->tid)) {
                (void)syscall(SYS_tgkill, getpid(), s->tid, s->waits_for_signal ? SIGUSR1 : SIGURG);
                sent_ns = clock_mono_ns();
            }
        }
        (void)pthread_join(thread, NULL);
    }
    assert_int_equal(sigaction(SIGURG, &before, NULL), 0);
}

static void check_sleep_goes_on(void **state) {
    int (*const calls[])(void) = {sleep_in_epoll,       sleep_in_poll,    sleep_in_ppoll,
                                  sleep_in_epoll_pwait, sleep_in_pselect, sleep_in_pselect_without_mask};
    (void)state;
    (void)pthread_sigmask(SIG_SETMASK, NULL, &inside);
    blocking_fd = epoll_create1(EPOLL_CLOEXEC);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct sleeper s = {.call = calls[i]};
        sleep_through_signal(&s, 0);
        assert_int_equal(outcome, REWIND_DONE);
        assert_int_equal(s.result, 0);
        assert_true(s.slept_ns >= LIMIT_MS * CLOCK_NS_PER_MS);
    }
    (void)close(blocking_fd);
}

static void on_other(int sig) { (void)sig; }

/* The sampler may ask once more before the handler of its last signal has ended. */
static void check_the_same_signal_may_wait(void **state) {
    struct sleeper s = {.call = sleep_in_poll};
    (void)state;
    sleep_through_signal(&s, SIGURG);
    assert_int_equal(outcome, REWIND_DONE);
    assert_int_equal(s.result, 0);
}

static void check_another_signal_interrupts(void **state) {
    struct sleeper s = {.call = sleep_in_poll};
    struct sigaction sa = {.sa_handler = on_other}, before;
    (void)state;
    assert_int_equal(sigaction(SIGUSR1, &sa, &before), 0);
    sleep_through_signal(&s, SIGUSR1);
    assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
    assert_int_equal(s.result, -1);
    assert_int_equal(s.error, EINTR);
}

static volatile sig_atomic_t behind; /* our signal is to come right behind the handler of the job's */

static void on_signal_of_job(int sig) {
    (void)sig;
    if (behind)
        (void)syscall(SYS_tgkill, getpid(), (pid_t)syscall(SYS_gettid), SIGURG);
    behind = 0;
}

/* Its handler has run: the call that let it in would sleep without end. */
static void check_what_lets_in_the_job_s_signal_is_left(void **state) {
    int (*const calls[])(void) = {sleep_in_ppoll, sleep_in_epoll_pwait, sleep_in_pselect,
                                  sleep_in_sigsuspend};
    struct sigaction sa = {.sa_handler = on_signal_of_job}, before;
    (void)state;
    (void)sigfillset(&sa.sa_mask);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &inside);
    blocking_fd = epoll_create1(EPOLL_CLOEXEC);
    assert_int_equal(sigaction(SIGUSR1, &sa, &before), 0);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct sleeper s = {.call = calls[i], .waits_for_signal = true};
        behind = 1;
        sleep_through_signal(&s, 0);
        assert_int_equal(outcome, REWIND_LEFT);
        assert_int_equal(s.result, -1);
        assert_int_equal(s.error, EINTR);
    }
    assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
    (void)close(blocking_fd);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_numbers_are_found),
        cmocka_unit_test(check_what_is_not_certain_is_left),
        cmocka_unit_test(check_arguments_of_syscall_are_found),
        cmocka_unit_test(check_places_of_the_stack_are_found),
        cmocka_unit_test(check_only_some_calls_are_repeatable),
        cmocka_unit_test(check_sleep_goes_on),
        cmocka_unit_test(check_the_same_signal_may_wait),
        cmocka_unit_test(check_another_signal_interrupts),
        cmocka_unit_test(check_what_lets_in_the_job_s_signal_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
