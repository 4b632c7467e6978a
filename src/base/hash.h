/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash: 64-bit hashes for tables in memory. Not for input that an attacker can choose at
 * leisure, nor for files.
 *
 * Pure functions; any thread.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Spread the bits of `h` over the whole word (a multiply between two shifts, after Vigna's
 * splitmix64). */
uint64_t hash_mix(uint64_t h);

/* Hash `len` bytes, eight at a time. */
uint64_t hash_bytes(const void *data, size_t len);

/* FNV-1a (Fowler, Noll, Vo), byte by byte, from HASH_FNV_START on: for hashes of several parts,
 * and for those that users see (colours). */
#define HASH_FNV_START 0xcbf29ce484222325ULL
uint64_t hash_fnv(uint64_t h, const void *data, size_t len);

/* Hash a text and a mark of its end, so that "ab", "c" differs from "a", "bc". NULL is like "". */
uint64_t hash_fnv_text(uint64_t h, const char *text);

#endif
