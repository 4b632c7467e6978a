/* SPDX-License-Identifier: Apache-2.0 */
/* evals_kept: see evals_kept.h. */
#include "agent/server/evals_kept.h"

#include <stdlib.h>

#include "base/clock.h"

#define KEPT_MAX (sizeof((struct evals_kept *)0)->peers / sizeof(uint32_t))
#define KEPT_POLL_NS (50 * CLOCK_NS_PER_MS)
#define KEPT_RETRY_NS (2 * CLOCK_NS_PER_S)     /* after the GIL could not be acquired */
#define KEPT_PATIENCE_NS (10 * CLOCK_NS_PER_S) /* with the GIL */

struct kept_job {
    struct worker_job job; /* first */
    uint32_t peer;
};

static bool kept_step(struct worker_job *job, struct worker *w) {
    const struct pyapi *api = worker_api(w);
    struct pyapi_object *forget = worker_helper(w, "eval_forget");
    struct pyapi_object *peer = api->PyLong_FromLongLong((long long)((struct kept_job *)(void *)job)->peer);
    struct pyapi_object *done = forget && peer ? api->PyObject_CallFunctionObjArgs(forget, peer, NULL) : NULL;
    if (done)
        api->Py_DecRef(done);
    if (peer)
        api->Py_DecRef(peer);
    api->PyErr_Clear();
    return false;
}

static void kept_drop(struct worker_job *job, struct worker *w) {
    (void)job;
    (void)w;
}

static void kept_free(struct worker_job *job) { free(job); }

bool evals_kept_add(struct evals_kept *k, uint32_t peer) {
    size_t at = KEPT_MAX;
    for (size_t i = KEPT_MAX; i-- > 0;)
        if (k->peers[i] == peer)
            return true;
        else if (!k->peers[i])
            at = i;
    if (at < KEPT_MAX)
        k->peers[at] = peer;
    return at < KEPT_MAX;
}

static void kept_remove(struct evals_kept *k, uint32_t peer) {
    for (size_t i = 0; i < KEPT_MAX; i++)
        if (k->peers[i] == peer)
            k->peers[i] = 0;
}

static void kept_begin(struct evals_kept *k, struct worker *worker, uint32_t peer, uint64_t now) {
    struct kept_job *job = calloc(1, sizeof *job);
    k->look_ns = now + KEPT_RETRY_NS;
    if (!job)
        return;
    *job = (struct kept_job){.peer = peer,
                             .job = {.step = kept_step,
                                     .drop = kept_drop,
                                     .fini = kept_free,
                                     .calls_job = true, /* the finalizer of the value */
                                     .unit = "eval",
                                     .deadline_ns = now + KEPT_PATIENCE_NS}};
    if (worker_submit(worker, &job->job, NULL) != 0) {
        free(job);
        return;
    }
    k->job = &job->job;
    k->leaving = peer;
    k->look_ns = now + KEPT_POLL_NS;
}

/* True if the job has ended. */
static bool kept_end(struct evals_kept *k, struct worker *worker, uint64_t now) {
    enum worker_end end = worker_get_end(worker, k->job);
    k->look_ns = now + KEPT_POLL_NS;
    if (end == WORKER_PENDING)
        return false;
    evals_kept_fini(k, worker);
    if (end == WORKER_DONE)
        kept_remove(k, k->leaving);
    k->look_ns = end == WORKER_DONE ? 0 : now + KEPT_RETRY_NS;
    return end == WORKER_DONE;
}

void evals_kept_poll(struct evals_kept *k, struct worker *worker, struct mailbox *mailbox, uint64_t now) {
    if (k->job && !kept_end(k, worker, now))
        return;
    if (!worker || now < k->look_ns)
        return;
    k->look_ns = 0;
    for (size_t i = 0; i < KEPT_MAX && !k->job; i++)
        if (k->peers[i] && !mailbox_has(mailbox, k->peers[i]))
            kept_begin(k, worker, k->peers[i], now);
}

void evals_kept_fini(struct evals_kept *k, struct worker *worker) {
    if (k->job)
        worker_release(worker, k->job);
    k->job = NULL;
}
