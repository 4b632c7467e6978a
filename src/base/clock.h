/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock: the time, in the two forms the project uses.
 *
 * Monotonic nanoseconds for intervals and deadlines, seconds since the epoch (UTC) for
 * timestamps. Async-signal-safe.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <sys/types.h>

#define CLOCK_NS_PER_S 1000000000ULL
#define CLOCK_NS_PER_MS 1000000ULL
#define CLOCK_NS_PER_US 1000ULL

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t clock_mono_ns(void);

/* Seconds since the epoch, UTC. */
double clock_epoch_s(void);

/* Seconds to add to CLOCK_MONOTONIC to get seconds since the epoch. Exact to 50 us if the thread
 * keeps its CPU that long, because the two clocks are read one after the other. */
double clock_mono_to_epoch_s(void);

/* The id of the CPU clock of thread `tid` of this process, as pthread_getcpuclockid would give
 * it: see MAKE_THREAD_CPUCLOCK in Linux' posix-timers.h. */
clockid_t clock_of_thread(pid_t tid);

/* CPU time of thread `tid` of this process in nanoseconds, or 0 if it cannot be read (the thread
 * is gone). */
uint64_t clock_thread_cpu_ns(pid_t tid);

/* CPU time of this process, all threads together, in nanoseconds. */
uint64_t clock_process_cpu_ns(void);

/* CPU time of the calling thread in nanoseconds. */
uint64_t clock_self_cpu_ns(void);

#endif
