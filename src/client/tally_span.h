/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tally_span: counts of the samples between two times, made from tracks when the times are set; samples that come later and
 * lie between them are counted as they come. What tracks forget later stays counted. One thread.
 */
#ifndef CLIENT_TALLY_SPAN_H
#define CLIENT_TALLY_SPAN_H

#include <stdbool.h>
#include <stddef.h>

#include "client/tally.h"
#include "client/tracks.h"

struct tally_span {
    bool is_set;
    double from_s, to_s;
    double begins_s;            /* of the looks known when it was set: the oldest that is in it; NAN none */
    struct tally_count *counts; /* per entry, as many as there were */
    size_t n, cap;
};

void tally_span_clear(struct tally_span *s);

/* Count samples with from_s <= time < to_s. 0, or -1 without memory, or when the times are none: then all is as it was. */
int tally_span_make(struct tally_span *s, const struct tracks *t, double from_s, double to_s);

/* A sample that tracks have just taken in. 0, or -1 without memory. */
int tally_span_add(struct tally_span *s, const struct tracks *t, const struct tracks_sample *sample);

#endif
