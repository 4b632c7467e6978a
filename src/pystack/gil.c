/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gil: who holds the GIL, who sleeps on it, and whether garbage is being collected.
 *
 * Source: Include/internal/pycore_gil.h (struct _gil_runtime_state), Python/ceval_gil.c. Its
 * condition variable and mutex lie within the struct, so a thread that waits for it sleeps in
 * futex(2) on an address in there. Up to 3.6 there are static variables instead, which lie side
 * by side. switch_number counts up when a different thread gets it. A free-threaded build has a
 * GIL too, usually turned off: nobody holds it. Garbage: `collecting` of struct
 * _gc_runtime_state (Include/internal/pycore_gc.h, Modules/gcmodule.c).
 */
#include "pystack/pystack_internal.h"

#include <sys/syscall.h>

#include "base/procfs.h"

int pystack_find_gil(struct pystack *ps, uint64_t interp, uint64_t *gil) {
    const struct pystack_offsets *o = &ps->reader.off;
    if (o->gil_place == PYSTACK_GIL_STATIC) {
        *gil = ps->static_gil;
        return 0;
    }
    if (o->gil_place == PYSTACK_GIL_RUNTIME) {
        *gil = ps->info.runtime + (uint64_t)o->gil;
        return 0;
    }
    return pystack_read_u64_at(&ps->reader, interp, o->gil, gil) == 0 && pystack_is_pointer(*gil) ? 0 : -1;
}

int8_t pystack_read_gil_enabled(struct pystack *ps, uint64_t gil) {
    uint32_t enabled;
    if (ps->reader.off.gil_enabled < 0)
        return 1;
    if (mem_read_u32(&ps->reader.mem, gil + (uint64_t)ps->reader.off.gil_enabled, &enabled) != 0)
        return MODEL_UNKNOWN;
    return enabled != 0;
}

int pystack_read_gil_switches(struct pystack *ps, uint64_t gil, uint64_t *switches) {
    const struct pystack_offsets *o = &ps->reader.off;
    uint64_t at = o->gil_place == PYSTACK_GIL_STATIC ? ps->static_switches
                  : o->gil_switches > 0              ? gil + (uint64_t)o->gil_switches
                                                     : 0;
    return at ? mem_read_u64(&ps->reader.mem, at, switches) : -1;
}

int pystack_read_gil_holder(struct pystack *ps, uint64_t gil, uint64_t *tstate) {
    const struct pystack_offsets *o = &ps->reader.off;
    uint32_t locked;
    uint64_t holder;
    if (o->gil_place == PYSTACK_GIL_STATIC)
        return mem_read_u64(&ps->reader.mem, ps->tstate_current, tstate);
    int8_t enabled = pystack_read_gil_enabled(ps, gil);
    if (enabled != 1) {
        *tstate = 0;
        return enabled;
    }
    if (mem_read_u32(&ps->reader.mem, gil + (uint64_t)o->gil_locked, &locked) != 0 ||
        pystack_read_u64_at(&ps->reader, gil, o->gil_last_holder, &holder) != 0)
        return -1;
    /* 0 free, 1 taken, -1 not initialised. */
    if (locked != 1) {
        *tstate = 0;
        return locked == 0 || locked == UINT32_MAX ? 0 : -1;
    }
    *tstate = holder;
    return 0;
}

bool pystack_has_gil(struct pystack *ps, const struct pystack_thread *t) {
    uint64_t gil, holder;
    return pystack_find_gil(ps, t->interp, &gil) == 0 && pystack_read_gil_holder(ps, gil, &holder) == 0 &&
           holder == t->tstate;
}

uint64_t pystack_find_collecting(const struct pystack *ps, uint64_t interp) {
    const struct pystack_offsets *o = &ps->reader.off;
    switch ((enum pystack_gc_place)o->gc_place) {
    case PYSTACK_GC_INTERPRETER:
        return o->gc_collecting > 0 && interp ? interp + (uint64_t)o->gc_collecting : 0;
    case PYSTACK_GC_RUNTIME:
        return ps->info.runtime + (uint64_t)o->gc_collecting;
    case PYSTACK_GC_STATIC:
        break;
    }
    return ps->static_collecting;
}

int8_t pystack_read_collecting(struct pystack *ps, uint64_t interp) {
    uint64_t at = pystack_find_collecting(ps, interp);
    uint32_t collecting;
    if (!at || mem_read_u32(&ps->reader.mem, at, &collecting) != 0 || collecting > 1)
        return MODEL_UNKNOWN;
    return (int8_t)collecting;
}

int8_t pystack_read_gc(struct pystack *ps, const struct pystack_thread *t, enum model_gil gil) {
    if (gil == MODEL_GIL_HOLDING)
        return pystack_read_collecting(ps, t->interp);
    if (gil != MODEL_GIL_UNKNOWN && t->gil_enabled == 1)
        return 0;
    return pystack_read_collecting(ps, t->interp) == 0 ? 0 : MODEL_UNKNOWN;
}

enum model_gil pystack_read_gil(struct pystack *ps, const struct pystack_thread *t) {
    uint64_t interp, gil;
    struct procfs_syscall call;
    if (t->holds_gil)
        return MODEL_GIL_HOLDING;
    pid_t tid = pystack_outer_tid(ps, t->tid);
    if (tid == 0 || pystack_read_u64_at(&ps->reader, t->tstate, ps->reader.off.tstate_interp, &interp) != 0 ||
        pystack_find_gil(ps, interp, &gil) != 0 || gil == 0)
        return MODEL_GIL_UNKNOWN;
    int rc = procfs_read_syscall(ps->pid, tid, &call);
    if (rc < 0)
        return MODEL_GIL_UNKNOWN;
    bool waits = rc == 0 && call.nr == SYS_futex && call.args[0] >= gil &&
                 call.args[0] - gil < (uint64_t)ps->reader.off.gil_size;
    return waits ? MODEL_GIL_WAITING : MODEL_GIL_NONE;
}
