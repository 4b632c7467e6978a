/* SPDX-License-Identifier: Apache-2.0 */
/*
 * values: what an object is, as a short text, read from memory. No Python is run: no __repr__ of the job's is called.
 *
 * Known kinds of objects are told by their type: the flags that CPython sets for the layout of its own types and what is
 * derived from them, and the names of types that are not made in Python (those the job cannot make up). Everything else is
 * `<module.Class object>`. Every length, depth and number of reads is bounded; a value that changes while it is read may
 * mix two moments, but nothing faults and nothing is followed for long. Belongs to one pystack, used by its thread.
 */
#ifndef PYSTACK_VALUES_H
#define PYSTACK_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "pystack/reader.h"

#define VALUES_TEXT_MAX 200 /* bytes of a text, with its NUL */
#define VALUES_TYPE_MAX 64  /* bytes of the name of a type */
#define VALUES_TYPES 256    /* types that are remembered */

/* What objects of a type are read as. */
enum values_kind {
    VALUES_UNKNOWN = 0,
    VALUES_NONE,
    VALUES_ELLIPSIS,
    VALUES_BOOL,
    VALUES_INT,
    VALUES_FLOAT,
    VALUES_STR,
    VALUES_BYTES,
    VALUES_TUPLE,
    VALUES_LIST,
    VALUES_DICT,
    VALUES_SET,
    VALUES_EXCEPTION,
    VALUES_TYPE,
    VALUES_FUNCTION,
    VALUES_METHOD,
    VALUES_BUILTIN,
    VALUES_MODULE,
    VALUES_CELL,
    VALUES_NUMPY_ARRAY,
    VALUES_NUMPY_NUMBER,
    VALUES_TENSOR,
};

/* A type object. */
struct values_type {
    uint64_t addr; /* 0: free */
    uint64_t basicsize, dict, base;
    enum values_kind kind;
    char number;                /* VALUES_NUMPY_NUMBER: f signed i, u unsigned, b bool */
    uint8_t width;              /* and its bytes */
    bool heap;                  /* made while the program ran */
    bool lasts;                 /* as long as the library that has it: torch.Tensor does too */
    char name[VALUES_TYPE_MAX]; /* tp_name */
};

struct values {
    struct pystack_reader *reader;
    pid_t pid;        /* whose version of torch counts; 0 ourselves; -1 nobody's */
    bool torch_asked; /* its version was looked for */
    int torch_major, torch_minor;
    bool doubts; /* types that the program makes are looked at each time: another may be where one was */
    unsigned reads_left; /* objects that may still be looked at for this text */
    struct values_type types[VALUES_TYPES];
};

/* Begin; types are believed until the next call of this function. */
void values_begin(struct values *v, struct pystack_reader *r, pid_t pid);

/* Types are looked at anew. */
void values_forget(struct values *v);

/* The version of torch, for one who must not look for it; "" there is none. */
void values_set_torch(struct values *v, const char *version);

/* Is it known how tensors of the version that was set lie in memory? */
bool values_knows_torch(const struct values *v);

/* Type and text of the object at `addr`. The name of its type goes to `type` (VALUES_TYPE_MAX bytes), its text to `text`
 * (VALUES_TEXT_MAX bytes). 0, or -1 when there is no object. */
int values_read(struct values *v, uint64_t addr, char *type, char *text);

/* Does a text that values_read gave say more than the type? `*made`: the type was made while the program ran. */
bool values_is_informative(struct values *v, uint64_t addr, const char *text, bool *made);

/* The kind of the object at `addr`; VALUES_UNKNOWN for any other and for none. */
enum values_kind values_kind_of(struct values *v, uint64_t addr);

#endif
