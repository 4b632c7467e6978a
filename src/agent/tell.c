/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tell: see tell.h. Sources: Include/methodobject.h (PyMethodDef, of the stable ABI), Doc/library/gc.rst (callbacks),
 * Doc/library/sys.monitoring.rst.
 */
#include "agent/tell.h"

#include <math.h>

#include "agent/looks.h"
#include "agent/spans.h"
#include "base/clock.h"

#define TELL_VARARGS 1 /* METH_VARARGS */

/* PyMethodDef. */
struct tell_method {
    const char *name;
    struct pyapi_object *(*call)(struct pyapi_object *self, struct pyapi_object *args);
    int flags;
    const char *doc;
};

static struct pyapi tell_api; /* as of the first function */
static uint32_t tell_on;      /* atomic */
static uint64_t tell_calls[TELL_KINDS], tell_ns[TELL_KINDS];
static uint64_t tell_gc_ns; /* a collection began; 0 none goes on. Only ever one does. */

static bool tell_is_on(void) { return __atomic_load_n(&tell_on, __ATOMIC_ACQUIRE) != 0; }

static struct pyapi_object *tell_none(void) {
    tell_api.Py_IncRef(tell_api._Py_NoneStruct);
    return tell_api._Py_NoneStruct;
}

static void tell_count_call(enum tell_what what, uint64_t from) {
    (void)__atomic_add_fetch(&tell_calls[what], 1, __ATOMIC_RELAXED);
    (void)__atomic_add_fetch(&tell_ns[what], clock_mono_ns() - from, __ATOMIC_RELAXED);
}

/* ---- garbage ---- */

/* A number of the dict; -1 when it has none. */
static int64_t tell_get(struct pyapi_object *dict, const char *key) {
    struct pyapi_object *o = dict ? tell_api.PyDict_GetItemString(dict, key) : NULL;
    int64_t v = o ? tell_api.PyLong_AsLongLong(o) : -1;
    if (v == -1)
        tell_api.PyErr_Clear();
    return v;
}

static void tell_collected(struct pyapi_object *info, uint64_t now) {
    struct spans_event e = {.ns = now, .what = SPANS_GC};
    int64_t generation = tell_get(info, "generation");
    if (!tell_gc_ns || generation < 0)
        return;
    e.gc = (struct spans_gc){.duration_ns = now - tell_gc_ns,
                             .collected = tell_get(info, "collected"),
                             .uncollectable = tell_get(info, "uncollectable"),
                             .generation = (int32_t)generation};
    tell_gc_ns = 0;
    spans_tell(&e);
}

/* gc.callbacks: ("start" or "stop", info). */
static struct pyapi_object *tell_of_gc(struct pyapi_object *self, struct pyapi_object *args) {
    uint64_t now = clock_mono_ns();
    (void)self;
    if (!tell_is_on() || tell_api.PyTuple_Size(args) != 2) {
        tell_gc_ns = 0;
        return tell_none();
    }
    if (tell_api.PyUnicode_CompareWithASCIIString(tell_api.PyTuple_GetItem(args, 0), "start") == 0)
        tell_gc_ns = now;
    else
        tell_collected(tell_api.PyTuple_GetItem(args, 1), now);
    tell_count_call(TELL_GC, now);
    return tell_none();
}

/* ---- returns ---- */

/* sys.monitoring: (code, offset, what is returned). The function that returns is the innermost. */
static struct pyapi_object *tell_of_return(struct pyapi_object *self, struct pyapi_object *args) {
    (void)self;
    (void)args;
    if (!tell_is_on())
        return tell_none();
    uint64_t now = clock_mono_ns();
    looks_at_return();
    tell_count_call(TELL_RETURN, now);
    return tell_none();
}

/* ---- functions ---- */

static struct tell_method tell_methods[TELL_KINDS] = {
    [TELL_GC] = {"probing_gc", tell_of_gc, TELL_VARARGS, NULL},
    [TELL_RETURN] = {"probing_return", tell_of_return, TELL_VARARGS, NULL},
};

struct pyapi_object *tell_new(const struct pyapi *api, enum tell_what what) {
    if (!tell_api.PyCFunction_NewEx)
        tell_api = *api;
    return api->PyCFunction_NewEx(&tell_methods[what], NULL, NULL);
}

void tell_begin(void) { __atomic_store_n(&tell_on, 1, __ATOMIC_RELEASE); }

void tell_end(void) { __atomic_store_n(&tell_on, 0, __ATOMIC_RELEASE); }

void tell_in_child(void) { tell_end(); }

uint64_t tell_count(enum tell_what what) { return __atomic_load_n(&tell_calls[what], __ATOMIC_RELAXED); }

double tell_us(enum tell_what what) {
    uint64_t n = tell_count(what);
    return n ? (double)__atomic_load_n(&tell_ns[what], __ATOMIC_RELAXED) / (double)n / 1e3 : NAN;
}
