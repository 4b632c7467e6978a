/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread_sampler_native: native frames of the stacks that thread_sampler collects. Private to
 * it.
 *
 * Python frames and native frames become one list: native ones first, then Python frames with
 * their entries; clients put them in order. For the tables, which must be readable without the
 * process, that is done here, with the names that modules export. A copy of a sleeping thread is
 * valid only if its CPU clock stood still meanwhile. The sampler's thread.
 */
#ifndef AGENT_SAMPLER_THREAD_SAMPLER_NATIVE_H
#define AGENT_SAMPLER_THREAD_SAMPLER_NATIVE_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/sampler/thread_sampler.h"
#include "pystack/native.h"
#include "pystack/self.h"

#define THREAD_SAMPLER_NATIVE_FRAMES (NATIVE_MAX_FRAMES + PYSTACK_MAX_FRAMES)

struct thread_sampler_native {
    const struct model_frame *frames; /* borrowed until the next call */
    size_t n;                         /* 0: native frames are unknown, or nobody wants them */
    const struct model_frame *merged; /* in call order, with names; borrowed likewise */
    size_t n_merged;
};

/* Before and after the frames of `t` are read from here. */
void thread_sampler_native_begin(struct thread_sampler *p, struct pystack *ps,
                                 const struct thread_sampler_thread *t);
void thread_sampler_native_end(struct thread_sampler *p, struct pystack *ps,
                               const struct thread_sampler_thread *t, bool torn);

/* Before a thread's copy is decoded, and after that. */
void thread_sampler_native_copied(struct thread_sampler *p, struct pystack *ps,
                                  const struct pystack_self *copy);
void thread_sampler_native_stop(struct thread_sampler *p, struct pystack *ps);

/* Join the Python frames just read or decoded with native ones; `cut`: the outermost are
 * missing. */
void thread_sampler_native_join(struct thread_sampler *p, struct pystack *ps,
                                const struct model_frame *frames, size_t n, bool cut,
                                struct thread_sampler_native *out);

/* Sampling ends, or the interpreter is gone. */
void thread_sampler_native_pause(struct thread_sampler *p);
void thread_sampler_native_fini(struct thread_sampler *p);
size_t thread_sampler_native_bytes(const struct thread_sampler *p);

#endif
