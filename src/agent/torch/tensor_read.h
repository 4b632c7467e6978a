/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor_read: the number of a tensor's numbers that are not finite, and the range of the
 * others; called by a hook, on the job's thread, with the GIL.
 *
 * Only for tensors of type torch.Tensor or Parameter itself, strided, of half, bfloat16, single
 * or double precision. Numbers in the process's memory are read there (numbers.h). For numbers
 * on a GPU, and in layouts that cannot be read, four operations of torch that draw no random
 * numbers are called, without autograd and without modes of the job: their results are read
 * later, so nothing waits for the GPU. Only C functions of torch itself are called. Tensors that
 * a class of the job may compute, and quantised, sparse, nested, wrapped, meta and complex
 * tensors are not read.
 */
#ifndef AGENT_TORCH_TENSOR_READ_H
#define AGENT_TORCH_TENSOR_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/python/pyapi.h"

/* The parts of torch from the unit "nonfinite", in its order. */
enum tensor_read_thing {
    TENSOR_READ_TENSOR = 0, /* types */
    TENSOR_READ_PARAMETER,
    /* while there is one, no __torch_function__ is called; NULL (None), as for any of these, if
     * torch has none */
    TENSOR_READ_GUARD,
    TENSOR_READ_DISPATCH,  /* no __torch_dispatch__ of a mode */
    TENSOR_READ_STRIDED,   /* torch.strided */
    TENSOR_READ_FLOATS,    /* a tuple: float16, bfloat16, float32, float64 */
    TENSOR_READ_GET_DTYPE, /* from here on callables that take a tensor */
    TENSOR_READ_GET_LAYOUT,
    TENSOR_READ_IS_CPU,
    TENSOR_READ_IS_CUDA,
    TENSOR_READ_IS_NESTED,
    TENSOR_READ_IS_NEG,
    TENSOR_READ_GET_SHAPE,
    TENSOR_READ_STRIDE,
    TENSOR_READ_OFFSET,
    TENSOR_READ_ADDRESS, /* of its storage */
    TENSOR_READ_POINTER, /* of its first number */
    TENSOR_READ_GET_VERSION,
    TENSOR_READ_GET_GRAD,
    TENSOR_READ_DETACH,
    TENSOR_READ_AMINMAX,
    TENSOR_READ_ISNAN,
    TENSOR_READ_ISINF,
    TENSOR_READ_SUM,
    TENSOR_READ_CAPTURES, /* takes no argument: returns whether a CUDA graph is being captured */
    TENSOR_READ_THINGS,
};

/* Numbers, of one tensor or several. */
struct tensor_numbers {
    uint64_t count, nan, inf;
    double min, max; /* of the finite ones; NAN if there are none, or if they are unknown */
};

enum tensor_read_found {
    TENSOR_READ_NO = 0, /* it cannot be read */
    TENSOR_READ_BEYOND, /* it is larger than the rest of the limit */
    TENSOR_READ_NONE,   /* its numbers are always finite */
    TENSOR_READ_NOW,
    TENSOR_READ_LATER, /* tensor_read_read will return them */
};

/* Take the parts of torch from the unit: the items of a tuple from `first` on. 0, or -1.
 * Releases the previous ones. With the GIL, like all functions here. */
int tensor_read_begin(const struct pyapi *api, struct pyapi_object *tuple, ssize_t first);

/* Release them. Nothing can be read any more. */
void tensor_read_end(void);

/* Activate a guard of such a class of torch; NULL if there is none (`of` may be NULL). And
 * deactivate it, keeping a raised exception. */
struct pyapi_object *tensor_read_raise(const struct pyapi *api, struct pyapi_object *of);
void tensor_read_lower(const struct pyapi *api, struct pyapi_object *guard);

/* Activate a guard before reading tensors, and deactivate it afterwards. False: it is not
 * active, nothing may be read. */
bool tensor_read_enter(struct pyapi_object **token);
void tensor_read_leave(struct pyapi_object *token);

/* Read a tensor. `*later`, if that is the result, owns a reference. No exception is left. At
 * most *bytes_left are read, which is reduced. `passes`: it may be met again as the argument of
 * another module; not a parameter's gradient, because it is remembered by a weak reference, with
 * which torch.utils.swap_tensors would fail in the job. */
enum tensor_read_found tensor_read_numbers(struct pyapi_object *tensor, bool passes, uint64_t *bytes_left,
                                           struct tensor_numbers *out, struct pyapi_object **later);

/* The sum of squares of its finite numbers, and the number of others, for numbers in the
 * process's memory. At most *numbers_left, which is reduced. NOW, BEYOND, or NO. */
enum tensor_read_found tensor_read_squares(struct pyapi_object *tensor, uint64_t *numbers_left, double *sum,
                                           uint64_t *bad);

/* The result that arrives later: 0, or -1. Waits for its device. `later` stays the caller's. */
int tensor_read_read(struct pyapi_object *later, struct tensor_numbers *out);

/* Its gradient: a new reference in `out`, NULL if it has none. 0, or -1: it cannot be read. For
 * a leaf only, and on the thread that is about to use it itself: see grads.h for the danger on
 * another. */
int tensor_read_gradient(struct pyapi_object *tensor, struct pyapi_object **out);

/* True if its class is torch.Tensor, or derived from it. */
bool tensor_read_is_tensor(struct pyapi_object *o);

/* Add the numbers of another to `to`. */
void tensor_numbers_add(struct tensor_numbers *to, const struct tensor_numbers *more);

#endif
