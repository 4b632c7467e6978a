/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread that sleeps on a futex waits for, on memory made by hand, for every version of the tables.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/model_text.h"
#include "pystack/blocks.h"
#include "support/pystack_waits.h"

struct fixture {
    struct image img;
    struct image_waits made;
    struct model_snapshot s;
    struct model_wait wait;
};

static struct fixture *begin(const struct pystack_offsets *off) {
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    image_init(&f->img, off);
    image_waits(&f->img, &f->made);
    return f;
}

static const struct model_wait *look_at(struct fixture *f, uint64_t futex) {
    model_snapshot_fini(&f->s);
    assert_int_equal(image_waits_read(&f->img, f->made.py.runtime, futex, &f->s), 0);
    return &f->s.threads[0].wait;
}

/* Look at a thread that sleeps for lock number `which`. */
static const struct model_wait *look(struct fixture *f, size_t which) {
    static const uint64_t sems[] = {IMAGE_SEM_LOCK, IMAGE_SEM_RLOCK, IMAGE_SEM_ENTERED, IMAGE_SEM_NONE};
    return look_at(f, f->img.off->minor >= 14 ? f->made.entry[which] : sems[which]);
}

static void end(struct fixture *f) {
    model_snapshot_fini(&f->s);
    free(f);
}

static void for_each_version(void (*test)(struct fixture *f)) {
    size_t n;
    const struct pystack_offsets *rows = pystack_offsets_all(&n);
    for (size_t i = 0; i < n; i++) {
        if (!rows[i].type_name)
            continue;
        struct fixture *f = begin(&rows[i]);
        test(f);
        end(f);
    }
}

static void expect_kinds(struct fixture *f) {
    const struct model_wait *w = look(f, 0);
    assert_int_equal(w->kind, MODEL_WAIT_LOCK);
    assert_string_equal(w->what, "Lock lock");
    assert_int_equal(w->tid, 0); /* nobody is seen to hold it */
    w = look(f, 1);
    assert_int_equal(w->kind, MODEL_WAIT_RLOCK);
    assert_string_equal(w->what, "RLock again");
    assert_int_equal(w->tid, 12);
    assert_int_equal(w->flags & MODEL_WAIT_LIKELY, 0);
    w = look(f, 2);
    assert_int_equal(w->kind, MODEL_WAIT_LOCK);
    assert_string_equal(w->what, "Lock");
    w = look(f, 3);
    assert_int_equal(w->kind, MODEL_WAIT_NATIVE_LOCK);
    assert_int_equal(w->tid, 0);
}

static void test_the_object_is_the_one_of_the_futex(void **state) {
    (void)state;
    for_each_version(expect_kinds);
}

/* The first 3.13 have a pointer to a semaphore in a Lock, later ones a mutex. */
static void expect_either_in_3_13(struct fixture *f) {
    if (f->img.off->minor > 13)
        return;
    const struct model_wait *w = look_at(f, f->made.entry[0]);
    assert_int_equal(w->kind, f->img.off->minor == 13 ? MODEL_WAIT_LOCK : MODEL_WAIT_NATIVE_LOCK);
    if (f->img.off->minor == 13)
        assert_string_equal(w->what, "Lock lock");
}

static void test_a_mutex_in_3_13(void **state) {
    (void)state;
    for_each_version(expect_either_in_3_13);
}

/* The block of `with` that it enters is none that it is in: it does not wait for itself. */
static void expect_no_holder(struct fixture *f) {
    const struct model_wait *w = look(f, 2);
    assert_int_equal(w->tid, 0);
    assert_int_equal(w->flags & MODEL_WAIT_DEADLOCK, 0);
}

static void test_whoever_enters_does_not_hold(void **state) {
    (void)state;
    for_each_version(expect_no_holder);
}

/* In a block of `with` of the lock that it waits for, it holds that. */
static void expect_itself(struct fixture *f) {
    uint8_t words = f->img.off->minor >= 14 ? 2 : 1;
    image_waits_enter(&f->img, &f->made, words, true);
    const struct model_wait *w = look(f, 2);
    assert_int_equal(w->tid, 12);
    assert_int_equal(w->flags & (MODEL_WAIT_DEADLOCK | MODEL_WAIT_LIKELY | MODEL_WAIT_GUESSED),
                     MODEL_WAIT_DEADLOCK | MODEL_WAIT_LIKELY);
    /* the word is of the past: the block that it is in does not reach it; it has left the block */
    image_waits_enter(&f->img, &f->made, words - 1, true);
    assert_int_equal(look(f, 2)->tid, 0);
    image_waits_enter(&f->img, &f->made, words, false);
    assert_int_equal(look(f, 2)->tid, 0);
}

static void test_whoever_is_inside_holds(void **state) {
    (void)state;
    for_each_version(expect_itself);
}

/* A block in another; what they raise is handled at 40 and 60. */
static void test_a_table_of_blocks(void **state) {
    static const uint8_t table[] = {0x80 | 5,   10,        60,   1 << 1 | 1, 0x80 | 15, 20,        40,
                                    2 << 1 | 1, 0x80 | 35, 0x41, 0,          60,        1 << 1 | 1};
    static const struct {
        uint64_t unit;
        int32_t depth;
    } at[] = {{0, 0}, {4, 0}, {5, 1}, {14, 1}, {15, 2}, {34, 2}, {35, 1}, {98, 1}, {99, 0}, {UINT64_MAX, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        assert_int_equal(pystack_blocks_find(table, sizeof table, at[i].unit), at[i].depth);
    /* it ends within an entry; a number of more than 32 bits */
    for (size_t n = 1; n < 4; n++)
        assert_int_equal(pystack_blocks_find(table, n, 99), -1);
    static const uint8_t long_number[] = {0xff, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0, 1, 1, 1};
    assert_int_equal(pystack_blocks_find(long_number, sizeof long_number, 1), -1);
}

/* It waits for an RLock that is its own: no Python does that, but memory may say it. */
static void expect_cycle(struct fixture *f) {
    assert_int_equal(look(f, 1)->flags & MODEL_WAIT_DEADLOCK, MODEL_WAIT_DEADLOCK);
    struct strbuf text;
    strbuf_init(&text, 512);
    model_text_put_wait(&text, &f->s, &f->s.threads[0], false);
    assert_string_equal(strbuf_str(&text), "RLock again, held by ? (12)");
    strbuf_fini(&text);
}

static void test_a_cycle_is_a_deadlock(void **state) {
    (void)state;
    for_each_version(expect_cycle);
}

/* A freed lock (it has no type any more), and one whose word is another. */
static void expect_nothing(struct fixture *f) {
    image_put_u64(&f->img, f->made.lock, f->img.off->object_type, 0);
    assert_int_equal(look(f, 0)->kind, MODEL_WAIT_NATIVE_LOCK);
    if (f->img.off->minor >= 14)
        return;
    image_put_u64(&f->img, f->made.rlock, f->img.off->object_size, IMAGE_SEM_NONE + 64);
    assert_int_equal(look(f, 1)->kind, MODEL_WAIT_NATIVE_LOCK);
}

static void test_what_is_not_proved_is_not_said(void **state) {
    (void)state;
    for_each_version(expect_nothing);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_object_is_the_one_of_the_futex),
        cmocka_unit_test(test_a_mutex_in_3_13),
        cmocka_unit_test(test_whoever_enters_does_not_hold),
        cmocka_unit_test(test_whoever_is_inside_holds),
        cmocka_unit_test(test_a_table_of_blocks),
        cmocka_unit_test(test_a_cycle_is_a_deadlock),
        cmocka_unit_test(test_what_is_not_proved_is_not_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
