/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks of asyncio and notes of a snapshot, from one end to the other; and messages about them that make no sense. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "wire/wire.h"

static struct model_thread some_threads[] = {{.tid = 100, .name = "loop"}, {.tid = 101, .name = "other"}};
static const struct model_snapshot some_snapshot = {.seq = 1, .threads = some_threads, .n_threads = 2};

/* The message in `b`, which is emptied. */
static struct wire_message *parse(struct strbuf *b) {
    struct err e = {0};
    struct wire_message *m = wire_parse(b->data, b->len, &e);
    strbuf_clear(b);
    assert_non_null(m);
    return m;
}

static struct model_frame task_frames[] = {
    {MODEL_FRAME_PYTHON, "sleep", "/usr/lib/asyncio/tasks.py", 665},
    {MODEL_FRAME_PYTHON, "fetch.<locals>.inner", "/job/größe.py", 3},
};
static uint64_t task_awaiters[] = {0x7f0000001000, UINT64_MAX};
static struct model_task some_tasks[] = {
    {0x7f0000001000, 100, "Task-1", "main", MODEL_TASK_RUNNING, true, task_frames, 2, task_awaiters, 2},
    {0x7f0000002000, 101, NULL, NULL, MODEL_TASK_UNKNOWN, false, NULL, 0, NULL, 0},
    {0x7f0000003000, 101, "主", "fetch", MODEL_TASK_PENDING, false, task_frames + 1, 1, task_awaiters, 1},
};

static void expect_task(const struct model_task *in, const struct model_task *out) {
    assert_true(in->id == out->id && in->tid == out->tid && in->state == out->state);
    assert_true(in->truncated == out->truncated && in->n_frames == out->n_frames);
    assert_true(!in->name == !out->name && !in->coro == !out->coro);
    if (in->name)
        assert_string_equal(in->name, out->name);
    if (in->coro)
        assert_string_equal(in->coro, out->coro);
    for (size_t i = 0; i < in->n_frames; i++) {
        assert_string_equal(in->frames[i].func, out->frames[i].func);
        assert_string_equal(in->frames[i].file, out->frames[i].file);
        assert_int_equal(in->frames[i].line, out->frames[i].line);
    }
    assert_int_equal(in->n_awaited_by, out->n_awaited_by);
    for (size_t i = 0; i < in->n_awaited_by; i++)
        assert_true(in->awaited_by[i] == out->awaited_by[i]);
}

/* Tasks and the note go to who asked for more, and of one thread only its own; a stream never has them. */
static void check_tasks(void **state) {
    (void)state;
    static const struct wire_threads wants[] = {
        {.tasks = true}, {.tasks = true, .tid = 101}, {.locals = true}, {.tid = 100}};
    static const size_t first[] = {0, 1, 0, 0}, expected[] = {3, 2, 0, 0};
    struct strbuf b;
    struct err e = {0};
    struct model_snapshot in = some_snapshot;
    in.tasks = some_tasks;
    in.n_tasks = 3;
    in.note = "could not acquire the GIL";
    strbuf_init(&b, 0);
    for (int how = 0; how < 5; how++) {
        struct model_snapshot out;
        int rc = how == 4 ? wire_put_threads_notify_open(&b, &in)
                          : wire_put_snapshot_wanted_open(&b, 1, &in, &wants[how]);
        assert_int_equal(rc, 0);
        assert_int_equal(wire_put_dropped(&b, 4), 0);
        struct wire_message *m = parse(&b);
        assert_int_equal(wire_get_snapshot(m, &out, &e), 0);
        assert_true((out.note != NULL) == (how < 3));
        assert_true((out.tasks != NULL) == (how < 2));
        assert_int_equal(out.n_tasks, how < 2 ? expected[how] : 0);
        for (size_t i = 0; i < out.n_tasks; i++)
            expect_task(&some_tasks[first[how] + i], &out.tasks[i]);
        model_snapshot_fini(&out);
        wire_message_free(m);
    }
    strbuf_fini(&b);
}

/* None is not the same as not known. */
static void check_no_tasks(void **state) {
    (void)state;
    struct strbuf b;
    struct err e = {0};
    struct model_snapshot in = some_snapshot, out;
    in.tasks = some_tasks;
    strbuf_init(&b, 0);
    assert_int_equal(wire_put_snapshot_wanted_open(&b, 1, &in, &(struct wire_threads){.tasks = true}), 0);
    assert_int_equal(wire_put_dropped(&b, 0), 0);
    struct wire_message *m = parse(&b);
    assert_int_equal(wire_get_snapshot(m, &out, &e), 0);
    assert_non_null(out.tasks);
    assert_int_equal(out.n_tasks, 0);
    model_snapshot_fini(&out);
    wire_message_free(m);
    strbuf_fini(&b);
}

/* Cut anywhere, or with any byte changed, a message is read or refused; sanitizers watch. */
static void check_damaged(void **state) {
    (void)state;
    struct strbuf b;
    struct model_snapshot in = some_snapshot;
    in.tasks = some_tasks;
    in.n_tasks = 3;
    in.note = "note";
    strbuf_init(&b, 0);
    assert_int_equal(wire_put_snapshot_wanted_open(&b, 1, &in, &(struct wire_threads){.tasks = true}), 0);
    assert_int_equal(wire_put_dropped(&b, 0), 0);
    for (size_t i = 0; i < b.len; i++)
        for (int how = 0; how < 3; how++) {
            char was = b.data[i];
            struct err e = {0};
            struct model_snapshot out;
            b.data[i] = (char)(how == 0 ? was ^ 0x80 : how == 1 ? was + 1 : 0xc0);
            struct wire_message *m = wire_parse(b.data, b.len, &e);
            if (m) {
                if (wire_get_snapshot(m, &out, &e) == 0)
                    for (size_t k = 0; k < out.n_tasks; k++)
                        assert_true(out.tasks[k].frames && out.tasks[k].awaited_by);
                model_snapshot_fini(&out);
                wire_message_free(m);
            }
            b.data[i] = was;
        }
    strbuf_fini(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_tasks),
        cmocka_unit_test(check_no_tasks),
        cmocka_unit_test(check_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
