/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recording_native: stacks of the tables without their native frames; see recording_strip_native in recording.h.
 *
 * A stack of the tables is a node below that of its caller. A node of a native frame becomes that of the nearest Python frame below; nodes
 * that are then the same become one. Nodes come in the order of their ids, callers first.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "client/sql/recording.h"

/* While it is done. */
struct recording_strip {
    struct recording *p;
    uint32_t *python; /* of each stack of p->stacks: the stack to be shown */
    uint32_t *slots;  /* numbers of those that are kept, by caller and frame, from 1; 0 free */
    size_t n_slots;   /* a power of two */
    size_t n_kept;
    struct model_stack_def *kept;
};

static int recording_compare_frames(const void *key, const void *at) {
    uint32_t id = *(const uint32_t *)key, other = ((const struct model_frame_def *)at)->frame_id;
    return (id > other) - (id < other);
}

static int recording_compare_stacks(const void *key, const void *at) {
    uint32_t id = *(const uint32_t *)key, other = ((const struct model_stack_def *)at)->stack_id;
    return (id > other) - (id < other);
}

static bool recording_is_native(const struct recording *p, uint32_t frame_id) {
    const struct model_frame_def *f =
        bsearch(&frame_id, p->frames, p->n_frames, sizeof *p->frames, recording_compare_frames);
    return f && f->frame.kind == MODEL_FRAME_NATIVE;
}

/* What a stack has become; one that is not there stays what it is. */
static uint32_t recording_python_of(const struct recording_strip *s, uint32_t id) {
    const struct recording *p = s->p;
    const struct model_stack_def *at =
        id ? bsearch(&id, p->stacks, p->n_stacks, sizeof *p->stacks, recording_compare_stacks) : NULL;
    return at ? s->python[at - p->stacks] : id;
}

/* The number of the stack with this caller and frame, which is `def` if there was none. */
static uint32_t recording_keep_stack(struct recording_strip *s, const struct model_stack_def *def) {
    size_t at = (size_t)hash_mix((uint64_t)def->parent_id << 32 | def->frame_id);
    for (;; at++) {
        uint32_t *slot = &s->slots[at & (s->n_slots - 1)];
        if (!*slot) {
            s->kept[s->n_kept++] = *def;
            *slot = (uint32_t)s->n_kept;
            return def->stack_id;
        }
        const struct model_stack_def *other = &s->kept[*slot - 1];
        if (other->parent_id == def->parent_id && other->frame_id == def->frame_id)
            return other->stack_id;
    }
}

static void recording_strip_all(struct recording_strip *s) {
    struct recording *p = s->p;
    for (size_t i = 0; i < p->n_stacks; i++) {
        struct model_stack_def def = p->stacks[i];
        uint32_t caller = recording_python_of(s, def.parent_id);
        def.parent_id = caller;
        s->python[i] = recording_is_native(p, def.frame_id) ? caller : recording_keep_stack(s, &def);
    }
    for (size_t i = 0; i < p->n_samples; i++)
        p->samples[i].stack_id = recording_python_of(s, p->samples[i].stack_id);
    memcpy(p->stacks, s->kept, s->n_kept * sizeof *s->kept);
    p->n_stacks = s->n_kept;
}

int recording_strip_native(struct recording *p) {
    struct recording_strip s = {.p = p, .n_slots = 16};
    bool any = false;
    for (size_t i = 0; i < p->n_frames && !any; i++)
        any = p->frames[i].frame.kind == MODEL_FRAME_NATIVE;
    if (!any || p->n_stacks == 0)
        return 0;
    while (s.n_slots < 2 * p->n_stacks)
        s.n_slots *= 2;
    s.python = calloc(p->n_stacks, sizeof *s.python);
    s.kept = calloc(p->n_stacks, sizeof *s.kept);
    s.slots = calloc(s.n_slots, sizeof *s.slots);
    bool room = s.python && s.kept && s.slots;
    if (room)
        recording_strip_all(&s);
    free(s.python);
    free(s.kept);
    free(s.slots);
    return room ? 0 : -1;
}
