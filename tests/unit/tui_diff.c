/* SPDX-License-Identifier: Apache-2.0 */
/* tui_diff: see tui_diff.h. */
#include "unit/tui_diff.h"
#include "tui/core/app_diff.h"
#include "tui/core/app_take.h"

#define SAMPLES_NEEDED 20 /* of a batch */
#define BATCH_S 0.25

enum { MAIN = 1, LOAD, TRAIN, FORWARD, SYNC, EVALUATE };

static struct model_frame_def diff_frames[] = {
    {1, {MODEL_FRAME_PYTHON, "main", "/job/train.py", 10}},
    {2, {MODEL_FRAME_PYTHON, "load", "/job/data.py", 20}},
    {3, {MODEL_FRAME_PYTHON, "train", "/job/train.py", 30}},
    {4, {MODEL_FRAME_PYTHON, "forward", "/job/model.py", 40}},
    {5, {MODEL_FRAME_PYTHON, "sync", "/usr/lib/python3/dist-packages/torch/distributed.py", 50}},
    {6, {MODEL_FRAME_PYTHON, "evaluate", "/job/train.py", 60}},
};
static struct model_stack_def diff_stacks[] = {{MAIN, 0, 1},        {LOAD, MAIN, 2}, {TRAIN, MAIN, 3},
                                               {FORWARD, TRAIN, 4}, {SYNC, MAIN, 5}, {EVALUATE, MAIN, 6}};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* What look number `i` of a batch sees. */
static uint32_t diff_stack(enum diff_fixture_work work, int i) {
    if (work == DIFF_FIXTURE_BEFORE)
        return i < 8 ? LOAD : i < 16 ? FORWARD : EVALUATE;
    return i < 4 ? LOAD : i < 14 ? FORWARD : SYNC;
}

static void diff_take(struct app *a, const struct model_sample_batch *b) { (void)app_take_samples(a, b); }

/* The batch that ends at `time_s`. `id`: added to all numbers. */
static void diff_batch(double time_s, enum diff_fixture_work work, uint32_t id, int64_t tid,
                       void (*take)(struct app *a, const struct model_sample_batch *b), struct app *a) {
    struct model_frame_def frames[COUNT(diff_frames)];
    struct model_stack_def stacks[COUNT(diff_stacks)];
    struct model_sample samples[SAMPLES_NEEDED];
    struct model_thread_def thread = {tid, "MainThread", "python"};
    for (size_t i = 0; i < COUNT(frames); i++) {
        frames[i] = diff_frames[i];
        frames[i].frame_id += id;
    }
    for (size_t i = 0; i < COUNT(stacks); i++) {
        stacks[i] = diff_stacks[i];
        stacks[i].stack_id += id;
        stacks[i].parent_id += stacks[i].parent_id ? id : 0;
        stacks[i].frame_id += id;
    }
    for (int i = 0; i < SAMPLES_NEEDED; i++)
        samples[i] = (struct model_sample){.timestamp = time_s - BATCH_S + (i + 1) * BATCH_S / SAMPLES_NEEDED,
                                           .tid = tid,
                                           .stack_id = diff_stack(work, i) + id,
                                           .on_cpu = 1,
                                           .gil = MODEL_GIL_HOLDING};
    struct model_sample_batch b = {
        .epoch = 1, .period_us = BATCH_S / SAMPLES_NEEDED * 1e6, .cost_pct = 0.97, .budget_pct = 1};
    b.frames = frames;
    b.n_frames = COUNT(frames);
    b.stacks = stacks;
    b.n_stacks = COUNT(stacks);
    b.threads = &thread;
    b.n_threads = 1;
    b.samples = samples;
    b.n_samples = SAMPLES_NEEDED;
    take(a, &b);
}

void diff_fixture_feed(struct app *a, int seconds, enum diff_fixture_work work) {
    for (int i = 0; i < seconds * 4; i++) {
        app_set_time(a, a->now_s + BATCH_S, a->epoch_s + BATCH_S);
        diff_batch(a->epoch_s, work, 0, 4242, diff_take, a);
    }
}

void diff_fixture_record(struct app *a, int seconds, enum diff_fixture_work work) {
    for (int i = 0; i < seconds * 4; i++)
        diff_batch(1e9 + i * BATCH_S, work, 100, 77, app_diff_take_samples, a);
}
