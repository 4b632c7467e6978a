/* SPDX-License-Identifier: Apache-2.0 */
/* Steps out of made-up operations whose times are known; and the queue that brings them, with many threads at it. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/torch/spans.h"
#include "agent/torch/steps.h"
#include "agent/torch/torch_spans.h"

#define MS 1000000ULL
#define LOADER "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
#define ADAM "Optimizer.step#AdamW.step"
#define ZERO "Optimizer.zero_grad#AdamW.zero_grad"
#define MAIN 100

static struct steps steps;
static struct steps_step done[256];
static struct steps_span spans[1024];
static size_t n_done, n_spans;
static uint64_t lost; /* events, as the next one tells */

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

static struct steps_span open_spans[64];
static size_t n_open;

static void on_open(void *arg, const struct steps_span *s) {
    (void)arg;
    if (n_open < sizeof open_spans / sizeof open_spans[0])
        open_spans[n_open++] = *s;
}

static const struct steps_handler handler = {on_span, on_step, NULL, on_open};

static int begin_anew(void **state) {
    (void)state;
    steps_init(&steps);
    n_done = n_spans = n_open = 0;
    lost = 0;
    return 0;
}

static void begins(uint64_t key, int32_t tid, uint64_t ms, const char *name) {
    struct spans_event e = {.ns = ms * MS, .key = key, .lost = lost, .tid = tid, .what = SPANS_BEGIN};
    (void)snprintf(e.name, sizeof e.name, "%s", name);
    steps_take(&steps, &e, &handler);
}

static void ends(uint64_t key, uint64_t ms) {
    struct spans_event e = {.ns = ms * MS, .key = key, .lost = lost, .what = SPANS_END};
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
    steps_begin_backward(&steps, 1);
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
    steps_begin_backward(&steps, 1250 * MS);
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
    steps_begin_backward(&steps, 1);
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
    assert_int_equal(steps.per_step, 2);
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
    assert_int_equal(steps.per_step, 1);
    assert_step(2, 3, 100, -1, -1, -1, 5, -1);
}

/* Without a loader a step is told at the next Optimizer.step: what came before that is not its own. */
static void test_without_a_loader(void **state) {
    (void)state;
    steps_begin_backward(&steps, 1);
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
    steps_begin_backward(&steps, 1);
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

/* With NCCL the end of a collective is that of its enqueuing: the time in collectives is unknown where one of them has that. */
static void test_collectives_that_are_enqueued(void **state) {
    static const char *const names[] = {"nccl:all_reduce", "xccl:allgather", "gloo:all_reduce",
                                        "ucc:barrier"};
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        uint64_t at = 1000 + 300 * i;
        begin_anew(NULL);
        for (int step = 0; step < 3; step++, at += 100) {
            operation(at, 10, LOADER);
            begins(20, MAIN, at + 30, "gloo:broadcast");
            ends(20, at + 40);
            begins(21, MAIN, at + 50, names[i]);
            ends(21, at + 53);
            operation(at + 80, 15, ADAM);
        }
        assert_int_equal(n_done, 2);
        assert_int_equal(done[1].comm_ns, i < 2 ? STEPS_UNKNOWN : (int64_t)(13 * MS));
        assert_int_equal(done[1].duration_ns, 100 * MS);
        assert_true(spans[2].kind == STEPS_COMM && spans[2].enqueues == (i < 2) && spans[2].seq == 2);
        assert_true(!spans[1].enqueues && spans[1].seq == 1 && spans[0].seq == 0);
        assert_true(spans[2].end_ns - spans[2].begin_ns == 3 * MS);
    }
}

/* A step without one is not affected by those of others. */
static void test_one_enqueued_collective(void **state) {
    (void)state;
    for (uint64_t at = 1000, step = 0; step < 5; step++, at += 100) {
        operation(at, 10, LOADER);
        begins(20, MAIN, at + 30, step == 2 ? "nccl:all_reduce" : "gloo:all_reduce");
        ends(20, at + 40);
        operation(at + 80, 15, ADAM);
    }
    assert_int_equal(n_done, 4);
    for (size_t i = 1; i < 4; i++)
        assert_int_equal(done[i].comm_ns, i == 2 ? STEPS_UNKNOWN : (int64_t)(10 * MS));
}

/* One that goes on is reported once, and again at its end. */
static void test_open_collectives(void **state) {
    (void)state;
    begins(30, 200, 1000, "gloo:all_reduce");
    begins(31, 201, 1500, "gloo:broadcast");
    begins(32, MAIN, 1500, "Optimizer.step#AdamW.step");
    steps_report_open(&steps, 1999 * MS, &handler);
    assert_int_equal(n_open, 0);
    steps_report_open(&steps, 2000 * MS, &handler);
    steps_report_open(&steps, 2100 * MS, &handler);
    assert_int_equal(n_open, 1);
    assert_string_equal(open_spans[0].name, "gloo:all_reduce");
    assert_true(open_spans[0].begin_ns == 1000 * MS && open_spans[0].end_ns == 2000 * MS &&
                open_spans[0].seq == 1);
    assert_true(open_spans[0].tid == 200 && open_spans[0].kind == STEPS_COMM);
    steps_report_open(&steps, 60000 * MS, &handler);
    assert_int_equal(n_open, 2);
    assert_int_equal(open_spans[1].seq, 2);
    ends(30, 61000);
    assert_true(n_spans == 1 && spans[0].seq == 1 && spans[0].end_ns == 61000 * MS);
    begins(30, 200, 62000, "gloo:all_reduce"); /* the key is used again */
    steps_report_open(&steps, 64000 * MS, &handler);
    assert_true(n_open == 3 && open_spans[2].seq == 3);
    /* after events were lost nothing is known to be open */
    steps_lose(&steps, 5);
    steps_report_open(&steps, 90000 * MS, &handler);
    assert_int_equal(n_open, 3);
}

static void knows(uint64_t key, const char *pg, int64_t seq) {
    struct spans_event e = {.key = key, .lost = lost, .what = SPANS_COMM};
    e.comm = (struct spans_comm){.elements = 10, .seq = seq, .size = 2, .dtype = 6};
    (void)snprintf(e.comm.pg, sizeof e.comm.pg, "%s", pg);
    steps_take(&steps, &e, &handler);
}

/* What is known of a collective is in its rows, open and done, and in no other's. */
static void test_known_collectives(void **state) {
    (void)state;
    begins(30, 200, 1000, "nccl:all_reduce");
    begins(31, 201, 1000, "nccl:all_reduce");
    begins(32, 201, 1000, "a function");
    knows(30, "7", 5);
    knows(32, "8", 6);
    knows(99, "9", 7); /* its begin was not seen */
    steps_report_open(&steps, 2500 * MS, &handler);
    assert_int_equal(n_open, 2);
    for (uint64_t key = 30; key < 33; key++)
        ends(key, 3000);
    assert_int_equal(n_spans, 3);
    assert_true(open_spans[0].seq == 1 && spans[0].seq == 1);
    assert_true(open_spans[0].comm.seq == 5 && spans[0].comm.seq == 5 && spans[0].comm.size == 2);
    assert_string_equal(spans[0].comm.pg, "7");
    assert_true(open_spans[1].comm.size == 0 && spans[1].comm.size == 0 && spans[2].comm.size == 0);
    begins(30, 200, 4000, "nccl:all_reduce"); /* the key is used again */
    ends(30, 4001);
    assert_true(spans[3].comm.size == 0 && spans[3].comm.pg[0] == '\0');
}

/* What was lost makes the step unknown in which it was; the next whole one is known again. */
static void test_lost_events(void **state) {
    (void)state;
    ordinary(1000);
    ordinary(1100);
    operation(1200, 10, LOADER);
    steps_lose(&steps, 0);
    steps_lose(&steps, 3);
    lost = 3;
    operation(1284, 15, ADAM);
    ordinary(1300);
    ordinary(1400);
    assert_int_equal(n_done, 4);
    assert_step(1, 2, 100, 10, -1, -1, 17, -1);
    assert_step(2, 3, -1, -1, -1, -1, -1, -1);
    assert_step(3, 4, 100, 10, -1, -1, 17, -1);
}

/* The event that comes after those that were lost says so, in the midst of many that are taken at once: no time is made of
 * what was before and what is after. */
static void test_loss_is_told_by_the_next_event(void **state) {
    (void)state;
    lost = 7; /* of the time before */
    steps_expect(&steps, lost);
    steps_begin_backward(&steps, 1);
    ordinary(1000);
    ordinary(1100);
    begins(20, MAIN, 1200, LOADER);
    lost = 9; /* the loader's end and the beginning of another batch */
    ends(20, 1310);
    operation(1384, 15, ADAM);
    ordinary(1400);
    ordinary(1500);
    ordinary(1600);
    assert_int_equal(n_done, 5);
    assert_step(1, 2, 100, 10, 30, 40, 17, 3);
    assert_step(2, 3, -1, -1, -1, -1, -1, -1);
    assert_step(3, 4, 100, 10, 30, 40, 17, 3);
    for (size_t i = 0; i < n_spans; i++)
        assert_true(spans[i].end_ns - spans[i].begin_ns <= 15 * MS);
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
    uint64_t missing = spans_lost();
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
            assert_true(e.lost == missing);
            if (e.what == SPANS_BEGIN)
                assert_string_equal(e.name, i % 4 ? name + sizeof name - SPANS_NAME : "a??");
        }
        assert_false(spans_take(&e));
        missing++;
    }
}

/* A child of a fork: nothing is left of what its parent told. */
static void test_queue_begins_anew(void **state) {
    struct spans_event e;
    (void)state;
    for (uint64_t i = 0; i < SPANS_CAP + 3; i++)
        spans_end(i, i);
    assert_true(spans_lost() > 0 && spans_take(&e));
    spans_begin_anew();
    assert_true(spans_lost() == 0 && !spans_take(&e));
    spans_end(5, 6);
    assert_true(spans_take(&e) && e.key == 5 && e.lost == 0);
    assert_false(spans_take(&e));
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
    uint64_t last[WRITERS] = {0}, had = 0, before = spans_lost();
    struct spans_event e;
    (void)state;
    for (uintptr_t i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_many, (void *)i), 0);
    while (had + spans_lost() - before < (uint64_t)WRITERS * WRITES)
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

static void looks(int32_t tid, uint64_t ms, struct spans_reading reading) {
    struct spans_event e = {.ns = ms * MS, .lost = lost, .tid = tid, .what = SPANS_READING};
    e.reading = reading;
    steps_take(&steps, &e, &handler);
}

static void collects(uint64_t ms, uint64_t took_ms) {
    struct spans_event e = {.ns = ms * MS, .lost = lost, .tid = 7, .what = SPANS_GC};
    e.gc.duration_ns = took_ms * MS;
    steps_take(&steps, &e, &handler);
}

/* Of two optimizers in a step the last tells the loss and the first the learning rate; another thread's tells nothing; garbage counts
 * for the step that waits for it, whoever collects it. */
static void check_looks_and_garbage(void **state) {
    (void)state;
    steps_begin_gc(&steps, 1);
    for (uint64_t i = 0; i < 4; i++) {
        uint64_t at = 100 + i * 100;
        begins(11, MAIN, at, LOADER);
        ends(11, at + 10);
        collects(at + 20, 5);
        begins(12, MAIN, at + 30, ADAM);
        looks(MAIN, at + 35, (struct spans_reading){.loss = 1, .lr = 0.5, .has_loss = true, .has_lr = true});
        looks(MAIN + 1, at + 35, (struct spans_reading){.loss = 99, .has_loss = true});
        ends(12, at + 40);
        collects(at + 45, 2);
        begins(12, MAIN, at + 50, "Optimizer.step#SGD.step");
        looks(MAIN, at + 55,
              (struct spans_reading){.loss = (double)i,
                                     .lr = 0.1,
                                     .epoch = 3,
                                     .has_loss = true,
                                     .has_lr = true,
                                     .has_epoch = true});
        ends(12, at + 60);
        collects(at + 70, 1); /* of the next step */
    }
    begins(11, MAIN, 500, LOADER);
    assert_int_equal(n_done, 4);
    for (size_t i = 0; i < n_done; i++) {
        assert_true(done[i].reading.has_loss && done[i].reading.loss == (double)i);
        assert_true(done[i].reading.has_lr && done[i].reading.lr == 0.5);
        assert_true(done[i].reading.has_epoch && done[i].reading.epoch == 3 &&
                    !done[i].reading.has_grad_norm);
        /* The beginning of the first was not seen. */
        assert_int_equal(done[i].gc_ns, i > 0 ? 8 * (int64_t)MS : STEPS_UNKNOWN);
    }
    ends(11, 510);
    steps_begin_gc(&steps, 0);
    begins(12, MAIN, 530, ADAM);
    ends(12, 540);
    begins(11, MAIN, 550, LOADER);
    assert_int_equal(done[4].gc_ns, STEPS_UNKNOWN);
    assert_true(!done[4].reading.has_loss && !done[4].reading.has_lr);
}

/* An Optimizer.step that begins with gradients of that norm, in a step that the job may have a norm of itself. */
static void has_norm(uint64_t ms, const char *name, double read, double own) {
    begins(12, MAIN, ms, name);
    looks(MAIN, ms + 1, (struct spans_reading){.read_norm = read, .has_read_norm = true});
    looks(MAIN, ms + 4, (struct spans_reading){.grad_norm = own, .has_grad_norm = own != 0});
    ends(12, ms + 5);
}

/* The norm of gradients that were read is the step's, unless the job knows better, there are others, or the step's beginning was not seen. */
static void check_norms(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 5; i++) {
        uint64_t at = 100 + i * 100;
        begins(11, MAIN, at, LOADER);
        ends(11, at + 10);
        has_norm(at + 30, ADAM, i == 4 ? INFINITY : 2, i == 2 ? 7 : 0);
        if (i == 3)
            has_norm(at + 40, "Optimizer.step#SGD.step", 3, 0);
    }
    begins(11, MAIN, 600, LOADER);
    assert_int_equal(n_done, 5);
    assert_false(done[0].reading.has_grad_norm);
    assert_true(done[1].reading.has_grad_norm && done[1].reading.grad_norm == 2);
    assert_true(done[2].reading.has_grad_norm && done[2].reading.grad_norm == 7);
    assert_false(done[3].reading.has_grad_norm);
    assert_true(done[4].reading.has_grad_norm && isinf(done[4].reading.grad_norm));
}

/* Texts of values have a bounded number of places, which can be used again. */
static void check_texts(void **state) {
    char func[SPANS_FUNC], text[SPANS_TEXT], longer[2 * SPANS_TEXT];
    int32_t places[4096];
    size_t n = 0;
    (void)state;
    uint64_t before = spans_texts_lost();
    while (n < 4096 && (places[n] = spans_put_text("train", "0.25")) >= 0)
        n++;
    assert_in_range(n, 100, 4095);
    assert_int_equal(spans_texts_lost(), before + 1);
    for (size_t i = 0; i < n; i++) {
        spans_take_text(places[i], func, text);
        assert_string_equal(func, "train");
        assert_string_equal(text, "0.25");
    }
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    int32_t place = spans_put_text(longer, longer);
    assert_true(place >= 0);
    spans_take_text(place, func, text);
    assert_int_equal(strlen(func), SPANS_FUNC - 1);
    assert_int_equal(strlen(text), SPANS_TEXT - 1);
}

/* An Optimizer.step of 5 ms that tells which optimizer takes it (0: it does not tell). */
static void taken_by(uint64_t ms, uint64_t optimizer) {
    struct spans_event look = {.ns = (ms + 4) * MS, .tid = MAIN, .what = SPANS_READING};
    look.reading.optimizer = optimizer;
    begins(1000, MAIN, ms, ADAM);
    if (optimizer)
        steps_take(&steps, &look, &handler);
    ends(1000, ms + 5);
}

static void assert_ends(const uint64_t *ms, size_t n) {
    assert_int_equal(n_done, n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(done[i].end_ns, ms[i] * MS);
        assert_int_equal(done[i].step, (int64_t)i + 1);
        assert_true(i == 0 || done[i].duration_ns == (int64_t)((ms[i] - ms[i - 1]) * MS));
    }
}

static void test_optimizers_of_one_class_without_a_loader(void **state) {
    (void)state;
    static const uint64_t ends_at[] = {25, 75, 125};
    for (uint64_t at = 0; at < 200; at += 50) {
        operation(at + 0, 2, ZERO);
        taken_by(at + 5, 0xd0);
        operation(at + 12, 2, ZERO);
        taken_by(at + 20, 0xe0);
    }
    assert_ends(ends_at, 3);
    assert_int_equal(done[1].optimizer_ns, done[2].optimizer_ns);
    assert_int_equal(done[2].optimizer_ns, (2 + 5 + 2 + 5) * (int64_t)MS);
}

/* Another optimizer takes over: it is a member of the step that goes on, and begins the next one with its second. */
static void test_an_optimizer_that_is_made_anew(void **state) {
    (void)state;
    static const uint64_t ends_at[] = {5, 45, 65};
    taken_by(0, 0xd0);
    taken_by(20, 0xd0);
    taken_by(40, 0xe0);
    taken_by(60, 0xe0);
    taken_by(80, 0xe0);
    assert_ends(ends_at, 3);
}

static void test_an_optimizer_that_is_not_told(void **state) {
    (void)state;
    static const uint64_t ends_at[] = {5, 25, 45};
    taken_by(0, 0xd0);
    taken_by(20, 0);
    taken_by(40, 0);
    taken_by(60, 0xd0);
    assert_ends(ends_at, 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(check_looks_and_garbage, begin_anew),
        cmocka_unit_test_setup(check_norms, begin_anew),
        cmocka_unit_test(check_texts),
        cmocka_unit_test_setup(test_ordinary_steps, begin_anew),
        cmocka_unit_test_setup(test_not_looked_into, begin_anew),
        cmocka_unit_test_setup(test_zero_grad_afterwards, begin_anew),
        cmocka_unit_test_setup(test_gradient_accumulation, begin_anew),
        cmocka_unit_test_setup(test_several_optimizers, begin_anew),
        cmocka_unit_test_setup(test_without_a_loader, begin_anew),
        cmocka_unit_test_setup(test_optimizers_of_one_class_without_a_loader, begin_anew),
        cmocka_unit_test_setup(test_an_optimizer_that_is_made_anew, begin_anew),
        cmocka_unit_test_setup(test_an_optimizer_that_is_not_told, begin_anew),
        cmocka_unit_test_setup(test_loader_of_something_else, begin_anew),
        cmocka_unit_test_setup(test_closure, begin_anew),
        cmocka_unit_test_setup(test_collectives, begin_anew),
        cmocka_unit_test_setup(test_collectives_that_are_enqueued, begin_anew),
        cmocka_unit_test_setup(test_one_enqueued_collective, begin_anew),
        cmocka_unit_test_setup(test_open_collectives, begin_anew),
        cmocka_unit_test_setup(test_known_collectives, begin_anew),
        cmocka_unit_test_setup(test_lost_events, begin_anew),
        cmocka_unit_test_setup(test_loss_is_told_by_the_next_event, begin_anew),
        cmocka_unit_test_setup(test_half_operations, begin_anew),
        cmocka_unit_test_setup(test_a_pause, begin_anew),
        cmocka_unit_test_setup(test_two_threads, begin_anew),
        cmocka_unit_test(test_queue_keeps_order),
        cmocka_unit_test(test_queue_begins_anew),
        cmocka_unit_test(test_queue_of_many_threads),
        cmocka_unit_test(test_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
