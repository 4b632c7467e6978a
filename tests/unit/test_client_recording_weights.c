/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long the samples of a recording stand for: a program whose threads are known at every moment, looked at now often, now
 * seldom, now not at all. Each stack has the time that it really took, in every window, up to what no looks can tell.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cost.h"
#include "client/session/call.h"
#include "client/sql/recording.h"
#include "client/samples/sample_store.h"
#include "client/target/target.h"
#include "unit/store_job.h"

#define T0 1700000000.0
#define MAX_LOOKS 8192
#define TURNS 100 /* this thread takes turns in stacks 1, 2 and 3; the other is in stack 4 */
#define STAYS 101
#define TURN_S 1.3
#define PAUSE_FROM 40.0
#define PAUSE_TO 46.0
#define END 58.0
#define SLACK_S 1e-3 /* times in the tables are of microseconds */

static struct job job;
static double looks[MAX_LOOKS]; /* since T0 */
static size_t n_looks;

/* Looks at a rate, as the sampler spaces them. */
static void look_between(struct cost_pace *pace, double from, double to, double hz) {
    for (double at = from; at < to; at += (double)cost_pace_next_ns(pace, (uint64_t)(1e9 / hz)) / 1e9) {
        assert_true(n_looks < MAX_LOOKS);
        looks[n_looks++] = at;
    }
}

static int stack_at(double at) { return 1 + (int)(at / TURN_S) % 3; }

static void put_sample(struct ring *r, double at, int64_t tid, int stack) {
    union ring_value v[RING_SAMPLES_COUNT] = {
        [RING_SAMPLES_TIMESTAMP].f = T0 + at, [RING_SAMPLES_TID].i = tid,
        [RING_SAMPLES_STACK_ID].i = stack,    [RING_SAMPLES_ON_CPU].i = 1,
        [RING_SAMPLES_GIL].i = RING_INT_NULL, [RING_SAMPLES_GC].i = RING_INT_NULL};
    assert_int_equal(ring_append(r, v), 0);
}

static int make_job(void **state) {
    struct cost_pace pace;
    (void)state;
    cost_pace_init(&pace, 7);
    look_between(&pace, 0.0, 20.0, 100);
    look_between(&pace, 20.0, PAUSE_FROM, 10);
    look_between(&pace, PAUSE_TO, END, 20);
    job_make(&job, 100, 2);
    job_stacks(&job);
    struct ring *r = job_sample_table(&job, 2 * n_looks);
    for (size_t i = 0; i < n_looks; i++) {
        put_sample(r, looks[i], TURNS, stack_at(looks[i]));
        put_sample(r, looks[i], STAYS, 4);
    }
    ring_close(r);
    return 0;
}

static int remove_job(void **state) {
    (void)state;
    job_remove(&job);
    return 0;
}

static int take_batch(void *arg, struct model_sample_batch *b) {
    assert_int_equal(b->n_samples > 0, b->us != NULL && b->period_us > 0);
    assert_true(sample_store_add(arg, b, 1));
    return 0;
}

static struct sample_store *take_all(void) {
    struct err e = {.text = ""};
    struct target_address addr;
    double elapsed;
    struct sample_store *t = sample_store_new();
    assert_non_null(t);
    assert_int_equal(target_resolve(job.dir, &addr, &e), 0);
    struct call *c = call_open(&addr, &e);
    if (!c)
        fail_msg("%s", e.text);
    assert_int_equal(call_sample(c, 100, 0, take_batch, t, &elapsed, &e), 0);
    call_close(c);
    return t;
}

/* Time of a stack in a window of the tally. */
static double seconds_of(const struct sample_store *t, enum sample_store_window which, int stack) {
    double us = 0;
    for (size_t i = 0; i < sample_store_count_entries(t); i++) {
        const struct model_frame *frames[8];
        size_t n = stack_counts_path(sample_store_counts(t),
                                     stack_counts_get(sample_store_counts(t), i)->stack, frames, 8);
        us += n == (size_t)stack ? sample_store_get_count(t, which, i).us : 0;
    }
    return us / 1e6;
}

/* How much of [from, to) lies in [begin, end), without the pause. */
static double overlap(double from, double to, double begin, double end) {
    double first = fmax(from, begin), last = fmin(to, end);
    double pause = fmax(0, fmin(last, PAUSE_TO) - fmax(first, PAUSE_FROM));
    return fmax(0, last - first) - pause;
}

/* The distance between the looks around a moment: which of the two it is nearer to is all that they tell of it. */
static double doubt_at(double at) {
    for (size_t i = 1; i < n_looks; i++)
        if (looks[i] > at)
            return looks[i] - looks[i - 1] < PAUSE_TO - PAUSE_FROM ? (looks[i] - looks[i - 1]) / 2 : 0.3;
    return 0.3;
}

/* What a stack took in a window, and how far from that looks may be: half a distance where the window or a turn begins or ends. */
static double truth_of(int stack, double from, double to, double *doubt) {
    double s = 0;
    *doubt = SLACK_S + doubt_at(from) + doubt_at(to) + (from <= PAUSE_TO && to >= PAUSE_FROM ? 0.3 : 0);
    if (stack == 4)
        return overlap(from, to, 0, END);
    for (int turn = 0; turn * TURN_S < END; turn++) {
        double begin = turn * TURN_S, end = begin + TURN_S;
        if (turn % 3 + 1 != stack || overlap(from, to, begin, end) <= 0)
            continue;
        s += overlap(from, to, begin, end);
        *doubt += (begin > from ? doubt_at(begin) : 0) + (end < to ? doubt_at(end) : 0);
    }
    return s;
}

static void check(const struct sample_store *t, enum sample_store_window which, double from, double to) {
    for (int stack = 1; stack <= 4; stack++) {
        double doubt, truth = truth_of(stack, from, to, &doubt), said = seconds_of(t, which, stack);
        if (fabs(said - truth) > doubt)
            fail_msg("stack %d took %.3f s of %.1f to %.1f, not %.3f (%.3f)", stack, truth, from, to, said,
                     doubt);
    }
}

static void a_recording_has_the_time_that_passed(void **state) {
    (void)state;
    struct sample_store *t = take_all();
    check(t, SAMPLE_STORE_ALL, 0, END);
    sample_store_free(t);
}

/* At the mean of the whole minute, some 42 looks a second, 5 s of the first part would be 12 s, and of the second 1.2. */
static void every_window_has_its_own_length(void **state) {
    (void)state;
    struct sample_store *t = take_all();
    for (double from = 0; from + 5 <= END; from += 0.5) {
        assert_int_equal(sample_store_set_span(t, SAMPLE_STORE_SPAN, T0 + from, T0 + from + 5), 0);
        check(t, SAMPLE_STORE_SPAN, from, from + 5);
        double all = seconds_of(t, SAMPLE_STORE_SPAN, 4), turns = 0;
        for (int stack = 1; stack <= 3; stack++)
            turns += seconds_of(t, SAMPLE_STORE_SPAN, stack);
        assert_true(fabs(all - turns) < SLACK_S); /* both threads were there all the time */
    }
    sample_store_free(t);
}

/* ---- weights alone ---- */

static void weigh(const double *times, size_t n, double *us) {
    struct model_sample samples[64] = {{.timestamp = 0}};
    struct recording p = {.samples = samples, .n_samples = n};
    assert_true(n <= 64);
    for (size_t i = 0; i < n; i++)
        samples[i].timestamp = T0 + times[i];
    arena_init(&p.arena, 64 * 1024);
    assert_int_equal(recording_weigh(&p), 0);
    for (size_t i = 0; i < n; i++)
        us[i] = p.us[i];
    arena_fini(&p.arena);
}

#define ASSERT_US(us, wanted) assert_true(fabs((us) - (wanted)) < 10)

static void a_look_has_half_of_what_lies_on_either_side(void **state) {
    (void)state;
    double us[64];
    weigh((double[]){0, 0.25, 0.375, 0.375, 0.5, 1.5}, 6, us); /* two threads at 0.375 */
    ASSERT_US(us[0], 250000);
    ASSERT_US(us[1], 187500);
    ASSERT_US(us[2], 125000);
    ASSERT_US(us[3], 125000);
    ASSERT_US(us[4], 562500);
    ASSERT_US(us[5], 1000000);
    weigh((double[]){0, 2}, 2, us);
    ASSERT_US(us[0], 2e6);
    ASSERT_US(us[1], 2e6);
    weigh((double[]){5}, 1, us); /* one look has no length */
    assert_true(us[0] == 0);
    weigh((double[]){5, 5}, 2, us);
    assert_true(us[0] == 0 && us[1] == 0);
    weigh(us, 0, us);
}

static void a_pause_is_nobody_s(void **state) {
    (void)state;
    double times[40], us[64];
    for (size_t i = 0; i < 40; i++) /* every 0.125 s, 30 s of nothing, every 0.25 s */
        times[i] = i < 20 ? (double)i * 0.125 : 30 + (double)i * 0.25;
    weigh(times, 40, us);
    for (size_t i = 0; i < 40; i++)
        ASSERT_US(us[i], i < 20 ? 125000 : 250000);
    for (size_t i = 0; i < 40; i++) /* seldom looks after frequent ones are no pause */
        times[i] = i < 20 ? (double)i * 0.0625 : 1.1875 + (double)(i - 19) * 4;
    weigh(times, 40, us);
    ASSERT_US(us[18], 62500);
    ASSERT_US(us[19], 62500 / 2.0 + 2e6);
    ASSERT_US(us[20], 4e6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_recording_has_the_time_that_passed),
        cmocka_unit_test(every_window_has_its_own_length),
        cmocka_unit_test(a_look_has_half_of_what_lies_on_either_side),
        cmocka_unit_test(a_pause_is_nobody_s),
    };
    return cmocka_run_group_tests_name("client_past_weights", tests, make_job, remove_job);
}
