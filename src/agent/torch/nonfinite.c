/* SPDX-License-Identifier: Apache-2.0 */
/* nonfinite: see nonfinite.h. */
#include "agent/torch/nonfinite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/torch/param_groups.h"
#include "agent/python/stack_text.h"
#include "base/clock.h"
#include "base/strbuf.h"
#include "pystack/frame_vars.h"

#define NONFINITE_TENSORS 64 /* of an input or output */
#define NONFINITE_ITEMS 256  /* of a tuple, list or dict */
#define NONFINITE_DEPTH 3    /* tuples in tuples */
#define NONFINITE_LATERS 32768
#define NONFINITE_LATERS_FIRST 256
#define NONFINITE_STACKS ((size_t)4 * 1024 * 1024)
#define NONFINITE_READS 8 /* per step of the worker */

/* Py_TPFLAGS_... (Include/object.h), the same in all versions */
#define NONFINITE_LIST_SUBCLASS (1UL << 25)
#define NONFINITE_TUPLE_SUBCLASS (1UL << 26)
#define NONFINITE_DICT_SUBCLASS (1UL << 29)

typedef struct pyapi_object object;

/* ---- keyword arguments of a module ---- */

/*
 * Torch passes only positional arguments to global hooks before a call
 * (torch/nn/modules/module.py), and keyword arguments, from 2.0 on, only after it: an in-place
 * operation may have changed them by then. But its own function that calls the hook has them in
 * `kwargs` (_call_impl; in later versions its function `inner`, as a variable of a closure), so
 * the thread itself looks them up in that frame (pystack/frame_vars.h): torch is not changed.
 * With the GIL.
 */

#define NONFINITE_KEYWORD_FRAMES 2 /* innermost ones that are checked */

static struct {
    struct pyapi api;
    struct pystack_frame_vars *vars; /* NULL: nothing is known */
} nonfinite_keywords;

static void nonfinite_end_keywords(void) {
    free(nonfinite_keywords.vars);
    nonfinite_keywords.vars = NULL;
}

/* `ps` finds the frames. Without memory nothing is known. */
static void nonfinite_begin_keywords(const struct pyapi *api, struct pystack *ps) {
    static const char *const names[] = {"kwargs"};
    nonfinite_end_keywords();
    nonfinite_keywords.api = *api;
    nonfinite_keywords.vars = malloc(sizeof *nonfinite_keywords.vars);
    if (!nonfinite_keywords.vars)
        return;
    pystack_frame_vars_init(nonfinite_keywords.vars, ps, "");
    nonfinite_keywords.vars->max_frames = NONFINITE_KEYWORD_FRAMES;
    pystack_frame_vars_set_names(nonfinite_keywords.vars, names, 1);
}

/* True if it is the function of torch that calls the hooks. Its code lives as long as torch
 * does. */
static bool nonfinite_is_call(const struct pystack_frame_vars_code *c) {
    static const char file[] = "torch/nn/modules/module.py";
    size_t n = strlen(c->file);
    return n >= sizeof file - 1 && strcmp(c->file + n - (sizeof file - 1), file) == 0 &&
           (strcmp(c->func, "inner") == 0 || strcmp(c->func, "_call_impl") == 0);
}

/* Within a hook that torch calls before a module: the dict, a new reference. NULL: there are
 * none; if not `*is_known`, there may be some, because the frame is an unknown one. Leaves no
 * exception. */
static struct pyapi_object *nonfinite_get_keywords(bool *is_known) {
    struct pystack_frame_vars *l = nonfinite_keywords.vars;
    *is_known = false;
    if (!l ||
        pystack_frame_vars_begin(
            l, (uint64_t)(uintptr_t)nonfinite_keywords.api.PyGILState_GetThisThreadState()) == 0 ||
        !nonfinite_is_call(l->frames[0].code))
        return NULL;
    uint64_t at = pystack_frame_vars_local(l, 0, 0);
    if (values_kind_of(&l->values, at) != VALUES_DICT)
        return NULL;
    *is_known = true;
    struct pyapi_object *found = (struct pyapi_object *)(uintptr_t)at;
    nonfinite_keywords.api.Py_IncRef(found);
    return found;
}

/* A tensor whose numbers arrive later. */
struct nonfinite_later {
    struct nonfinite_place at;
    bool has_inputs;
    struct tensor_numbers inputs; /* of its call, as far as they were known immediately */
    size_t stack;                 /* where its text begins, plus one; 0 if unknown */
    uint32_t stepped; /* the round of the optimizer's step after it, with parameters; 0 none yet */
    object *result;   /* owned, until it was read: then `numbers` has the result, if */
    bool is_read;
    struct tensor_numbers numbers;
};

struct nonfinite_gradient {
    struct nonfinite_place at;
    struct tensor_numbers numbers;
};

/* Written with the GIL. */
static struct {
    struct pyapi api;
    struct nonfinite_find forward, backward, gradient; /* the last without `at` and numbers */
    struct nonfinite_gradient gradients[NONFINITE_GRADIENTS];
    size_t n_gradients;
    struct nonfinite_counts counts;
    uint64_t bytes_left;
    uint64_t parameters; /* in this step */
    uint32_t stepped;    /* the round of the last optimizer's step with parameters; 0 none yet */
    uint64_t model;      /* the first module that was called by no other; 0 none yet */
    uint64_t models;     /* its calls */
    struct nonfinite_input {
        uint32_t round;
        bool has;
        struct tensor_numbers numbers;
    } inputs[MODULE_CALLS_MAX];
    struct nonfinite_later *laters;
    size_t n_laters, cap_laters, settled;
    char *stacks;
    size_t n_stacks;
    bool begun;
} search;

/* ---- for the sampler ---- */

void nonfinite_clear(void) {
    memset(&search.forward, 0, offsetof(struct nonfinite_find, stack) + 1);
    memset(&search.backward, 0, offsetof(struct nonfinite_find, stack) + 1);
    memset(&search.gradient, 0, offsetof(struct nonfinite_find, stack) + 1);
    search.n_gradients = 0;
    bool has_optimizers = search.counts.has_optimizers;
    search.counts = (struct nonfinite_counts){.has_optimizers = has_optimizers};
    search.bytes_left = NONFINITE_BYTES;
    search.parameters = search.model = search.models = search.stepped = 0;
    memset(search.inputs, 0, sizeof search.inputs);
}

const struct nonfinite_counts *nonfinite_get_counts(void) { return &search.counts; }

static bool nonfinite_is_bad(const struct tensor_numbers *n) { return n->nan + n->inf > 0; }

size_t nonfinite_get_wanted(uint64_t *out) {
    size_t n = 0;
    if (search.forward.is)
        out[n++] = search.forward.at.module;
    if (search.backward.is)
        out[n++] = search.backward.at.module;
    for (size_t i = 0; i < search.n_gradients; i++)
        out[n++] = search.gradients[i].at.parameter;
    return n;
}

static const struct nonfinite_name *nonfinite_find_name(const struct nonfinite_name *names, size_t n,
                                                        uint64_t id) {
    for (size_t i = 0; i < n; i++)
        if (names[i].id == id)
            return &names[i];
    return NULL;
}

/* The last call of a module in a step; -1 if there was none. */
static int32_t nonfinite_find_call(const struct module_calls *calls, uint64_t module) {
    for (size_t i = calls->n; i-- > 0;)
        if (calls->calls[i].module == module)
            return (int32_t)i;
    return -1;
}

/* A backward pass reverses the forward pass: of the parameters of the first step that has any,
 * those of the last called module get their gradients first. */
static const struct nonfinite_gradient *nonfinite_find_gradient(const struct module_calls *calls,
                                                                const struct nonfinite_name *names, size_t n,
                                                                int32_t *call) {
    const struct nonfinite_gradient *found = NULL;
    *call = -1;
    for (size_t i = 0; i < search.n_gradients; i++) {
        const struct nonfinite_gradient *g = &search.gradients[i];
        const struct nonfinite_name *name = nonfinite_find_name(names, n, g->at.parameter);
        int32_t last = name ? nonfinite_find_call(calls, name->module) : -1;
        if (found && (g->at.round > found->at.round || (g->at.round == found->at.round && last <= *call)))
            continue;
        found = g;
        *call = last;
    }
    return found;
}

/* True if the gradient of the parameter, of a module whose last call was `call`, was made before
 * that of the output. */
static bool nonfinite_is_before(const struct nonfinite_gradient *g, int32_t call,
                                const struct nonfinite_find *output) {
    if (g->at.round != output->at.round)
        return g->at.round < output->at.round;
    return call > output->at.call;
}

static void nonfinite_put_what(struct nonfinite_verdict *v) {
    const struct nonfinite_place *at = &v->find->at;
    if (at->stage == NONFINITE_FORWARD && at->keyword[0])
        snprintf(v->what, sizeof v->what, "input %s", at->keyword);
    else if (at->stage == NONFINITE_FORWARD)
        snprintf(v->what, sizeof v->what, "%s %d", at->is_input ? "input" : "output", at->index);
    else if (at->stage == NONFINITE_BACKWARD)
        snprintf(v->what, sizeof v->what, "gradient of output %d", at->index);
    else if (v->name)
        snprintf(v->what, sizeof v->what, "%s.grad", v->name->name);
    else
        snprintf(v->what, sizeof v->what, "gradient of parameter %d in group %d of an optimizer", at->index,
                 at->group);
}

/* A GradScaler passes over steps whose gradients are not finite, some of them in a row while it
 * looks for its scale. The job has no fault then: where optimizers' steps are seen, the next one
 * shows whether the gradient did any harm. If none comes for that many calls of the model, that
 * is news. Calls are counted from the gradient on, not from when it was found: the numbers of a GPU
 * are known when the search is over. */
#define NONFINITE_PASSED_OVER 16

static bool nonfinite_is_undecided(void) {
    return search.backward.is && !search.n_gradients && search.counts.parameters &&
           search.models - search.backward.at.models < NONFINITE_PASSED_OVER;
}

void nonfinite_judge(const struct module_calls *calls, const struct nonfinite_name *names, size_t n,
                     struct nonfinite_verdict *out) {
    int32_t call;
    if (nonfinite_is_undecided()) {
        search.backward.is = false;
        search.counts.undecided++;
    }
    const struct nonfinite_gradient *g = nonfinite_find_gradient(calls, names, n, &call);
    const struct nonfinite_find *find = search.backward.is ? &search.backward : NULL;
    if (g && (!find || nonfinite_is_before(g, call, find))) {
        search.gradient.is = true;
        search.gradient.at = g->at;
        search.gradient.numbers = g->numbers;
        find = &search.gradient;
    }
    if (search.forward.is && (!find || search.forward.at.ns < find->at.ns))
        find = &search.forward;
    *out = (struct nonfinite_verdict){.find = find};
    if (!find)
        return;
    out->name = nonfinite_find_name(
        names, n, find->at.stage == NONFINITE_GRADIENT ? find->at.parameter : find->at.module);
    nonfinite_put_what(out);
}

/* ---- findings ---- */

/* Record it, if it is the first one. */
static void nonfinite_take(struct nonfinite_find *to, const struct nonfinite_place *at,
                           const struct tensor_numbers *numbers, const struct nonfinite_input *inputs) {
    if (to->is && to->at.ns <= at->ns)
        return;
    to->is = true;
    to->at = *at;
    to->numbers = *numbers;
    to->has_inputs = inputs && inputs->has;
    if (to->has_inputs)
        to->inputs = inputs->numbers;
    to->parameter[0] = to->stack[0] = '\0';
}

static void nonfinite_take_gradient(const struct nonfinite_place *at, const struct tensor_numbers *numbers) {
    if (search.n_gradients < NONFINITE_GRADIENTS)
        search.gradients[search.n_gradients++] = (struct nonfinite_gradient){*at, *numbers};
}

/* ---- results that arrive later ---- */

/* Make room for one more; false without memory. */
static bool nonfinite_grow(void) {
    if (search.n_laters < search.cap_laters)
        return true;
    size_t cap = search.cap_laters ? 2 * search.cap_laters : NONFINITE_LATERS_FIRST;
    struct nonfinite_later *grown =
        cap <= NONFINITE_LATERS ? realloc(search.laters, cap * sizeof *grown) : NULL;
    if (!grown)
        return false;
    search.laters = grown;
    search.cap_laters = cap;
    return true;
}

static size_t nonfinite_put_stack(void) {
    if (!search.stacks)
        search.stacks = malloc(NONFINITE_STACKS);
    if (!search.stacks || NONFINITE_STACKS - search.n_stacks < NONFINITE_STACK)
        return 0;
    size_t at = search.n_stacks, len = stack_text_write(&search.api, search.stacks + at, NONFINITE_STACK);
    if (len == 0)
        return 0;
    search.n_stacks += len + 1;
    return at + 1;
}

static void nonfinite_put_later(const struct nonfinite_place *at, uint64_t count,
                                const struct nonfinite_input *inputs, object *result) {
    if (!nonfinite_grow()) {
        search.api.Py_DecRef(result);
        search.counts.beyond++;
        return;
    }
    struct nonfinite_later *l = &search.laters[search.n_laters++];
    *l = (struct nonfinite_later){.at = *at, .stack = nonfinite_put_stack(), .result = result};
    l->numbers.count = count;
    l->has_inputs = inputs && inputs->has;
    if (l->has_inputs)
        l->inputs = inputs->numbers;
}

/* ---- tensors in arguments and results of modules ---- */

/* The state of a search. */
struct nonfinite_walk {
    struct nonfinite_place at;
    /* of the call; inputs are added here when they are checked, if `at` is one of them */
    struct nonfinite_input *inputs;
    bool found;                /* one is not finite: */
    struct tensor_numbers bad; /* of the first such tensor */
    struct nonfinite_place bad_at;
    size_t tensors;
};

static void nonfinite_scan(struct nonfinite_walk *w, object *tensor) {
    struct tensor_numbers numbers;
    object *later;
    enum tensor_read_found found =
        tensor_read_numbers(tensor, w->at.stage != NONFINITE_GRADIENT, &search.bytes_left, &numbers, &later);
    search.counts.tensors += found == TENSOR_READ_NOW || found == TENSOR_READ_LATER;
    search.counts.skipped += found == TENSOR_READ_NO;
    search.counts.beyond += found == TENSOR_READ_BEYOND;
    if (found == TENSOR_READ_LATER)
        nonfinite_put_later(&w->at, numbers.count, w->inputs, later);
    if (found != TENSOR_READ_NOW)
        return;
    if (w->at.is_input && w->inputs) {
        if (!w->inputs->has)
            w->inputs->numbers = (struct tensor_numbers){.min = NAN, .max = NAN};
        tensor_numbers_add(&w->inputs->numbers, &numbers);
        w->inputs->has = true;
    }
    if (!w->found && nonfinite_is_bad(&numbers)) {
        w->found = true;
        w->bad = numbers;
        w->bad_at = w->at;
    }
}

static unsigned long nonfinite_get_flags(object *o) {
    object *type = search.api.PyObject_Type(o);
    unsigned long flags = type ? search.api.PyType_GetFlags(type) : 0;
    if (type)
        search.api.Py_DecRef(type);
    return flags;
}

/* The tensors in `o`; their index is that of the outermost item that contains them. */
static void nonfinite_walk_object(struct nonfinite_walk *w, object *o, int depth) {
    const struct pyapi *api = &search.api;
    if (!o || o == api->_Py_NoneStruct || w->tensors == NONFINITE_TENSORS)
        return;
    if (tensor_read_is_tensor(o)) {
        nonfinite_scan(w, o);
        w->tensors++;
        return;
    }
    unsigned long flags = nonfinite_get_flags(o);
    object *values = flags & NONFINITE_DICT_SUBCLASS ? api->PyDict_Values(o) : NULL;
    bool is_tuple = (flags & NONFINITE_TUPLE_SUBCLASS) != 0,
         is_list = values || flags & NONFINITE_LIST_SUBCLASS;
    object *list = values ? values : o;
    ssize_t n = is_tuple ? api->PyTuple_Size(o) : is_list ? api->PyList_Size(list) : 0;
    for (ssize_t i = 0; i < n && i < NONFINITE_ITEMS && depth < NONFINITE_DEPTH; i++) {
        object *item = is_tuple ? api->PyTuple_GetItem(o, i) : api->PyList_GetItem(list, i);
        if (item)
            api->Py_IncRef(item);
        if (depth == 0)
            w->at.index = (int32_t)i;
        nonfinite_walk_object(w, item, depth + 1);
        if (item)
            api->Py_DecRef(item);
    }
    if (values)
        api->Py_DecRef(values);
    api->PyErr_Clear();
}

static void nonfinite_walk_keywords(struct nonfinite_walk *w) {
    const struct pyapi *api = &search.api;
    object *key, *value, *keywords;
    ssize_t at = 0;
    bool is_known;
    keywords = nonfinite_get_keywords(&is_known);
    search.counts.unlooked += !is_known;
    for (w->at.index = 0; keywords && api->PyDict_Next(keywords, &at, &key, &value); w->at.index++) {
        api->Py_IncRef(value);
        if (pyapi_get_text(api, key, w->at.keyword, sizeof w->at.keyword) == 0)
            nonfinite_walk_object(w, value, 1);
        api->Py_DecRef(value);
    }
    if (keywords)
        api->Py_DecRef(keywords);
    api->PyErr_Clear();
}

/* Check the tensors in `o`, and the keyword arguments if it is the inputs of the call. True if
 * one is not finite. */
static bool nonfinite_walk(struct nonfinite_walk *w, object *o) {
    object *guard;
    if (!search.begun || !tensor_read_enter(&guard))
        return false;
    nonfinite_walk_object(w, o, 0);
    if (w->at.is_input)
        nonfinite_walk_keywords(w);
    tensor_read_leave(guard);
    return w->found;
}

/* ---- parameters of a module ---- */

/* The first of its parameters that is not finite, among those whose numbers are known
 * immediately. */
static void nonfinite_find_parameter(object *module, char *buf, size_t cap) {
    const struct pyapi *api = &search.api;
    object *parameters = pyapi_get_own(api, module, "_parameters"), *name, *value, *guard;
    ssize_t at = 0;
    bool is_dict = parameters && nonfinite_get_flags(parameters) & NONFINITE_DICT_SUBCLASS;
    bool entered = is_dict && tensor_read_enter(&guard);
    while (entered && !buf[0] && api->PyDict_Next(parameters, &at, &name, &value)) {
        struct tensor_numbers numbers;
        object *later = NULL;
        uint64_t bytes = NONFINITE_BYTES;
        if (tensor_read_numbers(value, false, &bytes, &numbers, &later) == TENSOR_READ_NOW &&
            nonfinite_is_bad(&numbers))
            pyapi_get_text(api, name, buf, cap);
        if (later)
            api->Py_DecRef(later);
    }
    if (entered)
        tensor_read_leave(guard);
    if (parameters)
        api->Py_DecRef(parameters);
    api->PyErr_Clear();
}

/* ---- events ---- */

void nonfinite_spend(uint64_t ns) { search.counts.own_ns += ns; }

void nonfinite_on_module(uint64_t module, bool is_outermost) {
    if (is_outermost && !search.model)
        search.model = module;
    search.models += module == search.model;
}

bool nonfinite_on_round(bool goes_on) {
    if (search.backward.is && !goes_on)
        return false;
    search.counts.rounds++;
    search.bytes_left = NONFINITE_BYTES;
    search.parameters = 0;
    return true;
}

static struct nonfinite_input *nonfinite_get_input(const struct nonfinite_place *at) {
    if (at->call < 0 || at->call >= MODULE_CALLS_MAX)
        return NULL;
    struct nonfinite_input *i = &search.inputs[at->call];
    if (i->round != at->round)
        *i = (struct nonfinite_input){.round = at->round};
    return i;
}

bool nonfinite_on_call(const struct nonfinite_place *at, object *inputs) {
    struct nonfinite_walk w = {.at = *at, .inputs = nonfinite_get_input(at)};
    w.at.is_input = true;
    if (!nonfinite_walk(&w, inputs))
        return false;
    nonfinite_take(&search.forward, &w.bad_at, &w.bad, w.inputs);
    stack_text_write(&search.api, search.forward.stack, sizeof search.forward.stack);
    return true;
}

bool nonfinite_on_return(const struct nonfinite_place *at, object *module, object *output) {
    struct nonfinite_walk w = {.at = *at, .inputs = nonfinite_get_input(at)};
    if (!nonfinite_walk(&w, output))
        return false;
    nonfinite_take(&search.forward, &w.bad_at, &w.bad, w.inputs);
    nonfinite_find_parameter(module, search.forward.parameter, sizeof search.forward.parameter);
    stack_text_write(&search.api, search.forward.stack, sizeof search.forward.stack);
    return true;
}

void nonfinite_on_gradient(const struct nonfinite_place *at, object *gradient) {
    struct nonfinite_walk w = {.at = *at};
    object *guard;
    w.at.models = search.models;
    if (search.backward.is || !search.begun || !tensor_read_is_tensor(gradient) || !tensor_read_enter(&guard))
        return;
    nonfinite_scan(&w, gradient);
    tensor_read_leave(guard);
    if (!w.found)
        return;
    nonfinite_take(&search.backward, &w.at, &w.bad, NULL);
    stack_text_write(&search.api, search.backward.stack, sizeof search.backward.stack);
}

/* A param_groups_fn; `ctx` is the place of its optimizer's step. */
static void nonfinite_scan_parameter(void *ctx, object *parameter, int32_t group, int32_t index) {
    const struct nonfinite_place *at = ctx;
    object *gradient = NULL;
    if (tensor_read_is_tensor(parameter))
        tensor_read_gradient(parameter, &gradient);
    if (!gradient)
        return;
    struct nonfinite_walk w = {.at = *at};
    w.at.parameter = (uint64_t)(uintptr_t)parameter;
    w.at.group = group;
    w.at.index = index;
    search.parameters++;
    nonfinite_scan(&w, gradient);
    if (w.found)
        nonfinite_take_gradient(&w.at, &w.bad);
    search.api.Py_DecRef(gradient);
}

/* Intermediate gradients were not finite, those of parameters are: it had no effect. */
static void nonfinite_pass(void) {
    search.backward.is = false;
    search.counts.passed++;
}

/* What arrives later will be judged by this step. */
static void nonfinite_note_step(uint32_t round) {
    search.stepped = round;
    for (size_t i = search.n_laters; i-- > 0 && !search.laters[i].stepped;)
        search.laters[i].stepped = round;
}

bool nonfinite_on_optimizer(uint64_t ns, object *optimizer) {
    const struct pyapi *api = &search.api;
    struct nonfinite_place at = {
        .ns = ns, .round = search.counts.rounds, .call = -1, .stage = NONFINITE_GRADIENT};
    object *guard;
    if (search.begun && tensor_read_enter(&guard)) {
        param_groups_each(api, optimizer, nonfinite_scan_parameter, &at);
        tensor_read_leave(guard);
    }
    api->PyErr_Clear();
    if (search.parameters > search.counts.parameters)
        search.counts.parameters = search.parameters;
    if (search.parameters)
        nonfinite_note_step(at.round);
    if (search.n_gradients && !search.gradient.stack[0])
        stack_text_write(api, search.gradient.stack, sizeof search.gradient.stack);
    if (search.backward.is && search.parameters && !search.n_gradients && !search.n_laters)
        nonfinite_pass();
    return search.n_gradients || search.backward.is;
}

/* ---- for the worker ---- */

int nonfinite_begin(const struct pyapi *api, struct pystack *ps, object *tuple, ssize_t first,
                    bool has_optimizers) {
    nonfinite_end();
    nonfinite_begin_keywords(api, ps);
    search.api = *api;
    search.begun = tensor_read_begin(api, tuple, first) == 0;
    search.counts.has_optimizers = has_optimizers;
    return search.begun ? 0 : -1;
}

void nonfinite_end(void) {
    for (size_t i = search.settled; i < search.n_laters; i++)
        search.api.Py_DecRef(search.laters[i].result);
    nonfinite_end_keywords();
    free(search.laters);
    free(search.stacks);
    search.laters = NULL;
    search.stacks = NULL;
    search.n_laters = search.cap_laters = search.settled = search.n_stacks = 0;
    if (search.begun)
        tensor_read_end();
    search.begun = false;
}

static void nonfinite_settle_take(struct nonfinite_find *f, const struct nonfinite_later *l) {
    struct nonfinite_input inputs = {.has = l->has_inputs, .numbers = l->inputs};
    if (f->is && f->at.ns <= l->at.ns)
        return;
    nonfinite_take(f, &l->at, &l->numbers, &inputs);
    if (l->stack)
        snprintf(f->stack, sizeof f->stack, "%s", search.stacks + l->stack - 1);
}

/* Gradients on their way to parameters wait for all others: nonfinite_settle_backward. */
static void nonfinite_settle_one(const struct nonfinite_later *l) {
    if (!nonfinite_is_bad(&l->numbers))
        return;
    if (l->at.stage == NONFINITE_GRADIENT)
        nonfinite_take_gradient(&l->at, &l->numbers);
    else if (l->at.stage == NONFINITE_FORWARD)
        nonfinite_settle_take(&search.forward, l);
}

/* When this returns, the device has done its work. */
static void nonfinite_wait(struct worker *w, object *result) {
    object *wait = worker_helper(w, "nonfinite_wait");
    object *done = wait ? search.api.PyObject_CallFunctionObjArgs(wait, result, NULL) : NULL;
    search.api.PyErr_Clear();
    if (done)
        search.api.Py_DecRef(done);
}

/* The numbers of the inputs of the call with the finding, if they arrived later. */
static void nonfinite_settle_inputs(struct nonfinite_find *f) {
    for (size_t i = 0; i < search.n_laters; i++) {
        const struct nonfinite_later *l = &search.laters[i];
        if (!f->is || !l->is_read || !l->at.is_input || f->at.call != l->at.call ||
            f->at.round != l->at.round)
            continue;
        if (!f->has_inputs)
            f->inputs = (struct tensor_numbers){.min = NAN, .max = NAN};
        tensor_numbers_add(&f->inputs, &l->numbers);
        f->has_inputs = true;
    }
}

/* True if the optimizer's step of that round (0: there was none) has shown that all gradients of
 * its parameters are finite. */
static bool nonfinite_had_no_effect(uint32_t stepped) {
    for (size_t i = 0; i < search.n_gradients; i++)
        if (search.gradients[i].at.round == stepped)
            return false;
    for (size_t i = 0; i < search.n_laters; i++)
        if (search.laters[i].at.stage == NONFINITE_GRADIENT && search.laters[i].at.round == stepped &&
            !search.laters[i].is_read)
            return false;
    return stepped != 0;
}

/* The first gradient on its way to the parameters that was not finite and had an effect, or whose
 * effect is not known; the others are passed, once for each step, as nonfinite_on_optimizer does
 * immediately. */
static void nonfinite_settle_backward(void) {
    uint32_t passed = 0;
    bool is_now = search.backward.is; /* the search has ended with it */
    for (size_t i = 0; i < search.n_laters; i++) {
        const struct nonfinite_later *l = &search.laters[i];
        if (l->at.stage != NONFINITE_BACKWARD || !l->is_read || !nonfinite_is_bad(&l->numbers) ||
            (passed && l->stepped == passed))
            continue;
        if (!nonfinite_had_no_effect(l->stepped)) {
            nonfinite_settle_take(&search.backward, l);
            return;
        }
        passed = l->stepped;
        search.counts.passed++;
    }
    if (is_now && nonfinite_had_no_effect(search.stepped >= search.backward.at.round ? search.stepped : 0))
        nonfinite_pass();
}

bool nonfinite_settle(struct worker *w) {
    if (search.settled == search.n_laters)
        return false;
    for (size_t i = 0; i < NONFINITE_READS && search.settled < search.n_laters; i++) {
        struct nonfinite_later *l = &search.laters[search.settled++];
        nonfinite_wait(w, l->result);
        l->is_read = tensor_read_read(l->result, &l->numbers) == 0;
        search.counts.unread += !l->is_read;
        if (l->is_read)
            nonfinite_settle_one(l);
        search.api.Py_DecRef(l->result);
    }
    if (search.settled == search.n_laters) {
        nonfinite_settle_inputs(&search.forward);
        nonfinite_settle_backward();
    }
    return search.settled < search.n_laters;
}
