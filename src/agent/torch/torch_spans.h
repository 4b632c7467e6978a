/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torch_spans: has torch tell its operations (spans.h): optimizer steps, fetched batches, collectives, record_function of
 * the job's own, wherever they are, without Python and without the GIL.
 *
 * at::addGlobalCallback for RecordScope::USER_SCOPE: nothing is patched, other operations of torch cost what they did. For a
 * share of the time also BACKWARD_FUNCTION, of which only the first and the last of a pass are told. The layout of the
 * callback (ATen/record_function.h) is C++ and no promise: only versions for which it was checked are touched. Called by the
 * sampler's thread.
 */
#ifndef AGENT_TORCH_TORCH_SPANS_H
#define AGENT_TORCH_TORCH_SPANS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* Is the layout known for this version ("2.13.0+cpu")? */
bool torch_spans_knows(const char *version);

/* Begin to be told: 0, at once when it has begun already. 1 with the error: not yet, the loader is still busy with torch; to be
 * asked again a second later. -1: this torch is not known, or does not show what is needed. */
int torch_spans_begin(const char *version, struct err *e);

/* In the child of a fork: nothing is told there until torch_spans_begin is called in it. Async-signal-safe. */
void torch_spans_in_child(void);

/* No longer. Operations that go on meanwhile still tell their end. */
void torch_spans_end(void);

/* Be told of backward passes too, or no longer. False when that is not possible now. */
bool torch_spans_watch_backward(bool on);

/* Count all operations of torch, on any thread, or no longer (false when that is not possible now); how many were so far. */
bool torch_spans_count(bool on);
uint64_t torch_spans_counted(void);

/* Time that telling takes, per operation, on the job's threads: of its beginning and its end, by the clock, as measured on
 * some of them; NAN none yet. */
double torch_spans_us(void);

#endif
