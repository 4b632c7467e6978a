/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples in the order of time: as long as they weigh, gaps where nothing was seen, never far from their clock; and the two
 * formats that are made of that, every byte of the one and every event of the other.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/export/export_formats.h"
#include "client/export/export_lanes.h"
#include "flame/stack_counts.h"
#include "client/samples/thread_runs.h"
#include "support/protobuf_reader.h"

#define MS 1000000LL
#define MAX_SAMPLES 4096
#define TORN UINT32_MAX

struct world {
    struct stack_counts *fold;
    struct thread_runs *tracks;
    struct model_sample samples[MAX_SAMPLES];
    size_t n;
};

static int set_up(void **state) {
    struct world *w = calloc(1, sizeof *w);
    w->fold = stack_counts_new();
    w->tracks = thread_runs_new();
    *state = w;
    return 0;
}

static int tear_down(void **state) {
    struct world *w = *state;
    thread_runs_free(w->tracks);
    stack_counts_free(w->fold);
    free(w);
    return 0;
}

static struct model_sample *see(struct world *w, double s, int64_t tid, uint32_t stack) {
    assert_true(w->n < MAX_SAMPLES);
    w->samples[w->n] = (struct model_sample){.timestamp = 1000 + s,
                                             .tid = tid,
                                             .stack_id = stack == TORN ? 0 : stack,
                                             .on_cpu = 1,
                                             .torn = stack == TORN};
    return &w->samples[w->n++];
}

/* What was seen, as a batch whose samples weigh `us`. */
static void take(struct world *w, double us) {
    static struct model_frame_def frames[] = {
        {1, {MODEL_FRAME_PYTHON, "main", "/job/train.py", 9}},
        {2, {MODEL_FRAME_PYTHON, "train", "/job/train.py", 5}},
        {3, {MODEL_FRAME_PYTHON, "step", "/job/train.py", 77}},
        {4, {MODEL_FRAME_PYTHON, "step", "/job/train.py", 78}},
        {5, {.kind = MODEL_FRAME_NATIVE, .module = "/lib/libcuda.so", .address = 0x1234}},
        {6, {MODEL_FRAME_PYTHON, "a\"b\\\n\x1b\xff<script>", NULL, 1}}};
    static struct model_stack_def stacks[] = {{1, 0, 1}, {2, 1, 2}, {3, 2, 3},
                                              {4, 2, 4}, {5, 2, 5}, {6, 0, 6}};
    static struct model_thread_def threads[] = {
        {7, "MainThread", "python"}, {8, NULL, "pt"}, {9, "load\"er", NULL}};
    struct model_sample_batch b = {.epoch = 1, .period_us = us, .frames = frames, .n_frames = 6};
    b.stacks = stacks;
    b.n_stacks = 6;
    b.threads = threads;
    b.n_threads = 3;
    b.samples = w->samples;
    b.n_samples = w->n;
    assert_int_equal(stack_counts_add_batch(w->fold, &b), 0);
    const uint32_t *entries = stack_counts_batch_entries(w->fold);
    for (size_t i = 0; i < w->n; i++) {
        const struct model_sample *s = &w->samples[i];
        struct thread_runs_sample sample = {s->timestamp, us > 0 ? us : 0, s->tid, entries[i],
                                            thread_runs_flags(s)};
        assert_int_equal(thread_runs_add(w->tracks, &sample), 1);
    }
    w->n = 0;
}

struct spans {
    struct export_span at[MAX_SAMPLES];
    size_t n;
};

static int keep_span(void *arg, const struct export_span *span) {
    struct spans *s = arg;
    s->at[s->n++] = *span;
    return 0;
}

static void walk(const struct world *w, int64_t tid, struct spans *out) {
    struct export_lanes l;
    out->n = 0;
    assert_int_equal(export_lanes_init(&l, w->fold, w->tracks), 0);
    assert_int_equal(export_lanes_walk(&l, (size_t)thread_runs_find_lane(w->tracks, tid), keep_span, out), 0);
    export_lanes_fini(&l);
    for (size_t i = 0; i < out->n; i++) {
        assert_true(out->at[i].begin_ns < out->at[i].end_ns);
        assert_true(i == 0 || out->at[i - 1].end_ns <= out->at[i].begin_ns);
    }
}

/* ---- laid out ---- */

/* Looks at random distances, whose mean is what they weigh: each is as long as that, there is no gap, and none is far away
 * from its time. */
static void check_spread(void **state) {
    struct world *w = *state;
    static struct spans s;
    uint64_t random = 7;
    double at = 0;
    for (int i = 0; i < 1000; i++) {
        see(w, at, 7, i % 2 ? 3 : 5);
        random = random * 6364136223846793005ULL + 1442695040888963407ULL;
        at += 0.002 + 0.016 * (double)(random >> 40) / (1 << 24);
    }
    take(w, at / 1000 * 1e6);
    walk(w, 7, &s);
    assert_int_equal(s.n, 1000);
    for (size_t i = 1; i < s.n; i++)
        assert_true(s.at[i].begin_ns == s.at[i - 1].end_ns);
    assert_true(llabs(s.at[999].end_ns - llround(at * 1e9)) < 1000); /* rounded to a nanosecond each */
    for (uint32_t i = 0; i < 1000; i++)
        assert_true(fabs((double)s.at[i].begin_ns / 1e9 - (thread_runs_tick_time(w->tracks, i) - 1000)) <
                    0.25);
}

/* A pause is a gap; so is a look in which the thread was not seen, or was torn. */
static void check_gaps(void **state) {
    struct world *w = *state;
    static struct spans s;
    static const double at[] = {0, 0.01, 0.02, 1.02, 1.03, 1.04, 1.05};
    for (size_t i = 0; i < 7; i++) {
        see(w, at[i], 8, 0);
        if (i != 4)
            see(w, at[i], 7, i == 5 ? TORN : 3);
    }
    take(w, 10000);
    walk(w, 7, &s);
    assert_int_equal(s.n, 3);
    assert_true(s.at[0].begin_ns == 0 && s.at[0].end_ns == 30 * MS);
    assert_true(llabs(s.at[1].begin_ns - 1020 * MS) < 1000 && s.at[1].end_ns - s.at[1].begin_ns == 10 * MS);
    assert_true(s.at[2].begin_ns - s.at[1].end_ns == 20 * MS);
    walk(w, 8, &s);
    assert_int_equal(s.n, 2);
    assert_int_equal(s.at[0].stack, STACK_COUNTS_NO_STACK);
}

/* Weights that are wrong do not carry samples away from their time: a second after it, or before. */
static void check_strays(void **state) {
    struct world *w = *state;
    static struct spans s;
    for (int i = 0; i < 1000; i++)
        see(w, 0.01 * i, 7, i % 2 ? 3 : 5);
    take(w, 30000); /* three times too much */
    walk(w, 7, &s);
    assert_int_equal(s.n, 1000);
    for (int i = 0; i < 1000; i++)
        assert_true(llabs(s.at[i].begin_ns - i * 10 * MS) <= LANES_STRAY_NS + MS);
    for (int i = 0; i < 1000; i++)
        see(w, 20 + 0.01 * i, 7, i % 2 ? 3 : 5);
    take(w, 4000); /* less than half, without a pause */
    walk(w, 7, &s);
    assert_int_equal(s.n, 2000);
    for (int i = 0; i < 1000; i++)
        assert_true(llabs(s.at[1000 + i].begin_ns - (20000 + i * 10) * MS) <= LANES_STRAY_NS + MS);
}

/* Without a weight there is no time to show. */
static void check_weightless(void **state) {
    struct world *w = *state;
    static struct spans s;
    see(w, 0, 7, 3);
    see(w, 1, 7, 3);
    take(w, NAN);
    walk(w, 7, &s);
    assert_int_equal(s.n, 0);
}

static void check_note(void **state) {
    struct world *w = *state;
    struct strbuf note;
    strbuf_init(&note, 0);
    see(w, 0, 7, 3);
    see(w, 0.01, 7, 3);
    take(w, 10000);
    export_lanes_note(w->tracks, w->fold, &note);
    assert_string_equal(strbuf_str(&note), "");
    thread_runs_free(w->tracks);
    w->tracks = thread_runs_new_sized(64, 1024);
    for (int i = 0; i < 1000; i++)
        see(w, 0.1 * i, 7, 3);
    take(w, 100000);
    export_lanes_note(w->tracks, w->fold, &note);
    assert_string_equal(strbuf_str(&note), "only the last 6 s are included: older samples have no time");
    static struct spans s;
    walk(w, 7, &s);
    assert_int_equal(s.n, 1);
    assert_true(llabs(s.at[0].end_ns - 6400 * MS) < 1000);
    strbuf_fini(&note);
}

/* ---- the formats ---- */

/* Ten looks, 10 ms apart. */
static void see_job(struct world *w) {
    static const uint32_t main_thread[] = {3, 3, 3, 4, 4, TORN, 5, 5, 99, 3};
    for (int i = 0; i < 10; i++) {
        struct model_sample *s = i == 8 ? NULL : see(w, i / 100.0, 7, main_thread[i]);
        if (s)
            s->gil = i < 3 ? MODEL_GIL_HOLDING : MODEL_GIL_NONE;
        see(w, i / 100.0, 8, 0);
        if (i >= 4) {
            s = see(w, i / 100.0, 9, i < 6 ? 6 : 1);
            s->gil = i == 4 || i == 6 ? MODEL_GIL_HOLDING : MODEL_GIL_WAITING;
            s->gc = i == 6;
        }
    }
    take(w, 10000);
}

static void render(const struct world *w, bool by_function, int64_t rank,
                   int (*put)(const struct export_data *, struct strbuf *, struct err *),
                   struct strbuf *out) {
    struct model_target target = {
        .pid = 7, .rank = rank, .host = "box", .cmdline = "python train.py", .mode = MODEL_MODE_RECORDED};
    struct export_request r = {.by_function = by_function};
    struct export_data data = {.request = &r, .target = &target, .counts = w->fold, .runs = w->tracks};
    struct err e = {0};
    strbuf_init(out, 1 << 24);
    assert_int_equal(put(&data, out, &e), 0);
}

static void check_speedscope(void **state) {
    struct world *w = *state;
    struct strbuf out;
    see_job(w);
    render(w, false, 3, export_render_speedscope, &out);
    const char *text = strbuf_str(&out);
    const char *shared = strstr(text, "\"shared\":");
    assert_non_null(shared);
    assert_memory_equal(
        text,
        "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":\"probing-top@",
        85);
    assert_non_null(strstr(text, "\"name\":\"box: process 7, rank 3\","));
    assert_string_equal(
        shared,
        "\"shared\":{\"frames\":["
        "{\"name\":\"main\",\"file\":\"/job/train.py\",\"line\":9},"
        "{\"name\":\"train\",\"file\":\"/job/train.py\",\"line\":5},"
        "{\"name\":\"step\",\"file\":\"/job/train.py\",\"line\":77},"
        "{\"name\":\"step\",\"file\":\"/job/train.py\",\"line\":78},"
        "{\"name\":\"libcuda.so+0x1234\",\"file\":\"/lib/libcuda.so\"},"
        "{\"name\":\"a\\\"b\\\\ \xEF\xBF\xBD\xEF\xBF\xBD<script>\",\"line\":1}]},"
        "\"profiles\":["
        "{\"type\":\"sampled\",\"name\":\"MainThread (7)\",\"unit\":\"microseconds\",\"startValue\":0,"
        "\"samples\":[[0,1,2],[0,1,3],[],[0,1,4],[],[0,1,2]],"
        "\"weights\":[30000.000,20000.000,10000.000,20000.000,10000.000,10000.000],\"endValue\":100000.000},"
        "{\"type\":\"sampled\",\"name\":\"load\\\"er (9)\",\"unit\":\"microseconds\",\"startValue\":0,"
        "\"samples\":[[],[5],[5],[0],[0]],"
        "\"weights\":[40000.000,10000.000,10000.000,10000.000,30000.000],\"endValue\":100000.000}],"
        "\"activeProfileIndex\":0}\n");
    strbuf_fini(&out);
    render(w, true, MODEL_UNKNOWN, export_render_speedscope, &out);
    assert_null(strstr(strbuf_str(&out), "\"line\""));
    assert_null(strstr(strbuf_str(&out), "rank"));
    assert_null(strstr(strstr(strbuf_str(&out), "\"step\"") + 1, "\"step\""));
    strbuf_fini(&out);
}

/* ---- Perfetto, as text ---- */

struct trace {
    struct strbuf text; /* an event a line */
    char names[16][64];
    struct {
        uint64_t uuid;
        char name[64];
    } tracks[16];
    size_t n_tracks;
    uint64_t process;
};

static void copy(char *to, const struct protobuf_field *f) {
    assert_true(f->value < 64);
    memcpy(to, f->data, (size_t)f->value);
    to[f->value] = '\0';
}

/* A string within a message, "" when it is not there. */
static void find_text(struct protobuf_reader m, unsigned number, char *to) {
    struct protobuf_field f;
    to[0] = '\0';
    while (protobuf_next(&m, &f))
        if (f.number == number)
            copy(to, &f);
}

static struct protobuf_reader find_message(struct protobuf_reader m, unsigned number) {
    struct protobuf_field f;
    while (protobuf_next(&m, &f))
        if (f.number == number)
            return protobuf_within(&f);
    return protobuf_read("", 0);
}

static void read_names(struct trace *t, struct protobuf_reader interned) {
    struct protobuf_field f;
    while (protobuf_next(&interned, &f))
        if (f.number == 2) {
            uint64_t iid = protobuf_find(protobuf_within(&f), 1, 0);
            assert_true(iid > 0 && iid < 16);
            find_text(protobuf_within(&f), 2, t->names[iid]);
        }
}

static void read_track(struct trace *t, struct protobuf_reader track) {
    char name[64];
    find_text(track, 2, t->tracks[t->n_tracks].name);
    t->tracks[t->n_tracks].uuid = protobuf_find(track, 1, 0);
    struct protobuf_reader process = find_message(track, 3), thread = find_message(track, 4);
    if (process.at != process.end) {
        t->process = protobuf_find(track, 1, 0);
        assert_int_equal(protobuf_find(process, 1, 0), 7);
        find_text(process, 2, name);
        assert_string_equal(name, "python train.py");
        return;
    }
    assert_true(protobuf_find(track, 5, 0) == t->process);
    if (thread.at != thread.end) {
        assert_int_equal(protobuf_find(thread, 1, 0), 7);
        find_text(thread, 5, name);
        (void)snprintf(t->tracks[t->n_tracks].name, 64, "%.40s %d", name, (int)protobuf_find(thread, 2, 0));
    }
    t->n_tracks++;
}

static void read_event(struct trace *t, struct protobuf_reader event, uint64_t ns) {
    char name[64];
    size_t track = 0;
    while (track < t->n_tracks && t->tracks[track].uuid != protobuf_find(event, 11, 0))
        track++;
    assert_true(track < t->n_tracks); /* it was described before */
    find_text(event, 23, name);
    uint64_t iid = protobuf_find(event, 10, 0), type = protobuf_find(event, 9, 0);
    assert_true(type == 1 || type == 2);
    assert_true(protobuf_find(event, 34, 0) == iid);
    const char *what = type == 2 ? "end" : iid ? t->names[iid] : name;
    (void)strbuf_addf(&t->text, "%s: %d %s\n", t->tracks[track].name,
                      (int)((ns - 1000000000000ULL + 500) / 1000000), what);
}

static void read_trace(struct trace *t, const struct strbuf *in) {
    struct protobuf_reader all = protobuf_read(in->data, in->len);
    struct protobuf_field packet;
    bool first = true;
    while (protobuf_next(&all, &packet)) {
        assert_int_equal(packet.number, 1);
        struct protobuf_reader m = protobuf_within(&packet);
        assert_true(protobuf_find(m, 10, 0) == 1);
        assert_true((protobuf_find(m, 13, 0) & 1) ==
                    first); /* state is cleared by the first and by no other */
        read_names(t, find_message(m, 12));
        struct protobuf_reader track = find_message(m, 60), event = find_message(m, 11),
                               clocks = find_message(m, 6);
        if (first)
            assert_true(protobuf_find(find_message(m, 59), 58, 0) == 1);
        if (clocks.at != clocks.end) {
            assert_true(protobuf_find(clocks, 2, 0) == 1);
            assert_true(protobuf_find(find_message(clocks, 1), 2, 0) == 1000000000000ULL);
        }
        if (track.at != track.end)
            read_track(t, track);
        if (event.at != event.end) {
            assert_true(protobuf_find(m, 13, 0) == 2); /* it needs that state */
            read_event(t, event, protobuf_find(m, 8, 0));
        }
        first = false;
    }
    assert_false(all.is_broken);
}

static void check_perfetto(void **state) {
    struct world *w = *state;
    struct trace t = {.n_tracks = 0};
    struct strbuf out;
    strbuf_init(&t.text, 0);
    see_job(w);
    render(w, false, 3, export_render_perfetto, &out);
    read_trace(&t, &out);
    assert_string_equal(strbuf_str(&t.text), "MainThread 7: 0 main\n"
                                             "MainThread 7: 0 train\n"
                                             "MainThread 7: 0 step\n"
                                             "MainThread 7: 50 end\n"
                                             "MainThread 7: 50 end\n"
                                             "MainThread 7: 50 end\n"
                                             "MainThread 7: 60 main\n"
                                             "MainThread 7: 60 train\n"
                                             "MainThread 7: 60 libcuda.so\n"
                                             "MainThread 7: 80 end\n"
                                             "MainThread 7: 80 end\n"
                                             "MainThread 7: 80 end\n"
                                             "MainThread 7: 90 main\n"
                                             "MainThread 7: 90 train\n"
                                             "MainThread 7: 90 step\n"
                                             "MainThread 7: 100 end\n"
                                             "MainThread 7: 100 end\n"
                                             "MainThread 7: 100 end\n"
                                             "load\"er 9: 40 a\"b\\ \xEF\xBF\xBD\xEF\xBF\xBD<script>\n"
                                             "load\"er 9: 60 end\n"
                                             "load\"er 9: 60 main\n"
                                             "load\"er 9: 100 end\n"
                                             "GIL: 0 MainThread (7)\n"
                                             "GIL: 30 end\n"
                                             "GIL: 40 load\"er (9)\n"
                                             "GIL: 50 end\n"
                                             "GIL: 60 load\"er (9)\n"
                                             "GIL: 70 end\n"
                                             "Garbage collection: 60 load\"er (9)\n"
                                             "Garbage collection: 70 end\n");
    strbuf_fini(&t.text);
    strbuf_fini(&out);
}

static void check_empty(void **state) {
    struct world *w = *state;
    struct trace t = {.n_tracks = 0};
    struct strbuf out;
    render(w, false, MODEL_UNKNOWN, export_render_speedscope, &out);
    assert_non_null(strstr(strbuf_str(&out), "\"shared\":{\"frames\":[]},\"profiles\":[]}\n"));
    strbuf_fini(&out);
    take(w, 10000); /* frames, but no sample */
    render(w, false, MODEL_UNKNOWN, export_render_perfetto, &out);
    strbuf_fini(&out);
    see(w, 0, 8, 0); /* a thread without Python alone */
    take(w, 10000);
    render(w, false, MODEL_UNKNOWN, export_render_perfetto, &out);
    strbuf_init(&t.text, 0);
    read_trace(&t, &out);
    assert_string_equal(strbuf_str(&t.text), "");
    strbuf_fini(&t.text);
    strbuf_fini(&out);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(check_spread), TEST(check_gaps),       TEST(check_strays),   TEST(check_weightless),
        TEST(check_note),   TEST(check_speedscope), TEST(check_perfetto), TEST(check_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
