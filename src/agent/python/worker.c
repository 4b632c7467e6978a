/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker: see worker.h. Sources: Doc/c-api/init.rst (PyGILState_Ensure, cautions about
 * finalisation), Python/ceval_gil.c.
 *
 * The lock is never held while the thread asks for the GIL or has it.
 */
#include "agent/python/worker.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/python/gil_late.h"
#include "agent/python/helper.h"
#include "agent/python/thread_spawner.h"
#include "agent/python/gil_usage.h"
#include "agent/threads.h"
#include "agent/python/grads.h"
#include "base/clock.h"
#include "base/mem.h"
#include "pystack/gate.h"

#define WORKER_GIL_NS (CLOCK_NS_PER_MS / 2)     /* no further step is started after this */
#define WORKER_POLL_NS (CLOCK_NS_PER_MS / 4)    /* between two checks of a GIL that is taken */
#define WORKER_PAUSE_NS (CLOCK_NS_PER_MS / 2)   /* between two holds, in which others get it */
#define WORKER_REST_NS (3 * CLOCK_NS_PER_MS)    /* if the job found nothing to do */
#define WORKER_LEAVE_NS CLOCK_NS_PER_S          /* maximum time to end */
#define WORKER_CLEAN_NS (100 * CLOCK_NS_PER_MS) /* to get the GIL for the end of a job */
/* and for the last time; less than WORKER_LEAVE_NS */
#define WORKER_CLOSE_NS (700 * CLOCK_NS_PER_MS)
#define WORKER_ENDING "the interpreter is ending"

enum worker_state {
    WORKER_ABSENT = 0, /* no thread was needed yet, or it has left */
    WORKER_IDLE,
    WORKER_BUSY,
    WORKER_LOST, /* finalisation has taken the thread */
};

struct worker {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    void (*wake)(void *arg);
    void *arg;
    enum worker_state state;
    bool stop, left;
    uint64_t stop_ns; /* when it was asked to stop */
    uint64_t closed;  /* how often the units were released */
    bool in_job;      /* its thread has the job's descriptors */
    bool orphan;      /* its creator is gone */
    bool joinable;    /* there is a thread to join */
    bool over;        /* the interpreter is ending: it is never called again */
    pthread_t thread;
    int64_t tid;
    struct worker_job *head; /* in the state BUSY the first one is running */
    size_t n_jobs;
    uint64_t refused;
    /* used only by the thread */
    struct pystack *ps;
    uint64_t finalizing; /* address of the word that shows it; 0 if unknown */
    struct pyapi api;
    struct helper helper;
    bool no_gil;
    bool closes;   /* it releases the units: that wait is not shortened by `stop` */
    bool up;       /* the interpreter was initialised at the last check */
    bool collects; /* automatic garbage collection was on when it took the GIL */
};

/* For a pending call, which may run at any later time. */
static struct worker_interrupt {
    int wanted; /* atomic */
    unsigned long ident;
    int (*raise)(unsigned long ident, struct pyapi_object *exception);
    struct pyapi_object **exception;
} worker_interrupt;

static pthread_key_t worker_key;
static bool worker_key_created;

static void worker_lock(struct worker *w) { pthread_mutex_lock(&w->lock); }
static void worker_unlock(struct worker *w) { pthread_mutex_unlock(&w->lock); }

static void worker_sleep(uint64_t ns) {
    struct timespec pause = {.tv_nsec = (long)ns};
    nanosleep(&pause, NULL);
}

const struct pyapi *worker_api(const struct worker *w) { return &w->api; }
struct pystack *worker_pystack(struct worker *w) {
    return w->ps;
}
bool worker_runs_beside(const struct worker *w) { return w->no_gil; }

/* ---- jobs ---- */

/* With the lock: the last owner to release it frees it. */
static void worker_forget(struct worker_job *job) {
    if (job->end != WORKER_PENDING && job->released)
        job->fini(job);
}

/* With the lock: remove a job from the queue. */
static void worker_take_out(struct worker *w, struct worker_job *job) {
    for (struct worker_job **at = &w->head; *at; at = &(*at)->next)
        if (*at == job) {
            *at = job->next;
            w->n_jobs--;
            return;
        }
}

/* With the lock, so the requester is not gone meanwhile. */
static void worker_end_job(struct worker *w, struct worker_job *job, enum worker_end end) {
    worker_take_out(w, job);
    job->end = end;
    w->refused += end == WORKER_FAILED;
    if (!w->orphan && job->on_end)
        job->on_end(job->on_end_arg);
    else if (!w->orphan)
        w->wake(w->arg);
    worker_forget(job);
}

/* With the lock: no job will be done. */
static void worker_fail_all(struct worker *w, const char *why) {
    while (w->head) {
        snprintf(w->head->why, sizeof w->head->why, "%s", why);
        worker_end_job(w, w->head, WORKER_FAILED);
    }
}

enum worker_end worker_get_end(struct worker *w, struct worker_job *job) {
    worker_lock(w);
    enum worker_end end = job->end;
    worker_unlock(w);
    return end;
}

/* ---- the GIL ---- */

/* An interpreter that was initialised and no longer is has ended; one that was not yet is still
 * being made. */
static bool worker_is_ending(struct worker *w, const struct pystack_gate *gate) {
    bool was_up = w->up;
    w->up = w->api.Py_IsInitialized() && (was_up || pystack_has_streams(w->ps));
    return gate->finalizing || (was_up && !w->up) || (w->api.finalizing && *w->api.finalizing);
}

/* True if nobody waits for the job any longer, or if the worker is to end. */
static bool worker_is_unwanted(struct worker *w, const struct worker_job *job) {
    worker_lock(w);
    bool begun = job && job->begun; /* then it must release its references */
    bool unwanted = !begun && !w->closes && (w->stop || (job && job->unwanted));
    worker_unlock(w);
    return unwanted;
}

/* Wait until the GIL is available: 0; or -1 with `why`. This does not wait for anything of the
 * interpreter. */
static int worker_wait_for_turn(struct worker *w, const struct worker_job *job, uint64_t until, char *why) {
    struct pystack_gate first, now = {.finalizing = false};
    bool looked = false;
    for (;;) {
        int rc = pystack_gate_read(w->ps, &now);
        if (w->over || worker_is_ending(w, &now)) {
            w->over = true;
            snprintf(why, WORKER_WHY_MAX, WORKER_ENDING);
            return -1;
        }
        w->no_gil = now.none;
        if (rc == 0 && w->up && gil_late_is_there(&w->api) &&
            (now.none || !now.held || (looked && pystack_gate_moved(&first, &now))))
            return 0;
        if (rc == 0 && !looked) {
            first = now;
            looked = true;
        }
        if (clock_mono_ns() >= until || worker_is_unwanted(w, job)) {
            worker_explain(&now, w->up, why);
            return -1;
        }
        worker_sleep(WORKER_POLL_NS);
    }
}

/* Take the GIL: 0 with `*state` for worker_give, or -1 with `why`. */
static int worker_take(struct worker *w, const struct worker_job *job, uint64_t until, int *state,
                       char *why) {
    if (worker_wait_for_turn(w, job, until, why) != 0)
        return -1;
    *state = w->api.PyGILState_Ensure(); /* may not return: see worker_on_exit */
    bool quiet = !w->no_gil && !(job && job->calls_job);
    w->collects = quiet && w->api.PyGC_Disable && w->api.PyGC_Disable();
    return 0;
}

/* Release it. `cpu_ns`: our clock when we got it; elapsed time would include the time of other
 * threads. 0: it was counted already. */
static void worker_give(struct worker *w, int state, uint64_t cpu_ns) {
    w->api.PyErr_Clear();
    if (w->collects)
        w->api.PyGC_Enable();
    if (cpu_ns)
        gil_usage_add(cpu_ns);
    w->api.PyGILState_Release(state);
}

/* ---- the units ---- */

struct pyapi_object *worker_helper(struct worker *w, const char *name) {
    return helper_get(&w->helper, &w->api, name);
}

/* With the GIL: make the dict of the units, with our function that they call. 0 or -1. */
static int worker_begin_helper(struct worker *w) {
    bool begun = w->helper.globals != NULL;
    int rc = helper_begin(&w->helper, &w->api);
    if (begun || rc != 0 || w->in_job) /* code of clients does not need it, and it exists once */
        return rc;
    struct pyapi_object *read = grads_new(&w->api, worker_pystack(w), worker_runs_beside(w));
    rc = read ? w->api.PyDict_SetItemString(w->helper.globals, "grads_read", read) : -1;
    if (read)
        w->api.Py_DecRef(read);
    if (rc != 0)
        helper_end(&w->helper, &w->api);
    return rc;
}

/* With the GIL: one step of the units or of the job. True if there is more. */
static bool worker_step(struct worker *w, struct worker_job *job) {
    if (worker_begin_helper(w) != 0) {
        w->api.PyErr_Clear();
        snprintf(job->why, sizeof job->why, "no memory for the helper");
        return false;
    }
    if (helper_read(&w->helper, &w->api, job->unit))
        return true;
    job->begun = true;
    bool more = job->step(job, w);
    w->api.PyErr_Clear();
    return more;
}

/* ---- a job ---- */

/* With the GIL, for one hold. True if the job has ended. */
static bool worker_do_for_a_while(struct worker *w, struct worker_job *job, uint64_t since) {
    uint64_t hold = job->hold_ns ? job->hold_ns : WORKER_GIL_NS;
    bool more = true;
    job->yields = false;
    while (more && !job->apart && !job->yields && clock_mono_ns() - since < hold) {
        worker_lock(w);
        bool unwanted = job->unwanted || w->stop;
        worker_unlock(w);
        if (unwanted) {
            snprintf(job->why, sizeof job->why, "the client has gone");
            more = job->begun && job->drain && job->drain(job, w);
        } else
            more = worker_step(w, job);
    }
    if (!more && job->begun)
        job->drop(job, w);
    return !more;
}

/* Without the lock and the GIL. */
static void worker_do_apart(struct worker *w, struct worker_job *job) {
    bool unwanted = false;
    while (job->apart && !unwanted) {
        job->apart = job->off_gil(job);
        worker_lock(w);
        unwanted = job->unwanted || w->stop;
        worker_unlock(w);
    }
    job->apart = false;
}

/* Without the lock. A job that has started owns references: it is left only after they were
 * released. */
static void worker_do(struct worker *w, struct worker_job *job) {
    bool ended = false;
    char why[WORKER_WHY_MAX];
    while (!ended) {
        int state;
        uint64_t until = job->deadline_ns;
        if (job->begun && until < clock_mono_ns() + WORKER_CLEAN_NS)
            until = clock_mono_ns() + WORKER_CLEAN_NS;
        if (worker_take(w, job, until, &state, why) != 0) {
            snprintf(job->why, sizeof job->why, "%s", why);
            worker_lock(w);
            job->unwanted = true;
            bool leave = !job->begun || w->over || w->orphan;
            worker_unlock(w);
            if (leave)
                return;
            continue;
        }
        uint64_t cpu = clock_self_cpu_ns(), now = clock_mono_ns();
        job->since_ns = cpu;
        ended = worker_do_for_a_while(w, job, now);
        if (!w->in_job)
            __atomic_store_n(&worker_interrupt.wanted, 0, __ATOMIC_RELEASE);
        worker_give(w, state, job->since_ns);
        job->held_ns += clock_mono_ns() - now;
        if (!ended && job->apart)
            worker_do_apart(w, job);
        else if (!ended)
            worker_sleep(job->yields ? WORKER_REST_NS : job->pause_ns ? job->pause_ns : WORKER_PAUSE_NS);
    }
}

/* ---- interrupting code of the job ---- */

/* On the job's main thread, with the GIL, when the interpreter gets to it. */
static int worker_on_pending(void *arg) {
    (void)arg;
    if (__atomic_exchange_n(&worker_interrupt.wanted, 0, __ATOMIC_ACQ_REL))
        worker_interrupt.raise(worker_interrupt.ident, *worker_interrupt.exception);
    return 0;
}

/* With the lock. */
static void worker_interrupt_job(struct worker *w) {
    const struct worker_job *job = w->state == WORKER_BUSY ? w->head : NULL;
    if (!job || !job->calls_job || job->is_interrupted || !job->begun || w->over)
        return;
    if (!__atomic_exchange_n(&worker_interrupt.wanted, 1, __ATOMIC_ACQ_REL))
        w->api.Py_AddPendingCall(worker_on_pending, NULL);
}

/* ---- the thread ---- */

/* Finalisation has ended the thread while it waited for the GIL. */
static void worker_on_exit(void *arg) {
    struct worker *w = arg;
    worker_lock(w);
    w->over = true;
    w->state = WORKER_LOST;
    worker_fail_all(w, WORKER_ENDING);
    pthread_cond_broadcast(&w->changed);
    worker_unlock(w);
    threads_end();
}

/* Without the lock: prepare the thread's first work. 0, or -1 with the error. */
static int worker_open(struct worker *w, struct err *e) {
    if (!w->in_job) /* jobs of the other one are interrupted in another way */
        worker_interrupt.ident = (unsigned long)pthread_self();
    if (w->ps)
        return 0;
    w->ps = pystack_open(0, e);
    if (!w->ps)
        return -1;
    bool foreign = w->in_job && pystack_own_file(w->ps) >= 0;
    if (foreign)
        err_set(e, ERR_FAILED,
                "process_vm_readv is refused in this process (a seccomp filter), and the agent may not open "
                "a file in the job");
    if (foreign || pyapi_find(&w->api, pystack_get_info(w->ps)->runtime, e) != 0) {
        pystack_close(w->ps);
        w->ps = NULL;
        return -1;
    }
    w->finalizing = w->api.finalizing ? (uint64_t)(uintptr_t)w->api.finalizing : pystack_gate_word(w->ps);
    if (w->in_job)
        return 0;
    worker_interrupt = (struct worker_interrupt){.ident = (unsigned long)pthread_self(),
                                                 .raise = w->api.PyThreadState_SetAsyncExc,
                                                 .exception = w->api.PyExc_KeyboardInterrupt};
    return 0;
}

/* Release the units, if the GIL is available; otherwise they stay, and the agent with them. */
static void worker_close(struct worker *w) {
    int state;
    char why[WORKER_WHY_MAX];
    if (!w->helper.globals || w->over)
        return;
    worker_lock(w);
    uint64_t until = w->stop_ns + WORKER_CLOSE_NS, least = clock_mono_ns() + WORKER_CLEAN_NS;
    worker_unlock(w);
    w->closes = true;
    bool taken = worker_take(w, NULL, until > least ? until : least, &state, why) == 0;
    w->closes = false;
    if (!taken)
        return;
    uint64_t cpu = clock_self_cpu_ns();
    helper_end(&w->helper, &w->api);
    worker_give(w, state, cpu);
    worker_lock(w);
    w->closed++;
    worker_unlock(w);
}

static void worker_destroy(struct worker *w) {
    pyapi_close(&w->api);
    if (w->ps)
        pystack_close(w->ps);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->changed);
    free(w);
}

/* With the lock: do jobs until it is to stop. */
static void worker_serve(struct worker *w) {
    struct err e = {0};
    while (!w->stop) {
        struct worker_job *job = w->head;
        if (!job) {
            w->state = WORKER_IDLE;
            pthread_cond_wait(&w->changed, &w->lock);
            continue;
        }
        w->state = WORKER_BUSY;
        worker_unlock(w);
        if (worker_open(w, &e) != 0)
            snprintf(job->why, sizeof job->why, "%s", e.text);
        else
            worker_do(w, job);
        worker_lock(w);
        worker_end_job(w, job, job->why[0] ? WORKER_FAILED : WORKER_DONE);
    }
    worker_fail_all(w, "the agent is leaving");
}

static void *worker_main(void *arg) {
    struct worker *w = arg;
    threads_begin(w->in_job ? "probing-eval" : "probing-py");
    pthread_setspecific(worker_key, w);
    worker_lock(w);
    w->tid = syscall(SYS_gettid);
    do {
        worker_serve(w);
        worker_unlock(w);
        worker_close(w);
        worker_lock(w);
    } while (!w->stop); /* whoever wanted that did not wait any longer */
    w->state = WORKER_ABSENT;
    pthread_cond_broadcast(&w->changed);
    bool orphan = w->orphan;
    worker_unlock(w);
    pthread_setspecific(worker_key, NULL);
    threads_end();
    if (orphan)
        worker_destroy(w);
    return NULL;
}

/* ---- from other threads ---- */

struct worker *worker_new(void (*wake)(void *arg), void *arg, bool in_job, struct err *e) {
    pthread_condattr_t attr;
    struct worker *w = calloc(1, sizeof *w);
    if (w && !worker_key_created)
        worker_key_created = pthread_key_create(&worker_key, worker_on_exit) == 0;
    bool made = w && worker_key_created && pthread_condattr_init(&attr) == 0;
    if (made) {
        made = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0 &&
               pthread_mutex_init(&w->lock, NULL) == 0 && pthread_cond_init(&w->changed, &attr) == 0;
        pthread_condattr_destroy(&attr);
    }
    if (!made) {
        free(w);
        err_set(e, ERR_FAILED, "no memory for the python worker");
        return NULL;
    }
    w->wake = wake;
    w->in_job = in_job;
    w->arg = arg;
    return w;
}

/* With the lock: start the thread if there is none. */
static int worker_start(struct worker *w, struct err *e) {
    if (w->state != WORKER_ABSENT)
        return 0;
    if (w->joinable)
        pthread_join(w->thread, NULL);
    w->joinable = false;
    int rc = w->in_job ? thread_spawner_create(&w->thread, worker_main, w)
                       : threads_create(&w->thread, worker_main, w, false);
    if (rc != 0)
        return err_set_errno(e, ERR_FAILED, rc, "no thread for the python worker");
    w->joinable = true;
    w->state = WORKER_IDLE;
    return 0;
}

int worker_submit(struct worker *w, struct worker_job *job, struct err *e) {
    int rc = -1;
    worker_lock(w);
    if (w->over || w->state == WORKER_LOST)
        err_set(e, ERR_FAILED, WORKER_ENDING);
    else if (w->left)
        err_set(e, ERR_FAILED, "the agent is leaving");
    else if (w->n_jobs == WORKER_MAX_JOBS)
        err_set(e, ERR_FAILED, "the python worker is still busy with earlier requests");
    else
        rc = worker_start(w, e);
    if (rc == 0) {
        struct worker_job **at = &w->head;
        while (*at)
            at = &(*at)->next;
        job->next = NULL;
        *at = job;
        w->n_jobs++;
        pthread_cond_broadcast(&w->changed);
    }
    worker_unlock(w);
    return rc;
}

void worker_lose(struct worker *w) {
    worker_lock(w);
    w->over = true;
    worker_unlock(w);
}

void worker_release(struct worker *w, struct worker_job *job) {
    if (!job)
        return;
    worker_lock(w);
    job->released = job->unwanted = true;
    if (job->end == WORKER_PENDING && w->head == job)
        worker_interrupt_job(w);
    worker_forget(job);
    worker_unlock(w);
}

/* With the lock: wait until the thread has gone. */
static bool worker_wait_gone(struct worker *w, uint64_t ns) {
    uint64_t until = clock_mono_ns() + ns;
    struct timespec ts = {.tv_sec = (time_t)(until / CLOCK_NS_PER_S),
                          .tv_nsec = (long)(until % CLOCK_NS_PER_S)};
    while (w->state == WORKER_IDLE || w->state == WORKER_BUSY)
        if (pthread_cond_timedwait(&w->changed, &w->lock, &ts) == ETIMEDOUT)
            break;
    return w->state != WORKER_IDLE && w->state != WORKER_BUSY;
}

/* With the lock: true if finalisation has stopped the thread permanently, or will end it, so
 * that waiting for it is useless. */
static bool worker_is_abandoned(struct worker *w) {
    struct mem m;
    uint64_t word = 0;
    if (!w->finalizing)
        return false;
    mem_init_process(&m, getpid());
    return mem_read_u64(&m, w->finalizing, &word) != 0 || word != 0;
}

/* With the lock. */
static void worker_give_up(struct worker *w) {
    w->over = w->orphan = true;
    w->state = WORKER_LOST;
    worker_fail_all(w, WORKER_ENDING);
    pthread_detach(w->thread);
    w->joinable = false;
    threads_forget(w->tid);
}

/* End the thread. True if it has gone; `*kept`: but not the units, and what they have put into
 * the job. */
static bool worker_end_thread(struct worker *w, bool *kept) {
    worker_lock(w);
    w->stop_ns = clock_mono_ns();
    w->stop = w->left = true;
    pthread_cond_broadcast(&w->changed);
    worker_interrupt_job(w);
    bool gone = worker_wait_gone(w, WORKER_LEAVE_NS);
    if (!gone && worker_is_abandoned(w)) {
        worker_give_up(w);
        gone = true;
    }
    *kept = gone && w->helper.globals && !w->over && !worker_is_abandoned(w);
    if (!gone || *kept)
        w->stop = w->left = false;
    bool join = gone && w->joinable;
    w->joinable = w->joinable && !join;
    worker_unlock(w);
    if (join)
        pthread_join(w->thread, NULL);
    return gone;
}

int worker_leave(struct worker *w, struct err *e) {
    bool kept, gone = worker_end_thread(w, &kept);
    return gone && !kept ? 0
                         : err_set(e, ERR_FAILED,
                                   "the agent's Python thread waits for the GIL or runs a repr() of the job: "
                                   "try again when it has finished");
}

void worker_stay(struct worker *w) {
    worker_lock(w);
    w->stop = w->left = false;
    worker_unlock(w);
}

uint64_t worker_closed(struct worker *w) {
    worker_lock(w);
    uint64_t closed = w->closed;
    worker_unlock(w);
    return closed;
}

void worker_free(struct worker *w) {
    if (!w)
        return;
    bool kept, gone = worker_end_thread(w, &kept);
    worker_lock(w);
    bool touched = w->orphan; /* by a thread under finalisation, which may end at any time */
    if (!gone) {
        w->stop = w->left = w->orphan = true;
        pthread_detach(w->thread);
    }
    worker_unlock(w);
    if (gone && !touched)
        worker_destroy(w);
}

void worker_get_status(struct worker *w, struct worker_status *out) {
    struct gil_usage holds;
    gil_usage_get(&holds);
    worker_lock(w);
    *out = (struct worker_status){.running = w->state == WORKER_IDLE || w->state == WORKER_BUSY,
                                  .holds = holds.n,
                                  .mean_us = holds.n ? (double)holds.ns / (double)holds.n / 1e3 : NAN,
                                  .max_us = holds.n ? (double)holds.longest_ns / 1e3 : NAN,
                                  .refused = w->refused};
    worker_unlock(w);
}

/* ---- explanations ---- */

/* Explain why the python worker has not got the GIL. */

void worker_explain(const struct pystack_gate *gate, bool up, char *why) {
    if (!up)
        snprintf(why, WORKER_WHY_MAX, "Python has not started yet, or has ended");
    else if (gil_late_is_owed())
        snprintf(why, WORKER_WHY_MAX, GIL_LATE_WHY);
    else if (!gate->held)
        snprintf(why, WORKER_WHY_MAX, "could not acquire the GIL in time");
    else if (gate->holder_tid)
        snprintf(why, WORKER_WHY_MAX, "could not acquire the GIL in time: thread %lld holds it",
                 (long long)gate->holder_tid);
    else
        snprintf(why, WORKER_WHY_MAX,
                 "could not acquire the GIL in time: a thread that is not known holds it");
}
