/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eintr: blocking system calls, made again and again for a while, with a little work in between; counts those that were
 * interrupted.
 *
 * A signal sent to a thread that is seen running may find it asleep in one of these. Each call has a time limit of a
 * millisecond, so it is entered often. Loaded by a test job, which calls eintr_run on one thread for each call.
 */
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EINTR_LIMIT_NS 1000000L

struct eintr_place {
    int pair[2], epoll, sem_id;
    sem_t sem;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    int word;
};

struct eintr_count {
    long calls, interrupted;
};

static struct timespec eintr_after(clockid_t clock, long ns) {
    struct timespec t;
    (void)clock_gettime(clock, &t);
    t.tv_nsec += ns;
    t.tv_sec += t.tv_nsec / 1000000000L;
    t.tv_nsec %= 1000000000L;
    return t;
}

static const struct timespec eintr_limit = {.tv_nsec = EINTR_LIMIT_NS};

static int eintr_epoll(struct eintr_place *p) {
    struct epoll_event event;
    return epoll_wait(p->epoll, &event, 1, 1);
}

static int eintr_epoll_pwait(struct eintr_place *p) {
    struct epoll_event event;
    sigset_t none;
    (void)sigemptyset(&none);
    return epoll_pwait(p->epoll, &event, 1, 1, &none);
}

static int eintr_poll(struct eintr_place *p) {
    struct pollfd fd = {.fd = p->pair[0], .events = POLLIN};
    return poll(&fd, 1, 1);
}

static int eintr_ppoll(struct eintr_place *p) {
    struct pollfd fd = {.fd = p->pair[0], .events = POLLIN};
    return ppoll(&fd, 1, &eintr_limit, NULL);
}

static int eintr_select(struct eintr_place *p) {
    struct timeval limit = {.tv_usec = EINTR_LIMIT_NS / 1000};
    fd_set set;
    FD_ZERO(&set);
    FD_SET(p->pair[0], &set);
    return select(p->pair[0] + 1, &set, NULL, NULL, &limit);
}

static int eintr_nanosleep(struct eintr_place *p) {
    (void)p;
    return nanosleep(&eintr_limit, NULL);
}

static int eintr_clock_nanosleep(struct eintr_place *p) {
    struct timespec t = eintr_after(CLOCK_MONOTONIC, EINTR_LIMIT_NS);
    (void)p;
    errno = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
    return errno ? -1 : 0;
}

static int eintr_futex(struct eintr_place *p) {
    return (int)syscall(SYS_futex, &p->word, FUTEX_WAIT, 0, &eintr_limit, NULL, 0);
}

static int eintr_sem(struct eintr_place *p) {
    struct timespec t = eintr_after(CLOCK_REALTIME, EINTR_LIMIT_NS);
    return sem_timedwait(&p->sem, &t);
}

static int eintr_cond(struct eintr_place *p) {
    struct timespec t = eintr_after(CLOCK_REALTIME, EINTR_LIMIT_NS);
    (void)pthread_mutex_lock(&p->lock);
    errno = pthread_cond_timedwait(&p->cond, &p->lock, &t);
    (void)pthread_mutex_unlock(&p->lock);
    return -1;
}

static int eintr_recv(struct eintr_place *p) {
    char c;
    return (int)recv(p->pair[0], &c, 1, 0);
}

static int eintr_sigtimedwait(struct eintr_place *p) {
    sigset_t set;
    (void)p;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGUSR2);
    return sigtimedwait(&set, NULL, &eintr_limit);
}

static int eintr_semtimedop(struct eintr_place *p) {
    struct sembuf op = {.sem_op = -1};
    return semtimedop(p->sem_id, &op, 1, &eintr_limit);
}

static const struct {
    const char *name;
    int (*call)(struct eintr_place *p);
} eintr_calls[] = {
    {"epoll_wait", eintr_epoll},
    {"epoll_pwait", eintr_epoll_pwait},
    {"poll", eintr_poll},
    {"ppoll", eintr_ppoll},
    {"select", eintr_select},
    {"nanosleep", eintr_nanosleep},
    {"clock_nanosleep", eintr_clock_nanosleep},
    {"futex", eintr_futex},
    {"sem_timedwait", eintr_sem},
    {"cond_timedwait", eintr_cond},
    {"recv", eintr_recv},
    {"sigtimedwait", eintr_sigtimedwait},
    {"semtimedop", eintr_semtimedop},
};

__attribute__((visibility("default"))) const char *eintr_name(int which);
__attribute__((visibility("default"))) int eintr_run(int which, double seconds, struct eintr_count *count);

/* Name of a call; NULL behind the last. */
const char *eintr_name(int which) {
    return which >= 0 && which < (int)(sizeof eintr_calls / sizeof *eintr_calls) ? eintr_calls[which].name
                                                                                 : NULL;
}

static int eintr_make(struct eintr_place *p) {
    struct timeval limit = {.tv_usec = EINTR_LIMIT_NS / 1000};
    struct epoll_event event = {.events = EPOLLIN};
    *p = (struct eintr_place){0};
    p->sem_id = semget(IPC_PRIVATE, 1, 0600);
    p->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (p->sem_id < 0 || p->epoll < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, p->pair) != 0 ||
        setsockopt(p->pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0 ||
        epoll_ctl(p->epoll, EPOLL_CTL_ADD, p->pair[0], &event) != 0)
        return -1;
    (void)sem_init(&p->sem, 0, 0);
    (void)pthread_mutex_init(&p->lock, NULL);
    (void)pthread_cond_init(&p->cond, NULL);
    return 0;
}

/* Between two calls: up to 60 microseconds of work, another time each. */
static void eintr_work(unsigned *seed) {
    struct timespec t, until = eintr_after(CLOCK_MONOTONIC, (long)(rand_r(seed) % 60000));
    do
        (void)clock_gettime(CLOCK_MONOTONIC, &t);
    while (t.tv_sec < until.tv_sec || (t.tv_sec == until.tv_sec && t.tv_nsec < until.tv_nsec));
}

int eintr_run(int which, double seconds, struct eintr_count *count) {
    struct eintr_place place;
    unsigned seed = (unsigned)which;
    *count = (struct eintr_count){0};
    if (eintr_make(&place) != 0)
        return -1;
    struct timespec t, end = eintr_after(CLOCK_MONOTONIC, 0);
    end.tv_sec += (time_t)seconds;
    do {
        errno = 0;
        if (eintr_calls[which].call(&place) < 0 && errno == EINTR)
            count->interrupted++;
        count->calls++;
        eintr_work(&seed);
        (void)clock_gettime(CLOCK_MONOTONIC, &t);
    } while (t.tv_sec < end.tv_sec);
    (void)semctl(place.sem_id, 0, IPC_RMID);
    (void)close(place.epoll);
    (void)close(place.pair[0]);
    (void)close(place.pair[1]);
    return 0;
}
