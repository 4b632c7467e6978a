/* SPDX-License-Identifier: Apache-2.0 */
/* intern: see intern.h. */
#include "wire/intern.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/hash.h"

#define INTERN_RECENT 1024U /* a power of two */

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
    table_fini(&in->by_text);
    free(in->recent);
    free(in->frames);
    table_fini(&in->by_frame);
    *in = (struct intern){0};
}

static uint32_t intern_add_string(struct intern *in, const char *s, uint64_t hash) {
    uint32_t id = (uint32_t)in->n_strings;
    if (grow_array(&in->strings, sizeof *in->strings, in->n_strings + 1, &in->cap_strings) != 0 ||
        table_add(&in->by_text, hash, id) != 0) {
        in->failed = true;
        return 0;
    }
    in->strings[in->n_strings++] = s;
    return id;
}

static uint32_t intern_find_text(const struct intern *in, const char *s, uint64_t hash) {
    size_t at = TABLE_BEGIN;
    for (uint32_t id; (id = table_next(&in->by_text, hash, &at)) != TABLE_NONE;)
        if (strcmp(in->strings[id], s) == 0)
            return id;
    return TABLE_NONE;
}

uint32_t intern_string(struct intern *in, const char *s) {
    struct intern_recent *recent = &in->recent[hash_mix((uint64_t)(uintptr_t)s) & (INTERN_RECENT - 1)];
    if (recent->s == s)
        return recent->id;
    if (in->failed)
        return 0;
    uint64_t hash = hash_bytes(s, strlen(s));
    uint32_t id = intern_find_text(in, s, hash);
    if (id == TABLE_NONE)
        id = intern_add_string(in, s, hash);
    if (!in->failed)
        *recent = (struct intern_recent){.s = s, .id = id};
    return id;
}

/* The number of a string that may be unknown; 0 is unknown. */
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
    if (in->failed)
        return 0;
    size_t at = TABLE_BEGIN;
    for (uint32_t id; (id = table_next(&in->by_frame, key, &at)) != TABLE_NONE;)
        if (intern_same_frame(in, &in->frames[id], f))
            return id;
    uint32_t id = (uint32_t)in->n_frames;
    if (grow_array(&in->frames, sizeof *in->frames, in->n_frames + 1, &in->cap_frames) != 0 ||
        table_add(&in->by_frame, key, id) != 0) {
        in->failed = true;
        return 0;
    }
    in->frames[in->n_frames++] = *f;
    return id;
}
