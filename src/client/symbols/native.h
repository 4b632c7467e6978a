/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native: turns addresses of native frames into readable stacks.
 *
 * Stacks come as native frames (addresses), then Python frames with entries among them. Here
 * they get names, files and lines, and are put into the order of the calls (native_merge.h).
 * Reading symbols can take long (at the first use of a library), so never on the loop's thread.
 * One thread at a time.
 */
#ifndef CLIENT_SYMBOLS_NATIVE_H
#define CLIENT_SYMBOLS_NATIVE_H

#include <sys/types.h>

#include "base/err.h"
#include "base/model.h"

struct native_names;

/* For process `pid`, in our numbering; 0: unknown, and then there are no names. NULL without
 * memory. */
struct native_names *native_names_new(pid_t pid);
void native_names_free(struct native_names *n);

/* Resolve all stacks of a snapshot, in place. thread->native is the result for each,
 * s->native_note why names are missing. 0, or -1 without memory (then only Python frames are
 * left). */
int native_names_snapshot(struct native_names *n, struct model_snapshot *s);

/* Resolve a batch of a stream: `out` is a batch of its own (model_sample_batch_fini) with
 * numbers of its own. Stacks that could not be merged have a frame at their root that says so;
 * out->native_note says why names are missing. 0, or -1 without memory. */
int native_names_batch(struct native_names *n, const struct model_sample_batch *in,
                       struct model_sample_batch *out);

/* A new stream starts: forget the numbers of the old one. */
void native_names_forget(struct native_names *n);

#endif
