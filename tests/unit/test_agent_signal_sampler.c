/* SPDX-License-Identifier: Apache-2.0 */
/* The handler of the signal by which threads are asked: what it leaves behind in the job, and in children of the job. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/sampler/signal_sampler.h"

/* The disposition as the kernel has it. */
struct action {
    uint64_t handler, flags, restorer, mask;
};

static void read_action(struct action *out) {
    memset(out, 0, sizeof *out);
    assert_int_equal(syscall(SYS_rt_sigaction, SIGURG, NULL, out, sizeof out->mask), 0);
}

static void check_exact_puts_back_what_was_there(void **state) {
    struct signal_sampler_stats stats = {0};
    struct action before, now;
    struct err e;
    (void)state;
    read_action(&before);
    assert_int_equal(signal_sampler_arm(&stats, &e), 0);
    read_action(&now);
    assert_true(memcmp(&before, &now, sizeof now) != 0);
    signal_sampler_disarm();
    read_action(&now);
    assert_memory_equal(&before, &now, sizeof now);
}

static int stop_arming;

static void *arm_and_disarm(void *arg) {
    struct signal_sampler_stats stats = {0};
    struct err e;
    while (!__atomic_load_n(&stop_arming, __ATOMIC_ACQUIRE)) {
        if (signal_sampler_arm(&stats, &e) != 0)
            return arg;
        signal_sampler_disarm();
    }
    return NULL;
}

/* fork copies dispositions first and memory later: the child has no handler whatever the copy of our memory says. */
static void check_exact_leaves_children_alone(void **state) {
    pthread_t thread;
    void *failed;
    int wrong = 0;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, arm_and_disarm, &stop_arming), 0);
    for (int i = 0; i < 300; i++) {
        int status = -1;
        pid_t child = fork();
        if (child == 0) {
            struct sigaction now;
            signal_sampler_in_child();
            _exit(sigaction(SIGURG, NULL, &now) != 0 || now.sa_handler != SIG_DFL);
        }
        assert_true(child > 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        wrong += status != 0;
    }
    __atomic_store_n(&stop_arming, 1, __ATOMIC_RELEASE);
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_true(!failed && !wrong);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_exact_puts_back_what_was_there),
        cmocka_unit_test(check_exact_leaves_children_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
