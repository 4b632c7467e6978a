/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_values: see step_values.h. Names of variables: torch/optim/optimizer.py
 * (profile_hook_step: `self`, `obj` up to 1.13, `out`), examples of PyTorch,
 * transformers/trainer.py (tr_loss_step).
 */
#include "agent/torch/step_values.h"

#include <math.h>
#include <string.h>

#include "agent/torch/trace_pace.h"
#include "agent/torch/spans.h"
#include "base/clock.h"
#include "pystack/frame_vars.h"

#define STEP_VALUES_CALLERS 8         /* calling functions outside of step that may have the loss */
#define STEP_VALUES_RETURNS_PER_S 200 /* values reported at returns; further ones are left out */

enum step_values_name {
    STEP_VALUES_SELF = 0,
    STEP_VALUES_OBJ,
    STEP_VALUES_OUT,
    STEP_VALUES_EPOCH,
    STEP_VALUES_LOSS,
    STEP_VALUES_LOSS_LAST = STEP_VALUES_LOSS + 8,
    STEP_VALUES_NORM,
    STEP_VALUES_NORM_LAST = STEP_VALUES_NORM + 3,
    STEP_VALUES_OWN, /* number of ours; then come the variables of expressions */
};

static const char *const step_values_names[STEP_VALUES_OWN] = {
    [STEP_VALUES_SELF] = "self",
    [STEP_VALUES_OBJ] = "obj",
    [STEP_VALUES_OUT] = "out",
    [STEP_VALUES_EPOCH] = "epoch",
    [STEP_VALUES_LOSS] = "loss",
    "losses",
    "total_loss",
    "train_loss",
    "training_loss",
    "batch_loss",
    "step_loss",
    "loss_value",
    "tr_loss_step",
    [STEP_VALUES_NORM] = "grad_norm",
    "total_norm",
    "gnorm",
    "gradient_norm",
};

static const struct watch_part step_values_lr[] = {
    {.kind = WATCH_ATTRIBUTE, .name = "param_groups"},
    {.kind = WATCH_INDEX, .index = 0},
    {.kind = WATCH_KEY, .name = "lr"},
};

static struct step_values {
    uint32_t busy; /* atomic: a thread is reading, or changing the list */
    uint32_t on;   /* atomic */
    void *(*current)(void);
    struct watch watch;
    uint32_t set;
    bool at_step[WATCH_MAX]; /* it was found at a step */
    uint64_t second_ns;      /* of returns: start of the second */
    unsigned reported;       /* values were reported in it */
    char root[256];          /* folder of torch, with its slash; "" if unknown */
    struct pystack_frame_vars vars;
    struct trace_pace pace;
} values;

/* atomic: readings of variables; the measured ones of them and their time; steps that were left
 * out */
static uint64_t step_values_n, step_values_measured, step_values_ns, step_values_left_out;
/* Atomic: current cost of a reading at a step; 0 if there was none. */
static uint64_t step_values_step_ns;

/* ---- one reader at a time ---- */

static bool step_values_try(void) {
    uint32_t free = 0;
    return __atomic_load_n(&values.on, __ATOMIC_ACQUIRE) &&
           __atomic_compare_exchange_n(&values.busy, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void step_values_done(void) { __atomic_store_n(&values.busy, 0, __ATOMIC_RELEASE); }

/* A reading takes about 50 us. */
static void step_values_wait(void) {
    uint32_t free = 0;
    while (!__atomic_compare_exchange_n(&values.busy, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        free = 0;
}

static void step_values_set_names(void) {
    const char *names[STEP_VALUES_OWN + WATCH_MAX];
    memcpy(names, step_values_names, sizeof step_values_names);
    for (size_t i = 0; i < values.watch.n; i++)
        names[STEP_VALUES_OWN + i] = values.watch.exprs[i].parts[0].name;
    pystack_frame_vars_set_names(&values.vars, names, STEP_VALUES_OWN + values.watch.n);
    memset(values.at_step, 0, sizeof values.at_step);
}

void step_values_begin(struct pystack *ps, const char *torch, void *(*current)(void)) {
    _Static_assert(STEP_VALUES_OWN + WATCH_MAX <= PYSTACK_FRAME_VARS_NAMES,
                   "there are more names than are remembered");
    step_values_wait();
    values.current = current;
    values.root[0] = '\0';
    pystack_frame_vars_init(&values.vars, ps, torch);
    step_values_set_names();
    __atomic_store_n(&values.on, 1, __ATOMIC_RELEASE);
    step_values_done();
}

void step_values_end(void) {
    __atomic_store_n(&values.on, 0, __ATOMIC_RELEASE);
    step_values_wait();
    step_values_done();
}

void step_values_watch(const struct watch *w, uint32_t set) {
    step_values_wait();
    values.watch = *w;
    values.set = set;
    step_values_set_names();
    step_values_done();
}

void step_values_in_child(void) {
    __atomic_store_n(&values.on, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&values.busy, 0, __ATOMIC_RELEASE);
}

void step_values_set_share(double share) {
    step_values_wait();
    if (share != values.pace.share)
        trace_pace_begin(&values.pace, share);
    step_values_done();
}

uint64_t step_values_skipped(void) { return __atomic_load_n(&step_values_left_out, __ATOMIC_RELAXED); }

double step_values_us(void) {
    uint64_t n = __atomic_load_n(&step_values_measured, __ATOMIC_RELAXED);
    uint64_t step_ns = __atomic_load_n(&step_values_step_ns, __ATOMIC_RELAXED);
    if (step_ns)
        return (double)step_ns / 1e3;
    return n ? (double)__atomic_load_n(&step_values_ns, __ATOMIC_RELAXED) / (double)n / 1e3 : NAN;
}

uint64_t step_values_count(void) { return __atomic_load_n(&step_values_n, __ATOMIC_RELAXED); }

/* ---- variables ---- */

static bool step_values_read(size_t frame, size_t name, struct pystack_scalar *out, bool *is_there) {
    uint64_t object = pystack_frame_vars_local(&values.vars, frame, name);
    *is_there = object != 0;
    return object && pystack_scalar_read(&values.vars.values, object, out) == 0;
}

/* The frame of torch itself that calls the optimizer's step; the number of frames if there is
 * none. */
static size_t step_values_find_wrapper(void) {
    static const char file[] = "optim/optimizer.py";
    for (size_t i = 0; i < values.vars.n; i++) {
        const struct pystack_frame_vars_code *c = values.vars.frames[i].code;
        size_t n = strlen(c->file), m = sizeof file - 1;
        if (n < m || strcmp(c->file + n - m, file) != 0 || strcmp(c->func, "wrapper") != 0)
            continue;
        memcpy(values.root, c->file, n - m);
        values.root[n - m] = '\0';
        return i;
    }
    return values.vars.n;
}

static bool step_values_is_torch(size_t frame) {
    size_t n = strlen(values.root);
    return n && strncmp(values.vars.frames[frame].code->file, values.root, n) == 0;
}

/* Find one of the names in a frame. A variable of the outer functions may be of the previous
 * step, unless it is a tensor of this one. 1 found, 0 not found; -1 if it cannot be read: then
 * no further search is made. */
static int step_values_find_in(size_t frame, size_t first, size_t last, bool outer, double *out) {
    struct pystack_scalar s;
    bool is_there;
    for (size_t name = first; name <= last; name++) {
        s.tensor = false;
        if (step_values_read(frame, name, &s, &is_there) && s.number && (s.tensor || !outer)) {
            *out = s.value;
            return 1;
        }
        if (is_there && (s.tensor || (name == first && !outer)))
            return -1;
    }
    return 0;
}

static bool step_values_find(size_t from, size_t first, size_t last, double *out) {
    size_t callers = 0;
    for (size_t i = from; i < values.vars.n && callers < STEP_VALUES_CALLERS; i++) {
        if (step_values_is_torch(i))
            continue;
        int found = step_values_find_in(i, first, last, callers++ > 0, out);
        if (found != 0)
            return found > 0;
    }
    return false;
}

static bool step_values_find_epoch(size_t from, int64_t *out) {
    struct pystack_scalar s;
    bool is_there;
    for (size_t i = from; i < values.vars.n; i++)
        if (!step_values_is_torch(i) && step_values_read(i, STEP_VALUES_EPOCH, &s, &is_there) && s.number &&
            !s.tensor && s.value == floor(s.value) && fabs(s.value) < 0x1p53) {
            *out = (int64_t)s.value;
            return true;
        }
    return false;
}

static uint64_t step_values_find_optimizer(size_t wrapper) {
    uint64_t optimizer = pystack_frame_vars_local(&values.vars, wrapper, STEP_VALUES_SELF);
    return optimizer ? optimizer : pystack_frame_vars_local(&values.vars, wrapper, STEP_VALUES_OBJ);
}

static bool step_values_find_lr(uint64_t optimizer, double *out) {
    struct pystack_scalar s;
    uint64_t lr = optimizer ? pystack_frame_vars_follow(&values.vars, optimizer, step_values_lr,
                                                        sizeof step_values_lr / sizeof step_values_lr[0])
                            : 0;
    if (!lr || pystack_scalar_read(&values.vars.values, lr, &s) != 0 || !s.number)
        return false;
    *out = s.value;
    return true;
}

/* ---- expressions ---- */

static void step_values_report_value(size_t expr, size_t frame, uint64_t object, uint64_t ns) {
    struct pystack_scalar s;
    struct spans_event e = {.ns = ns, .what = SPANS_VALUE};
    e.value = (struct spans_value){.expr = (uint32_t)expr, .set = values.set};
    e.value.is_known = pystack_scalar_read(&values.vars.values, object, &s) == 0;
    e.value.is_number = e.value.is_known && s.number;
    e.value.number = e.value.is_number ? s.value : 0;
    e.value.text = spans_put_text(values.vars.frames[frame].code->func, e.value.is_known ? s.text : "");
    if (e.value.text >= 0)
        spans_report(&e);
}

/* Evaluate the expression in the first of the frames of its function that has its variable. True
 * if there was a frame of the function. */
static bool step_values_report_expr(size_t expr, size_t from, size_t until, uint64_t ns) {
    const struct watch_expr *x = &values.watch.exprs[expr];
    bool met = false;
    for (size_t i = from; i < until; i++) {
        if (!pystack_frame_vars_is_func(&values.vars, i, x->func) || (!x->func[0] && step_values_is_torch(i)))
            continue;
        met = met || x->func[0];
        uint64_t object = pystack_frame_vars_local(&values.vars, i, STEP_VALUES_OWN + expr);
        if (!object)
            continue;
        object = pystack_frame_vars_follow(&values.vars, object, x->parts + 1, x->n - 1);
        if (object)
            step_values_report_value(expr, i, object, ns);
        return true;
    }
    return met;
}

/* ---- events ---- */

/* Lock out other readers. `*cpu_ns`: the thread's clock, which costs a tenth of a reading: 0 if
 * this one is not measured. */
static bool step_values_start(uint64_t ns, bool step, uint64_t *cpu_ns) {
    if (!step_values_try())
        return false;
    /* Watched values are reported at every step. */
    bool due = !step || trace_pace_is_due(&values.pace, ns) || values.watch.n > 0;
    *cpu_ns = due && (!step || trace_pace_is_measured(&values.pace)) ? clock_self_cpu_ns() : 0;
    uint64_t tstate = due ? (uint64_t)(uintptr_t)values.current() : 0;
    if (tstate && pystack_frame_vars_begin(&values.vars, tstate) > 0)
        return true;
    if (!due)
        __atomic_add_fetch(&step_values_left_out, 1, __ATOMIC_RELAXED);
    step_values_done();
    return false;
}

static void step_values_finish(uint64_t cpu_ns, bool step) {
    uint64_t took = cpu_ns ? clock_self_cpu_ns() - cpu_ns : 0;
    if (step) {
        trace_pace_took(&values.pace, took);
        __atomic_store_n(&step_values_step_ns, (uint64_t)values.pace.cost_ns, __ATOMIC_RELAXED);
    }
    step_values_done();
    __atomic_add_fetch(&step_values_ns, took, __ATOMIC_RELAXED);
    __atomic_add_fetch(&step_values_measured, cpu_ns != 0, __ATOMIC_RELAXED);
    __atomic_add_fetch(&step_values_n, 1, __ATOMIC_RELAXED);
}

void step_values_at_step(void) {
    struct spans_event e = {.ns = clock_mono_ns(), .what = SPANS_READING};
    struct pystack_scalar s;
    bool is_there = false;
    uint64_t cpu_ns;
    if (!step_values_start(e.ns, true, &cpu_ns))
        return;
    size_t wrapper = step_values_find_wrapper(), n = values.vars.n, from = wrapper < n ? wrapper + 1 : 0;
    if (wrapper < n) {
        e.reading.optimizer = step_values_find_optimizer(wrapper);
        e.reading.has_lr = step_values_find_lr(e.reading.optimizer, &e.reading.lr);
        e.reading.has_loss = step_values_read(wrapper, STEP_VALUES_OUT, &s, &is_there) && s.number;
        e.reading.loss = e.reading.has_loss ? s.value : 0;
        is_there = is_there && (e.reading.has_loss || s.tensor);
    }
    if (!is_there)
        e.reading.has_loss = step_values_find(from, STEP_VALUES_LOSS, STEP_VALUES_LOSS_LAST, &e.reading.loss);
    e.reading.has_grad_norm =
        step_values_find(from, STEP_VALUES_NORM, STEP_VALUES_NORM_LAST, &e.reading.grad_norm);
    e.reading.has_epoch = step_values_find_epoch(from, &e.reading.epoch);
    spans_report(&e);
    for (size_t i = 0; i < values.watch.n; i++)
        values.at_step[i] = step_values_report_expr(i, from, n, e.ns) || values.at_step[i];
    step_values_finish(cpu_ns, true);
}

void step_values_at_return(void) {
    uint64_t ns = clock_mono_ns(), cpu_ns;
    if (!step_values_start(ns, false, &cpu_ns))
        return;
    if (ns - values.second_ns > CLOCK_NS_PER_S) {
        values.second_ns = ns;
        values.reported = 0;
    }
    for (size_t i = 0; i < values.watch.n; i++)
        if (values.watch.exprs[i].func[0] && !values.at_step[i] &&
            values.reported < STEP_VALUES_RETURNS_PER_S)
            values.reported += step_values_report_expr(i, 0, 1, ns);
    step_values_finish(cpu_ns, false);
}
