/* SPDX-License-Identifier: Apache-2.0 */
/* torch_profiler_job: the parts of torch_profiler.h that need the GIL, as jobs of the python
 * worker. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/torch/torch_profiler.h"

#define TORCH_PROFILER_SUMMARY (-1) /* in place of a step: the sum of everything */
#define TORCH_PROFILER_GPUS (-2)    /* and of all steps, what GPUs did */

enum torch_profiler_job_phase {
    TORCH_PROFILER_JOB_HOOKS = 0,
    TORCH_PROFILER_JOB_READS,
    TORCH_PROFILER_JOB_OFF
};

struct torch_profiler_job {
    struct worker_job job; /* first */
    enum torch_profiler_job_phase phase;
    bool compiled;
    unsigned per_step;
    char path[512];                   /* "" if the result is not wanted */
    char note[TORCH_PROFILER_NOTE];   /* the unit's text */
    struct pyapi_object *rows;        /* its generator; owned */
    struct torch_profiler_row *items; /* owned; NULL if the result is not wanted */
    struct torch_profiler_found found;
};

static struct torch_profiler_job *torch_profiler_job_of(struct worker_job *job) {
    return (struct torch_profiler_job *)(void *)job;
}

static void torch_profiler_job_fail(struct torch_profiler_job *job, const char *why) {
    snprintf(job->note, sizeof job->note, "%s", why);
}

/* Call a function of the unit with up to two arguments, which are released: a new reference, or
 * NULL. */
static struct pyapi_object *torch_profiler_job_call(struct worker *w, const char *name,
                                                    struct pyapi_object *a, struct pyapi_object *b) {
    const struct pyapi *api = worker_api(w);
    struct pyapi_object *function = worker_helper(w, name);
    struct pyapi_object *result = function ? api->PyObject_CallFunctionObjArgs(function, a, b, NULL) : NULL;
    api->PyErr_Clear();
    if (a)
        api->Py_DecRef(a);
    if (b)
        api->Py_DecRef(b);
    return result;
}

/* The same for a function that returns True. */
static bool torch_profiler_job_ask(struct worker *w, const char *name, struct pyapi_object *a) {
    const struct pyapi *api = worker_api(w);
    struct pyapi_object *result = torch_profiler_job_call(w, name, a, NULL);
    bool is = result == api->_Py_TrueStruct;
    if (result)
        api->Py_DecRef(result);
    return is;
}

/* The unit's text; "" if there is none. */
static void torch_profiler_job_read_note(struct torch_profiler_job *job, struct worker *w) {
    const struct pyapi *api = worker_api(w);
    struct pyapi_object *text = torch_profiler_job_call(w, "profiler_note", NULL, NULL);
    if (!text || pyapi_get_text(api, text, job->note, sizeof job->note) != 0)
        torch_profiler_job_fail(job, "this Python does not support it");
    if (text)
        api->Py_DecRef(text);
}

/* ---- installing hooks ---- */

/* 0: allowed; otherwise the note has the reason. */
static int torch_profiler_job_open(struct torch_profiler_job *job, struct worker *w) {
    const struct pyapi *api = worker_api(w);
    struct pyapi_object *tell = torch_profiler_new_callback(api), *text = NULL;
    if (tell)
        text = torch_profiler_job_call(w, "profiler_open", tell, api->PyLong_FromLong(job->compiled));
    if (!text || pyapi_get_text(api, text, job->note, sizeof job->note) != 0)
        torch_profiler_job_fail(job, "this Python cannot run what it takes");
    if (text)
        api->Py_DecRef(text);
    struct pyapi_object *on_call = worker_helper(w, "profiler_on_call");
    if (on_call)
        torch_profiler_keep(api, on_call);
    return job->note[0] ? -1 : 0;
}

static bool torch_profiler_job_enter_step(struct worker_job *base, struct worker *w) {
    struct torch_profiler_job *job = torch_profiler_job_of(base);
    if (job->phase == TORCH_PROFILER_JOB_HOOKS) {
        if (worker_runs_beside(w))
            torch_profiler_job_fail(job, "hooks cannot be put in safely: this Python runs without a GIL");
        job->phase = TORCH_PROFILER_JOB_READS;
        return !job->note[0] && torch_profiler_job_open(job, w) == 0;
    }
    bool in = torch_profiler_job_ask(w, "profiler_insert", worker_api(w)->PyLong_FromLong(0));
    base->yields = !in;
    return !in;
}

static bool torch_profiler_job_hurry_step(struct worker_job *base, struct worker *w) {
    bool in = torch_profiler_job_ask(w, "profiler_insert", worker_api(w)->PyLong_FromLong(1));
    base->yields = !in;
    return !in;
}

/* ---- removing hooks, and the result ---- */

/* The generator of rows. False if there is none. */
static bool torch_profiler_job_begin_rows(struct torch_profiler_job *job, struct worker *w) {
    const struct pyapi *api = worker_api(w);
    job->rows = torch_profiler_job_call(
        w, "profiler_finish", api->PyUnicode_FromStringAndSize(job->path, (ssize_t)strlen(job->path)),
        api->PyLong_FromLong((long)job->per_step));
    return job->rows != NULL;
}

static void torch_profiler_job_take_row(struct torch_profiler_job *job, const struct pyapi *api,
                                        struct pyapi_object *row) {
    int64_t step = pyapi_get_int(api, row, 0);
    struct torch_profiler_found *f = &job->found;
    if (step == TORCH_PROFILER_SUMMARY) {
        f->written = true;
        f->events = pyapi_get_int(api, row, 2);
        f->bytes = pyapi_get_int(api, row, 3);
        f->pause_us = pyapi_get_int(api, row, 4);
    } else if (step == TORCH_PROFILER_GPUS) {
        f->steps_ns = pyapi_get_int(api, row, 2);
        f->gpu_ns = pyapi_get_int(api, row, 3);
        f->gpus = pyapi_get_int(api, row, 5);
    } else if (f->n < TORCH_PROFILER_ROWS) {
        struct torch_profiler_row *to = &job->items[f->n];
        to->step = step;
        to->begin_ns = pyapi_get_int(api, row, 2);
        to->took_ns = pyapi_get_int(api, row, 3);
        to->calls = pyapi_get_int(api, row, 4);
        to->tid = pyapi_get_int(api, row, 5);
        if (pyapi_get_text(api, api->PyTuple_GetItem(row, 1), to->name, sizeof to->name) == 0)
            f->n++;
    }
}

/* The next row. False after the last. */
static bool torch_profiler_job_next_row(struct torch_profiler_job *job, struct worker *w) {
    const struct pyapi *api = worker_api(w);
    struct pyapi_object *row = api->PyIter_Next(job->rows);
    if (row && api->PyTuple_Size(row) == 6)
        torch_profiler_job_take_row(job, api, row);
    if (row)
        api->Py_DecRef(row);
    api->PyErr_Clear();
    return row != NULL;
}

static bool torch_profiler_job_leave_step(struct worker_job *base, struct worker *w) {
    struct torch_profiler_job *job = torch_profiler_job_of(base);
    if (job->phase == TORCH_PROFILER_JOB_HOOKS) {
        bool out = torch_profiler_job_ask(w, "profiler_remove", NULL);
        base->yields = !out;
        if (out) {
            torch_profiler_job_read_note(job, w);
            job->phase = job->items && torch_profiler_job_begin_rows(job, w) ? TORCH_PROFILER_JOB_READS
                                                                             : TORCH_PROFILER_JOB_OFF;
        }
        return true;
    }
    if (job->phase == TORCH_PROFILER_JOB_READS && torch_profiler_job_next_row(job, w))
        return true;
    if (job->phase == TORCH_PROFILER_JOB_READS)
        torch_profiler_job_read_note(job, w);
    struct pyapi_object *result = torch_profiler_job_call(w, "profiler_off", NULL, NULL);
    if (result)
        worker_api(w)->Py_DecRef(result);
    torch_profiler_keep(worker_api(w), NULL);
    return false;
}

/* ---- jobs ---- */

static void torch_profiler_job_drop(struct worker_job *base, struct worker *w) {
    struct torch_profiler_job *job = torch_profiler_job_of(base);
    if (job->rows)
        worker_api(w)->Py_DecRef(job->rows);
    job->rows = NULL;
}

static void torch_profiler_job_fini(struct worker_job *base) {
    struct torch_profiler_job *job = torch_profiler_job_of(base);
    free(job->items);
    free(job);
}

static struct torch_profiler_job *torch_profiler_job_new(bool (*step)(struct worker_job *, struct worker *),
                                                         uint64_t deadline_ns) {
    struct torch_profiler_job *job = calloc(1, sizeof *job);
    if (job)
        job->job = (struct worker_job){.step = step,
                                       .drop = torch_profiler_job_drop,
                                       .fini = torch_profiler_job_fini,
                                       .unit = "profiler",
                                       .deadline_ns = deadline_ns};
    return job;
}

struct worker_job *torch_profiler_job_enter(bool compiled, uint64_t deadline_ns) {
    struct torch_profiler_job *job = torch_profiler_job_new(torch_profiler_job_enter_step, deadline_ns);
    if (!job)
        return NULL;
    job->compiled = compiled;
    return &job->job;
}

struct worker_job *torch_profiler_job_hurry(uint64_t deadline_ns) {
    struct torch_profiler_job *job = torch_profiler_job_new(torch_profiler_job_hurry_step, deadline_ns);
    return job ? &job->job : NULL;
}

struct worker_job *torch_profiler_job_leave(const char *path, unsigned per_step, uint64_t deadline_ns) {
    struct torch_profiler_job *job = torch_profiler_job_new(torch_profiler_job_leave_step, deadline_ns);
    if (!job)
        return NULL;
    job->per_step = per_step ? per_step : 1;
    if (path)
        job->items = calloc(TORCH_PROFILER_ROWS, sizeof *job->items);
    if (job->items)
        snprintf(job->path, sizeof job->path, "%s", path);
    return &job->job;
}

const char *torch_profiler_job_note(const struct worker_job *job) {
    return ((const struct torch_profiler_job *)(const void *)job)->note;
}

void torch_profiler_job_get(const struct worker_job *base, struct torch_profiler_found *out) {
    const struct torch_profiler_job *job = (const struct torch_profiler_job *)(const void *)base;
    *out = job->found;
    out->rows = job->items;
}
