/* SPDX-License-Identifier: Apache-2.0 */
/* sample_store_window: the windows of a tally that do not slide: since a mark, and between two times; see sample_store.h. */
#include <math.h>
#include <stdlib.h>

#include "client/samples/sample_store_state.h"

int sample_store_track(struct sample_store *t, const struct model_sample_batch *b) {
    const uint32_t *entries = stack_counts_batch_entries(t->fold);
    for (size_t i = 0; i < b->n_samples; i++) {
        const struct model_sample *s = &b->samples[i];
        struct thread_runs_sample sample = {
            .time_s = s->timestamp,
            .us = stack_counts_sample_us(b, i),
            .tid = s->tid,
            .entry = entries[i] == STACK_COUNTS_NO_ENTRY ? THREAD_RUNS_NO_ENTRY : entries[i],
            .flags = thread_runs_flags(s)};
        int rc = thread_runs_add(t->tracks, &sample);
        for (int k = 0; rc == 1 && k < SAMPLE_STORE_SPANS; k++)
            rc = sample_store_span_add(&t->spans[k], t->tracks, &sample) == 0 ? 1 : -1;
        if (rc < 0)
            return -1;
    }
    return 0;
}

/* What a span held when all was held. */
static int sample_store_freeze_span(struct sample_store *t, enum sample_store_window which) {
    const struct sample_store_span *s = &t->spans[which - SAMPLE_STORE_SPAN];
    struct sample_store_span then = {0};
    double to_s = fmin(s->to_s, nextafter(t->held_look_s, INFINITY));
    struct sample_store_count *held = calloc(t->n_held + 1, sizeof *held);
    if (!held)
        return -1;
    if (!isnan(t->held_look_s) && s->from_s < to_s &&
        sample_store_span_make(&then, t->tracks, s->from_s, to_s) != 0) {
        free(held);
        return -1;
    }
    for (size_t i = 0; i < then.n && i < t->n_held; i++)
        held[i] = then.counts[i];
    sample_store_span_clear(&then);
    free(t->held[which]);
    t->held[which] = held;
    return 0;
}

int sample_store_set_span(struct sample_store *t, enum sample_store_window which, double from_s,
                          double to_s) {
    if (sample_store_span_make(&t->spans[which - SAMPLE_STORE_SPAN], t->tracks, from_s, to_s) != 0)
        return -1;
    t->mark.counts = sample_store_next_mark();
    return t->held[SAMPLE_STORE_ALL] ? sample_store_freeze_span(t, which) : 0;
}

void sample_store_clear_span(struct sample_store *t, enum sample_store_window which) {
    sample_store_span_clear(&t->spans[which - SAMPLE_STORE_SPAN]);
    free(t->held[which]);
    t->held[which] = NULL;
    t->mark.counts = sample_store_next_mark();
}

bool sample_store_get_span(const struct sample_store *t, enum sample_store_window which, double *from_s,
                           double *to_s) {
    const struct sample_store_span *s = &t->spans[which - SAMPLE_STORE_SPAN];
    *from_s = s->from_s;
    *to_s = s->to_s;
    return s->is_set;
}

bool sample_store_get_span_health(const struct sample_store *t, enum sample_store_window which,
                                  struct sample_store_span_health *out) {
    const struct sample_store_span *s = &t->spans[which - SAMPLE_STORE_SPAN];
    double newest_s = sample_store_newest_tick_s(t);
    *out = (struct sample_store_span_health){s->from_s, s->to_s, s->begins_s, fmin(newest_s, s->to_s)};
    if (isnan(newest_s) || newest_s < s->from_s)
        out->known_until_s = NAN;
    return s->is_set;
}

const struct thread_runs *sample_store_tracks(const struct sample_store *t) { return t->tracks; }

double sample_store_newest_tick_s(const struct sample_store *t) {
    uint32_t end = thread_runs_end_tick(t->tracks);
    if (t->held[SAMPLE_STORE_ALL])
        return t->held_look_s;
    return end > thread_runs_first_tick(t->tracks) ? thread_runs_tick_time(t->tracks, end - 1) : NAN;
}

int sample_store_mark(struct sample_store *t, double now_s) {
    struct sample_store_count *base = calloc(t->cap_entries + 1, sizeof *base), none = {0};
    struct sample_store_count *held = t->held[SAMPLE_STORE_ALL] ? calloc(t->n_held + 1, sizeof *held) : NULL;
    if (!base || (t->held[SAMPLE_STORE_ALL] && !held)) {
        free(base);
        free(held);
        return -1;
    }
    for (size_t i = 0; i < t->n_entries; i++)
        base[i] = sample_store_since(t, i, &none);
    free(t->base[SAMPLE_STORE_MARK]);
    free(t->held[SAMPLE_STORE_MARK]);
    t->base[SAMPLE_STORE_MARK] = base;
    t->held[SAMPLE_STORE_MARK] = held;
    t->marked_s = now_s;
    t->mark.counts = sample_store_next_mark();
    return 0;
}

double sample_store_marked_s(const struct sample_store *t) { return t->marked_s; }

uint32_t sample_store_python_stack(const struct sample_store *t, uint32_t stack) {
    uint32_t above;
    for (; stack != STACK_COUNTS_NO_STACK; stack = above) {
        const struct model_frame *f =
            stack_counts_frame(t->fold, stack_counts_stack_frame(t->fold, stack, &above));
        if (!f || f->kind != MODEL_FRAME_NATIVE)
            break;
    }
    return stack;
}
