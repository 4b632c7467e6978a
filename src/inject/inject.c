/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inject: see inject.h.
 *
 * The work is done by a thread made for one call: when it ends, the kernel releases whatever it
 * traces, even a thread that never came to a stop. The caller's signals wait until the target is
 * restored.
 */
#include "inject/inject.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/agent_abi.h"
#include "base/clock.h"
#include "base/text.h"
#include "inject/agentfile.h"
#include "inject/borrow.h"
#include "inject/check.h"
#include "inject/remote_exec.h"
#include "inject/load.h"
#include "inject/safe_point.h"
#include "inject/stub.h"
#include "inject/target.h"

#define INJECT_TIMEOUT_MS 2000U
#define INJECT_THREAD_STACK ((uint64_t)1024 * 1024)
#define INJECT_GO_WAIT_NS (500 * CLOCK_NS_PER_MS) /* without a sign of life */
#define INJECT_RETRY_NS 5000000L
#define INJECT_RETRY_SHARE 8 /* of the time, where the obstacle may stay */
#define INJECT_RETRY_STEP_NS 2000000L
#define INJECT_TIMER_SLACK_NS 1000UL

/* Results of a strategy besides 0 and -1. */
enum inject_outcome {
    INJECT_RETRY = 1,  /* may be tried again: another program was busy there */
    INJECT_BARRED = 2, /* no thread may be borrowed; the error says why */
};

struct inject_job {
    const struct inject_request *req;
    struct inject_result *out;
    struct err *e;
    uint64_t deadline_ns;
    uint8_t *bytes; /* of the agent; NULL when a mapped one is used */
    size_t size;
    uint64_t entry; /* of a mapped agent */
    struct mem mem; /* of the target, from the first check to the end */
    struct target target;
    struct borrow borrow;
    enum agent_way way; /* once a thread is found */
    bool traced;        /* by another program, at the last check */
    /* the thread to be borrowed had no room left on its stack: job->e says so */
    bool no_stack;
    int rc;
};

static const int inject_deferred[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGTSTP,  SIGTTIN, SIGTTOU,
                                      SIGPIPE, SIGALRM, SIGUSR1, SIGUSR2, SIGWINCH, SIGCHLD};

/* True if we were asked to end. The signal is still pending and acts when we are done. */
static bool inject_stop_asked(void) {
    sigset_t pending;
    return sigpending(&pending) == 0 &&
           (sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1 ||
            sigismember(&pending, SIGHUP) == 1 || sigismember(&pending, SIGQUIT) == 1);
}

static int inject_interrupted(const struct inject_job *job) {
    return err_set(job->e, ERR_FAILED, "interrupted; process %d is as it was", (int)job->req->pid);
}

static void inject_fill_params(const struct inject_job *job, struct stub_params *p) {
    const struct target_symbols *s = &job->target.sym;
    *p = (struct stub_params){
        .fn_munmap = s->munmap,
        .fn_pthread_create = s->pthread_create,
        .fn_attr_init = s->attr_init,
        .fn_attr_setstacksize = s->attr_setstacksize,
        .fn_attr_destroy = s->attr_destroy,
        .fn_pthread_self = s->pthread_self,
        .fn_pthread_detach = s->pthread_detach,
        .fn_errno_location = s->errno_location,
        .fn_dlopen = s->dlopen,
        .fn_dlsym = s->dlsym,
        .fn_dlerror = s->dlerror,
        .fn_dlclose = s->dlclose,
        .entry = job->entry,
        .stack_size = INJECT_THREAD_STACK,
        .go_wait_ns = INJECT_GO_WAIT_NS,
        .thread_name = STUB_THREAD_NAME,
        .file_name = AGENT_MEMFD_NAME,
        .symbol = AGENT_ENTRY,
        .start = {.way = job->way},
    };
}

/* Borrow the stopped thread to create another. 0 with the region in job->borrow; INJECT_RETRY
 * with the error if it has no room on its stack (it may be the one that another injector has
 * just created); or -1 with the error. The thread is released in any case. */
static int inject_create_thread(struct inject_job *job, struct thread *thread) {
    struct borrow *b = &job->borrow;
    struct stub_params params;
    inject_fill_params(job, &params);
    int rc = inject_stop_asked() ? inject_interrupted(job)
                                 : borrow_begin(b, &job->target, thread, job->deadline_ns, job->e);
    if (rc == 0) {
        rc = borrow_make_region(b, &params, job->e);
        if (rc == 0)
            rc = borrow_create_thread(b, job->e);
        if (rc == -1)
            borrow_drop_region(b);
        borrow_end(b);
    } else {
        thread_release(thread);
    }
    job->out->stopped_us = thread->stopped_ns / CLOCK_NS_PER_US;
    job->out->borrowed_tid = thread->tid;
    job->no_stack = rc == BORROW_NO_STACK;
    return job->no_stack ? INJECT_RETRY : rc < 0 ? -1 : 0;
}

/* Note the agent's name of its socket, as we reach it. It comes from the target's memory, so
 * only a valid name of an agent's socket is believed. */
static int inject_note_endpoint(struct inject_job *job, const struct agent_start *start) {
    char inside[ENDPOINT_PATH_MAX];
    int pid = (int)job->req->pid;
    memcpy(inside, start->endpoint, sizeof inside - 1);
    inside[sizeof inside - 1] = '\0';
    if (inside[0] == '\0')
        return 0; /* the usual place, filled before */
    if (!endpoint_is_name(inside))
        return err_set(job->e, ERR_ATTACH,
                       "process %d does not give the path of an agent's socket: nothing is connected to it",
                       pid);
    int n = snprintf(job->out->endpoint, sizeof job->out->endpoint, "/proc/%d/root%s", pid, inside);
    if (n < 0 || (size_t)n >= sizeof job->out->endpoint)
        return err_set(job->e, ERR_FAILED, "process %d: the path of the agent's socket is too long", pid);
    return 0;
}

/* 0 done, INJECT_RETRY if another injector is at work, INJECT_BARRED or -1 with the error. */
static int inject_run(struct inject_job *job) {
    struct target *t = &job->target;
    struct thread thread = {0};
    struct stub_params answer;
    pid_t pid = job->req->pid;
    if (target_init(t, pid, &job->mem, job->e) != 0 || target_find_symbols(t, job->e) != 0)
        return mem_is_gone(&t->mem) ? target_lost(t, job->e) : -1;
    if (t->agent >= 0) {
        if (agentfile_find_mapped(t, &job->entry, job->e) != 0)
            return -1;
        job->out->reused = true;
    } else if (agentfile_read(job->req->agent_path, &job->bytes, &job->size, job->e) != 0) {
        return -1;
    }
    uint64_t now = clock_mono_ns();
    uint64_t moment_end = job->deadline_ns > now ? now + (job->deadline_ns - now) / 4 * 3 : now;
    struct safe_point_found found = {0};
    if (safe_point_find(t, &thread, moment_end, inject_stop_asked, &found, job->e) != 0)
        return found.is_busy ? INJECT_RETRY : found.is_barred ? INJECT_BARRED : -1;
    job->out->strategy = agent_way_name(found.way);
    job->way = found.way;
    memcpy(job->out->moment, found.how, sizeof job->out->moment);
    int rc = inject_create_thread(job, &thread);
    if (rc == 0) {
        struct load_request load = {.params_at = job->borrow.params_at,
                                    .bytes = job->bytes,
                                    .size = job->size,
                                    .deadline_ns = job->deadline_ns,
                                    .stop_asked = inject_stop_asked};
        rc = load_agent(t, &load, &answer, job->e);
    }
    if (rc != 0)
        return rc;
    job->out->already = answer.result == STUB_ALREADY;
    return inject_note_endpoint(job, &answer.start);
}

/* Whether an agent answers already: 1 yes, 0 no, -1 with the error. */
static int inject_is_there(struct inject_job *job) {
    if (endpoint_path_from_outside(job->out->endpoint, sizeof job->out->endpoint, job->req->pid, job->e) != 0)
        return -1;
    return endpoint_probe(job->out->endpoint) == 1;
}

/* One try. 0 done; INJECT_RETRY if another tracer is at work (most likely another injector,
 * whose agent will do); INJECT_BARRED or -1 with the error. `late`: too late to start, but
 * another's agent will still do. */
static int inject_try(struct inject_job *job, bool late) {
    struct check_facts facts;
    int rc = inject_is_there(job);
    if (rc == 1)
        job->out->already = true;
    if (rc != 0)
        return rc == 1 ? 0 : -1;
    if (late) {
        /* the time limit can be over before the first try */
        if (!job->e->text[0])
            err_set(job->e, ERR_ATTACH,
                    "process %d: no time left to attach: the machine is overloaded; try again",
                    (int)job->req->pid);
        return INJECT_RETRY;
    }
    check_gather(job->req->pid, &job->mem, &facts);
    rc = check_judge(&facts, job->e);
    job->traced = facts.exists && facts.status.tracer_pid > 0;
    if (rc == INJECT_BUSY)
        return INJECT_RETRY;
    if (rc == INJECT_ONLY_REMOTE_EXEC && job->req->find_remote_exec)
        return INJECT_BARRED;
    if (rc != 0)
        return job->traced ? INJECT_RETRY : -1;
    rc = inject_run(job);
    target_fini(&job->target);
    free(job->bytes);
    job->bytes = NULL;
    if (rc == INJECT_RETRY && !job->no_stack)
        err_set(
            job->e, ERR_ATTACH,
            "process %d is busy: another program is attaching to it, or the machine is overloaded; try again",
            (int)job->req->pid);
    return rc;
}

/* Inject by one of its threads. 0, INJECT_BARRED or -1. */
static int inject_by_thread(struct inject_job *job) {
    uint64_t start = clock_mono_ns();
    uint64_t span = job->deadline_ns > start ? job->deadline_ns - start : 0;
    for (;;) {
        job->no_stack = false;
        int rc = inject_try(job, clock_mono_ns() - start > span / 4 * 3);
        /* A debugger stays; another of our programs is soon gone. */
        uint64_t patience = job->no_stack                        ? span / INJECT_RETRY_SHARE
                            : rc == INJECT_RETRY                 ? span
                            : rc == INJECT_BARRED && job->traced ? span / 16
                                                                 : 0;
        if (rc == INJECT_RETRY && inject_stop_asked()) {
            /* On a machine that stalls, the thread we gave up may have started the agent. */
            rc = inject_is_there(job);
            job->out->already = rc == 1;
            return rc == 1 ? 0 : inject_interrupted(job);
        }
        if (clock_mono_ns() - start >= patience || inject_stop_asked())
            return rc == INJECT_RETRY ? -1 : rc;
        *job->out = (struct inject_result){0};
        /* Two injectors that gave way to each other must not meet again. */
        nanosleep(&(struct timespec){0, INJECT_RETRY_NS + INJECT_RETRY_STEP_NS * (getpid() % 16)}, NULL);
    }
}

/* Ask the interpreter (PEP 768), after all threads were barred for the reason in job->e. 0 or
 * -1. */
static int inject_by_remote_exec(struct inject_job *job) {
    struct remote_exec_result in;
    struct err why = *job->e, other;
    if (!job->req->find_remote_exec)
        return -1;
    if (agentfile_read(job->req->agent_path, &job->bytes, &job->size, job->e) != 0)
        return -1;
    int rc = remote_exec_enter(job->req, &job->mem, job->bytes, job->size, job->deadline_ns,
                               inject_stop_asked, &in, &other);
    free(job->bytes);
    job->bytes = NULL;
    if (rc != 0 && other.code == ERR_LOST)
        return target_lost(&(struct target){.pid = job->req->pid}, job->e);
    if (rc != 0)
        return err_set(job->e, other.code, "%s; its Python refused, too: %s", why.text, other.text);
    job->out->already = in.agent.result == AGENT_ALREADY;
    job->out->reused = in.reused;
    job->out->strategy = agent_way_name(AGENT_WAY_REMOTE_EXEC);
    return inject_note_endpoint(job, &in.agent.start);
}

static void *inject_work(void *arg) {
    struct inject_job *job = arg;
    /* for exact short waits */
    prctl(PR_SET_TIMERSLACK, INJECT_TIMER_SLACK_NS, 0, 0, 0);
    mem_open_image(&job->mem, job->req->pid);
    bool was_there = !mem_is_gone(&job->mem) && !procfs_is_gone(job->req->pid);
    job->rc = inject_by_thread(job);
    if (job->rc == INJECT_BARRED)
        job->rc = inject_by_remote_exec(job);
    /* A process on its way out is a better reason than whatever was found wrong with it. */
    if (job->rc != 0 && job->e->code == ERR_ATTACH && was_there &&
        (mem_is_gone(&job->mem) || procfs_is_ending(job->req->pid)))
        target_lost(&(struct target){.pid = job->req->pid}, job->e);
    mem_fini(&job->mem);
    return NULL;
}

int inject_process(const struct inject_request *req, struct inject_result *out, struct err *e) {
    uint64_t start = clock_mono_ns();
    unsigned timeout_ms = req->timeout_ms ? req->timeout_ms : INJECT_TIMEOUT_MS;
    sigset_t deferred, kept;
    pthread_t worker;
    *out = (struct inject_result){0};
    *e = (struct err){0};
    struct inject_job *job = calloc(1, sizeof *job);
    if (!job)
        return err_set(e, ERR_FAILED, "out of memory");
    job->req = req;
    job->out = out;
    job->e = e;
    job->deadline_ns = start + timeout_ms * CLOCK_NS_PER_MS;
    sigemptyset(&deferred);
    for (size_t i = 0; i < sizeof inject_deferred / sizeof inject_deferred[0]; i++)
        sigaddset(&deferred, inject_deferred[i]);
    pthread_sigmask(SIG_BLOCK, &deferred, &kept);
    int rc = pthread_create(&worker, NULL, inject_work, job);
    if (rc == 0) {
        pthread_join(worker, NULL);
        rc = job->rc == 0 ? 0 : -1;
    } else {
        rc = err_set_errno(e, ERR_FAILED, rc, "cannot create a thread");
    }
    pthread_sigmask(SIG_SETMASK, &kept, NULL);
    out->total_us = (clock_mono_ns() - start) / CLOCK_NS_PER_US;
    free(job);
    return rc;
}
