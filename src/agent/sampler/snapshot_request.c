/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot_request: see snapshot_request.h. */
#include "agent/sampler/snapshot_request.h"

#include "agent/threads.h"
#include "agent/sampler/signal_sampler.h"
#include "base/clock.h"

#define SNAPSHOT_REQUEST_WAIT_NS (2 * CLOCK_NS_PER_MS)
/* longer, because nothing else gives native frames */
#define SNAPSHOT_REQUEST_NATIVE_NS (100 * CLOCK_NS_PER_MS)
/* a mapping seen that long ago is believed for one snapshot */
#define SNAPSHOT_REQUEST_MAPS_NS (20 * CLOCK_NS_PER_MS)

/* A snapshot being made. */
struct snapshot_request_work {
    struct pystack *ps;
    struct thread_sampler *profile;
    uint64_t until_ns; /* end of the wait for threads that were asked */
};

void snapshot_request_join(struct snapshot_request *w, const struct wire_threads *want) {
    w->of.tasks = w->of.tasks || want->tasks;
    if (want->locals) {
        w->of.tid = !w->locals || w->of.tid == want->tid ? want->tid : 0;
        w->locals = true;
    }
    if (want->native) {
        w->native.tid = !w->native.wanted || w->native.tid == want->tid ? want->tid : 0;
        w->native.wanted = true;
        w->native.max_age_ns = SNAPSHOT_REQUEST_MAPS_NS;
    }
}

/* The copy of thread `t`, to be released, or NULL. */
static const struct pystack_self *snapshot_request_thread(struct snapshot_request_work *w,
                                                          const struct pystack_thread *t) {
    const struct pystack_self *copy;
    if (!signal_sampler_is_armed() || clock_mono_ns() >= w->until_ns ||
        !signal_sampler_ask(w->ps, t, w->profile->known) ||
        signal_sampler_wait(t, w->until_ns, &copy) != SIGNAL_SAMPLER_READY)
        return NULL;
    return copy;
}

/* The frames of a running thread, from the thread itself. See struct pystack_asker. */
static ssize_t snapshot_request_frames(void *arg, const struct pystack_thread *t, struct arena *arena,
                                       struct model_frame **out, bool *truncated, enum model_gil *gil,
                                       int8_t *gc) {
    struct snapshot_request_work *w = arg;
    const struct pystack_self *copy = snapshot_request_thread(w, t);
    if (!copy)
        return -1;
    ssize_t n = pystack_self_decode(w->ps, copy, w->profile->known, arena, out, truncated,
                                    &w->profile->unknown_frames);
    *gil = copy->gil_state;
    *gc = copy->gc_state;
    if (n >= 0 && copy->native && pystack_wants_native(w->ps, t->tid))
        pystack_put_native(w->ps, copy->native);
    signal_sampler_release(t);
    return n;
}

/* The registers and stack of a running thread without Python. See struct pystack_asker. */
static void snapshot_request_native(void *arg, int64_t tid) {
    struct snapshot_request_work *w = arg;
    const struct pystack_thread t = {.tid = tid};
    const struct pystack_self *copy = snapshot_request_thread(w, &t);
    if (!copy)
        return;
    if (copy->native)
        pystack_put_native(w->ps, copy->native);
    signal_sampler_release(&t);
}

/* Threads of ours that started while the others were read. */
static void snapshot_request_leave_out_own(struct model_snapshot *s) {
    int64_t own[THREADS_MAX];
    size_t n_own = threads_own_tids(own, THREADS_MAX), kept = 0;
    for (size_t i = 0; i < s->n_threads; i++) {
        bool is_own = false;
        for (size_t k = 0; k < n_own; k++)
            is_own = is_own || own[k] == s->threads[i].tid;
        if (!is_own)
            s->threads[kept++] = s->threads[i];
    }
    s->n_threads = kept;
}

int snapshot_request_snapshot(struct pystack *ps, struct thread_sampler *p, const struct snapshot_request *w,
                              struct model_snapshot *out, struct err *e) {
    int64_t own[THREADS_MAX];
    size_t n_own = threads_own_tids(own, THREADS_MAX);
    struct snapshot_request_work work = {
        .ps = ps, .profile = p, .until_ns = clock_mono_ns() + SNAPSHOT_REQUEST_WAIT_NS};
    if (w->native.wanted)
        work.until_ns += SNAPSHOT_REQUEST_NATIVE_NS;
    pystack_set_asker(ps, &(struct pystack_asker){.read = snapshot_request_frames,
                                                  .native = snapshot_request_native,
                                                  .arg = &work});
    pystack_want_native(ps, &w->native);
    signal_sampler_set_native(w->native.wanted || p->native);
    struct pystack_locals_request of = w->of;
    of.without_locals = !w->locals;
    int rc = pystack_snapshot_locals(ps, own, n_own, w->locals || of.tasks ? &of : NULL, out, e);
    pystack_set_asker(ps, &(struct pystack_asker){.read = NULL});
    pystack_want_native(ps, NULL);
    signal_sampler_set_native(p->native);
    if (rc == 0) {
        snapshot_request_leave_out_own(out);
        thread_sampler_put_same(p, out);
    }
    return rc;
}
