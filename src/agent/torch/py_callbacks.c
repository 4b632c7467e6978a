/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_callbacks: see py_callbacks.h. Sources: Include/methodobject.h (PyMethodDef, of the stable
 * ABI), Doc/library/gc.rst (callbacks), Doc/library/sys.monitoring.rst.
 */
#include "agent/torch/py_callbacks.h"

#include <math.h>

#include "agent/torch/step_values.h"
#include "agent/torch/spans.h"
#include "base/clock.h"

#define PY_CALLBACKS_VARARGS 1 /* METH_VARARGS */

/* PyMethodDef. */
struct py_callbacks_method {
    const char *name;
    struct pyapi_object *(*call)(struct pyapi_object *self, struct pyapi_object *args);
    int flags;
    const char *doc;
};

static struct pyapi py_callbacks_api; /* as found for the first function */
static uint32_t py_callbacks_on;      /* atomic */
static uint64_t py_callbacks_calls[PY_CALLBACKS_KINDS], py_callbacks_ns[PY_CALLBACKS_KINDS];
/* A collection began; 0 if none is running. There is never more than one. */
static uint64_t py_callbacks_gc_ns;

static bool py_callbacks_is_on(void) { return __atomic_load_n(&py_callbacks_on, __ATOMIC_ACQUIRE) != 0; }

static struct pyapi_object *py_callbacks_none(void) {
    py_callbacks_api.Py_IncRef(py_callbacks_api._Py_NoneStruct);
    return py_callbacks_api._Py_NoneStruct;
}

static void py_callbacks_count_call(enum py_callbacks_what what, uint64_t from) {
    __atomic_add_fetch(&py_callbacks_calls[what], 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&py_callbacks_ns[what], clock_mono_ns() - from, __ATOMIC_RELAXED);
}

/* ---- garbage ---- */

/* A number of the dict; -1 if it has none. */
static int64_t py_callbacks_get(struct pyapi_object *dict, const char *key) {
    struct pyapi_object *o = dict ? py_callbacks_api.PyDict_GetItemString(dict, key) : NULL;
    int64_t v = o ? py_callbacks_api.PyLong_AsLongLong(o) : -1;
    if (v == -1)
        py_callbacks_api.PyErr_Clear();
    return v;
}

static void py_callbacks_collected(struct pyapi_object *info, uint64_t now) {
    struct spans_event e = {.ns = now, .what = SPANS_GC};
    int64_t generation = py_callbacks_get(info, "generation");
    if (!py_callbacks_gc_ns || generation < 0)
        return;
    e.gc = (struct spans_gc){.duration_ns = now - py_callbacks_gc_ns,
                             .collected = py_callbacks_get(info, "collected"),
                             .uncollectable = py_callbacks_get(info, "uncollectable"),
                             .generation = (int32_t)generation};
    py_callbacks_gc_ns = 0;
    spans_report(&e);
}

/* gc.callbacks: ("start" or "stop", info). */
static struct pyapi_object *py_callbacks_of_gc(struct pyapi_object *self, struct pyapi_object *args) {
    uint64_t now = clock_mono_ns();
    (void)self;
    if (!py_callbacks_is_on() || py_callbacks_api.PyTuple_Size(args) != 2) {
        py_callbacks_gc_ns = 0;
        return py_callbacks_none();
    }
    if (py_callbacks_api.PyUnicode_CompareWithASCIIString(py_callbacks_api.PyTuple_GetItem(args, 0),
                                                          "start") == 0)
        py_callbacks_gc_ns = now;
    else
        py_callbacks_collected(py_callbacks_api.PyTuple_GetItem(args, 1), now);
    py_callbacks_count_call(PY_CALLBACKS_GC, now);
    return py_callbacks_none();
}

/* ---- returns ---- */

/* sys.monitoring: (code, offset, returned value). The returning function is the innermost. */
static struct pyapi_object *py_callbacks_of_return(struct pyapi_object *self, struct pyapi_object *args) {
    (void)self;
    (void)args;
    if (!py_callbacks_is_on())
        return py_callbacks_none();
    uint64_t now = clock_mono_ns();
    step_values_at_return();
    py_callbacks_count_call(PY_CALLBACKS_RETURN, now);
    return py_callbacks_none();
}

/* ---- functions ---- */

static struct py_callbacks_method py_callbacks_methods[PY_CALLBACKS_KINDS] = {
    [PY_CALLBACKS_GC] = {"probing_gc", py_callbacks_of_gc, PY_CALLBACKS_VARARGS, NULL},
    [PY_CALLBACKS_RETURN] = {"probing_return", py_callbacks_of_return, PY_CALLBACKS_VARARGS, NULL},
};

struct pyapi_object *py_callbacks_new(const struct pyapi *api, enum py_callbacks_what what) {
    if (!py_callbacks_api.PyCFunction_NewEx)
        py_callbacks_api = *api;
    return api->PyCFunction_NewEx(&py_callbacks_methods[what], NULL, NULL);
}

void py_callbacks_begin(void) { __atomic_store_n(&py_callbacks_on, 1, __ATOMIC_RELEASE); }

void py_callbacks_end(void) { __atomic_store_n(&py_callbacks_on, 0, __ATOMIC_RELEASE); }

void py_callbacks_in_child(void) { py_callbacks_end(); }

uint64_t py_callbacks_count(enum py_callbacks_what what) {
    return __atomic_load_n(&py_callbacks_calls[what], __ATOMIC_RELAXED);
}

double py_callbacks_us(enum py_callbacks_what what) {
    uint64_t n = py_callbacks_count(what);
    return n ? (double)__atomic_load_n(&py_callbacks_ns[what], __ATOMIC_RELAXED) / (double)n / 1e3 : NAN;
}
