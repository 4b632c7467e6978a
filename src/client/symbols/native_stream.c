/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_stream: merges the stacks of a sample stream with native frames; see native.h.
 *
 * The stream's definitions are kept for its epoch. A stack is merged when a sample first uses it
 * and gets a number of a trie of our own; the output is a stream with these numbers.
 */
#include "client/symbols/native.h"

#include <stdlib.h>
#include <string.h>

#include "client/symbols/native_names.h"

/* twice as many as an agent uses before it starts a new epoch */
#define STREAM_MAX_IDS ((uint32_t)1 << 19)
#define STREAM_TEXT_MAX ((size_t)32 * 1024 * 1024)
#define STREAM_MAX_STACKS ((size_t)2 * 1024 * 1024)
#define STREAM_TRIE_BYTES ((size_t)48 * 1024 * 1024)
#define STREAM_BATCH_MAX ((size_t)32 * 1024 * 1024)
#define STREAM_MAX_DEPTH 8192 /* frames of one stack */

static const struct model_frame stream_apart = {.kind = MODEL_FRAME_NATIVE, .func = NATIVE_MERGE_APART};

void native_stream_init(struct native_stream *s) {
    *s = (struct native_stream){.own_epoch = 1};
    arena_init(&s->text, STREAM_TEXT_MAX);
    trie_init(&s->trie, STREAM_MAX_STACKS, STREAM_TRIE_BYTES);
}

static void stream_forget_theirs(struct native_stream *s) {
    free(s->frames);
    free(s->stacks);
    free(s->own);
    arena_fini(&s->text);
    s->frames = NULL;
    s->stacks = NULL;
    s->own = NULL;
    s->n_frames = s->n_stacks = 0;
}

void native_stream_fini(struct native_stream *s) {
    stream_forget_theirs(s);
    trie_reset(&s->trie);
    free(s->path);
}

/* Start our own numbers again. */
static void stream_new_own(struct native_stream *s) {
    trie_reset(&s->trie);
    s->own_epoch++;
    s->sent_frames = s->sent_stacks = 0;
    if (s->n_stacks)
        memset(s->own, 0, s->n_stacks * sizeof *s->own);
}

void native_names_forget(struct native_names *n) {
    stream_forget_theirs(&n->stream);
    n->stream.has_epoch = false;
    /* its reader may have read another stream in between: it gets all definitions again */
    stream_new_own(&n->stream);
}

/* ---- definitions ---- */

/* `list` enlarged to hold number `id`, new items zeroed. NULL if that fails. */
static void *stream_reserve(void *list, size_t *n, uint32_t id, size_t size) {
    if (id < *n)
        return list;
    size_t more = *n ? *n : 256;
    while (more <= id)
        more *= 2;
    char *p = id < STREAM_MAX_IDS ? realloc(list, more * size) : NULL;
    if (!p)
        return NULL;
    memset(p + *n * size, 0, (more - *n) * size);
    *n = more;
    return p;
}

static int stream_define_frame(struct native_stream *s, const struct model_frame_def *d) {
    struct native_stream_frame *frames = stream_reserve(s->frames, &s->n_frames, d->frame_id, sizeof *frames);
    if (!frames)
        return -1;
    s->frames = frames;
    struct model_frame *to = &frames[d->frame_id].frame;
    frames[d->frame_id].defined = true;
    *to = d->frame;
    to->func = arena_strdup(&s->text, d->frame.func);
    to->file = arena_strdup(&s->text, d->frame.file);
    to->module = arena_strdup(&s->text, d->frame.module);
    return s->text.failed ? -1 : 0;
}

static int stream_define_stack(struct native_stream *s, const struct model_stack_def *d) {
    size_t n = s->n_stacks, m = s->n_stacks;
    struct model_stack_def *stacks = stream_reserve(s->stacks, &n, d->stack_id, sizeof *stacks);
    if (!stacks)
        return -1;
    s->stacks = stacks;
    uint32_t *own = stream_reserve(s->own, &m, d->stack_id, sizeof *own);
    if (!own)
        return -1;
    s->own = own;
    s->n_stacks = n;
    s->stacks[d->stack_id] = *d;
    s->own[d->stack_id] = 0;
    return 0;
}

static int stream_define(struct native_stream *s, const struct model_sample_batch *in) {
    if (!s->has_epoch || s->epoch != in->epoch)
        stream_forget_theirs(s);
    s->has_epoch = true;
    s->epoch = in->epoch;
    for (size_t i = 0; i < in->n_frames; i++)
        if (stream_define_frame(s, &in->frames[i]) != 0)
            return -1;
    for (size_t i = 0; i < in->n_stacks; i++)
        if (stream_define_stack(s, &in->stacks[i]) != 0)
            return -1;
    return 0;
}

/* ---- stacks ---- */

/* The frames of a stack of the stream, innermost first, into s->path. Returns their number, or
 * -1 if it is undefined, or without memory. */
static ssize_t stream_path(struct native_stream *s, uint32_t id) {
    size_t n = 0;
    while (id) {
        if (id >= s->n_stacks || !s->stacks[id].stack_id || n >= STREAM_MAX_DEPTH)
            return -1;
        const struct model_stack_def *d = &s->stacks[id];
        if (d->frame_id >= s->n_frames || !s->frames[d->frame_id].defined || d->parent_id >= id)
            return -1;
        if (n == s->cap_path) {
            size_t cap = s->cap_path ? 2 * s->cap_path : 256;
            struct model_frame *path = realloc(s->path, cap * sizeof *path);
            if (!path)
                return -1;
            s->path = path;
            s->cap_path = cap;
        }
        s->path[n++] = s->frames[d->frame_id].frame;
        id = d->parent_id;
    }
    return (ssize_t)n;
}

/* True for the mark at the root of a cut stack. */
static bool stream_is_truncated(const struct model_frame *f) {
    return f->kind == MODEL_FRAME_PYTHON && f->func && !f->file && strcmp(f->func, TRIE_TRUNCATED) == 0;
}

/* Our number of the stream's stack `id`: 0 if it is undefined, TRIE_FULL without room. */
static uint32_t stream_own(struct native_names *names, uint32_t id) {
    struct native_stream *s = &names->stream;
    struct arena scratch;
    enum model_native how;
    if (id == 0 || id >= s->n_stacks)
        return 0;
    if (s->own[id])
        return s->own[id];
    ssize_t n = stream_path(s, id);
    if (n <= 0)
        return 0;
    bool cut = stream_is_truncated(&s->path[n - 1]);
    arena_init(&scratch, STREAM_TEXT_MAX);
    uint32_t own = TRIE_FULL;
    if (native_names_merge(names, s->path, (size_t)(n - cut), cut, &scratch, &how) == 0) {
        struct model_frame *mark = how == MODEL_NATIVE_APART ? native_names_append(names) : NULL;
        if (mark)
            *mark = stream_apart;
        own = (cut ? trie_add_truncated : trie_add)(&s->trie, names->list, names->n_list);
    }
    arena_fini(&scratch);
    if (own != TRIE_FULL)
        s->own[id] = own;
    return own;
}

static int stream_put_samples(struct native_names *names, const struct model_sample_batch *in,
                              struct model_sample *out) {
    for (size_t i = 0; i < in->n_samples; i++) {
        const struct model_sample *from = &in->samples[i];
        uint32_t id = from->native_id ? from->native_id : from->stack_id;
        uint32_t own = stream_own(names, id);
        if (own == TRIE_FULL)
            return -1;
        out[i] = *from;
        out[i].native_id = 0;
        /* A number that is never used: counted as undefined. */
        out[i].stack_id = id && !own ? UINT32_MAX : own;
    }
    return 0;
}

static int stream_copy_defs(const struct native_stream *s, struct model_sample_batch *out) {
    out->n_frames = s->trie.n_frames - s->sent_frames;
    out->n_stacks = s->trie.n_stacks - s->sent_stacks;
    out->frames = arena_calloc(&out->arena, out->n_frames + 1, sizeof *out->frames);
    out->stacks = arena_calloc(&out->arena, out->n_stacks + 1, sizeof *out->stacks);
    if (!out->frames || !out->stacks)
        return -1;
    if (out->n_stacks)
        memcpy(out->stacks, s->trie.stacks + s->sent_stacks, out->n_stacks * sizeof *out->stacks);
    for (size_t i = 0; i < out->n_frames; i++) {
        struct model_frame_def *d = &out->frames[i];
        *d = s->trie.frames[s->sent_frames + i];
        d->frame.func = arena_strdup(&out->arena, d->frame.func);
        d->frame.file = arena_strdup(&out->arena, d->frame.file);
        d->frame.module = arena_strdup(&out->arena, d->frame.module);
    }
    return out->arena.failed ? -1 : 0;
}

static int stream_copy_threads(const struct model_sample_batch *in, struct model_sample_batch *out) {
    out->n_threads = in->n_threads;
    out->threads = arena_calloc(&out->arena, in->n_threads + 1, sizeof *out->threads);
    if (!out->threads)
        return -1;
    for (size_t i = 0; i < in->n_threads; i++) {
        out->threads[i] = in->threads[i];
        out->threads[i].name = arena_strdup(&out->arena, in->threads[i].name);
        out->threads[i].native_name = arena_strdup(&out->arena, in->threads[i].native_name);
    }
    return out->arena.failed ? -1 : 0;
}

int native_names_batch(struct native_names *n, const struct model_sample_batch *in,
                       struct model_sample_batch *out) {
    struct native_stream *s = &n->stream;
    *out = (struct model_sample_batch){.period_us = in->period_us,
                                       .dropped = in->dropped,
                                       .mode = in->mode,
                                       .cost_pct = in->cost_pct,
                                       .budget_pct = in->budget_pct};
    arena_init(&out->arena, STREAM_BATCH_MAX);
    out->samples = arena_calloc(&out->arena, in->n_samples + 1, sizeof *out->samples);
    out->n_samples = in->n_samples;
    if (!out->samples || stream_define(s, in) != 0)
        return -1;
    if (stream_put_samples(n, in, out->samples) != 0) {
        stream_new_own(s);
        if (stream_put_samples(n, in, out->samples) != 0)
            return -1;
    }
    out->epoch = s->own_epoch;
    out->native_note = arena_strdup(&out->arena, symbols_take_note(n->symbols));
    if (stream_copy_defs(s, out) != 0 || stream_copy_threads(in, out) != 0)
        return -1;
    s->sent_frames = s->trie.n_frames;
    s->sent_stacks = s->trie.n_stacks;
    return 0;
}
