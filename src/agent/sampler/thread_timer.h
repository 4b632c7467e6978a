/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread_timer: a timer on the CPU clock of one thread of this process, which sends a signal to
 * that thread itself.
 *
 * The kernel looks at such timers in its scheduler's tick, on the CPU on which the thread runs: a
 * thread that sleeps is not woken, no other CPU is interrupted, and nothing expires more often
 * than the tick. A timer belongs to the process: a child of a fork has none, and execve ends it.
 * Each one takes a place of RLIMIT_SIGPENDING. Used by the sampler's thread.
 */
#ifndef AGENT_SAMPLER_THREAD_TIMER_H
#define AGENT_SAMPLER_THREAD_TIMER_H

#include <stdint.h>

/* The time between two of the scheduler's ticks; 0 unknown. */
uint64_t thread_timer_tick_ns(void);

/* Make a timer for thread `tid` that sends `sig` with `value` (si_code SI_TIMER, si_int). It does
 * not run yet. Returns its id, or -1 with errno. */
int thread_timer_create(int64_t tid, int sig, int value);

/* Let it expire every `interval_ns` of the thread's CPU time, the first time after `first_ns`. 0, or -1 with
 * errno: ESRCH if the thread is gone. */
int thread_timer_start(int timer, uint64_t first_ns, uint64_t interval_ns);

/* A signal that is pending already may still arrive. */
void thread_timer_delete(int timer);

#endif
