/* SPDX-License-Identifier: Apache-2.0 */
/* probes_job: the parts of probes.h that need the GIL, as jobs of the python worker. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/torch/grad_norms.h"
#include "agent/torch/module_hooks.h"
#include "agent/torch/probes.h"
#include "base/clock.h"
#include "base/strbuf.h"

#define PROBES_PATIENCE_NS CLOCK_NS_PER_S /* for a time at which no thread is within a module */
#define PROBES_TEXT ((size_t)512 * 1024)
#define PROBES_MANTISSA 53 /* bits of a double's */
/* between two checks for such a time; then longer, up to */
#define PROBES_POLL_FIRST_NS (2 * CLOCK_NS_PER_MS)
#define PROBES_POLL_MAX_NS (16 * CLOCK_NS_PER_MS)

struct probes_job {
    struct worker_job job; /* first */
    enum module_mode mode; /* the purpose */
    bool compiled, refused;
    bool removed, is_search, settled;
    /* for a time at which no thread is within a module; the last pause */
    uint64_t until_ns, look_ns;
    struct pystack *ps;      /* the worker's */
    struct module_sum *sums; /* owned, like names and text; NULL if not wanted */
    struct probes_name *names;
    struct strbuf text; /* of the sums, for the unit */
    size_t n;
    struct nonfinite_name *found; /* of a search: owned */
    size_t n_found;
    struct pyapi_object *rows; /* the unit's generator; owned */
};

static struct probes_job *probes_job_of(struct worker_job *job) { return (struct probes_job *)(void *)job; }

/* This is not a time for it: the next one is searched for without the GIL, and then verified
 * with it. */
static bool probes_job_wait(struct probes_job *job, struct worker *w) {
    job->ps = worker_pystack(w);
    job->job.apart = true;
    job->look_ns = 0;
    return true;
}

static bool probes_job_off_gil(struct worker_job *base) {
    struct probes_job *job = probes_job_of(base);
    if (clock_mono_ns() >= job->until_ns || (job->look_ns && module_hooks_are_called(job->ps) == 0))
        return false;
    job->look_ns = job->look_ns ? 2 * job->look_ns : PROBES_POLL_FIRST_NS;
    job->look_ns = job->look_ns > PROBES_POLL_MAX_NS ? PROBES_POLL_MAX_NS : job->look_ns;
    struct timespec pause = {.tv_nsec = (long)job->look_ns};
    nanosleep(&pause, NULL);
    return true;
}

static bool probes_job_enter_step(struct worker_job *base, struct worker *w) {
    struct probes_job *job = probes_job_of(base);
    int rc = module_hooks_insert(w, job->mode, job->compiled, base->why);
    job->refused = rc < 0;
    job->until_ns = base->deadline_ns;
    if (rc == 0 && clock_mono_ns() < job->until_ns)
        return probes_job_wait(job, w);
    if (rc == 0)
        snprintf(base->why, sizeof base->why,
                 "hooks were not installed: some thread was always inside a module");
    return false;
}

/* With the GIL: the generator of names. */
static bool probes_job_begin_names(struct probes_job *job, struct worker *w) {
    const struct pyapi *api = worker_api(w);
    struct pyapi_object *names = worker_helper(w, job->is_search ? "nonfinite_names" : "trace_names");
    struct pyapi_object *text =
        names ? api->PyUnicode_FromStringAndSize(strbuf_str(&job->text), (ssize_t)job->text.len) : NULL;
    job->rows = text ? api->PyObject_CallFunctionObjArgs(names, text, NULL) : NULL;
    if (text)
        api->Py_DecRef(text);
    return job->rows != NULL;
}

static void probes_job_take_sum(struct probes_job *job, const struct pyapi *api, struct pyapi_object *row) {
    int64_t i = pyapi_get_int(api, row, 0);
    if (i < 0 || (size_t)i >= job->n)
        return;
    struct probes_name *name = &job->names[i];
    pyapi_get_text(api, api->PyTuple_GetItem(row, 1), name->path, sizeof name->path);
    pyapi_get_text(api, api->PyTuple_GetItem(row, 2), name->type, sizeof name->type);
}

static void probes_job_take_found(struct probes_job *job, const struct pyapi *api, struct pyapi_object *row) {
    if (job->n_found == NONFINITE_WANTED)
        return;
    struct nonfinite_name *name = &job->found[job->n_found++];
    name->id = (uint64_t)pyapi_get_int(api, row, 0);
    pyapi_get_text(api, api->PyTuple_GetItem(row, 1), name->path, sizeof name->path);
    pyapi_get_text(api, api->PyTuple_GetItem(row, 2), name->type, sizeof name->type);
    pyapi_get_text(api, api->PyTuple_GetItem(row, 3), name->name, sizeof name->name);
    name->module = (uint64_t)pyapi_get_int(api, row, 4);
}

/* With the GIL: the next name. False after the last. */
static bool probes_job_take_name(struct probes_job *job, struct worker *w) {
    const struct pyapi *api = worker_api(w);
    struct pyapi_object *row = api->PyIter_Next(job->rows);
    if (!row)
        return false;
    ssize_t size = api->PyTuple_Size(row); /* -1 for None */
    if (!job->is_search && size == 3)
        probes_job_take_sum(job, api, row);
    else if (job->is_search && size == 5)
        probes_job_take_found(job, api, row);
    api->Py_DecRef(row);
    api->PyErr_Clear();
    return true;
}

/* The findings are known now: their addresses need names. */
static void probes_job_want_found(struct probes_job *job) {
    uint64_t wanted[NONFINITE_WANTED];
    size_t n = nonfinite_get_wanted(wanted);
    for (size_t i = 0; i < n; i++)
        strbuf_addf(&job->text, "%llu\n", (unsigned long long)wanted[i]);
}

/* With the GIL: the part of a search before names are asked for. False if that is done. */
static bool probes_job_settle(struct probes_job *job, struct worker *w) {
    if (!job->is_search || job->settled)
        return false;
    job->settled = !nonfinite_settle(w);
    if (job->settled)
        probes_job_want_found(job);
    return true;
}

static bool probes_job_leave_step(struct worker_job *base, struct worker *w) {
    struct probes_job *job = probes_job_of(base);
    uint64_t now_ns = clock_mono_ns();
    if (!job->until_ns)
        job->until_ns = now_ns + PROBES_PATIENCE_NS;
    if (!job->removed) {
        job->removed = module_hooks_remove(w, now_ns >= job->until_ns) != 0;
        if (now_ns >= job->until_ns)
            job->until_ns = now_ns + PROBES_PATIENCE_NS;
        if (!job->removed)
            return probes_job_wait(job, w);
        module_hooks_send_roots(w);
        if (!job->is_search)
            nonfinite_end();
        return job->sums != NULL;
    }
    if (probes_job_settle(job, w))
        return true;
    return job->rows ? probes_job_take_name(job, w) : probes_job_begin_names(job, w);
}

static void probes_job_drop(struct worker_job *base, struct worker *w) {
    struct probes_job *job = probes_job_of(base);
    if (job->rows)
        worker_api(w)->Py_DecRef(job->rows);
    job->rows = NULL;
    if (job->is_search && job->removed)
        nonfinite_end();
}

static void probes_job_fini(struct worker_job *base) {
    struct probes_job *job = probes_job_of(base);
    strbuf_fini(&job->text);
    free(job->sums);
    free(job->names);
    free(job->found);
    free(job);
}

static struct probes_job *probes_job_new(bool (*step)(struct worker_job *, struct worker *),
                                         uint64_t deadline_ns) {
    struct probes_job *job = calloc(1, sizeof *job);
    if (!job)
        return NULL;
    job->job = (struct worker_job){.step = step,
                                   .drop = probes_job_drop,
                                   .off_gil = probes_job_off_gil,
                                   .fini = probes_job_fini,
                                   .unit = "nonfinite",
                                   .deadline_ns = deadline_ns};
    strbuf_init(&job->text, PROBES_TEXT);
    return job;
}

struct worker_job *probes_job_enter(enum module_mode mode, bool compiled, uint64_t deadline_ns) {
    struct probes_job *job = probes_job_new(probes_job_enter_step, deadline_ns);
    if (!job)
        return NULL;
    job->mode = mode;
    job->compiled = compiled;
    return &job->job;
}

/* The text about a step for the unit: its number, then a line for each called module, and one
 * for each gradient. In whole numbers: a job's locale may have another decimal point. */
static void probes_job_put(struct probes_job *job, int64_t step) {
    const struct grad_norm *norms;
    size_t n = grad_norms_get(&norms);
    strbuf_addf(&job->text, "%lld\n", (long long)step);
    for (size_t i = 0; i < job->n; i++) {
        const struct module_sum *s = &job->sums[i];
        strbuf_addf(&job->text, "%llu %zu %llu %u %llu %lld %lld\n", (unsigned long long)s->module, i,
                    (unsigned long long)s->type, s->calls, (unsigned long long)s->forward_ns,
                    s->backwards ? (long long)s->backward_ns : -1LL, (long long)s->bytes);
    }
    for (size_t i = 0; i < n; i++) {
        int exponent;
        double mantissa = frexp(norms[i].squares, &exponent);
        if (isfinite(norms[i].squares))
            strbuf_addf(&job->text, "%llu %llu %lld %d\n", (unsigned long long)norms[i].parameter,
                        (unsigned long long)norms[i].bad, (long long)ldexp(mantissa, PROBES_MANTISSA),
                        exponent - PROBES_MANTISSA);
    }
}

struct worker_job *probes_job_leave(const struct module_calls *calls, int64_t step, bool is_search,
                                    uint64_t deadline_ns) {
    struct probes_job *job = probes_job_new(probes_job_leave_step, deadline_ns);
    if (!job || !calls)
        return job ? &job->job : NULL;
    job->is_search = is_search;
    job->sums = calloc(MODULE_CALLS_SUMS, sizeof *job->sums);
    job->names = calloc(MODULE_CALLS_SUMS, sizeof *job->names);
    job->found = calloc(NONFINITE_WANTED, sizeof *job->found);
    if (!job->sums || !job->names || !job->found) {
        probes_job_fini(&job->job);
        return NULL;
    }
    job->n = module_calls_sum(calls, job->sums, MODULE_CALLS_SUMS);
    if (!is_search)
        probes_job_put(job, step);
    return &job->job;
}

size_t probes_job_get(const struct worker_job *base, const struct module_sum **sums,
                      const struct probes_name **names) {
    const struct probes_job *job = (const struct probes_job *)(const void *)base;
    *sums = job->sums;
    *names = job->names;
    return job->sums ? job->n : 0;
}

size_t probes_job_get_nonfinite(const struct worker_job *base, const struct nonfinite_name **names,
                                size_t *modules) {
    const struct probes_job *job = (const struct probes_job *)(const void *)base;
    *names = job->found;
    *modules = job->n;
    return job->n_found;
}

bool probes_job_is_refused(const struct worker_job *job) {
    return ((const struct probes_job *)(const void *)job)->refused;
}
