/* SPDX-License-Identifier: Apache-2.0 */
/* grad_norms: see grad_norms.h. */
#include "agent/torch/grad_norms.h"

#include <math.h>
#include <stdbool.h>

#include "agent/torch/param_groups.h"
#include "agent/torch/spans.h"
#include "agent/torch/tensor_read.h"
#include "base/clock.h"

typedef struct pyapi_object object;

/* Written with the GIL. */
static struct {
    struct pyapi api;
    bool begun;
    struct grad_norm found[GRAD_NORMS_MAX];
    size_t n;
    uint64_t left;  /* numbers that may still be read */
    bool is_all;    /* of the current optimizer: each gradient was read so far */
    size_t summed;  /* the number of those that were read */
    double squares; /* and the sum of their squares */
    uint64_t bad;
} norms;

void grad_norms_clear(void) {
    norms.n = 0;
    norms.left = GRAD_NORMS_NUMBERS;
}

size_t grad_norms_get(const struct grad_norm **out) {
    *out = norms.found;
    return norms.n;
}

void grad_norms_begin(const struct pyapi *api, object *tuple, ssize_t first) {
    norms.api = *api;
    norms.begun = tensor_read_begin(api, tuple, first) == 0;
}

void grad_norms_end(void) {
    if (norms.begun)
        tensor_read_end();
    norms.begun = false;
}

static void norms_take(void *ctx, object *parameter, int32_t group, int32_t index) {
    struct grad_norm one = {.parameter = (uint64_t)(uintptr_t)parameter};
    (void)ctx;
    (void)group;
    (void)index;
    object *gradient;
    if (norms.n == GRAD_NORMS_MAX || !tensor_read_is_tensor(parameter) ||
        tensor_read_gradient(parameter, &gradient) != 0) {
        norms.is_all = false;
        return;
    }
    if (!gradient)
        return;
    if (tensor_read_squares(gradient, &norms.left, &one.squares, &one.bad) == TENSOR_READ_NOW) {
        norms.found[norms.n++] = one;
        norms.summed++;
        norms.squares += one.squares;
        norms.bad += one.bad;
    } else {
        norms.is_all = false;
    }
    norms.api.Py_DecRef(gradient);
}

/* Add the norm of all of them to the current step. */
static void norms_report(object *optimizer) {
    struct spans_event e = {.ns = clock_mono_ns(), .what = SPANS_READING};
    e.reading.optimizer = (uint64_t)(uintptr_t)optimizer;
    e.reading.has_read_norm = true;
    e.reading.read_norm = norms.bad ? (double)INFINITY : sqrt(norms.squares);
    spans_report(&e);
}

void grad_norms_on_optimizer(object *optimizer) {
    object *guard;
    if (!norms.begun || !tensor_read_enter(&guard))
        return;
    norms.is_all = true;
    norms.summed = 0;
    norms.squares = 0;
    norms.bad = 0;
    norms.is_all = param_groups_each(&norms.api, optimizer, norms_take, NULL) && norms.is_all;
    tensor_read_leave(guard);
    if (norms.is_all && norms.summed)
        norms_report(optimizer);
}
