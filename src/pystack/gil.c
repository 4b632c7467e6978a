/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gil: who holds the GIL, and who sleeps on it.
 *
 * Source: Include/internal/pycore_gil.h (struct _gil_runtime_state), Python/ceval_gil.c. Its condition variable and mutex lie
 * within the struct, so a thread that waits for it sleeps in futex(2) on an address in there. Up to 3.6 there are static
 * variables instead, which lie side by side. A free-threaded build has a GIL too, but it is turned off as a rule: nobody holds it.
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

int pystack_read_gil_holder(struct pystack *ps, uint64_t gil, uint64_t *tstate) {
    const struct pystack_offsets *o = &ps->reader.off;
    uint32_t locked, enabled;
    uint64_t holder;
    if (o->gil_place == PYSTACK_GIL_STATIC)
        return mem_read_u64(&ps->reader.mem, ps->tstate_current, tstate);
    if (o->gil_enabled >= 0) {
        if (mem_read_u32(&ps->reader.mem, gil + (uint64_t)o->gil_enabled, &enabled) != 0)
            return -1;
        if (!enabled) {
            *tstate = 0;
            return 0;
        }
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

bool pystack_holds_gil(struct pystack *ps, const struct pystack_thread *t) {
    uint64_t gil, holder;
    return pystack_find_gil(ps, t->interp, &gil) == 0 && pystack_read_gil_holder(ps, gil, &holder) == 0 &&
           holder == t->tstate;
}

enum model_gil pystack_read_gil(struct pystack *ps, const struct pystack_thread *t) {
    uint64_t interp, gil;
    struct procfs_syscall call;
    if (t->holds_gil)
        return MODEL_GIL_HELD;
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
