/* SPDX-License-Identifier: Apache-2.0 */
/* recording_make: see recording.h. Snapshots and batches of samples, as a living target would send them. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "client/sql/recording.h"

#define RECORDING_SNAPSHOT_MEMORY ((size_t)64 * 1024 * 1024)
#define RECORDING_BATCH_MEMORY ((size_t)512 * 1024 * 1024)
#define RECORDING_MAX_DEPTH 2048
#define RECORDING_TIME_MAX 1e11 /* what a calendar can say */

static const struct model_stack_def *recording_find_stack(const struct recording *p, uint32_t id) {
    size_t low = 0, high = p->n_stacks;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->stacks[middle].stack_id == id)
            return &p->stacks[middle];
        if (p->stacks[middle].stack_id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static const struct model_frame *recording_find_frame(const struct recording *p, uint32_t id) {
    size_t low = 0, high = p->n_frames;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->frames[middle].frame_id == id)
            return &p->frames[middle].frame;
        if (p->frames[middle].frame_id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static void recording_copy_frame(struct arena *a, struct model_frame *to, const struct model_frame *f) {
    *to = f ? *f : (struct model_frame){.kind = MODEL_FRAME_PYTHON};
    to->func = arena_strdup(a, to->func);
    to->file = arena_strdup(a, to->file);
    to->module = arena_strdup(a, to->module);
}

/* Frames of a stack, innermost first. What was overwritten is left out, and the thread says so. */
static void recording_put_stack(const struct recording *p, uint32_t stack_id, struct arena *a,
                                struct model_thread *t) {
    size_t n = 0;
    uint32_t id = stack_id;
    const struct model_stack_def *s;
    for (; n < RECORDING_MAX_DEPTH && id != 0 && (s = recording_find_stack(p, id)); id = s->parent_id)
        n++;
    t->truncated = id != 0;
    t->frames = arena_calloc(a, n + 1, sizeof *t->frames);
    id = stack_id;
    for (size_t i = 0; t->frames && i < n; i++) {
        s = recording_find_stack(p, id);
        recording_copy_frame(a, &t->frames[i], recording_find_frame(p, s->frame_id));
        id = s->parent_id;
    }
    t->n_frames = t->frames ? n : 0;
}

/* Who holds the GIL: 0 when each thread that was looked at says that it has nothing to do with it. */
static int64_t recording_find_holder(const struct model_snapshot *s) {
    bool looked = false, sure = true;
    for (size_t i = 0; i < s->n_threads; i++) {
        const struct model_thread *t = &s->threads[i];
        if (t->gil == MODEL_GIL_HOLDING)
            return t->tid;
        looked = looked || t->has_python;
        sure = sure && (!t->has_python || t->gil == MODEL_GIL_NONE);
    }
    return looked && sure ? 0 : MODEL_UNKNOWN;
}

/* A snapshot of some threads at a time; that of the process comes first. */
static int recording_make_state(const struct recording *p, const struct recording_thread *threads, size_t n,
                                double time_s, struct model_snapshot *out) {
    *out = (struct model_snapshot){.timestamp = time_s,
                                   .gil_tid = MODEL_UNKNOWN,
                                   .gil_enabled = MODEL_UNKNOWN,
                                   .gc_running = MODEL_UNKNOWN,
                                   .cost_us = NAN,
                                   .process = p->process};
    arena_init(&out->arena, RECORDING_SNAPSHOT_MEMORY);
    out->threads = arena_calloc(&out->arena, n + 1, sizeof *out->threads);
    for (int pass = 0; out->threads && pass < 2; pass++)
        for (size_t i = 0; i < n; i++) {
            const struct recording_thread *from = &threads[i];
            bool main = from->thread.tid == p->pid;
            if (main != (pass == 0))
                continue;
            struct model_thread *t = &out->threads[out->n_threads++];
            *t = from->thread;
            t->name = arena_strdup(&out->arena, from->thread.name);
            t->native_name = arena_strdup(&out->arena, from->thread.native_name);
            recording_put_stack(p, from->stack_id, &out->arena, t);
            if (t->gc == 1)
                out->gc_running = 1;
        }
    out->gil_tid = recording_find_holder(out);
    return out->threads && !out->arena.failed ? 0 : -1;
}

int recording_make_snapshot(const struct recording *p, struct model_snapshot *out) {
    return recording_make_state(p, p->threads, p->n_threads, p->seen_until, out);
}

int recording_make_snapshot_at(struct recording *p, size_t moment, struct model_snapshot *out) {
    struct recording_snapshot m = recording_read_snapshot(p, moment);
    int rc = recording_make_state(p, m.threads, m.n_threads, m.time_s, out);
    out->process = m.process;
    return rc;
}

static int recording_define(const struct recording *p, struct model_sample_batch *b) {
    b->frames = arena_calloc(&b->arena, p->n_frames + 1, sizeof *b->frames);
    b->stacks = arena_calloc(&b->arena, p->n_stacks + 1, sizeof *b->stacks);
    b->threads = arena_calloc(&b->arena, p->n_names + 1, sizeof *b->threads);
    if (!b->frames || !b->stacks || !b->threads)
        return -1;
    for (size_t i = 0; i < p->n_frames; i++) {
        b->frames[i].frame_id = p->frames[i].frame_id;
        recording_copy_frame(&b->arena, &b->frames[i].frame, &p->frames[i].frame);
    }
    if (p->n_stacks)
        memcpy(b->stacks, p->stacks, p->n_stacks * sizeof *b->stacks);
    for (size_t i = 0; i < p->n_names; i++)
        b->threads[i] =
            (struct model_thread_def){.tid = p->names[i].tid,
                                      .name = arena_strdup(&b->arena, p->names[i].name),
                                      .native_name = arena_strdup(&b->arena, p->names[i].native_name)};
    b->n_frames = p->n_frames;
    b->n_stacks = p->n_stacks;
    b->n_threads = p->n_names;
    return 0;
}

/* Mean time that looks of samples [from, to) stand for; NAN there are none. */
static double recording_mean_us(const struct recording *p, size_t from, size_t to) {
    double us = 0;
    size_t n = 0;
    for (size_t i = from; i < to; i++)
        if (i == from || p->samples[i].timestamp > p->samples[i - 1].timestamp) {
            us += p->us[i];
            n++;
        }
    return n && us > 0 ? us / (double)n : NAN;
}

int recording_make_batch(const struct recording *p, size_t *next, struct model_sample_batch *out) {
    size_t from = *next, to = from;
    *out = (struct model_sample_batch){.epoch = 1, .cost_pct = NAN, .budget_pct = NAN};
    arena_init(&out->arena, RECORDING_BATCH_MEMORY);
    do
        to++;
    while (to < p->n_samples && p->samples[to].timestamp < p->samples[from].timestamp + 1);
    *next = to;
    if (from == 0 && recording_define(p, out) != 0)
        return -1;
    out->period_us = recording_mean_us(p, from, to);
    out->samples = arena_calloc(&out->arena, to - from + 1, sizeof *out->samples);
    out->us = arena_calloc(&out->arena, to - from + 1, sizeof *out->us);
    if (!out->samples || !out->us || out->arena.failed)
        return -1;
    memcpy(out->samples, p->samples + from, (to - from) * sizeof *out->samples);
    memcpy(out->us, p->us + from, (to - from) * sizeof *out->us);
    out->n_samples = to - from;
    return 0;
}

/* "ended, last seen 2026-11-20 12:40:01Z: WHY" */
static const char *recording_describe(const struct recording *p, const char *why, struct arena *a) {
    char at[40] = "at an unknown time", text[600];
    time_t t = (time_t)p->seen_until;
    struct tm tm;
    if (p->seen_until > 0 && p->seen_until < RECORDING_TIME_MAX && gmtime_r(&t, &tm))
        (void)strftime(at, sizeof at, "%Y-%m-%d %H:%M:%SZ", &tm);
    (void)snprintf(text, sizeof text, "last seen %s; %s%s", at, why,
                   p->finalized ? "; its interpreter had ended by then" : "");
    return arena_strdup(a, text);
}

int recording_make_target(const struct recording *p, const char *why, struct model_target *out) {
    *out =
        (struct model_target){.pid = p->pid,
                              .uid = MODEL_UNKNOWN,
                              .rank = p->rank,
                              .started_at = p->started_at,
                              .mode = MODEL_MODE_RECORDED,
                              .seen_until = p->seen_until,
                              .seen_s = p->n_samples ? p->samples[p->n_samples - 1].timestamp - p->from : 0,
                              .seen_is_cut = p->is_cut};
    arena_init(&out->arena, RECORDING_SNAPSHOT_MEMORY);
    out->host = arena_strdup(&out->arena, p->host);
    out->cmdline = arena_strdup(&out->arena, p->cmdline);
    out->exe = arena_strdup(&out->arena, p->exe);
    out->python = arena_strdup(&out->arena, p->python);
    out->torch = arena_strdup(&out->arena, p->torch);
    out->agent_version = arena_strdup(&out->arena, p->agent);
    out->mode_reason = recording_describe(p, why, &out->arena);
    return out->arena.failed ? -1 : 0;
}
