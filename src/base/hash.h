/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash: 64-bit hashes for tables in memory. Not for anything an opponent chooses at leisure, nor for files.
 *
 * Pure functions; any thread.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Spread the bits of `h` over the whole word (a multiply between two shifts, after Vigna's splitmix64). */
uint64_t hash_mix(uint64_t h);

/* Of `len` bytes, eight at a time. */
uint64_t hash_bytes(const void *data, size_t len);

#endif
