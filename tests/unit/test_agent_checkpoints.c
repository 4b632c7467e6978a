/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints out of made-up samples, the times of which are known. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent/tables/checkpoints.h"

#define MAIN 100
#define OTHER 200
#define PERIOD 0.1
#define LIB "/venv/lib/python3.11/site-packages/"

static struct trie trie;
static struct checkpoints saves;
static struct checkpoints_save seen[64];
static size_t n_seen;
static uint32_t training, saving, nested, mine, file;

static void on_save(void *arg, const struct checkpoints_save *s) {
    (void)arg;
    assert_true(n_seen < sizeof seen / sizeof seen[0]);
    seen[n_seen++] = *s;
}

static const struct checkpoints_handler handler = {on_save, NULL};

static struct model_frame frame(const char *func, const char *at) {
    return (struct model_frame){.kind = MODEL_FRAME_PYTHON, .func = func, .file = at, .line = 7};
}

static int begin(void **state) {
    (void)state;
    struct model_frame main_frame = frame("main", "/job/train.py");
    struct model_frame write[] = {frame("_save", LIB "torch/serialization.py"),
                                  frame("save", LIB "torch/serialization.py"), main_frame};
    struct model_frame dcp[] = {write[0], write[1],
                                frame("save", LIB "torch/distributed/checkpoint/state_dict_saver.py"),
                                main_frame};
    struct model_frame own[] = {frame("save", "/job/nottorch/serialization.py"), main_frame};
    struct model_frame tensors[] = {frame("save_file", LIB "safetensors/torch.py"), main_frame};
    trie_init(&trie, 1000, 1 << 20);
    training = trie_add(&trie, &main_frame, 1);
    saving = trie_add(&trie, write, 3);
    nested = trie_add(&trie, dcp, 4);
    mine = trie_add(&trie, own, 2);
    file = trie_add(&trie, tensors, 2);
    saves = (struct checkpoints){.epoch = 0};
    n_seen = 0;
    struct model_sample before = {.timestamp = 0.5, .tid = MAIN, .stack_id = training};
    checkpoints_take(&saves, &trie, 1, &before, PERIOD, 7, &handler);
    return 0;
}

static int end(void **state) {
    (void)state;
    checkpoints_fini(&saves);
    trie_reset(&trie);
    return 0;
}

static void sample(double at, int64_t tid, uint32_t stack) {
    struct model_sample s = {.timestamp = at, .tid = tid, .stack_id = stack};
    checkpoints_take(&saves, &trie, 1, &s, PERIOD, 7, &handler);
}

static void assert_save(size_t i, const char *name, int64_t tid, double began, double ended) {
    assert_true(i < n_seen);
    assert_string_equal(seen[i].name, name);
    assert_int_equal(seen[i].tid, tid);
    assert_int_equal(seen[i].step, 7);
    assert_true(fabs(seen[i].began - began) < 1e-6 && fabs(seen[i].ended - ended) < 1e-6);
}

static void check_a_run_of_samples_is_a_save(void **state) {
    (void)state;
    sample(1.0, MAIN, training);
    sample(1.1, MAIN, saving);
    sample(1.2, MAIN, saving);
    sample(1.3, MAIN, saving);
    assert_int_equal(n_seen, 0);
    sample(1.4, MAIN, training);
    sample(1.5, MAIN, saving); /* seen once: about as long as the time between two */
    sample(1.6, MAIN, training);
    assert_int_equal(n_seen, 2);
    assert_save(0, "torch.save", MAIN, 1.05, 1.35);
    assert_save(1, "torch.save", MAIN, 1.45, 1.55);
}

static void check_the_outermost_function_counts(void **state) {
    (void)state;
    sample(1.0, MAIN, nested);
    sample(1.1, MAIN, file);
    sample(1.2, MAIN, mine); /* the job's own file of such a name */
    assert_int_equal(n_seen, 2);
    assert_save(0, "torch.distributed.checkpoint.save", MAIN, 0.95, 1.05);
    assert_save(1, "safetensors.torch.save_file", MAIN, 1.05, 1.15);
}

static void check_threads_are_apart(void **state) {
    (void)state;
    sample(1.0, MAIN, saving);
    sample(1.0, OTHER, training);
    sample(1.1, OTHER, saving);
    sample(1.1, MAIN, training);
    sample(1.2, OTHER, training);
    assert_int_equal(n_seen, 2);
    assert_save(0, "torch.save", MAIN, 0.95, 1.05);
    assert_save(1, "torch.save", OTHER, 1.05, 1.15);
}

static void check_what_says_nothing_changes_nothing(void **state) {
    (void)state;
    sample(1.0, MAIN, saving);
    sample(1.1, MAIN, 0);
    sample(1.1, MAIN, 4000);
    struct model_sample torn = {.timestamp = 1.2, .tid = MAIN, .stack_id = training, .torn = true};
    checkpoints_take(&saves, &trie, 1, &torn, PERIOD, 7, &handler);
    sample(1.3, MAIN, saving);
    sample(1.4, MAIN, training);
    assert_int_equal(n_seen, 1);
    assert_save(0, "torch.save", MAIN, 0.95, 1.35);
}

static void check_a_thread_that_ends_while_it_saves(void **state) {
    (void)state;
    sample(1.0, MAIN, saving);
    checkpoints_settle(&saves, 2.5, PERIOD, &handler);
    assert_int_equal(n_seen, 0);
    checkpoints_settle(&saves, 3.5, PERIOD, &handler);
    assert_int_equal(n_seen, 1);
    assert_save(0, "torch.save", MAIN, 0.95, 1.05);
    for (int64_t tid = 1; tid <= 2 * CHECKPOINTS_THREADS; tid++) /* more at once than there is room for */
        sample(5.0, tid, saving);
    checkpoints_settle(&saves, 10.0, PERIOD, &handler);
    assert_int_equal(n_seen, 1 + CHECKPOINTS_THREADS);
}

static void check_numbers_begin_anew(void **state) {
    (void)state;
    sample(1.0, MAIN, saving);
    struct model_sample s = {
        .timestamp = 1.1, .tid = MAIN, .stack_id = 1}; /* the same number, another stack */
    struct model_frame deep[600];
    trie_reset(&trie);
    for (size_t i = 0; i < 600; i++)
        deep[i] = frame(i == 300 ? "save" : "f", i == 300 ? LIB "torch/serialization.py" : "/job/a.py");
    uint32_t deepest = trie_add(&trie, deep, 600);
    checkpoints_take(&saves, &trie, 2, &s, PERIOD, 7, &handler);
    assert_int_equal(n_seen, 1);
    s = (struct model_sample){.timestamp = 1.2, .tid = MAIN, .stack_id = deepest};
    checkpoints_take(&saves, &trie, 2, &s, PERIOD, 7, &handler);
    s.timestamp = 1.3;
    s.stack_id = 1;
    checkpoints_take(&saves, &trie, 2, &s, PERIOD, 7, &handler);
    assert_int_equal(n_seen, 2);
    assert_save(1, "torch.save", MAIN, 1.15, 1.25);
}

static void check_one_that_went_on_as_we_came(void **state) {
    (void)state;
    checkpoints_fini(&saves);
    sample(1.0, MAIN, training);
    sample(1.0, OTHER, saving);
    sample(1.4, OTHER, training);
    sample(1.5, OTHER, saving);
    sample(1.6, OTHER, training);
    assert_int_equal(n_seen, 2);
    assert_true(isnan(seen[0].began) && fabs(seen[0].ended - 1.2) < 1e-6);
    assert_save(1, "torch.save", OTHER, 1.45, 1.55);
    sample(9.0, MAIN, saving); /* and after a time in which nobody looked */
    sample(9.1, MAIN, training);
    assert_true(n_seen == 3 && isnan(seen[2].began));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(check_a_run_of_samples_is_a_save, begin, end),
        cmocka_unit_test_setup_teardown(check_the_outermost_function_counts, begin, end),
        cmocka_unit_test_setup_teardown(check_threads_are_apart, begin, end),
        cmocka_unit_test_setup_teardown(check_what_says_nothing_changes_nothing, begin, end),
        cmocka_unit_test_setup_teardown(check_a_thread_that_ends_while_it_saves, begin, end),
        cmocka_unit_test_setup_teardown(check_one_that_went_on_as_we_came, begin, end),
        cmocka_unit_test_setup_teardown(check_numbers_begin_anew, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
