/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where slow steps spent their time: a function and line that samples show, nobody that chance explains, and nothing of what a liar says of its stacks.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/sql/steps_sites.h"

#define STEPS 64
#define SAMPLES 1024

/* A job whose steps and samples are put in order of time; they are given newest first. */
struct job {
    struct steps_span steps[STEPS];
    double times[SAMPLES];
    int64_t ids[SAMPLES];
    bool waits[SAMPLES];
    double cpu_wait[SAMPLES]; /* a reading of that instead, if it is not 0 */
    size_t n_steps, n_samples;
    double now;
    struct result *stacks;
    struct steps_site sites[STEPS];
};

static struct result *named(const char *const *names, size_t n) {
    struct result *r = result_new(n, 4096, 1 << 20);
    assert_non_null(r);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(result_name_column(r, i, names[i], ""), 0);
    return r;
}

static void put_stack(struct job *j, int64_t id, int64_t parent, const char *func, const char *file,
                      int line) {
    assert_int_equal(result_add_row(j->stacks), 0);
    result_put_int(j->stacks, 0, id);
    if (parent)
        result_put_int(j->stacks, 1, parent);
    assert_int_equal(result_put_text(j->stacks, 2, SQL_TEXT, func, strlen(func)), 0);
    if (file)
        assert_int_equal(result_put_text(j->stacks, 3, SQL_TEXT, file, strlen(file)), 0);
    if (line)
        result_put_int(j->stacks, 4, line);
}

/* 1 <module>, 2 train in forward, 3 train in backward, 4 train that calls 5 save at its line 88, which calls 6 of a library. */
static void begin(struct job *j) {
    static const char *const columns[] = {"stack_id", "parent_id", "func", "file", "lineno"};
    *j = (struct job){.now = 1000, .stacks = named(columns, 5)};
    put_stack(j, 1, 0, "<module>", "/job/train.py", 200);
    put_stack(j, 2, 1, "train", "/job/train.py", 10);
    put_stack(j, 3, 1, "train", "/job/train.py", 11);
    put_stack(j, 4, 1, "train", "/job/train.py", 12);
    put_stack(j, 5, 4, "save", "/job/train.py", 88);
    put_stack(j, 6, 5, "dump", "/usr/lib/python3/dist-packages/torch/serialization.py", 5);
    put_stack(j, 7, 0, "<module>", "/job/train.py", 201);
    put_stack(j, 8, 4, "save", "/job/train.py", 89);
}

/* A step, with samples at these stacks, evenly over it; 0 ends them, < 0 waits for the GIL. */
static void put_step(struct job *j, double ms, const int *at) {
    size_t n = 0;
    while (at[n])
        n++;
    for (size_t i = 0; i < n; i++) {
        j->times[j->n_samples] = j->now + ms / 1000 * ((double)i + 0.5) / (double)n;
        j->ids[j->n_samples] = abs(at[i]);
        j->waits[j->n_samples++] = at[i] < 0;
    }
    j->steps[j->n_steps++] = (struct steps_span){j->now, j->now + ms / 1000, ms > 150};
    j->now += ms / 1000;
}

static void put_usual(struct job *j, int n) {
    for (int i = 0; i < n; i++)
        put_step(j, 100, i % 5 < 3 ? (const int[]){2, 0} : (const int[]){3, 0});
}

/* Sites of all steps; the newest is the first. */
static void find(struct job *j) {
    static const char *const columns[] = {"timestamp", "stack_id", "waits", "cpu_wait_s"};
    struct steps_span newest[STEPS];
    struct result *r = named(columns, 4);
    for (size_t i = j->n_samples; i-- > 0;) {
        assert_int_equal(result_add_row(r), 0);
        result_put_real(r, 0, j->times[i]);
        if (j->cpu_wait[i] > 0) {
            result_put_real(r, 3, j->cpu_wait[i]);
            continue;
        }
        result_put_int(r, 1, j->ids[i]);
        result_put_int(r, 2, j->waits[i]);
    }
    for (size_t i = 0; i < j->n_steps; i++)
        newest[i] = j->steps[j->n_steps - 1 - i];
    assert_int_equal(steps_sites_find(newest, j->n_steps, r, j->stacks, j->sites), 0);
    for (size_t i = 0; i < j->n_steps; i++)
        assert_true(newest[i].is_slow || !j->sites[i].func);
    result_unref(r);
}

static void end(struct job *j) { result_unref(j->stacks); }

static void assert_site(const struct steps_site *site, const char *func, int line, double ms) {
    assert_non_null(site->func);
    assert_string_equal(site->func, func);
    assert_int_equal(site->line, line);
    assert_true(fabs(site->more_ms - ms) < 0.01);
}

static void test_a_function_and_its_line(void **state) {
    struct job j;
    (void)state;
    begin(&j);
    put_usual(&j, 20);
    put_step(&j, 400, (const int[]){2, 5, 5, 5, 0});
    put_usual(&j, 10);
    put_step(&j, 300, (const int[]){5, 6, 6, 0}); /* deep in a library: the job's own line is named */
    find(&j);
    assert_site(&j.sites[0], "save", 88, 200); /* not more than it took more */
    assert_site(&j.sites[11], "save", 88, 300);
    end(&j);
    begin(&j); /* two lines of a function: its name, and the line with the most */
    put_usual(&j, 20);
    put_step(&j, 500, (const int[]){5, 8, 5, 8, 5, 0});
    find(&j);
    assert_site(&j.sites[0], "save", 88, 400);
    end(&j);
    begin(&j); /* a line of code that no function is around */
    for (int i = 0; i < 20; i++)
        put_step(&j, 100, (const int[]){1, 0});
    put_step(&j, 400, (const int[]){1, 7, 7, 7, 0});
    find(&j);
    assert_site(&j.sites[0], "<module>", 201, 300);
    end(&j);
}

static void test_nobody_is_accused_by_chance(void **state) {
    struct job j;
    (void)state;
    begin(&j);
    put_usual(&j, 20);
    put_step(&j, 400, (const int[]){5, 0});    /* one sample */
    put_step(&j, 400, (const int[]){2, 5, 0}); /* and one of two */
    put_step(&j, 400, (const int[]){2, 2, 0}); /* where it is most of the time */
    put_step(&j, 200, (const int[]){2, 3, 2, 0});
    put_step(&j, 400, (const int[]){0});
    find(&j);
    for (size_t i = 0; i < j.n_steps; i++)
        assert_null(j.sites[i].func);
    end(&j);
    begin(&j); /* nothing to compare with */
    put_usual(&j, 5);
    put_step(&j, 400, (const int[]){5, 5, 5, 5, 0});
    find(&j);
    assert_null(j.sites[0].func);
    end(&j);
}

/* What is too little in each is enough in all of them. */
static void test_slow_steps_together(void **state) {
    struct job j;
    (void)state;
    begin(&j);
    for (int i = 0; i < 30; i++)
        put_step(&j, 100, i % 5 ? (const int[]){2, 0} : (const int[]){3, 0});
    for (int i = 0; i < 5; i++)
        put_step(&j, 300, (const int[]){3, 3, 0});
    find(&j);
    for (size_t i = 0; i < 5; i++)
        assert_site(&j.sites[i], "train", 11, 200);
    end(&j);
    begin(&j);
    for (int i = 0; i < 30; i++)
        put_step(&j, 100, i % 5 ? (const int[]){2, 0} : (const int[]){3, 0});
    put_step(&j, 300, (const int[]){3, 3, 0});
    find(&j);
    assert_null(j.sites[0].func);
    end(&j);
}

static void test_the_gil(void **state) {
    struct job j;
    (void)state;
    begin(&j);
    put_usual(&j, 20);
    put_step(&j, 400, (const int[]){2, -3, -2, -3, 0});
    find(&j);
    assert_site(&j.sites[0], "waits for the GIL", 0, 300);
    end(&j);
}

static void put_reading(struct job *j, double waited_s) {
    j->times[j->n_samples] = j->now;
    j->cpu_wait[j->n_samples++] = waited_s;
}

/* A thread that other processes keep from running stands somewhere: nothing is said of that place. */
static void test_it_was_kept_from_running(void **state) {
    struct job j;
    (void)state;
    begin(&j);
    put_usual(&j, 20);
    put_reading(&j, 1.0);
    put_step(&j, 400, (const int[]){5, 5, 5, 5, 0});
    put_reading(&j, 1.25); /* for 250 of 300 ms */
    put_usual(&j, 5);
    put_reading(&j, 1.26);
    put_step(&j, 400, (const int[]){5, 5, 5, 5, 0});
    put_reading(&j, 1.30);
    put_step(&j, 400, (const int[]){5, 5, 5, 5, 0}); /* not known yet */
    find(&j);
    assert_site(&j.sites[0], "save", 88, 300);
    assert_site(&j.sites[1], "save", 88, 300);
    assert_null(j.sites[7].func);
    end(&j);
}

/* Circles, stacks without end, callers that are missing, lines that are none. */
static void test_stacks_that_lie(void **state) {
    struct job j;
    (void)state;
    begin(&j);
    put_stack(&j, 20, 21, "a", NULL, 0);
    put_stack(&j, 21, 20, "b", "", -5);
    put_stack(&j, 22, 22, "itself", "x.py", 1);
    put_stack(&j, 23, 99, "orphan", "x.py", 2000000000);
    put_stack(&j, 2, 4, "twice", "x.py", 3);
    put_stack(&j, 0, 0, "none", "x.py", 3);
    for (int i = 100; i < 3500; i++)
        put_stack(&j, i, i - 1, "deep", "x.py", i);
    put_usual(&j, 20);
    put_step(&j, 400, (const int[]){20, 21, 20, 21, 0});
    put_step(&j, 400, (const int[]){22, 22, 22, 22, 0});
    put_step(&j, 400, (const int[]){23, 23, 23, 23, 0});
    put_step(&j, 400, (const int[]){3499, 3499, 3498, 3499, 0});
    put_step(&j, 400, (const int[]){77, 77, 77, 77, 0}); /* not there */
    put_step(&j, 400, (const int[]){5, 5, 5, 5, 0});
    find(&j);
    assert_site(&j.sites[0], "save", 88, 300);
    assert_null(j.sites[1].func);
    assert_string_equal(j.sites[3].func, "orphan");
    end(&j);
    begin(&j); /* none at all */
    j.n_samples = 0;
    find(&j);
    static const char *const other[] = {"x"};
    result_unref(j.stacks);
    j.stacks = named(other, 1);
    put_usual(&j, 20);
    put_step(&j, 400, (const int[]){5, 5, 5, 5, 0});
    find(&j);
    assert_null(j.sites[0].func);
    end(&j);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_function_and_its_line),  cmocka_unit_test(test_nobody_is_accused_by_chance),
        cmocka_unit_test(test_slow_steps_together),      cmocka_unit_test(test_the_gil),
        cmocka_unit_test(test_it_was_kept_from_running), cmocka_unit_test(test_stacks_that_lie),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
