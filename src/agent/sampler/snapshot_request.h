/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_request: a snapshot for which threads that run are asked for their own frames, and, where wanted, for registers and stack.
 *
 * Waits for answers, but not for long: a thread that does not get a processor is read as it is. The sampler's thread.
 */
#ifndef AGENT_SAMPLER_SNAPSHOT_REQUEST_H
#define AGENT_SAMPLER_SNAPSHOT_REQUEST_H

#include "agent/sampler/thread_sampler.h"
#include "base/err.h"
#include "base/model.h"
#include "pystack/native.h"
#include "pystack/pystack.h"
#include "wire/wire.h"

/* What those who wait for the same snapshot want of it. */
struct snapshot_request {
    bool locals; /* somebody asks for locals; what is asked for beside the frames: */
    struct pystack_locals_request of;
    struct native_request native;
};

/* One more who asks: of one thread, or of all when they ask for different ones. */
void snapshot_request_join(struct snapshot_request *w, const struct wire_threads *want);

/* All threads but our own. As pystack_snapshot_locals. */
int snapshot_request_snapshot(struct pystack *ps, struct thread_sampler *p, const struct snapshot_request *w,
                              struct model_snapshot *out, struct err *e);

#endif
