/* SPDX-License-Identifier: Apache-2.0 */
/* Tables that are views over others: training_logs, comm_metrics. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/sql/comm_metrics.h"
#include "client/sql/training_logs.h"
#include "unit/store_job.h"

#define T0 1700000000.0

/* ---- training_logs ---- */

static void put_step(struct ring *r, double at, int64_t step) {
    union ring_value v[RING_STEPS_COUNT];
    for (int i = 0; i < RING_STEPS_COUNT; i++)
        v[i].f = NAN;
    v[RING_STEPS_TIMESTAMP].f = at;
    v[RING_STEPS_STEP].i = step;
    v[RING_STEPS_NONFINITE].i = v[RING_STEPS_EPOCH].i = RING_INT_NULL;
    assert_int_equal(ring_append(r, v), 0);
}

static void put_value(struct ring *r, double at, int64_t step, const char *name, double value,
                      const char *text) {
    union ring_value v[RING_VARIABLES_COUNT] = {
        [RING_VARIABLES_TIMESTAMP].f = at, [RING_VARIABLES_STEP].i = step,
        [RING_VARIABLES_FUNC].s = "train", [RING_VARIABLES_NAME].s = name,
        [RING_VARIABLES_VALUE].f = value,  [RING_VARIABLES_TEXT].s = text};
    assert_int_equal(ring_append(r, v), 0);
}

static void the_last_value_of_a_step_counts(void **state) {
    (void)state;
    struct job j;
    job_make(&j, 7, 0);
    struct ring *steps = job_table(&j, &RING_TABLES[RING_STEPS], 64 * 1024),
                *values = job_table(&j, &RING_TABLES[RING_VARIABLES], 64 * 1024);
    for (int64_t step = 1; step <= 2; step++) {
        double at = T0 + (double)step;
        for (int i = 0; i < 4; i++) /* of four micro-batches */
            put_value(values, at + i * 0.1, step, "part", (double)(4 - i), "n");
        put_value(values, at + 0.5, step, "X", (double)(10 * step), "n");
        put_value(values, at + 0.5, step, "x", (double)(20 * step), "n");
        put_value(values, at + 0.5, step, "loss", 0.5, "0.5");
        put_value(values, at + 0.6, step, "loss", 0.25, "0.25");
        put_value(values, at + 0.5, step, "word", NAN, "zebra");
        put_value(values, at + 0.6, step, "word", NAN, "ant");
        put_step(steps, at + 0.9, step);
    }
    ring_close(steps);
    ring_close(values);
    struct sql *s = job_session(&j, 1, NAN);
    training_logs_make(s, "SELECT * FROM training_logs");
    job_expect(s, "SELECT step, loss, part, word, \"X\" FROM training_logs ORDER BY step",
               "1|0.25|1.0|ant|10.0\n2|0.25|1.0|ant|20.0\n");
    job_expect(s, "SELECT x_4 FROM training_logs ORDER BY step", "20.0\n40.0\n");
    sql_close(s);
    job_remove(&j);
}

/* ---- comm_metrics ---- */

#define RANKS 3
#define COLLECTIVES 100

static void put_collective(struct ring *r, double begin, double end, int64_t seq) {
    union ring_value v[RING_COLLECTIVES_COUNT];
    for (int i = 0; i < RING_COLLECTIVES_COUNT; i++)
        v[i].i = RING_TABLES[RING_COLLECTIVES].columns[i].type == RING_TEXT ? 0 : RING_INT_NULL;
    v[RING_COLLECTIVES_TIMESTAMP].f = begin;
    v[RING_COLLECTIVES_SEQ].i = seq;
    v[RING_COLLECTIVES_OP].s = "all_reduce";
    v[RING_COLLECTIVES_PG].s = "0";
    v[RING_COLLECTIVES_DURATION_MS].f = (end - begin) * 1e3;
    v[RING_COLLECTIVES_ENQUEUE_MS].f = NAN;
    v[RING_COLLECTIVES_P2P].i = 0;
    v[RING_COLLECTIVES_STATE].i = RING_COLLECTIVE_DONE;
    assert_int_equal(ring_append(r, v), 0);
}

/* Rank 2 is the last of all of them. */
static void make_ranks(struct job *jobs) {
    for (int rank = 0; rank < RANKS; rank++) {
        job_make(&jobs[rank], 10 + rank, rank);
        struct ring *r = job_table(&jobs[rank], &RING_TABLES[RING_COLLECTIVES], 256 * 1024);
        for (int i = 0; i < COLLECTIVES; i++)
            put_collective(r, T0 + i + rank * 0.1, T0 + i + 0.5, i);
        ring_close(r);
    }
}

static const char *make(struct sql *s, uint64_t most) {
    return comm_metrics_make(s, "SELECT * FROM comm_metrics", 0, COMM_CLOCKS_OF_HOST, most);
}

static void of_too_many_collectives_the_newest_are_compared(void **state) {
    (void)state;
    struct job jobs[RANKS];
    make_ranks(jobs);
    struct sql *s = job_session(jobs, RANKS, NAN);
    assert_null(make(s, RANKS * COLLECTIVES));
    job_expect(s, "SELECT dst_rank, count(*) FROM comm_metrics GROUP BY 1", "2|300\n");
    /* enough for all of ranks 0 and 1, and none of rank 2 */
    const char *why = make(s, 2 * COLLECTIVES);
    assert_non_null(why);
    assert_non_null(strstr(why, "too many"));
    job_expect(s, "SELECT DISTINCT dst_rank FROM comm_metrics ORDER BY 1", "\n2\n");
    job_expect(s,
               "SELECT dst_rank, round(latency_ms) FROM comm_metrics WHERE timestamp >= 1700000099 ORDER BY "
               "src_rank",
               "2|200.0\n2|100.0\n2|0.0\n");
    job_expect(s, "SELECT count(*) > 150 FROM comm_metrics WHERE dst_rank = 2", "1\n");
    sql_close(s);
    for (int i = 0; i < RANKS; i++)
        job_remove(&jobs[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_value_of_a_step_counts),
        cmocka_unit_test(of_too_many_collectives_the_newest_are_compared),
    };
    return cmocka_run_group_tests_name("client_sql_views", tests, NULL, NULL);
}
