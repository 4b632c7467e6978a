/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scalars: the exact value of an object that is one number or text: numbers and strings of
 * CPython, numbers of numpy, tensors of one element on the CPU. Read from memory, like values.h:
 * nothing of the job is called, no operation of torch runs.
 */
#ifndef PYSTACK_SCALARS_H
#define PYSTACK_SCALARS_H

#include "pystack/values.h"

struct pystack_scalar {
    bool number; /* `value` is valid; it may be NaN or infinity */
    bool tensor; /* of a tensor */
    double value;
    char text[VALUES_TEXT_MAX]; /* always */
};

/* 0, or -1 if it is none of these, or cannot be read. */
int pystack_scalar_read(struct values *v, uint64_t addr, struct pystack_scalar *out);

/* True if the memory layout of tensors of this torch version is known. Other tensors have no
 * number. */
bool pystack_scalar_knows_torch(const char *version);

#endif
