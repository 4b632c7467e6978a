/* SPDX-License-Identifier: Apache-2.0 */
/*
 * values: an object as a short text, read from memory. No Python is run: no __repr__ of the job
 * is called.
 *
 * Known kinds of objects are recognised by their type: the flags that CPython sets for the
 * layout of its own types and of types derived from them, and the names of types that are not
 * made in Python (which the job cannot forge). Everything else is `<module.Class object>`. Every
 * length, depth and number of reads is bounded. A value that changes during the read may mix two
 * moments, but nothing faults and nothing is followed for long. Belongs to one pystack, used by
 * its thread.
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

/* How objects of a type are read. */
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
    bool heap;                  /* made at run time */
    bool lasts;                 /* as long as its library: torch.Tensor does too */
    char name[VALUES_TYPE_MAX]; /* tp_name */
};

struct values {
    struct pystack_reader *reader;
    pid_t pid;        /* the process whose torch version counts; 0 ourselves; -1 none */
    bool torch_asked; /* its version was looked up */
    int torch_major, torch_minor;
    /* types made by the program are read each time: another may have taken the address */
    bool doubts;
    unsigned reads_left; /* objects that may still be read for this text */
    struct values_type types[VALUES_TYPES];
};

/* Begin; types are believed until the next call of this function. */
void values_begin(struct values *v, struct pystack_reader *r, pid_t pid);

/* Read all types again. */
void values_forget(struct values *v);

/* Set the version of torch, for a caller that may not look it up; "" none. */
void values_set_torch(struct values *v, const char *version);

/* True if the memory layout of tensors of that version is known. */
bool values_knows_torch(const struct values *v);

/* Type and text of the object at `addr`. The name of its type goes to `type` (VALUES_TYPE_MAX
 * bytes), its text to `text` (VALUES_TEXT_MAX bytes). 0, or -1 if there is no object. */
int values_read(struct values *v, uint64_t addr, char *type, char *text);

/* True if the text of values_read contains more than the type. `*made`: the type was made at run
 * time. */
bool values_is_informative(struct values *v, uint64_t addr, const char *text, bool *made);

/* The kind of the object at `addr`; VALUES_UNKNOWN for any other and for none. */
enum values_kind values_kind_of(struct values *v, uint64_t addr);

#endif
