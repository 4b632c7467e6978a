/* SPDX-License-Identifier: Apache-2.0 */
/* tags: see tags.h. */
#include "tui/view/tags.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

void tags_fini(struct tags *t) {
    free(t->keys);
    memset(t, 0, sizeof *t);
}

/* Place of the first key that is not smaller. */
static size_t tags_find(const struct tags *t, uint64_t key) {
    size_t low = 0, high = t->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (t->keys[middle] < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool tags_has(const struct tags *t, uint64_t key) {
    size_t at = tags_find(t, key);
    return at < t->n && t->keys[at] == key;
}

bool tags_shows(const struct tags *t, uint64_t key) { return !t->only || tags_has(t, key); }

bool tags_toggle(struct tags *t, uint64_t key) {
    t->changes++;
    size_t at = tags_find(t, key);
    if (at < t->n && t->keys[at] == key) {
        memmove(t->keys + at, t->keys + at + 1, (--t->n - at) * sizeof *t->keys);
        t->only = t->only && t->n > 0;
        return true;
    }
    if (t->n >= TAGS_MAX || grow_array(&t->keys, sizeof *t->keys, t->n + 1, &t->cap) != 0)
        return false;
    memmove(t->keys + at + 1, t->keys + at, (t->n++ - at) * sizeof *t->keys);
    t->keys[at] = key;
    return true;
}

void tags_clear(struct tags *t) {
    t->changes++;
    t->n = 0;
    t->only = false;
}

void tags_put_text(const struct tags *t, struct strbuf *out) {
    if (t->n)
        strbuf_addf(out, "   %s%zu tagged", t->only ? "ONLY " : "", t->n);
}

void tags_take_rect(const struct tags *t, struct rect *area) {
    if (t->n == 0 || area->cols <= TAGS_COLS)
        return;
    area->col += TAGS_COLS;
    area->cols -= TAGS_COLS;
}

void tags_draw(const struct tags *t, uint64_t key, struct grid *g, struct rect area, int y) {
    struct rect sign = {area.row + y, area.col - TAGS_COLS, 1, TAGS_COLS};
    if (sign.col >= 0 && tags_has(t, key))
        grid_text(g, sign, 0, 0, ROLE_TAG, glyph(g, GLYPH_TAG));
}
