/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_snapshot: native frames of the threads of a snapshot; see native.h. Used by the pystack's thread.
 *
 * A thread that runs copies itself (struct pystack_asker) or is held (struct pystack_hold). One that sleeps in a system call is
 * copied as it is, and that counts only if it has not been on a processor since: the caller says so at the end.
 */
#include "pystack/native_snapshot.h"

#include <stdlib.h>
#include <string.h>

int pystack_want_native(struct pystack *ps, const struct native_request *wish) {
    ps->native_wish = wish ? *wish : (struct native_request){.wanted = false};
    if (!ps->native_wish.wanted)
        return 0;
    if (!ps->native)
        ps->native = native_new(ps->pid);
    if (!ps->native_copy)
        ps->native_copy = calloc(1, sizeof *ps->native_copy);
    if (!ps->native_hints)
        ps->native_hints = calloc(NATIVE_HINTS, sizeof *ps->native_hints);
    if (!ps->native_frames)
        ps->native_frames = calloc(NATIVE_MAX_FRAMES, sizeof *ps->native_frames);
    if (ps->native && ps->native_copy && ps->native_hints && ps->native_frames)
        return 0;
    ps->native_wish.wanted = false;
    return -1;
}

void pystack_native_fini(struct pystack *ps) {
    native_free(ps->native);
    free(ps->native_copy);
    free(ps->native_hints);
    free(ps->native_frames);
}

bool pystack_wants_native(const struct pystack *ps, int64_t tid) {
    return ps->native_wish.wanted && (ps->native_wish.tid == 0 || ps->native_wish.tid == tid);
}

struct native_copy *pystack_native_copy(struct pystack *ps) {
    return ps->native_wish.wanted ? ps->native_copy : NULL;
}

size_t pystack_native_bytes(const struct pystack *ps) { return native_bytes(ps->native); }

struct native_maps *pystack_native_maps(struct pystack *ps) {
    return ps->native ? native_get_maps(ps->native) : NULL;
}

void pystack_put_native(struct pystack *ps, struct native_copy *c) {
    if (!ps->native_wish.wanted)
        return;
    ps->n_native_frames = native_unwind(ps->native, c, ps->native_frames, NATIVE_MAX_FRAMES);
    if (c == ps->native_copy)
        ps->native_hints[ps->native_hint].stack_end = c->stack_end;
}

/* What is known of the thread's stack from before; a wrong end makes a copy too short at worst, and is forgotten then. */
static void native_take_hint(struct pystack *ps, int64_t tid) {
    ps->native_hint = (size_t)tid % NATIVE_HINTS;
    struct native_hint *hint = &ps->native_hints[ps->native_hint];
    if (hint->tid != tid)
        *hint = (struct native_hint){.tid = tid};
    ps->native_copy->stack_end = hint->stack_end;
}

bool pystack_native_begin(struct pystack *ps, int64_t tid, pid_t outer_tid, bool asleep) {
    ps->n_native_frames = 0;
    ps->entries = pystack_wants_native(ps, tid);
    if (!ps->entries)
        return false;
    native_take_hint(ps, tid);
    native_refresh(ps->native, ps->native_wish.max_age_ns);
    /* Where it can be held all registers are known. */
    return asleep && !ps->hold.stop && native_copy_asleep(ps->native_copy, ps->pid, outer_tid) == 0;
}

const struct model_frame *pystack_native_end(struct pystack *ps, size_t *n) {
    ps->entries = false;
    *n = ps->n_native_frames;
    return ps->native_frames;
}

/* One without Python frames, or one whose frames were not read. */
static void native_ask(struct pystack *ps, const struct model_thread *t, pid_t outer_tid) {
    if (ps->hold.stop) {
        if (ps->hold.stop(ps->hold.arg, outer_tid) == 0)
            (void)ps->hold.go(ps->hold.arg);
    } else if (t->state == 'R' && ps->asker.native) {
        ps->asker.native(ps->asker.arg, t->tid);
    }
}

/* Room for `more` frames before those of the thread. 0, or -1 without memory. */
static int native_reserve(struct model_thread *t, size_t more, struct arena *arena) {
    struct model_frame *frames = arena_calloc(arena, t->n_frames + more, sizeof *frames);
    const struct model_locals **locals =
        t->locals ? arena_calloc(arena, t->n_frames + more, sizeof *locals) : NULL;
    if (!frames || (t->locals && !locals))
        return -1;
    if (t->n_frames)
        memcpy(frames + more, t->frames, t->n_frames * sizeof *frames);
    if (locals && t->n_frames)
        memcpy(locals + more, t->locals, t->n_frames * sizeof *locals);
    t->frames = frames;
    t->locals = locals;
    t->n_frames += more;
    return 0;
}

void pystack_native_attach(struct pystack *ps, pid_t outer_tid, bool copied, bool moved,
                           struct model_thread *t, struct arena *arena) {
    size_t n;
    if (!ps->entries)
        return;
    if (copied && !moved)
        pystack_put_native(ps, ps->native_copy);
    else if (!copied && !ps->n_native_frames && !t->has_python)
        native_ask(ps, t, outer_tid);
    const struct model_frame *frames = pystack_native_end(ps, &n);
    if (n == 0 || t->torn || native_reserve(t, n, arena) != 0)
        return;
    for (size_t i = 0; i < n; i++) {
        t->frames[i] = frames[i];
        t->frames[i].module = arena_strdup(arena, frames[i].module);
    }
}
