/* SPDX-License-Identifier: Apache-2.0 */
/* The trie of stacks: numbers that stand for stacks, and what it does when it is full. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/trie.h"

static struct model_frame frame(const char *func, int line) {
    return (struct model_frame){.func = func, .file = "/job/train.py", .line = line};
}

/* The functions of a stack, innermost first, joined by spaces. */
static void describe(const struct trie *t, uint32_t id, char *buf, size_t cap) {
    size_t used = 0;
    buf[0] = '\0';
    for (; id; id = t->stacks[id - 1].parent_id) {
        const struct model_frame *f = &t->frames[t->stacks[id - 1].frame_id - 1].frame;
        used += (size_t)snprintf(buf + used, cap - used, "%s:%d ", f->func, f->line);
    }
}

static void check_trie_marks_what_was_cut(void **state) {
    (void)state;
    struct trie t;
    char text[128];
    trie_init(&t, 5, 1 << 20);
    struct model_frame a[] = {frame("leaf", 3), frame("deep", 1)};
    uint32_t whole = trie_add(&t, a, 2), cut = trie_add_truncated(&t, a, 2);
    assert_true(cut && cut != whole);
    describe(&t, cut, text, sizeof text);
    assert_string_equal(text, "leaf:3 deep:1 " TRIE_TRUNCATED ":0 ");
    assert_int_equal(trie_add_truncated(&t, a, 2), cut);
    a[1].line = 2;
    assert_int_equal(trie_add_truncated(&t, a, 2), TRIE_FULL);
    trie_reset(&t);
}

/* Stacks that share outer frames with the one before, or with none, or differ in one thing, are the same numbers either way. */
static void check_trie_finds_a_stack_by_a_like_one(void **state) {
    (void)state;
    static const char *const names[] = {"main", "train", "step", "forward", NULL};
    struct trie plain, quick;
    uint32_t like = 0, dice = 1;
    trie_init(&plain, 100000, 1 << 24);
    trie_init(&quick, 100000, 1 << 24);
    for (int round = 0; round < 3000; round++) {
        struct model_frame frames[600] = {{0}};
        dice = dice * 1103515245U + 12345U;
        size_t n = round % 500 == 499 ? 600 : (dice >> 16) % 12, outer = 0;
        for (size_t i = n; i-- > 0;) {
            dice = dice * 1103515245U + 12345U;
            unsigned pick = dice >> 16;
            frames[i] = frame(names[pick % 5], (int)(pick >> 3 & 1));
            frames[i].file = pick & 64 ? "/job/a.py" : pick & 128 ? "/job/b.py" : NULL;
            frames[i].kind = pick % 31 == 0 ? MODEL_FRAME_ENTRY : MODEL_FRAME_PYTHON;
            if (i + 1 < n && outer++ < 6 && pick & 256)
                frames[i] = frames[i + 1]; /* a recursion */
        }
        uint32_t wanted = trie_add(&plain, frames, n);
        uint32_t got = trie_add_like(&quick, like, frames, n);
        assert_int_equal(got, wanted);
        assert_int_equal(trie_add_like(&quick, wanted, frames, n), wanted);
        like = round % 7 == 0 ? 0 : round % 11 == 0 ? 1000000 : got;
    }
    assert_true(plain.n_stacks > 1000 && plain.n_stacks == quick.n_stacks);
    trie_reset(&plain);
    trie_reset(&quick);
}

static void check_trie_shares_callers(void **state) {
    (void)state;
    struct trie t;
    char text[128], name[] = "step";
    trie_init(&t, 1000, 1 << 20);
    struct model_frame a[] = {frame(name, 3), frame("main", 1)};
    struct model_frame b[] = {frame("loss", 9), frame("main", 1)};
    uint32_t first = trie_add(&t, a, 2);
    uint32_t second = trie_add(&t, b, 2);
    assert_true(first != second && first && second);
    assert_int_equal(t.n_stacks, 3);
    assert_int_equal(t.n_frames, 3);
    assert_int_equal(t.stacks[first - 1].parent_id, t.stacks[second - 1].parent_id);
    memset(name, 'x', sizeof name - 1); /* strings were copied */
    describe(&t, first, text, sizeof text);
    assert_string_equal(text, "step:3 main:1 ");
    struct model_frame again[] = {frame("step", 3), frame("main", 1)};
    assert_int_equal(trie_add(&t, again, 2), first);
    again[0].line = 4;
    assert_int_not_equal(trie_add(&t, again, 2), first);
    assert_int_equal(trie_add(&t, NULL, 0), 0);
    struct model_frame unknown[] = {{.func = NULL, .file = NULL, .line = 0}};
    uint32_t u = trie_add(&t, unknown, 1);
    assert_null(t.frames[t.stacks[u - 1].frame_id - 1].frame.func);
    assert_int_equal(trie_add(&t, unknown, 1), u);
    trie_reset(&t);
    assert_int_equal(trie_bytes(&t), 0);
}

static void check_trie_parents_come_first(void **state) {
    (void)state;
    struct trie t;
    struct model_frame f[40];
    char names[40][16];
    trie_init(&t, 100000, 16 << 20);
    for (int i = 0; i < 40; i++)
        (void)snprintf(names[i], sizeof names[i], "f%d", i);
    uint32_t ids[3000];
    unsigned seed = 1;
    for (int round = 0; round < 2; round++) {
        seed = 1;
        for (int i = 0; i < 3000; i++) {
            size_t n = (size_t)(1 + i % 40);
            for (size_t k = 0; k < n; k++) {
                seed = seed * 1103515245 + 12345;
                f[k] = frame(names[seed >> 16 & 15], (int)(k % 5));
            }
            uint32_t id = trie_add(&t, f, n);
            if (round == 0)
                ids[i] = id;
            assert_int_equal(id, ids[i]); /* the same stack has the same number, however much came between */
        }
    }
    for (size_t i = 0; i < t.n_stacks; i++) {
        assert_int_equal(t.stacks[i].stack_id, i + 1);
        assert_true(t.stacks[i].parent_id < t.stacks[i].stack_id);
        assert_true(t.stacks[i].frame_id >= 1 && t.stacks[i].frame_id <= t.n_frames);
    }
    trie_reset(&t);
}

static void check_trie_is_bounded(void **state) {
    (void)state;
    struct trie t;
    trie_init(&t, 50, 1 << 20);
    uint32_t id = 0;
    for (int i = 0; i < 60 && id != TRIE_FULL; i++) {
        struct model_frame f = frame("f", i);
        id = trie_add(&t, &f, 1);
        assert_true(i < 50 ? id == (uint32_t)i + 1 : id == TRIE_FULL);
    }
    trie_reset(&t);
    trie_init(&t, SIZE_MAX, 64 * 1024);
    for (int i = 0; i < 100000; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "function_%d", i);
        struct model_frame f = frame(name, i);
        id = trie_add(&t, &f, 1);
        assert_true(trie_bytes(&t) <= 64 * 1024 + 16 * 1024 + 64); /* to a chunk of its arena */
        if (id == TRIE_FULL)
            break;
    }
    assert_int_equal(id, TRIE_FULL);
    struct model_frame f = frame("after", 1);
    trie_reset(&t);
    assert_int_equal(trie_add(&t, &f, 1), 1);
    trie_reset(&t);
}

/* Deeper and deeper stacks; with each a function is new, or none is. Returns the number of stacks when it was nearly full, in
 * percent of those when it was full. */
static size_t fill(size_t max_stacks, size_t max_bytes, bool new_functions) {
    struct model_frame frames[100];
    struct trie t;
    size_t nearly = 0;
    uint32_t id = 0;
    trie_init(&t, max_stacks, max_bytes);
    assert_false(trie_is_nearly_full(&t));
    for (int i = 0; id != TRIE_FULL; i++) {
        size_t n = (size_t)i % 100 + 1;
        char name[32];
        (void)snprintf(name, sizeof name, "function_%d", new_functions ? i : 0);
        for (size_t f = 0; f < n; f++)
            frames[f] = frame(f ? "f" : name, i / 100 % 1000);
        id = trie_add(&t, frames, n);
        if (!nearly && trie_is_nearly_full(&t))
            nearly = t.n_stacks;
    }
    size_t percent = 100 * nearly / t.n_stacks;
    trie_reset(&t);
    return percent;
}

static void check_trie_says_when_it_is_nearly_full(void **state) {
    (void)state;
    assert_in_range(fill(4000, 64 << 20, false), 80, 95);
    assert_in_range(fill(SIZE_MAX, 1 << 20, false), 80, 95);
    assert_in_range(fill(SIZE_MAX, 1 << 20, true), 80, 99);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_trie_marks_what_was_cut),
        cmocka_unit_test(check_trie_finds_a_stack_by_a_like_one),
        cmocka_unit_test(check_trie_shares_callers),
        cmocka_unit_test(check_trie_parents_come_first),
        cmocka_unit_test(check_trie_is_bounded),
        cmocka_unit_test(check_trie_says_when_it_is_nearly_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
