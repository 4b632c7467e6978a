/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scalars: what an object is, if it is one number or text, exactly: numbers and strings of CPython, numbers of numpy, tensors
 * of one element on the CPU. Read from memory, as values.h: nothing of the job's is called, no operation of torch runs.
 */
#ifndef PYSTACK_SCALARS_H
#define PYSTACK_SCALARS_H

#include "pystack/values.h"

struct pystack_scalar {
    bool number; /* `value` is one; NaN and infinity may be it */
    bool tensor; /* of a tensor */
    double value;
    char text[VALUES_TEXT_MAX]; /* always */
};

/* 0, or -1: it is none of these, or cannot be read. */
int pystack_scalar_read(struct values *v, uint64_t addr, struct pystack_scalar *out);

/* Is it known how tensors of this version of torch lie in memory? Those of others are no number. */
bool pystack_scalar_knows_torch(const char *version);

#endif
