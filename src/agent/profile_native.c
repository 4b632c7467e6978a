/* SPDX-License-Identifier: Apache-2.0 */
/* profile_native: see profile_native.h. */
#include "agent/profile_native.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define PROFILE_NATIVE_MAPS_NS (10 * CLOCK_NS_PER_S) /* an address that is not known has them read sooner */

void profile_set_native(struct profile *p, struct pystack *ps, bool wanted) {
    if (wanted && !p->joined)
        p->joined = calloc(PROFILE_NATIVE_FRAMES, sizeof *p->joined);
    if (wanted && (!p->joined || pystack_want_native(ps, &(struct native_wish){.wanted = true}) != 0))
        wanted = false;
    (void)pystack_want_native(ps, NULL);
    for (size_t i = 0; wanted && !p->native && i < p->n_threads; i++)
        p->threads[i].looked = false; /* what was seen so far had no native frames */
    p->native = wanted;
}

static void profile_native_want(struct pystack *ps) {
    (void)pystack_want_native(ps,
                              &(struct native_wish){.wanted = true, .max_age_ns = PROFILE_NATIVE_MAPS_NS});
}

void profile_native_begin(struct profile *p, struct pystack *ps, const struct profile_thread *t) {
    if (!p->native)
        return;
    profile_native_want(ps);
    if (!pystack_native_begin(ps, t->py.tid, (pid_t)t->py.tid, true))
        pystack_native_copy(ps)->known = 0;
}

void profile_native_end(struct profile *p, struct pystack *ps, const struct profile_thread *t, bool torn) {
    if (!p->native)
        return;
    if (!torn && clock_thread_cpu_ns((pid_t)t->py.tid) == t->cpu_now_ns)
        pystack_put_native(ps, pystack_native_copy(ps));
    profile_native_stop(p, ps);
}

void profile_native_copied(struct profile *p, struct pystack *ps, const struct pystack_self *copy) {
    if (!p->native)
        return;
    profile_native_want(ps);
    (void)pystack_native_begin(ps, copy->thread.tid, (pid_t)copy->thread.tid, false);
    if (copy->native)
        pystack_put_native(ps, copy->native);
}

void profile_native_stop(struct profile *p, struct pystack *ps) {
    size_t n;
    if (!p->native)
        return;
    (void)pystack_native_end(ps, &n);
    (void)pystack_want_native(ps, NULL);
}

void profile_native_join(struct profile *p, struct pystack *ps, const struct model_frame *frames, size_t n,
                         struct profile_native *out) {
    size_t n_native = 0;
    *out = (struct profile_native){.n = 0};
    if (!p->native)
        return;
    const struct model_frame *native = pystack_native_end(ps, &n_native);
    if (n_native == 0 || n_native + n > PROFILE_NATIVE_FRAMES)
        return;
    memcpy(p->joined, native, n_native * sizeof *native);
    if (n)
        memcpy(p->joined + n_native, frames, n * sizeof *frames);
    *out = (struct profile_native){.frames = p->joined, .n = n_native + n};
}
