/* SPDX-License-Identifier: Apache-2.0 */
/* work: see work.h. */
#include "base/work.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

int work_init(struct work *w) {
    pthread_condattr_t attr;
    memset(w, 0, sizeof *w);
    w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (w->fd < 0)
        return errno;
    w->is_open = true;
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&w->changed, &attr);
    pthread_condattr_destroy(&attr);
    return 0;
}

static void *work_main(void *arg) {
    struct work *w = arg;
    w->run(w->arg);
    work_notify(w);
    return NULL;
}

int work_start(struct work *w, void (*run)(void *arg), void *arg) {
    sigset_t all, kept;
    w->run = run;
    w->arg = arg;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &kept);
    int rc = pthread_create(&w->thread, NULL, work_main, w);
    pthread_sigmask(SIG_SETMASK, &kept, NULL);
    w->is_running = rc == 0;
    return rc;
}

bool work_clear(struct work *w) {
    uint64_t count;
    return read(w->fd, &count, sizeof count) == (ssize_t)sizeof count;
}

bool work_finish(struct work *w) {
    if (!w->is_running || !work_clear(w))
        return false;
    pthread_join(w->thread, NULL); /* it has nothing left to do */
    w->is_running = false;
    return true;
}

void work_notify(struct work *w) {
    uint64_t one = 1;
    ssize_t n = write(w->fd, &one, sizeof one);
    (void)n; /* it fails when the counter is full: then it is readable */
}

void work_lock(struct work *w) { pthread_mutex_lock(&w->lock); }

void work_unlock(struct work *w) { pthread_mutex_unlock(&w->lock); }

void work_wake(struct work *w) { pthread_cond_signal(&w->changed); }

bool work_wait(struct work *w, uint64_t until_ns) {
    struct timespec until = {.tv_sec = (time_t)(until_ns / CLOCK_NS_PER_S),
                             .tv_nsec = (long)(until_ns % CLOCK_NS_PER_S)};
    int rc = until_ns == WORK_FOREVER ? pthread_cond_wait(&w->changed, &w->lock)
                                      : pthread_cond_timedwait(&w->changed, &w->lock, &until);
    return rc != ETIMEDOUT;
}

bool work_stop(struct work *w, int timeout_s) {
    struct timespec until;
    if (!w->is_open)
        return true;
    if (w->is_running) {
        work_lock(w);
        w->stop = true;
        work_wake(w);
        work_unlock(w);
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += timeout_s;
        if (pthread_timedjoin_np(w->thread, NULL, &until) != 0) {
            pthread_detach(w->thread);
            return false;
        }
    }
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    close(w->fd);
    memset(w, 0, sizeof *w);
    return true;
}
