/* SPDX-License-Identifier: Apache-2.0 */
/* record_stacks: stacks and frames as rows, and their ids; see record.h. */
#include <stdlib.h>
#include <string.h>

#include "agent/tables/record.h"
#include "pystack/native.h"

#define RECORD_MAX_DEPTH ((size_t)PYSTACK_MAX_FRAMES + NATIVE_MAX_FRAMES + 8)
#define RECORD_MAX_ID ((uint64_t)UINT32_MAX - 1) /* what a column holds */

static bool record_is_seen(const struct record_seen *s, uint32_t number) {
    return number < s->n && (s->bits[number / 8] >> number % 8 & 1);
}

/* 0, or -1 without memory. */
static int record_set_seen(struct record_seen *s, uint32_t number) {
    if (number >= s->n) {
        size_t n = s->n ? s->n : 1024;
        while (n <= number)
            n *= 2;
        uint8_t *bits = realloc(s->bits, n / 8);
        if (!bits)
            return -1;
        memset(bits + s->n / 8, 0, (n - s->n) / 8);
        s->bits = bits;
        s->n = n;
    }
    s->bits[number / 8] |= (uint8_t)(1U << number % 8);
    return 0;
}

static void record_forget(struct record_seen *s) {
    if (s->bits)
        memset(s->bits, 0, s->n / 8);
}

void record_ids_fini(struct record_ids *ids) {
    free(ids->stacks.bits);
    free(ids->frames.bits);
    *ids = (struct record_ids){.epoch = 0};
}

static uint64_t record_rows(const struct record *r, enum ring_table table, uint64_t *oldest) {
    struct ring_counts counts = {.rows = 0};
    const struct ring *ring = r->set ? ring_set_get(r->set, table) : NULL;
    if (ring)
        ring_get_counts(ring, &counts);
    if (oldest)
        *oldest = counts.oldest_seq;
    return counts.rows;
}

void record_epoch(struct record *r, const struct thread_sampler *p) {
    struct record_ids *ids = &r->ids;
    ids->epoch = p->epoch;
    ids->stack_base += ids->stack_last;
    ids->frame_base += ids->frame_last;
    ids->stack_last = ids->frame_last = 0;
    record_forget(&ids->stacks);
    record_forget(&ids->frames);
    ids->stack_rows = record_rows(r, RING_STACKS, NULL);
    ids->frame_rows = record_rows(r, RING_FRAMES, NULL);
}

bool record_outgrown(const struct record *r) {
    uint64_t stacks, frames;
    (void)record_rows(r, RING_STACKS, &stacks);
    (void)record_rows(r, RING_FRAMES, &frames);
    return stacks > r->ids.stack_rows || frames > r->ids.frame_rows;
}

static int record_frame(struct record *r, const struct trie *t, uint32_t number) {
    struct record_ids *ids = &r->ids;
    union ring_value v[RING_FRAMES_COUNT];
    if (record_is_seen(&ids->frames, number))
        return 0;
    if (record_set_seen(&ids->frames, number) != 0)
        return -1;
    const struct model_frame *f = &t->frames[number - 1].frame;
    ids->frame_last = number > ids->frame_last ? number : ids->frame_last;
    v[RING_FRAMES_ID].i = (int64_t)(ids->frame_base + number);
    v[RING_FRAMES_FUNC].s = f->func;
    v[RING_FRAMES_FILE].s = f->file;
    v[RING_FRAMES_LINENO].i = f->line > 0 ? f->line : RING_INT_NULL;
    v[RING_FRAMES_KIND].i = f->kind == MODEL_FRAME_NATIVE;
    record_append(r, RING_FRAMES, v);
    return 0;
}

/* Write one node below its caller, which was written. 0, or -1 without memory. */
static int record_node(struct record *r, const struct trie *t, uint32_t number, size_t depth) {
    struct record_ids *ids = &r->ids;
    const struct model_stack_def *s = &t->stacks[number - 1];
    union ring_value v[RING_STACKS_COUNT];
    if (record_frame(r, t, s->frame_id) != 0 || record_set_seen(&ids->stacks, number) != 0)
        return -1;
    ids->stack_last = number > ids->stack_last ? number : ids->stack_last;
    v[RING_STACKS_ID].i = (int64_t)(ids->stack_base + number);
    v[RING_STACKS_PARENT].i = s->parent_id ? (int64_t)(ids->stack_base + s->parent_id) : RING_INT_NULL;
    v[RING_STACKS_FRAME].i = (int64_t)(ids->frame_base + s->frame_id);
    v[RING_STACKS_DEPTH].i = (int64_t)depth;
    record_append(r, RING_STACKS, v);
    return 0;
}

int64_t record_stack(struct record *r, const struct trie *t, uint32_t stack_id) {
    uint32_t path[RECORD_MAX_DEPTH];
    struct record_ids *ids = &r->ids;
    size_t n = 0, depth = 0;
    if (stack_id == 0 || stack_id > t->n_stacks || ids->stack_base + t->n_stacks > RECORD_MAX_ID ||
        ids->frame_base + t->n_frames > RECORD_MAX_ID)
        return RING_INT_NULL;
    if (record_is_seen(&ids->stacks, stack_id))
        return (int64_t)(ids->stack_base + stack_id);
    uint32_t at = stack_id;
    for (; at && !record_is_seen(&ids->stacks, at); at = t->stacks[at - 1].parent_id) {
        if (n == RECORD_MAX_DEPTH)
            return RING_INT_NULL;
        path[n++] = at;
    }
    for (; at; at = t->stacks[at - 1].parent_id)
        depth++;
    while (n > 0)
        if (record_node(r, t, path[--n], depth++) != 0)
            return RING_INT_NULL;
    return (int64_t)(ids->stack_base + stack_id);
}
