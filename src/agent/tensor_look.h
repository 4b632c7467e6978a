/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor_look: how many numbers of a tensor are not finite, and between what the others lie; asked by a hook, on the job's thread,
 * with the GIL.
 *
 * Of type torch.Tensor or Parameter itself, strided, of half, bfloat16, single or double precision. Numbers in the process's memory are
 * read there (numbers.h). Those of a GPU, and what cannot be read as it lies, are told by four operations of torch that draw no random
 * numbers, without autograd and without modes of the job: their results are read later, so nothing waits for the GPU. All that is
 * called is C of torch's own. What a class of the job may compute, and quantised, sparse, nested, wrapped, meta and complex tensors
 * are not looked at.
 */
#ifndef AGENT_TENSOR_LOOK_H
#define AGENT_TENSOR_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/pyapi.h"

/* What the unit "nonfinite" tells of torch, in its order. */
enum tensor_look_thing {
    TENSOR_LOOK_TENSOR = 0, /* types */
    TENSOR_LOOK_PARAMETER,
    TENSOR_LOOK_GUARD, /* while there is one, no __torch_function__ is called; NULL (None) as any of these: there is none */
    TENSOR_LOOK_DISPATCH,  /* no __torch_dispatch__ of a mode */
    TENSOR_LOOK_STRIDED,   /* torch.strided */
    TENSOR_LOOK_FLOATS,    /* a tuple: float16, bfloat16, float32, float64 */
    TENSOR_LOOK_GET_DTYPE, /* from here on callables that take a tensor */
    TENSOR_LOOK_GET_LAYOUT,
    TENSOR_LOOK_IS_CPU,
    TENSOR_LOOK_IS_CUDA,
    TENSOR_LOOK_IS_NESTED,
    TENSOR_LOOK_IS_NEG,
    TENSOR_LOOK_GET_SHAPE,
    TENSOR_LOOK_STRIDE,
    TENSOR_LOOK_OFFSET,
    TENSOR_LOOK_ADDRESS, /* of its storage */
    TENSOR_LOOK_POINTER, /* of its first number */
    TENSOR_LOOK_GET_VERSION,
    TENSOR_LOOK_GET_GRAD,
    TENSOR_LOOK_DETACH,
    TENSOR_LOOK_AMINMAX,
    TENSOR_LOOK_ISNAN,
    TENSOR_LOOK_ISINF,
    TENSOR_LOOK_SUM,
    TENSOR_LOOK_CAPTURES, /* takes nothing: is a CUDA graph being captured? */
    TENSOR_LOOK_THINGS,
};

/* Numbers, of one tensor or several. */
struct tensor_numbers {
    uint64_t count, nan, inf;
    double min, max; /* of those that are finite; NAN: there are none, or they are not known */
};

enum tensor_look_found {
    TENSOR_LOOK_NO = 0, /* it cannot be looked at */
    TENSOR_LOOK_BEYOND, /* it is larger than what may be read yet */
    TENSOR_LOOK_NONE,   /* it has no numbers that could be other than finite */
    TENSOR_LOOK_NOW,
    TENSOR_LOOK_LATER, /* tensor_look_read will tell */
};

/* Take what the unit tells: the items of a tuple from `first` on. 0, or -1. Gives back what was held before. With the GIL, as all. */
int tensor_look_begin(const struct pyapi *api, struct pyapi_object *tuple, ssize_t first);

/* Let go of it. Nothing can be looked at any more. */
void tensor_look_end(void);

/* A guard of such a class of torch's, that is up; NULL: there is none (`of` may be NULL). And down again, whatever
 * is raised: that is kept. */
struct pyapi_object *tensor_look_raise(const struct pyapi *api, struct pyapi_object *of);
void tensor_look_lower(const struct pyapi *api, struct pyapi_object *guard);

/* A guard goes up before looks, and down after them. False: they are not, nothing may be looked at. */
bool tensor_look_enter(struct pyapi_object **token);
void tensor_look_leave(struct pyapi_object *token);

/* Look at a tensor. `*later`, if that is how it ends, owns a reference. No exception is left. At
 * most *bytes_left are read, which gets less. */
enum tensor_look_found tensor_look(struct pyapi_object *tensor, uint64_t *bytes_left,
                                   struct tensor_numbers *out, struct pyapi_object **later);

/* The sum of squares of its numbers that are finite, and how many are not: of those in the process's memory, as they lie. At most *numbers_left,
 * which gets less. NOW, BEYOND, or NO. */
enum tensor_look_found tensor_look_squares(struct pyapi_object *tensor, uint64_t *numbers_left, double *sum,
                                           uint64_t *bad);

/* Of one that was looked at later: 0, or -1. Waits for its device. `later` stays the caller's. */
int tensor_look_read(struct pyapi_object *later, struct tensor_numbers *out);

/* Its gradient: a new reference in `out`, NULL if it has none. 0, or -1: it cannot be read. Of a leaf alone, and on the thread that is about
 * to use it itself: see grads.h for what may happen on another. */
int tensor_look_gradient(struct pyapi_object *tensor, struct pyapi_object **out);

/* Of a class that is torch.Tensor, or derived from it. */
bool tensor_look_is_tensor(struct pyapi_object *o);

/* Add the numbers of another to `to`. */
void tensor_numbers_add(struct tensor_numbers *to, const struct tensor_numbers *more);

#endif
