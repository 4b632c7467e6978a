/* SPDX-License-Identifier: Apache-2.0 */
/* guard: see guard.h. */
#include "client/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procfs.h"

#define GUARD_POLL_MS 20                   /* between two checks for signals */
#define GUARD_STOP_NS (3 * CLOCK_NS_PER_S) /* to undo its work, once asked to end */
/* longer for a child that runs or waits for a CPU: it is slow on a busy machine, and not stuck */
#define GUARD_BUSY_NS (6 * CLOCK_NS_PER_S)
#define GUARD_REAP_NS (100 * CLOCK_NS_PER_MS) /* for a killed child to end */
/* beyond the limit, for a child whose parent has died */
#define GUARD_ALONE_S 10
_Static_assert(GUARD_BUSY_NS + GUARD_STOP_NS < GUARD_ALONE_S * CLOCK_NS_PER_S, "its own limit is the last");
#define GUARD_FDS_MAX 65536  /* closed one by one where the kernel has no close_range */
#define GUARD_BLOCKED_MAX 64 /* children that are stuck at a time */

static const int guard_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

#define GUARD_SIGNALS (sizeof guard_signals / sizeof guard_signals[0])

static bool guard_is_asked(void) {
    sigset_t pending;
    if (sigpending(&pending) != 0)
        return false;
    for (size_t i = 0; i < GUARD_SIGNALS; i++)
        if (sigismember(&pending, guard_signals[i]) == 1)
            return true;
    return false;
}

static void guard_close(unsigned first, unsigned last) {
    struct rlimit most;
    if (first > last || syscall(SYS_close_range, first, last, 0) == 0)
        return;
    if (getrlimit(RLIMIT_NOFILE, &most) != 0 || most.rlim_cur > GUARD_FDS_MAX)
        most.rlim_cur = GUARD_FDS_MAX;
    for (unsigned fd = first; fd <= last && fd < most.rlim_cur; fd++)
        close((int)fd);
}

void guard_close_from(int first) { guard_close((unsigned)first, ~0U); }

/* A child that is stuck in the kernel must not keep a terminal or a pipe of ours open. */
void guard_drop_files(int kept, int other) {
    int low = other >= 0 && other < kept ? other : kept, high = other > kept ? other : kept;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3; fd++)
        if (fd != low && fd != high && (null < 0 || dup2(null, fd) < 0))
            close(fd);
    guard_close(3, (unsigned)low - 1);
    guard_close((unsigned)low + 1, (unsigned)high - 1);
    guard_close((unsigned)high + 1, ~0U);
}

/* Nobody else kills it when we are gone. */
static void guard_limit(unsigned limit_ms) {
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    struct itimerspec at = {.it_value.tv_sec = limit_ms / 1000 + GUARD_ALONE_S};
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0)
        timer_settime(timer, 0, &at, NULL);
}

int guard_explain_blocked(pid_t pid, const char *path, unsigned limit_ms, struct err *e) {
    char what[128];
    if (pid > 0)
        snprintf(what, sizeof what, "process %d", (int)pid);
    else
        snprintf(what, sizeof what, "%s", path);
    return err_set(e, ERR_ATTACH, "%s: its file system or its memory does not answer (%.2g s)", what,
                   limit_ms / 1000.0);
}

/* Children that were killed and are stuck in the kernel, and the processes they examined. No
 * lock: a fork may come at any time. */
static struct guard_left {
    atomic_int child; /* 0 none, -1 it is being written */
    atomic_int about;
} guard_left[GUARD_BLOCKED_MAX];

static void guard_remember(pid_t child, pid_t about) {
    for (size_t i = 0; i < GUARD_BLOCKED_MAX; i++) {
        int none = 0;
        if (!atomic_compare_exchange_strong(&guard_left[i].child, &none, -1))
            continue;
        atomic_store(&guard_left[i].about, about);
        atomic_store(&guard_left[i].child, child);
        return;
    }
}

/* Whether it runs or waits for a CPU; of a killed one, if only to die. */
static bool guard_is_running(pid_t child) {
    struct procfs_stat st;
    return procfs_read_stat(child, 0, &st) == 0 && st.state == 'R';
}

/* Number of stuck children, at that process (0: any). Forgets those that the kernel has
 * released. */
static size_t guard_count(pid_t about) {
    size_t n = 0;
    for (size_t i = 0; i < GUARD_BLOCKED_MAX; i++) {
        int child = atomic_load(&guard_left[i].child);
        if (child > 0 && waitpid(child, NULL, WNOHANG) != 0)
            atomic_compare_exchange_strong(&guard_left[i].child, &child, 0);
        else if (child != 0 &&
                 (about == 0 || (atomic_load(&guard_left[i].about) == about && !guard_is_running(child))))
            n++;
    }
    return n;
}

bool guard_is_blocked(pid_t about) { return about > 0 && guard_count(about) > 0; }

/* In the child; `last` is the signal it gets when the parent ends. */
static void guard_begin(int fd, pid_t parent, int last, unsigned limit_ms) {
    prctl(PR_SET_PDEATHSIG, last);
    if (getppid() != parent)
        raise(last);
    guard_limit(limit_ms);
    guard_drop_files(fd, -1);
}

/* In the child. */
static void guard_work(void (*work)(void *arg), void *arg, int fd) {
    work(arg);
    ssize_t n = write(fd, "", 1);
    _exit(n == 1 ? 0 : 1);
}

/* 0 in the child, where no handler of ours runs, because its descriptors differ. */
static pid_t guard_fork(int fd, int last, unsigned limit_ms) {
    sigset_t all, kept;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &kept);
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        guard_begin(fd, parent, last, limit_ms);
        return 0;
    }
    int saved = errno;
    pthread_sigmask(SIG_SETMASK, &kept, NULL);
    errno = saved;
    return child;
}

/* Reap a killed child: it ends soon, or it is stuck in the kernel. */
static void guard_reap(pid_t child, pid_t about, uint64_t wait_ns) {
    uint64_t until = clock_mono_ns() + wait_ns;
    pid_t got;
    while ((got = waitpid(child, NULL, WNOHANG)) == 0 || (got < 0 && errno == EINTR)) {
        if (clock_mono_ns() > until) {
            guard_remember(child, about);
            return;
        }
        nanosleep(&(struct timespec){.tv_nsec = (long)CLOCK_NS_PER_MS}, NULL);
    }
}

/* Wait for the child's result. */
static enum guard_end guard_wait(pid_t child, int fd, unsigned limit_ms) {
    uint64_t until = clock_mono_ns() + limit_ms * CLOCK_NS_PER_MS;
    bool asked = false;
    for (;;) {
        char byte;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, GUARD_POLL_MS) > 0) {
            ssize_t n = read(fd, &byte, 1);
            return n == 1 ? GUARD_DONE : GUARD_BROKEN;
        }
        uint64_t now = clock_mono_ns();
        if (!asked && guard_is_asked()) {
            asked = true;
            kill(child, SIGTERM);
            until = now + GUARD_STOP_NS;
        }
        bool is_over = now > until && (asked || now > until + GUARD_BUSY_NS || !guard_is_running(child));
        /* it may have ended since it was last waited for */
        if (is_over && poll(&p, 1, 0) <= 0)
            return asked ? GUARD_INTERRUPTED : GUARD_BLOCKED;
    }
}

enum guard_end guard_run(void (*work)(void *arg), void *arg, size_t size, unsigned limit_ms) {
    return guard_run_about(0, work, arg, size, limit_ms);
}

enum guard_end guard_run_about(pid_t about, void (*work)(void *arg), void *arg, size_t size,
                               unsigned limit_ms) {
    sigset_t ours, kept;
    int fds[2];
    if (guard_is_blocked(about)) {
        errno = EBUSY;
        return GUARD_NONE;
    }
    if (pipe2(fds, O_CLOEXEC) != 0)
        return GUARD_NONE;
    void *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        int saved = errno;
        close(fds[0]);
        close(fds[1]);
        errno = saved;
        return GUARD_NONE;
    }
    memcpy(shared, arg, size);
    sigemptyset(&ours);
    for (size_t i = 0; i < GUARD_SIGNALS; i++)
        sigaddset(&ours, guard_signals[i]);
    pthread_sigmask(SIG_BLOCK, &ours, &kept);
    pid_t child = guard_fork(fds[1], SIGTERM, limit_ms);
    int saved = errno;
    if (child == 0)
        guard_work(work, shared, fds[1]);
    close(fds[1]);
    enum guard_end end = child < 0 ? GUARD_NONE : guard_wait(child, fds[0], limit_ms);
    close(fds[0]);
    if (end == GUARD_DONE)
        memcpy(arg, shared, size);
    if (child > 0) {
        if (end != GUARD_DONE)
            kill(child, SIGKILL);
        guard_reap(child, about, end == GUARD_DONE ? GUARD_STOP_NS : GUARD_REAP_NS);
    }
    munmap(shared, size);
    pthread_sigmask(SIG_SETMASK, &kept, NULL);
    errno = saved;
    return end;
}

int guard_start(struct guard *g, void (*work)(void *arg, int fd), void *arg, pid_t about, unsigned limit_ms) {
    int fds[2];
    *g = (struct guard){.fd = -1};
    if (guard_is_blocked(about) || guard_count(0) == GUARD_BLOCKED_MAX) {
        errno = EBUSY;
        return -1;
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
        return -1;
    pid_t child = guard_fork(fds[1], SIGKILL, limit_ms);
    if (child == 0) {
        work(arg, fds[1]);
        _exit(0);
    }
    int saved = errno;
    close(fds[1]);
    if (child < 0) {
        close(fds[0]);
        errno = saved;
        return -1;
    }
    *g = (struct guard){.child = child, .fd = fds[0]};
    return 0;
}

void guard_stop(struct guard *g, pid_t about) {
    if (g->child <= 0)
        return;
    close(g->fd);
    kill(g->child, SIGKILL);
    guard_reap(g->child, about, GUARD_REAP_NS);
    *g = (struct guard){.fd = -1};
}
