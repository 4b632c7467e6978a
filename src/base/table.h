/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table: the hash table: from the hash of a key to the number of an item, which its owner keeps in an array.
 *
 * Open addressing with linear probing; the slots are a power of two, and at most half of them are taken. A slot is the number alone:
 * what is searched through stays small. The low 32 bits of the hash count. Hashes lie beside, for growing. What a key is and when two are equal is for the owner to say:
 *
 *     size_t at = TABLE_BEGIN;
 *     for (uint32_t i; (i = table_next(&t, hash, &at)) != TABLE_NONE;)
 *         if (items[i].key == key)
 *             return i;
 *
 * Items are only added, or all forgotten. A zeroed struct is an empty table. Any thread; whoever owns a table uses it.
 */
#ifndef BASE_TABLE_H
#define BASE_TABLE_H

#include <stddef.h>
#include <stdint.h>

#define TABLE_NONE UINT32_MAX
#define TABLE_BEGIN SIZE_MAX
#define TABLE_MAX ((size_t)1 << 30) /* items */

struct table {
    uint32_t *slots;  /* number of an item and one more; 0: free */
    uint32_t *hashes; /* of each item */
    size_t n_slots, n;
};

/* The next item whose key may have this hash, after the one that was found at `*at`
 * (TABLE_BEGIN: the first); TABLE_NONE: no other may. */
static inline uint32_t table_next(const struct table *t, uint64_t hash, size_t *at) {
    size_t mask = t->n_slots - 1, i = (*at == TABLE_BEGIN ? (uint32_t)hash : *at) & mask;
    *at = i + 1;
    return t->n_slots ? t->slots[i] - 1 : TABLE_NONE;
}

/* Have room for `n` items, numbered below that. 0, or -1 without memory or with more than
 * TABLE_MAX: then all is as it was. */
int table_reserve(struct table *t, size_t n);

/* Bytes that the next table_add allocates for item number `n`; 0: there is room. */
size_t table_growth(const struct table *t);

/* Put an item in, which is not there yet. Numbers count up from 0, with gaps or without. 0, or
 * -1 as table_reserve; it cannot fail where that made room. */
int table_add(struct table *t, uint64_t hash, uint32_t item);

/* Bytes that it takes. */
size_t table_bytes(const struct table *t);

/* Forget all items; the room stays. */
void table_clear(struct table *t);

/* Forget all items and free the room. */
void table_fini(struct table *t);

#endif
