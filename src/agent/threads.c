/* SPDX-License-Identifier: Apache-2.0 */
/* threads: see threads.h. */
#include "agent/threads.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

#define THREADS_STACK_BYTES ((size_t)512 * 1024)
#define THREADS_STACK_PAGES 2048U                   /* a larger one is not measured */
#define THREADS_STACK_FRESH_NS (5 * CLOCK_NS_PER_S) /* how long a result is valid */
/* of address space; only the used part takes memory */
#define THREADS_DEEP_STACK_BYTES ((size_t)8 * 1024 * 1024)

static struct {
    pthread_mutex_t lock;
    int64_t tids[THREADS_MAX];
    int64_t guest; /* 0 if there is none */
    uint64_t ended_cpu_ns;
} threads = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void threads_lock(void) { pthread_mutex_lock(&threads.lock); }

static void threads_unlock(void) { pthread_mutex_unlock(&threads.lock); }

static int threads_create_sized(pthread_t *thread, void *(*fn)(void *), void *arg, bool detached,
                                size_t stack) {
    sigset_t all, before;
    pthread_attr_t attr;
    int rc = pthread_attr_init(&attr);
    if (rc != 0)
        return rc;
    sigfillset(&all);
    rc = pthread_sigmask(SIG_SETMASK, &all, &before);
    if (rc == 0) {
        pthread_attr_setdetachstate(&attr, detached ? PTHREAD_CREATE_DETACHED : PTHREAD_CREATE_JOINABLE);
        pthread_attr_setstacksize(&attr, stack);
        rc = pthread_create(thread, &attr, fn, arg);
        /* Thread-local storage is on the stack; a job may have more of it than our stacks are
         * large. */
        for (size_t size = 4 * THREADS_STACK_BYTES; rc == EINVAL && size <= 64 * THREADS_STACK_BYTES;
             size *= 4) {
            pthread_attr_setstacksize(&attr, size);
            rc = pthread_create(thread, &attr, fn, arg);
        }
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    pthread_attr_destroy(&attr);
    return rc;
}

int threads_create(pthread_t *thread, void *(*fn)(void *), void *arg, bool detached) {
    return threads_create_sized(thread, fn, arg, detached, THREADS_STACK_BYTES);
}

int threads_create_deep(pthread_t *thread, void *(*fn)(void *), void *arg, bool detached) {
    int rc = threads_create_sized(thread, fn, arg, detached, THREADS_DEEP_STACK_BYTES);
    return rc == 0 ? 0 : threads_create_sized(thread, fn, arg, detached, THREADS_STACK_BYTES);
}

void threads_begin(const char *name) {
    prctl(PR_SET_NAME, name);
    threads_lock();
    for (size_t i = 0; i < THREADS_MAX; i++)
        if (!threads.tids[i]) {
            threads.tids[i] = syscall(SYS_gettid);
            break;
        }
    threads_unlock();
}

void threads_forget(int64_t tid) {
    threads_lock();
    for (size_t i = 0; i < THREADS_MAX; i++)
        if (threads.tids[i] == tid)
            threads.tids[i] = 0;
    threads_unlock();
}

void threads_end(void) {
    int64_t self = syscall(SYS_gettid);
    threads_lock();
    for (size_t i = 0; i < THREADS_MAX; i++)
        if (threads.tids[i] == self)
            threads.tids[i] = 0;
    threads.ended_cpu_ns += clock_self_cpu_ns();
    threads_unlock();
}

size_t threads_own_tids(int64_t *tids, size_t cap) {
    size_t n = 0;
    threads_lock();
    for (size_t i = 0; i < THREADS_MAX && n < cap; i++)
        if (threads.tids[i])
            tids[n++] = threads.tids[i];
    if (threads.guest && n < cap)
        tids[n++] = threads.guest;
    threads_unlock();
    return n;
}

static uint64_t threads_sum_cpu(bool *own) {
    int64_t self = syscall(SYS_gettid);
    *own = false;
    threads_lock();
    uint64_t sum = threads.ended_cpu_ns;
    for (size_t i = 0; i < THREADS_MAX; i++) {
        *own = *own || threads.tids[i] == self;
        if (threads.tids[i] && threads.tids[i] != self)
            sum += clock_thread_cpu_ns((pid_t)threads.tids[i]);
    }
    threads_unlock();
    return sum;
}

uint64_t threads_cpu_ns(void) {
    bool own;
    uint64_t others = threads_sum_cpu(&own);
    return own ? others + clock_self_cpu_ns() : others;
}

uint64_t threads_others_cpu_ns(void) {
    bool own;
    return threads_sum_cpu(&own);
}

void threads_set_guest(int64_t tid) {
    threads_lock();
    threads.guest = tid;
    threads_unlock();
}

void threads_clear_cpu(void) {
    threads_lock();
    threads.ended_cpu_ns = 0;
    threads_unlock();
}

/* mincore(2) shows the resident pages of a private mapping. */
static size_t threads_count_stack(void) {
    pthread_attr_t attr;
    void *start = NULL;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attr) != 0)
        return 0;
    int rc = pthread_attr_getstack(&attr, &start, &size);
    pthread_attr_destroy(&attr);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char there[THREADS_STACK_PAGES];
    uintptr_t from = ((uintptr_t)start + page - 1) / page * page;
    size_t pages = ((uintptr_t)start + size - from) / page;
    if (rc != 0 || pages > THREADS_STACK_PAGES || mincore((void *)from, pages * page, there) != 0)
        return 0;
    size_t resident = 0;
    for (size_t i = 0; i < pages; i++)
        resident += there[i] & 1U;
    return resident * page;
}

size_t threads_stack_bytes(struct threads_stack *a) {
    uint64_t now = clock_mono_ns();
    if (a->at_ns == 0 || now - a->at_ns > THREADS_STACK_FRESH_NS)
        *a = (struct threads_stack){.at_ns = now, .bytes = threads_count_stack()};
    return a->bytes;
}

void threads_in_child(void) {
    threads.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    for (size_t i = 0; i < THREADS_MAX; i++)
        threads.tids[i] = 0;
    threads.guest = 0;
    threads.ended_cpu_ns = 0;
}
