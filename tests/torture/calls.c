/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torture, calls: system calls with a time limit must end as if nobody had been there, errno stays what it was, masks and
 * alternate stacks too, and every signal that was sent arrives once, with what was sent along. See torture.h.
 */
#include "torture.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <linux/futex.h>

#define CALLS_LIMIT_NS 2000000L
#define CALLS_SENTINEL 4242 /* of errno */
#define CALLS_TIMER_VALUE 1234
#define CALLS_ALTSTACK ((size_t)64 * 1024)
#define CALLS_EARLY_NS 100000
#define CALLS_MOST_QUEUED 32 /* a user's processes together may have so many signals waiting and no more */

int64_t torture_signals_tid;
static int calls_taken; /* the last queued signal that has arrived */

static const struct timespec calls_limit = {.tv_nsec = CALLS_LIMIT_NS};

struct calls_things {
    int epoll, pair[2];
    sem_t sem;
    sigset_t awaited;
};

static int64_t calls_now(void) {
    struct timespec ts;
    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static struct timespec calls_deadline(clockid_t clock) {
    struct timespec ts;
    (void)clock_gettime(clock, &ts);
    ts.tv_nsec += CALLS_LIMIT_NS;
    if (ts.tv_nsec >= 1000000000) {
        ts.tv_nsec -= 1000000000;
        ts.tv_sec++;
    }
    return ts;
}

/* Each: 0 when the time passed as it should, else errno or -1. */
static int calls_failed(int rc, int expected, int error) { return rc == expected ? 0 : rc < 0 ? error : -1; }

static int calls_poll(struct calls_things *t) {
    struct pollfd p = {.fd = t->pair[0], .events = POLLIN};
    return calls_failed(poll(&p, 1, CALLS_LIMIT_NS / 1000000), 0, errno);
}

static int calls_ppoll(struct calls_things *t) {
    struct pollfd p = {.fd = t->pair[0], .events = POLLIN};
    return calls_failed(ppoll(&p, 1, &calls_limit, NULL), 0, errno);
}

static int calls_select(struct calls_things *t) {
    struct timeval limit = {.tv_usec = CALLS_LIMIT_NS / 1000};
    fd_set set;
    FD_ZERO(&set);
    FD_SET(t->pair[0], &set);
    return calls_failed(select(t->pair[0] + 1, &set, NULL, NULL, &limit), 0, errno);
}

static int calls_nanosleep(struct calls_things *t) {
    (void)t;
    return calls_failed(nanosleep(&calls_limit, NULL), 0, errno);
}

static int calls_clock_nanosleep(struct calls_things *t) {
    struct timespec until = calls_deadline(CLOCK_MONOTONIC);
    (void)t;
    return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

static int calls_epoll(struct calls_things *t) {
    struct epoll_event event;
    return calls_failed(epoll_wait(t->epoll, &event, 1, CALLS_LIMIT_NS / 1000000), 0, errno);
}

static int calls_sem(struct calls_things *t) {
    struct timespec until = calls_deadline(CLOCK_REALTIME);
    return sem_timedwait(&t->sem, &until) == 0 ? -1 : errno == ETIMEDOUT ? 0 : errno;
}

static int calls_futex(struct calls_things *t) {
    static int word;
    (void)t;
    long rc = syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &calls_limit, NULL, 0);
    return rc == 0 ? -1 : errno == ETIMEDOUT ? 0 : errno;
}

static int calls_recv(struct calls_things *t) {
    char c;
    ssize_t n = recv(t->pair[0], &c, 1, 0);
    return n >= 0 ? -1 : errno == EAGAIN ? 0 : errno;
}

static int calls_read(struct calls_things *t) {
    char c;
    ssize_t n = read(t->pair[0], &c, 1);
    return n >= 0 ? -1 : errno == EAGAIN ? 0 : errno;
}

static int calls_sigtimedwait(struct calls_things *t) {
    int rc = sigtimedwait(&t->awaited, NULL, &calls_limit);
    return rc >= 0 ? -1 : errno == EAGAIN ? 0 : errno;
}

static int calls_semtimedop(struct calls_things *t) {
    struct sembuf op = {0, -1, 0};
    int rc = semtimedop(torture_semaphore, &op, 1, &calls_limit);
    (void)t;
    return rc == 0 ? -1 : errno == EAGAIN ? 0 : errno;
}

static const struct calls_kind {
    const char *name;
    int (*fn)(struct calls_things *t);
    bool coarse; /* its limit is counted in ticks, of which the first has begun */
} calls_kinds[] = {
    {"poll", calls_poll, false},
    {"ppoll", calls_ppoll, false},
    {"select", calls_select, false},
    {"nanosleep", calls_nanosleep, false},
    {"clock_nanosleep", calls_clock_nanosleep, false},
    {"epoll_wait", calls_epoll, false},
    {"sem_timedwait", calls_sem, false},
    {"futex", calls_futex, false},
    {"recv with a limit", calls_recv, true},
    {"read with a limit", calls_read, true},
    {"sigtimedwait", calls_sigtimedwait, false},
    {"semtimedop", calls_semtimedop, false},
};

static void calls_open(int slot, struct calls_things *t) {
    struct timeval limit = {.tv_usec = CALLS_LIMIT_NS / 1000};
    t->epoll = epoll_create1(EPOLL_CLOEXEC);
    (void)sigemptyset(&t->awaited);
    (void)sigaddset(&t->awaited, SIGUSR2);
    torture_check(slot,
                  t->epoll >= 0 && sem_init(&t->sem, 0, 0) == 0 &&
                      socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, t->pair) == 0 &&
                      setsockopt(t->pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0,
                  "nothing to wait for");
}

/* When a child ends while its parent is traced and stands still, the kernel keeps the SIGCHLD that it would have dropped, and
 * wakes another thread with it: EINTR, and no tracer can prevent it. So that is a failure only while there are no children. */
static void calls_check(int slot, const struct calls_kind *kind, int rc, int64_t took_ns, bool childless) {
    char why[64];
    bool early = !kind->coarse && took_ns < CALLS_LIMIT_NS - CALLS_EARLY_NS;
    if (rc == 0 && !early)
        return;
    if (rc == EINTR && !childless) {
        torture_count_interrupted();
        return;
    }
    (void)snprintf(why, sizeof why, "%s ended after %lld us with error %d", kind->name,
                   (long long)(took_ns / 1000), rc);
    torture_fail(slot, why);
}

/* One of each call after the other, with a mask of its own that must stay. */
void *torture_calls(void *arg) {
    int slot = (int)(intptr_t)arg;
    struct calls_things things;
    sigset_t mask, now; /* the kernel fills a part of what libc compares */
    (void)sigemptyset(&mask);
    (void)sigemptyset(&now);
    (void)pthread_sigmask(SIG_BLOCK, NULL, &mask);
    (void)sigaddset(&mask, SIGUSR2);
    (void)sigaddset(&mask, SIGWINCH);
    (void)sigaddset(&mask, SIGRTMIN + 9);
    (void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
    calls_open(slot, &things);
    for (size_t k = 0;; k = (k + 1) % (sizeof calls_kinds / sizeof calls_kinds[0])) {
        if (k == 0 || torture_is_alone(slot))
            torture_round(slot);
        uint64_t children = torture_count_children();
        int64_t begun = calls_now();
        int rc = calls_kinds[k].fn(&things);
        int64_t took_ns = calls_now() - begun;
        calls_check(slot, &calls_kinds[k], rc, took_ns, children == torture_count_children());
        errno = CALLS_SENTINEL;
        for (volatile int i = 0; i < 3000; i++)
            continue;
        torture_check(slot, errno == CALLS_SENTINEL, "errno has changed");
        (void)pthread_sigmask(SIG_BLOCK, NULL, &now);
        torture_check(slot, memcmp(&mask, &now, sizeof now) == 0, "the signal mask has changed");
    }
    return NULL;
}

void *torture_epoll(void *arg) {
    int slot = (int)(intptr_t)arg;
    int poll_fd = epoll_create1(EPOLL_CLOEXEC), timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    struct itimerspec every = {.it_interval.tv_nsec = 1500000, .it_value.tv_nsec = 1500000};
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = 99};
    torture_check(slot,
                  timerfd_settime(timer, 0, &every, NULL) == 0 &&
                      epoll_ctl(poll_fd, EPOLL_CTL_ADD, timer, &event) == 0,
                  "no timer");
    for (;;) {
        torture_round(slot);
        uint64_t times = 0;
        event.data.u32 = 0;
        int n = epoll_wait(poll_fd, &event, 1, 30000);
        torture_check(slot, n == 1 && event.data.u32 == 99,
                      "epoll_wait on a timerfd did not end with its event");
        torture_check(slot, read(timer, &times, sizeof times) == sizeof times && times > 0,
                      "a timerfd was not read");
    }
    return NULL;
}

/* ---- signals ---- */

static __thread struct calls_signals {
    int slot;
    char *low, *high; /* the alternate stack */
    volatile uint64_t timer, alarms;
    volatile int queued; /* last number */
} * calls_mine;

static void calls_on_signal(int sig, siginfo_t *info, void *context) {
    struct calls_signals *s = calls_mine;
    char here;
    (void)context;
    if (!s)
        return;
    torture_check(s->slot, &here > s->low && &here < s->high, "a handler ran on another stack than its own");
    if (sig == TORTURE_TIMER_SIGNAL) {
        s->timer++;
        torture_check(s->slot, info->si_code == SI_TIMER && info->si_value.sival_int == CALLS_TIMER_VALUE,
                      "a timer's signal came without what belongs to it");
    } else if (sig == TORTURE_QUEUED_SIGNAL) {
        torture_check(s->slot, info->si_code == SI_QUEUE, "a queued signal came without what belongs to it");
        torture_check(s->slot, info->si_value.sival_int == s->queued + 1,
                      "a queued signal was lost, doubled or came out of turn");
        s->queued = info->si_value.sival_int;
        __atomic_store_n(&calls_taken, s->queued, __ATOMIC_RELEASE);
    } else {
        s->alarms++;
    }
}

static void calls_arm(int slot, struct calls_signals *s) {
    struct sigaction sa = {.sa_sigaction = calls_on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = TORTURE_TIMER_SIGNAL};
    struct itimerspec every = {.it_interval.tv_nsec = 1700000, .it_value.tv_nsec = 1700000};
    struct itimerval alarm_every = {.it_interval.tv_usec = 2300, .it_value.tv_usec = 2300};
    timer_t timer;
    sigset_t ours;
    stack_t stack = {.ss_sp = s->low, .ss_size = CALLS_ALTSTACK};
    (void)sigemptyset(&ours);
    (void)sigaddset(&ours, SIGALRM);
    (void)sigaddset(&ours, TORTURE_TIMER_SIGNAL);
    (void)sigaddset(&ours, TORTURE_QUEUED_SIGNAL);
    sa.sa_mask = ours;
    event.sigev_value.sival_int = CALLS_TIMER_VALUE;
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    torture_check(slot,
                  sigaltstack(&stack, NULL) == 0 && sigaction(SIGALRM, &sa, NULL) == 0 &&
                      sigaction(TORTURE_TIMER_SIGNAL, &sa, NULL) == 0 &&
                      sigaction(TORTURE_QUEUED_SIGNAL, &sa, NULL) == 0 &&
                      timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 &&
                      timer_settime(timer, 0, &every, NULL) == 0 &&
                      setitimer(ITIMER_REAL, &alarm_every, NULL) == 0 &&
                      pthread_sigmask(SIG_UNBLOCK, &ours, NULL) == 0,
                  "no signals of its own");
}

void *torture_signals(void *arg) {
    int slot = (int)(intptr_t)arg;
    static struct calls_signals own;
    stack_t now;
    own.slot = slot;
    own.low = mmap(NULL, CALLS_ALTSTACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    own.high = own.low + CALLS_ALTSTACK;
    calls_mine = &own;
    calls_arm(slot, &own);
    __atomic_store_n(&torture_signals_tid, syscall(SYS_gettid), __ATOMIC_RELEASE);
    for (;;) {
        torture_round(slot);
        uint64_t timer = own.timer, alarms = own.alarms;
        int64_t until = calls_now() + 20000000000LL;
        errno = CALLS_SENTINEL;
        while ((own.timer == timer || own.alarms == alarms) && calls_now() < until)
            continue;
        torture_check(slot, errno == CALLS_SENTINEL, "errno has changed");
        torture_check(slot, own.timer != timer && own.alarms != alarms, "a timer's signals do not come");
        torture_check(slot,
                      sigaltstack(NULL, &now) == 0 && now.ss_sp == own.low && now.ss_size == CALLS_ALTSTACK,
                      "the alternate stack has changed");
        for (int i = 0; i < 8; i++)
            torture_nap(slot, 3000); /* usually cut short, by its own signals */
    }
    return NULL;
}

/* Sends numbered signals to the thread above, never more than a few at once. */
void *torture_queue(void *arg) {
    int slot = (int)(intptr_t)arg, number = 0;
    while (!__atomic_load_n(&torture_signals_tid, __ATOMIC_ACQUIRE))
        torture_sleep_apart(1000);
    for (;;) {
        torture_round(slot);
        siginfo_t info = {.si_signo = TORTURE_QUEUED_SIGNAL, .si_code = SI_QUEUE};
        info.si_pid = getpid();
        info.si_uid = getuid();
        for (int i = 0; i < 3 && number - __atomic_load_n(&calls_taken, __ATOMIC_ACQUIRE) < CALLS_MOST_QUEUED;
             i++) {
            info.si_value.sival_int = number + 1;
            if (syscall(SYS_rt_tgsigqueueinfo, getpid(), (pid_t)torture_signals_tid, TORTURE_QUEUED_SIGNAL,
                        &info) == 0)
                number++;
            else
                torture_check(slot, errno == EAGAIN, "a signal could not be sent");
        }
        torture_nap(slot, 2500);
    }
    return NULL;
}
