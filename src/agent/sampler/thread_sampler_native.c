/* SPDX-License-Identifier: Apache-2.0 */
/* thread_sampler_native: see thread_sampler_native.h. */
#include "agent/sampler/thread_sampler_native.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "pystack/native_label.h"

/* an unknown address causes an earlier read */
#define THREAD_SAMPLER_NATIVE_MAPS_NS (10 * CLOCK_NS_PER_S)

struct thread_sampler_merge {
    struct native_labels *labels;
    enum native_role roles[NATIVE_MAX_FRAMES];
    uint32_t order[THREAD_SAMPLER_NATIVE_FRAMES];
    struct model_frame list[THREAD_SAMPLER_NATIVE_FRAMES + 1];
};

void thread_sampler_native_pause(struct thread_sampler *p) {
    if (p->merge)
        native_labels_forget(p->merge->labels);
}

void thread_sampler_native_fini(struct thread_sampler *p) {
    if (p->merge)
        native_labels_free(p->merge->labels);
    free(p->merge);
    free(p->joined);
    p->merge = NULL;
    p->joined = NULL;
}

size_t thread_sampler_native_bytes(const struct thread_sampler *p) {
    return (p->joined ? THREAD_SAMPLER_NATIVE_FRAMES * sizeof *p->joined : 0) +
           (p->merge ? sizeof *p->merge + native_labels_bytes(p->merge->labels) : 0);
}

/* True if everything needed for merging exists; creates it. */
static bool thread_sampler_native_can_merge(struct thread_sampler *p) {
    if (p->merge)
        return true;
    struct thread_sampler_merge *merge = calloc(1, sizeof *merge);
    if (merge && !(merge->labels = native_labels_new())) {
        free(merge);
        return false;
    }
    p->merge = merge;
    return merge;
}

void thread_sampler_set_native(struct thread_sampler *p, struct pystack *ps, bool sent, bool kept) {
    bool wanted = sent || kept;
    if (wanted && !p->joined)
        p->joined = calloc(THREAD_SAMPLER_NATIVE_FRAMES, sizeof *p->joined);
    if (wanted && (!p->joined || pystack_want_native(ps, &(struct native_request){.wanted = true}) != 0))
        wanted = false;
    pystack_want_native(ps, NULL);
    sent = wanted && sent;
    kept = wanted && kept && thread_sampler_native_can_merge(p);
    bool more = (sent && !p->native_sent) || (kept && !p->native_kept);
    for (size_t i = 0; i < p->n_threads; i++) {
        /* earlier samples had no such frames */
        if (more)
            p->threads[i].looked = false;
        if (!kept)
            p->threads[i].merged_id = 0;
    }
    p->native_sent = sent;
    p->native_kept = kept;
    p->native = sent || kept;
}

static void thread_sampler_native_want(struct pystack *ps) {
    pystack_want_native(
        ps, &(struct native_request){.wanted = true, .max_age_ns = THREAD_SAMPLER_NATIVE_MAPS_NS});
}

void thread_sampler_native_begin(struct thread_sampler *p, struct pystack *ps,
                                 const struct thread_sampler_thread *t) {
    if (!p->native)
        return;
    thread_sampler_native_want(ps);
    if (!pystack_native_begin(ps, t->py.tid, (pid_t)t->py.tid, true))
        pystack_native_copy(ps)->known = 0;
}

void thread_sampler_native_end(struct thread_sampler *p, struct pystack *ps,
                               const struct thread_sampler_thread *t, bool torn) {
    if (!p->native)
        return;
    if (!torn && clock_thread_cpu_ns((pid_t)t->py.tid) == t->cpu_now_ns)
        pystack_put_native(ps, pystack_native_copy(ps));
    thread_sampler_native_stop(p, ps);
}

void thread_sampler_native_copied(struct thread_sampler *p, struct pystack *ps,
                                  const struct pystack_self *copy) {
    if (!p->native)
        return;
    thread_sampler_native_want(ps);
    pystack_native_begin(ps, copy->thread.tid, (pid_t)copy->thread.tid, false);
    if (copy->native)
        pystack_put_native(ps, copy->native);
}

void thread_sampler_native_stop(struct thread_sampler *p, struct pystack *ps) {
    size_t n;
    if (!p->native)
        return;
    pystack_native_end(ps, &n);
    pystack_want_native(ps, NULL);
}

/* In call order, for the tables: a native frame is a function of a library. */
static void thread_sampler_native_merge(struct thread_sampler *p, struct pystack *ps, size_t n_native,
                                        size_t n, bool cut, struct thread_sampler_native *out) {
    struct thread_sampler_merge *m = p->merge;
    enum model_native how;
    native_label(m->labels, pystack_native_maps(ps), p->joined, n_native, m->roles);
    size_t shown = native_merge(p->joined, n, m->roles, n_native, cut, m->order, &how);
    for (size_t i = 0; i < shown; i++) {
        const struct model_frame *f = &p->joined[m->order[i]];
        bool native = f->kind == MODEL_FRAME_NATIVE;
        m->list[i] = *f;
        if (native)
            m->list[i] = (struct model_frame){.kind = f->kind, .func = f->func, .file = f->module};
    }
    if (how == MODEL_NATIVE_APART)
        m->list[shown++] = (struct model_frame){.kind = MODEL_FRAME_NATIVE, .func = NATIVE_MERGE_APART};
    out->merged = m->list;
    out->n_merged = shown;
    /* clients have better names */
    for (size_t i = 0; i < n_native; i++)
        p->joined[i].func = NULL;
}

void thread_sampler_native_join(struct thread_sampler *p, struct pystack *ps,
                                const struct model_frame *frames, size_t n, bool cut,
                                struct thread_sampler_native *out) {
    size_t n_native = 0;
    *out = (struct thread_sampler_native){.n = 0};
    if (!p->native)
        return;
    const struct model_frame *native = pystack_native_end(ps, &n_native);
    if (n_native == 0 || n_native + n > THREAD_SAMPLER_NATIVE_FRAMES)
        return;
    memcpy(p->joined, native, n_native * sizeof *native);
    if (n)
        memcpy(p->joined + n_native, frames, n * sizeof *frames);
    if (p->native_kept)
        thread_sampler_native_merge(p, ps, n_native, n_native + n, cut, out);
    if (p->native_sent) {
        out->frames = p->joined;
        out->n = n_native + n;
    }
}
