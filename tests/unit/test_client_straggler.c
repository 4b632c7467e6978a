/* SPDX-License-Identifier: Apache-2.0 */
/* Who makes the others wait, in made-up jobs in which it is known; and which step of a rank is which of another. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "client/fleet/step_align.h"
#include "client/fleet/straggler.h"

#define RANKS 64
#define STEPS 512
#define BUCKETS 6
#define COLLECTIVES (STEPS * (BUCKETS + 1))

/* A job of DistributedDataParallel: buckets are reduced while the backward pass goes on, by two threads; then the loss, for which a rank waits. */
struct job {
    uint32_t ranks, hosts, buckets;
    int steps;
    double data, forward, backward, optimizer; /* seconds */
    double noise;                              /* standard deviation of each part, of its duration */
    double transfer, jitter;                   /* of a collective; of its ends */
    bool blocking;                             /* a rank waits for each bucket */
    bool has_loss;
    bool is_traced; /* forward and backward are known, */
    int traced;     /* in each step of so many; 0: in all */
    /* faults */
    int from, to;               /* step with which they begin; with which they end, 0: with none */
    int64_t slow_from, slow_to; /* ranks */
    double slow[3];             /* times data, forward, backward */
    double rotating;            /* one rank in each step: its backward pass takes so much longer */
    double pause;               /* of one rank, now and then: seconds */
};

static struct straggler_rank ranks[RANKS];
static struct straggler_step steps[RANKS][STEPS];
static struct straggler_collective collectives[RANKS][COLLECTIVES];
static double own_ms[RANKS]; /* mean of its own time, as it is */
static struct straggler_verdict verdicts[STRAGGLER_ROLES];
static size_t n_verdicts;

static double uniform(void) { return (rand() + 0.5) / (RAND_MAX + 1.0); }

static double around(double mean, double part) {
    double z = sqrt(-2 * log(uniform())) * cos(6.283185307 * uniform());
    return fmax(mean * (1 + part * z), mean * 0.2);
}

static void add(uint32_t r, uint32_t op, double begin, double end) {
    assert_true(ranks[r].n_collectives < COLLECTIVES);
    collectives[r][ranks[r].n_collectives++] = (struct straggler_collective){begin, end, op};
}

/* One collective, or one bucket of it: begins at these times; ends[] gets its ends. */
static void meet(const struct job *j, uint32_t first, uint32_t op, const double *begins, double *ends) {
    double last = 0;
    for (uint32_t r = 0; r < j->ranks; r++)
        last = fmax(last, begins[r]);
    for (uint32_t r = 0; r < j->ranks; r++) {
        ends[r] = last + j->transfer + uniform() * j->jitter;
        add(first + r, op, begins[r], ends[r]);
    }
}

/* Ranks from `first` on are this job's. */
static void run(const struct job *j, uint32_t first) {
    double at[RANKS], begins[RANKS], ends[RANKS], began[RANKS];
    double free_at[RANKS][2];
    for (uint32_t r = 0; r < j->ranks; r++) {
        struct straggler_rank *to = &ranks[first + r];
        *to = (struct straggler_rank){.host = (int32_t)(r * j->hosts / j->ranks),
                                      .steps = steps[first + r],
                                      .collectives = collectives[first + r]};
        at[r] = 1000;
        own_ms[first + r] = 0;
    }
    for (int i = 0; i < j->steps; i++) {
        double parts[RANKS][STRAGGLER_PART_COUNT], due[RANKS], done[RANKS], own[RANKS];
        uint32_t turn = (uint32_t)(rand() % (int)j->ranks);
        for (uint32_t r = 0; r < j->ranks; r++) {
            bool slow = i >= j->from && (!j->to || i < j->to) && r >= j->slow_from && r < j->slow_to;
            began[r] = at[r];
            parts[r][STRAGGLER_DATA] = around(j->data, j->noise) * (slow ? j->slow[0] : 1);
            parts[r][STRAGGLER_FORWARD] = around(j->forward, j->noise) * (slow ? j->slow[1] : 1);
            parts[r][STRAGGLER_BACKWARD] =
                around(j->backward, j->noise) * (slow ? j->slow[2] : 1) + (r == turn ? j->rotating : 0);
            parts[r][STRAGGLER_OPTIMIZER] = around(j->optimizer, j->noise);
            if (j->pause > 0 && r == 2 && rand() % 40 == 0)
                parts[r][STRAGGLER_FORWARD] += j->pause;
            own[r] = parts[r][STRAGGLER_DATA] + parts[r][STRAGGLER_FORWARD] + parts[r][STRAGGLER_BACKWARD] +
                     parts[r][STRAGGLER_OPTIMIZER];
            due[r] = at[r] + parts[r][STRAGGLER_DATA] + parts[r][STRAGGLER_FORWARD];
            done[r] = due[r];
            free_at[r][0] = free_at[r][1] = 0;
        }
        for (uint32_t b = 0; b < j->buckets; b++) {
            for (uint32_t r = 0; r < j->ranks; r++) {
                due[r] += parts[r][STRAGGLER_BACKWARD] / j->buckets;
                begins[r] = fmax(due[r], fmin(free_at[r][0], free_at[r][1]));
            }
            meet(j, first, 0, begins, ends);
            for (uint32_t r = 0; r < j->ranks; r++) {
                free_at[r][free_at[r][1] < free_at[r][0]] = ends[r];
                done[r] = ends[r];
                if (j->blocking)
                    due[r] = ends[r];
            }
        }
        for (uint32_t r = 0; r < j->ranks; r++) {
            parts[r][STRAGGLER_BACKWARD] =
                done[r] - began[r] - parts[r][STRAGGLER_DATA] - parts[r][STRAGGLER_FORWARD];
            at[r] = done[r] + parts[r][STRAGGLER_OPTIMIZER];
            parts[r][STRAGGLER_OTHER] = parts[r][STRAGGLER_GC] = 0;
            struct straggler_step *s = &steps[first + r][ranks[first + r].n_steps++];
            *s = (struct straggler_step){
                .step = i + 100 * (int64_t)r, .at = at[r], .ms = (float)((at[r] - began[r]) * 1e3)};
            for (int p = 0; p < STRAGGLER_PART_COUNT; p++)
                s->parts[p] =
                    (!j->is_traced || (j->traced && i % j->traced)) &&
                            (p == STRAGGLER_FORWARD || p == STRAGGLER_BACKWARD || p == STRAGGLER_OTHER)
                        ? NAN
                        : (float)(parts[r][p] * 1e3);
            own_ms[first + r] += (own[r] + j->transfer * (j->blocking ? j->buckets : 1)) * 1e3 / j->steps;
        }
        if (j->has_loss) {
            for (uint32_t r = 0; r < j->ranks; r++)
                begins[r] = at[r];
            meet(j, first, 1, begins, ends);
            memcpy(at, ends, sizeof at);
        }
    }
    for (uint32_t r = 0; r < j->ranks; r++)
        ranks[first + r].n_steps = (size_t)j->steps;
}

static void judge(size_t n) { assert_int_equal(straggler_find(ranks, n, 0, verdicts, &n_verdicts), 0); }

/* Jobs of all kinds without a fault. */
static struct job any_job(unsigned seed) {
    static const uint32_t worlds[] = {2, 4, 8, 16};
    srand(seed);
    struct job j = {.ranks = worlds[rand() % 4],
                    .hosts = 1,
                    .buckets = 1 + (uint32_t)rand() % BUCKETS,
                    .steps = 300 + rand() % 200,
                    .slow = {1, 1, 1}};
    double step = 0.01 + 0.1 * uniform();
    j.hosts = j.ranks > 4 ? 1 + (uint32_t)rand() % 2 : 1;
    j.data = step * 0.1 * uniform();
    j.forward = step * 0.3;
    j.backward = step * 0.5;
    j.optimizer = step * 0.05;
    j.noise = 0.002 + 0.03 * uniform();
    j.transfer = 2e-4;
    j.jitter = 1e-4;
    j.blocking = rand() % 3 == 0;
    j.has_loss = rand() % 2;
    j.is_traced = rand() % 2;
    return j;
}

static void nobody_is_named_in_a_healthy_job(void **state) {
    (void)state;
    for (unsigned seed = 0; seed < 150; seed++) {
        struct job j = any_job(seed);
        j.noise *= seed % 3 ? 1 : 3;
        j.pause = seed % 5 == 0 ? 0.5 : 0;
        run(&j, 0);
        judge(j.ranks);
        assert_int_equal(n_verdicts, 0);
        for (uint32_t r = 0; r < j.ranks; r++) {
            assert_int_equal(ranks[r].role, 0);
            assert_int_equal(ranks[r].shift, -100 * (int64_t)r);
        }
    }
}

static void check_named(const struct job *j, enum straggler_part part) {
    assert_int_equal(n_verdicts, 1);
    assert_int_equal(verdicts[0].code, STRAGGLER_SLOW);
    for (uint32_t r = 0; r < j->ranks; r++)
        assert_int_equal(ranks[r].is_named, r >= j->slow_from && r < j->slow_to);
    assert_true(verdicts[0].last >= 0.6 && verdicts[0].own_ms > verdicts[0].others_ms);
    assert_true(verdicts[0].has_part);
    assert_int_equal(verdicts[0].part, part);
    for (uint32_t r = 0; r < j->ranks; r++)
        assert_true(fabs(ranks[r].own_ms - own_ms[r]) < 0.03 * own_ms[r] + 0.4);
}

/* +5 % of its own time, in the forward pass; +20 % of the backward pass alone; the data. */
static void a_slow_rank_is_named(void **state) {
    (void)state;
    for (unsigned seed = 0; seed < 150; seed++) {
        struct job j = any_job(seed + 1000);
        double own = j.data + j.forward + j.backward + j.optimizer;
        enum straggler_part part = STRAGGLER_FORWARD;
        j.slow_from = rand() % (int)j.ranks;
        j.slow_to = j.slow_from + 1;
        /* with more noise than that the next one is the last too often */
        j.noise = fmin(j.noise, 0.02);
        if (seed % 3 == 0)
            j.slow[1] = 1 + 0.06 * own / j.forward;
        else if (seed % 3 == 1) {
            j.slow[2] = 1.2;
            part = STRAGGLER_BACKWARD;
        } else {
            j.data = 0.1 * own;
            j.slow[0] = 1.8;
            part = STRAGGLER_DATA;
        }
        run(&j, 0);
        judge(j.ranks);
        check_named(&j, j.is_traced || part == STRAGGLER_DATA ? part : STRAGGLER_COMPUTE);
        assert_int_equal(verdicts[0].host, -1);
    }
}

/* Rank 3 of eight takes `more` of its own time longer in the forward pass. */
static struct job slow_forward(unsigned seed, double noise, double more) {
    struct job j = any_job(seed);
    j.ranks = 8;
    j.slow_from = 3;
    j.slow_to = 4;
    j.noise = noise;
    j.data = 0.01;
    j.forward = 0.03;
    j.backward = 0.05;
    j.slow[1] = 1 + more * (j.data + j.forward + j.backward + j.optimizer) / j.forward;
    return j;
}

/* A fault that has just begun: the steps before it do not hide the part. */
static void the_part_is_known_as_soon_as_the_rank(void **state) {
    (void)state;
    for (unsigned seed = 0; seed < 100; seed++) {
        struct job j = slow_forward(seed + 8000, 0.02, 0.08);
        j.from = 36;
        j.steps = 136;
        run(&j, 0);
        judge(j.ranks);
        assert_int_equal(n_verdicts, 1);
        assert_true(ranks[3].is_named && verdicts[0].has_part);
        assert_int_equal(verdicts[0].part, j.is_traced ? STRAGGLER_FORWARD : STRAGGLER_COMPUTE);
    }
}

/* It has just become as fast as the others: what was a little longer, too, is not the part. */
static void the_part_is_that_of_the_time_in_which_it_was_slow(void **state) {
    (void)state;
    for (unsigned seed = 0; seed < 100; seed++) {
        struct job j = slow_forward(seed + 8500, 0.005, 0.15);
        j.is_traced = false;
        j.slow[0] = 1.05;
        j.steps = 300;
        j.to = 252;
        run(&j, 0);
        judge(j.ranks);
        assert_int_equal(n_verdicts, 1);
        assert_true(ranks[3].is_named && verdicts[0].has_part);
        assert_int_equal(verdicts[0].part, STRAGGLER_COMPUTE);
    }
}

/* Known in few steps of a busy machine, parts differ by chance: none is better than a wrong one. */
static void no_other_part_is_named_by_chance(void **state) {
    (void)state;
    int known = 0;
    for (unsigned seed = 0; seed < 400; seed++) {
        struct job j = slow_forward(seed + 9000, 0.08, 0.05);
        j.is_traced = true;
        j.traced = 20;
        run(&j, 0);
        judge(j.ranks);
        for (size_t i = 0; i < n_verdicts; i++) {
            known += verdicts[i].has_part;
            assert_true(!verdicts[i].has_part || verdicts[i].part == STRAGGLER_FORWARD ||
                        verdicts[i].part == STRAGGLER_COMPUTE);
        }
    }
    assert_true(known >= 100);
}

static void a_slow_host_is_named(void **state) {
    (void)state;
    for (unsigned seed = 0; seed < 50; seed++) {
        struct job j = any_job(seed + 2000);
        j.ranks = 16;
        j.hosts = 2 + (uint32_t)seed % 3;
        j.is_traced = true;
        j.noise = 0.01;
        while ((j.slow_to - 1) * j.hosts / j.ranks == 0)
            j.slow_to++;
        j.slow_to--;
        j.slow[1] = j.slow[2] = 1.1;
        run(&j, 0);
        judge(j.ranks);
        assert_int_equal(n_verdicts, 1);
        assert_int_equal(verdicts[0].host, 0);
        for (uint32_t r = 0; r < j.ranks; r++)
            assert_int_equal(ranks[r].is_named, r < j.slow_to);
    }
}

static void where_the_last_one_changes_it_is_an_imbalance(void **state) {
    (void)state;
    for (unsigned seed = 0; seed < 100; seed++) {
        struct job j = any_job(seed + 3000);
        if (j.ranks < 4)
            continue;
        j.rotating = 0.2 * (j.data + j.forward + j.backward);
        run(&j, 0);
        judge(j.ranks);
        assert_int_equal(n_verdicts, 1);
        assert_int_equal(verdicts[0].code, STRAGGLER_IMBALANCE);
        for (uint32_t r = 0; r < j.ranks; r++)
            assert_false(ranks[r].is_named);
    }
}

/* All are slow alike; there are too few steps; collectives of some are not known. */
static void what_cannot_be_known_is_not_said(void **state) {
    (void)state;
    struct job j = any_job(5);
    j.slow_to = j.ranks = 8;
    j.slow[2] = 2;
    run(&j, 0);
    judge(j.ranks);
    assert_int_equal(n_verdicts, 0);

    j.slow_from = 3;
    j.slow_to = 4;
    j.noise = 0.01;
    j.steps = 60;
    run(&j, 0);
    judge(j.ranks);
    assert_int_equal(n_verdicts, (size_t)(60 * (j.data + j.forward + j.backward) > 10));
    assert_true(ranks[3].own_ms > 1.2 * ranks[2].own_ms && ranks[3].lag_ms > 0);

    j.steps = 400;
    run(&j, 0);
    ranks[5].n_collectives = 0;
    judge(j.ranks);
    assert_int_equal(n_verdicts, 0);
    assert_true(isnan(ranks[3].own_ms));

    /* the clocks of two hosts differ by more than the delay */
    j.hosts = 2;
    run(&j, 0);
    assert_int_equal(straggler_find(ranks, j.ranks, 10, verdicts, &n_verdicts), 0);
    assert_int_equal(n_verdicts, 0);
}

/* What is judged does not depend on what the clock of a host shows. */
static void clocks_are_corrected(void **state) {
    (void)state;
    for (int ahead = -3; ahead <= 3; ahead += 6) {
        double before[RANKS];
        struct job j = any_job(1);
        j.ranks = 8;
        j.hosts = 2;
        j.slow_from = 6;
        j.slow_to = 7;
        j.slow[1] = 1.3;
        run(&j, 0);
        judge(j.ranks);
        check_named(&j, j.is_traced ? STRAGGLER_FORWARD : STRAGGLER_COMPUTE);
        for (uint32_t r = 0; r < j.ranks; r++)
            before[r] = ranks[r].own_ms;
        for (uint32_t r = 4; r < j.ranks; r++) {
            for (size_t i = 0; i < ranks[r].n_steps; i++)
                steps[r][i].at += ahead;
            for (size_t i = 0; i < ranks[r].n_collectives; i++) {
                collectives[r][i].begin += ahead;
                collectives[r][i].end += ahead;
            }
            ranks[r].ahead_s = ahead;
        }
        judge(j.ranks);
        check_named(&j, j.is_traced ? STRAGGLER_FORWARD : STRAGGLER_COMPUTE);
        for (uint32_t r = 0; r < j.ranks; r++) {
            assert_int_equal(ranks[r].shift, -100 * (int64_t)r);
            assert_true(fabs(ranks[r].own_ms - before[r]) < 1e-3);
        }
    }
}

/* A job of long steps that has just begun: nothing is judged before there are five windows of five steps. */
static void few_long_steps_are_not_judged(void **state) {
    (void)state;
    for (int n = 9; n < 80; n++)
        for (double step = 0.5; step < 40; step *= 1.7) {
            struct job j = any_job((unsigned)n);
            j.ranks = 2;
            j.hosts = j.buckets = 1;
            j.steps = n;
            j.data = j.forward = j.backward = j.optimizer = step / 4;
            j.noise = 0.002;
            j.slow_from = 1;
            j.slow_to = 2;
            j.slow[1] = 1.5;
            run(&j, 0);
            judge(j.ranks);
            assert_true(n_verdicts == 0 || verdicts[0].steps <= (size_t)n);
            assert_true(n_verdicts == 0 || n > 5 * 5);
            assert_true(n_verdicts == 1 || n < 60);
        }
}

/* Two ranks, and windows of five steps: by chance one is the last in three of them half of the time. */
static struct job pair_of_long_steps(unsigned seed, double noise) {
    srand(seed);
    return (struct job){.ranks = 2,
                        .hosts = 1,
                        .buckets = 1,
                        .steps = 60,
                        .data = 0.01,
                        .forward = 2,
                        .backward = 0.02,
                        .optimizer = 0.01,
                        .noise = noise,
                        .transfer = 2e-4,
                        .jitter = 1e-4,
                        .is_traced = true,
                        .slow = {1, 1, 1}};
}

static void chance_names_nobody_of_two(void **state) {
    (void)state;
    for (unsigned seed = 0; seed < 100; seed++) {
        struct job j = pair_of_long_steps(seed, 0.1);
        run(&j, 0);
        judge(2);
        assert_int_equal(ranks[0].role, 0);
        assert_false(ranks[0].is_named || ranks[1].is_named);
        assert_true(n_verdicts == 0 || verdicts[0].code == STRAGGLER_IMBALANCE);
    }
}

static void the_slow_one_of_two_is_named(void **state) {
    (void)state;
    for (unsigned seed = 0; seed < 100; seed++) {
        struct job j = pair_of_long_steps(seed, 0.01);
        j.slow_from = seed % 2;
        j.slow_to = j.slow_from + 1;
        j.slow[1] = 1.05;
        run(&j, 0);
        judge(2);
        check_named(&j, STRAGGLER_FORWARD);
    }
}

static void roles_are_compared_with_themselves(void **state) {
    (void)state;
    struct job train = any_job(7), other = any_job(8);
    train.ranks = other.ranks = 4;
    train.hosts = other.hosts = 1;
    train.steps = other.steps = 400;
    train.noise = other.noise = 0.01;
    train.data = train.forward = train.backward = train.optimizer = 0.01;
    other.data = other.forward = other.backward = other.optimizer = 0.0163;
    other.slow_from = 2;
    other.slow_to = 3;
    other.slow[2] = 1.5;
    run(&train, 0);
    run(&other, 4);
    ranks[8] = (struct straggler_rank){.steps = steps[8], .collectives = collectives[8], .n_steps = 0};
    judge(9);
    for (uint32_t r = 0; r < 8; r++) {
        assert_int_equal(ranks[r].role, r / 4);
        assert_int_equal(ranks[r].is_named, r == 6);
    }
    assert_int_equal(ranks[8].role, -1);
    assert_int_equal(n_verdicts, 1);
    assert_int_equal(verdicts[0].role, 1);
}

/* Thousands of ranks of which none fits another do not keep whoever asks for minutes; those that fit are found. */
static void ranks_without_a_role(void **state) {
    (void)state;
    enum { MANY = 4096, FEW_STEPS = 64 };
    struct straggler_rank *many = calloc(MANY, sizeof *many);
    struct straggler_step *of = calloc((size_t)MANY * FEW_STEPS, sizeof *of);
    assert_non_null(many);
    assert_non_null(of);
    srand(3);
    for (size_t r = 0; r < MANY; r++) {
        double at = 1000, period = 0.05 + uniform();
        many[r] = (struct straggler_rank){.steps = of + r * FEW_STEPS, .n_steps = FEW_STEPS};
        for (int i = 0; i < FEW_STEPS; i++)
            of[r * FEW_STEPS + (size_t)i] = (struct straggler_step){
                .step = i,
                .at = r == 2 ? of[FEW_STEPS + i].at : (at += period * (0.3 + 2 * uniform())),
                .ms = 1};
    }
    uint64_t began = clock_process_cpu_ns();
    assert_int_equal(straggler_find(many, MANY, 0, verdicts, &n_verdicts), 0);
    assert_true(clock_process_cpu_ns() - began < 20 * CLOCK_NS_PER_S);
    assert_int_equal(many[1].role, 0);
    assert_int_equal(many[2].role, 0);
    assert_int_equal(many[MANY - 1].role, -1);
    assert_int_equal(n_verdicts, 0);
    free(many);
    free(of);
}

static void steps_are_aligned(void **state) {
    struct step_end a[200], b[200];
    int64_t shift;
    (void)state;
    for (unsigned seed = 0; seed < 200; seed++) {
        size_t n_a = 0, n_b = 0;
        srand(seed);
        double period = 0.02 + uniform(), at = 1e9;
        int64_t ahead = rand() % 100000;
        bool regular = seed % 2;
        for (int i = 0; i < 150; i++) {
            at += period * (regular ? 1 : 0.3 + 3 * uniform());
            /* rows may be missing, and those of one begin later */
            if (rand() % 20)
                a[n_a++] = (struct step_end){i, at + 0.1 * period * uniform()};
            if (i > 40 && rand() % 20)
                b[n_b++] = (struct step_end){i + ahead, at + 0.1 * period * uniform()};
        }
        assert_true(step_align_find(a, n_a, b, n_b, &shift));
        assert_int_equal(shift, ahead);
        assert_true(step_align_find(b, n_b, a, n_a, &shift));
        assert_int_equal(shift, -ahead);
        /* half a step apart, and of another cadence */
        for (size_t i = 0; i < n_b; i++)
            b[i].at += regular ? period / 2 : 0;
        assert_true(!regular || !step_align_find(a, n_a, b, n_b, &shift));
        for (size_t i = 0; i < n_b; i++)
            b[i].at = 1e9 + (double)i * period * 1.37;
        assert_false(step_align_find(a, n_a, b, n_b, &shift));
        assert_false(step_align_find(a, STEP_ALIGN_LEAST - 1, b, n_b, &shift));
        assert_false(step_align_find(a, n_a, b, 0, &shift));
    }
}

/* Whatever a relay sends: nothing is read beyond, and numbers are numbers. */
static void odd_input(void **state) {
    static const double odd[] = {0, 1, 1e300, -1e300, 1.5, 1000, 1000.001, 1001};
    (void)state;
    for (unsigned seed = 0; seed < 60; seed++) {
        struct job j = any_job(seed + 4000);
        run(&j, 0);
        for (int i = 0; i < 500; i++) {
            uint32_t r = (uint32_t)rand() % j.ranks;
            struct straggler_step *s = &steps[r][rand() % j.steps];
            struct straggler_collective *c = &collectives[r][(size_t)rand() % ranks[r].n_collectives];
            switch (rand() % 4) {
            case 0:
                s->ms = (float)odd[rand() % 8];
                break;
            case 1:
                s->at = odd[rand() % 8];
                break;
            case 2:
                c->begin = odd[rand() % 8];
                break;
            default:
                c->end = odd[rand() % 8];
            }
        }
        judge(j.ranks);
        assert_true(n_verdicts <= STRAGGLER_ROLES);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_is_named_in_a_healthy_job),
        cmocka_unit_test(a_slow_rank_is_named),
        cmocka_unit_test(the_part_is_known_as_soon_as_the_rank),
        cmocka_unit_test(the_part_is_that_of_the_time_in_which_it_was_slow),
        cmocka_unit_test(no_other_part_is_named_by_chance),
        cmocka_unit_test(a_slow_host_is_named),
        cmocka_unit_test(where_the_last_one_changes_it_is_an_imbalance),
        cmocka_unit_test(what_cannot_be_known_is_not_said),
        cmocka_unit_test(clocks_are_corrected),
        cmocka_unit_test(few_long_steps_are_not_judged),
        cmocka_unit_test(chance_names_nobody_of_two),
        cmocka_unit_test(the_slow_one_of_two_is_named),
        cmocka_unit_test(roles_are_compared_with_themselves),
        cmocka_unit_test(steps_are_aligned),
        cmocka_unit_test(ranks_without_a_role),
        cmocka_unit_test(odd_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
