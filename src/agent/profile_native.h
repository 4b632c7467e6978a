/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile_native: native frames of the stacks that profile collects. Private to it.
 *
 * Python frames and native frames become one list: native ones first, then Python frames with their entries; clients put them in
 * order. For the tables, which must be readable without the process, that is done here, with the names that modules export. A thread that sleeps has what was copied only if its CPU clock stood still meanwhile. The sampler's thread.
 */
#ifndef AGENT_PROFILE_NATIVE_H
#define AGENT_PROFILE_NATIVE_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/profile.h"
#include "pystack/native.h"
#include "pystack/self.h"

#define PROFILE_NATIVE_FRAMES (NATIVE_MAX_FRAMES + PYSTACK_MAX_FRAMES)

struct profile_native {
    const struct model_frame *frames; /* borrowed until the next call */
    size_t n;                         /* 0: native frames are not known, or nobody wants them */
    const struct model_frame *merged; /* in the order of the calls, with names; likewise */
    size_t n_merged;
};

/* Before and after the frames of `t` are read from here. */
void profile_native_begin(struct profile *p, struct pystack *ps, const struct profile_thread *t);
void profile_native_end(struct profile *p, struct pystack *ps, const struct profile_thread *t, bool torn);

/* Before what a thread copied is decoded, and after. */
void profile_native_copied(struct profile *p, struct pystack *ps, const struct pystack_self *copy);
void profile_native_stop(struct profile *p, struct pystack *ps);

/* The Python frames just read or decoded, joined with native ones; `cut`: the outermost are missing. */
void profile_native_join(struct profile *p, struct pystack *ps, const struct model_frame *frames, size_t n,
                         bool cut, struct profile_native *out);

/* Nobody samples any more, or the interpreter is gone. */
void profile_native_pause(struct profile *p);
void profile_native_fini(struct profile *p);
size_t profile_native_bytes(const struct profile *p);

#endif
