/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dicts: entries of dict objects and attributes of instances, read from memory.
 *
 * Layouts: Objects/dict-common.h (up to 3.10), Include/internal/pycore_dict.h and
 * pycore_object.h (3.11 on). The number of entries read is bounded. A dict that changes during
 * the read may give a stale entry, never a fault.
 */
#ifndef PYSTACK_DICTS_H
#define PYSTACK_DICTS_H

#include <stdint.h>

#include "pystack/reader.h"

#ifndef PYSTACK_DICT_MAX       /* fewer for fuzzers: mk/test.mk */
#define PYSTACK_DICT_MAX 65536 /* entries read of one dict */
#endif

/* Addresses of a dict's entries. */
struct pystack_dict_table {
    uint64_t entries;
    uint32_t n;
    uint32_t entry_size, key_at, value_at;
    uint64_t values; /* array of pointers to the values; 0: they are beside the keys */
};

/* 0, or -1 if it is not a readable dict. */
int pystack_dict_open(struct pystack_reader *r, uint64_t dict, struct pystack_dict_table *t);

/* Call `fn` with each entry that has a value until it returns non-zero. Returns that value, 0 at
 * the end, or -1 if it is not a readable dict. `index` is the entry's place. */
int pystack_dict_each(struct pystack_reader *r, uint64_t dict,
                      int (*fn)(struct pystack_reader *r, uint32_t index, uint64_t key, uint64_t value,
                                void *arg),
                      void *arg);

/* Value of the key `name`, of at most 255 bytes. `*hint` is the place where it was last found: tried
 * first, updated; NULL: the reader remembers it. 0 or -1. */
int pystack_dict_find(struct pystack_reader *r, uint64_t dict, const char *name, uint32_t *hint,
                      uint64_t *value);

/* Attribute `name` of the instance at `object`, from its own attributes (not its class's). 0 or
 * -1. */
int pystack_attr_find(struct pystack_reader *r, uint64_t object, const char *name, uint32_t *hint,
                      uint64_t *value);

/* Call `fn` with each of its attributes, as pystack_dict_each does. */
int pystack_attr_each(struct pystack_reader *r, uint64_t object,
                      int (*fn)(struct pystack_reader *r, uint32_t index, uint64_t key, uint64_t value,
                                void *arg),
                      void *arg);

#endif
