/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native: what an agent or a reader sends when native frames are wanted, made into what people read.
 *
 * Stacks come as native frames (addresses), then Python frames with entries among them. Here they get names, files and lines, and
 * are put into the order of the calls (native_merge.h). Looking for symbols can take long (a library is read when it is met first),
 * so it is no work for the loop. One thread at a time.
 */
#ifndef CLIENT_SYMBOLS_NATIVE_H
#define CLIENT_SYMBOLS_NATIVE_H

#include <sys/types.h>

#include "base/err.h"
#include "base/model.h"

struct native_names;

/* For process `pid`, as we number it; 0: not known, then there are no names. NULL without memory. */
struct native_names *native_names_new(pid_t pid);
void native_names_free(struct native_names *n);

/* Resolve all stacks of a snapshot, in place; thread->native says what became of each, s->native_note why names are missing. 0, or -1 without memory (then there are Python
 * frames only). */
int native_names_snapshot(struct native_names *n, struct model_snapshot *s);

/* Resolve a batch of a stream: `out` is a batch of its own (model_sample_batch_fini) with numbers of its own. Stacks that could not
 * be merged have a frame at their root that says so; out->native_note says why names are missing. 0, or -1 without memory. */
int native_names_batch(struct native_names *n, const struct model_sample_batch *in,
                       struct model_sample_batch *out);

/* The stream begins anew: forget its numbers. */
void native_names_forget(struct native_names *n);

#endif
