/* SPDX-License-Identifier: Apache-2.0 */
/* intern: see intern.h. */
#include "wire/intern.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define INTERN_RECENT 1024U /* a power of two */
#define INTERN_NONE UINT32_MAX

struct intern_recent {
    const char *s;
    uint32_t id;
};

int intern_init(struct intern *in) {
    *in = (struct intern){0};
    in->recent = calloc(INTERN_RECENT, sizeof *in->recent);
    return in->recent ? 0 : -1;
}

void intern_fini(struct intern *in) {
    free(in->strings);
    free(in->hashes);
    free(in->by_text.slots);
    free(in->recent);
    free(in->frames);
    free(in->frame_keys);
    free(in->by_frame.slots);
    *in = (struct intern){0};
}

static void intern_index_put(struct intern_index *ix, uint64_t hash, uint32_t id) {
    size_t at = hash & (ix->n_slots - 1);
    while (ix->slots[at])
        at = (at + 1) & (ix->n_slots - 1);
    ix->slots[at] = id + 1;
}

/* Keep the index at most half full; `hashes` are those of the `n` numbers it holds. 0 or -1. */
static int intern_index_grow(struct intern_index *ix, const uint64_t *hashes, size_t n) {
    if (ix->n_slots >= 2 * (n + 1))
        return 0;
    struct intern_index bigger = {.n_slots = ix->n_slots ? 2 * ix->n_slots : 256};
    bigger.slots = calloc(bigger.n_slots, sizeof *bigger.slots);
    if (!bigger.slots)
        return -1;
    for (size_t i = 0; i < n; i++)
        intern_index_put(&bigger, hashes[i], (uint32_t)i);
    free(ix->slots);
    *ix = bigger;
    return 0;
}

/* `list` made to hold `cap` elements, or NULL (then it is as before). */
static void *intern_resize(void *list, size_t cap, size_t size) {
    return cap >= INTERN_NONE || cap > SIZE_MAX / size ? NULL : realloc(list, cap * size);
}

static int intern_reserve_string(struct intern *in) {
    if (in->n_strings < in->cap_strings)
        return 0;
    size_t cap = in->cap_strings ? 2 * in->cap_strings : 128;
    const char **strings = intern_resize(in->strings, cap, sizeof *strings);
    if (!strings)
        return -1;
    in->strings = strings;
    uint64_t *hashes = intern_resize(in->hashes, cap, sizeof *hashes);
    if (!hashes)
        return -1;
    in->hashes = hashes;
    in->cap_strings = cap;
    return 0;
}

static int intern_reserve_frame(struct intern *in) {
    if (in->n_frames < in->cap_frames)
        return 0;
    size_t cap = in->cap_frames ? 2 * in->cap_frames : 128;
    struct model_frame *frames = intern_resize(in->frames, cap, sizeof *frames);
    if (!frames)
        return -1;
    in->frames = frames;
    uint64_t *keys = intern_resize(in->frame_keys, cap, sizeof *keys);
    if (!keys)
        return -1;
    in->frame_keys = keys;
    in->cap_frames = cap;
    return 0;
}

static uint32_t intern_add_string(struct intern *in, const char *s, uint64_t hash) {
    if (intern_reserve_string(in) != 0 || intern_index_grow(&in->by_text, in->hashes, in->n_strings) != 0) {
        in->failed = true;
        return 0;
    }
    uint32_t id = (uint32_t)in->n_strings++;
    in->strings[id] = s;
    in->hashes[id] = hash;
    intern_index_put(&in->by_text, hash, id);
    return id;
}

static uint32_t intern_find_text(const struct intern *in, const char *s, uint64_t hash) {
    const struct intern_index *ix = &in->by_text;
    if (!ix->n_slots)
        return INTERN_NONE;
    for (size_t at = hash & (ix->n_slots - 1); ix->slots[at]; at = (at + 1) & (ix->n_slots - 1)) {
        uint32_t id = ix->slots[at] - 1;
        if (in->hashes[id] == hash && strcmp(in->strings[id], s) == 0)
            return id;
    }
    return INTERN_NONE;
}

uint32_t intern_string(struct intern *in, const char *s) {
    struct intern_recent *recent = &in->recent[hash_mix((uint64_t)(uintptr_t)s) & (INTERN_RECENT - 1)];
    if (recent->s == s)
        return recent->id;
    if (in->failed)
        return 0;
    uint64_t hash = hash_bytes(s, strlen(s));
    uint32_t id = intern_find_text(in, s, hash);
    if (id == INTERN_NONE)
        id = intern_add_string(in, s, hash);
    if (!in->failed)
        *recent = (struct intern_recent){.s = s, .id = id};
    return id;
}

/* The number of a string that may be unknown, 0 being unknown. */
static uint64_t intern_maybe(struct intern *in, const char *s) {
    return s ? (uint64_t)intern_string(in, s) + 1 : 0;
}

static bool intern_same_frame(struct intern *in, const struct model_frame *a, const struct model_frame *b) {
    return a->line == b->line && a->kind == b->kind &&
           intern_maybe(in, a->func) == intern_maybe(in, b->func) &&
           intern_maybe(in, a->file) == intern_maybe(in, b->file) && a->address == b->address &&
           intern_maybe(in, a->module) == intern_maybe(in, b->module);
}

uint32_t intern_frame(struct intern *in, const struct model_frame *f) {
    uint64_t key = hash_mix(intern_maybe(in, f->func) << 32 | intern_maybe(in, f->file));
    key = hash_mix(key ^ ((uint64_t)(unsigned)f->line << 2 | (uint64_t)f->kind));
    if (f->kind == MODEL_FRAME_NATIVE)
        key = hash_mix(key ^ f->address) ^ intern_maybe(in, f->module);
    const struct intern_index *ix = &in->by_frame;
    if (in->failed)
        return 0;
    for (size_t at = key & (ix->n_slots - 1); ix->n_slots && ix->slots[at];
         at = (at + 1) & (ix->n_slots - 1)) {
        uint32_t id = ix->slots[at] - 1;
        if (in->frame_keys[id] == key && intern_same_frame(in, &in->frames[id], f))
            return id;
    }
    if (intern_reserve_frame(in) != 0 ||
        intern_index_grow(&in->by_frame, in->frame_keys, in->n_frames) != 0) {
        in->failed = true;
        return 0;
    }
    uint32_t id = (uint32_t)in->n_frames++;
    in->frames[id] = *f;
    in->frame_keys[id] = key;
    intern_index_put(&in->by_frame, key, id);
    return id;
}
