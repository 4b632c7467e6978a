/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queued: a thread to which another sends numbered signals without end. Each must arrive once, in its turn, with its number.
 * The sender rests in a call that is not interrupted by the injector, so that it is the receiver that is borrowed.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441 /* the same number on every architecture */
#endif
#define QUEUED_SIGNAL (SIGRTMIN + 6)
#define QUEUED_MOST                                                                                          \
    64 /* at once: all processes of a user together may have so many signals waiting and no more */

/* Never returns. cell[0]: signals taken, cell[1]: those that were not the next one. */
void queued_run(volatile uint64_t cell[2]);

static volatile uint64_t *queued_cell;
static int queued_last; /* atomic */

static void queued_take(int sig, siginfo_t *info, void *context) {
    (void)sig, (void)context;
    int number = info->si_value.sival_int;
    queued_cell[1] += info->si_code != SI_QUEUE || number != queued_last + 1;
    __atomic_store_n(&queued_last, number, __ATOMIC_RELEASE);
    queued_cell[0]++;
}

static void *queued_send(void *arg) {
    pid_t receiver = (pid_t)(intptr_t)arg;
    int fd = epoll_create1(EPOLL_CLOEXEC), number = 1;
    for (;;) {
        struct epoll_event event;
        struct timespec pause = {.tv_nsec = 20000};
        siginfo_t info = {.si_signo = QUEUED_SIGNAL, .si_code = SI_QUEUE};
        info.si_value.sival_int = number;
        if (number - __atomic_load_n(&queued_last, __ATOMIC_ACQUIRE) < QUEUED_MOST &&
            syscall(SYS_rt_tgsigqueueinfo, getpid(), receiver, QUEUED_SIGNAL, &info) == 0)
            number++;
        if (syscall(SYS_epoll_pwait2, fd, &event, 1, &pause, NULL, (size_t)8) != 0 && errno == ENOSYS)
            (void)nanosleep(&pause, NULL);
    }
    return NULL;
}

void queued_run(volatile uint64_t cell[2]) {
    struct sigaction sa = {.sa_sigaction = queued_take, .sa_flags = SA_SIGINFO | SA_RESTART};
    pthread_t sender;
    queued_cell = cell;
    (void)sigaction(QUEUED_SIGNAL, &sa, NULL);
    if (pthread_create(&sender, NULL, queued_send, (void *)(intptr_t)syscall(SYS_gettid)) != 0)
        cell[1]++;
    for (;;) {
        struct timespec pause = {.tv_nsec = 200000};
        for (volatile int i = 0; i < 30000; i++)
            continue;
        (void)nanosleep(&pause, NULL);
    }
}
