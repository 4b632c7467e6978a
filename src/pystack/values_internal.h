/* SPDX-License-Identifier: Apache-2.0 */
/*
 * values_internal: shared by the files of values.
 */
#ifndef PYSTACK_VALUES_INTERNAL_H
#define PYSTACK_VALUES_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pystack/dicts.h"
#include "pystack/values.h"

/*
 * ---- values_text.c: the short text of a value ----
 *
 * Bounded, always valid UTF-8, written the way Python's repr() writes it. Pure functions over numbers and characters; nothing
 * there reads memory of the target.
 */

/* A text being written to the caller's buffer. What does not fit is replaced by "...". */
struct values_text {
    char *buf;
    size_t cap, len;
    bool cut; /* something was left out: nothing more is added */
};

/* Start with an empty text. `cap` is at least 8. */
void values_text_init(struct values_text *t, char *buf, size_t cap);

void values_text_add(struct values_text *t, const char *s);
/* UTF-8, not cut within a character */
void values_text_addn(struct values_text *t, const char *s, size_t n);
void values_text_addf(struct values_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A string in quotes, like repr(): the first `n` of `length` characters, as code points. */
void values_text_str(struct values_text *t, const uint32_t *chars, size_t n, uint64_t length);

/* The same for a bytes object. */
void values_text_bytes(struct values_text *t, const uint8_t *bytes, size_t n, uint64_t length);

/* A float, in the fewest digits that restore it; independent of the locale. */
void values_text_float(struct values_text *t, double v);
void values_text_float32(struct values_text *t, float v);

/* A whole number from its `n` digits of `bits` (at most 30) bits, least first; n at most
 * VALUES_TEXT_DIGITS. */
#define VALUES_TEXT_DIGITS 20
void values_text_int(struct values_text *t, const uint32_t *digits, size_t n, unsigned bits, bool negative);

/* ---- values_types.c, values_array.c ---- */

#define VALUES_HEAP_TYPE (1ULL << 9) /* Py_TPFLAGS_HEAPTYPE */

/* values_types.c: the type object at `addr`; the type of the object at `addr`. 0, or -1 if there
 * is none. */
int values_get_type(struct values *v, uint64_t addr, struct values_type *out);
int values_get_type_of(struct values *v, uint64_t addr, struct values_type *out);

/* A number as it is in memory. */
struct values_number {
    char kind;  /* f (d: a double), i, u, b: as struct values_type; */
    double f;   /* of f and d, */
    int64_t i;  /* of i, and of b, */
    uint64_t u; /* and of u */
};

/* values_array.c: a number of numpy; the one element of an ordinary CPU tensor. 0 or -1. */
int values_get_number(struct values *v, const struct values_type *type, uint64_t addr,
                      struct values_number *out);
int values_get_tensor(struct values *v, const struct values_type *type, uint64_t addr,
                      struct values_number *out);

/* values_array.c: as Python writes it; the double nearest to it. */
void values_text_number(struct values_text *t, const struct values_number *n);
double values_number_double(const struct values_number *n);

/* values_types.c: "module.Class" of a type. */
void values_put_type_name(struct values *v, const struct values_type *type, struct values_text *t);

/* values_array.c: arrays of numpy, its numbers, tensors of torch. 0, or -1 if it is not one of
 * them. */
int values_put_array(struct values *v, uint64_t addr, struct values_text *t);
int values_put_number(struct values *v, const struct values_type *type, uint64_t addr, struct values_text *t);
int values_put_tensor(struct values *v, const struct values_type *type, uint64_t addr, struct values_text *t);

#endif
