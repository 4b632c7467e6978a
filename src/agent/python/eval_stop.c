/* SPDX-License-Identifier: Apache-2.0 */
/* eval_stop: interrupts a run until it ends: see eval_run.h. From a thread that asks for the GIL
 * only when it is available. */
#include <pthread.h>
#include <time.h>

#include "agent/threads.h"
#include "agent/python/eval_internal.h"
#include "base/clock.h"
#include "pystack/gate.h"

#define EVAL_INTERRUPT_NS (100 * CLOCK_NS_PER_MS) /* between two interrupts */
#define EVAL_POLL_NS CLOCK_NS_PER_MS              /* and between two checks of the GIL */

static pthread_key_t eval_key;
static bool eval_key_created;

/* Finalisation has ended the thread while it waited for the GIL. */
static void eval_on_exit(void *arg) {
    struct eval_run *run = arg;
    threads_end();
    __atomic_store_n(&run->interrupter, 2, __ATOMIC_RELEASE);
    eval_run_unref(run);
}

/* True if the GIL is available. If the code itself has it, it is known to run for a client that
 * has given it up. */
static bool eval_may_ask(struct eval_run *run, struct pystack *ps, struct pystack_gate *before) {
    struct pystack_gate now;
    if (pystack_gate_read(ps, &now) != 0 || now.finalizing || !run->api.Py_IsInitialized())
        return false;
    bool own = now.holder_tid == __atomic_load_n(&run->tid, __ATOMIC_RELAXED);
    bool may = now.none || !now.held || own || pystack_gate_moved(before, &now);
    *before = now;
    return may;
}

static void eval_raise(struct eval_run *run) {
    int state = run->api.PyGILState_Ensure(); /* may not return: see eval_on_exit */
    pthread_mutex_lock(&run->lock);
    if (run->running) {
        run->api.PyThreadState_SetAsyncExc(run->ident, *run->api.PyExc_KeyboardInterrupt);
        __atomic_add_fetch(&run->interrupts, 1, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&run->lock);
    run->api.PyGILState_Release(state);
}

static void eval_pause(struct eval_run *run, uint64_t ns) {
    const struct timespec pause = {.tv_nsec = (long)EVAL_POLL_NS};
    for (uint64_t until = clock_mono_ns() + ns; clock_mono_ns() < until && eval_run_state(run) == EVAL_BEGUN;)
        nanosleep(&pause, NULL);
}

static void *eval_main(void *arg) {
    struct eval_run *run = arg;
    struct pystack_gate before = {.held = true};
    threads_begin("probing-int");
    pthread_setspecific(eval_key, run);
    struct pystack *ps = pystack_open(0, NULL);
    if (ps)
        pystack_gate_read(ps, &before);
    while (ps && eval_run_state(run) == EVAL_BEGUN) {
        bool may = eval_may_ask(run, ps, &before);
        if (may)
            eval_raise(run);
        eval_pause(run, may ? EVAL_INTERRUPT_NS : EVAL_POLL_NS);
    }
    if (ps)
        pystack_close(ps);
    pthread_setspecific(eval_key, NULL);
    threads_end();
    __atomic_store_n(&run->interrupter, 2, __ATOMIC_RELEASE);
    eval_run_unref(run);
    return NULL;
}

int eval_run_interrupt(struct eval_run *run) {
    if (!eval_key_created)
        eval_key_created = pthread_key_create(&eval_key, eval_on_exit) == 0;
    if (!eval_key_created || run->interrupter)
        return run->interrupter ? 0 : -1;
    run->interrupter = 1;
    eval_run_ref(run);
    if (threads_create(&run->thread, eval_main, run, true) == 0)
        return 0;
    run->interrupter = 0;
    eval_run_unref(run);
    return -1;
}
