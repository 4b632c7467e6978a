/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_request: a snapshot for which running threads are asked for their own frames, and,
 * where wanted, for registers and stack.
 *
 * The wait for answers is short: a thread that does not get a processor is read as it is. The
 * sampler's thread.
 */
#ifndef AGENT_SAMPLER_SNAPSHOT_REQUEST_H
#define AGENT_SAMPLER_SNAPSHOT_REQUEST_H

#include "agent/sampler/thread_sampler.h"
#include "base/err.h"
#include "base/model.h"
#include "pystack/native.h"
#include "pystack/pystack.h"
#include "wire/wire.h"

/* The options of all requests for the same snapshot. */
struct snapshot_request {
    bool locals; /* a client asks for locals; the data besides the frames: */
    struct pystack_locals_request of;
    struct native_request native;
};

/* Add a request: for one thread, or for all threads if the requests name different ones. */
void snapshot_request_join(struct snapshot_request *w, const struct wire_threads *want);

/* All threads but our own. Otherwise as pystack_snapshot_locals. */
int snapshot_request_snapshot(struct pystack *ps, struct thread_sampler *p, const struct snapshot_request *w,
                              struct model_snapshot *out, struct err *e);

#endif
