/* SPDX-License-Identifier: Apache-2.0 */
/* verdict_steps: training steps, and memory, as the agent writes them, for the tests of verdicts. */
#ifndef TESTS_VERDICT_STEPS_H
#define TESTS_VERDICT_STEPS_H

#include <stdint.h>

#include "store/ring/ring_tables.h"
#include "unit/store_job.h"

#define VERDICT_T0 1700000000.0
#define VERDICT_BYTES ((size_t)1024 * 1024)

struct steps {
    struct ring *ring;
    double at_s;
    int64_t n;
};

/* A step of which nothing is known. */
void no_step(union ring_value *v);

/* One more step of that many ms, `v` has the rest. */
void add_step(struct steps *s, union ring_value *v, double ms);
struct steps begin_steps(const struct job *j);

/* `n` steps of `ms` each, of which so much is what a column says; the time of the last. */
double some_steps(const struct job *j, int n, double ms, int column, double part_ms);

/* Memory a second, from `from_s`: what `mb` gives for each. */
void add_memory(const struct job *j, double from_s, int n, double (*mb)(int i));

#endif
