/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocking: calls that wait, each ended by its time limit after a moment, over and over; called through ctypes.CDLL by threads
 * of a Python. Who stops such a thread must not be noticed: EINTR is counted.
 */
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define BLOCKING_KINDS 11
#define BLOCKING_NS 700000L /* less than a millisecond: they are caught awake as often as asleep */
#define BLOCKING_WORK 20000

struct blocking_count {
    volatile uint64_t calls, interrupted, wrong;
};

struct blocking_things {
    int epoll, sockets[2], sems;
    sem_t sem;
    uint32_t word;
};

/* Call number `kind` of the list until `*stop` is set; what its result was goes to `*count`. */
int blocking_run(int kind, struct blocking_count *count, volatile int *stop);
int blocking_kinds(void);

static int blocking_call(int kind, struct blocking_things *t) {
    struct timespec moment = {.tv_nsec = BLOCKING_NS}, until;
    struct timeval tv = {.tv_usec = BLOCKING_NS / 1000};
    struct epoll_event ev;
    struct pollfd pfd = {.fd = t->sockets[0], .events = POLLIN};
    struct sembuf down = {.sem_op = -1};
    sigset_t none;
    char byte;
    switch (kind) {
    case 0:
        return epoll_wait(t->epoll, &ev, 1, 1);
    case 1:
        return poll(&pfd, 1, 1);
    case 2:
        return select(0, NULL, NULL, NULL, &tv);
    case 3:
        return nanosleep(&moment, NULL);
    case 4:
        errno = clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL);
        return errno ? -1 : 0;
    case 5:
        return (int)syscall(SYS_futex, &t->word, FUTEX_WAIT_PRIVATE, 0, &moment, NULL, 0);
    case 6:
        (void)clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += BLOCKING_NS;
        if (until.tv_nsec >= 1000000000L) {
            until.tv_sec++;
            until.tv_nsec -= 1000000000L;
        }
        return sem_timedwait(&t->sem, &until);
    case 7:
        return (int)recv(t->sockets[0], &byte, 1, 0);
    case 8:
        (void)sigemptyset(&none);
        (void)sigaddset(&none, SIGUSR2);
        return sigtimedwait(&none, NULL, &moment);
    case 9:
        return semtimedop(t->sems, &down, 1, &moment);
    default:
        return ppoll(&pfd, 1, &moment, NULL);
    }
}

int blocking_kinds(void) { return BLOCKING_KINDS; }

int blocking_run(int kind, struct blocking_count *count, volatile int *stop) {
    struct blocking_things t = {.epoll = epoll_create1(EPOLL_CLOEXEC),
                                .sems = semget(IPC_PRIVATE, 1, IPC_CREAT | 0600)};
    struct timeval limit = {.tv_usec = BLOCKING_NS / 1000};
    if (t.epoll < 0 || t.sems < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, t.sockets) != 0 ||
        sem_init(&t.sem, 0, 0) != 0 ||
        setsockopt(t.sockets[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0)
        return -1;
    while (!*stop) {
        errno = 0;
        int rc = blocking_call(kind, &t);
        if (rc < 0 && errno == EINTR)
            count->interrupted++;
        else if (rc < 0 && errno != ETIMEDOUT && errno != EAGAIN)
            count->wrong++;
        count->calls++;
        for (volatile int i = 0; i < BLOCKING_WORK; i++)
            ;
    }
    (void)semctl(t.sems, 0, IPC_RMID);
    return 0;
}
