/* SPDX-License-Identifier: Apache-2.0 */
/* A worker thread reports to a loop; one that is stuck is left behind, and nothing waits for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/work.h"

#define LONGEST_MS 60000

struct service {
    struct work work;
    /* Under the lock. */
    int asked, answered;
    /* The worker's. */
    int pipe[2];
    bool blocks_signals;
};

static bool is_readable(int fd, int timeout_ms) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, timeout_ms) == 1;
}

static void job(void *arg) {
    struct service *s = arg;
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    s->blocks_signals = sigismember(&blocked, SIGINT) == 1 && sigismember(&blocked, SIGCHLD) == 1;
    s->answered++;
}

static void test_a_job_runs_once_at_a_time(void **state) {
    struct service s = {.answered = 0};
    (void)state;
    assert_int_equal(work_init(&s.work), 0);
    assert_false(work_finish(&s.work));
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(work_start(&s.work, job, &s), 0);
        assert_true(is_readable(s.work.fd, LONGEST_MS));
        assert_true(work_finish(&s.work));
        assert_false(work_finish(&s.work));
        assert_false(s.work.is_running);
        assert_int_equal(s.answered, i);
        assert_true(s.blocks_signals);
    }
    assert_int_equal(work_start(&s.work, job, &s), 0);
    assert_true(work_stop(&s.work, LONGEST_MS / 1000)); /* not taken: joined all the same */
    assert_true(work_stop(&s.work, 0));                 /* twice is once */
}

static void service(void *arg) {
    struct service *s = arg;
    work_lock(&s->work);
    while (!s->work.stop) {
        if (s->answered == s->asked) {
            work_wait(&s->work, WORK_FOREVER);
            continue;
        }
        s->answered++;
        work_notify(&s->work);
    }
    work_unlock(&s->work);
}

static void test_a_service_answers_until_it_is_stopped(void **state) {
    struct service s = {.answered = 0};
    (void)state;
    assert_int_equal(work_init(&s.work), 0);
    assert_int_equal(work_start(&s.work, service, &s), 0);
    for (int i = 1; i <= 3; i++) {
        work_lock(&s.work);
        s.asked = i;
        work_wake(&s.work);
        work_unlock(&s.work);
        assert_true(is_readable(s.work.fd, LONGEST_MS));
        assert_true(work_clear(&s.work));
        assert_false(work_clear(&s.work));
        assert_false(is_readable(s.work.fd, 0));
    }
    assert_true(work_stop(&s.work, LONGEST_MS / 1000));
    assert_int_equal(s.answered, 3);
}

static void test_a_wait_ends_at_its_time(void **state) {
    struct service s = {.answered = 0};
    uint64_t until = clock_mono_ns() + 10 * CLOCK_NS_PER_MS;
    (void)state;
    assert_int_equal(work_init(&s.work), 0);
    work_lock(&s.work);
    while (work_wait(&s.work, until))
        continue;
    work_unlock(&s.work);
    assert_true(clock_mono_ns() >= until);
    assert_true(work_stop(&s.work, 0));
}

static void stuck(void *arg) {
    struct service *s = arg;
    char byte;
    ssize_t n = read(s->pipe[0], &byte, 1);
    s->answered = (int)n;
}

static void test_one_that_is_stuck_is_left_behind(void **state) {
    struct service *s = calloc(1, sizeof *s); /* never freed: the thread has it */
    static struct service *left_behind;
    (void)state;
    assert_non_null(s);
    left_behind = s;
    assert_int_equal(pipe(s->pipe), 0);
    assert_int_equal(work_init(&s->work), 0);
    assert_int_equal(work_start(&s->work, stuck, s), 0);
    assert_false(work_stop(&s->work, 0));
    assert_int_equal(write(left_behind->pipe[1], "x", 1), 1);
    assert_true(
        is_readable(s->work.fd, LONGEST_MS)); /* it goes on and reports, to whoever may still listen */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_job_runs_once_at_a_time),
        cmocka_unit_test(test_a_service_answers_until_it_is_stopped),
        cmocka_unit_test(test_a_wait_ends_at_its_time),
        cmocka_unit_test(test_one_that_is_stuck_is_left_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
