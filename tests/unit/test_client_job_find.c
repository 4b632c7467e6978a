/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of one job among the processes of a machine: launchers left out, workers with their rank, what is missing; whatever the order in
 * which processes are found, and whatever stands in their environments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/jobs/job_find.h"

#define MANY 400

static struct job_process list[MANY];
static size_t n;

/* A process; variables of its environment are separated by spaces. */
static void add(pid_t pid, pid_t parent, const char *cmdline, const char *words) {
    char env[1024];
    size_t len = strlen(words);
    assert_true(n < MANY && len + 1 < sizeof env);
    memcpy(env, words, len + 1);
    for (size_t i = 0; i < len; i++)
        if (env[i] == ' ')
            env[i] = '\0';
    list[n] = (struct job_process){.pid = pid, .ppid = parent ? parent : 1, .parent = parent, .uid = 1000};
    list[n].network = 1;
    list[n].started = 1000 + n;
    list[n].cmdline = cmdline;
    rank_env_parse(&list[n].env, env, len + 1);
    n++;
}

static void put_set(struct strbuf *out, const char *name, const struct rank_set *s) {
    if (s->n == 0)
        return;
    strbuf_addf(out, " %s ", name);
    rank_set_put(s, 0, out);
}

/* "TITLE of WORLD: rank 0 = 12, launcher = 11 missing 3". */
static void put_job(struct strbuf *out, const struct job *job) {
    strbuf_addf(out, "%.*s of %d:", (int)job->title, job->name, job->world);
    for (size_t i = 0; i < job->n_members; i++) {
        const struct job_member *m = &job->members[i];
        strbuf_addf(out, "%s%s", i ? ", " : " ", job_role_name(m->role));
        if (m->rank >= 0)
            strbuf_addf(out, " %d", m->rank);
        strbuf_addf(out, " = %d", (int)m->pid);
    }
    put_set(out, "missing", &job->missing);
    put_set(out, "elsewhere", &job->elsewhere);
    if (job->unread)
        strbuf_addf(out, " unread %zu", job->unread);
    strbuf_addc(out, '\n');
}

static void expect(const char *text) {
    struct jobs jobs;
    struct strbuf out;
    strbuf_init(&out, 0);
    assert_int_equal(jobs_find(list, n, &jobs), 0);
    for (size_t i = 0; i < jobs.n; i++)
        put_job(&out, &jobs.items[i]);
    assert_string_equal(strbuf_str(&out), text);
    strbuf_fini(&out);
    jobs_fini(&jobs);
    n = 0;
}

#define AT "MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 "
#define TORCH "TORCHELASTIC_RUN_ID=none " AT

static void test_torchrun(void **state) {
    (void)state;
    add(10, 0, "python /usr/bin/torchrun --nproc-per-node 2 train.py", "HOME=/root");
    add(11, 10, "python -u dir/train.py", TORCH "RANK=0 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 WORLD_SIZE=2");
    add(12, 10, "python -u dir/train.py", TORCH "RANK=1 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 WORLD_SIZE=2");
    add(13, 11, "python -u dir/train.py", TORCH "RANK=0 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 WORLD_SIZE=2");
    add(14, 13, "python -c spawn", TORCH "RANK=0 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 WORLD_SIZE=2");
    add(20, 0, "python other.py", "HOME=/root");
    expect("train.py of 2: rank 0 = 11, rank 1 = 12, launcher = 10, worker 0 = 13, worker 0 = 14\n");

    /* the second host of two, where rank 3 has gone */
    add(10, 0, "python torchrun train.py", "");
    add(11, 10, "python train.py", "MASTER_ADDR=a RANK=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 WORLD_SIZE=4");
    expect("train.py of 4: rank 2 = 11, launcher = 10 missing 3 elsewhere 0-1\n");

    /* or it lives, and blocks whoever reads it; that of another user cannot be it */
    add(10, 0, "python torchrun train.py", "");
    add(11, 10, "python train.py", "MASTER_ADDR=a RANK=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 WORLD_SIZE=4");
    add(12, 10, "python", "");
    add(13, 0, "python", "");
    list[2].is_unread = list[3].is_unread = true;
    list[3].uid = 1001;
    expect("train.py of 4: rank 2 = 11, launcher = 10 missing 3 elsewhere 0-1 unread 1\n");

    /* two launchers of one job on one host */
    add(10, 0, "torchrun a", "");
    add(11, 0, "torchrun b", "");
    add(12, 10, "python -m pkg.train", AT "RANK=0 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 WORLD_SIZE=2");
    add(13, 11, "python -m pkg.train", AT "RANK=1 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 WORLD_SIZE=2");
    expect("pkg.train of 2: rank 0 = 12, rank 1 = 13, launcher = 10, launcher = 11\n");
}

/* RANK and WORLD_SIZE of a pod are those of its host. */
static void test_kubeflow(void **state) {
    (void)state;
    add(10, 0, "python torchrun train.py", "MASTER_ADDR=m RANK=1 WORLD_SIZE=2");
    add(11, 10, "python train.py", "MASTER_ADDR=m RANK=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 WORLD_SIZE=4");
    add(12, 10, "python train.py", "MASTER_ADDR=m RANK=3 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 WORLD_SIZE=4");
    expect("train.py of 4: rank 2 = 11, rank 3 = 12, launcher = 10 elsewhere 0-1\n");
}

/* A rank that starts another job is no launcher of its own. */
static void test_nested(void **state) {
    (void)state;
    add(11, 0, "python train.py", AT "RANK=0 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 WORLD_SIZE=1");
    add(12, 11, "python torchrun eval.py", AT "RANK=0 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 WORLD_SIZE=1");
    add(13, 12, "python eval.py",
        "MASTER_ADDR=localhost MASTER_PORT=1 RANK=0 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 WORLD_SIZE=1");
    expect("eval.py of 1: rank 0 = 13\n"
           "train.py of 1: rank 0 = 11, worker 0 = 12\n");
}

/* The first rank starts the others itself. */
static void test_rank_is_parent(void **state) {
    (void)state;
    add(11, 0, "python train.py", AT "RANK=0 LOCAL_RANK=0 WORLD_SIZE=3");
    add(12, 11, "python train.py", AT "RANK=1 LOCAL_RANK=1 WORLD_SIZE=3");
    expect("train.py of 3: rank 0 = 11, rank 1 = 12 missing 2\n");
}

static void test_slurm(void **state) {
    (void)state;
    static const char *const step = "SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_JOB_NAME=big/llama:7 "
                                    "SLURM_NTASKS=4 SLURM_TASKS_PER_NODE=2(x2) ";
    char words[256];
    add(10, 0, "python prepare.py", "SLURM_JOB_ID=7 SLURM_PROCID=0 SLURM_NTASKS=4");
    for (int i = 2; i < 4; i++) {
        (void)snprintf(words, sizeof words, "%sSLURM_PROCID=%d SLURM_LOCALID=%d", step, i, i - 2);
        add(10 + i, 0, "python train.py", words);
    }
    expect("llama_7 of 4: rank 2 = 12, rank 3 = 13 elsewhere 0-1\n");
    /* another step is another job */
    add(11, 0, "python a.py", "SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_NTASKS=2 SLURM_PROCID=0");
    add(12, 0, "python b.py", "SLURM_JOB_ID=7 SLURM_STEP_ID=1 SLURM_NTASKS=2 SLURM_PROCID=1");
    expect("a.py of 2: rank 0 = 11 elsewhere 1\nb.py of 2: rank 1 = 12 elsewhere 0\n");
}

static void test_apart(void **state) {
    (void)state;
    /* the same port in two containers; the same environment of two users */
    for (int i = 0; i < 4; i++) {
        add(10 + i, 0, "python train.py", i % 2 ? AT "RANK=1 WORLD_SIZE=2" : AT "RANK=0 WORLD_SIZE=2");
        list[n - 1].network = i / 2;
    }
    add(20, 0, "python x.py", "MASTER_ADDR=a RANK=0 WORLD_SIZE=2");
    add(21, 0, "python y.py", "MASTER_ADDR=a RANK=1 WORLD_SIZE=2");
    list[n - 1].uid = 1001;
    struct jobs jobs;
    assert_int_equal(jobs_find(list, n, &jobs), 0);
    assert_int_equal(jobs.n, 4);
    jobs_fini(&jobs);
    n = 0;
    /* where nothing names the job, its ranks have the same parent */
    add(10, 3, "python a.py", "PMI_RANK=0 PMI_SIZE=2");
    add(11, 3, "python a.py", "PMI_RANK=1 PMI_SIZE=2");
    add(12, 4, "python b.py", "PMI_RANK=0 PMI_SIZE=2");
    expect("a.py of 2: rank 0 = 10, rank 1 = 11\nb.py of 2: rank 0 = 12 elsewhere 1\n");
}

static void test_restart(void **state) {
    (void)state;
    /* torchrun has started the ranks again, at another port, and rank 1 of the first start hangs on */
    add(10, 0, "torchrun", "");
    add(12, 10, "python train.py",
        "MASTER_ADDR=a MASTER_PORT=1 RANK=1 WORLD_SIZE=2 TORCHELASTIC_RESTART_COUNT=0");
    add(13, 10, "python train.py",
        "MASTER_ADDR=a MASTER_PORT=2 RANK=0 WORLD_SIZE=2 TORCHELASTIC_RESTART_COUNT=1");
    add(14, 10, "python train.py",
        "MASTER_ADDR=a MASTER_PORT=2 RANK=1 WORLD_SIZE=2 TORCHELASTIC_RESTART_COUNT=1");
    expect("train.py of 2: rank 0 = 13, rank 1 = 14, old rank 1 = 12\n");
    /* its launcher has gone, but the run's name is the same */
    add(12, 0, "python train.py", "TORCHELASTIC_RUN_ID=x RANK=1 WORLD_SIZE=2");
    add(13, 5, "python train.py", "TORCHELASTIC_RUN_ID=x RANK=0 WORLD_SIZE=2 TORCHELASTIC_RESTART_COUNT=2");
    expect("train.py of 2: rank 0 = 13, old rank 1 = 12 elsewhere 1\n");
    /* two jobs by one name with launchers of their own stay two */
    add(12, 4, "python a.py", "TORCHELASTIC_RUN_ID=x RANK=1 WORLD_SIZE=2");
    add(13, 5, "python b.py", "TORCHELASTIC_RUN_ID=x RANK=0 WORLD_SIZE=2 TORCHELASTIC_RESTART_COUNT=2");
    expect("a.py of 2: rank 1 = 12 elsewhere 0\nb.py of 2: rank 0 = 13 elsewhere 1\n");
}

/* A process whose parent has ended, and of which another is the parent now. */
static void add_adopted(pid_t pid, pid_t ppid, const char *words) {
    add(pid, 0, "python train.py", words);
    list[n - 1].ppid = ppid;
    list[n - 1].is_adopted = true;
}

#define OF_3 "LOCAL_WORLD_SIZE=3 WORLD_SIZE=3 "
#define MPI_OF_2                                                                                             \
    "PMIX_NAMESPACE=x OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK="

/* Rank 1 was killed, and its workers live on. */
static void test_left_workers(void **state) {
    (void)state;
    for (int reaper = 0; reaper < 3; reaper++) {
        /* init, another process, and the launcher itself, as the first process of a container */
        pid_t ppid = (pid_t[]){1, 7, 10}[reaper];
        add(10, 0, "torchrun", "");
        add(11, 10, "python train.py", AT OF_3 "RANK=0 LOCAL_RANK=0");
        add(13, 10, "python train.py", AT OF_3 "RANK=2 LOCAL_RANK=2");
        add_adopted(14, ppid, AT OF_3 "RANK=1 LOCAL_RANK=1");
        add_adopted(15, ppid, AT OF_3 "RANK=1 LOCAL_RANK=1");
        add(9, 15, "python train.py", AT OF_3 "RANK=1 LOCAL_RANK=1");
        list[n - 1].started = 2000;
        expect(
            "train.py of 3: rank 0 = 11, rank 2 = 13, launcher = 10, worker 1 = 9, worker 1 = 14, worker 1 = "
            "15 missing 1\n");
    }
    /* mpirun is no Python process */
    add(11, 0, "python train.py", MPI_OF_2 "0 OMPI_COMM_WORLD_RANK=0");
    list[n - 1].ppid = 5;
    add_adopted(12, 1, MPI_OF_2 "1 OMPI_COMM_WORLD_RANK=1");
    expect("train.py of 2: rank 0 = 11, worker 1 = 12 missing 1\n");
}

/* Ranks of which people have closed the shells are ranks. */
static void test_adopted_ranks(void **state) {
    (void)state;
    /* all of them; one of them; none, in a shell each */
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3; i++) {
            char words[128];
            (void)snprintf(words, sizeof words, "%sWORLD_SIZE=3 RANK=%d", AT, i);
            add_adopted(11 + i, 1, words);
            if (round == 2 || (round == 1 && i > 0)) {
                list[n - 1].is_adopted = false;
                list[n - 1].ppid = round == 1 ? 5 : 5 + i;
            }
        }
        expect("train.py of 3: rank 0 = 11, rank 1 = 12, rank 2 = 13\n");
    }
    /* those of a launcher that was killed, with another launcher on the host: each begins a session */
    add(10, 0, "torchrun", "");
    add(11, 10, "python train.py", "MASTER_ADDR=a RANK=0 WORLD_SIZE=2 LOCAL_RANK=0");
    add(12, 0, "python train.py", "MASTER_ADDR=a RANK=1 WORLD_SIZE=2 LOCAL_RANK=0");
    expect("train.py of 2: rank 0 = 11, rank 1 = 12, launcher = 10\n");
    /* two launchers, and whose the adopted one was is not known */
    add(10, 0, "torchrun", "");
    add(20, 0, "torchrun", "");
    add(11, 10, "python train.py", "MASTER_ADDR=a RANK=0 WORLD_SIZE=3 LOCAL_RANK=0");
    add(21, 20, "python train.py", "MASTER_ADDR=a RANK=1 WORLD_SIZE=3 LOCAL_RANK=0");
    add_adopted(22, 1, "MASTER_ADDR=a RANK=2 WORLD_SIZE=3 LOCAL_RANK=0");
    expect("train.py of 3: rank 0 = 11, rank 1 = 21, rank 2 = 22, launcher = 10, launcher = 20\n");
}

static void test_double(void **state) {
    (void)state;
    add(11, 0, "python train.py", AT "RANK=0 WORLD_SIZE=2"); /* the oldest */
    add(9, 0, "python train.py", AT "RANK=0 WORLD_SIZE=2");
    expect("train.py of 2: rank 0 = 11, second claim 0 = 9 missing 1\n");
}

/* Processes that are each other's parents, ranks of a million, names out of nothing. */
static void test_strangers(void **state) {
    (void)state;
    add(1, 2, "", AT "RANK=0 WORLD_SIZE=1048576 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1048576");
    add(2, 1, NULL, AT "RANK=0 WORLD_SIZE=1048576 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1048576");
    add(3, 3, "python -c print(1)", AT "RANK=1048575 WORLD_SIZE=1048576");
    add(4, 999, "python -X dev -W error ../$(rm)", AT "RANK=7 WORLD_SIZE=1048576");
    struct jobs jobs;
    struct err e;
    assert_int_equal(jobs_find(list, n, &jobs), 0);
    assert_int_equal(jobs.n, 1);
    assert_true(rank_set_count(&jobs.items[0].here) + rank_set_count(&jobs.items[0].missing) == 1048576 ||
                rank_set_count(&jobs.items[0].here) == 2);
    assert_null(jobs_choose(&jobs, "99999999999999999999", &e));
    assert_null(jobs_choose(&jobs, "0", &e));
    jobs_fini(&jobs);
    n = 0;
    add(4, 999, "python -X dev -W error ../$(rm)", AT "RANK=0 WORLD_SIZE=1");
    expect("__rm_ of 1: rank 0 = 4\n");
    add(4, 999, "python -c train.py", AT "RANK=0 WORLD_SIZE=1");
    expect("python of 1: rank 0 = 4\n");
    expect("");
}

static void refuses(const struct jobs *jobs, const char *text, const char *words) {
    struct err e;
    assert_null(jobs_choose(jobs, text, &e));
    assert_int_equal(e.code, ERR_ATTACH);
    if (!strstr(e.text, words))
        fail_msg("'%s' is not in '%s'", words, e.text);
}

static void test_choose(void **state) {
    (void)state;
    struct jobs jobs;
    struct err e;
    assert_int_equal(jobs_find(list, 0, &jobs), 0);
    refuses(&jobs, "", "no job with ranks was found");
    jobs_fini(&jobs);
    add(10, 0, "torchrun", "");
    add(11, 10, "python train.py", AT "RANK=0 LOCAL_RANK=0 WORLD_SIZE=2");
    add(12, 0, "python train.py", "MASTER_ADDR=b RANK=1 WORLD_SIZE=2");
    add(13, 0, "python alone.py", "MASTER_ADDR=c RANK=0 WORLD_SIZE=1");
    assert_int_equal(jobs_find(list, n, &jobs), 0);
    assert_int_equal(jobs.n, 3);
    refuses(&jobs, "", "3 jobs have ranks on this machine: give one of alone.py-");
    refuses(&jobs, "train.py", "2 jobs named 'train.py' have ranks");
    refuses(&jobs, "14", "process 14 is not a rank");
    refuses(&jobs, "alone.pi", "no job is named 'alone.pi'");
    for (size_t i = 0; i < jobs.n; i++) {
        const struct job *job = &jobs.items[i];
        assert_ptr_equal(jobs_choose(&jobs, job->name, &e), job);
        assert_ptr_equal(jobs_choose(&jobs, job->name + job->title + 1, &e), job);
        assert_int_equal(strspn(job->name + job->title + 1, "abcdef0123456789"), 4);
        assert_true(job->name[job->title + 1] >= 'a');
    }
    assert_ptr_equal(jobs_choose(&jobs, "alone.py", &e), &jobs.items[0]);
    assert_int_equal(jobs_choose(&jobs, "10", &e)->members[0].pid, 11); /* by its launcher */
    jobs_fini(&jobs);
    n = 2; /* the only one with several ranks */
    add(13, 0, "python alone.py", "MASTER_ADDR=c RANK=0 WORLD_SIZE=1");
    assert_int_equal(jobs_find(list, n, &jobs), 0);
    assert_int_equal(jobs_choose(&jobs, "", &e)->members[0].pid, 11);
    jobs_fini(&jobs);
    n = 0;
}

static void check_job(const struct job *job, bool *seen) {
    struct rank_set all = {.n = 0};
    for (size_t i = 0; i < job->n_members; i++) {
        const struct job_member *m = &job->members[i];
        assert_true(m->process < n && list[m->process].pid == m->pid);
        assert_false(seen[m->process]);
        seen[m->process] = true;
        assert_int_equal(m->role == JOB_RANK, i < job->n_ranks);
        assert_true(i == 0 || i >= job->n_ranks || job->members[i - 1].rank < m->rank);
        if (m->role == JOB_RANK)
            assert_true(rank_set_has(&job->here, m->rank));
        assert_int_equal(list[m->process].uid, job->uid);
    }
    int32_t sum =
        rank_set_count(&job->here) + rank_set_count(&job->missing) + rank_set_count(&job->elsewhere);
    assert_int_equal(rank_set_count(&job->here), (int32_t)job->n_ranks);
    assert_int_equal(rank_set_join(&all, &job->here), 0);
    assert_int_equal(rank_set_join(&all, &job->missing), 0);
    assert_int_equal(rank_set_join(&all, &job->elsewhere), 0);
    if (job->world)
        assert_true(sum == job->world && rank_set_count(&all) == job->world);
    rank_set_fini(&all);
    assert_int_equal(strspn(job->name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"),
                     strlen(job->name));
}

/* Any forest of processes: each is in one job at most, ranks add up, and the order does not matter. */
static void test_any(void **state) {
    (void)state;
    srand(11);
    for (int round = 0; round < 2000; round++) {
        struct jobs jobs, again;
        struct strbuf a, b;
        bool seen[MANY] = {false};
        int many = rand() % 24;
        for (int i = 0; i < many; i++) {
            char words[200];
            int size = 1 + rand() % 4;
            (void)snprintf(words, sizeof words,
                           "%s%s%sWORLD_SIZE=%d RANK=%d %sLOCAL_WORLD_SIZE=%d TORCHELASTIC_RESTART_COUNT=%d",
                           rand() % 2 ? "MASTER_ADDR=a " : "", rand() % 3 ? "" : "TORCHELASTIC_RUN_ID=x ",
                           rand() % 5 ? "" : "NO", size, rand() % size, rand() % 2 ? "" : "LOCAL_RANK=0 ",
                           1 + rand() % size, rand() % 2);
            add(100 + i, rand() % 2 ? 100 + rand() % many : 0, "python t.py", words);
            list[n - 1].uid = rand() % 8 == 0;
            list[n - 1].is_adopted = rand() % 4 == 0;
        }
        strbuf_init(&a, 0);
        strbuf_init(&b, 0);
        assert_int_equal(jobs_find(list, n, &jobs), 0);
        for (size_t i = 0; i < jobs.n; i++) {
            check_job(&jobs.items[i], seen);
            put_job(&a, &jobs.items[i]);
        }
        for (size_t i = 0; i < n; i++)
            assert_true(seen[i] || !list[i].env.source);
        for (size_t i = n; i > 1; i--) {
            size_t k = (size_t)rand() % i;
            struct job_process other = list[k];
            list[k] = list[i - 1];
            list[i - 1] = other;
        }
        assert_int_equal(jobs_find(list, n, &again), 0);
        for (size_t i = 0; i < again.n; i++)
            put_job(&b, &again.items[i]);
        assert_string_equal(strbuf_str(&a), strbuf_str(&b));
        strbuf_fini(&a);
        strbuf_fini(&b);
        jobs_fini(&jobs);
        jobs_fini(&again);
        n = 0;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_torchrun),      cmocka_unit_test(test_kubeflow),
        cmocka_unit_test(test_nested),        cmocka_unit_test(test_rank_is_parent),
        cmocka_unit_test(test_slurm),         cmocka_unit_test(test_apart),
        cmocka_unit_test(test_restart),       cmocka_unit_test(test_left_workers),
        cmocka_unit_test(test_adopted_ranks), cmocka_unit_test(test_double),
        cmocka_unit_test(test_strangers),     cmocka_unit_test(test_choose),
        cmocka_unit_test(test_any),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
