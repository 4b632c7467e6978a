/* SPDX-License-Identifier: Apache-2.0 */
/*
 * values_internal: what the files of values share.
 */
#ifndef PYSTACK_VALUES_INTERNAL_H
#define PYSTACK_VALUES_INTERNAL_H

#include "pystack/dicts.h"
#include "pystack/values.h"
#include "pystack/values_text.h"

#define VALUES_HEAP_TYPE (1ULL << 9) /* Py_TPFLAGS_HEAPTYPE */

/* values_types.c: the type object at `addr`; the type of the object at `addr`. 0, or -1 when there is none. */
int values_get_type(struct values *v, uint64_t addr, struct values_type *out);
int values_get_type_of(struct values *v, uint64_t addr, struct values_type *out);

/* A number as it lies in memory. */
struct values_number {
    char kind;  /* f (d: a double), i, u, b: as struct values_type; */
    double f;   /* of f and d, */
    int64_t i;  /* of i, and of b, */
    uint64_t u; /* and of u */
};

/* values_array.c: a number of numpy's; the one element of a tensor on the CPU that is what it seems. 0 or -1. */
int values_get_number(struct values *v, const struct values_type *type, uint64_t addr,
                      struct values_number *out);
int values_get_tensor(struct values *v, const struct values_type *type, uint64_t addr,
                      struct values_number *out);

/* values_array.c: as Python writes it; the double nearest to it. */
void values_text_number(struct values_text *t, const struct values_number *n);
double values_number_double(const struct values_number *n);

/* values_types.c: "module.Class" of a type. */
void values_put_type_name(struct values *v, const struct values_type *type, struct values_text *t);

/* values_array.c: arrays of numpy, its numbers, tensors of torch. 0, or -1 when it is not what it seems. */
int values_put_array(struct values *v, uint64_t addr, struct values_text *t);
int values_put_number(struct values *v, const struct values_type *type, uint64_t addr, struct values_text *t);
int values_put_tensor(struct values *v, const struct values_type *type, uint64_t addr, struct values_text *t);

#endif
