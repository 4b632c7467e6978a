/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gil_late: see gil_late.h. Sources: CPython 3.6's Python/ceval.c (PyEval_InitThreads,
 * Py_AddPendingCall), Python/ceval_gil.h (gil_created), Python/pystate.c (PyGILState_Ensure).
 */
#include "agent/python/gil_late.h"

#include <stdint.h>

#include "base/clock.h"

/* The thread that makes it takes it a few instructions later, and must not be overtaken there. */
#define GIL_LATE_SETTLE_NS CLOCK_NS_PER_MS

/* It lives as long as the library: the main thread may get to it at any time. */
static struct gil_late {
    void (*make)(void); /* set before the main thread is asked */
    int owed;           /* atomic: the main thread was asked and has not got to it */
    uint64_t seen_ns;   /* atomic: when the GIL was first seen; 0: never */
} gil_late;

/* On the main thread, when its interpreter gets to it. */
static int gil_late_on_pending(void *arg) {
    struct gil_late *late = arg;
    late->make(); /* has no effect if it exists by now */
    __atomic_store_n(&late->owed, 0, __ATOMIC_RELEASE);
    return 0;
}

static void gil_late_ask(const struct pyapi *api) {
    if (__atomic_exchange_n(&gil_late.owed, 1, __ATOMIC_ACQ_REL))
        return;
    gil_late.make = api->PyEval_InitThreads;
    /* too many are pending already */
    if (api->Py_AddPendingCall(gil_late_on_pending, &gil_late) != 0)
        __atomic_store_n(&gil_late.owed, 0, __ATOMIC_RELEASE);
}

bool gil_late_is_there(const struct pyapi *api) {
    uint64_t now = clock_mono_ns(), never = 0;
    if (!api->PyEval_ThreadsInitialized)
        return true;
    if (!api->PyEval_ThreadsInitialized()) {
        gil_late_ask(api);
        return false;
    }
    __atomic_compare_exchange_n(&gil_late.seen_ns, &never, now, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    return now - __atomic_load_n(&gil_late.seen_ns, __ATOMIC_ACQUIRE) >= GIL_LATE_SETTLE_NS;
}

bool gil_late_is_owed(void) { return __atomic_load_n(&gil_late.owed, __ATOMIC_ACQUIRE) != 0; }
