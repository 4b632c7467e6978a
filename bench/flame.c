/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame: what the flame graph costs: counting and building from a million samples, then an update of a thousand more, and
 * laying it out in 200 columns and 50 rows; the same again after ten million. And one update that counts all entries anew,
 * as a key does that asks for other samples. Beside it the timeline: an update of 200 slices of a tenth of a second, the same
 * made anew, as after a key that moves it, and the counts of a span of 10 s.
 *
 * 20 threads in some 20,000 stacks, up to 60 deep, most of the time in few of them; a window of 10 s, so that as much
 * leaves as comes. Every look sees another stack of every thread: nothing can be kept as one run. CPU milliseconds of the
 * thread; where there are several, median and 99th percentile. Prints JSON.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "client/samples/sample_flame.h"
#include "flame/flame_layout.h"
#include "client/samples/timeline.h"
#include "client/samples/thread_runs.h"

#define FLAME_STACKS 20000
#define FLAME_FRAMES 4000
#define FLAME_MAX_DEPTH 60
#define FLAME_BATCH 1000
#define FLAME_BATCH_S 0.25
#define FLAME_ROUNDS 200
#define FLAME_THREADS 20
#define FLAME_LOOK_S (FLAME_BATCH_S * FLAME_THREADS / FLAME_BATCH)
#define FLAME_EPOCH_S 1700000000.0
#define FLAME_SLICE_S 0.1
#define FLAME_COLS 200

struct flame_bench {
    struct sample_store *tally;
    struct sample_flame *flame;
    struct timeline *timeline;
    struct flame_query query;
    struct model_frame_def frames[FLAME_FRAMES];
    char names[FLAME_FRAMES][32];
    struct model_stack_def stacks[FLAME_STACKS];
    uint32_t depth[FLAME_STACKS];
    struct model_sample samples[FLAME_BATCH];
    uint64_t random, given;
    double now_s;
};

static double flame_cpu_ms(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static uint32_t flame_roll(struct flame_bench *b, uint32_t n) {
    b->random = b->random * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(b->random >> 33) % n;
}

static void flame_make_stacks(struct flame_bench *b) {
    for (uint32_t i = 0; i < FLAME_FRAMES; i++) {
        (void)snprintf(b->names[i], sizeof b->names[i], "function_%u", i * 7919 % FLAME_FRAMES);
        b->frames[i] = (struct model_frame_def){
            i + 1, {MODEL_FRAME_PYTHON, b->names[i], i % 3 ? "/job/train.py" : "/job/model.py", (int)i}};
    }
    for (uint32_t i = 0; i < FLAME_STACKS; i++) {
        uint32_t parent = i == 0 ? 0 : 1 + (flame_roll(b, 3) ? i - 1 : flame_roll(b, i));
        if (parent && b->depth[parent - 1] >= FLAME_MAX_DEPTH)
            parent = 1 + flame_roll(b, i) / 16;
        b->depth[i] = parent ? b->depth[parent - 1] + 1 : 1;
        b->stacks[i] = (struct model_stack_def){i + 1, parent, 1 + flame_roll(b, FLAME_FRAMES)};
    }
}

static int flame_give(struct flame_bench *b) {
    struct model_sample_batch batch = {
        .epoch = 1, .period_us = FLAME_LOOK_S * 1e6, .samples = b->samples, .n_samples = FLAME_BATCH};
    if (!b->given) {
        batch.frames = b->frames;
        batch.n_frames = FLAME_FRAMES;
        batch.stacks = b->stacks;
        batch.n_stacks = FLAME_STACKS;
    }
    for (size_t i = 0; i < FLAME_BATCH; i++) {
        double hot = (double)flame_roll(b, 1 << 20) / (1 << 20);
        uint32_t stack = (uint32_t)(hot * hot * hot * (FLAME_STACKS / FLAME_THREADS - 1)) * FLAME_THREADS +
                         (uint32_t)i % FLAME_THREADS + 1;
        double look = (double)((b->given + i) / FLAME_THREADS);
        b->samples[i] = (struct model_sample){.timestamp = FLAME_EPOCH_S + look * FLAME_LOOK_S,
                                              .tid = 100 + stack % FLAME_THREADS,
                                              .stack_id = stack,
                                              .on_cpu = 1};
    }
    b->given += FLAME_BATCH;
    b->now_s += FLAME_BATCH_S;
    return sample_store_add(b->tally, &batch, b->now_s) ? 0 : -1;
}

static int flame_compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void flame_put(struct json *j, const char *what, double *ms) {
    char key[64];
    qsort(ms, FLAME_ROUNDS, sizeof *ms, flame_compare);
    (void)snprintf(key, sizeof key, "%s_ms_median", what);
    json_kv_number(j, key, ms[FLAME_ROUNDS / 2], 4);
    (void)snprintf(key, sizeof key, "%s_ms_p99", what);
    json_kv_number(j, key, ms[FLAME_ROUNDS * 99 / 100], 4);
}

/* The view that ends with the newest slice. */
static int flame_update_timeline(struct flame_bench *b, int back) {
    double newest_s = sample_store_newest_tick_s(b->tally);
    struct timeline_view v = {.column_s = FLAME_SLICE_S, .cols = FLAME_COLS, .time = TIMELINE_ALL_TIME};
    v.first = timeline_column(FLAME_SLICE_S, newest_s) - FLAME_COLS + 1 - back;
    return timeline_update(b->timeline, b->tally, &v);
}

/* What a key costs: another part of the past, and a span as the window. */
static int flame_measure_past(struct flame_bench *b, struct json *j) {
    const struct thread_runs *t = sample_store_runs(b->tally);
    double newest_s = sample_store_newest_tick_s(b->tally), at = flame_cpu_ms();
    if (flame_update_timeline(b, FLAME_COLS) != 0)
        return -1;
    json_kv_number(j, "timeline_anew_ms", flame_cpu_ms() - at, 3);
    at = flame_cpu_ms();
    if (sample_store_set_span(b->tally, SAMPLE_STORE_SPAN, newest_s - 10, newest_s) != 0)
        return -1;
    json_kv_number(j, "span_10s_ms", flame_cpu_ms() - at, 3);
    sample_store_clear_span(b->tally, SAMPLE_STORE_SPAN);
    json_kv_number(j, "tracks_s", newest_s - thread_runs_tick_time(t, thread_runs_first_tick(t)), 1);
    json_kv_int(j, "tracks_bytes", (int64_t)thread_runs_bytes(t));
    json_kv_int(j, "tracks_left_out", (int64_t)thread_runs_left_out(t));
    return 0;
}

/* Updates of a batch each, layouts, and one that begins anew. */
static int flame_measure(struct flame_bench *b, struct json *j, const char *name) {
    static double count[FLAME_ROUNDS], update[FLAME_ROUNDS], layout[FLAME_ROUNDS], slices[FLAME_ROUNDS];
    struct flame_layout l = {0};
    struct flame_view view = {.zoom = FLAME_ROOT, .cols = 200, .rows = 50};
    json_key(j, name);
    json_object_begin(j);
    json_kv_int(j, "samples", (int64_t)b->given);
    b->query.tid = 101;
    if (sample_flame_update(b->flame, b->tally, &b->query) != 0)
        return -1;
    b->query.tid = 0;
    double at = flame_cpu_ms();
    if (sample_flame_update(b->flame, b->tally, &b->query) != 0)
        return -1;
    json_kv_number(j, "recount_ms", flame_cpu_ms() - at, 3);
    for (size_t i = 0; i < FLAME_ROUNDS; i++) {
        at = flame_cpu_ms();
        if (flame_give(b) != 0)
            return -1;
        count[i] = flame_cpu_ms() - at;
        at = flame_cpu_ms();
        if (sample_flame_update(b->flame, b->tally, &b->query) != 0)
            return -1;
        update[i] = flame_cpu_ms() - at;
        at = flame_cpu_ms();
        if (flame_layout_build(&l, sample_flame_tree(b->flame), &view) != 0)
            return -1;
        layout[i] = flame_cpu_ms() - at;
        at = flame_cpu_ms();
        if (flame_update_timeline(b, 0) != 0)
            return -1;
        slices[i] = flame_cpu_ms() - at;
    }
    json_kv_int(j, "nodes", (int64_t)flame_count(sample_flame_tree(b->flame)));
    json_kv_int(j, "entries", (int64_t)sample_store_count_entries(b->tally));
    flame_put(j, "count_1000", count);
    flame_put(j, "update_1000", update);
    flame_put(j, "layout_200x50", layout);
    json_kv_int(j, "cells", (int64_t)l.n);
    flame_put(j, "timeline_1000", slices);
    int rc = flame_measure_past(b, j);
    json_object_end(j);
    flame_layout_fini(&l);
    return rc;
}

static int flame_run(struct flame_bench *b, struct json *j) {
    double counting = flame_cpu_ms();
    while (b->given < 1000000)
        if (flame_give(b) != 0)
            return -1;
    counting = flame_cpu_ms() - counting;
    double building = flame_cpu_ms();
    if (sample_flame_update(b->flame, b->tally, &b->query) != 0)
        return -1;
    json_kv_number(j, "count_1m_ms", counting, 1);
    json_kv_number(j, "build_from_1m_ms", flame_cpu_ms() - building, 2);
    if (flame_measure(b, j, "after_1m") != 0)
        return -1;
    while (b->given < 10000000)
        if (flame_give(b) != 0)
            return -1;
    return flame_measure(b, j, "after_10m");
}

int main(void) {
    struct flame_bench *b = calloc(1, sizeof *b);
    struct strbuf out;
    struct json j;
    int rc = -1;
    if (b) {
        b->tally = sample_store_new();
        b->flame = sample_flame_new();
        b->timeline = timeline_new();
        b->query = (struct flame_query){.window = SAMPLE_STORE_10S, .time = FLAME_ALL_TIME};
        b->random = 1;
        flame_make_stacks(b);
    }
    strbuf_init(&out, 0);
    json_init(&j, &out, 2);
    json_object_begin(&j);
    json_kv_int(&j, "batch", FLAME_BATCH);
    if (b && b->tally && b->flame && b->timeline)
        rc = flame_run(b, &j);
    json_object_end(&j);
    if (rc == 0)
        puts(strbuf_str(&out));
    else
        fprintf(stderr, "flame: out of memory\n");
    strbuf_fini(&out);
    if (b) {
        sample_store_free(b->tally);
        sample_flame_free(b->flame);
        timeline_free(b->timeline);
    }
    free(b);
    return rc == 0 ? 0 : 1;
}
