/* SPDX-License-Identifier: Apache-2.0 */
/* Where this program runs, from names that anybody may have chosen. Marks and variables: test_inject_proc.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/container.h"

static void check_job(const char *cgroup, const char *job) {
    char found[CONTAINER_JOB_MAX];
    memset(found, 'x', sizeof found);
    container_parse_slurm_job(cgroup, found, sizeof found);
    assert_string_equal(found, job);
}

static void test_slurm_job(void **state) {
    (void)state;
    check_job("0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0\n", "4711");
    check_job("0::/system.slice/node1_slurmstepd.scope/job_4711/step_extern/user/task_special\n", "4711");
    check_job("9:memory:/slurm/uid_1000/job_12/step_batch/task_0\n0::/\n", "12");
    check_job("9:cpu:/\n8:devices:/slurm_node7/uid_0/job_8", "8");
    check_job("0::/slurm/job_1\n", "1");
}

static void test_no_slurm_job(void **state) {
    char longest[64] = "0::/slurm/job_";
    (void)state;
    memset(longest + strlen(longest), '7', CONTAINER_JOB_MAX);
    check_job("", "");
    check_job("0::/user.slice/user-1000.slice/session-2.scope\n", "");
    check_job("0::/user.slice/job_7/x\n", "");
    check_job("0::/slurm\n1:x:/job_7/x\n", ""); /* not of one line */
    check_job("0::/job_7/slurm\n", "");
    check_job("0::/slurm/job_\n", "");
    check_job("0::/slurm/job_7;reboot/x\n", "");
    check_job("0::/slurm/job_-7/x\n", "");
    check_job("0::/slurm/job_7 8/x\n", "");
    check_job(longest, "");
}

/* Each is a clause of one line that a message ends with, and short enough for the errors that quote it. */
static void test_remedies(void **state) {
    (void)state;
    for (int kind = CONTAINER_NONE; kind <= CONTAINER_OTHER; kind++) {
        const char *texts[] = {container_remedy(kind), container_filter_remedy(kind)};
        for (size_t i = 0; i < 2; i++) {
            assert_true(strncmp(texts[i], "run this ", 9) == 0 || strncmp(texts[i], "start the ", 10) == 0);
            assert_true(strlen(texts[i]) < 110);
            assert_null(strpbrk(texts[i], "\n:"));
        }
    }
}

static void test_missing(void **state) {
    struct container c = {.kind = CONTAINER_NONE};
    char text[200], small[20];
    (void)state;
    container_put_missing(&c, "process 7", text, sizeof text);
    assert_string_equal(text, "no process 7: 'probing list' shows the Python processes");
    c.kind = CONTAINER_PODMAN;
    container_put_missing(&c, "process 7", text, sizeof text);
    assert_string_equal(text, "no process 7 in this container: 'probing list' shows the Python processes");
    c = (struct container){.slurm_job = "12", .may_be_elsewhere = true};
    container_put_missing(&c, "process 7", text, sizeof text);
    assert_string_equal(text, "no process 7 on this node: run this on a node of the job, "
                              "'srun --jobid=12 --overlap --pty probing-top'");
    container_put_missing(&c, "process 7", small, sizeof small);
    assert_int_equal(strlen(small), sizeof small - 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slurm_job),
        cmocka_unit_test(test_no_slurm_job),
        cmocka_unit_test(test_remedies),
        cmocka_unit_test(test_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
