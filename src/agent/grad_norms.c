/* SPDX-License-Identifier: Apache-2.0 */
/* grad_norms: see grad_norms.h. */
#include "agent/grad_norms.h"

#include <stdbool.h>

#include "agent/param_groups.h"
#include "agent/tensor_look.h"

typedef struct pyapi_object object;

/* Written with the GIL. */
static struct {
    struct pyapi api;
    bool begun;
    struct grad_norm found[GRAD_NORMS_MAX];
    size_t n;
    uint64_t left; /* numbers that may be read yet */
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
    norms.begun = tensor_look_begin(api, tuple, first) == 0;
}

void grad_norms_end(void) {
    if (norms.begun)
        tensor_look_end();
    norms.begun = false;
}

static void norms_take(void *ctx, object *parameter, int32_t group, int32_t index) {
    struct grad_norm one = {.parameter = (uint64_t)(uintptr_t)parameter};
    (void)ctx;
    (void)group;
    (void)index;
    if (norms.n == GRAD_NORMS_MAX || !tensor_look_is_tensor(parameter))
        return;
    object *gradient = tensor_look_gradient(parameter);
    if (!gradient)
        return;
    if (tensor_look_squares(gradient, &norms.left, &one.squares, &one.bad) == TENSOR_LOOK_NOW)
        norms.found[norms.n++] = one;
    norms.api.Py_DecRef(gradient);
}

void grad_norms_on_optimizer(object *optimizer) {
    object *guard;
    if (!norms.begun || !tensor_look_enter(&guard))
        return;
    param_groups_each(&norms.api, optimizer, norms_take, NULL);
    tensor_look_leave(guard);
}
