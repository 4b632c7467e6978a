/* SPDX-License-Identifier: Apache-2.0 */
/* Steps out of made-up operations whose times are known; and the queue that brings them, with many threads at it. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/spans.h"
#include "agent/steps.h"
#include "agent/torch_spans.h"

#define MS 1000000ULL
#define LOADER "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
#define ADAM "Optimizer.step#AdamW.step"
#define ZERO "Optimizer.zero_grad#AdamW.zero_grad"
#define MAIN 100

static struct steps steps;
static struct steps_step done[256];
static struct steps_span spans[1024];
static size_t n_done, n_spans;

static void on_span(void *arg, const struct steps_span *s) {
    (void)arg;
    if (n_spans < sizeof spans / sizeof spans[0])
        spans[n_spans++] = *s;
}

static void on_step(void *arg, const struct steps_step *s) {
    (void)arg;
    if (n_done < sizeof done / sizeof done[0])
        done[n_done++] = *s;
}

static const struct steps_handler handler = {on_span, on_step, NULL};

static int begin_anew(void **state) {
    (void)state;
    steps_init(&steps);
    n_done = n_spans = 0;
    return 0;
}

static void begins(uint64_t key, int32_t tid, uint64_t ms, const char *name) {
    struct spans_event e = {.ns = ms * MS, .key = key, .tid = tid, .what = SPANS_BEGIN};
    (void)snprintf(e.name, sizeof e.name, "%s", name);
    steps_take(&steps, &e, &handler);
}

static void ends(uint64_t key, uint64_t ms) {
    struct spans_event e = {.ns = ms * MS, .key = key, .what = SPANS_END};
    steps_take(&steps, &e, &handler);
}

static void operation(uint64_t ms, uint64_t for_ms, const char *name) {
    begins(1000, MAIN, ms, name);
    ends(1000, ms + for_ms);
}

/* A step of 100 ms: the batch takes 10, zero_grad 2, forward 30, backward 40, the optimizer 15. */
static void ordinary(uint64_t at) {
    operation(at, 10, LOADER);
    operation(at + 10, 2, ZERO);
    begins(STEPS_BACKWARD, MAIN, at + 42, "backward");
    ends(STEPS_BACKWARD, at + 82);
    operation(at + 84, 15, ADAM);
}

static void assert_step(size_t i, int64_t number, int64_t duration, int64_t data, int64_t forward,
                        int64_t backward, int64_t optimizer, int64_t other) {
    const struct steps_step *s = &done[i];
    const int64_t is[] = {s->duration_ns, s->data_ns,      s->forward_ns,
                          s->backward_ns, s->optimizer_ns, s->other_ns};
    const int64_t should[] = {duration, data, forward, backward, optimizer, other};
    assert_true(i < n_done);
    assert_int_equal(s->step, number);
    for (size_t k = 0; k < sizeof is / sizeof is[0]; k++)
        if (is[k] != (should[k] < 0 ? STEPS_UNKNOWN : should[k] * (int64_t)MS))
            fail_msg("step %d, time %zu: %lld ns, not %lld ms", (int)number, k, (long long)is[k],
                     (long long)should[k]);
}

static void test_ordinary_steps(void **state) {
    (void)state;
    steps_look_backward(&steps, 1);
    for (uint64_t i = 0; i < 4; i++)
        ordinary(1000 + 100 * i);
    assert_int_equal(n_done, 3); /* the last may have another optimizer yet */
    assert_step(0, 1, -1, -1, -1, -1, -1, -1);
    for (size_t i = 1; i < 3; i++)
        assert_step(i, (int64_t)i + 1, 100, 10, 30, 40, 17, 3);
    assert_int_equal(done[1].end_ns, 1199 * MS);
    assert_int_equal(done[1].comm_ns, STEPS_UNKNOWN);
    assert_int_equal(n_spans, 12);
    assert_string_equal(spans[2].name, ADAM);
    assert_int_equal(spans[2].kind, STEPS_OPTIMIZER);
    assert_int_equal(spans[2].begin_ns, 1084 * MS);
    assert_int_equal(spans[2].end_ns, 1099 * MS);
    assert_int_equal(spans[2].step, 1);
    assert_int_equal(spans[3].step, 2);
    assert_int_equal(spans[3].kind, STEPS_LOADER);
}

/* Without a look at backward passes nothing is said of forward and backward, nor of the rest. */
static void test_not_looked_into(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 3; i++)
        ordinary(1000 + 100 * i);
    assert_step(1, 2, 100, 10, -1, -1, 17, -1);
    /* A look that begins within a step tells of the next. */
    steps_look_backward(&steps, 1250 * MS);
    assert_false(steps_has_backward(&steps));
    ordinary(1300);
    assert_false(steps_has_backward(&steps));
    ordinary(1400);
    ordinary(1500);
    assert_step(2, 3, 100, 10, -1, -1, 17, -1);
    assert_step(3, 4, 100, 10, 30, 40, 17, 3);
    assert_true(steps_has_backward(&steps));
}

/* zero_grad after the step is that of the next one. */
static void test_zero_grad_afterwards(void **state) {
    (void)state;
    for (uint64_t at = 1000; at < 1400; at += 100) {
        operation(at, 10, LOADER);
        operation(at + 80, 15, ADAM);
        operation(at + 96, 2, ZERO);
    }
    assert_int_equal(n_done, 3);
    assert_step(1, 2, 100, 10, -1, -1, 17, -1);
    assert_int_equal(done[1].end_ns, 1195 * MS);
}

/* Four batches a step. */
static void test_gradient_accumulation(void **state) {
    (void)state;
    steps_look_backward(&steps, 1);
    for (uint64_t i = 0; i < 12; i++) {
        uint64_t at = 1000 + 50 * i;
        operation(at, 5, LOADER);
        begins(STEPS_BACKWARD, MAIN, at + 20, "backward");
        ends(STEPS_BACKWARD, at + 40);
        if (i % 4 == 3)
            operation(at + 41, 8, ADAM);
    }
    steps_settle(&steps, 9000 * MS, &handler);
    assert_int_equal(n_done, 3);
    assert_step(1, 2, 200, 20, 60, 80, 8, 32);
    assert_step(2, 3, 200, 20, 60, 80, 8, 32);
}

/* Two optimizers a batch are one step; without a loader each round of them is. */
static void test_several_optimizers(void **state) {
    (void)state;
    for (uint64_t at = 1000; at < 1300; at += 100) {
        operation(at, 10, LOADER);
        operation(at + 40, 5, ADAM);
        operation(at + 80, 6, "Optimizer.step#SGD.step");
    }
    assert_int_equal(n_done, 2);
    assert_step(1, 2, 100, 10, -1, -1, 11, -1);

    (void)begin_anew(NULL);
    for (uint64_t at = 1000; at < 1300; at += 100) {
        operation(at + 40, 5, ADAM);
        operation(at + 80, 6, "Optimizer.step#SGD.step");
    }
    assert_int_equal(n_done, 2);
    assert_step(1, 2, 100, -1, -1, -1, 11, -1);

    (void)begin_anew(NULL);
    for (uint64_t at = 1000; at < 1400; at += 100)
        operation(at + 40, 5, ADAM);
    assert_int_equal(n_done, 3);
    assert_step(2, 3, 100, -1, -1, -1, 5, -1);
}

/* Without a loader a step is told at the next Optimizer.step: what came before that is not its own. */
static void test_without_a_loader(void **state) {
    (void)state;
    steps_look_backward(&steps, 1);
    for (uint64_t at = 1000; at < 1400; at += 100) {
        operation(at, 2, ZERO);
        begins(STEPS_BACKWARD, MAIN, at + 32, "backward");
        ends(STEPS_BACKWARD, at + 72);
        operation(at + 80, 15, ADAM);
    }
    assert_int_equal(n_done, 3);
    for (size_t i = 1; i < 3; i++)
        assert_step(i, (int64_t)i + 1, 100, -1, 30, 40, 17, 13);
}

/* A loader that is not the training's: batches for an evaluation, then steps without any. */
static void test_loader_of_something_else(void **state) {
    (void)state;
    operation(900, 5, ADAM);
    operation(1000, 5, LOADER);
    for (uint64_t i = 1; i <= 40; i++)
        operation(1000 + 100 * i, 5, ADAM);
    assert_true(n_done >= 20);
    assert_step(n_done - 1, done[n_done - 1].step, 100, -1, -1, -1, 5, -1);
}

/* LBFGS calls its closure within the step: what is what there cannot be told apart. */
static void test_closure(void **state) {
    (void)state;
    steps_look_backward(&steps, 1);
    for (uint64_t at = 1000; at < 1300; at += 100) {
        operation(at, 10, LOADER);
        begins(7, MAIN, at + 20, "Optimizer.step#LBFGS.step");
        for (uint64_t k = 0; k < 3; k++) {
            operation(at + 21 + 20 * k, 1, "Optimizer.zero_grad#LBFGS.zero_grad");
            begins(STEPS_BACKWARD, MAIN, at + 30 + 20 * k, "backward");
            ends(STEPS_BACKWARD, at + 35 + 20 * k);
        }
        ends(7, at + 90);
    }
    assert_int_equal(n_done, 2);
    assert_step(1, 2, 100, 10, -1, -1, 70, -1);
}

/* Collectives may end on another thread, and go on at once. */
static void test_collectives(void **state) {
    (void)state;
    for (uint64_t at = 1000; at < 1300; at += 100) {
        operation(at, 10, LOADER);
        begins(20, MAIN, at + 30, "gloo:all_reduce");
        begins(21, 200, at + 40, "gloo:all_reduce");
        ends(20, at + 50);
        ends(21, at + 60);
        operation(at + 80, 15, ADAM);
    }
    assert_int_equal(n_done, 2);
    assert_int_equal(done[1].comm_ns, 30 * MS);
    assert_int_equal(spans[1].kind, STEPS_COMM);
    assert_int_equal(spans[1].tid, MAIN);
}

/* What was lost makes the step unknown in which it was; the next whole one is known again. */
static void test_lost_events(void **state) {
    (void)state;
    ordinary(1000);
    ordinary(1100);
    operation(1200, 10, LOADER);
    steps_lose(&steps);
    operation(1284, 15, ADAM);
    ordinary(1300);
    ordinary(1400);
    assert_int_equal(n_done, 4);
    assert_step(1, 2, 100, 10, -1, -1, 17, -1);
    assert_step(2, 3, -1, -1, -1, -1, -1, -1);
    assert_step(3, 4, 100, 10, -1, -1, 17, -1);
}

/* An end that never came, and one whose beginning was before us. */
static void test_half_operations(void **state) {
    (void)state;
    ends(77, 10);
    begins(1, MAIN, 20, "left open");
    ordinary(1000);
    ordinary(1100);
    begins(1, MAIN, 1190, "another");
    ordinary(1200);
    ordinary(1300);
    assert_true(n_done >= 2);
    for (uint64_t i = 0; i < 3 * STEPS_OPEN; i++)
        begins(5000 + i, MAIN, 2000 + i, "many");
    ordinary(3000);
    ordinary(3100);
    ordinary(3200);
    assert_step(n_done - 1, done[n_done - 1].step, 100, 10, -1, -1, 17, -1);
}

/* The last step ends by itself; what comes after the pause counts to the next. */
static void test_a_pause(void **state) {
    (void)state;
    ordinary(1000);
    ordinary(1100);
    steps_settle(&steps, 1500 * MS, &handler);
    assert_int_equal(n_done, 1);
    steps_settle(&steps, 4000 * MS, &handler);
    assert_int_equal(n_done, 2);
    steps_settle(&steps, 9000 * MS, &handler);
    assert_int_equal(n_done, 2);
    ordinary(11000);
    ordinary(11100);
    assert_step(2, 3, 9900, 10, -1, -1, 17, -1);
}

/* Another thread that trains is not mixed in; it is followed once the first has been quiet. */
static void test_two_threads(void **state) {
    (void)state;
    for (uint64_t at = 1000; at < 1400; at += 100) {
        ordinary(at);
        begins(30, 300, at + 50, ADAM);
        ends(30, at + 60);
    }
    assert_int_equal(n_done, 3);
    assert_step(2, 3, 100, 10, -1, -1, 17, -1);
    for (uint64_t at = 20000; at < 20500; at += 100) {
        begins(30, 300, at + 50, ADAM);
        ends(30, at + 60);
    }
    assert_true(n_done >= 6);
    assert_step(n_done - 1, done[n_done - 1].step, 100, -1, -1, -1, 10, -1);
}

/* ---- the queue ---- */

static void test_queue_keeps_order(void **state) {
    struct spans_event e;
    char name[200];
    (void)state;
    uint64_t lost = spans_lost();
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    for (int lap = 0; lap < 3; lap++) {
        for (uint64_t i = 0; i < SPANS_CAP; i++)
            if (i % 2)
                spans_end(i, i);
            else
                spans_begin(i, i % 4 ? name : "a\x01\xc3");
        assert_true(spans_lost() == lost);
        spans_begin(1, "no room");
        assert_true(spans_lost() == ++lost);
        for (uint64_t i = 0; i < SPANS_CAP; i++) {
            assert_true(spans_take(&e));
            assert_true(e.key == i && e.what == (i % 2 ? SPANS_END : SPANS_BEGIN));
            if (e.what == SPANS_BEGIN)
                assert_string_equal(e.name, i % 4 ? name + sizeof name - SPANS_NAME : "a??");
        }
        assert_false(spans_take(&e));
    }
}

#define WRITERS 4
#define WRITES 20000

static void *write_many(void *arg) {
    uint64_t who = (uint64_t)(uintptr_t)arg;
    for (uint64_t i = 1; i <= WRITES; i++)
        if (i % 3)
            spans_begin(who << 32 | i, "w");
        else
            spans_end(who << 32 | i, i);
    return NULL;
}

/* Each thread's events come in its order, whole, and every one is either had or counted as lost. */
static void test_queue_of_many_threads(void **state) {
    pthread_t threads[WRITERS];
    uint64_t last[WRITERS] = {0}, had = 0, lost = spans_lost();
    struct spans_event e;
    (void)state;
    for (uintptr_t i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_many, (void *)i), 0);
    while (had + spans_lost() - lost < (uint64_t)WRITERS * WRITES)
        if (spans_take(&e)) {
            uint64_t who = e.key >> 32, i = e.key & 0xffffffff;
            assert_true(who < WRITERS && i > last[who] && i <= WRITES);
            assert_true(e.what == (i % 3 ? SPANS_BEGIN : SPANS_END));
            assert_true(e.what == SPANS_BEGIN ? strcmp(e.name, "w") == 0 && e.tid > 0 : e.ns == i);
            last[who] = i;
            had++;
        }
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_false(spans_take(&e));
}

static void test_versions(void **state) {
    (void)state;
    assert_true(torch_spans_knows("2.13.0+cpu"));
    assert_true(torch_spans_knows("1.13.1"));
    assert_true(torch_spans_knows("2.0.0a0"));
    assert_false(torch_spans_knows("2.14.0"));
    assert_false(torch_spans_knows("1.12.1"));
    assert_false(torch_spans_knows("3.0"));
    assert_false(torch_spans_knows("1.113"));
    assert_false(torch_spans_knows("torch"));
    assert_false(torch_spans_knows(""));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_ordinary_steps, begin_anew),
        cmocka_unit_test_setup(test_not_looked_into, begin_anew),
        cmocka_unit_test_setup(test_zero_grad_afterwards, begin_anew),
        cmocka_unit_test_setup(test_gradient_accumulation, begin_anew),
        cmocka_unit_test_setup(test_several_optimizers, begin_anew),
        cmocka_unit_test_setup(test_without_a_loader, begin_anew),
        cmocka_unit_test_setup(test_loader_of_something_else, begin_anew),
        cmocka_unit_test_setup(test_closure, begin_anew),
        cmocka_unit_test_setup(test_collectives, begin_anew),
        cmocka_unit_test_setup(test_lost_events, begin_anew),
        cmocka_unit_test_setup(test_half_operations, begin_anew),
        cmocka_unit_test_setup(test_a_pause, begin_anew),
        cmocka_unit_test_setup(test_two_threads, begin_anew),
        cmocka_unit_test(test_queue_keeps_order),
        cmocka_unit_test(test_queue_of_many_threads),
        cmocka_unit_test(test_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
