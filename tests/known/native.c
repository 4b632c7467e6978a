/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native: threads that no interpreter knows, for jobs that are sampled: most sleep, some compute now and then; and what it
 * costs to send a signal to a thread that is on another CPU, which no sampler can do without.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define NATIVE_STACK ((size_t)128 * 1024)
#define NATIVE_LOOPS 20000 /* of one piece of work: some tens of microseconds */
#define NATIVE_PIECES 100
#define NATIVE_ROUNDS 400

__attribute__((visibility("default"))) int native_start(int sleeping, int busy);
__attribute__((visibility("default"))) uint64_t native_pieces(void);
__attribute__((visibility("default"))) uint64_t native_cpu_ns(void);
__attribute__((visibility("default"))) double native_signal_us(void);

static uint64_t native_done, native_cpu;

static void *native_sleep(void *arg) {
    (void)arg;
    for (;;)
        (void)pause();
    return NULL;
}

static void native_compute(void) {
    volatile uint64_t x = 1;
    for (int i = 0; i < NATIVE_LOOPS; i++)
        x = x * 2862933555777941757ULL + 3037000493ULL;
}

/* Computes and rests in turn, about as long. */
static void *native_work(void *arg) {
    struct timespec rest = {.tv_nsec = 3 * (long)CLOCK_NS_PER_MS};
    (void)arg;
    for (;;) {
        uint64_t from = clock_self_cpu_ns();
        for (int i = 0; i < NATIVE_PIECES; i++)
            native_compute();
        (void)__atomic_add_fetch(&native_done, NATIVE_PIECES, __ATOMIC_RELAXED);
        (void)__atomic_add_fetch(&native_cpu, clock_self_cpu_ns() - from, __ATOMIC_RELAXED);
        (void)nanosleep(&rest, NULL);
    }
    return NULL;
}

int native_start(int sleeping, int busy) {
    pthread_attr_t attr;
    pthread_t thread;
    int rc = pthread_attr_init(&attr);
    if (rc == 0)
        rc = pthread_attr_setstacksize(&attr, NATIVE_STACK);
    for (int i = 0; rc == 0 && i < sleeping + busy; i++)
        rc = pthread_create(&thread, &attr, i < sleeping ? native_sleep : native_work, NULL);
    return rc;
}

uint64_t native_pieces(void) { return __atomic_load_n(&native_done, __ATOMIC_RELAXED); }

uint64_t native_cpu_ns(void) { return __atomic_load_n(&native_cpu, __ATOMIC_RELAXED); }

/* ---- a signal to a thread that runs ---- */

static int64_t native_spinner;
static bool native_spin_end;

static void native_nothing(int sig) { (void)sig; }

/* The `which`-th CPU of those that may be used; nothing when there are not as many. */
static void native_pin(int which) {
    cpu_set_t all, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof all, &all) != 0)
        return;
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &all) && which-- == 0) {
            CPU_SET(i, &one);
            (void)sched_setaffinity(0, sizeof one, &one);
        }
}

static void *native_spin(void *arg) {
    (void)arg;
    native_pin(1);
    __atomic_store_n(&native_spinner, syscall(SYS_gettid), __ATOMIC_RELEASE);
    while (!__atomic_load_n(&native_spin_end, __ATOMIC_RELAXED)) {
    }
    return NULL;
}

static double native_send_many(void) {
    struct timespec apart = {.tv_nsec = (long)CLOCK_NS_PER_MS};
    pid_t tid = (pid_t)native_spinner;
    uint64_t sum = 0;
    int n = 0;
    for (int i = 0; i < NATIVE_ROUNDS; i++) {
        (void)nanosleep(&apart, NULL);
        uint64_t clock = clock_thread_cpu_ns(tid);
        if (clock_thread_cpu_ns(tid) == clock)
            continue; /* someone else is on its CPU */
        uint64_t from = clock_self_cpu_ns();
        (void)syscall(SYS_tgkill, getpid(), tid, SIGUSR2);
        sum += clock_self_cpu_ns() - from;
        n++;
    }
    return n ? (double)sum / n / 1e3 : -1;
}

/* CPU time of the sender for one signal to a thread that runs on another CPU, in microseconds; < 0 failed. */
double native_signal_us(void) {
    struct sigaction sa = {.sa_handler = native_nothing, .sa_flags = SA_RESTART};
    struct timespec apart = {.tv_nsec = (long)CLOCK_NS_PER_MS};
    pthread_t thread;
    cpu_set_t before;
    if (sched_getaffinity(0, sizeof before, &before) != 0 || sigaction(SIGUSR2, &sa, NULL) != 0 ||
        pthread_create(&thread, NULL, native_spin, NULL) != 0)
        return -1;
    while (!__atomic_load_n(&native_spinner, __ATOMIC_ACQUIRE))
        (void)nanosleep(&apart, NULL);
    native_pin(0);
    double us = native_send_many();
    (void)sched_setaffinity(0, sizeof before, &before);
    __atomic_store_n(&native_spin_end, true, __ATOMIC_RELAXED);
    (void)pthread_join(thread, NULL);
    return us;
}
