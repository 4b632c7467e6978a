/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signal_sampler: asks running threads for their own frames by a signal, and collects what they copied.
 *
 * One signal, SIGURG: what is not handled is ignored, so one that comes late (after exec, after we are gone) does nothing.
 * Sent only to a thread that runs, does not block it and has answered the last one. The handler copies into a slot of a
 * pool that is never freed while it may be used. Used by the sampler's thread; the handler runs on threads of the job.
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
    uint64_t
        refused; /* threads not asked: they block it, might not survive it, or the kernel did not take it */
    uint64_t restarted;  /* system calls interrupted and made to begin again */
    uint64_t eintr;      /* interrupted, and the caller was told */
    uint64_t handler_ns; /* spent within the handler, all threads together */
    uint64_t handled;
    uint64_t deliver_ns; /* and by the kernel around it, as one signal was measured to cost */
};

enum signal_sampler_answer {
    SIGNAL_SAMPLER_NONE = 0, /* nothing was asked */
    SIGNAL_SAMPLER_WAITING, /* the handler has not run: the thread has been in no code of its own since it was asked */
    SIGNAL_SAMPLER_COPYING,
    SIGNAL_SAMPLER_READY,
};

/* Install the handler. 0, or -1 with the reason why threads cannot be asked. */
int signal_sampler_arm(struct signal_sampler_stats *stats, struct err *e);

/* Take it out again; what was there before is there after. Nothing when it is not installed. */
void signal_sampler_disarm(void);

bool signal_sampler_is_armed(void);

/* Is the handler still ours? When the job has installed one of its own, everything is given up: -1 with the reason. */
int signal_sampler_check(struct err *e);

/* Does the thread run, on a CPU or waiting for one? `cpu_ns`: its clock, as it was just read. */
bool signal_sampler_is_running(int64_t tid, uint64_t cpu_ns);

/* From now on threads that are asked copy their registers and stack too (pystack_self.native), or not any more. */
void signal_sampler_set_native(bool wanted);

/* Ask the thread for its frames. True when the signal is on its way. */
bool signal_sampler_ask(struct pystack *ps, const struct pystack_thread *t,
                        const struct pystack_known *known);

/* This thread is asked no more (0: all are): it waits within a handler of another signal. */
void signal_sampler_leave_out(int64_t tid);

/* What has come of it. READY: `*copy` is the thread's until signal_sampler_release. */
void signal_sampler_count_late(const struct pystack_thread *t); /* once for each question */
enum signal_sampler_answer signal_sampler_get(const struct pystack_thread *t,
                                              const struct pystack_self **copy);
void signal_sampler_release(const struct pystack_thread *t);

/* Wait until `until_ns` (monotonic) for the answer. READY, or whoever asked does not want it any more. */
enum signal_sampler_answer signal_sampler_wait(const struct pystack_thread *t, uint64_t until_ns,
                                               const struct pystack_self **copy);

/* The thread is gone: nobody will answer. */
void signal_sampler_forget(const struct pystack_thread *t);

/* In the child of a fork: nothing of ours is installed there. Async-signal-safe. */
void signal_sampler_in_child(void);

/* Bytes held. */
size_t signal_sampler_bytes(void);

#endif
