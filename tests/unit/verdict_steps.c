/* SPDX-License-Identifier: Apache-2.0 */
/* verdict_steps: see verdict_steps.h. */
#include "unit/verdict_steps.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* A step as the agent would write it; what is not set is not known. */
void no_step(union ring_value *v) {
    for (size_t i = 0; i < RING_STEPS_COUNT; i++)
        v[i].f = NAN;
    v[RING_STEPS_STEP].i = v[RING_STEPS_NONFINITE].i = RING_INT_NULL;
}

/* One more step of that many ms, `v` has the rest. */
void add_step(struct steps *s, union ring_value *v, double ms) {
    s->at_s += ms / 1000;
    v[RING_STEPS_TIMESTAMP].f = s->at_s;
    v[RING_STEPS_STEP].i = ++s->n;
    v[RING_STEPS_DURATION_MS].f = s->n == 1 ? NAN : ms;
    assert_int_equal(ring_append(s->ring, v), 0);
}

struct steps begin_steps(const struct job *j) {
    return (struct steps){job_table(j, &RING_TABLES[RING_STEPS], VERDICT_BYTES), VERDICT_T0, 0};
}

/* `n` steps of `ms` each, of which so much is what a column says; the time of the last. */
double some_steps(const struct job *j, int n, double ms, int column, double part_ms) {
    struct steps s = begin_steps(j);
    union ring_value v[RING_STEPS_COUNT];
    no_step(v);
    if (column >= 0)
        v[column].f = part_ms;
    for (int i = 0; i < n; i++)
        add_step(&s, v, ms);
    ring_close(s.ring);
    return s.at_s;
}

void add_memory(const struct job *j, double from_s, int n, double (*mb)(int i)) {
    struct ring *r = job_table(j, &RING_TABLES[RING_MEMORY], VERDICT_BYTES);
    for (int i = 0; i < n; i++) {
        union ring_value v[RING_MEMORY_COUNT];
        v[RING_MEMORY_TIMESTAMP].f = from_s + i;
        v[RING_MEMORY_MB].f = v[RING_MEMORY_RSS_MB].f = mb(i);
        v[RING_MEMORY_GPU_ALLOCATED_MB].f = v[RING_MEMORY_GPU_RESERVED_MB].f = NAN;
        v[RING_MEMORY_GC_OBJECTS].i = RING_INT_NULL;
        assert_int_equal(ring_append(r, v), 0);
    }
    ring_close(r);
}
