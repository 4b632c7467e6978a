/* SPDX-License-Identifier: Apache-2.0 */
/* table: see table.h. */
#include "base/table.h"

#include <stdlib.h>
#include <string.h>

#define TABLE_FIRST 64 /* slots */

/* Slots and hashes are one piece of memory: a hash for every two slots. */
static size_t table_bytes_of(size_t n_slots) { return (n_slots + n_slots / 2) * sizeof(uint32_t); }

static size_t table_slots_for(const struct table *t, size_t n) {
    size_t n_slots = t->n_slots ? t->n_slots : TABLE_FIRST;
    while (n_slots / 2 < n)
        n_slots *= 2;
    return n_slots;
}

static void table_put(struct table *t, uint32_t item, uint32_t hash) {
    size_t at = hash & (t->n_slots - 1);
    while (t->slots[at])
        at = (at + 1) & (t->n_slots - 1);
    t->slots[at] = item + 1;
    t->hashes[item] = hash;
    t->n++;
}

int table_reserve(struct table *t, size_t n) {
    if (n <= t->n_slots / 2)
        return 0;
    if (n > TABLE_MAX)
        return -1;
    struct table bigger = {.n_slots = table_slots_for(t, n)};
    bigger.slots = calloc(1, table_bytes_of(bigger.n_slots));
    if (!bigger.slots)
        return -1;
    bigger.hashes = bigger.slots + bigger.n_slots;
    for (size_t i = 0; i < t->n_slots; i++)
        if (t->slots[i])
            table_put(&bigger, t->slots[i] - 1, t->hashes[t->slots[i] - 1]);
    free(t->slots);
    *t = bigger;
    return 0;
}

size_t table_growth(const struct table *t) {
    return t->n < t->n_slots / 2 ? 0 : table_bytes_of(table_slots_for(t, t->n + 1));
}

int table_add(struct table *t, uint64_t hash, uint32_t item) {
    if (item >= TABLE_MAX || table_reserve(t, (size_t)item + 1) != 0)
        return -1;
    table_put(t, item, (uint32_t)hash);
    return 0;
}

size_t table_bytes(const struct table *t) { return table_bytes_of(t->n_slots); }

void table_clear(struct table *t) {
    if (t->n)
        memset(t->slots, 0, t->n_slots * sizeof *t->slots);
    t->n = 0;
}

void table_fini(struct table *t) {
    free(t->slots);
    *t = (struct table){.n = 0};
}
