/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export_speedscope: a file for speedscope: a 'sampled' profile for each thread, its samples in
 * order of time (https://www.speedscope.app/file-format-schema.json, made from
 * src/lib/file-format-spec.ts).
 *
 * Weights are microseconds. All profiles begin at the same moment, and where nothing is known of
 * a thread a sample without frames keeps the place, so that threads can be compared. Threads
 * never seen with a Python frame are left out.
 */
#include "client/export/export_formats.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/json.h"
#include "client/export/export_frames.h"
#include "client/export/export_lanes.h"
#include "flame/stack_counts.h"
#include "version.h"

#define SPEEDSCOPE_SCHEMA "https://www.speedscope.app/file-format-schema.json"

struct speedscope {
    const struct export_data *data;
    struct export_lanes lanes;
    struct export_frames frames;
    struct export_path path;
    struct json j;
    struct strbuf name;
    int64_t at_ns; /* position of the current thread */
};

/* A number of the file's list of frames is that of the counts's frame, or by function of the
 * function. */
static void speedscope_put_frames(struct speedscope *s) {
    const struct stack_counts *counts = s->data->counts;
    bool by_function = s->data->request->by_function;
    json_key(&s->j, "shared");
    json_object_begin(&s->j);
    json_key(&s->j, "frames");
    json_array_begin(&s->j);
    for (size_t i = 0; i < (by_function ? s->frames.n_functions : stack_counts_frames(counts)); i++) {
        const struct model_frame *f = stack_counts_frame(counts, by_function ? s->frames.frame[i] : i);
        json_object_begin(&s->j);
        export_name_function(&s->name, f, by_function);
        json_kv_string(&s->j, "name", strbuf_str(&s->name));
        if (f->file || f->module) {
            export_name_text(&s->name, f->file ? f->file : f->module);
            json_kv_string(&s->j, "file", strbuf_str(&s->name));
        }
        if (f->line > 0 && !by_function)
            json_kv_int(&s->j, "line", f->line);
        json_object_end(&s->j);
    }
    json_array_end(&s->j);
    json_object_end(&s->j);
}

/* ---- a thread ---- */

static int speedscope_has_frames(void *arg, const struct export_span *span) {
    (void)arg;
    return span->stack != STACK_COUNTS_NO_STACK;
}

static int speedscope_put_sample(void *arg, const struct export_span *span) {
    struct speedscope *s = arg;
    const uint32_t *map = s->data->request->by_function ? s->frames.function : NULL;
    if (export_path_set(&s->path, s->data->counts, span->stack, map) != 0)
        return -1;
    if (span->begin_ns > s->at_ns) {
        json_array_begin(&s->j);
        json_array_end(&s->j);
    }
    json_array_begin(&s->j);
    for (size_t i = 0; i < s->path.n; i++)
        json_uint(&s->j, s->path.at[i]);
    json_array_end(&s->j);
    s->at_ns = span->end_ns;
    return 0;
}

static int speedscope_put_weight(void *arg, const struct export_span *span) {
    struct speedscope *s = arg;
    if (span->begin_ns > s->at_ns)
        json_number(&s->j, (double)(span->begin_ns - s->at_ns) / 1e3, 3);
    json_number(&s->j, (double)(span->end_ns - span->begin_ns) / 1e3, 3);
    s->at_ns = span->end_ns;
    return 0;
}

static int speedscope_put_list(struct speedscope *s, size_t lane, const char *key,
                               int (*put)(void *arg, const struct export_span *span)) {
    json_key(&s->j, key);
    json_array_begin(&s->j);
    s->at_ns = 0;
    int rc = export_lanes_walk(&s->lanes, lane, put, s);
    json_array_end(&s->j);
    return rc;
}

static int speedscope_put_thread(struct speedscope *s, size_t lane) {
    int64_t tid = thread_runs_lane_tid(s->lanes.runs, lane);
    json_object_begin(&s->j);
    json_kv_string(&s->j, "type", "sampled");
    export_name_thread(&s->name, s->data->counts, tid);
    strbuf_addf(&s->name, " (%" PRId64 ")", tid);
    json_kv_string(&s->j, "name", strbuf_str(&s->name));
    json_kv_string(&s->j, "unit", "microseconds");
    json_kv_int(&s->j, "startValue", 0);
    int rc = speedscope_put_list(s, lane, "samples", speedscope_put_sample);
    rc = rc == 0 ? speedscope_put_list(s, lane, "weights", speedscope_put_weight) : rc;
    json_key(&s->j, "endValue");
    json_number(&s->j, (double)s->at_ns / 1e3, 3);
    json_object_end(&s->j);
    return rc;
}

/* The main thread is shown first. */
static int speedscope_put_threads(struct speedscope *s) {
    int64_t n = 0, active = 0;
    json_key(&s->j, "profiles");
    json_array_begin(&s->j);
    for (size_t i = 0; i < thread_runs_count_lanes(s->lanes.runs); i++) {
        if (export_lanes_walk(&s->lanes, i, speedscope_has_frames, NULL) == 0)
            continue;
        if (thread_runs_lane_tid(s->lanes.runs, i) == s->data->target->pid)
            active = n;
        if (speedscope_put_thread(s, i) != 0)
            return -1;
        n++;
    }
    json_array_end(&s->j);
    if (n > 0)
        json_kv_int(&s->j, "activeProfileIndex", active);
    return 0;
}

static int speedscope_put(struct speedscope *s, struct strbuf *out) {
    const struct model_target *target = s->data->target;
    json_object_begin(&s->j);
    json_kv_string(&s->j, "$schema", SPEEDSCOPE_SCHEMA);
    json_kv_string(&s->j, "exporter", "probing-top@" PROBING_VERSION);
    export_name_text(&s->name, target->host ? target->host : "?");
    strbuf_addf(&s->name, ": process %" PRId64, target->pid);
    if (target->rank != MODEL_UNKNOWN)
        strbuf_addf(&s->name, ", rank %" PRId64, target->rank);
    if (s->data->choice)
        strbuf_addf(&s->name, ": %s", s->data->choice);
    json_kv_string(&s->j, "name", strbuf_str(&s->name));
    speedscope_put_frames(s);
    if (speedscope_put_threads(s) != 0)
        return -1;
    json_object_end(&s->j);
    strbuf_addc(out, '\n');
    return json_finish(&s->j) == 0 && !out->failed && !s->name.failed ? 0 : -1;
}

int export_render_speedscope(const struct export_data *data, struct strbuf *out, struct err *e) {
    struct speedscope s = {.data = data};
    json_init(&s.j, out, 0);
    strbuf_init(&s.name, 2 * EXPORT_NAME_MAX);
    int frames = export_frames_init(&s.frames, data->counts, data->request->by_function);
    int lanes = export_lanes_init(&s.lanes, data->counts, data->runs);
    int rc = frames == 0 && lanes == 0 ? speedscope_put(&s, out) : -1;
    export_lanes_fini(&s.lanes);
    export_frames_fini(&s.frames);
    free(s.path.at);
    strbuf_fini(&s.name);
    return rc == 0 ? 0 : err_set(e, ERR_FAILED, "out of memory for the profile");
}
