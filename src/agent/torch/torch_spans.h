/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torch_spans: makes torch report its operations (spans.h): optimizer steps, fetched batches,
 * collectives, record_function of the job, on any thread, without Python and without the GIL.
 *
 * at::addGlobalCallback for RecordScope::USER_SCOPE: nothing is patched, and other operations of
 * torch cost the same as before. While they are watched also BACKWARD_FUNCTION, of which only
 * the first and the last of a pass are reported. The layout of the callback
 * (ATen/record_function.h) is C++ and not guaranteed: only versions are used for which it was
 * checked. Called by the sampler's thread.
 */
#ifndef AGENT_TORCH_TORCH_SPANS_H
#define AGENT_TORCH_TORCH_SPANS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* True if the layout is known for this version ("2.13.0+cpu"). */
bool torch_spans_knows(const char *version);

/* Start reports: 0, immediately if they are started already. 1 with the error: not yet, the
 * loader is still busy with torch; try again a second later. -1: this torch is unknown, or lacks
 * a required function. */
int torch_spans_begin(const char *version, struct err *e);

/* In the child of a fork: nothing is reported there until torch_spans_begin is called in it.
 * Async-signal-safe. */
void torch_spans_in_child(void);

/* Stop. Current operations still report their end. */
void torch_spans_end(void);

/* Also report backward passes, or no longer. False if that is not possible now. */
bool torch_spans_watch_backward(bool on);

/* The nodes of backward passes that were reported so far, and the time that those of Python (a
 * torch.autograd.Function of the job) have waited at most to be reported: torch takes the GIL for
 * their names. */
void torch_spans_passes(uint64_t *nodes, uint64_t *wait_ns);

/* Count all operations of torch, on any thread, or no longer (false if that is not possible
 * now); the number so far. */
bool torch_spans_count(bool on);
uint64_t torch_spans_counted(void);

/* Time of the reports per operation, on the job's threads: of its begin and its end, by the
 * clock, as measured for some of them; NAN if there was none. */
double torch_spans_us(void);

#endif
