/* SPDX-License-Identifier: Apache-2.0 */
/* What is read of a rank: for how long it has not run, whichever CPU it ran on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "client/fleet/rank_state.h"
#include "pystack/pystack.h"

#define CPUS 64
#define SLEEPS_S 2.0
#define OFF_S 0.25 /* CPUs of a virtual machine may be seconds apart */

static bool is_ours(int cpu) {
    cpu_set_t ours;
    return sched_getaffinity(0, sizeof ours, &ours) == 0 && CPU_ISSET((size_t)cpu, &ours);
}

/* A process that has run there for the last time now. */
static pid_t begin_sleeper(int cpu) {
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        cpu_set_t one;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        CPU_ZERO(&one);
        CPU_SET((size_t)cpu, &one);
        if (sched_setaffinity(0, sizeof one, &one) == 0 && write(ready[1], "", 1) == 1)
            for (;;)
                pause();
        _exit(1);
    }
    assert_true(pid > 0);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static void each_cpu_has_a_clock_of_its_own(void **state) {
    (void)state;
    pid_t pids[CPUS] = {0};
    double began[CPUS];
    for (int cpu = 0; cpu < CPUS; cpu++)
        if (is_ours(cpu)) {
            pids[cpu] = begin_sleeper(cpu);
            began[cpu] = (double)clock_mono_ns() / 1e9;
        }
    nanosleep(&(struct timespec){.tv_sec = (time_t)SLEEPS_S}, NULL);
    for (int cpu = 0; cpu < CPUS; cpu++) {
        struct rank_state s;
        struct pystack *python = NULL;
        if (!pids[cpu])
            continue;
        rank_state_read(&s, pids[cpu], &python);
        double slept_s = (double)clock_mono_ns() / 1e9 - began[cpu];
        kill(pids[cpu], SIGKILL);
        waitpid(pids[cpu], NULL, 0);
        pystack_close(python);
        /* a kernel may not know it */
        if (!isnan(s.still_s) && fabs(s.still_s - slept_s) > OFF_S)
            fail_msg("CPU %d: %.3f s instead of %.3f", cpu, s.still_s, slept_s);
        assert_true(is_ours(cpu));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_cpu_has_a_clock_of_its_own)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
