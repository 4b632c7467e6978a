/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader: the memory of one interpreter and its offsets; strings, integers and line tables.
 *
 * All bytes are foreign and may change during the read: lengths are bounded, nothing is followed
 * without a read that can fail. One thread at a time.
 */
#ifndef PYSTACK_READER_H
#define PYSTACK_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "base/mem.h"
#include "pystack/offsets.h"

/* Structs with several wanted fields are read into a buffer of this size; the fields lie within
 * it. */
#define PYSTACK_STRUCT_MAX 1024

#define PYSTACK_PLACES 256

struct pystack_reader {
    struct mem mem;
    struct pystack_offsets off;
    /* where a name was last found in a dict, by its hash; always checked */
    uint32_t places[PYSTACK_PLACES];
};

/* A field of a struct that was read as bytes. */
static inline uint64_t pystack_get_u64(const uint8_t *bytes, int32_t at) {
    uint64_t v;
    memcpy(&v, bytes + at, sizeof v);
    return v;
}

static inline int32_t pystack_get_i32(const uint8_t *bytes, int32_t at) {
    int32_t v;
    memcpy(&v, bytes + at, sizeof v);
    return v;
}

/* True if a pointer to an object can have this value (x86-64: canonical, of user space,
 * aligned). */
static inline int pystack_is_pointer(uint64_t p) { return p >= 4096 && p < (1ULL << 47) && p % 8 == 0; }

/* The field at `addr + at`; 0 or -1. */
int pystack_read_u64_at(struct pystack_reader *r, uint64_t addr, int32_t at, uint64_t *out);

/* Text of the str object at `addr` as UTF-8, NUL-terminated and cut to `cap` at a character.
 * Lone surrogates and NUL become U+FFFD. Returns its length, or -1 if there is no string.
 * Layout: Include/cpython/unicodeobject.h. */
ssize_t pystack_read_str(struct pystack_reader *r, uint64_t addr, char *buf, size_t cap);

/* True if the str object at `addr` is this text, in UTF-8, of at most 255 bytes. */
bool pystack_str_is(struct pystack_reader *r, uint64_t addr, const char *text);

/* The first `cap` characters of the str object at `addr`, unchanged, and the number of all.
 * Returns how many were read, or -1. */
ssize_t pystack_read_chars(struct pystack_reader *r, uint64_t addr, uint32_t *chars, size_t cap,
                           uint64_t *length);

/* Value of the non-negative int object at `addr`, up to 64 bits. 0 or -1. Layout:
 * Include/cpython/longintrepr.h. */
int pystack_read_int(struct pystack_reader *r, uint64_t addr, uint64_t *out);

#endif
