/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sampler: the one thread that reads the interpreter: snapshots, samples, facts.
 *
 * Owns the pystack, and writes the tables (background.h). Sleeps without a timeout if nobody
 * asks for anything and there are no tables. Measures its own cost, and works less often if that
 * exceeds the budget. Never takes the GIL, never runs Python.
 */
#ifndef AGENT_SAMPLER_SAMPLER_H
#define AGENT_SAMPLER_SAMPLER_H

#include "agent/server/mailbox.h"
#include "base/err.h"

struct sampler;

/* Start the thread. It calls `wake`, without a lock, if there is something to take from the
 * mailbox. NULL with the error. The mailbox is the caller's and must outlive the sampler. */
struct sampler *sampler_start(struct mailbox *m, void (*wake)(void *arg), void *arg, struct err *e);

/* End the thread and free everything. */
void sampler_stop(struct sampler *s);

#endif
