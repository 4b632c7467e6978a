/* SPDX-License-Identifier: Apache-2.0 */
/* guard: see guard.h. */
#include "client/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define GUARD_LOOK_MS 20                      /* between two looks for signals */
#define GUARD_STOP_NS (3 * CLOCK_NS_PER_S)    /* for taking back what was begun, once asked to end */
#define GUARD_REAP_NS (100 * CLOCK_NS_PER_MS) /* for one that was killed */
#define GUARD_ALONE_S 10                      /* over the limit, for a child whose parent has died */
#define GUARD_FDS_MAX 65536                   /* closed one by one where the kernel has no close_range */

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
        (void)close((int)fd);
}

/* Who is left in the kernel must not keep a terminal or a pipe of ours open. */
static void guard_drop_files(int kept) {
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3; fd++)
        if (fd != kept && (null < 0 || dup2(null, fd) < 0))
            (void)close(fd);
    guard_close(3, (unsigned)kept - 1);
    guard_close((unsigned)kept + 1, ~0U);
}

/* Nobody else kills it when we are gone. */
static void guard_limit(unsigned limit_ms) {
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    struct itimerspec at = {.it_value.tv_sec = limit_ms / 1000 + GUARD_ALONE_S};
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0)
        (void)timer_settime(timer, 0, &at, NULL);
}

static void guard_work(void (*work)(void *arg), void *arg, int fd, pid_t parent, unsigned limit_ms) {
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        (void)raise(SIGTERM);
    guard_limit(limit_ms);
    guard_drop_files(fd);
    work(arg);
    ssize_t n = write(fd, "", 1);
    _exit(n == 1 ? 0 : 1);
}

/* A child that has been killed: it is gone in a moment, or it is held in the kernel. */
static void guard_reap(pid_t child, uint64_t wait_ns) {
    uint64_t until = clock_mono_ns() + wait_ns;
    pid_t got;
    while ((got = waitpid(child, NULL, WNOHANG)) == 0 || (got < 0 && errno == EINTR)) {
        if (clock_mono_ns() > until)
            return;
        (void)nanosleep(&(struct timespec){.tv_nsec = (long)CLOCK_NS_PER_MS}, NULL);
    }
}

/* Wait for the child's word. */
static enum guard_end guard_wait(pid_t child, int fd, unsigned limit_ms) {
    uint64_t until = clock_mono_ns() + limit_ms * CLOCK_NS_PER_MS;
    bool asked = false;
    for (;;) {
        char byte;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, GUARD_LOOK_MS) > 0) {
            ssize_t n = read(fd, &byte, 1);
            return n == 1 ? GUARD_DONE : GUARD_BROKEN;
        }
        uint64_t now = clock_mono_ns();
        if (!asked && guard_is_asked()) {
            asked = true;
            (void)kill(child, SIGTERM);
            until = now + GUARD_STOP_NS;
        }
        if (now > until)
            return asked ? GUARD_INTERRUPTED : GUARD_HELD;
    }
}

enum guard_end guard_run(void (*work)(void *arg), void *arg, size_t size, unsigned limit_ms) {
    sigset_t ours, all, kept;
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0)
        return GUARD_NONE;
    void *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        int saved = errno;
        (void)close(fds[0]);
        (void)close(fds[1]);
        errno = saved;
        return GUARD_NONE;
    }
    memcpy(shared, arg, size);
    (void)sigemptyset(&ours);
    for (size_t i = 0; i < GUARD_SIGNALS; i++)
        (void)sigaddset(&ours, guard_signals[i]);
    (void)sigfillset(&all); /* no handler of ours runs in the child, whose descriptors are others */
    (void)pthread_sigmask(SIG_SETMASK, &all, &kept);
    pid_t parent = getpid(), child = fork();
    int saved = errno;
    if (child == 0)
        guard_work(work, shared, fds[1], parent, limit_ms);
    (void)pthread_sigmask(SIG_SETMASK, &kept, NULL);
    (void)pthread_sigmask(SIG_BLOCK, &ours, NULL);
    (void)close(fds[1]);
    enum guard_end end = child < 0 ? GUARD_NONE : guard_wait(child, fds[0], limit_ms);
    (void)close(fds[0]);
    if (end == GUARD_DONE)
        memcpy(arg, shared, size);
    if (child > 0) {
        if (end != GUARD_DONE)
            (void)kill(child, SIGKILL);
        guard_reap(child, end == GUARD_DONE ? GUARD_STOP_NS : GUARD_REAP_NS);
    }
    (void)munmap(shared, size);
    (void)pthread_sigmask(SIG_SETMASK, &kept, NULL);
    errno = saved;
    return end;
}
