/* SPDX-License-Identifier: Apache-2.0 */
/* Native frames on the wire: there and back, and not a byte for those who have none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "wire/wire.h"

static struct wire_message *parse(struct strbuf *b) {
    struct err e = {0};
    assert_false(b->failed);
    struct wire_message *m = wire_parse(b->data, b->len, &e);
    if (!m)
        fail_msg("%s", e.text);
    strbuf_fini(b);
    return m;
}

static void test_who_wants_them_says_so(void **state) {
    struct strbuf b;
    struct err e = {0};
    (void)state;
    for (int native = 0; native < 2; native++) {
        struct wire_threads want = {.native = native, .tid = 7}, got;
        strbuf_init(&b, 0);
        assert_int_equal(wire_put_threads(&b, 1, &want), 0);
        struct wire_message *m = parse(&b);
        assert_int_equal(wire_get_threads(m, &got, &e), 0);
        assert_int_equal(got.native, native);
        assert_int_equal(got.tid, 7);
        assert_false(got.locals);
        wire_message_free(m);

        struct wire_subscribe sub = {.stream = WIRE_STREAM_SAMPLES, .rate_hz = 5, .native = native}, back;
        strbuf_init(&b, 0);
        assert_int_equal(wire_put_subscribe(&b, 1, &sub), 0);
        m = parse(&b);
        assert_int_equal(wire_get_subscribe(m, &back, &e), 0);
        assert_int_equal(back.native, native);
        wire_message_free(m);
    }
    /* {"native": 1} is no flag */
    static const uint8_t bad[] = "\x94\x00\x01\xa7threads\x81\xa6native\x01";
    struct wire_threads got;
    struct wire_message *m = wire_parse(bad, sizeof bad - 1, &e);
    assert_non_null(m);
    assert_int_equal(wire_get_threads(m, &got, &e), -1);
    wire_message_free(m);
}

static struct model_frame test_frames[] = {
    {.kind = MODEL_FRAME_NATIVE, .module = "/lib/libc.so.6", .address = 0x1234},
    {.kind = MODEL_FRAME_NATIVE, .module = "/lib/libc.so.6", .address = 0x1235},
    {.kind = MODEL_FRAME_NATIVE, .address = UINT64_MAX},
    {.kind = MODEL_FRAME_NATIVE},
    {.func = "f", .file = "f.py", .line = 3},
    {.kind = MODEL_FRAME_ENTRY},
    {.func = "f", .file = "f.py", .line = 3},
    {.kind = MODEL_FRAME_ENTRY},
};
#define N_FRAMES (sizeof test_frames / sizeof test_frames[0])

static bool same_text(const char *a, const char *b) { return a && b ? strcmp(a, b) == 0 : a == b; }

static void test_a_snapshot_there_and_back(void **state) {
    struct model_thread thread = {.tid = 7, .state = 'S', .frames = test_frames, .n_frames = N_FRAMES};
    struct model_snapshot s = {.threads = &thread, .n_threads = 1}, got;
    struct strbuf b;
    struct err e = {0};
    (void)state;
    strbuf_init(&b, 0);
    assert_int_equal(wire_put_snapshot(&b, 1, &s), 0);
    struct wire_message *m = parse(&b);
    assert_int_equal(wire_get_snapshot(m, &got, &e), 0);
    assert_int_equal(got.threads[0].n_frames, N_FRAMES);
    for (size_t i = 0; i < N_FRAMES; i++) {
        const struct model_frame *f = &got.threads[0].frames[i], *g = &test_frames[i];
        assert_int_equal(f->kind, g->kind);
        assert_int_equal(f->address, g->address);
        assert_true(same_text(f->module, g->module) && same_text(f->func, g->func));
    }
    struct model_snapshot python;
    assert_true(model_snapshot_has_native(&got));
    assert_int_equal(model_snapshot_copy_python(&got, &python), 0);
    assert_false(model_snapshot_has_native(&python));
    assert_int_equal(python.threads[0].n_frames, 2);
    assert_string_equal(python.threads[0].frames[0].func, "f");
    model_snapshot_fini(&python);
    assert_int_equal(got.threads[0].n_frames, N_FRAMES); /* the other still has them */
    model_snapshot_strip_native(&got);
    assert_int_equal(got.threads[0].n_frames, 2);
    assert_string_equal(got.threads[0].frames[1].func, "f");
    wire_message_free(m);
    model_snapshot_fini(&got);
}

/* Values stay with their frames. */
static void test_a_copy_without_native_frames(void **state) {
    const struct model_locals of_first = {.n = 0}, of_second = {.truncated = true};
    const struct model_locals *locals[N_FRAMES] = {[4] = &of_first, [6] = &of_second};
    struct model_thread threads[] = {
        {.tid = 7, .frames = test_frames, .n_frames = N_FRAMES, .locals = locals},
        {.tid = 8},
    };
    struct model_snapshot s = {.threads = threads, .n_threads = 2, .seq = 5}, python;
    (void)state;
    arena_init(&s.arena, 1 << 20);
    assert_int_equal(model_snapshot_copy_python(&s, &python), 0);
    assert_int_equal(python.n_threads, 2);
    assert_int_equal(python.seq, 5);
    assert_int_equal(python.threads[0].n_frames, 2);
    assert_ptr_equal(python.threads[0].locals[0], &of_first);
    assert_ptr_equal(python.threads[0].locals[1], &of_second);
    assert_null(python.threads[1].locals);
    assert_ptr_equal(locals[4], &of_first);
    model_snapshot_fini(&python);
    s.arena.limit = 1; /* no memory: said, and nothing is left */
    assert_int_equal(model_snapshot_copy_python(&s, &python), -1);
    model_snapshot_fini(&python);
}

static void test_samples_there_and_back(void **state) {
    struct model_frame_def frames[N_FRAMES];
    struct model_sample samples[] = {{.tid = 1, .stack_id = 3, .native_id = 9}, {.tid = 1, .stack_id = 3}};
    struct model_sample_batch batch = {.epoch = 1,
                                       .frames = frames,
                                       .n_frames = N_FRAMES,
                                       .samples = samples,
                                       .n_samples = 2},
                              got;
    struct strbuf b;
    struct err e = {0};
    (void)state;
    for (uint32_t i = 0; i < N_FRAMES; i++)
        frames[i] = (struct model_frame_def){i + 1, test_frames[i]};
    strbuf_init(&b, 0);
    assert_int_equal(wire_put_samples_notify(&b, &batch), 0);
    struct wire_message *m = parse(&b);
    assert_int_equal(wire_get_samples(m, &got, &e), 0);
    assert_int_equal(got.samples[0].native_id, 9);
    assert_int_equal(got.samples[1].native_id, 0);
    assert_string_equal(got.frames[1].frame.module, "/lib/libc.so.6");
    assert_int_equal(got.frames[1].frame.address, 0x1235);
    assert_int_equal(got.frames[5].frame.kind, MODEL_FRAME_ENTRY);
    wire_message_free(m);
    model_sample_batch_fini(&got);
}

/* Columns in which nothing is known are not sent. */
static void test_others_do_not_pay_for_them(void **state) {
    struct model_frame python[] = {{.func = "f", .file = "f.py", .line = 3}};
    struct model_thread thread = {.tid = 7, .state = 'S', .frames = python, .n_frames = 1};
    struct model_snapshot s = {.threads = &thread, .n_threads = 1};
    struct strbuf b;
    (void)state;
    strbuf_init(&b, 0);
    assert_int_equal(wire_put_snapshot(&b, 1, &s), 0);
    assert_null(memmem(b.data, b.len, "module", 6));
    assert_null(memmem(b.data, b.len, "address", 7));
    strbuf_fini(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_wants_them_says_so),
        cmocka_unit_test(test_a_copy_without_native_frames),
        cmocka_unit_test(test_a_snapshot_there_and_back),
        cmocka_unit_test(test_samples_there_and_back),
        cmocka_unit_test(test_others_do_not_pay_for_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
