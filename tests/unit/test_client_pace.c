/* SPDX-License-Identifier: Apache-2.0 */
/* From the rows that relays send to the verdict in words: a job of three ranks on two hosts, whose clocks differ. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/fleet/pace.h"

#define RANKS 3
#define STEPS 300
#define AHEAD_S 3.0 /* of the second host, which has the last rank */

static const uint32_t nodes_of[RANKS] = {0, 0, 1};
static double ahead_s = AHEAD_S;
static int set_back; /* rows after which the clock of a host was set back */
static int first_row;

/* What a rank works in a step, seconds; when all have met; how long the step goes on then, and what of that is measured. */
static double work_s = 0.010, met_s = 0.0152, after_s = 0.001, measured_s = 0.001;

/* Steps in which each rank works, and rank `slow(step)` for 15 ms; then all meet. Returns when the last one ended. */
static double add_job(struct pace *p, double began, int (*slow)(int step)) {
    for (int i = 0; i < STEPS; i++) {
        double met = began + met_s;
        for (int r = 0; r < RANKS; r++) {
            double ahead = nodes_of[r] ? ahead_s : 0, begin = began + (r == slow(i) ? 0.015 : work_s);
            struct report_time row;
            report_clear(&REPORT_TABLE_TIME, &row);
            row.rank = r;
            row.pid = 100 + r;
            row.seq = first_row + i;
            row.op = "all_reduce";
            row.at = begin + ahead;
            row.ms = (met - begin) * 1e3;
            set_back += pace_add(p, nodes_of[r], &row);
            row.op = NULL;
            row.step = first_row + i + 10 * r;
            row.at = met + after_s + ahead;
            row.ms = (met + measured_s - began) * 1e3;
            row.data_ms = r == slow(i) ? 6 : 1;
            set_back += pace_add(p, nodes_of[r], &row);
        }
        began = met + after_s;
    }
    return began;
}

static struct fleet fleet;
static struct fleet_verdicts verdicts;

static size_t n_known = RANKS; /* in the fleet */

/* What is judged at that time; the last rank has process `pid`. */
static void judge(struct pace *p, double at, int64_t pid, double error_ms) {
    const struct fleet_node nodes[] = {
        {.host = "a", .job = {.world = RANKS}},
        {.host = "b", .job = {.world = RANKS}, .clock_offset_ms = ahead_s * 1e3, .clock_error_ms = error_ms}};
    struct fleet_report reports[RANKS];
    for (int r = 0; r < RANKS; r++) {
        reports[r] = (struct fleet_report){.node = nodes_of[r]};
        report_clear(&REPORT_TABLE_RANK, &reports[r].row);
        reports[r].row.rank = r;
        reports[r].row.pid = r == RANKS - 1 ? pid : 100 + r;
        reports[r].row.state = "S";
        reports[r].row.taken_at = at;
    }
    fleet_verdicts_fini(&verdicts);
    assert_int_equal(fleet_build(&fleet, nodes, 2, reports, n_known), 0);
    pace_put(p, &fleet);
    verdicts = (struct fleet_verdicts){.n = 0};
    assert_int_equal(pace_put_verdicts(&fleet, &verdicts), 0);
}

static int is_last_rank(int step) {
    (void)step;
    return RANKS - 1;
}
static int is_nobody(int step) {
    (void)step;
    return -1;
}
static int is_in_turn(int step) { return step % RANKS; }

static void a_slow_rank_is_named(void **state) {
    (void)state;
    struct pace *p = pace_new();
    double at = add_job(p, 1e9, is_last_rank);
    judge(p, at + 1, 102, 0.5);
    assert_int_equal(verdicts.n, 1);
    const struct fleet_verdict *v = verdicts.items;
    assert_int_equal(v->code, FLEET_CODE_STRAGGLER);
    assert_int_equal(v->cause, FLEET_CAUSE_DATA);
    assert_string_equal(v->brief, "STRAGGLER RANK 2");
    assert_string_equal(v->text,
                        "rank 2 needs 16.2 ms of its own for a step, the others 11.2 ms (+45 %); last "
                        "in 100 % of 295 steps; data takes 5.0 ms longer");
    assert_int_equal(v->n_evidence, 1);
    assert_int_equal(v->evidence[0].rank, 2);
    assert_string_equal(v->evidence[0].text,
                        "16.2 ms of its own in a step, 5.0 ms later than the first, last in "
                        "100 % of 295 steps");
    assert_string_equal(v->denied, "steps end in all ranks; 11.2 to 11.2 ms of their own in the other ranks");
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(fleet.ranks[r].role, 0);
        assert_int_equal(fleet.ranks[r].shift, -10 * r);
        assert_int_equal(fleet.ranks[r].is_slow, r == 2);
    }
    assert_int_equal(fleet.n_fan, STEPS);
    assert_int_equal(fleet.fan[STEPS - 1].n, RANKS);
    /* it is known of steps that end: a minute later of nobody */
    judge(p, at + 60, 102, 0.5);
    assert_int_equal(verdicts.n, 0);
    assert_false(fleet.ranks[2].is_slow);
    judge(p, at + 1, 102, 0.5);
    assert_int_equal(verdicts.n, 1);
    /* the difference is smaller than what the clocks may be off */
    judge(p, at + 1, 102, 3);
    assert_int_equal(verdicts.n, 0);
    /* nor of another process that is this rank */
    judge(p, at + 1, 103, 0.5);
    assert_int_equal(verdicts.n, 0);
    assert_true(isnan(fleet.ranks[2].own_ms));
    pace_free(p);
}

/* Those who do nothing but wait have no time of which that of the slow one is a multiple. */
static void others_without_work(void **state) {
    (void)state;
    struct pace *p = pace_new();
    work_s = -0.00001; /* the wait is a little longer than the step */
    met_s = 0.015;
    after_s = 0.00004;
    measured_s = 0;
    double at = add_job(p, 1e9, is_last_rank);
    work_s = 0.010;
    met_s = 0.0152;
    after_s = measured_s = 0.001;
    judge(p, at + 1, 102, 0.5);
    assert_int_equal(verdicts.n, 1);
    assert_non_null(strstr(verdicts.items->text,
                           "rank 2 needs 15.0 ms of its own for a step, the others 0.0 ms; last in 100 %"));
    pace_free(p);
}

/* None is later than the first in most steps, which the error of the clocks hides: then it is not known. */
static void an_imbalance_has_no_ranks(void **state) {
    (void)state;
    struct pace *p = pace_new();
    double at = add_job(p, 1e9, is_in_turn);
    judge(p, at + 1, 102, 0.5);
    assert_int_equal(verdicts.n, 1);
    const struct fleet_verdict *v = verdicts.items;
    assert_string_equal(v->brief, "IMBALANCE");
    assert_int_equal(v->ranks.n, 0);
    assert_non_null(strstr(v->text, "the last rank comes 5.0 ms after the others in a step of 16.2 ms"));
    assert_int_equal(v->n_evidence, RANKS);
    for (size_t i = 0; i < v->n_evidence; i++) {
        assert_null(strstr(v->evidence[i].text, "nan"));
        assert_non_null(strstr(v->evidence[i].text, "11.2 ms of its own in a step, last in 3"));
    }
    pace_free(p);
}

/* Rows that come again, as of a relay that was started again, are taken once; those of an agent that was loaded
 * again have the same numbers, and are newer. */
static void rows_are_taken_once(void **state) {
    (void)state;
    struct pace *p = pace_new();
    double at = add_job(p, 1e9, is_in_turn);
    add_job(p, 1e9, is_last_rank);
    judge(p, at + 1, 102, 0.5);
    assert_int_equal(fleet.n_fan, STEPS);
    assert_int_equal(verdicts.n, 1);
    assert_int_equal(verdicts.items[0].code, FLEET_CODE_IMBALANCE);
    at = add_job(p, at + 20, is_last_rank);
    judge(p, at + 1, 102, 0.5);
    assert_int_equal(fleet.n_fan, STEPS);
    assert_int_equal(verdicts.n, 1);
    assert_int_equal(verdicts.items[0].code, FLEET_CODE_STRAGGLER);
    pace_free(p);
}

/* A host whose clock is set back by an hour: once its new offset is known its steps are compared again. */
static void a_clock_is_set_back(void **state) {
    (void)state;
    struct pace *p = pace_new();
    set_back = 0;
    double at = add_job(p, 1e9, is_in_turn);
    assert_int_equal(set_back, 0);
    first_row = STEPS;
    ahead_s = AHEAD_S - 3600;
    at = add_job(p, at, is_last_rank);
    assert_int_equal(set_back, 1);
    judge(p, at + 1, 102, 0.5);
    assert_int_equal(fleet.ranks[2].role, 0);
    assert_int_equal(verdicts.n, 1);
    assert_string_equal(verdicts.items[0].brief, "STRAGGLER RANK 2");
    /* by less than what times are off: one step is passed over */
    first_row = 2 * STEPS;
    ahead_s -= 0.02;
    at = add_job(p, at, is_last_rank);
    assert_int_equal(set_back, 1);
    first_row = 0;
    ahead_s = AHEAD_S;
    pace_free(p);
}

/* A host whose clock is set back by a little: by its new offset the steps before would accuse its rank. They are
 * forgotten, and those that come are judged. */
static void a_clock_is_set_by_a_little(void **state) {
    (void)state;
    struct pace *p = pace_new();
    work_s = 0.3;
    met_s = 0.5;
    double at = add_job(p, 1e9, is_nobody);
    judge(p, at + 1, 102, 0.5);
    assert_int_equal(verdicts.n, 0);
    ahead_s = AHEAD_S - 0.06;
    judge(p, at + 1, 102, 0.5);
    assert_int_equal(verdicts.n, 1);
    assert_string_equal(verdicts.items[0].brief, "STRAGGLER RANK 2");
    pace_forget(p, 1);
    judge(p, at + 1, 102, 0.5);
    assert_int_equal(verdicts.n, 0);
    assert_int_equal(fleet.ranks[0].role, 0);
    assert_int_equal(fleet.ranks[2].role, -1);
    first_row = STEPS;
    at = add_job(p, at, is_nobody);
    judge(p, at + 1, 102, 0.5);
    assert_int_equal(verdicts.n, 0);
    assert_int_equal(fleet.ranks[2].role, 0);
    work_s = 0.010;
    met_s = 0.0152;
    first_row = 0;
    ahead_s = AHEAD_S;
    pace_free(p);
}

/* The history of a host's ranks comes before its first round is complete, and once: meanwhile the fleet is made
 * without them. */
static void a_history_waits_for_its_rank(void **state) {
    (void)state;
    struct pace *p = pace_new();
    double at = add_job(p, 1e9, is_last_rank);
    n_known = RANKS - 1;
    for (int i = 0; i < 3; i++)
        judge(p, at + 1, 102, 0.5);
    assert_int_equal(fleet.ranks[0].role, 0);
    for (size_t i = 0; i < verdicts.n; i++)
        assert_int_equal(verdicts.items[i].ranks.n, 0); /* the slow one is not one of them */
    n_known = RANKS;
    judge(p, at + 1, 102, 0.5);
    assert_int_equal(verdicts.n, 1);
    assert_string_equal(verdicts.items[0].brief, "STRAGGLER RANK 2");
    assert_int_equal(fleet.n_fan, STEPS);
    assert_int_equal(fleet.fan[STEPS - 1].n, RANKS);
    /* once it was there it is forgotten as soon as it is gone */
    n_known = RANKS - 1;
    judge(p, at + 1, 102, 0.5);
    n_known = RANKS;
    judge(p, at + 1, 102, 0.5);
    assert_int_equal(fleet.ranks[2].role, -1);
    pace_free(p);
}

#define MADE_UP 20000 /* more than are kept */

static void make_up_ranks(struct pace *p, int64_t pid) {
    for (int i = 0; i < MADE_UP; i++) {
        struct report_time row;
        report_clear(&REPORT_TABLE_TIME, &row);
        row.rank = i % 1000;
        row.pid = pid + i;
        row.seq = row.step = 1;
        row.at = 1e9;
        row.ms = 10;
        pace_add(p, 1, &row);
    }
}

/* A host that makes up ranks takes neither their room nor a part of their history from those that there are. */
static void ranks_that_are_made_up(void **state) {
    (void)state;
    struct pace *p = pace_new();
    make_up_ranks(p, 1000);
    double at = add_job(p, 1e9, is_last_rank);
    judge(p, at + 1, 102, 0.5);
    assert_int_equal(fleet.n_fan, STEPS);
    assert_int_equal(fleet.fan[STEPS - 1].n, RANKS);
    make_up_ranks(p, 100000);
    first_row = STEPS;
    at = add_job(p, at, is_last_rank);
    first_row = 0;
    judge(p, at + 1, 102, 0.5);
    assert_true(fleet.n_fan >= STEPS);
    assert_int_equal(verdicts.n, 1);
    assert_string_equal(verdicts.items[0].brief, "STRAGGLER RANK 2");
    pace_free(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_rank_is_named),      cmocka_unit_test(rows_are_taken_once),
        cmocka_unit_test(an_imbalance_has_no_ranks), cmocka_unit_test(others_without_work),
        cmocka_unit_test(a_clock_is_set_back),       cmocka_unit_test(a_history_waits_for_its_rank),
        cmocka_unit_test(ranks_that_are_made_up),    cmocka_unit_test(a_clock_is_set_by_a_little),
    };
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    fleet_verdicts_fini(&verdicts);
    fleet_fini(&fleet);
    return rc;
}
