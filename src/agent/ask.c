/* SPDX-License-Identifier: Apache-2.0 */
/* ask: see ask.h. */
#include "agent/ask.h"

#include "agent/agent.h"
#include "agent/exact.h"
#include "base/clock.h"

#define ASK_WAIT_NS (2 * CLOCK_NS_PER_MS)
#define ASK_NATIVE_NS (100 * CLOCK_NS_PER_MS) /* more: native frames are to be had in no other way */
#define ASK_MAPS_NS (20 * CLOCK_NS_PER_MS)    /* what was mapped that long ago is believed by one snapshot */

/* A snapshot being made. */
struct ask_work {
    struct pystack *ps;
    struct profile *profile;
    uint64_t until_ns; /* how long threads that were asked are waited for */
};

void ask_join(struct ask_wishes *w, const struct wire_threads *want) {
    w->of.tasks = w->of.tasks || want->tasks;
    if (want->locals) {
        w->of.tid = !w->locals || w->of.tid == want->tid ? want->tid : 0;
        w->locals = true;
    }
    if (want->native) {
        w->native.tid = !w->native.wanted || w->native.tid == want->tid ? want->tid : 0;
        w->native.wanted = true;
        w->native.max_age_ns = ASK_MAPS_NS;
    }
}

/* What thread `t` has copied, to be released, or NULL. */
static const struct pystack_self *ask_thread(struct ask_work *w, const struct pystack_thread *t) {
    const struct pystack_self *copy;
    if (!exact_is_armed() || clock_mono_ns() >= w->until_ns || !exact_ask(w->ps, t, w->profile->known) ||
        exact_wait(t, w->until_ns, &copy) != EXACT_READY)
        return NULL;
    return copy;
}

/* Frames of a thread that runs, from itself. See struct pystack_asker. */
static ssize_t ask_frames(void *arg, const struct pystack_thread *t, struct arena *arena,
                          struct model_frame **out, bool *truncated, enum model_gil *gil, int8_t *gc) {
    struct ask_work *w = arg;
    const struct pystack_self *copy = ask_thread(w, t);
    if (!copy)
        return -1;
    ssize_t n = pystack_self_decode(w->ps, copy, w->profile->known, arena, out, truncated,
                                    &w->profile->unknown_frames);
    *gil = copy->gil_state;
    *gc = copy->gc_state;
    if (n >= 0 && copy->native && pystack_wants_native(w->ps, t->tid))
        pystack_put_native(w->ps, copy->native);
    exact_release(t);
    return n;
}

/* Registers and stack of a thread without Python that runs. See struct pystack_asker. */
static void ask_native(void *arg, int64_t tid) {
    struct ask_work *w = arg;
    const struct pystack_thread t = {.tid = tid};
    const struct pystack_self *copy = ask_thread(w, &t);
    if (!copy)
        return;
    if (copy->native)
        pystack_put_native(w->ps, copy->native);
    exact_release(&t);
}

/* Threads of ours that began while the others were read. */
static void ask_leave_out_own(struct model_snapshot *s) {
    int64_t own[AGENT_MAX_TIDS];
    size_t n_own = agent_own_tids(own, AGENT_MAX_TIDS), kept = 0;
    for (size_t i = 0; i < s->n_threads; i++) {
        bool is_own = false;
        for (size_t k = 0; k < n_own; k++)
            is_own = is_own || own[k] == s->threads[i].tid;
        if (!is_own)
            s->threads[kept++] = s->threads[i];
    }
    s->n_threads = kept;
}

int ask_snapshot(struct pystack *ps, struct profile *p, const struct ask_wishes *w,
                 struct model_snapshot *out, struct err *e) {
    int64_t own[AGENT_MAX_TIDS];
    size_t n_own = agent_own_tids(own, AGENT_MAX_TIDS);
    struct ask_work work = {.ps = ps, .profile = p, .until_ns = clock_mono_ns() + ASK_WAIT_NS};
    if (w->native.wanted)
        work.until_ns += ASK_NATIVE_NS;
    pystack_set_asker(ps, &(struct pystack_asker){.read = ask_frames, .native = ask_native, .arg = &work});
    (void)pystack_want_native(ps, &w->native);
    exact_set_native(w->native.wanted || p->native);
    struct pystack_locals_wish of = w->of;
    of.without_locals = !w->locals;
    int rc = pystack_snapshot_locals(ps, own, n_own, w->locals || of.tasks ? &of : NULL, out, e);
    pystack_set_asker(ps, &(struct pystack_asker){.read = NULL});
    (void)pystack_want_native(ps, NULL);
    exact_set_native(p->native);
    if (rc == 0) {
        ask_leave_out_own(out);
        profile_put_same(p, out);
    }
    return rc;
}
