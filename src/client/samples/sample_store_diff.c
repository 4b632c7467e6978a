/* SPDX-License-Identifier: Apache-2.0 */
/* sample_store_diff: see sample_store_diff.h. */
#include "client/samples/sample_store_diff.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"

struct diff_index {
    uint32_t *slots; /* open addressing: 1 + row; 0 free */
    size_t n_slots;  /* a power of two */
    bool by_line;
};

void sample_store_diff_fini(struct sample_store_diff *d) {
    free(d->rows);
    memset(d, 0, sizeof *d);
}

static uint64_t diff_hash_text(uint64_t h, const char *text) {
    return hash_mix(h ^ (text ? hash_bytes(text, strlen(text)) : 1));
}

static uint64_t diff_hash(const struct model_frame *f, bool by_line) {
    uint64_t h = diff_hash_text(diff_hash_text((uint64_t)f->kind, f->func), f->file);
    return by_line ? hash_mix(h ^ (uint64_t)(unsigned)f->line) : h;
}

/* As sample_store_function tells functions apart; a line is one of them with its number. */
static bool diff_is_same(const struct model_frame *a, const struct model_frame *b, bool by_line) {
    return a == b || (a->kind == b->kind && text_same(a->func, b->func) && text_same(a->file, b->file) &&
                      (!by_line || a->line == b->line));
}

/* The slot of a frame: taken by the row that is the same, or free. */
static uint32_t *diff_slot(const struct sample_store_diff *d, const struct diff_index *ix,
                           const struct model_frame *f) {
    for (uint64_t i = diff_hash(f, ix->by_line);; i++) {
        uint32_t *slot = &ix->slots[i & (ix->n_slots - 1)];
        if (!*slot || diff_is_same(d->rows[*slot - 1].row.frame, f, ix->by_line))
            return slot;
    }
}

static double diff_nothing(const struct sample_store_table *t) { return sample_store_table_share(t, 0, 0); }

/* Rows of the newer table, without a share of the older one so far. */
static void diff_put_now(struct sample_store_diff *d, const struct diff_index *ix,
                         const struct sample_store_table *now, double nothing) {
    for (size_t i = 0; i < now->n; i++) {
        const struct sample_store_row *r = &now->rows[i];
        uint32_t *slot = diff_slot(d, ix, r->frame);
        d->rows[d->n++] =
            (struct sample_store_diff_row){.row = *r,
                                           .own_pct = sample_store_table_share(now, r->own_us, r->own),
                                           .total_pct = sample_store_table_share(now, r->total_us, r->total),
                                           .own_before = nothing,
                                           .total_before = nothing};
        if (!*slot) /* lines of native code may say the same: the first stands for them */
            *slot = (uint32_t)d->n;
    }
}

static void diff_put_before(struct sample_store_diff *d, const struct diff_index *ix,
                            const struct sample_store_table *before, double nothing, bool is_foreign) {
    for (size_t i = 0; i < before->n; i++) {
        const struct sample_store_row *r = &before->rows[i];
        uint32_t *slot = diff_slot(d, ix, r->frame);
        if (!*slot) {
            uint32_t id = is_foreign ? r->id | SAMPLE_STORE_DIFF_FOREIGN : r->id;
            d->rows[d->n++] = (struct sample_store_diff_row){
                .row = {.id = id, .frame = r->frame}, .own_pct = nothing, .total_pct = nothing};
            *slot = (uint32_t)d->n;
            d->rows[d->n - 1].own_before = d->rows[d->n - 1].total_before = 0;
        }
        struct sample_store_diff_row *row = &d->rows[*slot - 1];
        double own = sample_store_table_share(before, r->own_us, r->own),
               total = sample_store_table_share(before, r->total_us, r->total);
        row->own_before += own;
        row->total_before += total;
    }
}

int sample_store_diff_build(struct sample_store_diff *d, const struct sample_store_table *now,
                            const struct sample_store_table *before, bool is_foreign) {
    struct diff_index ix = {.n_slots = 256, .by_line = now->query.by_line};
    sample_store_diff_fini(d);
    while (ix.n_slots < 2 * (now->n + before->n + 1))
        ix.n_slots *= 2;
    ix.slots = calloc(ix.n_slots, sizeof *ix.slots);
    d->rows = calloc(now->n + before->n + 1, sizeof *d->rows);
    if (!ix.slots || !d->rows) {
        free(ix.slots);
        sample_store_diff_fini(d);
        return -1;
    }
    diff_put_now(d, &ix, now, diff_nothing(before));
    diff_put_before(d, &ix, before, diff_nothing(now), is_foreign);
    free(ix.slots);
    return 0;
}
