/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor_read: see tensor_read.h. Sources: torch/csrc/autograd/python_variable.cpp (attributes),
 * python_variable_methods.cpp, torch/csrc/utils/disable_torch_function.cpp,
 * torch/csrc/autograd/init.cpp (_DisableTorchDispatch: a context manager, up to 1.13 an object
 * that guards while it exists).
 *
 * The last tensors are remembered: the result of a module is mostly the argument of the next
 * one. They are identified by a weak reference and by torch's count of writes to them, so a
 * changed one is read again.
 */
#include "agent/torch/tensor_read.h"

#include <math.h>
#include <string.h>

#include "agent/python/numbers.h"

#define TENSOR_READ_KNOWN 4 /* tensors */
#define TENSOR_READ_KINDS 4 /* types of numbers */

typedef struct pyapi_object object;

/* Written with the GIL, like everything here. */
static struct {
    struct pyapi api;
    object *things[TENSOR_READ_THINGS]; /* owned; NULL if torch has no such thing */
    struct numbers numbers;
    struct reader_known {
        object *ref; /* weak; owned */
        uint64_t object;
        int64_t version;
        struct tensor_numbers numbers;
    } known[TENSOR_READ_KNOWN];
    size_t turn;
    bool on;
} tensor_reader;

/* ---- calls of torch ---- */

static void reader_drop(object **o) {
    if (*o)
        tensor_reader.api.Py_DecRef(*o);
    *o = NULL;
}

/* `thing` of a tensor: a new reference, or NULL. */
static object *reader_call(enum tensor_read_thing thing, object *tensor) {
    object *callable = tensor_reader.things[thing];
    object *result = callable ? tensor_reader.api.PyObject_CallFunctionObjArgs(callable, tensor, NULL) : NULL;
    if (!result)
        tensor_reader.api.PyErr_Clear();
    return result;
}

static bool reader_is(enum tensor_read_thing thing, object *tensor) {
    object *result = reader_call(thing, tensor);
    bool is = result && result == tensor_reader.api._Py_TrueStruct;
    reader_drop(&result);
    return is;
}

/* Its number; -1 if it has none. */
static int64_t reader_number(enum tensor_read_thing thing, object *tensor) {
    object *result = reader_call(thing, tensor);
    long long v = result ? tensor_reader.api.PyLong_AsLongLong(result) : -1;
    if (v == -1)
        tensor_reader.api.PyErr_Clear();
    reader_drop(&result);
    return v;
}

/* Numbers of a tuple. Returns how many, or -1. */
static ssize_t reader_numbers(enum tensor_read_thing thing, object *tensor, int64_t *out, size_t cap) {
    object *tuple = reader_call(thing, tensor);
    ssize_t n = tuple ? tensor_reader.api.PyTuple_Size(tuple) : -1;
    if (n > (ssize_t)cap)
        n = -1;
    for (ssize_t i = 0; i < n; i++)
        out[i] = tensor_reader.api.PyLong_AsLongLong(tensor_reader.api.PyTuple_GetItem(tuple, i));
    if (tensor_reader.api.PyErr_Occurred()) {
        tensor_reader.api.PyErr_Clear();
        n = -1;
    }
    reader_drop(&tuple);
    return n;
}

/* ---- life cycle ---- */

static void reader_forget(void) {
    for (size_t i = 0; i < TENSOR_READ_KNOWN; i++)
        reader_drop(&tensor_reader.known[i].ref);
    memset(tensor_reader.known, 0, sizeof tensor_reader.known);
}

int tensor_read_begin(const struct pyapi *api, object *tuple, ssize_t first) {
    tensor_read_end();
    tensor_reader.api = *api;
    for (ssize_t i = 0; i < TENSOR_READ_THINGS; i++) {
        object *thing = api->PyTuple_GetItem(tuple, first + i);
        if (!thing) {
            api->PyErr_Clear();
            tensor_read_end();
            return -1;
        }
        if (thing == api->_Py_NoneStruct)
            continue;
        api->Py_IncRef(thing);
        tensor_reader.things[i] = thing;
    }
    tensor_reader.on = true;
    return 0;
}

void tensor_read_end(void) {
    if (tensor_reader.on)
        reader_forget();
    tensor_reader.on = false;
    for (size_t i = 0; i < TENSOR_READ_THINGS; i++)
        reader_drop(&tensor_reader.things[i]);
}

object *tensor_read_raise(const struct pyapi *api, object *of) {
    object *guard = of ? api->PyObject_CallFunctionObjArgs(of, NULL) : NULL;
    object *enter = guard ? api->PyObject_GetAttrString(guard, "__enter__") : NULL;
    object *result = enter ? api->PyObject_CallFunctionObjArgs(enter, NULL) : NULL;
    api->PyErr_Clear();
    if (enter)
        api->Py_DecRef(enter);
    if (result)
        api->Py_DecRef(result);
    return guard;
}

void tensor_read_lower(const struct pyapi *api, object *guard) {
    object *none = api->_Py_NoneStruct, *type = NULL, *value = NULL, *tb = NULL;
    api->PyErr_Fetch(&type, &value, &tb); /* any exception is the job's */
    object *leave = guard ? api->PyObject_GetAttrString(guard, "__exit__") : NULL;
    object *result = leave ? api->PyObject_CallFunctionObjArgs(leave, none, none, none, NULL) : NULL;
    api->PyErr_Clear();
    if (leave)
        api->Py_DecRef(leave);
    if (result)
        api->Py_DecRef(result);
    if (guard)
        api->Py_DecRef(guard);
    api->PyErr_Restore(type, value, tb);
}

bool tensor_read_enter(object **token) {
    *token = tensor_reader.on ? tensor_read_raise(&tensor_reader.api, tensor_reader.things[TENSOR_READ_GUARD])
                              : NULL;
    return *token != NULL;
}

void tensor_read_leave(object *token) { tensor_read_lower(&tensor_reader.api, token); }

bool tensor_read_is_tensor(object *o) {
    object *type = tensor_reader.on ? tensor_reader.api.PyObject_Type(o) : NULL;
    bool is = type && tensor_reader.things[TENSOR_READ_TENSOR] &&
              tensor_reader.api.PyType_IsSubtype(type, tensor_reader.things[TENSOR_READ_TENSOR]) == 1;
    reader_drop(&type);
    return is;
}

static bool reader_is_parameter(object *o) {
    object *type = tensor_reader.api.PyObject_Type(o);
    bool is = type && type == tensor_reader.things[TENSOR_READ_PARAMETER];
    reader_drop(&type);
    return is;
}

static bool reader_is_plain(object *o) {
    object *type = tensor_reader.on ? tensor_reader.api.PyObject_Type(o) : NULL;
    bool is = type && (type == tensor_reader.things[TENSOR_READ_TENSOR] ||
                       type == tensor_reader.things[TENSOR_READ_PARAMETER]);
    reader_drop(&type);
    return is;
}

/* ---- remembered tensors ---- */

static struct reader_known *reader_find_known(object *tensor, int64_t version) {
    for (size_t i = 0; i < TENSOR_READ_KNOWN; i++) {
        struct reader_known *k = &tensor_reader.known[i];
        if (!k->ref || k->object != (uint64_t)(uintptr_t)tensor || k->version != version)
            continue;
        object *there = tensor_reader.api.PyObject_CallFunctionObjArgs(k->ref, NULL);
        bool same = there == tensor;
        reader_drop(&there);
        return same ? k : NULL;
    }
    return NULL;
}

static void reader_remember(object *tensor, int64_t version, const struct tensor_numbers *numbers) {
    struct reader_known *k = &tensor_reader.known[tensor_reader.turn++ % TENSOR_READ_KNOWN];
    reader_drop(&k->ref);
    k->ref = tensor_reader.api.PyWeakref_NewRef(tensor, NULL);
    if (!k->ref)
        tensor_reader.api.PyErr_Clear();
    k->object = (uint64_t)(uintptr_t)tensor;
    k->version = version;
    k->numbers = *numbers;
}

/* ---- one tensor ---- */

/* The type of its numbers: 1, floating point of a known kind; 0, always finite; -1, another one. */
static int reader_read_type(object *tensor, struct numbers_view *view) {
    static const struct {
        char kind;
        uint8_t width;
    } kinds[TENSOR_READ_KINDS] = {{'f', 2}, {'b', 2}, {'f', 4}, {'f', 8}};
    const struct pyapi *api = &tensor_reader.api;
    object *dtype = reader_call(TENSOR_READ_GET_DTYPE, tensor);
    for (ssize_t i = 0; dtype && i < TENSOR_READ_KINDS; i++)
        if (api->PyTuple_GetItem(tensor_reader.things[TENSOR_READ_FLOATS], i) == dtype) {
            view->kind = kinds[i].kind;
            view->width = kinds[i].width;
            reader_drop(&dtype);
            return 1;
        }
    object *is_float = dtype ? api->PyObject_GetAttrString(dtype, "is_floating_point") : NULL;
    object *is_complex = dtype ? api->PyObject_GetAttrString(dtype, "is_complex") : NULL;
    int rc = is_float == api->_Py_FalseStruct && is_complex == api->_Py_FalseStruct ? 0 : -1;
    api->PyErr_Clear();
    reader_drop(&is_float);
    reader_drop(&is_complex);
    reader_drop(&dtype);
    return rc;
}

static bool reader_is_strided(object *tensor) {
    object *layout = reader_call(TENSOR_READ_GET_LAYOUT, tensor);
    bool is = layout && layout == tensor_reader.things[TENSOR_READ_STRIDED];
    reader_drop(&layout);
    return is && !reader_is(TENSOR_READ_IS_NESTED, tensor);
}

/* The memory of its numbers. 0, or -1: it has no memory of its own, or too many dims. */
static int reader_read_view(object *tensor, struct numbers_view *view) {
    int64_t strides[NUMBERS_DIMS];
    ssize_t n = reader_numbers(TENSOR_READ_GET_SHAPE, tensor, view->shape, NUMBERS_DIMS);
    if (n < 0 || reader_numbers(TENSOR_READ_STRIDE, tensor, strides, NUMBERS_DIMS) != n)
        return -1;
    memcpy(view->stride, strides, sizeof strides);
    view->n_dims = (size_t)n;
    /* data_ptr would copy a storage that is otherwise copied at its first write */
    bool by_storage = tensor_reader.things[TENSOR_READ_ADDRESS] != NULL;
    int64_t at = reader_number(by_storage ? TENSOR_READ_ADDRESS : TENSOR_READ_POINTER, tensor), offset = 0;
    if (by_storage)
        offset = reader_number(TENSOR_READ_OFFSET, tensor);
    view->address = (uint64_t)at + (uint64_t)offset * view->width;
    return at < 0 || offset < 0 ? -1 : 0;
}

/* The number of numbers; UINT64_MAX on overflow. */
static uint64_t reader_count(const struct numbers_view *view) {
    uint64_t n = 1;
    for (size_t i = 0; i < view->n_dims; i++)
        if (view->shape[i] < 0 || __builtin_mul_overflow(n, (uint64_t)view->shape[i], &n))
            return UINT64_MAX;
    return n;
}

/* With operations of torch, whose results are not waited for. NULL if torch cannot. */
static object *reader_ask(object *tensor) {
    const struct pyapi *api = &tensor_reader.api;
    object *guard = tensor_read_raise(&tensor_reader.api, tensor_reader.things[TENSOR_READ_DISPATCH]),
           *later = NULL;
    object *x = guard ? reader_call(TENSOR_READ_DETACH, tensor) : NULL;
    object *ends = x ? reader_call(TENSOR_READ_AMINMAX, x) : NULL;
    object *is_nan = x ? reader_call(TENSOR_READ_ISNAN, x) : NULL,
           *is_inf = x ? reader_call(TENSOR_READ_ISINF, x) : NULL;
    object *nan = is_nan ? reader_call(TENSOR_READ_SUM, is_nan) : NULL;
    object *inf = is_inf ? reader_call(TENSOR_READ_SUM, is_inf) : NULL;
    if (ends && nan && inf)
        later = api->Py_BuildValue("(OOO)", ends, nan, inf);
    object **const all[] = {&inf, &nan, &is_inf, &is_nan, &ends, &x};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        reader_drop(all[i]);
    api->PyErr_Clear();
    tensor_read_lower(&tensor_reader.api, guard);
    return later;
}

/* A graph that is being captured would contain our operations permanently, and give no results
 * now. */
static bool reader_captures(void) {
    object *captures = tensor_reader.things[TENSOR_READ_CAPTURES];
    object *answer = captures ? tensor_reader.api.PyObject_CallFunctionObjArgs(captures, NULL) : NULL;
    bool may = captures && (!answer || answer != tensor_reader.api._Py_FalseStruct);
    tensor_reader.api.PyErr_Clear();
    reader_drop(&answer);
    return may;
}

enum tensor_read_found tensor_read_numbers(object *tensor, bool passes, uint64_t *bytes_left,
                                           struct tensor_numbers *out, object **later) {
    struct numbers_view view = {.kind = 0};
    *later = NULL;
    *out = (struct tensor_numbers){.min = NAN, .max = NAN};
    if (!reader_is_plain(tensor))
        return TENSOR_READ_NO;
    int kind = reader_read_type(tensor, &view);
    if (kind <= 0)
        return kind == 0 ? TENSOR_READ_NONE : TENSOR_READ_NO;
    if (!reader_is_strided(tensor) || reader_read_view(tensor, &view) != 0)
        return TENSOR_READ_NO;
    out->count = reader_count(&view);
    if (out->count == 0)
        return TENSOR_READ_NONE;
    bool is_cpu = reader_is(TENSOR_READ_IS_CPU, tensor),
         is_cuda = !is_cpu && reader_is(TENSOR_READ_IS_CUDA, tensor);
    if (out->count > UINT64_MAX / 8 || (!is_cpu && !is_cuda))
        return TENSOR_READ_NO;
    if (out->count * view.width > *bytes_left)
        return TENSOR_READ_BEYOND;
    int64_t version = reader_number(TENSOR_READ_GET_VERSION, tensor);
    struct reader_known *known = version >= 0 && is_cpu ? reader_find_known(tensor, version) : NULL;
    if (known) {
        *out = known->numbers;
        return TENSOR_READ_NOW;
    }
    *bytes_left -= out->count * view.width;
    if (is_cuda || reader_is(TENSOR_READ_IS_NEG, tensor)) {
        *later = is_cuda && reader_captures() ? NULL : reader_ask(tensor);
        return *later ? TENSOR_READ_LATER : TENSOR_READ_NO;
    }
    if (numbers_scan(&tensor_reader.numbers, &view) != 0)
        return TENSOR_READ_NO;
    const struct numbers_stats *s = &tensor_reader.numbers.stats;
    *out = (struct tensor_numbers){s->count, s->nan, s->inf, s->min, s->max};
    if (version >= 0 && passes && !reader_is_parameter(tensor))
        reader_remember(tensor, version, out);
    return TENSOR_READ_NOW;
}

enum tensor_read_found tensor_read_squares(object *tensor, uint64_t *numbers_left, double *sum,
                                           uint64_t *bad) {
    struct numbers_view view = {.kind = 0};
    if (!reader_is_plain(tensor) || reader_read_type(tensor, &view) != 1 || !reader_is_strided(tensor) ||
        reader_read_view(tensor, &view) != 0 || !reader_is(TENSOR_READ_IS_CPU, tensor) ||
        reader_is(TENSOR_READ_IS_NEG, tensor))
        return TENSOR_READ_NO;
    uint64_t count = reader_count(&view);
    if (count > *numbers_left)
        return TENSOR_READ_BEYOND;
    *numbers_left -= count;
    return numbers_squares(&tensor_reader.numbers, &view, sum, bad) == 0 ? TENSOR_READ_NOW : TENSOR_READ_NO;
}

int tensor_read_read(object *later, struct tensor_numbers *out) {
    const struct pyapi *api = &tensor_reader.api;
    object *ends = tensor_reader.on ? api->PyTuple_GetItem(later, 0) : NULL;
    double values[4] = {NAN, NAN, NAN, NAN};
    for (ssize_t i = 0; ends && i < 4; i++) {
        object *from = i < 2 ? api->PyTuple_GetItem(ends, i) : api->PyTuple_GetItem(later, i - 1);
        values[i] = from ? api->PyFloat_AsDouble(from) : NAN;
        if (api->PyErr_Occurred()) {
            api->PyErr_Clear();
            return -1;
        }
    }
    if (isnan(values[2]) || isnan(values[3]))
        return -1;
    out->nan = (uint64_t)values[2];
    out->inf = (uint64_t)values[3];
    out->min = isfinite(values[0]) ? values[0] : NAN; /* for a tensor with NaN both are NaN */
    out->max = isfinite(values[1]) ? values[1] : NAN;
    return 0;
}

int tensor_read_gradient(object *tensor, object **out) {
    *out = reader_call(TENSOR_READ_GET_GRAD, tensor);
    if (!*out)
        return -1;
    if (*out == tensor_reader.api._Py_NoneStruct)
        reader_drop(out);
    return 0;
}

void tensor_numbers_add(struct tensor_numbers *to, const struct tensor_numbers *more) {
    to->count += more->count;
    to->nan += more->nan;
    to->inf += more->inf;
    to->min = fmin(to->min, more->min); /* if one is unknown, the other one */
    to->max = fmax(to->max, more->max);
}
