/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export_perfetto: a trace for ui.perfetto.dev and the trace processor: a track for each thread
 * with a slice for each call, one for the GIL holder and one for the collecting thread
 * (google/perfetto, protos/perfetto/trace; the files are named below).
 *
 * A slice is a function that stays at its place in the stacks of consecutive samples. Samples
 * cannot show whether it was called once or repeatedly; its line changes within. Where a thread
 * was not seen its slices end. Times are CLOCK_REALTIME, which is the trace's clock. All packets
 * are of one sequence; names are interned in its first.
 */
#include "client/export/export_formats.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "base/grow.h"
#include "base/hash.h"
#include "client/export/export_frames.h"
#include "client/export/export_lanes.h"
#include "flame/stack_counts.h"
#include "client/export/protobuf.h"

/* trace.proto, trace_packet.proto */
enum { TRACE_PACKET = 1 };
enum {
    PACKET_CLOCK_SNAPSHOT = 6,
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE_ID = 10,
    PACKET_TRACK_EVENT = 11,
    PACKET_INTERNED_DATA = 12,
    PACKET_SEQUENCE_FLAGS = 13,
    PACKET_TIMESTAMP_CLOCK_ID = 58,
    PACKET_DEFAULTS = 59,
    PACKET_TRACK_DESCRIPTOR = 60,
    PACKET_FIRST_ON_SEQUENCE = 87,
};
enum { SEQUENCE_STATE_CLEARED = 1, SEQUENCE_NEEDS_STATE = 2 };
/* clock_snapshot.proto, common/builtin_clock.proto */
enum { SNAPSHOT_CLOCKS = 1, SNAPSHOT_PRIMARY_TRACE_CLOCK = 2 };
enum { CLOCK_ID = 1, CLOCK_TIMESTAMP = 2 };
enum { BUILTIN_REALTIME = 1, BUILTIN_BOOTTIME = 6 };
/* interned_data/interned_data.proto */
enum { INTERNED_EVENT_CATEGORIES = 1, INTERNED_EVENT_NAMES = 2, INTERNED_SOURCE_LOCATIONS = 4 };
enum { INTERNED_IID = 1, INTERNED_NAME = 2 };
/* track_event/source_location.proto */
enum { LOCATION_FILE_NAME = 2, LOCATION_FUNCTION_NAME = 3 };
/* track_event/track_descriptor.proto, process_descriptor.proto, thread_descriptor.proto */
enum { TRACK_UUID = 1, TRACK_NAME = 2, TRACK_PROCESS = 3, TRACK_THREAD = 4, TRACK_PARENT_UUID = 5 };
enum { PROCESS_PID = 1, PROCESS_CMDLINE = 2, PROCESS_NAME = 6, PROCESS_LABELS = 8 };
enum { THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
/* track_event/track_event.proto */
enum {
    EVENT_CATEGORY_IIDS = 3,
    EVENT_TYPE = 9,
    EVENT_NAME_IID = 10,
    EVENT_TRACK_UUID = 11,
    EVENT_NAME = 23,
    EVENT_SOURCE_LOCATION_IID = 34,
};
enum { EVENT_SLICE_BEGIN = 1, EVENT_SLICE_END = 2 };

enum { PERFETTO_CATEGORY_PYTHON = 1, PERFETTO_CATEGORY_GIL, PERFETTO_CATEGORY_GC, PERFETTO_CATEGORIES };
static const char *const perfetto_categories[] = {"", "python", "gil", "gc"};

/* Track numbers must differ from those of other traces with which this one may be merged. */
enum perfetto_track { PERFETTO_PROCESS = 1, PERFETTO_THREAD, PERFETTO_GIL, PERFETTO_GC };

#define PERFETTO_SEQUENCE 1

/* An interval in which a thread holds the GIL, or collects garbage. */
struct perfetto_interval {
    int64_t begin_ns, end_ns, tid;
};

struct perfetto {
    const struct export_data *data;
    struct export_lanes lanes;
    struct export_frames frames;
    struct export_path path, open; /* functions of the current stack, and of the open slices */
    struct perfetto_interval *holds;
    size_t n_holds, cap_holds;
    struct strbuf *out;
    struct strbuf name;
    uint64_t track; /* of the current thread */
    int64_t tid;
    int64_t at_ns; /* its position */
    uint8_t flag;  /* of the collected intervals */
};

static uint64_t perfetto_uuid(const struct perfetto *p, enum perfetto_track kind, int64_t tid) {
    const struct model_target *t = p->data->target;
    uint64_t started =
        isfinite(t->started_at) && fabs(t->started_at) < 1e12 ? (uint64_t)(int64_t)t->started_at : 0;
    return hash_mix(hash_mix(hash_mix((uint64_t)t->pid) ^ started) ^ hash_mix((uint64_t)tid) ^ kind) | 1;
}

/* ---- packets ---- */

static size_t perfetto_begin_packet(struct perfetto *p, unsigned flags) {
    size_t at = protobuf_begin(p->out, TRACE_PACKET);
    protobuf_put_uint(p->out, PACKET_SEQUENCE_ID, PERFETTO_SEQUENCE);
    if (flags)
        protobuf_put_uint(p->out, PACKET_SEQUENCE_FLAGS, flags);
    return at;
}

static void perfetto_put_clock(struct perfetto *p, unsigned id, uint64_t ns) {
    size_t at = protobuf_begin(p->out, SNAPSHOT_CLOCKS);
    protobuf_put_uint(p->out, CLOCK_ID, id);
    protobuf_put_uint(p->out, CLOCK_TIMESTAMP, ns);
    protobuf_end(p->out, at);
}

static uint64_t perfetto_now(clockid_t clock) {
    struct timespec t = {0};
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

/* A live trace can be put beside a kernel trace by the time since boot; a recording does not
 * have that. */
static void perfetto_put_clocks(struct perfetto *p) {
    size_t packet = perfetto_begin_packet(p, 0), at = protobuf_begin(p->out, PACKET_CLOCK_SNAPSHOT);
    protobuf_put_uint(p->out, SNAPSHOT_PRIMARY_TRACE_CLOCK, BUILTIN_REALTIME);
    if (p->data->target->mode == MODEL_MODE_RECORDED) {
        perfetto_put_clock(p, BUILTIN_REALTIME, (uint64_t)p->lanes.from_ns);
    } else {
        perfetto_put_clock(p, BUILTIN_REALTIME, perfetto_now(CLOCK_REALTIME));
        perfetto_put_clock(p, BUILTIN_BOOTTIME, perfetto_now(CLOCK_BOOTTIME));
    }
    protobuf_end(p->out, at);
    protobuf_end(p->out, packet);
}

/* Name and place of function number `i`, both under the next number: there is no number 0. */
static void perfetto_put_function(struct perfetto *p, size_t i) {
    const struct model_frame *f = stack_counts_frame(p->data->counts, p->frames.frame[i]);
    size_t at = protobuf_begin(p->out, INTERNED_EVENT_NAMES);
    protobuf_put_uint(p->out, INTERNED_IID, i + 1);
    export_name_function(&p->name, f, true);
    protobuf_put_string(p->out, INTERNED_NAME, strbuf_str(&p->name));
    protobuf_end(p->out, at);
    at = protobuf_begin(p->out, INTERNED_SOURCE_LOCATIONS);
    protobuf_put_uint(p->out, INTERNED_IID, i + 1);
    protobuf_put_string(p->out, LOCATION_FUNCTION_NAME, strbuf_str(&p->name));
    export_name_text(&p->name, f->file ? f->file : f->module ? f->module : "?");
    protobuf_put_string(p->out, LOCATION_FILE_NAME, strbuf_str(&p->name));
    protobuf_end(p->out, at);
}

/* The first of its sequence: all others depend on it. */
static void perfetto_put_state(struct perfetto *p) {
    size_t packet = perfetto_begin_packet(p, SEQUENCE_STATE_CLEARED);
    protobuf_put_uint(p->out, PACKET_FIRST_ON_SEQUENCE, 1);
    size_t at = protobuf_begin(p->out, PACKET_DEFAULTS);
    protobuf_put_uint(p->out, PACKET_TIMESTAMP_CLOCK_ID, BUILTIN_REALTIME);
    protobuf_end(p->out, at);
    at = protobuf_begin(p->out, PACKET_INTERNED_DATA);
    for (unsigned i = 1; i < PERFETTO_CATEGORIES; i++) {
        size_t category = protobuf_begin(p->out, INTERNED_EVENT_CATEGORIES);
        protobuf_put_uint(p->out, INTERNED_IID, i);
        protobuf_put_string(p->out, INTERNED_NAME, perfetto_categories[i]);
        protobuf_end(p->out, category);
    }
    for (size_t i = 0; i < p->frames.n_functions; i++)
        perfetto_put_function(p, i);
    protobuf_end(p->out, at);
    protobuf_end(p->out, packet);
}

static void perfetto_put_process(struct perfetto *p) {
    const struct model_target *t = p->data->target;
    size_t packet = perfetto_begin_packet(p, 0), at = protobuf_begin(p->out, PACKET_TRACK_DESCRIPTOR);
    protobuf_put_uint(p->out, TRACK_UUID, perfetto_uuid(p, PERFETTO_PROCESS, 0));
    size_t process = protobuf_begin(p->out, TRACK_PROCESS);
    protobuf_put_int(p->out, PROCESS_PID, t->pid);
    export_name_text(&p->name, t->cmdline ? t->cmdline : t->exe ? t->exe : "?");
    protobuf_put_string(p->out, PROCESS_CMDLINE, strbuf_str(&p->name));
    if (t->rank != MODEL_UNKNOWN) {
        export_name_text(&p->name, "");
        strbuf_addf(&p->name, "rank %lld", (long long)t->rank);
        protobuf_put_string(p->out, PROCESS_NAME, strbuf_str(&p->name));
    }
    if (p->data->choice) {
        export_name_text(&p->name, p->data->choice);
        protobuf_put_string(p->out, PROCESS_LABELS, strbuf_str(&p->name));
    }
    protobuf_end(p->out, process);
    protobuf_end(p->out, at);
    protobuf_end(p->out, packet);
}

static void perfetto_put_thread(struct perfetto *p) {
    size_t packet = perfetto_begin_packet(p, 0), at = protobuf_begin(p->out, PACKET_TRACK_DESCRIPTOR);
    protobuf_put_uint(p->out, TRACK_UUID, p->track);
    protobuf_put_uint(p->out, TRACK_PARENT_UUID, perfetto_uuid(p, PERFETTO_PROCESS, 0));
    size_t thread = protobuf_begin(p->out, TRACK_THREAD);
    protobuf_put_int(p->out, THREAD_PID, p->data->target->pid);
    protobuf_put_int(p->out, THREAD_TID, p->tid);
    export_name_thread(&p->name, p->data->counts, p->tid);
    protobuf_put_string(p->out, THREAD_NAME, strbuf_str(&p->name));
    protobuf_end(p->out, thread);
    protobuf_end(p->out, at);
    protobuf_end(p->out, packet);
}

static void perfetto_put_named_track(struct perfetto *p, const char *name) {
    size_t packet = perfetto_begin_packet(p, 0), at = protobuf_begin(p->out, PACKET_TRACK_DESCRIPTOR);
    protobuf_put_uint(p->out, TRACK_UUID, p->track);
    protobuf_put_uint(p->out, TRACK_PARENT_UUID, perfetto_uuid(p, PERFETTO_PROCESS, 0));
    protobuf_put_string(p->out, TRACK_NAME, name);
    protobuf_end(p->out, at);
    protobuf_end(p->out, packet);
}

/* An event of a slice: its begin with an interned name, or with number 0 the one in `name`; or
 * its end. */
static void perfetto_put_begin(struct perfetto *p, int64_t at_ns, unsigned category, uint64_t iid) {
    size_t packet = perfetto_begin_packet(p, SEQUENCE_NEEDS_STATE);
    protobuf_put_int(p->out, PACKET_TIMESTAMP, p->lanes.from_ns + at_ns);
    size_t at = protobuf_begin(p->out, PACKET_TRACK_EVENT);
    protobuf_put_uint(p->out, EVENT_TYPE, EVENT_SLICE_BEGIN);
    protobuf_put_uint(p->out, EVENT_TRACK_UUID, p->track);
    protobuf_put_uint(p->out, EVENT_CATEGORY_IIDS, category);
    if (iid) {
        protobuf_put_uint(p->out, EVENT_NAME_IID, iid);
        protobuf_put_uint(p->out, EVENT_SOURCE_LOCATION_IID, iid);
    } else {
        protobuf_put_string(p->out, EVENT_NAME, strbuf_str(&p->name));
    }
    protobuf_end(p->out, at);
    protobuf_end(p->out, packet);
}

static void perfetto_put_end(struct perfetto *p, int64_t at_ns) {
    size_t packet = perfetto_begin_packet(p, SEQUENCE_NEEDS_STATE);
    protobuf_put_int(p->out, PACKET_TIMESTAMP, p->lanes.from_ns + at_ns);
    size_t at = protobuf_begin(p->out, PACKET_TRACK_EVENT);
    protobuf_put_uint(p->out, EVENT_TYPE, EVENT_SLICE_END);
    protobuf_put_uint(p->out, EVENT_TRACK_UUID, p->track);
    protobuf_end(p->out, at);
    protobuf_end(p->out, packet);
}

/* ---- a thread ---- */

/* End open slices, innermost first, until `keep` are left. */
static void perfetto_close(struct perfetto *p, size_t keep, int64_t at_ns) {
    for (; p->open.n > keep; p->open.n--)
        perfetto_put_end(p, at_ns);
}

static int perfetto_put_span(void *arg, const struct export_span *span) {
    struct perfetto *p = arg;
    if (export_path_set(&p->path, p->data->counts, span->stack, p->frames.function) != 0 ||
        export_path_reserve(&p->open, p->path.n) != 0)
        return -1;
    if (span->begin_ns > p->at_ns)
        perfetto_close(p, 0, p->at_ns);
    size_t same = 0;
    while (same < p->open.n && same < p->path.n && p->open.at[same] == p->path.at[same])
        same++;
    perfetto_close(p, same, span->begin_ns);
    for (; p->open.n < p->path.n; p->open.n++) {
        p->open.at[p->open.n] = p->path.at[p->open.n];
        perfetto_put_begin(p, span->begin_ns, PERFETTO_CATEGORY_PYTHON, (uint64_t)p->open.at[p->open.n] + 1);
    }
    p->at_ns = span->end_ns;
    return p->out->failed ? -1 : 0;
}

static int perfetto_has_frames(void *arg, const struct export_span *span) {
    (void)arg;
    return span->stack != STACK_COUNTS_NO_STACK;
}

static void perfetto_turn_to(struct perfetto *p, size_t lane) {
    p->tid = thread_runs_lane_tid(p->lanes.runs, lane);
    p->track = perfetto_uuid(p, PERFETTO_THREAD, p->tid);
    p->at_ns = 0;
    p->open.n = 0;
}

static int perfetto_put_threads(struct perfetto *p) {
    for (size_t i = 0; i < thread_runs_count_lanes(p->lanes.runs); i++) {
        if (export_lanes_walk(&p->lanes, i, perfetto_has_frames, NULL) == 0)
            continue;
        perfetto_turn_to(p, i);
        perfetto_put_thread(p);
        if (export_lanes_walk(&p->lanes, i, perfetto_put_span, p) != 0)
            return -1;
        perfetto_close(p, 0, p->at_ns);
    }
    return 0;
}

/* ---- the GIL, the garbage collector ---- */

static int perfetto_collect(void *arg, const struct export_span *span) {
    struct perfetto *p = arg;
    if (!(span->flags & p->flag))
        return 0;
    struct perfetto_interval *last = p->n_holds ? &p->holds[p->n_holds - 1] : NULL;
    if (last && last->tid == p->tid && last->end_ns == span->begin_ns) {
        last->end_ns = span->end_ns;
        return 0;
    }
    if (grow_array(&p->holds, sizeof *p->holds, p->n_holds + 1, &p->cap_holds) != 0)
        return -1;
    p->holds[p->n_holds++] = (struct perfetto_interval){span->begin_ns, span->end_ns, p->tid};
    return 0;
}

static int perfetto_compare_intervals(const void *a, const void *b) {
    const struct perfetto_interval *x = a, *y = b;
    int order = (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
    return order ? order : (x->tid > y->tid) - (x->tid < y->tid);
}

/* The holders, one after the other. Samples may be of two moments, so of two simultaneous
 * holders the first ends where the next begins. */
static int perfetto_put_intervals(struct perfetto *p, enum perfetto_track kind, const char *name,
                                  uint8_t flag, unsigned category) {
    p->flag = flag;
    p->n_holds = 0;
    for (size_t i = 0; i < thread_runs_count_lanes(p->lanes.runs); i++) {
        perfetto_turn_to(p, i);
        if (export_lanes_walk(&p->lanes, i, perfetto_collect, p) != 0)
            return -1;
    }
    p->track = perfetto_uuid(p, kind, 0);
    perfetto_put_named_track(p, name);
    if (p->n_holds)
        qsort(p->holds, p->n_holds, sizeof *p->holds, perfetto_compare_intervals);
    for (size_t i = 0; i < p->n_holds && !p->out->failed; i++) {
        struct perfetto_interval *h = &p->holds[i];
        if (i + 1 < p->n_holds && h->end_ns > h[1].begin_ns)
            h->end_ns = h[1].begin_ns;
        if (h->end_ns == h->begin_ns)
            continue;
        export_name_thread(&p->name, p->data->counts, h->tid);
        strbuf_addf(&p->name, " (%lld)", (long long)h->tid);
        perfetto_put_begin(p, h->begin_ns, category, 0);
        perfetto_put_end(p, h->end_ns);
    }
    return 0;
}

static int perfetto_put(struct perfetto *p) {
    perfetto_put_state(p);
    perfetto_put_clocks(p);
    perfetto_put_process(p);
    if (perfetto_put_threads(p) != 0 ||
        perfetto_put_intervals(p, PERFETTO_GIL, "GIL", THREAD_RUNS_GIL_HOLDING, PERFETTO_CATEGORY_GIL) != 0 ||
        perfetto_put_intervals(p, PERFETTO_GC, "Garbage collection", THREAD_RUNS_GC, PERFETTO_CATEGORY_GC) !=
            0)
        return -1;
    return p->out->failed || p->name.failed ? -1 : 0;
}

int export_render_perfetto(const struct export_data *data, struct strbuf *out, struct err *e) {
    struct perfetto p = {.data = data, .out = out};
    strbuf_init(&p.name, 2 * EXPORT_NAME_MAX);
    int frames = export_frames_init(&p.frames, data->counts, true);
    int lanes = export_lanes_init(&p.lanes, data->counts, data->runs);
    int rc = frames == 0 && lanes == 0 ? perfetto_put(&p) : -1;
    export_lanes_fini(&p.lanes);
    export_frames_fini(&p.frames);
    free(p.path.at);
    free(p.open.at);
    free(p.holds);
    strbuf_fini(&p.name);
    return rc == 0 ? 0 : err_set(e, ERR_FAILED, "out of memory for the trace");
}
