/* SPDX-License-Identifier: Apache-2.0 */
/* native: see native.h. Stack numbers of a stream: native_stream.c. */
#include "client/symbols/native.h"

#include <stdlib.h>
#include <string.h>

#include "client/symbols/native_names.h"

/* ---- one stack ---- */

/* Make room for `n` frames to be merged. 0 or -1. */
static int names_reserve(struct native_names *names, size_t n) {
    if (n <= names->cap)
        return 0;
    size_t cap = 2 * n;
    enum native_role *roles = realloc(names->roles, cap * sizeof *roles);
    if (!roles)
        return -1;
    names->roles = roles;
    uint32_t *order = realloc(names->order, cap * sizeof *order);
    if (!order)
        return -1;
    names->order = order;
    names->cap = cap;
    return 0;
}

static bool names_is_truncated(const struct model_frame *f) { return !f->module && f->address == 0; }

/* Roles of the native frames, which stand first. Returns their number. */
static size_t names_find_roles(struct native_names *names, const struct model_frame *frames, size_t n) {
    size_t i = 0;
    for (; i < n && frames[i].kind == MODEL_FRAME_NATIVE; i++)
        names->roles[i] = names_is_truncated(&frames[i])
                              ? NATIVE_ROLE_TRUNCATED
                              : symbols_find(names->symbols, frames[i].module, frames[i].address)->role;
    return i;
}

/* Append the functions at a native frame; frames with a name need no address. */
static int names_put_place(struct native_names *names, const struct model_frame *f, struct arena *arena) {
    const struct symbols_place *place = symbols_find(names->symbols, f->module, f->address);
    for (size_t i = 0; i < place->n; i++) {
        const struct symbol *s = &place->list[i];
        struct model_frame *to = native_names_append(names);
        if (!to)
            return -1;
        *to = (struct model_frame){.kind = MODEL_FRAME_NATIVE,
                                   .func = arena_strdup(arena, s->func),
                                   .file = arena_strdup(arena, s->file),
                                   .line = s->line,
                                   .module = arena_strdup(arena, f->module),
                                   .address = s->func ? 0 : f->address};
    }
    return arena->failed ? -1 : 0;
}

struct model_frame *native_names_append(struct native_names *names) {
    if (names->n_list == names->cap_list) {
        size_t cap = names->cap_list ? 2 * names->cap_list : 256;
        struct model_frame *list = realloc(names->list, cap * sizeof *list);
        if (!list)
            return NULL;
        names->list = list;
        size_t *from = realloc(names->from, cap * sizeof *from);
        if (!from)
            return NULL;
        names->from = from;
        names->cap_list = cap;
    }
    names->from[names->n_list] = SIZE_MAX;
    return &names->list[names->n_list++];
}

int native_names_merge(struct native_names *names, const struct model_frame *frames, size_t n, bool truncated,
                       struct arena *arena, enum model_native *how) {
    names->n_list = 0;
    if (names_reserve(names, n + 1) != 0)
        return -1;
    size_t n_native = names_find_roles(names, frames, n);
    size_t shown = native_merge(frames, n, names->roles, n_native, truncated, names->order, how);
    for (size_t i = 0; i < shown; i++) {
        const struct model_frame *f = &frames[names->order[i]];
        if (f->kind == MODEL_FRAME_NATIVE && !names_is_truncated(f)) {
            if (names_put_place(names, f, arena) != 0)
                return -1;
            continue;
        }
        struct model_frame *to = native_names_append(names);
        if (!to)
            return -1;
        *to = *f;
        names->from[names->n_list - 1] = names->order[i];
    }
    return 0;
}

/* ---- a snapshot ---- */

static int names_thread(struct native_names *names, struct model_thread *t, struct arena *arena) {
    enum model_native how;
    if (native_names_merge(names, t->frames, t->n_frames, t->truncated, arena, &how) != 0)
        return -1;
    struct model_frame *frames = arena_calloc(arena, names->n_list + 1, sizeof *frames);
    const struct model_locals **locals =
        t->locals ? arena_calloc(arena, names->n_list + 1, sizeof *locals) : NULL;
    if (!frames || (t->locals && !locals))
        return -1;
    for (size_t i = 0; i < names->n_list; i++) {
        frames[i] = names->list[i];
        if (locals && names->from[i] != SIZE_MAX)
            locals[i] = t->locals[names->from[i]];
    }
    t->frames = frames;
    t->locals = locals;
    t->n_frames = names->n_list;
    t->native = how;
    return 0;
}

int native_names_snapshot(struct native_names *n, struct model_snapshot *s) {
    int rc = 0;
    for (size_t i = 0; i < s->n_threads; i++) {
        struct model_thread *t = &s->threads[i];
        if (names_thread(n, t, &s->arena) == 0)
            continue;
        t->n_frames = model_frames_strip_native(t->frames, t->n_frames, t->locals);
        t->native = MODEL_NATIVE_UNKNOWN;
        s->incomplete = true;
        rc = -1;
    }
    s->native_note = arena_strdup(&s->arena, symbols_take_note(n->symbols));
    return rc;
}

/* ---- life ---- */

struct native_names *native_names_new(pid_t pid) {
    struct native_names *n = calloc(1, sizeof *n);
    if (!n)
        return NULL;
    native_stream_init(&n->stream);
    n->symbols = symbols_new(pid);
    if (!n->symbols) {
        native_names_free(n);
        return NULL;
    }
    return n;
}

void native_names_free(struct native_names *n) {
    if (!n)
        return;
    native_stream_fini(&n->stream);
    symbols_free(n->symbols);
    free(n->roles);
    free(n->order);
    free(n->list);
    free(n->from);
    free(n);
}
