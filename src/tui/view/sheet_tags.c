/* SPDX-License-Identifier: Apache-2.0 */
/* sheet_tags: tagged rows of a result in the one that takes its place: rows are the same when all their values are. */
#include <stdlib.h>

#include "base/hash.h"
#include "tui/view/sheet.h"

/* A tagged row that is still to be found. */
struct sheet_tagged {
    uint64_t hash;
    bool found;
};

static uint64_t sheet_hash_row(const struct result *r, size_t row) {
    uint64_t h = 0;
    for (size_t i = 0; i < r->n_columns; i++) {
        enum sql_kind kind = result_kind(r, row, i);
        const union result_value *v = &r->columns[i].values[row];
        uint64_t value = (uint64_t)kind << 60;
        if (kind == SQL_INTEGER)
            value ^= hash_bytes(&v->i, sizeof v->i);
        else if (kind == SQL_REAL)
            value ^= hash_bytes(&v->f, sizeof v->f);
        else if (kind != SQL_NULL)
            value ^= hash_bytes(v->s, result_length(r, row, i));
        h = hash_mix(h ^ value);
    }
    return h;
}

static int sheet_compare_tagged(const void *a, const void *b) {
    uint64_t x = ((const struct sheet_tagged *)a)->hash, y = ((const struct sheet_tagged *)b)->hash;
    return (x > y) - (x < y);
}

/* The first one with that hash that was not found yet; NULL none. */
static struct sheet_tagged *sheet_find_tagged(struct sheet_tagged *all, size_t n, uint64_t hash) {
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (all[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < n && all[low].hash == hash; low++)
        if (!all[low].found)
            return &all[low];
    return NULL;
}

void sheet_take_tags(struct sheet *to, const struct sheet *from) {
    size_t n = from->tags.n, left = n;
    struct sheet_tagged *all = n ? calloc(n, sizeof *all) : NULL;
    if (!all)
        return;
    for (size_t i = 0; i < n; i++)
        all[i].hash = sheet_hash_row(from->rows, (size_t)from->tags.keys[i]);
    qsort(all, n, sizeof *all, sheet_compare_tagged);
    for (size_t i = 0; left > 0 && i < to->rows->n_rows; i++) {
        struct sheet_tagged *t = sheet_find_tagged(all, n, sheet_hash_row(to->rows, i));
        if (!t || !tags_toggle(&to->tags, i))
            continue;
        t->found = true;
        left--;
    }
    free(all);
    to->tags.only = from->tags.only && to->tags.n > 0;
    sheet_renew_rows(to);
}
