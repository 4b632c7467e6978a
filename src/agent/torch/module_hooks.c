/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module_hooks: see module_hooks.h. Sources: torch/nn/modules/module.py (_call_impl),
 * torch/csrc/autograd/python_cpp_function.cpp (register_prehook), Doc/c-api/structures.rst
 * (PyMethodDef, METH_VARARGS).
 *
 * _call_impl unpacks a registry into a tuple before it calls its hooks, but iterates over the
 * registry itself after an exception; and a garbage collection during the unpacking may run
 * Python. So nothing is installed or removed while there is a frame of it.
 */
#include "agent/torch/module_hooks.h"

#include <stdio.h>
#include <string.h>

#include "agent/torch/grad_norms.h"
#include "agent/torch/nonfinite.h"
#include "agent/python/stack_text.h"
#include "agent/torch/tensor_read.h"
#include "base/clock.h"

#define MODULE_HOOKS_ROOTS 8
#define MODULE_HOOKS_TENSORS 8   /* of an output or of arguments */
#define MODULE_HOOKS_THREADS 256 /* with more, checking them takes too long with the GIL */

#define MODULE_HOOKS_NODES 512 /* gradients of a node */

/* The data of a node's hook, besides the generation above and the end below: which call, */
#define MODULE_WHICH_INDEX 28 /* which of its tensors */
#define MODULE_WHICH_NR 16    /* and which of the node's gradients belongs to it */
_Static_assert(MODULE_CALLS_MAX << 1 <= 1 << MODULE_WHICH_NR &&
                   MODULE_HOOKS_NODES << MODULE_WHICH_NR <= 1 << MODULE_WHICH_INDEX &&
                   MODULE_HOOKS_TENSORS <= 16,
               "it does not fit");

#define MODULE_METH_VARARGS 0x0001
/* Py_TPFLAGS_... (Include/object.h), the same in all versions */
#define MODULE_LIST_SUBCLASS (1UL << 25)
#define MODULE_TUPLE_SUBCLASS (1UL << 26)
#define MODULE_DICT_SUBCLASS (1UL << 29)

typedef struct pyapi_object object;

/* PyMethodDef. */
struct module_method {
    const char *name;
    object *(*call)(object *self, object *args);
    int flags;
    const char *doc;
};

/* The results of nonfinite_open of the unit, in its order, and then the things for
 * tensor_read.h; trace_open returns only those before MODULE_THINGS. */
enum module_thing {
    MODULE_PRE_HOOKS = 0, /* registries */
    MODULE_POST_HOOKS,
    MODULE_TENSOR, /* types */
    MODULE_PARAMETER,
    MODULE_CODE, /* of Module._call_impl, which encloses all of a call */
    /* a type: while an object of it is active, no __torch_function__ of the job is called */
    MODULE_GUARD,
    /* a layout: for other layouts, torch returns the size that they would have in this one, or
     * raises */
    MODULE_STRIDED,
    MODULE_THINGS,
    MODULE_OPTIMIZERS = MODULE_THINGS, /* a registry, or None, like the next */
    /* of the function that calls the hooks there, and then the step */
    MODULE_STEP_CODE,
    MODULE_NONFINITE,
};

/* Written with the GIL. */
static struct {
    struct pyapi api;
    object *things[MODULE_NONFINITE]; /* owned; NULL if not wanted or missing */
    object *key, *on_pre, *on_post, *on_step;
    uint64_t code, step_code;          /* addresses of these */
    object *roots[MODULE_HOOKS_ROOTS]; /* weak references; owned */
    uint64_t root_ids[MODULE_HOOKS_ROOTS];
    size_t n_roots;
} module_hooks;

static struct module_calls module_calls; /* of the window */

/* Atomic. */
static uint32_t module_in;
static uint64_t module_within, module_outside; /* calls */

bool module_hooks_are_in(void) { return __atomic_load_n(&module_in, __ATOMIC_ACQUIRE) != 0; }

static void module_set_in(bool in) { __atomic_store_n(&module_in, in, __ATOMIC_RELEASE); }

void module_hooks_open(enum module_mode mode, unsigned steps, unsigned per_step) {
    module_calls_clear(&module_calls);
    if (mode == MODULE_MODE_NUMBERS)
        nonfinite_clear();
    else
        grad_norms_clear();
    module_window_begin(mode, steps, per_step);
}

struct module_calls *module_hooks_calls(void) {
    return &module_calls;
}

void module_hooks_count(uint64_t *within, uint64_t *outside) {
    *within = __atomic_load_n(&module_within, __ATOMIC_RELAXED);
    *outside = __atomic_load_n(&module_outside, __ATOMIC_RELAXED);
}

/* True if the window searches for the first number that is not finite. */
static bool module_seeks_nonfinite(void) { return module_window_mode() == MODULE_MODE_NUMBERS; }

/* With the GIL: true if this call is to be recorded. It is counted. */
static bool module_notes_call(void) {
    bool notes = module_window_notes() && module_window_is_here();
    uint64_t *count = notes ? &module_within : &module_outside;
    __atomic_store_n(count, *count + 1, __ATOMIC_RELAXED);
    return notes;
}

void module_hooks_on_backward(uint64_t ns) {
    if (module_window_notes() && module_window_is_here())
        module_calls_pass(&module_calls, ns);
}

/* ---- on the job's threads, with the GIL ---- */

static object *module_none(void) {
    module_hooks.api.Py_IncRef(module_hooks.api._Py_NoneStruct);
    return module_hooks.api._Py_NoneStruct;
}

/* Clear an exception that is not the job's own: a tensor or node that lacks an attribute. Any
 * other, such as one raised here by a signal handler, is the job's. */
static bool module_forgive(void) {
    const struct pyapi *api = &module_hooks.api;
    if (!api->PyErr_Occurred())
        return true;
    if (!api->PyErr_ExceptionMatches(*api->PyExc_AttributeError) &&
        !api->PyErr_ExceptionMatches(*api->PyExc_TypeError))
        return false;
    api->PyErr_Clear();
    return true;
}

/* An attribute that C code of torch or CPython returns: no Python runs, so any exception is
 * about the attribute. NULL. */
static object *module_attribute(object *o, const char *name) {
    object *found = module_hooks.api.PyObject_GetAttrString(o, name);
    if (!found)
        module_hooks.api.PyErr_Clear();
    return found;
}

/* The end of a hook that began at `ns`. */
static object *module_return(uint64_t ns) {
    uint64_t own_ns = clock_mono_ns() - ns;
    module_calls_own(&module_calls, own_ns);
    if (module_seeks_nonfinite())
        nonfinite_spend(own_ns);
    return module_forgive() ? module_none() : NULL;
}

/* True if its type is torch.Tensor or Parameter itself, not a class of the job. */
static bool module_is_tensor(object *o) {
    const struct pyapi *api = &module_hooks.api;
    object *type = api->PyObject_Type(o);
    bool is =
        type && (type == module_hooks.things[MODULE_TENSOR] || type == module_hooks.things[MODULE_PARAMETER]);
    if (type)
        api->Py_DecRef(type);
    return is;
}

static unsigned long module_flags(object *o) {
    const struct pyapi *api = &module_hooks.api;
    object *type = api->PyObject_Type(o);
    unsigned long flags = type ? api->PyType_GetFlags(type) : 0;
    if (type)
        api->Py_DecRef(type);
    return flags;
}

static size_t module_add_tensor(object *o, object **out, size_t n) {
    if (!o || n == MODULE_HOOKS_TENSORS || !module_is_tensor(o))
        return n;
    module_hooks.api.Py_IncRef(o);
    out[n] = o;
    return n + 1;
}

/* The tensor itself, or the tensors in it; owned by the caller. */
static size_t module_tensors(object *o, object **out) {
    const struct pyapi *api = &module_hooks.api;
    unsigned long flags = module_flags(o);
    object *values = NULL;
    size_t n = 0;
    if (flags & MODULE_DICT_SUBCLASS) {
        o = values = api->PyDict_Values(o);
        flags = values ? MODULE_LIST_SUBCLASS : 0;
    }
    if (flags & MODULE_TUPLE_SUBCLASS)
        for (ssize_t i = 0; i < api->PyTuple_Size(o) && i < 4 * MODULE_HOOKS_TENSORS; i++)
            n = module_add_tensor(api->PyTuple_GetItem(o, i), out, n);
    else if (flags & MODULE_LIST_SUBCLASS)
        for (ssize_t i = 0; i < api->PyList_Size(o) && i < 4 * MODULE_HOOKS_TENSORS; i++)
            n = module_add_tensor(api->PyList_GetItem(o, i), out, n);
    else if (o)
        n = module_add_tensor(o, out, n);
    if (values)
        api->Py_DecRef(values);
    return n;
}

/* The description of a call for nonfinite.h. */
static struct nonfinite_place module_place(int32_t call, uint64_t ns, enum nonfinite_stage stage) {
    const struct module_call *c = &module_calls.calls[call];
    return (struct nonfinite_place){.ns = ns,
                                    .module = c->module,
                                    .type = c->type,
                                    .round = nonfinite_get_counts()->rounds,
                                    .call = call,
                                    .stage = stage};
}

/* On any thread of autograd: a gradient is ready. `self` encodes the call and the end of its
 * backward. */
static object *module_on_gradient(object *self, object *args) {
    const struct pyapi *api = &module_hooks.api;
    if (!module_window_notes())
        return module_none();
    uint64_t ns = clock_mono_ns();
    long long which = api->PyLong_AsLongLong(self);
    if ((uint32_t)(which >> 32) == module_window_generation()) {
        int32_t call = (int32_t)(which >> 1 & (MODULE_CALLS_MAX - 1));
        struct nonfinite_place at = module_place(call, ns, NONFINITE_BACKWARD);
        at.index = (int32_t)(which >> MODULE_WHICH_INDEX & (MODULE_HOOKS_TENSORS - 1));
        object *gradients = module_seeks_nonfinite() ? api->PyTuple_GetItem(args, 0) : NULL;
        object *gradient =
            gradients ? api->PyTuple_GetItem(gradients, which >> MODULE_WHICH_NR & (MODULE_HOOKS_NODES - 1))
                      : NULL;
        api->PyErr_Clear();
        if (gradient)
            nonfinite_on_gradient(&at, gradient);
        else if (module_seeks_nonfinite())
            return module_return(ns);
        else if (which & 1)
            module_calls_back_end(&module_calls, call, ns);
        else
            module_calls_back_begin(&module_calls, call, ns);
    }
    return module_return(ns);
}

/* Which of a node's gradients belongs to the tensor that it made; -1 if its index is too large. */
static int32_t module_output_nr(object *tensor) {
    object *nr = module_attribute(tensor, "output_nr");
    long long v = nr ? module_hooks.api.PyLong_AsLongLong(nr) : 0;
    if (nr)
        module_hooks.api.Py_DecRef(nr);
    return v >= 0 && v < MODULE_HOOKS_NODES ? (int32_t)v : -1;
}

/* Make the node that made a tensor report when its gradient is ready; `which_of` is what it
 * reports. False: the job has been interrupted. */
static bool module_ask_node(object *tensor, uint32_t which_of) {
    static struct module_method method = {"probing_on_gradient", module_on_gradient, MODULE_METH_VARARGS,
                                          NULL};
    const struct pyapi *api = &module_hooks.api;
    object *node = module_attribute(tensor, "grad_fn"), *ask = NULL, *which = NULL, *hook = NULL,
           *handle = NULL;
    if (node && node != api->_Py_NoneStruct)
        ask = module_attribute(node, "register_prehook");
    if (ask)
        which = api->PyLong_FromLongLong((long long)module_window_generation() << 32 | which_of);
    if (which)
        hook = api->PyCFunction_NewEx(&method, which, NULL);
    if (hook)
        handle = api->PyObject_CallFunctionObjArgs(ask, hook, NULL);
    object *const all[] = {node, ask, which, hook, handle};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i])
            api->Py_DecRef(all[i]);
    return module_forgive();
}

/* The same for the tensors in `o`: the call's output, or its arguments. */
static bool module_ask_nodes(object *o, int32_t call, bool end) {
    object *tensors[MODULE_HOOKS_TENSORS];
    size_t n = o ? module_tensors(o, tensors) : 0;
    bool well = module_forgive();
    for (size_t i = 0; i < n; i++) {
        int32_t nr = module_seeks_nonfinite() ? module_output_nr(tensors[i]) : 0;
        uint32_t which =
            (uint32_t)i << MODULE_WHICH_INDEX | (uint32_t)nr << MODULE_WHICH_NR | (uint32_t)call << 1 | end;
        well = well && (nr < 0 || module_ask_node(tensors[i], which));
        module_hooks.api.Py_DecRef(tensors[i]);
    }
    return well;
}

/* Bytes of its numbers; -1 if unknown. */
static int64_t module_tensor_bytes(object *tensor) {
    object *layout = module_attribute(tensor, "layout"), *bytes = NULL;
    if (layout && layout == module_hooks.things[MODULE_STRIDED])
        bytes = module_attribute(tensor, "nbytes");
    long long v = bytes ? module_hooks.api.PyLong_AsLongLong(bytes) : -1;
    object *const all[] = {layout, bytes};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i])
            module_hooks.api.Py_DecRef(all[i]);
    return v;
}

/* Bytes of the tensors in an output; -1 if there are none, or if they are unknown. */
static int64_t module_bytes(object *o) {
    const struct pyapi *api = &module_hooks.api;
    object *tensors[MODULE_HOOKS_TENSORS];
    size_t n = module_tensors(o, tensors);
    int64_t sum = n ? 0 : -1;
    for (size_t i = 0; i < n; i++) {
        int64_t v = module_tensor_bytes(tensors[i]);
        sum = v < 0 || sum < 0 ? -1 : sum + v;
        api->Py_DecRef(tensors[i]);
    }
    return sum;
}

/* The data about a call from its tensors, without calling a __torch_function__ of the job: its
 * bytes, and the times of its gradients. A torch without a guard gives neither. */
static void module_ask(object *inputs, object *output, int32_t call) {
    const struct pyapi *api = &module_hooks.api;
    object *guard = tensor_read_raise(api, module_hooks.things[MODULE_GUARD]);
    bool is_search = module_seeks_nonfinite();
    if (guard && !is_search)
        module_calls.calls[call].bytes = module_bytes(output);
    if (guard && module_forgive() && module_ask_nodes(output, call, false) && !is_search)
        module_ask_nodes(inputs, call, true);
    tensor_read_lower(api, guard);
}

/* The outermost module of a call: names are found from there, if it still exists then. */
static void module_note_root(object *module) {
    size_t n = module_hooks.n_roots;
    for (size_t i = 0; i < n; i++)
        if (module_hooks.root_ids[i] == (uint64_t)(uintptr_t)module)
            return;
    object *ref = n < MODULE_HOOKS_ROOTS ? module_hooks.api.PyWeakref_NewRef(module, NULL) : NULL;
    if (!ref)
        return;
    module_hooks.root_ids[n] = (uint64_t)(uintptr_t)module;
    module_hooks.roots[n] = ref;
    module_hooks.n_roots++;
}

/* A step begins, in a window that searches for numbers, if this is a call of a module. False:
 * nothing is to be recorded any longer. */
static bool module_begin_round(uint64_t ns) {
    bool anyhow = module_window_is_anyhow(), fresh = module_window_is_fresh();
    if (!fresh && (!anyhow || module_calls.depth > 0))
        return true;
    bool over = anyhow && module_calls.n && module_window_count_call();
    if (over || !nonfinite_on_round(anyhow)) {
        module_window_end(ns);
        return false;
    }
    module_window_begin_part();
    module_calls_clear(&module_calls);
    return true;
}

/* The outermost call of a module, if the window waits for one. */
static void module_open_here(void) {
    if (stack_text_count_calls(&module_hooks.api) <= 1)
        module_window_open(clock_mono_ns());
}

static object *module_on_pre(object *self, object *args) {
    const struct pyapi *api = &module_hooks.api;
    (void)self;
    if (module_window_waits_for_call())
        module_open_here();
    if (!module_notes_call())
        return module_none();
    uint64_t ns = clock_mono_ns();
    if (module_seeks_nonfinite() && !module_begin_round(ns))
        return module_none();
    object *module = api->PyTuple_GetItem(args, 0), *type = module ? api->PyObject_Type(module) : NULL;
    if (type) {
        bool is_outermost = module_calls.depth == 0;
        if (is_outermost)
            module_note_root(module);
        int32_t call =
            module_calls_begin(&module_calls, (uint64_t)(uintptr_t)module, (uint64_t)(uintptr_t)type, ns);
        api->Py_DecRef(type);
        if (module_seeks_nonfinite())
            nonfinite_on_module((uint64_t)(uintptr_t)module, is_outermost);
        if (call >= 0 && module_seeks_nonfinite()) {
            struct nonfinite_place at = module_place(call, ns, NONFINITE_FORWARD);
            if (nonfinite_on_call(&at, api->PyTuple_GetItem(args, 1)))
                module_window_end(clock_mono_ns());
        }
    }
    return module_return(ns);
}

static object *module_on_post(object *self, object *args) {
    const struct pyapi *api = &module_hooks.api;
    (void)self;
    if (!module_notes_call())
        return module_none();
    uint64_t ns = clock_mono_ns();
    object *module = api->PyTuple_GetItem(args, 0), *inputs = api->PyTuple_GetItem(args, 1),
           *output = api->PyTuple_GetItem(args, 2);
    int32_t call = module && output ? module_calls_end(&module_calls, (uint64_t)(uintptr_t)module, ns) : -1;
    if (call >= 0 && module_seeks_nonfinite()) {
        struct nonfinite_place at = module_place(call, ns, NONFINITE_FORWARD);
        if (nonfinite_on_return(&at, module, output))
            module_window_end(clock_mono_ns());
        else
            module_ask(NULL, output, call);
    } else if (call >= 0)
        module_ask(inputs, output, call);
    return module_return(ns);
}

/* An optimizer's step begins. */
static object *module_on_optimizer(object *self, object *args) {
    (void)self;
    if (!module_window_notes() || !module_window_is_here())
        return module_none();
    uint64_t ns = clock_mono_ns();
    object *optimizer = module_hooks.api.PyTuple_GetItem(args, 0);
    if (optimizer && !module_seeks_nonfinite())
        grad_norms_on_optimizer(optimizer);
    else if (optimizer && nonfinite_on_optimizer(ns, optimizer))
        module_window_end(clock_mono_ns());
    return module_return(ns);
}

/* ---- for the worker ---- */

int module_hooks_are_called(struct pystack *ps) {
    int called = pystack_runs_code(ps, module_hooks.code, MODULE_HOOKS_THREADS);
    if (called == 0 && module_hooks.step_code)
        called = pystack_runs_code(ps, module_hooks.step_code, MODULE_HOOKS_THREADS);
    return called;
}

/* True if a change of the optimizers' registry would raise an exception in the job now. The
 * registry itself is iterated over. */
static bool module_steps(struct pystack *ps) {
    return module_hooks.step_code && pystack_runs_code(ps, module_hooks.step_code, MODULE_HOOKS_THREADS) != 0;
}

/* Release the job's objects. */
static void module_let_go(void) {
    const struct pyapi *api = &module_hooks.api;
    grad_norms_end();
    object **const held[] = {&module_hooks.key, &module_hooks.on_pre, &module_hooks.on_post,
                             &module_hooks.on_step};
    for (size_t i = 0; i < MODULE_NONFINITE; i++) {
        if (module_hooks.things[i])
            api->Py_DecRef(module_hooks.things[i]);
        module_hooks.things[i] = NULL;
    }
    for (size_t i = 0; i < sizeof held / sizeof held[0]; i++) {
        if (*held[i])
            api->Py_DecRef(*held[i]);
        *held[i] = NULL;
    }
}

/* Ask the unit for its things: a tuple; NULL with `why`. */
static object *module_ask_unit(struct worker *w, bool is_search, bool compiled, char *why) {
    const struct pyapi *api = worker_api(w);
    object *open = worker_helper(w, is_search ? "nonfinite_open" : "nonfinite_or_trace");
    object *flag = open ? api->PyLong_FromLong(compiled) : NULL;
    object *answer = flag ? api->PyObject_CallFunctionObjArgs(open, flag, NULL) : NULL;
    bool is_tuple = answer && api->PyTuple_Size(answer) >= MODULE_THINGS;
    api->PyErr_Clear();
    if (flag)
        api->Py_DecRef(flag);
    if (is_tuple)
        return answer;
    if (!answer || pyapi_get_text(api, answer, why, MODULE_HOOKS_WHY) != 0)
        snprintf(why, MODULE_HOOKS_WHY, "torch could not be read");
    if (answer)
        api->Py_DecRef(answer);
    return NULL;
}

/* Make the functions that torch calls; 0, or -1 without memory. */
static int module_make_hooks(const struct pyapi *api) {
    static struct module_method pre = {"probing_on_call", module_on_pre, MODULE_METH_VARARGS, NULL},
                                post = {"probing_on_return", module_on_post, MODULE_METH_VARARGS, NULL},
                                step = {"probing_on_step", module_on_optimizer, MODULE_METH_VARARGS, NULL};
    module_hooks.key = api->PyUnicode_FromStringAndSize(MODULE_HOOKS_KEY, sizeof MODULE_HOOKS_KEY - 1);
    module_hooks.on_pre = api->PyCFunction_NewEx(&pre, NULL, NULL);
    module_hooks.on_post = api->PyCFunction_NewEx(&post, NULL, NULL);
    module_hooks.on_step = api->PyCFunction_NewEx(&step, NULL, NULL);
    return module_hooks.key && module_hooks.on_pre && module_hooks.on_post && module_hooks.on_step ? 0 : -1;
}

/* 0, or -1 with `why`. */
static int module_prepare(struct worker *w, bool is_search, bool compiled, char *why) {
    const struct pyapi *api = worker_api(w);
    object *answer = module_ask_unit(w, is_search, compiled, why);
    if (!answer)
        return -1;
    module_hooks.api = *api;
    bool looks = api->PyTuple_Size(answer) > MODULE_NONFINITE;
    for (ssize_t i = 0; i < (looks ? MODULE_NONFINITE : MODULE_THINGS); i++) {
        object *thing = api->PyTuple_GetItem(answer, i);
        if (!thing || thing == api->_Py_NoneStruct)
            continue;
        api->Py_IncRef(thing);
        module_hooks.things[i] = thing;
    }
    module_hooks.code = (uint64_t)(uintptr_t)module_hooks.things[MODULE_CODE];
    module_hooks.step_code = (uint64_t)(uintptr_t)module_hooks.things[MODULE_STEP_CODE];
    int rc = is_search ? nonfinite_begin(api, worker_pystack(w), answer, MODULE_NONFINITE,
                                         module_hooks.things[MODULE_OPTIMIZERS] != NULL)
                       : 0;
    if (looks && !is_search)
        grad_norms_begin(api, answer, MODULE_NONFINITE);
    api->Py_DecRef(answer);
    if (rc == 0 && module_make_hooks(api) == 0)
        return 0;
    module_let_go();
    api->PyErr_Clear();
    snprintf(why, MODULE_HOOKS_WHY, "no memory for hooks");
    return -1;
}

/* Put one entry into a registry, if that exists. */
static bool module_put(enum module_thing registry, object *hook) {
    object *to = module_hooks.things[registry];
    return !to || module_hooks.api.PyObject_SetItem(to, module_hooks.key, hook) == 0;
}

int module_hooks_insert(struct worker *w, enum module_mode mode, bool compiled, char *why) {
    if (worker_runs_beside(w)) {
        snprintf(why, MODULE_HOOKS_WHY, "hooks cannot be put in safely: this Python runs without a GIL");
        return -1;
    }
    /* what was forked while a trace of the parent went on has its hooks, maybe for another mode */
    if (module_window_is_child() && module_hooks_remove(w, false) == 0)
        return 0;
    module_window_set_child(false);
    if (module_hooks_are_in())
        return 1;
    if (!module_hooks.key && module_prepare(w, mode == MODULE_MODE_NUMBERS, compiled, why) != 0)
        return -1;
    if (module_hooks_are_called(worker_pystack(w)) != 0)
        return 0;
    module_within = module_outside = 0;
    module_set_in(true);
    if (module_put(MODULE_PRE_HOOKS, module_hooks.on_pre) &&
        module_put(MODULE_POST_HOOKS, module_hooks.on_post) &&
        module_put(MODULE_OPTIMIZERS, module_hooks.on_step))
        return 1;
    worker_api(w)->PyErr_Clear();
    snprintf(why, MODULE_HOOKS_WHY, "no memory for hooks");
    return -1;
}

int module_hooks_remove(struct worker *w, bool anyway) {
    static const enum module_thing registries[] = {MODULE_PRE_HOOKS, MODULE_POST_HOOKS, MODULE_OPTIMIZERS};
    const struct pyapi *api = worker_api(w);
    if (!module_hooks.key)
        return 1;
    struct pystack *ps = worker_pystack(w);
    if (module_hooks_are_in() && (anyway ? module_steps(ps) : module_hooks_are_called(ps) != 0))
        return 0;
    for (size_t i = 0; i < sizeof registries / sizeof registries[0] && module_hooks_are_in(); i++) {
        object *registry = module_hooks.things[registries[i]];
        if (registry)
            api->PyObject_DelItem(registry, module_hooks.key);
        api->PyErr_Clear(); /* other code has cleared the registry */
    }
    module_set_in(false);
    module_let_go();
    return 1;
}

void module_hooks_send_roots(struct worker *w) {
    const struct pyapi *api = worker_api(w);
    object *tell = worker_helper(w, "trace_root");
    for (size_t i = 0; i < module_hooks.n_roots; i++) {
        object *result = tell ? api->PyObject_CallFunctionObjArgs(tell, module_hooks.roots[i], NULL) : NULL;
        if (result)
            api->Py_DecRef(result);
        api->Py_DecRef(module_hooks.roots[i]);
    }
    module_hooks.n_roots = 0;
    api->PyErr_Clear();
}
