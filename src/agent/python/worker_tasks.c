/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_tasks: see worker_tasks.h.
 *
 * The helper yields one task per step: a tuple of numbers (thread, id, is it running, number of
 * its awaiters, their ids) and texts (name, coroutine, and for each frame function, file, line);
 * None for no task; an empty one if there are more.
 */
#include "agent/python/worker_tasks.h"

#include <stdlib.h>
#include <string.h>

#define TASKS_ARENA ((size_t)8 * 1024 * 1024)
#define TASKS_TEXT_MAX 1024
#define TASKS_FRAMES_MAX 64
#define TASKS_AWAITERS_MAX 16
#define TASKS_NUMBERS 4 /* before the ids of its awaiters */

struct tasks_job {
    struct worker_job job;      /* first */
    struct pyapi_object *tasks; /* the helper's generator; owned */
    struct arena arena;
    /* WORKER_TASKS_MAX; until worker_tasks_apply their tid is the ident of the thread */
    struct model_task *items;
    size_t n;
    bool more; /* than are returned */
};

static struct tasks_job *tasks_job_of(struct worker_job *job) { return (struct tasks_job *)(void *)job; }

/* With the GIL: the text at index `i`; NULL if it is not a text. */
static const char *tasks_take_text(const struct pyapi *api, struct pyapi_object *row, ssize_t i,
                                   struct arena *a) {
    char text[TASKS_TEXT_MAX];
    struct pyapi_object *o = api->PyTuple_GetItem(row, i);
    return o && pyapi_get_text(api, o, text, sizeof text) == 0 ? arena_strdup(a, text) : NULL;
}

/* With the GIL: make a task from a row. */
static void tasks_take(struct tasks_job *job, const struct pyapi *api, struct pyapi_object *row, ssize_t n) {
    int64_t awaiters = pyapi_get_int(api, row, TASKS_NUMBERS - 1);
    if (awaiters < 0 || awaiters > TASKS_AWAITERS_MAX || n < TASKS_NUMBERS + awaiters + 2 ||
        job->n == WORKER_TASKS_MAX)
        return;
    ssize_t at = TASKS_NUMBERS + (ssize_t)awaiters;
    struct model_task t = {.id = (uint64_t)pyapi_get_int(api, row, 1),
                           .tid = pyapi_get_int(api, row, 0),
                           .state = pyapi_get_int(api, row, 2) ? MODEL_TASK_RUNNING : MODEL_TASK_PENDING,
                           .name = tasks_take_text(api, row, at, &job->arena),
                           .coro = tasks_take_text(api, row, at + 1, &job->arena),
                           .n_awaited_by = (size_t)awaiters,
                           .n_frames = (size_t)(n - at - 2) / 3};
    if (t.n_frames > TASKS_FRAMES_MAX)
        t.n_frames = TASKS_FRAMES_MAX;
    t.truncated = t.n_frames == TASKS_FRAMES_MAX || awaiters == TASKS_AWAITERS_MAX;
    t.awaited_by = arena_calloc(&job->arena, t.n_awaited_by, sizeof *t.awaited_by);
    t.frames = arena_calloc(&job->arena, t.n_frames, sizeof *t.frames);
    if (!t.awaited_by || !t.frames)
        return;
    for (size_t i = 0; i < t.n_awaited_by; i++)
        t.awaited_by[i] = (uint64_t)pyapi_get_int(api, row, TASKS_NUMBERS + (ssize_t)i);
    at += 2;
    for (size_t i = 0; i < t.n_frames; i++, at += 3)
        t.frames[i] = (struct model_frame){.kind = MODEL_FRAME_PYTHON,
                                           .func = tasks_take_text(api, row, at, &job->arena),
                                           .file = tasks_take_text(api, row, at + 1, &job->arena),
                                           .line = (int)pyapi_get_int(api, row, at + 2)};
    job->items[job->n++] = t;
}

/* With the GIL: the generator. */
static bool tasks_begin(struct tasks_job *job, struct worker *w) {
    const struct pyapi *api = worker_api(w);
    struct pyapi_object *each = worker_helper(w, "tasks_each");
    struct pyapi_object *limit = each ? api->PyLong_FromLong(WORKER_TASKS_MAX) : NULL;
    job->tasks = limit ? api->PyObject_CallFunctionObjArgs(each, limit, NULL) : NULL;
    if (limit)
        api->Py_DecRef(limit);
    if (!job->tasks)
        memcpy(job->job.why, "asyncio could not be read", sizeof "asyncio could not be read");
    return job->tasks != NULL;
}

static bool tasks_step(struct worker_job *base, struct worker *w) {
    struct tasks_job *job = tasks_job_of(base);
    const struct pyapi *api = worker_api(w);
    if (!job->tasks)
        return tasks_begin(job, w);
    struct pyapi_object *row = api->PyIter_Next(job->tasks);
    if (!row) {
        if (api->PyErr_Occurred())
            memcpy(base->why, "asyncio could not be read", sizeof "asyncio could not be read");
        return false;
    }
    ssize_t n = api->PyTuple_Size(row); /* -1: None */
    if (n > 0)
        tasks_take(job, api, row, n);
    job->more = job->more || n == 0;
    api->Py_DecRef(row);
    api->PyErr_Clear();
    return true;
}

static void tasks_drop(struct worker_job *base, struct worker *w) {
    struct tasks_job *job = tasks_job_of(base);
    if (job->tasks)
        worker_api(w)->Py_DecRef(job->tasks);
    job->tasks = NULL;
}

static void tasks_fini(struct worker_job *base) {
    struct tasks_job *job = tasks_job_of(base);
    arena_fini(&job->arena);
    free(job->items);
    free(job);
}

struct worker_job *worker_tasks_new(uint64_t deadline_ns) {
    struct tasks_job *job = calloc(1, sizeof *job);
    struct model_task *items = calloc(WORKER_TASKS_MAX, sizeof *items);
    if (!job || !items) {
        free(job);
        free(items);
        return NULL;
    }
    job->job = (struct worker_job){.step = tasks_step,
                                   .drop = tasks_drop,
                                   .fini = tasks_fini,
                                   .unit = "tasks",
                                   .deadline_ns = deadline_ns};
    job->items = items;
    arena_init(&job->arena, TASKS_ARENA);
    return &job->job;
}

/* ---- into a snapshot ---- */

static const char *tasks_copy_text(struct arena *a, const char *s) { return s ? arena_strdup(a, s) : NULL; }

static int64_t tasks_find_tid(const struct model_snapshot *s, int64_t ident) {
    for (size_t i = 0; ident && i < s->n_threads; i++)
        if (s->threads[i].ident == (uint64_t)ident)
            return s->threads[i].tid;
    return MODEL_UNKNOWN;
}

/* By thread, then by address: in the order of every snapshot. */
static int tasks_compare(const void *a, const void *b) {
    const struct model_task *x = a, *y = b;
    if (x->tid != y->tid)
        return (x->tid > y->tid) - (x->tid < y->tid);
    return (x->id > y->id) - (x->id < y->id);
}

void worker_tasks_apply(const struct worker_job *base, struct model_snapshot *s) {
    const struct tasks_job *job = (const struct tasks_job *)(const void *)base;
    struct model_task *tasks = arena_calloc(&s->arena, job->n, sizeof *tasks);
    size_t n = 0;
    s->incomplete = s->incomplete || job->more || job->arena.failed || !tasks;
    for (size_t i = 0; tasks && i < job->n; i++) {
        struct model_task t = job->items[i];
        uint64_t *awaited_by = arena_calloc(&s->arena, t.n_awaited_by, sizeof *awaited_by);
        struct model_frame *frames = arena_calloc(&s->arena, t.n_frames, sizeof *frames);
        if (!awaited_by || !frames)
            break;
        memcpy(awaited_by, t.awaited_by, t.n_awaited_by * sizeof *awaited_by);
        for (size_t k = 0; k < t.n_frames; k++) {
            frames[k] = t.frames[k];
            frames[k].func = tasks_copy_text(&s->arena, t.frames[k].func);
            frames[k].file = tasks_copy_text(&s->arena, t.frames[k].file);
        }
        t.tid = tasks_find_tid(s, t.tid);
        t.name = tasks_copy_text(&s->arena, t.name);
        t.coro = tasks_copy_text(&s->arena, t.coro);
        t.awaited_by = awaited_by;
        t.frames = frames;
        tasks[n++] = t;
    }
    if (n)
        qsort(tasks, n, sizeof *tasks, tasks_compare);
    s->tasks = tasks;
    s->n_tasks = n;
    s->incomplete = s->incomplete || s->arena.failed;
}
