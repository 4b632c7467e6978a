/* SPDX-License-Identifier: Apache-2.0 */
/* trie: see trie.h. */
#include "base/trie.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"

#define TRIE_LIKE 512      /* frames: deeper stacks are added without a comparison */
#define TRIE_SPARE 8       /* a share of what an array holds: the last one */
#define TRIE_TEXT_SPARE 64 /* the same of all memory, for texts */

void trie_init(struct trie *t, size_t max_stacks, size_t max_bytes) {
    *t = (struct trie){.max_stacks = max_stacks, .max_bytes = max_bytes};
    arena_init(&t->text, max_bytes);
}

void trie_reset(struct trie *t) {
    free(t->frames);
    free(t->stacks);
    free(t->strings);
    table_fini(&t->by_frame);
    table_fini(&t->by_stack);
    table_fini(&t->by_string);
    arena_fini(&t->text);
    trie_init(t, t->max_stacks, t->max_bytes);
}

size_t trie_bytes(const struct trie *t) {
    return t->cap_frames * sizeof *t->frames + t->cap_stacks * sizeof *t->stacks +
           t->cap_strings * sizeof *t->strings + t->text.used + table_bytes(&t->by_frame) +
           table_bytes(&t->by_stack) + table_bytes(&t->by_string);
}

/* 0 if `more` bytes fit into the limit, otherwise -1. */
static int trie_afford(const struct trie *t, size_t more) {
    size_t held = trie_bytes(t);
    return held <= t->max_bytes && more <= t->max_bytes - held ? 0 : -1;
}

/* A table of `cap` elements of `size`, enlarged, or NULL (then it is unchanged). */
static void *trie_grow(const struct trie *t, void *table, size_t *cap, size_t size) {
    size_t more = *cap ? *cap : 256;
    if (trie_afford(t, more * size) != 0)
        return NULL;
    void *p = realloc(table, (*cap + more) * size);
    if (p)
        *cap += more;
    return p;
}

static uint64_t trie_hash_frame(const struct model_frame *f) {
    /* Strings are stored once, so their addresses stand for them. */
    uint64_t h = hash_mix((uint64_t)(uintptr_t)f->func) ^ (uint64_t)(uintptr_t)f->file;
    h = hash_mix(h ^ (uint64_t)(unsigned)f->line << 2 ^ (uint64_t)f->kind);
    return f->kind == MODEL_FRAME_NATIVE ? hash_mix(h ^ f->address) ^ hash_mix((uint64_t)(uintptr_t)f->module)
                                         : h;
}

static uint64_t trie_hash_stack(uint32_t parent, uint32_t frame) {
    return hash_mix((uint64_t)parent << 32 | frame);
}

/* Room for one more in a table. 0 or -1. */
static int trie_reserve(const struct trie *t, struct table *table) {
    return trie_afford(t, table_growth(table)) == 0 ? table_reserve(table, table->n + 1) : -1;
}

/* True if an array of `n` elements, with its table, is nearly used up and cannot be enlarged. Both double:
 * first the table, which is there twice meanwhile. */
static bool trie_is_tight(const struct trie *t, const struct table *table, size_t n, size_t cap,
                          size_t size) {
    size_t more = cap * size, index = table_bytes(table);
    return n >= cap - cap / TRIE_SPARE && trie_afford(t, index + (more > index ? more : index)) != 0;
}

bool trie_is_nearly_full(const struct trie *t) {
    return t->n_stacks >= t->max_stacks - t->max_stacks / TRIE_SPARE ||
           trie_afford(t, t->max_bytes / TRIE_TEXT_SPARE) != 0 ||
           trie_is_tight(t, &t->by_stack, t->n_stacks, t->cap_stacks, sizeof *t->stacks) ||
           trie_is_tight(t, &t->by_frame, t->n_frames, t->cap_frames, sizeof *t->frames) ||
           trie_is_tight(t, &t->by_string, t->n_strings, t->cap_strings, sizeof *t->strings);
}

/* ---- strings ---- */

static const char *trie_add_string(struct trie *t, const char *s, size_t len, uint64_t hash) {
    if (trie_reserve(t, &t->by_string) != 0 || trie_afford(t, len + 1) != 0)
        return NULL;
    if (t->n_strings == t->cap_strings) {
        const char **strings = trie_grow(t, t->strings, &t->cap_strings, sizeof *t->strings);
        if (!strings)
            return NULL;
        t->strings = strings;
    }
    char *copy = arena_strndup(&t->text, s, len);
    if (!copy)
        return NULL;
    table_add(&t->by_string, hash, (uint32_t)t->n_strings);
    t->strings[t->n_strings++] = copy;
    return copy;
}

/* The one copy of a string. 0, or -1 without room. NULL stays NULL. */
static int trie_find_string(struct trie *t, const char *s, const char **out) {
    *out = NULL;
    if (!s)
        return 0;
    size_t len = strlen(s);
    uint64_t hash = hash_bytes(s, len);
    size_t at = TABLE_BEGIN;
    for (uint32_t i; (i = table_next(&t->by_string, hash, &at)) != TABLE_NONE;)
        if (strcmp(t->strings[i], s) == 0) {
            *out = t->strings[i];
            return 0;
        }
    *out = trie_add_string(t, s, len, hash);
    return *out ? 0 : -1;
}

/* ---- frames ---- */

static uint32_t trie_add_frame(struct trie *t, const struct model_frame *f) {
    if (trie_reserve(t, &t->by_frame) != 0)
        return TRIE_FULL;
    if (t->n_frames == t->cap_frames) {
        struct model_frame_def *frames = trie_grow(t, t->frames, &t->cap_frames, sizeof *t->frames);
        if (!frames)
            return TRIE_FULL;
        t->frames = frames;
    }
    uint32_t number = (uint32_t)++t->n_frames;
    t->frames[number - 1] = (struct model_frame_def){.frame_id = number, .frame = *f};
    table_add(&t->by_frame, trie_hash_frame(f), number - 1);
    return number;
}

static uint32_t trie_find_frame(struct trie *t, const struct model_frame *given) {
    struct model_frame f = *given;
    if (trie_find_string(t, given->func, &f.func) != 0 || trie_find_string(t, given->file, &f.file) != 0 ||
        trie_find_string(t, given->module, &f.module) != 0)
        return TRIE_FULL;
    uint64_t hash = trie_hash_frame(&f);
    size_t at = TABLE_BEGIN;
    for (uint32_t i; (i = table_next(&t->by_frame, hash, &at)) != TABLE_NONE;) {
        const struct model_frame *g = &t->frames[i].frame;
        if (g->func == f.func && g->file == f.file && g->line == f.line && g->kind == f.kind &&
            g->module == f.module && g->address == f.address)
            return i + 1;
    }
    return trie_add_frame(t, &f);
}

/* ---- stacks ---- */

static uint32_t trie_add_stack(struct trie *t, uint32_t parent, uint32_t frame) {
    if (t->n_stacks >= t->max_stacks)
        return TRIE_FULL;
    if (trie_reserve(t, &t->by_stack) != 0)
        return TRIE_FULL;
    if (t->n_stacks == t->cap_stacks) {
        struct model_stack_def *stacks = trie_grow(t, t->stacks, &t->cap_stacks, sizeof *t->stacks);
        if (!stacks)
            return TRIE_FULL;
        t->stacks = stacks;
    }
    uint32_t number = (uint32_t)++t->n_stacks;
    t->stacks[number - 1] =
        (struct model_stack_def){.stack_id = number, .parent_id = parent, .frame_id = frame};
    table_add(&t->by_stack, trie_hash_stack(parent, frame), number - 1);
    return number;
}

static uint32_t trie_find_stack(struct trie *t, uint32_t parent, uint32_t frame) {
    uint64_t hash = trie_hash_stack(parent, frame);
    size_t at = TABLE_BEGIN;
    for (uint32_t i; (i = table_next(&t->by_stack, hash, &at)) != TABLE_NONE;) {
        const struct model_stack_def *s = &t->stacks[i];
        if (s->parent_id == parent && s->frame_id == frame)
            return s->stack_id;
    }
    return trie_add_stack(t, parent, frame);
}

static uint32_t trie_add_below(struct trie *t, uint32_t node, const struct model_frame *frames, size_t n) {
    for (size_t i = n; i-- > 0;) {
        uint32_t frame = trie_find_frame(t, &frames[i]);
        if (frame == TRIE_FULL)
            return TRIE_FULL;
        node = trie_find_stack(t, node, frame);
        if (node == TRIE_FULL)
            return TRIE_FULL;
    }
    return node;
}

uint32_t trie_add(struct trie *t, const struct model_frame *frames, size_t n) {
    return trie_add_below(t, 0, frames, n);
}

/* ---- a stack that is nearly another ---- */

/* True if number `id` is the frame `f`. `outer` is its caller with number `outer_id`; NULL for
 * none. In a recursion the texts are compared once. */
static bool trie_is_frame(const struct trie *t, uint32_t id, const struct model_frame *f, uint32_t outer_id,
                          const struct model_frame *outer) {
    const struct model_frame *own = &t->frames[id - 1].frame;
    const struct model_frame *before = outer ? &t->frames[outer_id - 1].frame : NULL;
    if (own->line != f->line || own->kind != f->kind || own->address != f->address ||
        !text_same(own->module, f->module))
        return false;
    bool recursion = before && own->func == before->func && own->file == before->file &&
                     f->func == outer->func && f->file == outer->file;
    return recursion || (text_same(own->func, f->func) && text_same(own->file, f->file));
}

/* The nodes of a stack, innermost first. Returns their number, 0 if there are too many. */
static size_t trie_get_path(const struct trie *t, uint32_t stack, uint32_t *path) {
    size_t n = 0;
    for (; stack && stack <= t->n_stacks; stack = t->stacks[stack - 1].parent_id) {
        if (n == TRIE_LIKE)
            return 0;
        path[n++] = stack;
    }
    return n;
}

uint32_t trie_add_like(struct trie *t, uint32_t like, const struct model_frame *frames, size_t n) {
    uint32_t path[TRIE_LIKE], node = 0, outer = 0;
    size_t depth = trie_get_path(t, like, path), left = n;
    for (; depth && left; depth--, left--) {
        uint32_t id = t->stacks[path[depth - 1] - 1].frame_id;
        if (!trie_is_frame(t, id, &frames[left - 1], outer, left < n ? &frames[left] : NULL))
            break;
        node = path[depth - 1];
        outer = id;
    }
    return trie_add_below(t, node, frames, left);
}

uint32_t trie_add_truncated(struct trie *t, const struct model_frame *frames, size_t n) {
    static const struct model_frame mark = {.kind = MODEL_FRAME_PYTHON, .func = TRIE_TRUNCATED};
    uint32_t root = trie_add_below(t, 0, &mark, 1);
    return root == TRIE_FULL ? TRIE_FULL : trie_add_below(t, root, frames, n);
}
