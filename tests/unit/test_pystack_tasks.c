/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks of asyncio in memory made by hand, in every version that publishes them; and what is published, by its bytes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "pystack/tasks.h"
#include "support/pystack_tasks.h"

struct fixture {
    struct image img;
    struct image_python py;
    struct image_tasks made;
    struct mem mem;
    struct pystack *ps;
    struct model_snapshot out;
};

static void read_tasks(struct fixture *f) {
    struct pystack_thread thread = {.tstate = f->py.tstate, .interp = f->py.interp, .tid = 4242};
    f->out = (struct model_snapshot){.n_tasks = 0};
    arena_init(&f->out.arena, (size_t)4 << 20);
    pystack_codes_begin(&f->ps->codes, &f->out.arena);
    pystack_tasks_read(f->ps, &f->made.asyncio, &thread, 1, &f->out);
}

static struct fixture *build(const struct pystack_offsets *row) {
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    image_init(&f->img, row);
    image_python(&f->img, &f->py, "loop");
    image_tasks(&f->img, &f->py, &f->made);
    image_open(&f->img, &f->mem);
    f->ps = pystack_open_memory(&f->mem, row, f->py.runtime);
    assert_non_null(f->ps);
    f->ps->pid = -1; /* nobody's torch counts */
    return f;
}

static void drop(struct fixture *f) {
    arena_fini(&f->out.arena);
    pystack_close(f->ps);
    free(f);
}

static const struct model_task *find(const struct fixture *f, size_t i) {
    for (size_t k = 0; k < f->out.n_tasks; k++)
        if (f->out.tasks[k].id == f->made.task[i])
            return &f->out.tasks[k];
    fail_msg("task %zu is not there", i);
    return NULL;
}

/* Call `check` with an image of each version that has tasks. */
static void for_each_version(void (*check)(struct fixture *f)) {
    size_t n, done = 0;
    const struct pystack_offsets *rows = pystack_offsets_all(&n);
    for (size_t i = 0; i < n; i++)
        if (rows[i].gen_iframe) {
            struct fixture *f = build(&rows[i]);
            check(f);
            drop(f);
            done++;
        }
    assert_true(done >= 4);
}

static void expect_all(struct fixture *f) {
    read_tasks(f);
    assert_int_equal(f->out.n_tasks, IMAGE_TASKS);
    assert_false(f->out.incomplete);
    const struct model_task *first = find(f, 0), *second = find(f, 1), *third = find(f, 2);
    assert_string_equal(first->name, "first");
    assert_null(second->name);
    assert_string_equal(third->name, "Task-7");
    assert_true(first->n_frames == 1 && second->n_frames == 2 && third->n_frames == 2);
    assert_string_equal(first->frames[0].func, "alone");
    assert_string_equal(second->frames[0].func, "inner");
    assert_string_equal(second->frames[1].func, "outer");
    assert_string_equal(second->coro, "outer");
    assert_string_equal(third->frames[0].func, "behind");
    assert_int_equal(second->frames[1].line, 31);
    assert_true(first->n_awaited_by == 1 && first->awaited_by[0] == second->id);
    assert_int_equal(second->n_awaited_by, 0);
    assert_int_equal(third->n_awaited_by, 2);
    for (size_t i = 0; i < IMAGE_TASKS; i++)
        assert_true(find(f, i)->tid == 4242 && find(f, i)->state == MODEL_TASK_PENDING);
}

static void test_tasks_with_what_they_await(void **state) {
    (void)state;
    for_each_version(expect_all);
}

/* A list that does not hang together is said to be incomplete; what was found before the break is kept. */
static void expect_broken(struct fixture *f) {
    image_put_u64(&f->img, f->made.task[1] + (uint64_t)f->made.asyncio.task_node, 8, 0x1000);
    read_tasks(f);
    assert_true(f->out.incomplete);
    assert_int_equal(f->out.n_tasks, 1);
}

static void test_a_broken_list(void **state) {
    (void)state;
    for_each_version(expect_broken);
}

/* A cycle of coroutines, a future that awaits itself, a list without an end. */
static void expect_bounded(struct fixture *f) {
    const struct pystack_offsets *o = f->img.off;
    uint64_t coroutine, node = f->made.task[0] + (uint64_t)f->made.asyncio.task_node;
    assert_int_equal(mem_read_u64(&f->mem, f->made.task[1] + (uint64_t)f->made.asyncio.task_coro, &coroutine),
                     0);
    uint64_t top = coroutine + (uint64_t)o->gen_iframe + (uint64_t)o->frame_localsplus + 40;
    image_put_u64(&f->img, top - 8 * (uint64_t)o->gen_awaited_words, 0, coroutine);
    image_put_u64(&f->img, f->made.task[0], f->made.asyncio.task_awaited_by, f->made.task[0]);
    image_put_u8(&f->img, f->made.task[0], f->made.asyncio.task_is_task, 0);
    read_tasks(f);
    assert_int_equal(f->out.n_tasks, IMAGE_TASKS);
    assert_true(find(f, 1)->truncated && find(f, 1)->n_frames == 64);
    image_put_u64(&f->img, node, 0, node); /* its own successor, and predecessor */
    image_put_u64(&f->img, node, 8, node);
    image_put_u64(&f->img, f->made.head, 0, node);
    arena_fini(&f->out.arena);
    read_tasks(f);
    assert_true(f->out.incomplete);
}

static void test_what_has_no_end_is_cut(void **state) {
    (void)state;
    for_each_version(expect_bounded);
}

static void put_word(uint8_t *bytes, size_t word, uint64_t v) { memcpy(bytes + 8 * word, &v, sizeof v); }

static void test_what_is_published(void **state) {
    static const uint64_t words[] = {168, 136, 96, 108, 109, 128, 152, 225864, 10880, 936, 864, 872, 880};
    uint8_t bytes[PYSTACK_ASYNCIO_BYTES];
    struct pystack_asyncio a;
    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        put_word(bytes, i, words[i]);
    assert_int_equal(pystack_asyncio_parse(bytes, sizeof bytes, &a), 0);
    assert_true(a.task_coro == 128 && a.task_node == 152 && a.interp_tasks == 10880 &&
                a.tstate_tasks == 880 && a.tstate_running_task == 872);
    assert_int_equal(pystack_asyncio_parse(bytes, sizeof bytes - 1, &a), -1);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (i == 10) /* the running loop: not needed */
            continue;
        put_word(bytes, i, UINT64_MAX);
        assert_int_equal(pystack_asyncio_parse(bytes, sizeof bytes, &a), -1);
        put_word(bytes, i, words[i]);
    }
    assert_int_equal(pystack_asyncio_parse(bytes, sizeof bytes, &a), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tasks_with_what_they_await),
        cmocka_unit_test(test_a_broken_list),
        cmocka_unit_test(test_what_has_no_end_is_cut),
        cmocka_unit_test(test_what_is_published),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
