/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread_timer: see thread_timer.h. timer_create(2), MAKE_THREAD_CPUCLOCK in Linux'
 * posix-timers.h, kernel/time/posix-cpu-timers.c. The C library's timers need a library of their
 * own before glibc 2.34, so the kernel is called.
 */
#include "agent/sampler/thread_timer.h"

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* The coarse clocks move with the tick. */
uint64_t thread_timer_tick_ns(void) {
    struct timespec ts;
    if (clock_getres(CLOCK_MONOTONIC_COARSE, &ts) != 0 || ts.tv_sec != 0)
        return 0;
    return (uint64_t)ts.tv_nsec;
}

int thread_timer_create(int64_t tid, int sig, int value) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = sig};
    int timer = -1;
    event.sigev_value.sival_int = value;
    event._sigev_un._tid = (pid_t)tid;
    return syscall(SYS_timer_create, clock_of_thread((pid_t)tid), &event, &timer) == 0 ? timer : -1;
}

static struct timespec thread_timer_time(uint64_t ns) {
    return (struct timespec){.tv_sec = (time_t)(ns / CLOCK_NS_PER_S), .tv_nsec = (long)(ns % CLOCK_NS_PER_S)};
}

int thread_timer_start(int timer, uint64_t first_ns, uint64_t interval_ns) {
    struct itimerspec when = {.it_value = thread_timer_time(first_ns),
                              .it_interval = thread_timer_time(interval_ns)};
    return (int)syscall(SYS_timer_settime, timer, 0, &when, NULL);
}

void thread_timer_delete(int timer) { (void)syscall(SYS_timer_delete, timer); }
