/* SPDX-License-Identifier: Apache-2.0 */
/* thread_spawner: see thread_spawner.h. clone(2), CLONE_FILES: a thread shares the table of its
 * creator. */
#include "agent/python/thread_spawner.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "agent/threads.h"

static struct thread_spawner {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool there, stop;
    pthread_t thread;
    /* the request */
    bool wanted;
    pthread_t *child;
    void *(*fn)(void *);
    void *arg;
    int rc;
} nursery = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void *thread_spawner_main(void *arg) {
    (void)arg;
    threads_begin("probing-job");
    pthread_mutex_lock(&nursery.lock);
    while (!nursery.stop) {
        if (nursery.wanted) {
            nursery.rc = threads_create_deep(nursery.child, nursery.fn, nursery.arg, false);
            nursery.wanted = false;
            pthread_cond_broadcast(&nursery.changed);
        }
        pthread_cond_wait(&nursery.changed, &nursery.lock);
    }
    pthread_mutex_unlock(&nursery.lock);
    threads_end();
    return NULL;
}

int thread_spawner_begin(void) {
    nursery.stop = nursery.wanted = false;
    int rc = threads_create(&nursery.thread, thread_spawner_main, NULL, false);
    nursery.there = rc == 0;
    return rc;
}

void thread_spawner_end(void) {
    if (!nursery.there)
        return;
    pthread_mutex_lock(&nursery.lock);
    nursery.stop = true;
    pthread_cond_broadcast(&nursery.changed);
    pthread_mutex_unlock(&nursery.lock);
    pthread_join(nursery.thread, NULL);
    nursery.there = false;
}

int thread_spawner_create(pthread_t *thread, void *(*fn)(void *), void *arg) {
    if (!nursery.there)
        return EAGAIN;
    pthread_mutex_lock(&nursery.lock);
    nursery.child = thread;
    nursery.fn = fn;
    nursery.arg = arg;
    nursery.wanted = true;
    pthread_cond_broadcast(&nursery.changed);
    while (nursery.wanted)
        pthread_cond_wait(&nursery.changed, &nursery.lock);
    int rc = nursery.rc;
    pthread_mutex_unlock(&nursery.lock);
    return rc;
}

void thread_spawner_in_child(void) {
    nursery = (struct thread_spawner){.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
}
