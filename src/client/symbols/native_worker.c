/* SPDX-License-Identifier: Apache-2.0 */
/* native_worker: see native_worker.h. */
#include "client/symbols/native_worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "client/symbols/native.h"

#define NATIVE_WORKER_STOP_S 2

struct native_worker {
    struct native_names *names; /* the thread's */
    pthread_t thread;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    bool stop, forget;
    struct native_work *in, *in_tail, *out, *out_tail;
    size_t n, bytes; /* in both, and in the works */
    int event_fd;
};

void native_work_free(struct native_work *work) {
    if (!work)
        return;
    model_snapshot_fini(&work->snapshot);
    model_sample_batch_fini(&work->batch);
    free(work);
}

static void worker_append(struct native_work **head, struct native_work **tail, struct native_work *work) {
    work->next = NULL;
    *(*head ? &(*tail)->next : head) = work;
    *tail = work;
}

/* What it takes now. With the lock. */
static void worker_count(struct native_worker *w, struct native_work *work) {
    w->bytes -= work->bytes;
    work->bytes = work->snapshot.arena.used + work->batch.arena.used;
    w->bytes += work->bytes;
}

static void worker_do(struct native_worker *w, struct native_work *work) {
    struct model_sample_batch out;
    if (work->kind == NATIVE_WORK_SNAPSHOT)
        (void)native_names_snapshot(w->names, &work->snapshot);
    if (work->kind != NATIVE_WORK_BATCH)
        return;
    work->failed = native_names_batch(w->names, &work->batch, &out) != 0;
    model_sample_batch_fini(&work->batch);
    work->batch = out;
}

static void *worker_main(void *arg) {
    struct native_worker *w = arg;
    uint64_t one = 1;
    (void)pthread_mutex_lock(&w->lock);
    while (!w->stop) {
        struct native_work *work = w->in;
        if (!work) {
            (void)pthread_cond_wait(&w->changed, &w->lock);
            continue;
        }
        w->in = work->next;
        bool forget = w->forget && work->kind == NATIVE_WORK_BATCH;
        w->forget = w->forget && !forget;
        (void)pthread_mutex_unlock(&w->lock);
        if (forget)
            native_names_forget(w->names);
        worker_do(w, work);
        (void)pthread_mutex_lock(&w->lock);
        worker_count(w, work);
        worker_append(&w->out, &w->out_tail, work);
        ssize_t n = write(w->event_fd, &one, sizeof one);
        (void)n; /* a counter that is full is readable already */
    }
    (void)pthread_mutex_unlock(&w->lock);
    return NULL;
}

static void worker_free_list(struct native_work *work) {
    while (work) {
        struct native_work *next = work->next;
        native_work_free(work);
        work = next;
    }
}

static void worker_free(struct native_worker *w) {
    worker_free_list(w->in);
    worker_free_list(w->out);
    if (w->event_fd >= 0)
        (void)close(w->event_fd);
    native_names_free(w->names);
    (void)pthread_cond_destroy(&w->changed);
    (void)pthread_mutex_destroy(&w->lock);
    free(w);
}

struct native_worker *native_worker_start(pid_t pid, struct err *e) {
    sigset_t all, kept;
    struct native_worker *w = calloc(1, sizeof *w);
    if (!w) {
        (void)err_set(e, ERR_FAILED, "out of memory for symbols");
        return NULL;
    }
    (void)pthread_mutex_init(&w->lock, NULL);
    (void)pthread_cond_init(&w->changed, NULL);
    w->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    w->names = native_names_new(pid);
    int rc = w->event_fd < 0 ? errno : w->names ? 0 : ENOMEM;
    if (rc == 0) {
        (void)sigfillset(&all); /* signals are the loop's */
        (void)pthread_sigmask(SIG_SETMASK, &all, &kept);
        rc = pthread_create(&w->thread, NULL, worker_main, w);
        (void)pthread_sigmask(SIG_SETMASK, &kept, NULL);
    }
    if (rc == 0)
        return w;
    (void)err_set_errno(e, ERR_FAILED, rc, "cannot look for symbols");
    worker_free(w);
    return NULL;
}

void native_worker_stop(struct native_worker *w) {
    struct timespec until;
    if (!w)
        return;
    (void)pthread_mutex_lock(&w->lock);
    w->stop = true;
    (void)pthread_cond_signal(&w->changed);
    (void)pthread_mutex_unlock(&w->lock);
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += NATIVE_WORKER_STOP_S;
    if (pthread_timedjoin_np(w->thread, NULL, &until) == 0)
        worker_free(w);
    else
        (void)pthread_detach(w->thread);
}

int native_worker_fd(const struct native_worker *w) { return w->event_fd; }

/* Queue it, or free it when there is no room. */
static int worker_put(struct native_worker *w, struct native_work *work) {
    (void)pthread_mutex_lock(&w->lock);
    bool room = w->n < NATIVE_WORKER_MAX && w->bytes < NATIVE_WORKER_BYTES;
    if (room) {
        worker_append(&w->in, &w->in_tail, work);
        w->n++;
        worker_count(w, work);
        (void)pthread_cond_signal(&w->changed);
    }
    (void)pthread_mutex_unlock(&w->lock);
    if (!room)
        native_work_free(work);
    return room ? 0 : -1;
}

int native_worker_put_snapshot(struct native_worker *w, struct model_snapshot *s) {
    struct native_work *work = calloc(1, sizeof *work);
    if (!work) {
        model_snapshot_fini(s);
        return -1;
    }
    work->snapshot = *s;
    memset(s, 0, sizeof *s);
    return worker_put(w, work);
}

int native_worker_put_batch(struct native_worker *w, struct model_sample_batch *b) {
    struct native_work *work = calloc(1, sizeof *work);
    if (!work) {
        model_sample_batch_fini(b);
        return -1;
    }
    work->kind = NATIVE_WORK_BATCH;
    work->batch = *b;
    memset(b, 0, sizeof *b);
    return worker_put(w, work);
}

int native_worker_put_reply(struct native_worker *w, enum wire_method method) {
    struct native_work *work = calloc(1, sizeof *work);
    if (!work)
        return -1;
    work->kind = NATIVE_WORK_REPLY;
    work->method = method;
    return worker_put(w, work);
}

void native_worker_forget(struct native_worker *w) {
    (void)pthread_mutex_lock(&w->lock);
    w->forget = true;
    (void)pthread_mutex_unlock(&w->lock);
}

struct native_work *native_worker_take(struct native_worker *w) {
    uint64_t count;
    ssize_t got = read(w->event_fd, &count, sizeof count);
    (void)got; /* nothing there: the queue is looked at all the same */
    (void)pthread_mutex_lock(&w->lock);
    struct native_work *list = w->out;
    w->out = NULL;
    for (const struct native_work *work = list; work; work = work->next) {
        w->n--;
        w->bytes -= work->bytes;
    }
    (void)pthread_mutex_unlock(&w->lock);
    return list;
}
