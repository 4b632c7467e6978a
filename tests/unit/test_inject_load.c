/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the created thread to a running agent, when the thread gives us up: this process is its own target, and a question
 * that the injector asks in between is when the thread's memory goes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "inject/load.h"

static struct stub_params *params;
static int asked, goes_at;

static void params_go(void) { assert_int_equal(munmap(params, sizeof *params), 0); }

static bool ask(void) {
    if (++asked != goes_at)
        return false;
    params_go();
    return true;
}

static void test_a_thread_that_gives_us_up_at_the_deadline(void **state) {
    struct target t = {.pid = getpid(), .process = -1};
    struct stub_params out;
    struct err e = {.code = ERR_OK};
    (void)state;
    mem_open_image(&t.mem, getpid());
    /* 1: after it was born; 2: while its last word is waited for, which ends the waiting; 3: whether that was a ^C. */
    for (goes_at = 1; goes_at <= 2; goes_at++) {
        asked = 0;
        params = mmap(NULL, sizeof *params, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_ptr_not_equal(params, MAP_FAILED);
        params->phase = STUB_BORN;
        struct load_request req = {.params_at = (uint64_t)(uintptr_t)params,
                                   .deadline_ns = clock_mono_ns() + 60 * CLOCK_NS_PER_S,
                                   .stop_asked = ask};
        /* To be tried again, or an error that says something. */
        int rc = load_agent(&t, &req, &out, &e);
        assert_true(rc == 1 || (rc == -1 && e.code != ERR_OK && e.text[0]));
        assert_int_equal(rc, 1);
    }
    mem_fini(&t.mem);
}

static void test_what_failed_has_failed(void **state) {
    struct err e = {.code = ERR_OK};
    (void)state;
    assert_int_equal(err_exit_status(&e), 1);
    (void)err_set(&e, ERR_ATTACH, "no");
    assert_int_equal(err_exit_status(&e), 3);
    (void)err_set(&e, ERR_LOST, "gone");
    assert_int_equal(err_exit_status(&e), 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_thread_that_gives_us_up_at_the_deadline),
        cmocka_unit_test(test_what_failed_has_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
