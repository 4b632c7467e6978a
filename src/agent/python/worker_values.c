/* SPDX-License-Identifier: Apache-2.0 */
/* worker_values: see worker_values.h. The job has a copy of its input: a snapshot may be gone
 * before the job is. */
#include "agent/python/worker_values.h"

#include <stdlib.h>
#include <string.h>

#include "pystack/gate.h"
#include "pystack/values.h"

#define VALUES_NAME_MAX 128
/* objects that are searched for together: then the frames of their thread are followed once */
#define VALUES_TAKEN 8

/* One variable: its place in the snapshot, its address, and the result. */
struct values_item {
    uint32_t thread, depth, index;
    bool own;
    struct model_locals frame;
    struct model_place place;
    char name[VALUES_NAME_MAX];
    enum pystack_place_state state;
    char text[VALUES_TEXT_MAX]; /* "" if there is none */
};

struct values_job {
    struct worker_job job; /* first */
    size_t n, next, taken; /* the objects from `next` to `taken` are referenced */
    size_t done;           /* items that nobody writes to any longer; atomic */
    bool refreshed;
    struct pystack_living living;
    struct values_item items[];
};

static struct values_job *values_job_of(struct worker_job *job) { return (struct values_job *)(void *)job; }

/* With the GIL: ask the helper for the text of an object that we have a reference to. */
static void values_describe(struct worker *w, struct values_item *item) {
    const struct pyapi *api = worker_api(w);
    struct pyapi_object *object = (struct pyapi_object *)(uintptr_t)item->place.object;
    struct pyapi_object *describe = worker_helper(w, "values_describe");
    struct pyapi_object *own = describe ? api->PyLong_FromLong(item->own) : NULL;
    struct pyapi_object *text = own ? api->PyObject_CallFunctionObjArgs(describe, object, own, NULL) : NULL;
    if (text && pyapi_get_text(api, text, item->text, sizeof item->text - 3) == 0 &&
        strlen(item->text) + 4 >= sizeof item->text - 3)
        memcpy(item->text + strlen(item->text), "...", 4);
    if (text)
        api->Py_DecRef(text);
    if (own)
        api->Py_DecRef(own);
}

/* With the GIL, and without running anything in between: take references to the next few objects
 * that still exist. */
static void values_take(struct values_job *job, struct worker *w) {
    job->living.tstate = 0; /* other threads may have run since */
    for (size_t i = 0; i < VALUES_TAKEN && job->taken < job->n; i++) {
        struct values_item *item = &job->items[job->taken++];
        struct model_local local = {.name = item->name, .place = &item->place};
        item->state = pystack_place_check(worker_pystack(w), &job->living, &item->frame, &local);
        if (item->state != PYSTACK_PLACE_GONE)
            worker_api(w)->Py_IncRef((struct pyapi_object *)(uintptr_t)item->place.object);
    }
}

/* With the GIL: release the reference to the next object. */
static void values_give(struct values_job *job, struct worker *w) {
    struct values_item *item = &job->items[job->next++];
    if (item->state != PYSTACK_PLACE_GONE)
        worker_api(w)->Py_DecRef((struct pyapi_object *)(uintptr_t)item->place.object);
}

/* With the GIL: make the helper check what is imported by now. */
static void values_refresh(struct worker *w) {
    const struct pyapi *api = worker_api(w);
    struct pyapi_object *refresh = worker_helper(w, "values_refresh");
    struct pyapi_object *result = refresh ? api->PyObject_CallFunctionObjArgs(refresh, NULL) : NULL;
    if (result)
        api->Py_DecRef(result);
}

static bool values_step(struct worker_job *base, struct worker *w) {
    struct values_job *job = values_job_of(base);
    if (worker_runs_beside(w)) {
        memcpy(base->why, WORKER_VALUES_NO_GIL, sizeof WORKER_VALUES_NO_GIL);
        return false;
    }
    if (!job->refreshed) {
        values_refresh(w);
        job->refreshed = true;
        return true;
    }
    if (job->next == job->taken) {
        values_take(job, w);
        return true;
    }
    struct values_item *item = &job->items[job->next];
    if (item->state != PYSTACK_PLACE_GONE)
        values_describe(w, item);
    values_give(job, w);
    __atomic_store_n(&job->done, job->next, __ATOMIC_RELEASE);
    return job->next < job->n;
}

static void values_drop(struct worker_job *base, struct worker *w) {
    struct values_job *job = values_job_of(base);
    while (job->next < job->taken)
        values_give(job, w);
}

static void values_fini(struct worker_job *base) { free(values_job_of(base)); }

/* ---- to and from a snapshot ---- */

static bool values_is_asked(const struct model_local *l, bool own) {
    return l->place && l->text && (!l->place->told || (own && l->place->made)) &&
           strlen(l->name) < VALUES_NAME_MAX;
}

/* The selection of variables. */
struct values_choice {
    int64_t tid;               /* only this thread; 0: all threads */
    bool own;                  /* objects that are asked for their own repr(), too */
    bool now;                  /* come after the others, because they may take all the time */
    struct values_item *items; /* NULL: they are only counted */
    size_t n;
};

static void values_add(struct values_choice *c, const struct model_locals *l, size_t thread, size_t depth) {
    for (size_t k = 0; k < l->n && c->n < WORKER_VALUES_MAX; k++) {
        const struct model_local *v = &l->items[k];
        if (!values_is_asked(v, c->own) || (c->own && v->place->made) != c->now)
            continue;
        struct values_item *item = c->items ? &c->items[c->n] : NULL;
        c->n++;
        if (!item)
            continue;
        *item = (struct values_item){.thread = (uint32_t)thread,
                                     .depth = (uint32_t)depth,
                                     .index = (uint32_t)k,
                                     .own = c->now,
                                     .frame = *l,
                                     .place = *v->place};
        memcpy(item->name, v->name, strlen(v->name) + 1);
    }
}

/* Collect the variables to ask for, innermost frames first. Returns their number. */
static size_t values_collect(const struct model_snapshot *s, int64_t tid, bool own,
                             struct values_item *items) {
    struct values_choice c = {.tid = tid, .own = own, .items = items};
    for (int pass = 0; pass <= (own ? 1 : 0); pass++) {
        c.now = pass == 1;
        for (size_t i = 0; i < s->n_threads; i++)
            for (size_t d = 0; s->threads[i].locals && d < s->threads[i].n_frames; d++)
                if (s->threads[i].locals[d] && (!tid || tid == s->threads[i].tid))
                    values_add(&c, s->threads[i].locals[d], i, d);
    }
    return c.n;
}

struct worker_job *worker_values_new(const struct model_snapshot *s, int64_t tid, bool own,
                                     uint64_t deadline_ns) {
    size_t n = values_collect(s, tid, own, NULL);
    struct values_job *job = n ? calloc(1, sizeof *job + n * sizeof job->items[0]) : NULL;
    if (!job)
        return NULL;
    job->n = values_collect(s, tid, own, job->items);
    job->job = (struct worker_job){.step = values_step,
                                   .drop = values_drop,
                                   .fini = values_fini,
                                   .unit = "values",
                                   .calls_job = own,
                                   .deadline_ns = deadline_ns};
    return &job->job;
}

void worker_values_apply(const struct worker_job *base, struct model_snapshot *s) {
    const struct values_job *job = (const struct values_job *)(const void *)base;
    size_t done = __atomic_load_n(&job->done, __ATOMIC_ACQUIRE);
    for (size_t i = 0; i < done; i++) {
        const struct values_item *item = &job->items[i];
        struct model_thread *t = &s->threads[item->thread];
        char *text = item->text[0] ? arena_strdup(&s->arena, item->text) : NULL;
        if (!text)
            continue;
        t->locals[item->depth]->items[item->index].text = text;
        t->torn = t->torn || item->state == PYSTACK_PLACE_MOVED;
    }
}
