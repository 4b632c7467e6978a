/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work: a worker thread, and a descriptor by which it reports to an event loop.
 *
 * Two ways to use it. A job runs once: work_start, the descriptor becomes readable when the job
 * has returned, work_finish. A service runs until work_stop: it sleeps in work_wait with the
 * lock, calls work_notify when a result lies ready, and returns when `stop` is set; the loop
 * calls work_clear and takes the results under the lock. The worker blocks all signals: they are
 * the loop's business.
 */
#ifndef BASE_WORK_H
#define BASE_WORK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define WORK_FOREVER UINT64_MAX

struct work {
    /* Readable after work_notify and when the function has returned. */
    int fd;
    bool is_open;
    /* Of the loop's side. */
    bool is_running;
    pthread_t thread;
    void (*run)(void *arg);
    void *arg;
    pthread_mutex_t lock; /* of `stop`, and of whatever the owner shares with the worker */
    pthread_cond_t changed;
    bool stop;
};

/* No thread yet. 0, or an errno value: then there is nothing to free. */
int work_init(struct work *w);

/* Run `run(arg)` on a thread of its own; none may be running. 0, or an errno value. */
int work_start(struct work *w, void (*run)(void *arg), void *arg);

/* ---- the loop's side ---- */

/* True once the function has returned and the descriptor says so; the thread is joined then.
 * False while it runs, and when it does not. */
bool work_finish(struct work *w);

/* Make the descriptor unreadable until the next work_notify. True: it was readable. */
bool work_clear(struct work *w);

/* Wake the worker up, after a change of what it waits for. */
void work_wake(struct work *w);

/* Set `stop`, wake the worker up and wait for its end, `timeout_s` seconds at most. True: there
 * is no thread any more, and `w` is freed. False: the worker is stuck (in a file system, in
 * /proc of a hung process); it was detached, and keeps all that it can reach: the owner leaves
 * `w` and `arg` where they are. Safe on a work that was zeroed instead of initialised: true. */
bool work_stop(struct work *w, int timeout_s);

/* ---- the worker's side ---- */

/* Make the descriptor readable. */
void work_notify(struct work *w);

/* With the lock: sleep until work_wake or until `until_ns` of clock_mono_ns, WORK_FOREVER
 * without end. False: the time is over. */
bool work_wait(struct work *w, uint64_t until_ns);

/* ---- both ---- */

void work_lock(struct work *w);
void work_unlock(struct work *w);

#endif
