/* SPDX-License-Identifier: Apache-2.0 */
/* clock: see clock.h. */
#include "base/clock.h"

#include <time.h>

#define CLOCK_NEAR_NS 50000 /* two clock reads this close: the thread kept its CPU in between */
#define CLOCK_TRIES 8

static uint64_t clock_read_ns(clockid_t id) {
    struct timespec ts;
    if (clock_gettime(id, &ts) != 0)
        return 0;
    return (uint64_t)ts.tv_sec * CLOCK_NS_PER_S + (uint64_t)ts.tv_nsec;
}

uint64_t clock_mono_ns(void) { return clock_read_ns(CLOCK_MONOTONIC); }

double clock_epoch_s(void) { return (double)clock_read_ns(CLOCK_REALTIME) / 1e9; }

double clock_mono_to_epoch_s(void) {
    uint64_t shortest = UINT64_MAX;
    double offset_s = 0;
    for (int i = 0; i < CLOCK_TRIES && shortest > CLOCK_NEAR_NS; i++) {
        uint64_t before = clock_mono_ns();
        double epoch_s = clock_epoch_s();
        uint64_t took = clock_mono_ns() - before;
        if (took < shortest) {
            shortest = took;
            offset_s = epoch_s - (double)(before + took / 2) / 1e9;
        }
    }
    return offset_s;
}

clockid_t clock_of_thread(pid_t tid) {
    /* CPUCLOCK_PERTHREAD_MASK is 4, CPUCLOCK_SCHED is 2. */
    return (clockid_t)((~(unsigned)tid << 3) | 4U | 2U);
}

uint64_t clock_thread_cpu_ns(pid_t tid) { return clock_read_ns(clock_of_thread(tid)); }

uint64_t clock_process_cpu_ns(void) { return clock_read_ns(CLOCK_PROCESS_CPUTIME_ID); }

uint64_t clock_self_cpu_ns(void) { return clock_read_ns(CLOCK_THREAD_CPUTIME_ID); }
