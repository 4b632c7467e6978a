/* SPDX-License-Identifier: Apache-2.0 */
/* tui_samples: see tui_samples.h. */
#include "unit/tui_samples.h"
#include "tui/core/app_take.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLES_SHARED 12  /* outermost frames that all threads of the large target have in common */
#define SAMPLES_FRAMES 400 /* functions of it */
#define SAMPLES_BATCH_S 0.25

/* Definitions, sent with every batch: the first one counts. */
struct samples_source {
    struct model_frame_def *frames;
    size_t n_frames;
    struct model_stack_def *stacks;
    size_t n_stacks;
    struct model_thread_def *threads;
    struct model_sample *samples; /* of a batch */
    size_t n_threads, n_samples;
};

static void samples_alloc(struct samples_source *s, size_t n_frames, size_t n_stacks, size_t n_threads) {
    s->frames = calloc(n_frames, sizeof *s->frames);
    s->stacks = calloc(n_stacks, sizeof *s->stacks);
    s->threads = calloc(n_threads, sizeof *s->threads);
    s->samples = calloc(n_threads, sizeof *s->samples);
    if (!s->frames || !s->stacks || !s->threads || !s->samples)
        abort();
    s->n_frames = n_frames;
    s->n_threads = s->n_samples = n_threads;
}

static uint32_t samples_put_stack(struct samples_source *s, uint32_t parent, uint32_t frame) {
    s->stacks[s->n_stacks] = (struct model_stack_def){(uint32_t)s->n_stacks + 1, parent, frame};
    return (uint32_t)++s->n_stacks;
}

/* Threads whose outermost frames are the same, and then not; one function has the longest of names. */
static void samples_make_huge(struct samples_source *s) {
    static char names[SAMPLES_FRAMES][120], threads[SAMPLES_HUGE_THREADS][40];
    uint32_t parent = 0;
    samples_alloc(s, SAMPLES_FRAMES, SAMPLES_SHARED + SAMPLES_HUGE_THREADS * SAMPLES_HUGE_DEPTH,
                  SAMPLES_HUGE_THREADS);
    for (uint32_t i = 0; i < SAMPLES_FRAMES; i++) {
        (void)snprintf(names[i], sizeof names[i], "%s_%u",
                       i % 17 == 3 ? "TheVeryLongQualifiedNameOfAnOuterClass.inner_class_with_a_name.method"
                                   : "function",
                       i);
        s->frames[i] = (struct model_frame_def){
            i + 1,
            {.kind = i % 29 == 7 ? MODEL_FRAME_NATIVE : MODEL_FRAME_PYTHON,
             .func = names[i],
             .file = i % 3 ? "/usr/lib/python3/dist-packages/torch/nn/modules/module.py" : "/job/train.py",
             .line = (int)i * 3331}};
    }
    for (uint32_t k = 0; k < SAMPLES_SHARED; k++)
        parent = samples_put_stack(s, parent, k + 1);
    for (uint32_t i = 0; i < SAMPLES_HUGE_THREADS; i++) {
        uint32_t at = parent;
        for (uint32_t k = SAMPLES_SHARED; k < SAMPLES_HUGE_DEPTH; k++)
            at = samples_put_stack(s, at, 1 + (i / (60 - k) * 13 + k) % SAMPLES_FRAMES);
        (void)snprintf(threads[i], sizeof threads[i], "Thread-%u (worker)", i);
        s->threads[i] = (struct model_thread_def){4194000 + i, threads[i], "python"};
        s->samples[i] = (struct model_sample){
            .tid = 4194000 + i, .stack_id = at, .on_cpu = i % 2 == 0, .gil = MODEL_GIL_NONE};
    }
    s->samples[0].gil = MODEL_GIL_HOLDING;
}

static void samples_make_names(struct samples_source *s) {
    static const struct model_frame frames[] = {
        {.kind = MODEL_FRAME_PYTHON,
         .func = "<module>",
         .file = "/home/ada/\xe8\xa8\x93\xe7\xb7\xb4.py",
         .line = 1},
        {.kind = MODEL_FRAME_PYTHON,
         .func = "\xe8\xa8\x93\xe7\xb7\xb4\xe3\x81\x99\xe3\x82\x8b",
         .file = "/home/ada/\xe8\xa8\x93\xe7\xb7\xb4.py",
         .line = 12},
        {.kind = MODEL_FRAME_PYTHON,
         .func = "cafe\xcc\x81_bru\xcc\x88le\xcc\x81"
                 "e",
         .file = "/tmp/caf\xc3\xa9.py",
         .line = 3},
        {.kind = MODEL_FRAME_PYTHON,
         .func = "evil\033[2Jname",
         .file = "/tmp/\033]0;title\007x.py",
         .line = 7},
        {.kind = MODEL_FRAME_PYTHON,
         .func = "rtl\xe2\x80\xae"
                 "drowssap",
         .file = "/tmp/a\tb\nc.py",
         .line = 1},
        {.kind = MODEL_FRAME_PYTHON},
        {.kind = MODEL_FRAME_PYTHON, .func = "broken\xff\xfe", .file = "/tmp/\xc3(.py", .line = 99},
        {.kind = MODEL_FRAME_NATIVE, .func = "\033[31mkernel", .module = "/opt/\033]0;t\007.so"},
    };
    static const char *const threads[] = {"\xe4\xb8\xbb\xe7\xb7\x9a\xe7\xa8\x8b", "\033[31mred\033[0m\r\n",
                                          "\xe6\x95\xb0\xe6\x8d\xae\xe5\x8a\xa0\xe8\xbd\xbd\xe5\x99\xa8",
                                          "\xc3\x9cn\xc3\xaf"
                                          "c\xc3\xb6"
                                          "d\xc3\xa9",
                                          ""};
    enum { N = sizeof frames / sizeof frames[0], THREADS = sizeof threads / sizeof threads[0] };
    samples_alloc(s, N, N, THREADS);
    for (uint32_t i = 0; i < N; i++) {
        s->frames[i] = (struct model_frame_def){i + 1, frames[i]};
        (void)samples_put_stack(s, i == 0 ? 0 : i < 5 ? i : 2, i + 1);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        s->threads[i] = (struct model_thread_def){i + 1, threads[i], "x"};
        s->samples[i] = (struct model_sample){
            .tid = i + 1, .stack_id = N - i, .on_cpu = 1, .gil = i ? MODEL_GIL_NONE : MODEL_GIL_HOLDING};
    }
}

static void samples_make_unknown(struct samples_source *s) {
    samples_alloc(s, 1, 1, 3);
    s->n_frames = 0;
    for (uint32_t i = 0; i < 3; i++) {
        s->threads[i] = (struct model_thread_def){100 + i, NULL, NULL};
        s->samples[i] = (struct model_sample){
            .tid = 100 + i, .on_cpu = MODEL_UNKNOWN, .gil = MODEL_GIL_UNKNOWN, .gc = MODEL_UNKNOWN};
    }
}

static void samples_give(struct app *a, const struct samples_source *s) {
    struct model_sample_batch b = {.epoch = 1,
                                   .period_us = 250000,
                                   .cost_pct = 0.97,
                                   .budget_pct = 1,
                                   .frames = s->frames,
                                   .n_frames = s->n_frames,
                                   .stacks = s->stacks,
                                   .n_stacks = s->n_stacks,
                                   .threads = s->threads,
                                   .n_threads = s->n_threads,
                                   .samples = s->samples,
                                   .n_samples = s->n_samples};
    app_set_time(a, a->now_s + SAMPLES_BATCH_S, a->epoch_s + SAMPLES_BATCH_S);
    for (size_t i = 0; i < s->n_samples; i++)
        s->samples[i].timestamp = a->epoch_s;
    app_take_samples(a, &b);
}

void samples_feed(struct app *a, enum fixture_kind kind, int batches) {
    struct samples_source s = {0};
    if (kind == FIXTURE_NORMAL) {
        fixture_samples(a, batches);
        return;
    }
    if (kind == FIXTURE_HUGE)
        samples_make_huge(&s);
    else if (kind == FIXTURE_NAMES)
        samples_make_names(&s);
    else
        samples_make_unknown(&s);
    for (int i = 0; i < batches; i++)
        samples_give(a, &s);
    free(s.frames);
    free(s.stacks);
    free(s.threads);
    free(s.samples);
}
