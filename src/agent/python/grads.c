/* SPDX-License-Identifier: Apache-2.0 */
/* grads: see grads.h. Include/methodobject.h (PyMethodDef, of the stable ABI). */
#include "agent/python/grads.h"

#include <stddef.h>

#include "pystack/gate.h"

#define GRADS_VARARGS 1   /* METH_VARARGS */
#define GRADS_THREADS 512 /* in Python at a time */
#define GRADS_NAMES 4096  /* maximum of one function that are checked */
/* Py_TPFLAGS_... (Include/object.h), the same in all versions */
#define GRADS_UNICODE_SUBCLASS (1UL << 28)

/* PyMethodDef. */
struct grads_method {
    const char *name;
    struct pyapi_object *(*call)(struct pyapi_object *self, struct pyapi_object *args);
    int flags;
    const char *doc;
};

static struct grads {
    struct pyapi api;
    struct pystack *ps;
    bool beside;
    uint64_t codes[GRADS_THREADS];
} grads;

/* The names by which a function may release a gradient: the attribute, or a function that sets
 * an attribute by a computed name. */
static const char *const grads_ways[] = {"grad",        "setattr", "delattr",    "__setattr__",
                                         "__delattr__", "__set__", "__delete__", NULL};

/* The names and constants of a code object. */
static const char *const grads_where[] = {"co_names", "co_consts"};

static bool grads_is_way(struct pyapi_object *o) {
    for (const char *const *way = grads_ways; *way; way++)
        if (grads.api.PyUnicode_CompareWithASCIIString(o, *way) == 0)
            return true;
    return false;
}

/* True if a function uses such a name, as an attribute, a global or a constant. The code object
 * shows that without running anything. */
static bool grads_uses(struct pyapi_object *code, const char *of) {
    const struct pyapi *api = &grads.api;
    struct pyapi_object *names = api->PyObject_GetAttrString(code, of);
    ssize_t n = names ? api->PyTuple_Size(names) : -1;
    bool found = n < 0 || n > GRADS_NAMES;
    for (ssize_t i = 0; !found && i < n; i++) {
        struct pyapi_object *o = api->PyTuple_GetItem(names, i);
        struct pyapi_object *type = api->PyObject_Type(o);
        bool is_text = type && api->PyType_GetFlags(type) & GRADS_UNICODE_SUBCLASS;
        if (type)
            api->Py_DecRef(type);
        found = is_text && grads_is_way(o);
    }
    if (names)
        api->Py_DecRef(names);
    api->PyErr_Clear();
    return found;
}

/* True if another thread may be about to release a gradient. */
static bool grads_are_at_risk(void) {
    uint64_t own = (uint64_t)(uintptr_t)grads.api.PyGILState_GetThisThreadState();
    ssize_t n = grads.beside ? -1 : pystack_gate_codes(grads.ps, own, grads.codes, GRADS_THREADS);
    bool found = n < 0;
    for (ssize_t i = 0; !found && i < n; i++)
        for (size_t k = 0; !found && k < sizeof grads_where / sizeof grads_where[0]; k++)
            found = grads_uses((struct pyapi_object *)(uintptr_t)grads.codes[i], grads_where[k]);
    return found;
}

static struct pyapi_object *grads_read(struct pyapi_object *self, struct pyapi_object *args) {
    const struct pyapi *api = &grads.api;
    (void)self;
    if (api->PyTuple_Size(args) == 2 && !grads_are_at_risk())
        return api->PyObject_CallFunctionObjArgs(api->PyTuple_GetItem(args, 0), api->PyTuple_GetItem(args, 1),
                                                 NULL);
    api->PyErr_Clear();
    api->Py_IncRef(api->_Py_FalseStruct);
    return api->_Py_FalseStruct;
}

struct pyapi_object *grads_new(const struct pyapi *api, struct pystack *ps, bool beside) {
    static struct grads_method method = {"probing_grad", grads_read, GRADS_VARARGS, NULL};
    grads.api = *api;
    grads.ps = ps;
    grads.beside = beside;
    return api->PyCFunction_NewEx(&method, NULL, NULL);
}
