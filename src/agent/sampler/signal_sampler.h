/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signal_sampler: running threads copy their own frames when a signal arrives, which we send or a
 * timer on their CPU clock.
 *
 * The signal is SIGURG, whose default is to be ignored, so a late one (after exec, after we are
 * gone) does nothing. We send it only to a thread that runs, does not block it and has answered
 * the last one, unless that was withdrawn. The handler copies into a slot of a pool that is never freed while it may be
 * used. A thread whose timer runs has a slot for itself, in which its copies are collected until
 * they are drained. Used by the sampler's thread; the handler runs on threads of the job.
 */
#ifndef AGENT_SAMPLER_SIGNAL_SAMPLER_H
#define AGENT_SAMPLER_SIGNAL_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "pystack/self.h"

#define SIGNAL_SAMPLER_SLOTS 64

struct signal_sampler_stats {
    uint64_t sent;
    uint64_t late; /* not answered by the next tick */
    /* threads not asked: they block it, might not survive it, or the kernel did not accept it */
    uint64_t refused;
    uint64_t restarted;  /* system calls interrupted and restarted */
    uint64_t eintr;      /* system calls interrupted, and their callers saw EINTR */
    uint64_t handler_ns; /* time within the handler, of all threads together */
    uint64_t handled;
    uint64_t deliver_ns; /* and in the kernel around it, by the measured cost of one signal */
    uint64_t expired;    /* expiries of timers */
};

enum signal_sampler_answer {
    SIGNAL_SAMPLER_NONE = 0, /* there is no request */
    /* the handler has not run: the thread has run none of its own code since the request */
    SIGNAL_SAMPLER_WAITING,
    SIGNAL_SAMPLER_COPYING,
    SIGNAL_SAMPLER_READY,
};

/* Install the handler, and go on counting in `stats` until signal_sampler_disarm. 0, or -1 with the
 * reason why threads cannot be asked. */
int signal_sampler_arm(struct signal_sampler_stats *stats, struct err *e);

/* Remove it and restore the previous disposition. A no-op if it is not installed. */
void signal_sampler_disarm(void);

bool signal_sampler_is_armed(void);

/* Check that the handler is still ours. If the job has installed its own, everything is given
 * up: -1 with the reason. */
int signal_sampler_check(struct err *e);

/* True if the thread runs, on a CPU or waiting for one. `cpu_ns`: its clock, as just read. */
bool signal_sampler_is_running(int64_t tid, uint64_t cpu_ns);

/* Whether threads that are asked from now on also copy their registers and stack
 * (pystack_self.native). */
void signal_sampler_set_native(bool wanted);

/* Ask the thread for its frames. True if the signal is sent. */
bool signal_sampler_ask(struct pystack *ps, const struct pystack_thread *t,
                        const struct pystack_known *known);

/* Do not ask this thread again (0: all threads may be asked): it waits within a handler of
 * another signal. */
void signal_sampler_leave_out(int64_t tid);

void signal_sampler_count_late(const struct pystack_thread *t); /* once per request */
/* The answer. READY: `*copy` is the thread's copy until signal_sampler_release. */
enum signal_sampler_answer signal_sampler_get(const struct pystack_thread *t,
                                              const struct pystack_self **copy);
void signal_sampler_release(const struct pystack_thread *t);

/* Wait for the answer until `until_ns` (monotonic). If it is not READY, the request is
 * withdrawn. */
enum signal_sampler_answer signal_sampler_wait(const struct pystack_thread *t, uint64_t until_ns,
                                               const struct pystack_self **copy);

/* The thread is gone, or nobody waits for its answer any longer. */
void signal_sampler_forget(const struct pystack_thread *t);

/* ---- timers on threads' own CPU clocks ---- */

enum signal_sampler_timer {
    SIGNAL_SAMPLER_TIMER_OFF = 0, /* refused, see signal_sampler_timer_error; or the thread cannot be asked */
    /* it has no alternative signal stack yet: it gets one when it answers its next signal */
    SIGNAL_SAMPLER_TIMER_LATER,
    SIGNAL_SAMPLER_TIMER_ON,
};

/* Let the thread copy its frames every `interval_ns` of its own CPU time, the first time after
 * `first_ns`, from now on and until it is gone or signal_sampler_stop_timers. To be called again
 * now and then: it checks that the thread still takes the signal. */
enum signal_sampler_timer signal_sampler_set_timer(struct pystack *ps, const struct pystack_thread *t,
                                                   const struct pystack_known *known, uint64_t first_ns,
                                                   uint64_t interval_ns);

/* Why timers were refused; "" if they were not. */
const char *signal_sampler_timer_error(void);

void signal_sampler_stop_timers(void);

/* Take the copies that the thread's timer has caused so far, oldest first; `*copy` is valid within
 * the call of `take`, `weight` is the number of expiries that it stands for. Returns true if more than
 * half of the room for them was used. */
bool signal_sampler_drain(const struct pystack_thread *t,
                          void (*take)(void *arg, const struct pystack_self_result *copy, uint32_t weight),
                          void *arg);

/* In the child of a fork, which has no handler of ours. Async-signal-safe. */
void signal_sampler_in_child(void);

/* Bytes of memory in use. */
size_t signal_sampler_bytes(void);

#endif
