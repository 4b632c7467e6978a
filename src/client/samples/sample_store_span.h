/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_store_span: counts of the samples between two times, made from tracks when the times are set; samples that come later and
 * lie between them are counted as they come. What tracks forget later stays counted. One thread.
 */
#ifndef CLIENT_SAMPLES_SAMPLE_STORE_SPAN_H
#define CLIENT_SAMPLES_SAMPLE_STORE_SPAN_H

#include <stdbool.h>
#include <stddef.h>

#include "client/samples/sample_store.h"
#include "client/samples/thread_runs.h"

struct sample_store_span {
    bool is_set;
    double from_s, to_s;
    double begins_s; /* of the looks known when it was set: the oldest that is in it; NAN none */
    struct sample_store_count *counts; /* per entry, as many as there were */
    size_t n, cap;
};

void sample_store_span_clear(struct sample_store_span *s);

/* Count samples with from_s <= time < to_s. 0, or -1 without memory, or when the times are none: then all is as it was. */
int sample_store_span_make(struct sample_store_span *s, const struct thread_runs *t, double from_s,
                           double to_s);

/* A sample that tracks have just taken in. 0, or -1 without memory. */
int sample_store_span_add(struct sample_store_span *s, const struct thread_runs *t,
                          const struct thread_runs_sample *sample);

#endif
