/* SPDX-License-Identifier: Apache-2.0 */
/* native_worker: see native_worker.h. */
#include "client/symbols/native_worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/work.h"
#include "client/symbols/native.h"

#define NATIVE_WORKER_STOP_S 2

struct native_worker {
    struct work work;
    struct native_names *names; /* used by the thread */
    /* Under the lock. */
    bool forget;
    struct native_work *in, *in_tail, *out, *out_tail;
    size_t n, bytes; /* in both queues, and in work */
};

void native_work_free(struct native_work *item) {
    if (!item)
        return;
    model_snapshot_fini(&item->snapshot);
    model_sample_batch_fini(&item->batch);
    free(item);
}

static void worker_append(struct native_work **head, struct native_work **tail, struct native_work *item) {
    item->next = NULL;
    *(*head ? &(*tail)->next : head) = item;
    *tail = item;
}

/* Count its size now. With the lock. */
static void worker_count(struct native_worker *w, struct native_work *item) {
    w->bytes -= item->bytes;
    item->bytes = item->snapshot.arena.used + item->batch.arena.used;
    w->bytes += item->bytes;
}

static void worker_do(struct native_worker *w, struct native_work *item) {
    struct model_sample_batch out;
    if (item->kind == NATIVE_WORK_SNAPSHOT)
        native_names_snapshot(w->names, &item->snapshot);
    if (item->kind != NATIVE_WORK_BATCH)
        return;
    item->failed = native_names_batch(w->names, &item->batch, &out) != 0;
    model_sample_batch_fini(&item->batch);
    item->batch = out;
}

static void worker_run(void *arg) {
    struct native_worker *w = arg;
    work_lock(&w->work);
    while (!w->work.stop) {
        struct native_work *item = w->in;
        if (!item) {
            work_wait(&w->work, WORK_FOREVER);
            continue;
        }
        w->in = item->next;
        bool forget = w->forget && item->kind == NATIVE_WORK_BATCH;
        w->forget = w->forget && !forget;
        work_unlock(&w->work);
        if (forget)
            native_names_forget(w->names);
        worker_do(w, item);
        work_lock(&w->work);
        worker_count(w, item);
        worker_append(&w->out, &w->out_tail, item);
        work_notify(&w->work);
    }
    work_unlock(&w->work);
}

static void worker_free_list(struct native_work *item) {
    while (item) {
        struct native_work *next = item->next;
        native_work_free(item);
        item = next;
    }
}

static void worker_free(struct native_worker *w) {
    worker_free_list(w->in);
    worker_free_list(w->out);
    native_names_free(w->names);
    free(w);
}

struct native_worker *native_worker_start(pid_t pid, struct err *e) {
    struct native_worker *w = calloc(1, sizeof *w);
    if (!w) {
        err_set(e, ERR_FAILED, "out of memory for symbols");
        return NULL;
    }
    w->names = native_names_new(pid);
    int rc = w->names ? work_init(&w->work) : ENOMEM;
    if (rc == 0)
        rc = work_start(&w->work, worker_run, w);
    if (rc == 0)
        return w;
    err_set_errno(e, ERR_FAILED, rc, "cannot look for symbols");
    native_worker_stop(w);
    return NULL;
}

void native_worker_stop(struct native_worker *w) {
    if (w && work_stop(&w->work, NATIVE_WORKER_STOP_S))
        worker_free(w);
}

int native_worker_fd(const struct native_worker *w) { return w->work.fd; }

/* Queue it, or free it if there is no room. */
static int worker_put(struct native_worker *w, struct native_work *item) {
    work_lock(&w->work);
    bool room = w->n < NATIVE_WORKER_MAX && w->bytes < NATIVE_WORKER_BYTES;
    if (room) {
        worker_append(&w->in, &w->in_tail, item);
        w->n++;
        worker_count(w, item);
        work_wake(&w->work);
    }
    work_unlock(&w->work);
    if (!room)
        native_work_free(item);
    return room ? 0 : -1;
}

int native_worker_put_snapshot(struct native_worker *w, struct model_snapshot *s) {
    struct native_work *item = calloc(1, sizeof *item);
    if (!item) {
        model_snapshot_fini(s);
        return -1;
    }
    item->snapshot = *s;
    memset(s, 0, sizeof *s);
    return worker_put(w, item);
}

int native_worker_put_batch(struct native_worker *w, struct model_sample_batch *b) {
    struct native_work *item = calloc(1, sizeof *item);
    if (!item) {
        model_sample_batch_fini(b);
        return -1;
    }
    item->kind = NATIVE_WORK_BATCH;
    item->batch = *b;
    memset(b, 0, sizeof *b);
    return worker_put(w, item);
}

int native_worker_put_reply(struct native_worker *w, enum wire_method method) {
    struct native_work *item = calloc(1, sizeof *item);
    if (!item)
        return -1;
    item->kind = NATIVE_WORK_REPLY;
    item->method = method;
    return worker_put(w, item);
}

void native_worker_forget(struct native_worker *w) {
    work_lock(&w->work);
    w->forget = true;
    work_unlock(&w->work);
}

struct native_work *native_worker_take(struct native_worker *w) {
    work_clear(&w->work);
    work_lock(&w->work);
    struct native_work *list = w->out;
    w->out = NULL;
    for (const struct native_work *item = list; item; item = item->next) {
        w->n--;
        w->bytes -= item->bytes;
    }
    work_unlock(&w->work);
    return list;
}
