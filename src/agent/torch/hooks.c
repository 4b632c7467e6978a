/* SPDX-License-Identifier: Apache-2.0 */
/* hooks: see hooks.h, python/hooks.py. */
#include "agent/torch/hooks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/torch/spans.h"
#include "agent/torch/step_values.h"
#include "agent/torch/py_callbacks.h"
#include "base/clock.h"

#define HOOKS_DEADLINE_NS (2 * CLOCK_NS_PER_S)
/* between two attempts to install them; then twice as long each time, up to */
#define HOOKS_EVERY_NS CLOCK_NS_PER_S
#define HOOKS_EVERY_MAX_NS (64 * CLOCK_NS_PER_S)
#define HOOKS_NAMES_MAX (WATCH_MAX * WATCH_TEXT)

enum hooks_phase { HOOKS_GC = 0, HOOKS_STEP_VALUES, HOOKS_RETURNS, HOOKS_FIND, HOOKS_DONE };

struct hooks_job {
    struct worker_job job; /* first */
    enum hooks_phase phase;
    bool arms, gc_wanted;
    char torch[64];
    char names[HOOKS_NAMES_MAX]; /* of functions whose returns are watched, a line each */
    struct pyapi_object *find;
    bool gc, no_monitoring; /* the results */
    uint32_t functions;
};

static struct hooks_job *hooks_job_of(struct worker_job *job) { return (struct hooks_job *)(void *)job; }

/* ---- with the GIL ---- */

/* Call a function of the unit with a callback, or without arguments. True if it returns true. */
static bool hooks_call(struct worker *w, const char *name, int what) {
    const struct pyapi *api = worker_api(w);
    struct pyapi_object *function = worker_helper(w, name), *result = NULL;
    struct pyapi_object *arg =
        function && what >= 0 ? py_callbacks_new(api, (enum py_callbacks_what)what) : NULL;
    if (function && (arg || what < 0))
        result = api->PyObject_CallFunctionObjArgs(function, arg, NULL);
    bool is_true = result && api->PyLong_AsLongLong(result) == 1; /* True is a number */
    api->PyErr_Clear();
    if (result)
        api->Py_DecRef(result);
    if (arg)
        api->Py_DecRef(arg);
    return is_true;
}

/* The next piece of the search for functions. True if there is more. */
static bool hooks_find(struct hooks_job *j, struct worker *w) {
    const struct pyapi *api = worker_api(w);
    if (!j->find) {
        struct pyapi_object *function = worker_helper(w, "hooks_find");
        struct pyapi_object *names = api->PyUnicode_FromString(j->names);
        j->find = function && names ? api->PyObject_CallFunctionObjArgs(function, names, NULL) : NULL;
        if (names)
            api->Py_DecRef(names);
        return j->find != NULL;
    }
    struct pyapi_object *row = api->PyIter_Next(j->find);
    bool more = row != NULL;
    if (row && api->PyTuple_Size(row) == 1)
        j->functions = (uint32_t)pyapi_get_int(api, row, 0);
    api->PyErr_Clear();
    if (row)
        api->Py_DecRef(row);
    return more;
}

static bool hooks_step(struct worker_job *base, struct worker *w) {
    struct hooks_job *j = hooks_job_of(base);
    if (!j->arms) {
        hooks_call(w, "hooks_off", -1);
        return false;
    }
    switch (j->phase) {
    case HOOKS_GC:
        j->gc = j->gc_wanted && hooks_call(w, "hooks_gc_on", PY_CALLBACKS_GC);
        break;
    case HOOKS_STEP_VALUES:
        step_values_begin(worker_pystack(w), j->torch, worker_api(w)->PyGILState_GetThisThreadState);
        break;
    case HOOKS_RETURNS:
        hooks_call(w, "hooks_returns_off", -1);
        j->no_monitoring = j->names[0] && !hooks_call(w, "hooks_returns_on", PY_CALLBACKS_RETURN);
        j->phase = j->names[0] && !j->no_monitoring ? HOOKS_RETURNS : HOOKS_FIND;
        break;
    case HOOKS_FIND:
        if (hooks_find(j, w))
            return true;
        break;
    case HOOKS_DONE:
        break;
    }
    return ++j->phase < HOOKS_DONE;
}

static void hooks_drop(struct worker_job *base, struct worker *w) {
    struct hooks_job *j = hooks_job_of(base);
    if (j->find)
        worker_api(w)->Py_DecRef(j->find);
    j->find = NULL;
}

static void hooks_fini(struct worker_job *base) { free(hooks_job_of(base)); }

/* ---- on the sampler's thread ---- */

static void hooks_put_names(const struct watch *w, char *names, size_t cap) {
    size_t n = 0;
    names[0] = '\0';
    for (size_t i = 0; i < w->n; i++)
        if (w->exprs[i].func[0] && n + strlen(w->exprs[i].func) + 2 < cap)
            n += (size_t)snprintf(names + n, cap - n, "%s%s", n ? "\n" : "", w->exprs[i].func);
}

static void hooks_submit(struct hooks *h, struct worker *w, bool arms, const struct hooks_request *request) {
    struct hooks_job *j = calloc(1, sizeof *j);
    struct err e = {.text = ""};
    if (!j)
        return;
    j->job = (struct worker_job){.step = hooks_step,
                                 .drop = hooks_drop,
                                 .fini = hooks_fini,
                                 .unit = "hooks",
                                 .deadline_ns = clock_mono_ns() + HOOKS_DEADLINE_NS};
    j->arms = arms;
    j->gc_wanted = arms && request->steps && request->torch[0];
    snprintf(j->torch, sizeof j->torch, "%s", request->torch);
    hooks_put_names(&h->watch, j->names, sizeof j->names);
    if (worker_submit(w, &j->job, &e) != 0) {
        snprintf(h->note, sizeof h->note, "%s", e.text);
        free(j);
        return;
    }
    h->job = &j->job;
    h->closed = worker_closed(w);
    h->arms = arms;
    h->on = h->on || arms;
    h->armed_set = h->set;
}

static void hooks_take(struct hooks *h, struct worker *w) {
    struct hooks_job *j = hooks_job_of(h->job);
    enum worker_end end = worker_get_end(w, h->job);
    if (end == WORKER_PENDING)
        return;
    h->note[0] = '\0';
    if (end == WORKER_FAILED) {
        snprintf(h->note, sizeof h->note, "%.*s", (int)sizeof h->note - 1, h->job->why);
        h->armed_set = h->set - 1;
    } else if (h->arms) {
        if (j->gc && !h->gc)
            h->gc_since_ns = clock_mono_ns();
        h->gc = j->gc;
        h->functions = j->functions;
        h->on = true;
        step_values_watch(&h->watch, h->set);
        py_callbacks_begin();
        if (j->no_monitoring)
            snprintf(h->note, sizeof h->note,
                     "variables of functions are read at optimizer steps only: sys.monitoring is missing or "
                     "fully in use");
    } else
        h->on = false;
    worker_release(w, h->job);
    h->job = NULL;
}

/* True if more is to be installed than is installed. */
static bool hooks_lacks(const struct hooks *h, const struct hooks_request *request) {
    bool finds = false;
    for (size_t i = 0; i < h->watch.n; i++)
        finds = finds || h->watch.exprs[i].func[0];
    return !h->on || h->armed_set != h->set || (request->steps && request->torch[0] && !h->gc) ||
           (finds && h->functions < h->watch.n && !h->note[0]);
}

void hooks_second(struct hooks *h, struct worker *w, const struct hooks_request *request) {
    uint64_t now_ns = clock_mono_ns();
    if (!w)
        return;
    h->worker = w;
    step_values_set_share(request->look_share);
    if (h->job)
        hooks_take(h, w);
    if (h->job)
        return;
    if (h->on && h->closed != worker_closed(w)) { /* the agent was to leave, and has stayed */
        h->gc = false;
        h->armed_set = h->set - 1;
        h->due_ns = h->every_ns = 0;
    }
    if (strcmp(h->text, request->watch) != 0) {
        snprintf(h->text, sizeof h->text, "%s", request->watch);
        watch_parse(&h->watch, "", h->text, NULL);
        if (h->watch.off)
            h->watch.n = 0;
        h->set++;
        h->due_ns = h->every_ns = 0;
    }
    bool wanted = (request->steps && request->torch[0]) || h->watch.n > 0;
    if (!wanted && h->on) {
        hooks_end(h);
        hooks_submit(h, w, false, request);
    } else if (wanted && now_ns >= h->due_ns && hooks_lacks(h, request)) {
        h->every_ns = h->every_ns ? 2 * h->every_ns : HOOKS_EVERY_NS;
        h->every_ns = h->every_ns > HOOKS_EVERY_MAX_NS ? HOOKS_EVERY_MAX_NS : h->every_ns;
        h->due_ns = now_ns + h->every_ns;
        hooks_submit(h, w, true, request);
    }
}

void hooks_fill(struct model_status *out) {
    out->looks = step_values_count();
    /* each is reported at its begin and its end */
    out->gc_told = py_callbacks_count(PY_CALLBACKS_GC) / 2;
    out->returns_told = py_callbacks_count(PY_CALLBACKS_RETURN);
    out->values_lost = spans_texts_lost();
    out->us_per_look = step_values_us();
    out->us_per_gc = 2 * py_callbacks_us(PY_CALLBACKS_GC);
    out->us_per_return = py_callbacks_us(PY_CALLBACKS_RETURN);
}

void hooks_end(struct hooks *h) {
    py_callbacks_end();
    step_values_end();
    h->gc = false;
    h->functions = 0;
    if (h->job)
        worker_release(h->worker, h->job);
    h->job = NULL;
}
