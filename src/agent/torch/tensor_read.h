/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor_read: how many numbers of a tensor are not finite, and between what the others lie; asked by a hook, on the job's thread,
 * with the GIL.
 *
 * Of type torch.Tensor or Parameter itself, strided, of half, bfloat16, single or double precision. Numbers in the process's memory are
 * read there (numbers.h). Those of a GPU, and what cannot be read as it lies, are told by four operations of torch that draw no random
 * numbers, without autograd and without modes of the job: their results are read later, so nothing waits for the GPU. All that is
 * called is C of torch's own. What a class of the job may compute, and quantised, sparse, nested, wrapped, meta and complex tensors
 * are not looked at.
 */
#ifndef AGENT_TORCH_TENSOR_READ_H
#define AGENT_TORCH_TENSOR_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/python/pyapi.h"

/* What the unit "nonfinite" tells of torch, in its order. */
enum tensor_read_thing {
    TENSOR_READ_TENSOR = 0, /* types */
    TENSOR_READ_PARAMETER,
    TENSOR_READ_GUARD, /* while there is one, no __torch_function__ is called; NULL (None) as any of these: there is none */
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
    TENSOR_READ_CAPTURES, /* takes nothing: is a CUDA graph being captured? */
    TENSOR_READ_THINGS,
};

/* Numbers, of one tensor or several. */
struct tensor_numbers {
    uint64_t count, nan, inf;
    double min, max; /* of those that are finite; NAN: there are none, or they are not known */
};

enum tensor_read_found {
    TENSOR_READ_NO = 0, /* it cannot be looked at */
    TENSOR_READ_BEYOND, /* it is larger than what may be read yet */
    TENSOR_READ_NONE,   /* it has no numbers that could be other than finite */
    TENSOR_READ_NOW,
    TENSOR_READ_LATER, /* tensor_read_read will tell */
};

/* Take what the unit tells: the items of a tuple from `first` on. 0, or -1. Gives back what was held before. With the GIL, as all. */
int tensor_read_begin(const struct pyapi *api, struct pyapi_object *tuple, ssize_t first);

/* Let go of it. Nothing can be looked at any more. */
void tensor_read_end(void);

/* A guard of such a class of torch's, that is up; NULL: there is none (`of` may be NULL). And down again, whatever
 * is raised: that is kept. */
struct pyapi_object *tensor_read_raise(const struct pyapi *api, struct pyapi_object *of);
void tensor_read_lower(const struct pyapi *api, struct pyapi_object *guard);

/* A guard goes up before looks, and down after them. False: they are not, nothing may be looked at. */
bool tensor_read_enter(struct pyapi_object **token);
void tensor_read_leave(struct pyapi_object *token);

/* Look at a tensor. `*later`, if that is how it ends, owns a reference. No exception is left. At
 * most *bytes_left are read, which gets less. */
enum tensor_read_found tensor_read_numbers(struct pyapi_object *tensor, uint64_t *bytes_left,
                                           struct tensor_numbers *out, struct pyapi_object **later);

/* The sum of squares of its numbers that are finite, and how many are not: of those in the process's memory, as they lie. At most *numbers_left,
 * which gets less. NOW, BEYOND, or NO. */
enum tensor_read_found tensor_read_squares(struct pyapi_object *tensor, uint64_t *numbers_left, double *sum,
                                           uint64_t *bad);

/* Of one that was looked at later: 0, or -1. Waits for its device. `later` stays the caller's. */
int tensor_read_read(struct pyapi_object *later, struct tensor_numbers *out);

/* Its gradient: a new reference in `out`, NULL if it has none. 0, or -1: it cannot be read. Of a leaf alone, and on the thread that is about
 * to use it itself: see grads.h for what may happen on another. */
int tensor_read_gradient(struct pyapi_object *tensor, struct pyapi_object **out);

/* Of a class that is torch.Tensor, or derived from it. */
bool tensor_read_is_tensor(struct pyapi_object *o);

/* Add the numbers of another to `to`. */
void tensor_numbers_add(struct tensor_numbers *to, const struct tensor_numbers *more);

#endif
