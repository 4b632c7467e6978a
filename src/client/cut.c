/* SPDX-License-Identifier: Apache-2.0 */
/* cut: see cut.h. Which entries, then the stacks that these need, then both under numbers of their own. */
#include "client/cut.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/tally_span.h"

#define CUT_NAME 512

/* Of a frame: what is known of it, and what. */
enum { CUT_KNOWN = 1, CUT_FILTERED = 2, CUT_WANTED = 4 };

/* While it is made. Per stack, from 1; 0 is without a frame. */
struct cutter {
    const struct fold *from;
    const struct cut_query *q;
    struct fold *to;
    struct tally_count *counts;  /* per entry */
    uint32_t *entry;             /* per entry: its number in the cut, or TRACKS_NO_ENTRY */
    bool *is_needed, *is_inside; /* the module was entered */
    unsigned char *stack_is;     /* CUT_FILTERED and CUT_WANTED: a frame of it is */
    uint32_t *stack;             /* what it is in the cut; FOLD_NO_STACK */
    uint32_t *last; /* the innermost frame of it that is there, of `from`; the number of frames: none */
    unsigned char *frame_is; /* per frame: CUT_... */
    size_t n_entries, n_stacks, n_frames;
};

/* ---- counts ---- */

/* Of what a count says only that part is left that was on the CPU, or held the GIL. */
static void cut_limit(struct tally_count *c, enum flame_time time) {
    if (time == FLAME_ON_CPU)
        *c = (struct tally_count){.samples = c->on_cpu,
                                  .us = c->on_cpu_us,
                                  .on_cpu = c->on_cpu,
                                  .on_cpu_us = c->on_cpu_us,
                                  .gc = c->gc_on_cpu,
                                  .gc_us = c->gc_on_cpu_us,
                                  .gc_on_cpu = c->gc_on_cpu,
                                  .gc_on_cpu_us = c->gc_on_cpu_us};
    if (time == FLAME_GIL_HELD)
        *c = (struct tally_count){.samples = c->gil, .us = c->gil_us, .gil = c->gil, .gil_us = c->gil_us};
}

static int cut_count(struct cutter *c, const struct tally *t) {
    if (!c->q->in_order) {
        tally_get_counts(t, c->q->samples.window, c->counts);
        for (size_t i = 0; i < c->n_entries; i++)
            cut_limit(&c->counts[i], c->q->samples.time);
        return 0;
    }
    struct tally_span span = {0};
    if (tally_span_make(&span, tally_tracks(t), c->q->from_s, c->q->to_s) != 0)
        return -1;
    for (size_t i = 0; i < span.n && i < c->n_entries; i++)
        c->counts[i] = span.counts[i];
    tally_span_clear(&span);
    return 0;
}

/* ---- stacks ---- */

static bool cut_same_text(const char *a, const char *b) { return a == b || (a && b && strcmp(a, b) == 0); }

static bool cut_same_module(const struct model_frame *a, const struct model_frame *b) {
    return cut_same_text(flame_module_text(a), flame_module_text(b));
}

static unsigned cut_judge_frame(struct cutter *c, uint32_t frame) {
    const struct flame_filter *filter = &c->q->samples.filter;
    const struct model_frame *f = fold_frame(c->from, frame);
    unsigned char *known = &c->frame_is[frame];
    if (!*known)
        *known = (unsigned char)(CUT_KNOWN |
                                 (filter->matches && filter->matches(filter->arg, f) ? CUT_FILTERED : 0U) |
                                 (c->q->has_frame && c->q->has_frame(c->q->arg, f) ? CUT_WANTED : 0U));
    return *known;
}

/* Which stacks pass is told by their callers, which have smaller numbers. */
static void cut_judge_stacks(struct cutter *c) {
    uint32_t module = c->q->samples.module;
    const struct model_frame *wanted = module ? fold_frame(c->from, module - 1) : NULL;
    c->is_inside[FOLD_NO_STACK] = !module;
    for (uint32_t i = 1; i <= c->n_stacks; i++) {
        uint32_t above, frame = fold_stack_frame(c->from, i, &above);
        c->is_inside[i] =
            c->is_inside[above] || (wanted && cut_same_module(fold_frame(c->from, frame), wanted));
        c->stack_is[i] = c->stack_is[above] | (unsigned char)cut_judge_frame(c, frame);
    }
}

static bool cut_passes(const struct cutter *c, const struct fold_entry *e, const struct tally_count *n) {
    const struct flame_query *q = &c->q->samples;
    bool matches = c->stack_is[e->stack] & CUT_FILTERED, is_wanted = c->stack_is[e->stack] & CUT_WANTED;
    return n->samples && (!q->tid || q->tid == e->tid) && c->is_inside[e->stack] &&
           !(q->filter.matches && matches == q->filter.negated) && (!c->q->has_frame || is_wanted) &&
           (!c->q->has_thread || c->q->has_thread(c->q->arg, e->tid));
}

/* Stacks of the entries that pass, and all above them. */
static void cut_mark_stacks(struct cutter *c) {
    for (size_t i = 0; i < c->n_entries; i++) {
        const struct fold_entry *e = fold_get(c->from, i);
        if (cut_passes(c, e, &c->counts[i]))
            c->is_needed[e->stack] = true;
        else
            c->counts[i] = (struct tally_count){0};
    }
    for (uint32_t i = (uint32_t)c->n_stacks, above; i > 0; i--)
        if (c->is_needed[i]) {
            (void)fold_stack_frame(c->from, i, &above);
            c->is_needed[above] = true;
        }
}

static int64_t cut_put_frame(struct cutter *c, const struct model_frame *f) {
    char name[CUT_NAME];
    if (c->q->samples.by != FLAME_BY_MODULE)
        return fold_put_frame(c->to, f);
    c->q->name_module(f, name, sizeof name);
    return fold_put_frame(
        c->to, &(struct model_frame){.kind = f->kind, .func = name, .file = f->file, .module = f->module});
}

/* Stack number `i` in the cut: its caller's, if its frame is not to be seen. */
static int cut_put_stack(struct cutter *c, uint32_t i) {
    const struct flame_query *q = &c->q->samples;
    uint32_t above, frame = fold_stack_frame(c->from, i, &above);
    const struct model_frame *f = fold_frame(c->from, frame);
    c->stack[i] = c->stack[above];
    c->last[i] = c->last[above];
    if (!c->is_inside[i] || (q->hides_native && f->kind == MODEL_FRAME_NATIVE) ||
        (q->by == FLAME_BY_MODULE && c->last[above] < c->n_frames &&
         cut_same_module(f, fold_frame(c->from, c->last[above]))))
        return 0;
    int64_t mine = cut_put_frame(c, f);
    int64_t at = mine < 0 ? -1 : fold_put_stack(c->to, c->stack[above], (uint32_t)mine);
    c->stack[i] = (uint32_t)at + 1;
    c->last[i] = frame;
    return at < 0 ? -1 : 0;
}

static int cut_put_entries(struct cutter *c) {
    c->last[FOLD_NO_STACK] = (uint32_t)c->n_frames;
    for (uint32_t i = 1; i <= c->n_stacks; i++)
        if (c->is_needed[i] && cut_put_stack(c, i) != 0)
            return -1;
    for (size_t i = 0; i < c->n_entries; i++) {
        const struct tally_count *n = &c->counts[i];
        const struct fold_entry *e = fold_get(c->from, i);
        struct fold_entry mine = {.tid = e->tid,
                                  .stack = c->stack[e->stack],
                                  .samples = n->samples,
                                  .on_cpu = n->on_cpu,
                                  .us = n->us,
                                  .on_cpu_us = n->on_cpu_us,
                                  .gc = n->gc,
                                  .gc_us = n->gc_us,
                                  .gc_on_cpu = n->gc_on_cpu,
                                  .gc_on_cpu_us = n->gc_on_cpu_us,
                                  .gil = n->gil,
                                  .gil_us = n->gil_us,
                                  .gil_state = e->gil_state,
                                  .gc_state = e->gc_state};
        int64_t at = n->samples ? fold_put_counts(c->to, &mine) : (int64_t)TRACKS_NO_ENTRY;
        if (at < 0)
            return -1;
        c->entry[i] = (uint32_t)at;
    }
    return 0;
}

/* ---- all of it ---- */

static int cut_begin(struct cutter *c, const struct tally *t) {
    c->n_entries = tally_count_entries(t);
    c->n_stacks = tally_count_stacks(t);
    c->n_frames = tally_count_frames(t);
    c->to = fold_new_like(c->from);
    c->counts = calloc(c->n_entries + 1, sizeof *c->counts);
    c->entry = calloc(c->n_entries + 1, sizeof *c->entry);
    c->is_needed = calloc(c->n_stacks + 1, sizeof *c->is_needed);
    c->is_inside = calloc(c->n_stacks + 1, sizeof *c->is_inside);
    c->stack_is = calloc(c->n_stacks + 1, sizeof *c->stack_is);
    c->stack = calloc(c->n_stacks + 1, sizeof *c->stack);
    c->last = calloc(c->n_stacks + 1, sizeof *c->last);
    c->frame_is = calloc(c->n_frames + 1, sizeof *c->frame_is);
    return c->to && c->counts && c->entry && c->is_needed && c->is_inside && c->stack_is && c->stack &&
                   c->last && c->frame_is
               ? 0
               : -1;
}

static void cut_end(struct cutter *c) {
    free(c->counts);
    free(c->entry);
    free(c->is_needed);
    free(c->is_inside);
    free(c->stack_is);
    free(c->stack);
    free(c->last);
    free(c->frame_is);
}

int cut_make(struct cut *out, const struct tally *t, const struct cut_query *q) {
    struct cutter c = {.from = tally_fold(t), .q = q};
    *out = (struct cut){.fold = NULL};
    int rc = cut_begin(&c, t) == 0 ? cut_count(&c, t) : -1;
    if (rc == 0) {
        cut_judge_stacks(&c);
        cut_mark_stacks(&c);
        rc = cut_put_entries(&c);
    }
    out->fold = c.to;
    if (rc == 0 && q->in_order) {
        out->tracks = tracks_cut(tally_tracks(t), q->from_s, q->to_s, c.entry, c.n_entries);
        rc = out->tracks ? 0 : -1;
    }
    cut_end(&c);
    return rc;
}

void cut_fini(struct cut *c) {
    fold_free(c->fold);
    tracks_free(c->tracks);
    *c = (struct cut){.fold = NULL};
}
