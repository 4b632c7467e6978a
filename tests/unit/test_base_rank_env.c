/* SPDX-License-Identifier: Apache-2.0 */
/* Which rank of which job an environment makes of a process: launchers as they are, and strangers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rank_env.h"

/* Variables separated by a space stand in the environment as the kernel has them. */
static struct rank_env read_env(const char *words) {
    char env[2048];
    struct rank_env r;
    size_t len = strlen(words);
    assert_true(len + 1 < sizeof env);
    memcpy(env, words, len + 1);
    for (size_t i = 0; i < len; i++)
        if (env[i] == ' ')
            env[i] = '\0';
    rank_env_parse(&r, env, len + 1);
    return r;
}

static void has(const char *words, const char *source, int rank, int world, int local, int locals) {
    struct rank_env r = read_env(words);
    assert_non_null(r.source);
    assert_string_equal(r.source->name, source);
    assert_int_equal(r.rank, rank);
    assert_int_equal(r.world, world);
    assert_int_equal(r.local, local);
    assert_int_equal(r.locals, locals);
}

static void has_none(const char *words) {
    struct rank_env r = read_env(words);
    assert_null(r.source);
    assert_int_equal(r.rank, -1);
    assert_int_equal(r.job, 0);
}

static void test_launchers(void **state) {
    (void)state;
    has("HOME=/x RANK=3 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2", "torchrun", 3, 8, 1, 2);
    has("SLURM_PROCID=5 SLURM_NTASKS=16 SLURM_STEP_ID=0 SLURM_LOCALID=1 SLURM_STEP_TASKS_PER_NODE=4(x4)",
        "slurm", 5, 16, 1, 4);
    has("SLURM_PROCID=5 SLURM_STEP_NUM_TASKS=8 SLURM_NTASKS=16 SLURM_STEPID=2 SLURM_TASKS_PER_NODE=4,2",
        "slurm", 5, 8, -1, 0);
    has("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=0 "
        "OMPI_COMM_WORLD_LOCAL_SIZE=2",
        "openmpi", 0, 2, 0, 2);
    has("PMIX_RANK=4 PMIX_NAMESPACE=prterun-1", "pmix", 4, 0, -1, 0);
    has("PMI_RANK=1 PMI_SIZE=4 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=4", "pmi", 1, 4, 1, 4);
    /* the first that is whole */
    has("SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_STEP_ID=0 RANK=9 WORLD_SIZE=16", "torchrun", 9, 16, -1, 0);
    has("RANK=9 SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_STEP_ID=0", "slurm", 1, 2, -1, 0);
}

/* A launcher that runs in a step of Slurm leaves its ranks the step's variables. */
#define STEP_OF_1 "SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 "

static void test_in_step(void **state) {
    (void)state;
    has(STEP_OF_1, "slurm", 0, 1, -1, 0);
    has(STEP_OF_1 "OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_SIZE=8 PMIX_RANK=5 PMIX_NAMESPACE=1", "openmpi", 5,
        8, -1, 0);
    has(STEP_OF_1 "PMI_RANK=5 PMI_SIZE=8 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=4", "pmi", 5, 8, 1, 4);
    has(STEP_OF_1 "PMIX_RANK=5 PMIX_NAMESPACE=prterun-1", "pmix", 5, 0, -1, 0);
    has(STEP_OF_1 "PMIX_RANK=0 PMIX_NAMESPACE=slurm.pmix.7.0 PMI_RANK=5 PMI_SIZE=8", "pmi", 5, 8, -1, 0);
    /* those that srun gives */
    has(STEP_OF_1 "PMI_RANK=0 PMI_SIZE=1", "slurm", 0, 1, -1, 0);
    has(STEP_OF_1 "PMIX_RANK=0 PMIX_NAMESPACE=slurm.pmix.7.0", "slurm", 0, 1, -1, 0);
    has(STEP_OF_1 "PMIX_RANK=0 PMIX_NAMESPACE=slurm.pmix", "pmix", 0, 0, -1, 0);
    /* no whole row */
    has(STEP_OF_1 "PMI_RANK=8 PMI_SIZE=8 PMIX_RANK=1", "slurm", 0, 1, -1, 0);
}

static void test_no_rank(void **state) {
    (void)state;
    has_none("");
    has_none("RANK=0");
    has_none("WORLD_SIZE=1");
    has_none("XRANK=0 WORLD_SIZE=1 RANK1=0");
    has_none("PMIX_RANK=4");
    has_none("PMIX_RANK=4 PMIX_NAMESPACE=");
    /* the script of sbatch has the first rank's number, and is no step */
    has_none("SLURM_PROCID=0 SLURM_NTASKS=8 SLURM_JOB_ID=7");
    has_none("SLURM_PROCID=0 SLURM_NTASKS=8 SLURM_JOB_ID=7 SLURM_STEP_ID=4294967291");
}

static void test_strangers(void **state) {
    (void)state;
    static const char *const wrong[] = {
        "-1", "", "8", "+1", "1.0", "1x", "0x1", "99999999999999999999", "\xff", "\x1b[2J"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char words[128] = "WORLD_SIZE=8 RANK=";
        has_none(strcat(words, wrong[i]));
    }
    has_none("RANK=0 WORLD_SIZE=0");
    has_none("RANK=0 WORLD_SIZE=1048577");
    has("RANK=0 WORLD_SIZE=1048576", "torchrun", 0, 1048576, -1, 0);
    has("RANK=1 RANK=2 WORLD_SIZE=3", "torchrun", 1, 3, -1, 0);
    /* a local rank that is not below the number of them says nothing */
    has("RANK=0 WORLD_SIZE=8 LOCAL_RANK=4 LOCAL_WORLD_SIZE=4", "torchrun", 0, 8, -1, 0);
    has("RANK=0 WORLD_SIZE=8 LOCAL_RANK=-1 LOCAL_WORLD_SIZE=many", "torchrun", 0, 8, -1, 0);
    /* the last one is cut: nobody knows how it goes on */
    struct rank_env r;
    rank_env_parse(&r, "RANK=1\0WORLD_SIZE=12", strlen("RANK=1") + 1 + strlen("WORLD_SIZE=12"));
    assert_null(r.source);
    rank_env_parse(&r, "\0\0=\0==\0RANK\0", 12);
    assert_null(r.source);
    rank_env_parse(&r, "", 0);
    assert_null(r.source);
}

static bool is_same_job(const char *a, const char *b) {
    struct rank_env x = read_env(a), y = read_env(b);
    assert_true(x.job && y.job);
    return x.job == y.job;
}

static void test_job(void **state) {
    (void)state;
    assert_true(is_same_job("RANK=0 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=1",
                            "MASTER_PORT=1 MASTER_ADDR=a RANK=1 WORLD_SIZE=2"));
    assert_false(is_same_job("RANK=0 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=1",
                             "RANK=0 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=2"));
    assert_false(is_same_job("RANK=0 WORLD_SIZE=2 MASTER_ADDR=ab", "RANK=0 WORLD_SIZE=2 MASTER_PORT=ab"));
    assert_false(is_same_job("RANK=0 WORLD_SIZE=2 TORCHELASTIC_RUN_ID=x",
                             "RANK=0 WORLD_SIZE=2 TORCHELASTIC_RUN_ID=y"));
    /* "none" is the default of torchrun, and names nothing */
    assert_int_equal(read_env("RANK=0 WORLD_SIZE=2 TORCHELASTIC_RUN_ID=none").job, 0);
    assert_int_equal(read_env("RANK=0 WORLD_SIZE=2 TORCHELASTIC_RUN_ID=").job, 0);
    struct rank_env a =
        read_env("RANK=0 WORLD_SIZE=2 TORCHELASTIC_RUN_ID=x MASTER_PORT=1 TORCHELASTIC_RESTART_COUNT=1");
    struct rank_env b = read_env("RANK=0 WORLD_SIZE=2 TORCHELASTIC_RUN_ID=x MASTER_PORT=2 LOCAL_RANK=0");
    assert_true(a.run == b.run && a.job != b.job && a.restarts == 1 && b.restarts == 0);
    assert_true(b.is_local_rank && !a.is_local_rank);
    assert_true(read_env("RANK=0 WORLD_SIZE=2 MASTER_ADDR=localhost").is_loopback);
    assert_true(read_env("RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1").is_loopback);
    assert_true(read_env("RANK=0 WORLD_SIZE=2 MASTER_ADDR=::1").is_loopback);
    assert_false(read_env("RANK=0 WORLD_SIZE=2 MASTER_ADDR=node1").is_loopback);
    assert_string_equal(read_env("RANK=0 WORLD_SIZE=2 SLURM_JOB_NAME=a\x1b[1mb\xff").title,
                        "a\xef\xbf\xbd[1mb\xef\xbf\xbd");
    char words[1024] = "RANK=0 WORLD_SIZE=2 SLURM_JOB_NAME=";
    memset(words + strlen(words), 'n', 700);
    assert_int_equal(strlen(read_env(words).title), sizeof a.title - 1);
}

static bool is_same_run(const char *a, const char *b) {
    struct rank_env x = read_env(a), y = read_env(b);
    assert_true(x.run && y.run);
    return x.run == y.run;
}

#define STEPS(rank) "RANK=" rank " WORLD_SIZE=2 SLURM_JOB_ID=7 SLURM_STEP_ID=" rank " "

/* Each host's launcher is a step of its own. */
static void test_steps_of_one_job(void **state) {
    (void)state;
    static const char *const same[] = {"MASTER_ADDR=a MASTER_PORT=1", "TORCHELASTIC_RUN_ID=x",
                                       "TORCHELASTIC_RUN_ID=x MASTER_ADDR=127.0.0.1"};
    char a[256], b[256];
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        (void)snprintf(a, sizeof a, "%sPMIX_NAMESPACE=slurm.pmix.7.0 %s", STEPS("0"), same[i]);
        (void)snprintf(b, sizeof b, "%sPMIX_NAMESPACE=slurm.pmix.7.1 %s", STEPS("1"), same[i]);
        assert_true(is_same_job(a, b) && is_same_run(a, b));
    }
    assert_true(is_same_job("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 PMIX_NAMESPACE=x SLURM_STEP_ID=0",
                            "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 PMIX_NAMESPACE=x"));
    /* two jobs of one allocation, by where they meet, also when their ranks are started again */
    assert_false(is_same_run(STEPS("0") "MASTER_ADDR=a", STEPS("1") "MASTER_ADDR=b"));
    assert_true(
        is_same_run(STEPS("0") "MASTER_ADDR=a MASTER_PORT=1", STEPS("0") "MASTER_ADDR=a MASTER_PORT=2"));
    assert_true(is_same_run(STEPS("0") "MASTER_ADDR=a TORCHELASTIC_RUN_ID=x",
                            STEPS("1") "MASTER_ADDR=b TORCHELASTIC_RUN_ID=x"));
    /* where nothing else names the job, and where the step has the ranks */
    assert_false(is_same_job(STEPS("0"), STEPS("1")));
    assert_false(is_same_job(STEPS("0") "MASTER_ADDR=localhost", STEPS("1") "MASTER_ADDR=localhost"));
    assert_false(is_same_job("SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NTASKS=2 MASTER_ADDR=a",
                             "SLURM_JOB_ID=7 SLURM_STEP_ID=1 SLURM_PROCID=1 SLURM_NTASKS=2 MASTER_ADDR=a"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_launchers), cmocka_unit_test(test_in_step),
        cmocka_unit_test(test_no_rank),   cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_job),       cmocka_unit_test(test_steps_of_one_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
