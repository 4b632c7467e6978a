/* SPDX-License-Identifier: Apache-2.0 */
/* tally_window: the windows of a tally that do not slide: since a mark, and between two times; see tally.h. */
#include <math.h>
#include <stdlib.h>

#include "client/tally_state.h"

int tally_track(struct tally *t, const struct model_sample_batch *b) {
    const uint32_t *entries = fold_batch_entries(t->fold);
    for (size_t i = 0; i < b->n_samples; i++) {
        const struct model_sample *s = &b->samples[i];
        struct tracks_sample sample = {.time_s = s->timestamp,
                                       .us = fold_sample_us(b, i),
                                       .tid = s->tid,
                                       .entry = entries[i] == FOLD_NO_ENTRY ? TRACKS_NO_ENTRY : entries[i],
                                       .flags = tracks_flags(s)};
        int rc = tracks_add(t->tracks, &sample);
        for (int k = 0; rc == 1 && k < TALLY_SPANS; k++)
            rc = tally_span_add(&t->spans[k], t->tracks, &sample) == 0 ? 1 : -1;
        if (rc < 0)
            return -1;
    }
    return 0;
}

/* What a span held when all was held. */
static int tally_hold_span(struct tally *t, enum tally_window which) {
    const struct tally_span *s = &t->spans[which - TALLY_SPAN];
    struct tally_span then = {0};
    double to_s = fmin(s->to_s, nextafter(t->held_look_s, INFINITY));
    struct tally_count *held = calloc(t->n_held + 1, sizeof *held);
    if (!held)
        return -1;
    if (!isnan(t->held_look_s) && s->from_s < to_s &&
        tally_span_make(&then, t->tracks, s->from_s, to_s) != 0) {
        free(held);
        return -1;
    }
    for (size_t i = 0; i < then.n && i < t->n_held; i++)
        held[i] = then.counts[i];
    tally_span_clear(&then);
    free(t->held[which]);
    t->held[which] = held;
    return 0;
}

int tally_set_span(struct tally *t, enum tally_window which, double from_s, double to_s) {
    if (tally_span_make(&t->spans[which - TALLY_SPAN], t->tracks, from_s, to_s) != 0)
        return -1;
    t->mark.counts = tally_next_mark();
    return t->held[TALLY_ALL] ? tally_hold_span(t, which) : 0;
}

void tally_clear_span(struct tally *t, enum tally_window which) {
    tally_span_clear(&t->spans[which - TALLY_SPAN]);
    free(t->held[which]);
    t->held[which] = NULL;
    t->mark.counts = tally_next_mark();
}

bool tally_get_span(const struct tally *t, enum tally_window which, double *from_s, double *to_s) {
    const struct tally_span *s = &t->spans[which - TALLY_SPAN];
    *from_s = s->from_s;
    *to_s = s->to_s;
    return s->is_set;
}

bool tally_get_span_health(const struct tally *t, enum tally_window which, struct tally_span_health *out) {
    const struct tally_span *s = &t->spans[which - TALLY_SPAN];
    double newest_s = tally_newest_look_s(t);
    *out = (struct tally_span_health){s->from_s, s->to_s, s->begins_s, fmin(newest_s, s->to_s)};
    if (isnan(newest_s) || newest_s < s->from_s)
        out->known_until_s = NAN;
    return s->is_set;
}

const struct tracks *tally_tracks(const struct tally *t) { return t->tracks; }

double tally_newest_look_s(const struct tally *t) {
    uint32_t end = tracks_end_look(t->tracks);
    if (t->held[TALLY_ALL])
        return t->held_look_s;
    return end > tracks_first_look(t->tracks) ? tracks_look_time(t->tracks, end - 1) : NAN;
}

int tally_mark(struct tally *t, double now_s) {
    struct tally_count *base = calloc(t->cap_entries + 1, sizeof *base), none = {0};
    struct tally_count *held = t->held[TALLY_ALL] ? calloc(t->n_held + 1, sizeof *held) : NULL;
    if (!base || (t->held[TALLY_ALL] && !held)) {
        free(base);
        free(held);
        return -1;
    }
    for (size_t i = 0; i < t->n_entries; i++)
        base[i] = tally_since(t, i, &none);
    free(t->base[TALLY_MARK]);
    free(t->held[TALLY_MARK]);
    t->base[TALLY_MARK] = base;
    t->held[TALLY_MARK] = held;
    t->marked_s = now_s;
    t->mark.counts = tally_next_mark();
    return 0;
}

double tally_marked_s(const struct tally *t) { return t->marked_s; }

uint32_t tally_python_stack(const struct tally *t, uint32_t stack) {
    uint32_t above;
    for (; stack != FOLD_NO_STACK; stack = above) {
        const struct model_frame *f = fold_frame(t->fold, fold_stack_frame(t->fold, stack, &above));
        if (!f || f->kind != MODEL_FRAME_NATIVE)
            break;
    }
    return stack;
}
