/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is the culprit of a job that hangs. Known cases; the same by an oracle that has every pair of ranks as an edge; and jobs that are
 * simulated: ranks run one program over many groups until nothing moves, and those that were stopped have to be the ones that are named.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "client/fleet/hang.h"

#define RANKS 24
#define GROUPS 24

static enum hang_answer answers[RANKS];
static struct hang_member members[GROUPS][RANKS];
static struct hang_group groups[GROUPS];
static size_t n_groups;
static int32_t n_ranks;

static void begin(int32_t ranks) {
    n_ranks = ranks;
    n_groups = 0;
    memset(answers, 0, sizeof answers);
    memset(groups, 0, sizeof groups);
}

static void add_member(size_t g, int32_t rank, int64_t enqueued, int64_t completed) {
    members[g][groups[g].n++] = (struct hang_member){rank, true, enqueued, completed, 0};
    groups[g].members = members[g];
    n_groups = g >= n_groups ? g + 1 : n_groups;
}

/* A group: rank, enqueued, completed, rank, ... -1. */
static void add(const int *numbers) {
    size_t g = n_groups;
    for (; numbers[0] >= 0; numbers += 3)
        add_member(g, numbers[0], numbers[1], numbers[2]);
}

/* The culprits, such as "3 missing, 5 stuck"; "alike" if nobody is accused and some stand alike. */
static void expect(const char *text) {
    static const char *const roles[] = {"out",   "done",     "waits",  "alike", "missing",
                                        "stuck", "mismatch", "silent", "gone"};
    struct hang h;
    char found[512] = "";
    assert_int_equal(hang_find(answers, n_ranks, groups, n_groups, &h), 0);
    for (size_t i = 0; i < h.n_culprits; i++) {
        size_t at = strlen(found);
        (void)snprintf(found + at, sizeof found - at, "%s%d %s%s", at ? ", " : "", (int)h.culprits[i].rank,
                       roles[h.culprits[i].role], h.culprits[i].deadlock ? " deadlock" : "");
    }
    if (h.alike)
        (void)strcat(found, found[0] ? ", alike" : "alike");
    assert_string_equal(found, text);
    hang_fini(&h);
}

static void test_cases(void **state) {
    (void)state;
    begin(4); /* nothing hangs */
    add((int[]){0, 5, 5, 1, 5, 5, 2, 5, 5, 3, 5, 5, -1});
    expect("");
    begin(4); /* the reported one: a waiter has 4 of 3, the missing 3 of 3 */
    add((int[]){0, 4, 3, 1, 4, 3, 2, 4, 3, 3, 3, 3, -1});
    expect("3 missing");
    begin(4); /* entered by all, and one does not finish what others have finished */
    add((int[]){0, 6, 5, 1, 6, 5, 2, 5, 4, 3, 6, 5, -1});
    expect("2 stuck");
    members[0][0].enqueued = 5; /* and one has not entered the next */
    expect("0 missing, 2 stuck");
    begin(3);
    answers[1] = HANG_SILENT;
    add((int[]){0, 4, 3, 1, 0, 0, 2, 4, 3, -1});
    expect("1 silent");
    answers[1] = HANG_GONE;
    expect("1 gone");
    begin(3); /* nobody waits: the one without an answer is not accused */
    answers[1] = HANG_SILENT;
    add((int[]){0, 3, 3, 1, 0, 0, 2, 3, 3, -1});
    expect("");
    begin(3); /* all entered */
    add((int[]){0, 4, 3, 1, 4, 3, 2, 4, 3, -1});
    expect("alike");
    begin(3); /* point to point */
    add((int[]){0, 4, 3, 1, 2, 2, -1});
    groups[0].p2p = true;
    expect("");
}

/* How many it has completed is not known: it has not entered what comes after those that it has entered. */
static void test_entered(void **state) {
    (void)state;
    begin(3);
    add((int[]){0, 4, 3, 1, 3, -1, 2, 4, 3, -1});
    expect("1 missing");
    members[0][1].enqueued = 0;
    expect("1 missing");
    members[0][1].enqueued = 4; /* it has, and may have completed it */
    expect("alike");
    members[0][0].completed = members[0][2].completed = -1; /* nobody is known to wait */
    expect("");
}

/* A rank far ahead does not make all others culprits. */
static void test_ahead(void **state) {
    (void)state;
    begin(4);
    add((int[]){0, 10, 5, 1, 12, 5, 2, 11, 5, 3, 5, 5, -1});
    expect("3 missing");
}

static void test_chain(void **state) {
    (void)state;
    begin(6); /* 0 waits for 1, 1 for 2, ... */
    for (int i = 0; i < 5; i++)
        add((int[]){i, 2, 1, i + 1, 1, 1, -1});
    expect("5 missing");
    begin(4); /* two groups in two orders */
    add((int[]){0, 4, 3, 1, 3, 3, 2, 4, 3, -1});
    add((int[]){1, 8, 7, 0, 7, 7, 3, 8, 7, -1});
    expect("0 missing deadlock, 1 missing deadlock");
    begin(4); /* two apart */
    add((int[]){0, 4, 3, 1, 3, 3, -1});
    add((int[]){2, 8, 7, 3, 7, 7, -1});
    expect("1 missing, 3 missing");
    begin(4); /* those who stand alike wait for one of them, who waits elsewhere */
    add((int[]){0, 4, 3, 1, 4, 3, -1});
    add((int[]){1, 8, 7, 2, 7, 7, -1});
    add((int[]){3, 2, 1, 0, 1, 1, -1});
    expect("2 missing");
}

static void test_mismatch(void **state) {
    (void)state;
    begin(4);
    add((int[]){0, 4, 3, 1, 4, 3, 2, 4, 3, 3, 4, 3, -1});
    for (int i = 0; i < 4; i++)
        members[0][i].what = i == 2 ? 77 : 5;
    expect("2 mismatch");
    members[0][3].what = 77; /* two against two */
    struct hang h;
    assert_int_equal(hang_find(answers, n_ranks, groups, n_groups, &h), 0);
    assert_true(h.groups[0].split && h.n_culprits == 0 && h.alike);
    hang_fini(&h);
    for (int i = 0; i < 4; i++) /* unknown is no mismatch */
        members[0][i].what = i ? 0 : 5;
    expect("alike");
}

static void test_strangers(void **state) {
    (void)state;
    begin(3);
    add((int[]){0, 4, 3, 1, 3, 3, 99, 0, 0, 1, 9, 0, 0, 0, 0, -1}); /* beyond the last rank; twice */
    expect("1 missing");
    members[0][1].known = false;
    expect("");
    begin(2);
    add((int[]){0, 4, 9, 1, 3, 3, -1}); /* more completed than entered */
    expect("");
    members[0][1].enqueued = -5;
    expect("");
    begin(2);
    add((int[]){0, 4, 3, 1, 0, 0, -1});
    members[0][0].enqueued = INT64_MAX;
    members[0][0].completed = INT64_MAX - 1;
    expect("1 missing");
    begin(0);
    expect("");
    begin(2);
    add((int[]){0, 4, 3, -1}); /* alone, and nobody waits for it */
    expect("");
}

/* ---- the oracle ---- */

static bool reach[RANKS][RANKS], direct[RANKS][RANKS], behind[RANKS][RANKS];

static bool is_open(const struct hang_member *m) {
    return answers[m->rank] == HANG_ANSWERS && m->completed < m->enqueued;
}

static bool is_behind(const struct hang_member *m, const struct hang_member *waiter) {
    return answers[m->rank] != HANG_ANSWERS || m->completed < waiter->completed ||
           (m->completed == waiter->completed && m->enqueued == m->completed);
}

static void find_edges(void) {
    memset(direct, 0, sizeof direct);
    memset(behind, 0, sizeof behind);
    for (size_t g = 0; g < n_groups; g++)
        for (size_t i = 0; i < groups[g].n; i++) {
            const struct hang_member *r = &members[g][i];
            bool any = false;
            if (groups[g].p2p || !is_open(r))
                continue;
            for (size_t k = 0; k < groups[g].n; k++)
                if (is_behind(&members[g][k], r))
                    any = direct[r->rank][members[g][k].rank] = behind[r->rank][members[g][k].rank] = true;
            for (size_t k = 0; k < groups[g].n && !any; k++)
                if (is_open(&members[g][k]) && members[g][k].completed == r->completed && k != i)
                    direct[r->rank][members[g][k].rank] = true;
        }
    memcpy(reach, direct, sizeof reach);
    for (int k = 0; k < RANKS; k++)
        for (int i = 0; i < RANKS; i++)
            for (int j = 0; j < RANKS; j++)
                reach[i][j] |= reach[i][k] && reach[k][j];
}

/* Is it one of those for whom all wait in the end? */
static bool is_culprit(int32_t rank, bool *deadlock) {
    bool accused = false, together = false;
    *deadlock = false;
    for (int i = 0; i < n_ranks; i++) {
        accused |= behind[i][rank];
        if (reach[rank][i] && !reach[i][rank])
            return false;
        together |= i != rank && reach[rank][i];
        for (int j = 0; j < n_ranks; j++) {
            bool inside = (i == rank || reach[rank][i]) && (j == rank || reach[rank][j]);
            *deadlock |= inside && behind[i][j];
        }
    }
    return accused && (*deadlock || !together);
}

static void random_groups(void) {
    begin(1 + rand() % 9);
    int many = 1 + rand() % 5;
    for (int i = 0; i < n_ranks; i++)
        answers[i] = rand() % 9 ? HANG_ANSWERS : rand() % 2 ? HANG_SILENT : HANG_GONE;
    for (int g = 0; g < many; g++) {
        int64_t base = rand() % 3;
        for (int32_t rank = 0; rank < n_ranks; rank++)
            if (rand() % 3) {
                int64_t completed = base + rand() % 3 / 2;
                add_member((size_t)g, rank, completed + rand() % 3, completed);
            }
        groups[g].p2p = rand() % 8 == 0;
    }
}

static void test_against_pairs(void **state) {
    (void)state;
    srand(5);
    size_t named = 0, dead = 0;
    for (int round = 0; round < 60000; round++) {
        struct hang h;
        size_t at = 0;
        random_groups();
        find_edges();
        assert_int_equal(hang_find(answers, n_ranks, groups, n_groups, &h), 0);
        for (int32_t rank = 0; rank < n_ranks; rank++) {
            bool deadlock, found = at < h.n_culprits && h.culprits[at].rank == rank;
            assert_int_equal(found, is_culprit(rank, &deadlock));
            if (!found)
                continue;
            assert_int_equal(h.culprits[at].deadlock, deadlock);
            assert_true(h.culprits[at].role >= HANG_MISSING && h.culprits[at].number >= 1);
            for (size_t k = 0; k < at; k++)
                assert_int_equal(h.culprits[k].root == h.culprits[at].root,
                                 reach[rank][h.culprits[k].rank] && reach[h.culprits[k].rank][rank]);
            named++;
            dead += deadlock;
            at++;
        }
        hang_fini(&h);
    }
    assert_true(named > 10000 && dead > 500); /* else it has tried nothing */
}

/* ---- simulated jobs ---- */

#define STEPS 60

static struct {
    bool has[GROUPS][RANKS];
    int program[STEPS];      /* the groups of all collectives, in the order of all ranks */
    int queue[RANKS][STEPS]; /* groups of what a rank has entered and not finished */
    int n_queued[RANKS], at[RANKS];
    int stops[RANKS]; /* before that step of the program; STEPS never */
    int64_t enqueued[GROUPS][RANKS], completed[GROUPS][RANKS];
} sim;

/* A collective is over when all its members have it as the next of its group, or, on one stream, as the next of all. */
static bool is_next(int rank, int g, bool one_stream) {
    if (one_stream)
        return sim.n_queued[rank] > 0 && sim.queue[rank][0] == g;
    return sim.enqueued[g][rank] > sim.completed[g][rank];
}

static bool finish(int g, bool one_stream) {
    bool any = false;
    for (int rank = 0; rank < n_ranks; rank++) {
        any |= sim.has[g][rank];
        if (sim.has[g][rank] && !is_next(rank, g, one_stream))
            return false;
    }
    if (!any)
        return false;
    for (int rank = 0; rank < n_ranks; rank++) {
        if (!sim.has[g][rank])
            continue;
        int i = 0;
        while (sim.queue[rank][i] != g)
            i++;
        memmove(&sim.queue[rank][i], &sim.queue[rank][i + 1],
                (size_t)(sim.n_queued[rank] - i - 1) * sizeof(int));
        sim.n_queued[rank]--;
        sim.completed[g][rank]++;
    }
    return true;
}

static bool enter(int rank, int depth) {
    while (sim.at[rank] < STEPS && !sim.has[sim.program[sim.at[rank]]][rank] &&
           sim.at[rank] < sim.stops[rank])
        sim.at[rank]++;
    if (sim.at[rank] >= sim.stops[rank] || sim.at[rank] >= STEPS || sim.n_queued[rank] == depth)
        return false;
    int g = sim.program[sim.at[rank]++];
    sim.queue[rank][sim.n_queued[rank]++] = g;
    sim.enqueued[g][rank]++;
    return true;
}

static void run(int many, int depth, bool one_stream) {
    for (bool moves = true; moves;) {
        moves = false;
        for (int i = 0; i < n_ranks; i++)
            moves |= enter((i + rand()) % n_ranks, depth);
        for (int i = 0; i < n_ranks; i++)
            moves |= enter(i, depth);
        for (int g = 0; g < many; g++)
            moves |= finish(g, one_stream);
    }
}

/* Groups as of tensor, pipeline and data parallel ranks, or any. */
static int make_groups(bool grid) {
    if (grid) {
        begin(16);
        for (int rank = 0; rank < 16; rank++) {
            sim.has[rank / 2][rank] = true;
            sim.has[8 + rank % 2 + 2 * (rank / 8)][rank] = true;
            sim.has[12][rank] = true;
        }
        return 13;
    }
    begin(2 + rand() % 10);
    int many = 1 + rand() % 6;
    for (int g = 0; g < many; g++)
        for (int rank = 0; rank < n_ranks; rank++)
            sim.has[g][rank] = rand() % 2;
    return many;
}

static void test_simulated(void **state) {
    (void)state;
    srand(3);
    size_t hung = 0;
    for (int round = 0; round < 6000; round++) {
        struct hang h;
        memset(&sim, 0, sizeof sim);
        int many = make_groups(round % 3 == 0);
        int depth = round % 2 ? 1 : 1 + rand() % 8;
        for (int i = 0; i < STEPS; i++)
            sim.program[i] = rand() % many;
        for (int rank = 0; rank < n_ranks; rank++)
            sim.stops[rank] = rand() % n_ranks < 2 ? rand() % STEPS : STEPS;
        run(many, depth, rand() % 2);
        for (int g = 0; g < many; g++)
            for (int rank = 0; rank < n_ranks; rank++)
                if (sim.has[g][rank])
                    add_member((size_t)g, rank, sim.enqueued[g][rank], sim.completed[g][rank]);
        for (int rank = 0; rank < n_ranks; rank++)
            if (sim.stops[rank] < STEPS && rand() % 4 == 0)
                answers[rank] = HANG_SILENT;
        assert_int_equal(hang_find(answers, n_ranks, groups, n_groups, &h), 0);
        for (size_t i = 0; i < h.n_culprits; i++) {
            assert_true(sim.stops[h.culprits[i].rank] < STEPS);
            assert_false(h.culprits[i].deadlock);
        }
        bool others_wait = false;
        for (int g = 0; g < many; g++)
            for (size_t i = 0; i < groups[g].n; i++)
                others_wait |= is_open(&members[g][i]) && sim.stops[members[g][i].rank] == STEPS;
        if (others_wait)
            assert_true(h.n_culprits > 0);
        hung += others_wait;
        hang_fini(&h);
    }
    assert_true(hung > 1000);
}

/* 10,000 ranks in one group, of which half are missing, and a chain through all of them. */
static void test_large(void **state) {
    (void)state;
    enum { MANY = 10000 };
    static enum hang_answer all[MANY];
    static struct hang_member one[MANY], pairs[MANY][2];
    static struct hang_group many[MANY];
    struct hang h;
    for (int i = 0; i < MANY; i++)
        one[i] = (struct hang_member){i, true, i % 2 ? 2 : 1, 1, 0};
    many[0] = (struct hang_group){one, MANY, false};
    assert_int_equal(hang_find(all, MANY, many, 1, &h), 0);
    assert_int_equal(h.n_culprits, MANY / 2);
    assert_int_equal(h.n_open, MANY / 2);
    hang_fini(&h);
    for (int i = 0; i + 1 < MANY; i++) {
        pairs[i][0] = (struct hang_member){i, true, 2, 1, 0};
        pairs[i][1] = (struct hang_member){i + 1, true, 1, 1, 0};
        many[i] = (struct hang_group){pairs[i], 2, false};
    }
    assert_int_equal(hang_find(all, MANY, many, MANY - 1, &h), 0);
    assert_int_equal(h.n_culprits, 1);
    assert_int_equal(h.culprits[0].rank, MANY - 1);
    hang_fini(&h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),         cmocka_unit_test(test_entered),
        cmocka_unit_test(test_ahead),         cmocka_unit_test(test_chain),
        cmocka_unit_test(test_mismatch),      cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_against_pairs), cmocka_unit_test(test_simulated),
        cmocka_unit_test(test_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
