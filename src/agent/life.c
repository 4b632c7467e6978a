/* SPDX-License-Identifier: Apache-2.0 */
/* life: see life.h. */
#include "agent/life.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/threads.h"
#include "base/clock.h"
#include "base/err.h"

#define LIFE_START_NS (1500 * CLOCK_NS_PER_MS) /* until the socket must listen */
#define LIFE_END_NS (3 * CLOCK_NS_PER_S)       /* until a run that is ending must have ended */
#define LIFE_REAP_TRIES 1000                   /* of 5 ms each, at the end of a run */

enum life_state {
    LIFE_PARKED = 0,
    LIFE_STARTING,
    LIFE_RUNNING,
    LIFE_ENDING,
};

/* The thread that has started the agent. */
struct life_guest {
    bool used;
    pthread_t thread;
    int64_t tid;
    void *region;
    size_t region_size;
};

static struct life {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool made;     /* changed is initialised */
    bool fork_set; /* the fork handler is registered, which is permanent */
    bool give_up;  /* the starter no longer waits */
    bool invited;  /* see life_start */
    uint32_t way;  /* enum agent_way of this run */
    enum life_state state;
    char error[256];
    char endpoint[128];
    struct life_guest guest;
} life = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void life_lock(void) { pthread_mutex_lock(&life.lock); }

static void life_unlock(void) { pthread_mutex_unlock(&life.lock); }

/* ---- fork ---- */

/* What pthread_atfork calls (Linux Standard Base, Core): that one is in libpthread before glibc 2.34, which a
 * program without threads has not loaded. */
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *library);
extern void *__dso_handle __attribute__((visibility("hidden")));

bool life_in_child(void) {
    bool had_agent = life.state == LIFE_RUNNING || life.state == LIFE_STARTING;
    life = (struct life){.lock = PTHREAD_MUTEX_INITIALIZER, .fork_set = true};
    return had_agent;
}

static int life_set_handler(void (*in_child)(void)) {
    if (!life.fork_set && __register_atfork(NULL, NULL, in_child, &__dso_handle) != 0)
        return -1;
    life.fork_set = true;
    return 0;
}

int life_watch_forks(void (*in_child)(void)) {
    life_lock();
    int rc = life_set_handler(in_child);
    life_unlock();
    return rc;
}

/* Initialise once, under the lock. 0 or -1. */
static int life_make(void (*in_child)(void)) {
    pthread_condattr_t attr;
    if (life_set_handler(in_child) != 0)
        return -1;
    if (life.made)
        return 0;
    if (pthread_condattr_init(&attr) != 0)
        return -1;
    if (pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0 &&
        pthread_cond_init(&life.changed, &attr) == 0)
        life.made = true;
    pthread_condattr_destroy(&attr);
    return life.made ? 0 : -1;
}

/* ---- the guest ---- */

/* Under the lock: take over the thread that calls probing_start. After this it only returns. */
static void life_adopt(const struct agent_start *args) {
    if (args->fd >= 0)
        close(args->fd);
    if (!args->thread)
        return;
    life.guest = (struct life_guest){.used = true,
                                     .thread = (pthread_t)args->thread,
                                     .tid = syscall(SYS_gettid),
                                     .region = (void *)(uintptr_t)args->region,
                                     .region_size = (size_t)args->region_size};
    threads_set_guest(life.guest.tid);
}

static void life_forget_guest(void) {
    life.guest = (struct life_guest){0};
    threads_set_guest(0);
}

bool life_reap(void) {
    life_lock();
    struct life_guest *g = &life.guest;
    int rc = g->used ? pthread_tryjoin_np(g->thread, NULL) : ESRCH;
    if (rc == 0 && g->region && g->region_size)
        munmap(g->region, g->region_size);
    if (rc != EBUSY)
        life_forget_guest();
    life_unlock();
    return rc != EBUSY;
}

/* ---- a run ---- */

void life_set_ending(void) {
    life_lock();
    life.state = LIFE_ENDING;
    life_unlock();
}

/* The last action of a run: `error` is the reason why it never started, or NULL. */
static void life_park(const char *error) {
    threads_clear_cpu();
    life_lock();
    snprintf(life.error, sizeof life.error, "%s", error ? error : "");
    life.give_up = false;
    life.state = LIFE_PARKED;
    pthread_cond_broadcast(&life.changed);
    life_unlock();
}

bool life_announce(const char *endpoint) {
    life_lock();
    bool wanted = !life.give_up;
    life.state = wanted ? LIFE_RUNNING : LIFE_ENDING;
    snprintf(life.endpoint, sizeof life.endpoint, "%s", endpoint);
    pthread_cond_broadcast(&life.changed);
    life_unlock();
    return wanted;
}

/* The guest only has to return; if a debugger holds it up, it is left alone. */
static void life_reap_last(void) {
    for (int tries = 0; tries < LIFE_REAP_TRIES && !life_reap(); tries++) {
        struct timespec pause = {.tv_nsec = 5 * (long)CLOCK_NS_PER_MS};
        nanosleep(&pause, NULL);
    }
    life_lock();
    life_forget_guest();
    life_unlock();
}

static void *life_main(void *arg) {
    const struct life_run *run = arg;
    struct err e = {0};
    threads_begin("probing-srv");
    int rc = run->main(&e);
    life_reap_last();
    threads_end();
    life_park(rc == 0 ? NULL : e.text);
    return NULL;
}

/* ---- starting ---- */

static int life_fail(struct agent_start *args, const char *why) {
    snprintf(args->error, sizeof args->error, "%s", why);
    return AGENT_FAILED;
}

/* Wait, under the lock, while the state is `state`. 0, or -1 if it still is at the deadline. */
static int life_wait_while(enum life_state state, uint64_t limit_ns) {
    uint64_t until = clock_mono_ns() + limit_ns;
    struct timespec ts = {.tv_sec = (time_t)(until / CLOCK_NS_PER_S),
                          .tv_nsec = (long)(until % CLOCK_NS_PER_S)};
    while (life.state == state)
        if (pthread_cond_timedwait(&life.changed, &life.lock, &ts) == ETIMEDOUT)
            return life.state == state ? -1 : 0;
    return 0;
}

/* Under the lock, in the state PARKED. */
static int life_begin(struct agent_start *args, bool invited, const struct life_run *run) {
    pthread_t thread;
    life.state = LIFE_STARTING;
    life.invited = invited;
    life.way = args->way;
    int rc = threads_create(&thread, life_main, (void *)run, true);
    if (rc != 0) {
        life.state = LIFE_PARKED;
        snprintf(args->error, sizeof args->error, "no thread for the agent: %s", strerror(rc));
        return AGENT_FAILED;
    }
    if (life_wait_while(LIFE_STARTING, LIFE_START_NS) != 0) {
        life.give_up = true;
        return life_fail(args,
                         "the agent's thread did not get to listen in time: is the machine overloaded?");
    }
    if (life.state != LIFE_RUNNING)
        return life_fail(args, life.error);
    life_adopt(args);
    run->on_guest();
    return AGENT_STARTED;
}

bool life_is_invited(void) {
    life_lock();
    bool invited = life.invited;
    life_unlock();
    return invited;
}

uint32_t life_came_by(void) {
    life_lock();
    uint32_t way = life.way;
    life_unlock();
    return way;
}

int life_start(struct agent_start *args, bool invited, const struct life_run *run) {
    int result;
    life_lock();
    if (life_make(run->in_child) != 0)
        result = life_fail(args, "the C library refused a condition or a fork handler");
    else if (life_wait_while(LIFE_ENDING, LIFE_END_NS) != 0 ||
             life_wait_while(LIFE_STARTING, LIFE_START_NS) != 0)
        result = life_fail(args, "an agent that is ending or starting holds the place: try again");
    else if (life.state == LIFE_RUNNING)
        result = AGENT_ALREADY;
    else
        result = life_begin(args, invited, run);
    if (result != AGENT_FAILED)
        snprintf(args->endpoint, sizeof args->endpoint, "%s", life.endpoint);
    life_unlock();
    return result;
}
