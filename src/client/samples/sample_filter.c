/* SPDX-License-Identifier: Apache-2.0 */
/* sample_filter: see sample_filter.h. First the entries, then the stacks that they need, then
 * both under new numbers. */
#include "client/samples/sample_filter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "client/samples/sample_store.h"

#define SAMPLE_FILTER_NAME 512

/* Per frame: whether it was judged, and the result. */
enum { SAMPLE_FILTER_KNOWN = 1, SAMPLE_FILTER_FILTERED = 2, SAMPLE_FILTER_WANTED = 4 };

/* State while a cut is made. Arrays per stack start at 1; 0 is for threads without a frame. */
struct cutter {
    const struct stack_counts *from;
    const struct sample_filter_query *q;
    struct stack_counts *to;
    struct stack_counts_sums *counts; /* per entry */
    /* per entry: its number in the cut, or THREAD_RUNS_NO_ENTRY */
    uint32_t *entry;
    bool *is_needed, *is_inside; /* the module was entered */
    /* SAMPLE_FILTER_FILTERED and SAMPLE_FILTER_WANTED: one of its frames is */
    unsigned char *stack_is;
    uint32_t *stack; /* its number in the cut; or STACK_COUNTS_NO_STACK */
    /* its innermost frame that is kept, of `from`; the number of frames: none */
    uint32_t *last;
    unsigned char *frame_is; /* per frame: CUT_... */
    size_t n_entries, n_stacks, n_frames;
};

/* ---- counts ---- */

/* Reduce sums to the part that was on the CPU, or held the GIL. */
static void sample_filter_limit(struct stack_counts_sums *c, enum flame_time time) {
    if (time == FLAME_ON_CPU)
        *c = (struct stack_counts_sums){.samples = c->on_cpu,
                                        .us = c->on_cpu_us,
                                        .on_cpu = c->on_cpu,
                                        .on_cpu_us = c->on_cpu_us,
                                        .gc = c->gc_on_cpu,
                                        .gc_us = c->gc_on_cpu_us,
                                        .gc_on_cpu = c->gc_on_cpu,
                                        .gc_on_cpu_us = c->gc_on_cpu_us};
    if (time == FLAME_GIL_HOLDING)
        *c = (struct stack_counts_sums){
            .samples = c->gil, .us = c->gil_us, .gil = c->gil, .gil_us = c->gil_us};
}

static int sample_filter_count(struct cutter *c, const struct sample_store *t) {
    if (!c->q->in_order) {
        sample_store_get_counts(t, c->q->samples.window, c->counts);
        for (size_t i = 0; i < c->n_entries; i++)
            sample_filter_limit(&c->counts[i], c->q->samples.time);
        return 0;
    }
    struct sample_store_span span = {0};
    if (sample_store_span_make(&span, sample_store_runs(t), c->q->from_s, c->q->to_s) != 0)
        return -1;
    for (size_t i = 0; i < span.n && i < c->n_entries; i++)
        c->counts[i] = span.counts[i];
    sample_store_span_clear(&span);
    return 0;
}

/* ---- stacks ---- */

static bool sample_filter_same_module(const struct model_frame *a, const struct model_frame *b) {
    return text_same(sample_flame_module(a), sample_flame_module(b));
}

static unsigned sample_filter_judge_frame(struct cutter *c, uint32_t frame) {
    const struct flame_filter *filter = &c->q->samples.filter;
    const struct model_frame *f = stack_counts_frame(c->from, frame);
    unsigned char *known = &c->frame_is[frame];
    if (!*known)
        *known =
            (unsigned char)(SAMPLE_FILTER_KNOWN |
                            (filter->matches && filter->matches(filter->arg, f) ? SAMPLE_FILTER_FILTERED
                                                                                : 0U) |
                            (c->q->has_frame && c->q->has_frame(c->q->arg, f) ? SAMPLE_FILTER_WANTED : 0U));
    return *known;
}

/* Decide which stacks pass. The callers' results, which have smaller numbers, are known first. */
static void sample_filter_judge_stacks(struct cutter *c) {
    uint32_t module = c->q->samples.module;
    const struct model_frame *wanted = module ? stack_counts_frame(c->from, module - 1) : NULL;
    c->is_inside[STACK_COUNTS_NO_STACK] = !module;
    for (uint32_t i = 1; i <= c->n_stacks; i++) {
        uint32_t above, frame = stack_counts_stack_frame(c->from, i, &above);
        c->is_inside[i] = c->is_inside[above] ||
                          (wanted && sample_filter_same_module(stack_counts_frame(c->from, frame), wanted));
        c->stack_is[i] = c->stack_is[above] | (unsigned char)sample_filter_judge_frame(c, frame);
    }
}

static bool sample_filter_passes(const struct cutter *c, const struct stack_counts_entry *e,
                                 const struct stack_counts_sums *n) {
    const struct flame_query *q = &c->q->samples;
    bool matches = c->stack_is[e->stack] & SAMPLE_FILTER_FILTERED,
         is_wanted = c->stack_is[e->stack] & SAMPLE_FILTER_WANTED;
    return n->samples && (!q->tid || q->tid == e->tid) && c->is_inside[e->stack] &&
           !(q->filter.matches && matches == q->filter.negated) && (!c->q->has_frame || is_wanted) &&
           (!c->q->has_thread || c->q->has_thread(c->q->arg, e->tid));
}

/* Mark the stacks of the entries that pass, and all above them. */
static void sample_filter_mark_stacks(struct cutter *c) {
    for (size_t i = 0; i < c->n_entries; i++) {
        const struct stack_counts_entry *e = stack_counts_get(c->from, i);
        if (sample_filter_passes(c, e, &c->counts[i]))
            c->is_needed[e->stack] = true;
        else
            c->counts[i] = (struct stack_counts_sums){0};
    }
    for (uint32_t i = (uint32_t)c->n_stacks, above; i > 0; i--)
        if (c->is_needed[i]) {
            stack_counts_stack_frame(c->from, i, &above);
            c->is_needed[above] = true;
        }
}

static int64_t sample_filter_put_frame(struct cutter *c, const struct model_frame *f) {
    char name[SAMPLE_FILTER_NAME];
    if (c->q->samples.by != FLAME_BY_MODULE)
        return stack_counts_put_frame(c->to, f);
    c->q->name_module(f, name, sizeof name);
    return stack_counts_put_frame(
        c->to, &(struct model_frame){.kind = f->kind, .func = name, .file = f->file, .module = f->module});
}

/* Stack number `i` in the cut: its caller's, if its frame is hidden. */
static int sample_filter_put_stack(struct cutter *c, uint32_t i) {
    const struct flame_query *q = &c->q->samples;
    uint32_t above, frame = stack_counts_stack_frame(c->from, i, &above);
    const struct model_frame *f = stack_counts_frame(c->from, frame);
    c->stack[i] = c->stack[above];
    c->last[i] = c->last[above];
    if (!c->is_inside[i] || (q->hides_native && f->kind == MODEL_FRAME_NATIVE) ||
        (q->by == FLAME_BY_MODULE && c->last[above] < c->n_frames &&
         sample_filter_same_module(f, stack_counts_frame(c->from, c->last[above]))))
        return 0;
    int64_t mine = sample_filter_put_frame(c, f);
    int64_t at = mine < 0 ? -1 : stack_counts_put_stack(c->to, c->stack[above], (uint32_t)mine);
    c->stack[i] = (uint32_t)at + 1;
    c->last[i] = frame;
    return at < 0 ? -1 : 0;
}

static int sample_filter_put_entries(struct cutter *c) {
    c->last[STACK_COUNTS_NO_STACK] = (uint32_t)c->n_frames;
    for (uint32_t i = 1; i <= c->n_stacks; i++)
        if (c->is_needed[i] && sample_filter_put_stack(c, i) != 0)
            return -1;
    for (size_t i = 0; i < c->n_entries; i++) {
        const struct stack_counts_sums *n = &c->counts[i];
        const struct stack_counts_entry *e = stack_counts_get(c->from, i);
        struct stack_counts_entry mine = {.tid = e->tid,
                                          .stack = c->stack[e->stack],
                                          .sums = *n,
                                          .gil_state = e->gil_state,
                                          .gc_state = e->gc_state};
        int64_t at = n->samples ? stack_counts_put_counts(c->to, &mine) : (int64_t)THREAD_RUNS_NO_ENTRY;
        if (at < 0)
            return -1;
        c->entry[i] = (uint32_t)at;
    }
    return 0;
}

/* ---- all of it ---- */

static int sample_filter_begin(struct cutter *c, const struct sample_store *t) {
    c->n_entries = sample_store_count_entries(t);
    c->n_stacks = sample_store_count_stacks(t);
    c->n_frames = sample_store_count_frames(t);
    c->to = stack_counts_new_like(c->from);
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

static void sample_filter_end(struct cutter *c) {
    free(c->counts);
    free(c->entry);
    free(c->is_needed);
    free(c->is_inside);
    free(c->stack_is);
    free(c->stack);
    free(c->last);
    free(c->frame_is);
}

int sample_filter_make(struct sample_filter *out, const struct sample_store *t,
                       const struct sample_filter_query *q) {
    struct cutter c = {.from = sample_store_counts(t), .q = q};
    *out = (struct sample_filter){.counts = NULL};
    int rc = sample_filter_begin(&c, t) == 0 ? sample_filter_count(&c, t) : -1;
    if (rc == 0) {
        sample_filter_judge_stacks(&c);
        sample_filter_mark_stacks(&c);
        rc = sample_filter_put_entries(&c);
    }
    out->counts = c.to;
    if (rc == 0 && q->in_order) {
        out->runs = thread_runs_trim(sample_store_runs(t), q->from_s, q->to_s, c.entry, c.n_entries);
        rc = out->runs ? 0 : -1;
    }
    sample_filter_end(&c);
    return rc;
}

void sample_filter_fini(struct sample_filter *c) {
    stack_counts_free(c->counts);
    thread_runs_free(c->runs);
    *c = (struct sample_filter){.counts = NULL};
}
