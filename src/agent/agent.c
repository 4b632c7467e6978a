/* SPDX-License-Identifier: Apache-2.0 */
/* agent: see agent.h. */
#include "agent/agent.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/autostart.h"
#include "agent/sampler/signal_sampler.h"
#include "agent/debug/fatal.h"
#include "agent/fds.h"
#include "agent/sampler/gil_usage.h"
#include "agent/debug/debugger_state.h"
#include "agent/torch/step_values.h"
#include "agent/torch/module_hooks.h"
#include "agent/python/thread_spawner.h"
#include "agent/server/endpoints_file.h"
#include "agent/debug/pause.h"
#include "agent/torch/torch_profiler.h"
#include "agent/server/server.h"
#include "agent/python/py_callbacks.h"
#include "agent/torch/torch_spans.h"
#include "base/clock.h"
#include "base/err.h"

#define AGENT_STACK_BYTES ((size_t)512 * 1024)
#define AGENT_DEEP_STACK_BYTES ((size_t)8 * 1024 * 1024) /* of address space; memory as far as it is used */
#define AGENT_START_NS (1500 * CLOCK_NS_PER_MS)          /* until the socket must listen */
#define AGENT_END_NS (3 * CLOCK_NS_PER_S)                /* until a run that is ending must have ended */
#define AGENT_REAP_TRIES 1000                            /* of 5 ms each, at the end of a run */

enum agent_state {
    AGENT_PARKED = 0,
    AGENT_STARTING,
    AGENT_RUNNING,
    AGENT_ENDING,
};

/* The thread that has brought us in. */
struct agent_guest {
    bool used;
    pthread_t thread;
    int64_t tid;
    void *region;
    size_t region_size;
};

static struct agent_life {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool made;     /* changed is initialised */
    bool fork_set; /* the handler of fork is registered; stays so for ever */
    bool give_up;  /* whoever started it no longer waits */
    bool invited;  /* see agent_start */
    uint32_t way;  /* enum agent_way of this run */
    enum agent_state state;
    char error[256];
    char endpoint[128];
    struct agent_guest guest;
    int64_t tids[AGENT_MAX_TIDS];
    uint64_t ended_cpu_ns;
} agent_life = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void agent_lock(void) { (void)pthread_mutex_lock(&agent_life.lock); }

static void agent_unlock(void) { (void)pthread_mutex_unlock(&agent_life.lock); }

/* ---- fork ---- */

/* In the child none of our threads exists and any lock may be held for ever: begin anew. Memory of the run that the parent
 * has is left alone: it may have been in the middle of a change. Async-signal-safe, but for the thread that the children of a
 * process with PROBING=2 get; see docs/decisions.md. */
static void agent_in_child(void) {
    bool had_agent = agent_life.state == AGENT_RUNNING || agent_life.state == AGENT_STARTING;
    fds_close_in_child();
    thread_spawner_in_child();
    signal_sampler_in_child();
    fatal_in_child();
    torch_spans_in_child();
    step_values_in_child();
    py_callbacks_in_child();
    module_window_set_child(true);
    torch_profiler_in_child();
    endpoints_file_in_child();
    pause_in_child();
    debugger_state_in_child();
    agent_life = (struct agent_life){.lock = PTHREAD_MUTEX_INITIALIZER, .fork_set = true};
    autostart_in_child(had_agent);
}

/* What needs doing once, under the lock. 0 or -1. */
static int agent_make(void) {
    pthread_condattr_t attr;
    if (!agent_life.fork_set && pthread_atfork(NULL, NULL, agent_in_child) != 0)
        return -1;
    agent_life.fork_set = true;
    if (agent_life.made)
        return 0;
    if (pthread_condattr_init(&attr) != 0)
        return -1;
    if (pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0 &&
        pthread_cond_init(&agent_life.changed, &attr) == 0)
        agent_life.made = true;
    (void)pthread_condattr_destroy(&attr);
    return agent_life.made ? 0 : -1;
}

/* ---- threads ---- */

static int agent_create(pthread_t *thread, void *(*fn)(void *), void *arg, bool detached, size_t stack) {
    sigset_t all, before;
    pthread_attr_t attr;
    int rc = pthread_attr_init(&attr);
    if (rc != 0)
        return rc;
    (void)sigfillset(&all);
    rc = pthread_sigmask(SIG_SETMASK, &all, &before);
    if (rc == 0) {
        (void)pthread_attr_setdetachstate(&attr,
                                          detached ? PTHREAD_CREATE_DETACHED : PTHREAD_CREATE_JOINABLE);
        (void)pthread_attr_setstacksize(&attr, stack);
        rc = pthread_create(thread, &attr, fn, arg);
        /* Thread-local storage lies on the stack; a job may have more of it than our stacks are large. */
        for (size_t size = 4 * AGENT_STACK_BYTES; rc == EINVAL && size <= 64 * AGENT_STACK_BYTES; size *= 4) {
            (void)pthread_attr_setstacksize(&attr, size);
            rc = pthread_create(thread, &attr, fn, arg);
        }
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    (void)pthread_attr_destroy(&attr);
    return rc;
}

int agent_thread_create(pthread_t *thread, void *(*fn)(void *), void *arg, bool detached) {
    return agent_create(thread, fn, arg, detached, AGENT_STACK_BYTES);
}

int agent_thread_create_deep(pthread_t *thread, void *(*fn)(void *), void *arg, bool detached) {
    int rc = agent_create(thread, fn, arg, detached, AGENT_DEEP_STACK_BYTES);
    return rc == 0 ? 0 : agent_create(thread, fn, arg, detached, AGENT_STACK_BYTES);
}

void agent_thread_begin(const char *name) {
    (void)prctl(PR_SET_NAME, name);
    agent_lock();
    for (size_t i = 0; i < AGENT_MAX_TIDS; i++)
        if (!agent_life.tids[i]) {
            agent_life.tids[i] = syscall(SYS_gettid);
            break;
        }
    agent_unlock();
}

void agent_thread_forget(int64_t tid) {
    agent_lock();
    for (size_t i = 0; i < AGENT_MAX_TIDS; i++)
        if (agent_life.tids[i] == tid)
            agent_life.tids[i] = 0;
    agent_unlock();
}

void agent_thread_end(void) {
    int64_t self = syscall(SYS_gettid);
    agent_lock();
    for (size_t i = 0; i < AGENT_MAX_TIDS; i++)
        if (agent_life.tids[i] == self)
            agent_life.tids[i] = 0;
    agent_life.ended_cpu_ns += clock_self_cpu_ns();
    agent_unlock();
}

size_t agent_own_tids(int64_t *tids, size_t cap) {
    size_t n = 0;
    agent_lock();
    for (size_t i = 0; i < AGENT_MAX_TIDS && n < cap; i++)
        if (agent_life.tids[i])
            tids[n++] = agent_life.tids[i];
    if (agent_life.guest.used && n < cap)
        tids[n++] = agent_life.guest.tid;
    agent_unlock();
    return n;
}

static uint64_t agent_sum_cpu(bool *own) {
    int64_t self = syscall(SYS_gettid);
    *own = false;
    agent_lock();
    uint64_t sum = agent_life.ended_cpu_ns;
    for (size_t i = 0; i < AGENT_MAX_TIDS; i++) {
        *own = *own || agent_life.tids[i] == self;
        if (agent_life.tids[i] && agent_life.tids[i] != self)
            sum += clock_thread_cpu_ns((pid_t)agent_life.tids[i]);
    }
    agent_unlock();
    return sum;
}

uint64_t agent_cpu_ns(void) {
    bool own;
    uint64_t others = agent_sum_cpu(&own);
    return own ? others + clock_self_cpu_ns() : others;
}

uint64_t agent_others_cpu_ns(void) {
    bool own;
    return agent_sum_cpu(&own);
}

/* ---- the guest ---- */

/* Under the lock: take care of the thread that calls probing_start. What it does after this is to return. */
static void agent_adopt(const struct agent_start *args) {
    if (args->fd >= 0)
        (void)close(args->fd);
    if (!args->thread)
        return;
    agent_life.guest = (struct agent_guest){.used = true,
                                            .thread = (pthread_t)args->thread,
                                            .tid = syscall(SYS_gettid),
                                            .region = (void *)(uintptr_t)args->region,
                                            .region_size = (size_t)args->region_size};
}

bool agent_reap(void) {
    agent_lock();
    struct agent_guest *g = &agent_life.guest;
    int rc = g->used ? pthread_tryjoin_np(g->thread, NULL) : ESRCH;
    if (rc == 0 && g->region && g->region_size)
        (void)munmap(g->region, g->region_size);
    if (rc != EBUSY)
        *g = (struct agent_guest){0};
    agent_unlock();
    return rc != EBUSY;
}

/* ---- a run ---- */

void agent_set_ending(void) {
    endpoints_file_end();
    agent_lock();
    agent_life.state = AGENT_ENDING;
    agent_unlock();
}

/* The last thing a run does: `error` says why it never began, or is NULL. */
static void agent_park(const char *error) {
    agent_lock();
    (void)snprintf(agent_life.error, sizeof agent_life.error, "%s", error ? error : "");
    agent_life.ended_cpu_ns = 0;
    agent_life.give_up = false;
    agent_life.state = AGENT_PARKED;
    (void)pthread_cond_broadcast(&agent_life.changed);
    agent_unlock();
}

/* Tell the starter that the socket listens. False when nobody waits any more. */
static bool agent_announce(const char *endpoint) {
    agent_lock();
    bool wanted = !agent_life.give_up;
    agent_life.state = wanted ? AGENT_RUNNING : AGENT_ENDING;
    (void)snprintf(agent_life.endpoint, sizeof agent_life.endpoint, "%s", endpoint);
    (void)pthread_cond_broadcast(&agent_life.changed);
    agent_unlock();
    return wanted;
}

/* The guest has nothing left to do but return; one that is held up (by a debugger) is left to itself. */
static void agent_reap_last(void) {
    for (int tries = 0; tries < AGENT_REAP_TRIES && !agent_reap(); tries++) {
        struct timespec pause = {.tv_nsec = 5 * (long)CLOCK_NS_PER_MS};
        (void)nanosleep(&pause, NULL);
    }
    agent_lock();
    agent_life.guest = (struct agent_guest){0};
    agent_unlock();
}

static void *agent_main(void *arg) {
    struct err e = {0};
    (void)arg;
    agent_thread_begin("probing-srv");
    gil_usage_clear();
    (void)thread_spawner_begin();
    (void)fds_make_private();
    struct server *server = server_new(&e);
    if (server && agent_announce(server_endpoint(server)))
        server_run(server);
    agent_set_ending();
    fatal_disarm();
    server_free(server);
    thread_spawner_end();
    agent_reap_last();
    agent_thread_end();
    agent_park(server ? NULL : e.text);
    return NULL;
}

/* ---- starting ---- */

static int agent_fail(struct agent_start *args, const char *why) {
    (void)snprintf(args->error, sizeof args->error, "%s", why);
    return AGENT_FAILED;
}

/* Wait, under the lock, while the state is `state`. 0, or -1 when it still is at the deadline. */
static int agent_wait_while(enum agent_state state, uint64_t limit_ns) {
    uint64_t until = clock_mono_ns() + limit_ns;
    struct timespec ts = {.tv_sec = (time_t)(until / CLOCK_NS_PER_S),
                          .tv_nsec = (long)(until % CLOCK_NS_PER_S)};
    while (agent_life.state == state)
        if (pthread_cond_timedwait(&agent_life.changed, &agent_life.lock, &ts) == ETIMEDOUT)
            return agent_life.state == state ? -1 : 0;
    return 0;
}

/* Under the lock, parked. */
static int agent_begin(struct agent_start *args, bool invited) {
    pthread_t thread;
    agent_life.state = AGENT_STARTING;
    agent_life.invited = invited;
    agent_life.way = args->way;
    int rc = agent_thread_create(&thread, agent_main, NULL, true);
    if (rc != 0) {
        agent_life.state = AGENT_PARKED;
        (void)snprintf(args->error, sizeof args->error, "no thread for the agent: %s", strerror(rc));
        return AGENT_FAILED;
    }
    if (agent_wait_while(AGENT_STARTING, AGENT_START_NS) != 0) {
        agent_life.give_up = true;
        return agent_fail(args,
                          "the agent's thread did not get to listen in time: is the machine overloaded?");
    }
    if (agent_life.state != AGENT_RUNNING)
        return agent_fail(args, agent_life.error);
    agent_adopt(args);
    server_poke();
    return AGENT_STARTED;
}

bool agent_is_invited(void) {
    agent_lock();
    bool invited = agent_life.invited;
    agent_unlock();
    return invited;
}

uint32_t agent_came_by(void) {
    agent_lock();
    uint32_t way = agent_life.way;
    agent_unlock();
    return way;
}

int agent_start(struct agent_start *args, bool invited) {
    int result;
    agent_lock();
    if (agent_make() != 0)
        result = agent_fail(args, "the C library refused a condition or a fork handler");
    else if (agent_wait_while(AGENT_ENDING, AGENT_END_NS) != 0 ||
             agent_wait_while(AGENT_STARTING, AGENT_START_NS) != 0)
        result = agent_fail(args, "an agent that is ending or starting holds the place: try again");
    else if (agent_life.state == AGENT_RUNNING)
        result = AGENT_ALREADY;
    else
        result = agent_begin(args, invited);
    if (result != AGENT_FAILED)
        (void)snprintf(args->endpoint, sizeof args->endpoint, "%s", agent_life.endpoint);
    agent_unlock();
    return result;
}
