/* SPDX-License-Identifier: Apache-2.0 */
/* outside_python: see outside_python.h. */
#include "client/session/outside_python.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "client/symbols/native.h"
#include "client/session/outside_profile.h"
#include "inject/stop.h"
#include "pystack/native.h"
#include "pystack/pystack.h"

/* between two attempts to find a lost interpreter */
#define OUTSIDE_PYTHON_REOPEN_NS CLOCK_NS_PER_S
/* for the Python of another program to appear */
#define OUTSIDE_PYTHON_EXEC_NS (5 * CLOCK_NS_PER_S)

struct outside_python {
    struct target_address addr;
    struct pystack *ps;
    struct stop stop;
    struct native_copy *copy;   /* of the stopped thread; NULL: not wanted */
    struct native_names *names; /* NULL: native frames were never wanted */
    struct outside_profile profile;
    bool has_profile;
    bool changed;        /* a new one was found, and not reported yet */
    uint64_t retried_ns; /* last attempt to find it again */
    /* it runs another program whose Python was not found so far; 0: it does not */
    uint64_t since_ns;
};

void *outside_python_new(const struct target_address *addr, struct err *e) {
    struct outside_python *o = calloc(1, sizeof *o);
    if (!o)
        err_set(e, ERR_FAILED, "out of memory for a reader");
    else
        o->addr = *addr;
    return o;
}

/* Copy the registers of the stopped thread, and its stack. */
static void outside_python_copy(struct outside_python *o, struct native_copy *c) {
    struct user_regs_struct r;
    c->known = 0;
    if (thread_get_regs(&o->stop.thread, &r) != 0)
        return;
    const unsigned long long regs[NATIVE_REGS] = {r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi,
                                                  r.rbp, r.rsp, r.r8,  r.r9,  r.r10, r.r11,
                                                  r.r12, r.r13, r.r14, r.r15, r.rip};
    for (size_t i = 0; i < NATIVE_REGS; i++)
        c->regs[i] = regs[i];
    c->known = (1U << NATIVE_REGS) - 1;
    native_copy_stack(c, o->addr.pid);
}

static int outside_python_stop(void *arg, pid_t tid) {
    struct outside_python *o = arg;
    int rc = stop_thread(&o->stop, tid);
    o->copy = rc == 0 ? pystack_native_copy(o->ps) : NULL;
    if (o->copy)
        outside_python_copy(o, o->copy);
    return rc;
}

static uint64_t outside_python_go(void *arg) {
    struct outside_python *o = arg;
    uint64_t stopped_ns = stop_release(&o->stop);
    /* the thread may run again during this */
    if (o->copy)
        pystack_put_native(o->ps, o->copy);
    return stopped_ns;
}

/* Describe the target, and how it is read. */
static void outside_python_describe(struct outside_python *o, struct model_target *out) {
    pystack_read_target(o->addr.pid, o->ps, out);
    out->mode = MODEL_MODE_READONLY;
    out->mode_reason = o->addr.why[0] ? arena_strdup(&out->arena, o->addr.why) : NULL;
    out->blocking = o->addr.block;
}

static void outside_python_freeze(struct outside_python *o) {
    struct pystack_stopper hold = {.stop = outside_python_stop, .go = outside_python_go, .arg = o};
    pystack_set_stopper(o->ps, o->addr.block ? &hold : NULL);
}

static int outside_python_open(void *arg, struct model_target *out, struct err *e) {
    struct outside_python *o = arg;
    stop_init(&o->stop, o->addr.pid);
    o->ps = pystack_open(o->addr.pid, e);
    if (!o->ps || (o->addr.block && stop_check(o->addr.pid, e) != 0)) {
        if (procfs_is_ending(o->addr.pid))
            err_set(e, ERR_LOST, "process %d has ended", (int)o->addr.pid);
        return -1;
    }
    if (outside_profile_init(&o->profile, o->addr.pid) != 0)
        return err_set(e, ERR_FAILED, "out of memory for samples");
    o->has_profile = true;
    outside_python_freeze(o);
    outside_python_describe(o, out);
    return 0;
}

/* The data made no sense, or belong to another program that the process runs now: find the
 * interpreter again. */
static void outside_python_rediscover(struct outside_python *o) {
    uint64_t now = clock_mono_ns();
    if (now - o->retried_ns < OUTSIDE_PYTHON_REOPEN_NS)
        return;
    o->retried_ns = now;
    bool same = pystack_is_same(o->ps);
    struct pystack *found = pystack_open(o->addr.pid, NULL);
    if (!found)
        return;
    o->changed = !same || pystack_get_info(found)->runtime != pystack_get_info(o->ps)->runtime ||
                 strcmp(pystack_get_info(found)->version, pystack_get_info(o->ps)->version) != 0;
    if (!o->changed) {
        pystack_close(found);
        return;
    }
    o->since_ns = 0;
    pystack_close(o->ps);
    o->ps = found;
    outside_python_freeze(o);
    outside_profile_forget(&o->profile);
}

static bool outside_python_changed(void *arg, struct model_target *out) {
    struct outside_python *o = arg;
    if (!o->changed)
        return false;
    o->changed = false;
    outside_python_describe(o, out);
    return true;
}

/* Handle a failed read: the target may have ended, or run another program. That one is searched
 * for, for a while. -1 with the error. */
static int outside_python_failed(struct outside_python *o, struct err *e) {
    uint64_t now = clock_mono_ns();
    if (procfs_is_gone(o->addr.pid))
        return err_set(e, ERR_LOST, "process %d has ended", (int)o->addr.pid);
    if (pystack_is_same(o->ps)) {
        o->since_ns = 0;
        return -1;
    }
    o->since_ns = o->since_ns ? o->since_ns : now;
    outside_python_rediscover(o);
    if (o->since_ns && now - o->since_ns > OUTSIDE_PYTHON_EXEC_NS)
        return err_set(e, ERR_LOST,
                       "process %d runs another program now (exec), which is not a Python that can be read",
                       (int)o->addr.pid);
    return -1;
}

static int outside_python_read(struct outside_python *o, const struct pystack_locals_request *wish,
                               struct model_snapshot *out, struct err *e) {
    if (pystack_snapshot_locals(o->ps, NULL, 0, wish, out, e) != 0)
        return outside_python_failed(o, e);
    out->sampling = o->addr.block ? MODEL_SAMPLING_EXACT : MODEL_SAMPLING_GENTLE;
    bool any = false;
    for (size_t i = 0; i < out->n_threads && !any; i++)
        any = out->threads[i].has_python;
    if (!any)
        outside_python_rediscover(o);
    return 0;
}

static int outside_python_snapshot(void *arg, struct model_snapshot *out, struct err *e) {
    return outside_python_read(arg, NULL, out, e);
}

static int outside_python_want_native(struct outside_python *o, int64_t tid, struct err *e) {
    if (!o->names)
        o->names = native_names_new(o->addr.pid);
    if (o->names && pystack_want_native(o->ps, &(struct native_request){.wanted = true, .tid = tid}) == 0)
        return 0;
    return err_set(e, ERR_FAILED, "out of memory for native frames");
}

static int outside_python_details(void *arg, const struct wire_threads *want, struct model_snapshot *out,
                                  struct err *e) {
    struct outside_python *o = arg;
    struct pystack_locals_request wish = {
        .tid = want->tid, .without_locals = !want->locals, .tasks = want->tasks};
    if (want->native && outside_python_want_native(o, want->tid, e) != 0)
        return -1;
    int rc = outside_python_read(o, want->locals || want->tasks ? &wish : NULL, out, e);
    if (want->native)
        pystack_want_native(o->ps, NULL);
    if (rc != 0)
        return -1;
    if (want->tasks && !out->tasks)
        out->note = pystack_knows_tasks(o->ps)
                        ? "tasks are not known: asyncio's records of them cannot be read"
                        : "tasks are unknown: before Python 3.14 reading them needs an agent";
    if (want->tid)
        model_snapshot_keep(out, want->tid);
    if (want->native)
        native_names_snapshot(o->names, out);
    return 0;
}

static int outside_python_tick(void *arg, uint64_t wanted_ns, void (*flush)(void *flush_arg), void *flush_arg,
                               struct err *e) {
    struct outside_python *o = arg;
    o->profile.flush = flush;
    o->profile.flush_arg = flush_arg;
    if (outside_profile_tick(&o->profile, o->ps, wanted_ns) == 0)
        return 0;
    err_set(e, ERR_FAILED, "the threads of process %d cannot be read", (int)o->addr.pid);
    return outside_python_failed(o, e);
}

static size_t outside_python_pending(void *arg) {
    return ((const struct outside_python *)arg)->profile.n_samples;
}

static int outside_python_take(void *arg, struct model_sample_batch *out) {
    struct outside_python *o = arg;
    if (outside_profile_take(&o->profile, out) != 0)
        return -1;
    out->mode = o->addr.block ? MODEL_SAMPLING_EXACT : MODEL_SAMPLING_GENTLE;
    return 0;
}

static void outside_python_drop(void *arg) { outside_profile_drop(&((struct outside_python *)arg)->profile); }

static void outside_python_pause(void *arg) {
    outside_profile_forget(&((struct outside_python *)arg)->profile);
}

static bool outside_python_tend(void *arg) { return stop_tend(&((struct outside_python *)arg)->stop); }

static void outside_python_close(void *arg) {
    struct outside_python *o = arg;
    if (o->has_profile)
        outside_profile_fini(&o->profile);
    if (o->ps)
        pystack_close(o->ps);
    native_names_free(o->names);
    free(o);
}

const struct outside_reader outside_python_reader = {
    .open = outside_python_open,
    .changed = outside_python_changed,
    .snapshot = outside_python_snapshot,
    .details = outside_python_details,
    .tick = outside_python_tick,
    .pending = outside_python_pending,
    .take = outside_python_take,
    .drop = outside_python_drop,
    .pause = outside_python_pause,
    .tend = outside_python_tend,
    .close = outside_python_close,
};
