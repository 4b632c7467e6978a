/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verdicts, over tables that are made here: each rule where it holds, just below that, and where nothing is known. A job that is fine is
 * accused of nothing.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/verdict/verdict.h"
#include "client/verdict/verdict_places.h"
#include "store/ring/ring_reader.h"
#include "store/ring/ring_tables.h"
#include "unit/store_job.h"
#include "unit/verdict_steps.h"

#define T0 VERDICT_T0
#define PID 4711
#define BYTES VERDICT_BYTES

/* That the agent was there until `to_s`. */
static void add_status(const struct job *j, double to_s, double uptime_s) {
    struct ring *r = job_table(j, &RING_TABLES[RING_STATUS], BYTES);
    for (int i = 5; i >= 0; i--) {
        union ring_value v[RING_STATUS_COUNT];
        for (size_t k = 0; k < RING_STATUS_COUNT; k++)
            v[k].i = RING_INT_NULL;
        v[RING_STATUS_TIMESTAMP].f = to_s - i;
        v[RING_STATUS_UPTIME_S].f = uptime_s - i;
        v[RING_STATUS_CPU_S].f = v[RING_STATUS_OVERHEAD_PCT].f = v[RING_STATUS_RATE_HZ].f =
            v[RING_STATUS_US_PER_SAMPLE].f = NAN;
        assert_int_equal(ring_append(r, v), 0);
    }
    ring_close(r);
}

/* That it has torch. */
static void add_torch(const struct job *j) {
    struct ring *facts = job_table(j, &RING_TABLES[RING_FACTS], 64 * 1024);
    union ring_value v[RING_FACTS_COUNT] = {
        [RING_FACTS_TIMESTAMP].f = T0 - 9, [RING_FACTS_KEY].s = "torch", [RING_FACTS_VALUE].s = "2.13.0"};
    assert_int_equal(ring_append(facts, v), 0);
    ring_close(facts);
}

/* What samples of the last seconds say. */
struct looks {
    const char *file;   /* that the functions are of; NULL: the job's */
    const char *func;   /* the name of the first; NULL: func_1 */
    int n;              /* of each thread, ten a second */
    int waiting, gc;    /* of them, in which the main thread waits for the GIL, collects garbage */
    int held;           /* in which the other thread has the GIL */
    int functions;      /* that the main thread is in, in turn */
    int same;           /* of the looks, in which it is in the first of them all the same */
    const char *driver; /* the function of libcuda that it is in there; NULL: none */
    bool gil_unknown;
    bool asleep; /* off the CPU */
};

/* What the kernel says of two threads, once a second up to `to_s`. */
struct clocks {
    int n;
    double cpu_pct[2], wait_s; /* of one core; for a CPU, in each second, */
    int waits_from;            /* from this one on */
    const char *wchan[2];
};

struct frame {
    int64_t id, parent;
    const char *func, *file;
    bool native;
};

static void add_frame(struct ring *stacks, struct ring *frames, const struct frame *f) {
    union ring_value stack[RING_STACKS_COUNT] = {[RING_STACKS_ID].i = f->id,
                                                 [RING_STACKS_PARENT].i = f->parent,
                                                 [RING_STACKS_FRAME].i = f->id,
                                                 [RING_STACKS_DEPTH].i = 0};
    union ring_value frame[RING_FRAMES_COUNT] = {[RING_FRAMES_ID].i = f->id,
                                                 [RING_FRAMES_FUNC].s = f->func,
                                                 [RING_FRAMES_FILE].s = f->file,
                                                 [RING_FRAMES_LINENO].i =
                                                     f->native ? RING_INT_NULL : 10 * f->id,
                                                 [RING_FRAMES_KIND].i = f->native};
    assert_int_equal(ring_append(stacks, stack), 0);
    assert_int_equal(ring_append(frames, frame), 0);
}

/* Stacks of one frame, 1 to `n`; with `driver`, stack DRIVER_STACK is the first one in that function. */
#define DRIVER_STACK 1001
static void add_frames(const struct job *j, int n, const char *file, const char *first, const char *driver) {
    struct ring *stacks = job_table(j, &RING_TABLES[RING_STACKS], 64 * 1024);
    struct ring *frames = job_table(j, &RING_TABLES[RING_FRAMES], 64 * 1024);
    for (int i = 1; i <= n; i++) {
        char func[32];
        (void)snprintf(func, sizeof func, "func_%d", i);
        add_frame(stacks, frames,
                  &(struct frame){i, RING_INT_NULL, i == 1 && first ? first : func, file, false});
    }
    if (driver) {
        add_frame(stacks, frames,
                  &(struct frame){1000, 1, "THPVariable_item", "/venv/torch/lib/libtorch_python.so", true});
        add_frame(stacks, frames, &(struct frame){DRIVER_STACK, 1000, driver, "/usr/lib/libcuda.so.1", true});
    }
    ring_close(stacks);
    ring_close(frames);
}

/* Samples of the main thread `tid` and another one, up to `to_s`. */
static void add_samples_of(const struct job *j, double to_s, struct looks l, int64_t tid) {
    struct ring *r = job_table(j, &RING_TABLES[RING_SAMPLES], BYTES);
    add_frames(j, l.functions, l.file ? l.file : "/job/train.py", l.func, l.driver);
    for (int i = 0; i < l.n; i++)
        for (int thread = 0; thread < 2; thread++) {
            union ring_value v[RING_SAMPLES_COUNT];
            bool is_main = thread == 0;
            v[RING_SAMPLES_TIMESTAMP].f = to_s - (l.n - 1 - i) * 0.1;
            v[RING_SAMPLES_TID].i = tid + thread;
            v[RING_SAMPLES_THREAD].s = is_main ? "MainThread" : "hog";
            v[RING_SAMPLES_STACK_ID].i = !is_main || i < l.same ? 1 : 1 + i % l.functions;
            if (is_main && l.driver && v[RING_SAMPLES_STACK_ID].i == 1)
                v[RING_SAMPLES_STACK_ID].i = DRIVER_STACK;
            v[RING_SAMPLES_ON_CPU].i = !l.asleep;
            v[RING_SAMPLES_GIL].i = is_main ? i < l.waiting ? 1 : 0 : i < l.held ? 2 : 0;
            if (l.gil_unknown)
                v[RING_SAMPLES_GIL].i = RING_INT_NULL;
            v[RING_SAMPLES_GC].i = is_main && i < l.gc;
            v[RING_SAMPLES_TORN].i = 0;
            assert_int_equal(ring_append(r, v), 0);
        }
    ring_close(r);
}

static void add_samples(const struct job *j, double to_s, struct looks l) { add_samples_of(j, to_s, l, PID); }

static void add_clocks(const struct job *j, double to_s, struct clocks c) {
    struct ring *r = job_table(j, &RING_TABLES[RING_THREAD_HISTORY], BYTES);
    for (int i = 0; i < c.n; i++)
        for (int thread = 0; thread < 2; thread++) {
            union ring_value v[RING_THREAD_HISTORY_COUNT];
            for (size_t k = 0; k < RING_THREAD_HISTORY_COUNT; k++)
                v[k].i = RING_INT_NULL;
            v[RING_THREAD_HISTORY_TIMESTAMP].f = to_s - (c.n - 1 - i);
            v[RING_THREAD_HISTORY_TID].i = PID + thread;
            v[RING_THREAD_HISTORY_NAME].s = thread ? "other" : "MainThread";
            v[RING_THREAD_HISTORY_NATIVE_NAME].s = "python";
            v[RING_THREAD_HISTORY_STATE].i = 1;
            v[RING_THREAD_HISTORY_CPU_PCT].f = c.cpu_pct[thread];
            v[RING_THREAD_HISTORY_WCHAN].s = c.wchan[thread];
            v[RING_THREAD_HISTORY_CPU_WAIT_S].f = i > c.waits_from ? c.wait_s * (i - c.waits_from) : 0;
            assert_int_equal(ring_append(r, v), 0);
        }
    ring_close(r);
}

/* What it says of the process, in each second: the CPUs it may use, and what it was throttled. */
static void add_process(const struct job *j, double to_s, double cpus, double throttled_s) {
    struct ring *r = job_table(j, &RING_TABLES[RING_PROCESS_HISTORY], BYTES);
    for (int i = 0; i < 20; i++) {
        union ring_value v[RING_PROCESS_HISTORY_COUNT];
        for (size_t k = 0; k < RING_PROCESS_HISTORY_COUNT; k++)
            if (RING_TABLES[RING_PROCESS_HISTORY].columns[k].type == RING_DOUBLE)
                v[k].f = NAN;
            else
                v[k].i = RING_INT_NULL;
        v[RING_PROCESS_HISTORY_TIMESTAMP].f = to_s - (19 - i);
        v[RING_PROCESS_HISTORY_CPUS].f = i % 10 == 9 ? cpus : NAN;
        v[RING_PROCESS_HISTORY_THROTTLED_S].f = throttled_s * i;
        assert_int_equal(ring_append(r, v), 0);
    }
    ring_close(r);
}

/* And of its memory, which grows by so much in each second. */
static void add_memory_growth(const struct job *j, double to_s, int64_t bytes) {
    struct ring *r = job_table(j, &RING_TABLES[RING_PROCESS_HISTORY], BYTES);
    for (int i = 0; i < 20; i++) {
        union ring_value v[RING_PROCESS_HISTORY_COUNT];
        for (size_t k = 0; k < RING_PROCESS_HISTORY_COUNT; k++)
            if (RING_TABLES[RING_PROCESS_HISTORY].columns[k].type == RING_DOUBLE)
                v[k].f = NAN;
            else
                v[k].i = RING_INT_NULL;
        v[RING_PROCESS_HISTORY_TIMESTAMP].f = to_s - (19 - i);
        v[RING_PROCESS_HISTORY_RSS].i = 1000000000 + i * bytes;
        assert_int_equal(ring_append(r, v), 0);
    }
    ring_close(r);
}

/* A DataLoader's iterator that has given so many batches. */
static void add_loader(const struct job *j, double to_s, int64_t received) {
    struct ring *r = job_table(j, &RING_TABLES[RING_LOADERS], BYTES);
    union ring_value v[RING_LOADERS_COUNT];
    for (size_t k = 0; k < RING_LOADERS_COUNT; k++)
        v[k].i = RING_INT_NULL;
    v[RING_LOADERS_TIMESTAMP].f = to_s;
    v[RING_LOADERS_LOADER].i = 1;
    v[RING_LOADERS_WORKERS].i = 2;
    v[RING_LOADERS_RECEIVED].i = received;
    v[RING_LOADERS_WAIT_MS].f = NAN;
    v[RING_LOADERS_DATASET].s = NULL;
    assert_int_equal(ring_append(r, v), 0);
    ring_close(r);
}

/* ---- what is said ---- */

static struct verdicts judge_many(const struct job *j, size_t n) {
    struct err e = {.text = ""};
    struct verdicts out;
    struct database *d = database_open(&e);
    struct verdict_judge *judge = d ? verdict_judge_new(d) : NULL;
    for (size_t i = 0; judge && i < n; i++) {
        struct target_address addr = {.pid = 0};
        (void)snprintf(addr.recorded, sizeof addr.recorded, "%s", j[i].dir);
        if (database_add(d, &addr, &e) != 0)
            fail_msg("%s", e.text);
    }
    if (!judge || verdict_judge_ask(judge, &out, &e) != 0)
        fail_msg("%s", e.text);
    verdicts_fini(&out); /* and the second time, from what it has learnt */
    if (verdict_judge_ask(judge, &out, &e) != 0)
        fail_msg("%s", e.text);
    verdict_judge_free(judge);
    database_close(d);
    return out;
}

static struct verdicts judge(const struct job *j) { return judge_many(j, 1); }

static const struct verdict *find(const struct verdicts *v, const char *code) {
    for (size_t i = 0; i < v->n; i++)
        if (strcmp(v->items[i].rule->code, code) == 0)
            return &v->items[i];
    return NULL;
}

static const char *text_of(const struct verdict *v) {
    assert_true(strstr(v->brief, v->rule->code) && !strpbrk(v->brief, "?[]{}") && strlen(v->brief) < 60);
    return v->text;
}

/* What is said of the job, as "CODE: words" a line; the job is removed. */
static void expect(struct job *j, const char *lines) {
    struct verdicts v = judge(j);
    struct strbuf got;
    strbuf_init(&got, 1 << 16);
    for (size_t i = 0; i < v.n; i++) /* a recording says of each how old it is */
        if (strcmp(v.items[i].rule->code, "ENDED") != 0)
            (void)strbuf_addf(&got, "%s: %s\n", v.items[i].rule->code, text_of(&v.items[i]));
    verdicts_fini(&v);
    job_remove(j);
    assert_string_equal(strbuf_str(&got), lines);
    strbuf_fini(&got);
}
#define MOVES(text) "MOVING: " text "\n"
#define USUAL "5 steps/s, 200 ms a step (median; 99 % within 200 ms; last 99 steps)"
#define TOO_FEW "too few to say what they wait for"
static struct job fresh(void) {
    struct job j;
    job_make(&j, PID, 0);
    return j;
}

static void nothing_known_nothing_said(void **state) {
    (void)state;
    struct job j = fresh();
    ring_close(job_table(&j, &RING_TABLES[RING_STEPS], BYTES));
    expect(&j, "");
}

static void no_steps(void **state) {
    (void)state;
    struct job j = fresh();
    add_status(&j, T0, 35);
    expect(&j, "NO STEPS: no optimizer step seen in 35 s\n");
    j = fresh();
    add_status(&j, T0, 2.9); /* it is too soon to say */
    expect(&j, "");
    j = fresh();
    add_status(&j, T0, 180);
    add_torch(&j);
    expect(&j, "NO STEPS: no optimizer step seen in 3m00s (torch 2.13.0)\n");
}

static void a_job_that_is_fine(void **state) {
    (void)state;
    struct job j = fresh();
    double end_s = some_steps(&j, 100, 200, RING_STEPS_DATA_MS, 20);
    add_status(&j, end_s, 60);
    add_samples(&j, end_s, (struct looks){.n = 150, .functions = 5, .waiting = 10, .gc = 3, .held = 20});
    expect(&j, MOVES(USUAL));
}

/* One step, of which no time is known yet: no state, until it is long ago. Of two, one time is known. */
static void one_step_says_little(void **state) {
    (void)state;
    struct job j = fresh();
    (void)some_steps(&j, 1, 200, -1, 0);
    expect(&j, "");
    for (int steps = 1; steps <= 2; steps++) {
        j = fresh();
        double end_s = some_steps(&j, steps, 200, -1, 0);
        add_samples(&j, end_s + 45, (struct looks){.n = 200, .functions = 1, .asleep = true});
        expect(&j,
               steps == 1
                   ? "WAITS: no optimizer step was seen in the last 45 s; the main thread waits in func_1 "
                     "(train.py:10), 100 % of the last 5 s\n"
                   : MOVES("5 steps/s, 200 ms a step (median; last 1 step); none for 45 s; " TOO_FEW));
        j = fresh();
        end_s = some_steps(&j, steps, 200, -1, 0);
        add_samples(&j, end_s + 65, (struct looks){.n = 200, .functions = 1, .asleep = true});
        expect(&j, steps == 1 ? "STUCK: no step for 65 s; the main thread stands in func_1 (train.py:10)\n"
                              : "STUCK: no step for 65 s, the longest of the 1 before took 200 ms; the main "
                                "thread stands in func_1 (train.py:10)\n");
    }
}

static void stuck(void **state) {
    (void)state;
    struct job j = fresh();
    double end_s = some_steps(&j, 100, 200, -1, 0);
    add_samples(&j, end_s + 30, (struct looks){.n = 200, .functions = 7, .same = 195});
    expect(
        &j,
        "STUCK: no step for 30 s, the longest of the 99 before took 200 ms; the main thread stands in func_1 "
        "(train.py:10)\n");
    j = fresh();
    end_s = some_steps(&j, 100, 200, -1, 0);
    add_samples(&j, end_s + 5.9, (struct looks){.n = 90, .functions = 1}); /* still within what may be */
    expect(&j, MOVES(USUAL "; none for 5.9 s"));
    j = fresh(); /* as long, and steps that take longer */
    end_s = some_steps(&j, 20, 12000, -1, 0);
    add_samples(&j, end_s + 30, (struct looks){.n = 200, .functions = 1});
    expect(&j, MOVES("5 steps/min, 12 s a step (median; 99 % within 12 s; last 19 steps)"));
    j = fresh(); /* by our own debugger: that is no fault */
    end_s = some_steps(&j, 100, 200, -1, 0);
    add_samples(&j, end_s + 30, (struct looks){.n = 200, .functions = 7, .same = 195, .file = "<probing>"});
    expect(&j, "HELD: no step for 30 s: the main thread is held by a debugger, in func_1\n");
}

/* What does not compute stands still sooner, unless workers may be busy for it. */
static void stuck_asleep(void **state) {
    (void)state;
    struct job j = fresh();
    double end_s = some_steps(&j, 100, 200, -1, 0);
    add_samples(&j, end_s + 7, (struct looks){.n = 70, .functions = 1, .asleep = true});
    struct verdicts v = judge(&j);
    assert_non_null(find(&v, "STUCK"));
    verdicts_fini(&v);
    job_remove(&j);
    for (double age_s = 7; age_s < 12; age_s += 4) {
        j = fresh();
        end_s = some_steps(&j, 100, 200, -1, 0);
        add_samples(
            &j, end_s + age_s,
            (struct looks){
                .n = 70, .functions = 1, .asleep = true, .file = "/x/torch/utils/data/dataloader.py"});
        v = judge(&j);
        assert_true(!find(&v, "BUSY") && !find(&v, "STUCK") == (age_s < 10));
        verdicts_fini(&v);
        job_remove(&j);
    }
}

/* True if it is said of a job that has made `steps` of 200 ms and since then, for so long, looks like that. */
static bool is_stuck(int steps, double age_s, struct looks l, int64_t growth, int64_t received) {
    struct job j = fresh();
    double end_s = some_steps(&j, steps, 200, -1, 0);
    l.n = 100;
    l.functions = 1;
    add_samples(&j, end_s + age_s, l);
    if (growth)
        add_memory_growth(&j, end_s + age_s, growth);
    if (received >= 0)
        add_loader(&j, end_s + age_s, received);
    struct verdicts v = judge(&j);
    bool stuck = find(&v, "STUCK") != NULL;
    assert_true(stuck || find(&v, "BUSY") || find(&v, "WAITS") || find(&v, "MOVING"));
    assert_true(stuck || age_s < 30 || !find(&v, "MOVING")); /* nor is it said to move */
    verdicts_fini(&v);
    job_remove(&j);
    return stuck;
}

/* The first steps, the first batch of a loader, and what grows or moves data while it computes take
 * their time: nobody is accused of that. */
static void slow_beginnings_are_not_stuck(void **state) {
    (void)state;
    const struct looks computes = {.n = 0}, sleeps = {.asleep = true},
                       loads = {.asleep = true, .file = "/x/torch/utils/data/dataloader.py"};
    assert_false(is_stuck(5, 50, computes, 0, -1));
    assert_true(is_stuck(5, 65, computes, 0, -1));
    assert_true(is_stuck(50, 30, computes, 0, -1));
    assert_false(is_stuck(5, 15, sleeps, 0, -1));
    assert_true(is_stuck(5, 25, sleeps, 0, -1));
    assert_true(is_stuck(50, 15, sleeps, 0, -1));
    assert_false(is_stuck(50, 30, computes, 1 << 20, -1)); /* 20 MB in the last 20 s */
    assert_true(is_stuck(50, 30, computes, 1 << 10, -1));
    assert_true(is_stuck(50, 30, sleeps, 1 << 20, -1)); /* whatever grows, this thread does nothing */
    assert_false(is_stuck(50, 30, loads, 0, 0));
    assert_true(is_stuck(50, 65, loads, 0, 0));
    assert_true(is_stuck(50, 30, loads, 0, 7));
}

/* The line where a thread stands is that of the newest sample, whatever it did there before. */
static void the_line_is_the_newest(void **state) {
    (void)state;
    struct job j = fresh();
    double end_s = some_steps(&j, 100, 200, -1, 0);
    struct ring *stacks = job_table(&j, &RING_TABLES[RING_STACKS], 64 * 1024);
    struct ring *frames = job_table(&j, &RING_TABLES[RING_FRAMES], 64 * 1024);
    struct ring *samples = job_table(&j, &RING_TABLES[RING_SAMPLES], BYTES);
    for (int i = 1; i <= 2; i++) {
        union ring_value stack[RING_STACKS_COUNT] = {[RING_STACKS_ID].i = i,
                                                     [RING_STACKS_PARENT].i = RING_INT_NULL,
                                                     [RING_STACKS_FRAME].i = i,
                                                     [RING_STACKS_DEPTH].i = 0};
        union ring_value frame[RING_FRAMES_COUNT] = {[RING_FRAMES_ID].i = i,
                                                     [RING_FRAMES_FUNC].s = "train",
                                                     [RING_FRAMES_FILE].s = "/job/train.py",
                                                     [RING_FRAMES_LINENO].i = i == 1 ? 27 : 29,
                                                     [RING_FRAMES_KIND].i = 0};
        assert_int_equal(ring_append(stacks, stack), 0);
        assert_int_equal(ring_append(frames, frame), 0);
    }
    for (int i = 0; i < 70; i++) {
        union ring_value v[RING_SAMPLES_COUNT] = {[RING_SAMPLES_TIMESTAMP].f = end_s + 0.1 * (i + 1),
                                                  [RING_SAMPLES_TID].i = PID,
                                                  [RING_SAMPLES_THREAD].s = "MainThread",
                                                  [RING_SAMPLES_STACK_ID].i = i < 40 ? 1 : 2};
        assert_int_equal(ring_append(samples, v), 0);
    }
    ring_close(stacks);
    ring_close(frames);
    ring_close(samples);
    struct verdicts v = judge(&j);
    assert_true(find(&v, "STUCK") && strstr(find(&v, "STUCK")->text, "stands in train (train.py:29)"));
    verdicts_fini(&v);
    job_remove(&j);
}

/* Stacks of two processes have the same numbers. */
static void each_of_two_has_its_own_stacks(void **state) {
    (void)state;
    struct job j[2];
    static const char *const files[] = {"/job/one.py", "/job/two.py"};
    for (int i = 0; i < 2; i++) {
        job_make(&j[i], PID + 100 * i, i);
        double end_s = some_steps(&j[i], 100, 200, -1, 0);
        add_samples_of(&j[i], end_s + 30, (struct looks){.n = 200, .functions = 1, .file = files[i]},
                       PID + 100 * i);
    }
    struct verdicts v = judge_many(j, 2);
    int found = 0;
    for (size_t i = 0; i < v.n; i++)
        if (strcmp(v.items[i].rule->code, "STUCK") == 0) {
            assert_non_null(strstr(v.items[i].text, v.items[i].pid == PID ? "one.py:10" : "two.py:10"));
            found++;
        }
    assert_int_equal(found, 2);
    verdicts_fini(&v);
    job_remove(&j[0]);
    job_remove(&j[1]);
}

static void stuck_for_the_gil(void **state) {
    (void)state;
    struct job j = fresh();
    double end_s = some_steps(&j, 100, 200, -1, 0);
    add_samples(&j, end_s + 200, (struct looks){.n = 300, .functions = 1, .waiting = 300, .held = 300});
    expect(&j,
           "STUCK: no step for 3m20s, the longest of the 99 before took 200 ms; the main thread stands in "
           "func_1 "
           "(train.py:10), waiting for the GIL\n"
           "GIL CONTENTION: the training thread waits for the GIL 100 % of the time (last 20 s); hog (4712) "
           "holds it 100 %\n");
}

/* No step ends, but it does one thing after the other: that is no standing still. Nor is it known where nothing is. */
static void evaluation_is_not_stuck(void **state) {
    (void)state;
    struct job j = fresh();
    double end_s = some_steps(&j, 100, 200, -1, 0);
    add_samples(&j, end_s + 30, (struct looks){.n = 200, .functions = 7, .same = 180});
    struct verdicts v = judge(&j);
    const struct verdict *busy = find(&v, "BUSY");
    assert_true(busy && busy->rule->level == VERDICT_NOTE && !find(&v, "STUCK"));
    assert_non_null(strstr(busy->text, "but the main thread works: lately mostly in func_1"));
    verdicts_fini(&v);
    job_remove(&j);
    j = fresh();
    end_s = some_steps(&j, 100, 200, -1, 0);
    add_status(&j, end_s + 30, 60);
    v = judge(&j);
    assert_null(find(&v, "STUCK"));
    verdicts_fini(&v);
    job_remove(&j);
}

/* 100 steps, the last tenth of which take `ms`. */
static struct job slower(double ms) {
    struct job j = fresh();
    struct steps s = begin_steps(&j);
    union ring_value v[RING_STEPS_COUNT];
    no_step(v);
    for (int i = 0; i <= 100; i++)
        add_step(&s, v, i > 90 ? ms : 200);
    ring_close(s.ring);
    return j;
}

static void slow(void **state) {
    (void)state;
    struct job j = slower(300);
    expect(&j, "SLOW: the last 10 steps took 300 ms each, the 90 before them 200 ms (medians)\n");
    j = slower(295);
    expect(&j, MOVES("4.77 steps/s, 200 ms a step (median; 99 % within 295 ms; last 100 steps)"));
    /* of which others have the CPUs: that is no fault of the job, unless they always had */
    for (int always = 0; always < 2; always++) {
        j = slower(320);
        double end_s = T0 + 91 * 0.2 + 10 * 0.32;
        add_clocks(
            &j, end_s,
            (struct clocks){.n = 20, .cpu_pct = {60, 0}, .wait_s = 0.4, .waits_from = always ? 0 : 16});
        add_process(&j, end_s, 4, 0);
        struct verdicts busy = judge(&j);
        assert_true(!find(&busy, "SLOW") == !always);
        verdicts_fini(&busy);
        job_remove(&j);
    }
    j = fresh(); /* long ones are as often as ever */
    struct steps s = begin_steps(&j);
    union ring_value v[RING_STEPS_COUNT];
    no_step(v);
    for (int i = 0; i <= 200; i++)
        add_step(&s, v, i % 2 || i > 190 ? 400 : 200);
    ring_close(s.ring);
    struct verdicts said = judge(&j);
    assert_null(find(&said, "SLOW"));
    verdicts_fini(&said);
    job_remove(&j);
}

static void input_bound(void **state) {
    (void)state;
    struct job j = fresh();
    (void)some_steps(&j, 100, 200, RING_STEPS_DATA_MS, 142);
    expect(&j, "INPUT-BOUND: 71 % of a step waits for the loader (142 ms of 200 ms, last 40 steps)\n" MOVES(
                   USUAL));
    j = fresh();
    (void)some_steps(&j, 100, 200, RING_STEPS_DATA_MS, 59);
    expect(&j, MOVES(USUAL));
    j = fresh(); /* of an hour ago: it says nothing of now */
    double end_s = some_steps(&j, 100, 200, RING_STEPS_DATA_MS, 142);
    add_samples(&j, end_s + 3600, (struct looks){.n = 200, .functions = 1});
    struct verdicts v = judge(&j);
    assert_non_null(find(&v, "STUCK"));
    assert_null(find(&v, "INPUT-BOUND"));
    verdicts_fini(&v);
    job_remove(&j);
}

/* Of fewer than ten steps the loader is blamed only if most of nearly each was waiting, in a second at
 * least; otherwise it is said that there are too few. */
static void input_bound_after_few_steps(void **state) {
    (void)state;
    struct job j = fresh();
    (void)some_steps(&j, 4, 500, RING_STEPS_DATA_MS, 260);
    expect(&j, "INPUT-BOUND: 52 % of a step waits for the loader (260 ms of 500 ms, last 3 steps)\n" MOVES(
                   "2 steps/s, 500 ms a step (median; last 3 steps)"));
    static const struct {
        int steps;
        double ms, data_ms;
        const char *said;
    } few[] = {
        {3, 1000, 900, "1 steps/s, 1.0 s a step (median; last 2 steps); "},
        {4, 500, 250, "2 steps/s, 500 ms a step (median; last 3 steps); "},
        {4, 200, 190, "5 steps/s, 200 ms a step (median; last 3 steps); "},
        {10, 200, 99, "5 steps/s, 200 ms a step (median; last 9 steps); "},
        {20, 100, 49, "10 steps/s, 100 ms a step (median; 99 % within 100 ms; last 19 steps); "},
    };
    for (size_t i = 0; i < sizeof few / sizeof few[0]; i++) {
        char said[256];
        (void)snprintf(said, sizeof said, MOVES("%s" TOO_FEW), few[i].said);
        j = fresh();
        (void)some_steps(&j, few[i].steps, few[i].ms, RING_STEPS_DATA_MS, few[i].data_ms);
        expect(&j, said);
    }
    for (int waiting = 3; waiting <= 4; waiting++) { /* of four, of five */
        j = fresh();
        struct steps s = begin_steps(&j);
        union ring_value v[RING_STEPS_COUNT];
        no_step(v);
        for (int i = 0; i < waiting + 2; i++) {
            v[RING_STEPS_DATA_MS].f = i == waiting ? 10 : 450;
            add_step(&s, v, 500);
        }
        ring_close(s.ring);
        struct verdicts said = judge(&j);
        assert_true(!find(&said, "INPUT-BOUND") == (waiting == 3));
        assert_true(!strstr(find(&said, "MOVING")->text, TOO_FEW) == (waiting == 4));
        assert_false(said.again); /* what has ended has no more to show */
        verdicts_fini(&said);
        job_remove(&j);
    }
    j = fresh();
    (void)some_steps(&j, 11, 200, RING_STEPS_DATA_MS, 59);
    expect(&j, MOVES("5 steps/s, 200 ms a step (median; 99 % within 200 ms; last 10 steps)"));
}

static struct job computing(double ms) {
    struct job j = fresh();
    struct steps s = begin_steps(&j);
    union ring_value v[RING_STEPS_COUNT];
    no_step(v);
    for (int i = 0; i < 100; i++) { /* one step in twenty is looked into */
        bool looked = i % 20 == 19;
        v[RING_STEPS_FORWARD_MS].f = looked ? ms : NAN;
        v[RING_STEPS_BACKWARD_MS].f = looked ? 60 : NAN;
        v[RING_STEPS_OPTIMIZER_MS].f = 20;
        add_step(&s, v, 200);
    }
    ring_close(s.ring);
    return j;
}

static void compute_bound(void **state) {
    (void)state;
    struct job j = computing(60);
    expect(&j, MOVES(USUAL) "COMPUTE-BOUND: 70 % of a step is forward (60 ms), backward (60 ms) and "
                            "optimizer (20 ms), "
                            "of 5 steps that were traced\n");
    j = computing(59);
    expect(&j, MOVES(USUAL));
}

/* Steps of which the thread waits for the GIL: nothing is said of them before there are looks enough to say what. */
static void compute_bound_but_for_the_gil(void **state) {
    (void)state;
    struct job j = computing(60);
    add_samples(&j, T0 + 20, (struct looks){.n = 30, .functions = 3, .waiting = 3});
    expect(&j, MOVES(USUAL));
    j = computing(60);
    add_samples(&j, T0 + 20, (struct looks){.n = 30, .functions = 3, .waiting = 2});
    struct verdicts v = judge(&j);
    assert_non_null(find(&v, "COMPUTE-BOUND"));
    verdicts_fini(&v);
    job_remove(&j);
}

/* Steps of a millisecond: of the last 40 alone half the time is waiting, of those of the last seconds an eighth. */
static void input_bound_for_a_moment(void **state) {
    (void)state;
    struct job j = fresh();
    struct steps s = begin_steps(&j);
    union ring_value v[RING_STEPS_COUNT];
    no_step(v);
    for (int i = 0; i < 4000; i++) {
        v[RING_STEPS_DATA_MS].f = i < 3960 ? 0.1 : 0.5;
        add_step(&s, v, 1);
    }
    ring_close(s.ring);
    expect(&j, "MOVING: 1000 steps/s, 1 ms a step (median; 99 % within 1 ms; last 100 steps)\n");
}

static void gc_pauses(void **state) {
    (void)state;
    struct job j = fresh();
    (void)some_steps(&j, 100, 200, RING_STEPS_GC_MS, 10);
    expect(&j,
           "GC PAUSES: 5.0 % of a step goes into collecting garbage (10 ms of 200 ms, at most 10 ms, last 40 "
           "steps)\n" MOVES(USUAL));
    j = fresh();
    (void)some_steps(&j, 100, 200, RING_STEPS_GC_MS, 9.9);
    expect(&j, MOVES(USUAL));
    j = fresh(); /* where steps do not know it, by samples */
    double end_s = some_steps(&j, 100, 200, -1, 0);
    add_samples(&j, end_s, (struct looks){.n = 100, .functions = 3, .gc = 7});
    expect(
        &j,
        "GC PAUSES: 7.0 % of the time the training thread collects garbage (last 20 s, 100 samples)\n" MOVES(
            USUAL));
    j = fresh();
    end_s = some_steps(&j, 100, 200, -1, 0);
    add_samples(&j, end_s, (struct looks){.n = 100, .functions = 3, .gc = 6});
    expect(&j, MOVES(USUAL));
    j = fresh(); /* and where they do, they are right */
    end_s = some_steps(&j, 100, 200, RING_STEPS_GC_MS, 1);
    add_samples(&j, end_s, (struct looks){.n = 100, .functions = 3, .gc = 50});
    expect(&j, MOVES(USUAL));
}

static void gil_contention(void **state) {
    (void)state;
    struct job j = fresh();
    double end_s = some_steps(&j, 100, 200, -1, 0);
    add_samples(&j, end_s, (struct looks){.n = 100, .functions = 3, .waiting = 20, .held = 35});
    expect(&j, "GIL CONTENTION: the training thread waits for the GIL 20 % of the time (last 20 s); hog "
               "(4712) holds "
               "it 35 %\n" MOVES(USUAL));
    j = fresh();
    end_s = some_steps(&j, 100, 200, -1, 0);
    add_samples(&j, end_s, (struct looks){.n = 100, .functions = 3, .waiting = 19, .held = 35});
    expect(&j, MOVES(USUAL));
    j = fresh(); /* too few looks to speak of shares */
    end_s = some_steps(&j, 100, 200, -1, 0);
    add_samples(&j, end_s, (struct looks){.n = 59, .functions = 3, .waiting = 59});
    expect(&j, MOVES(USUAL));
    j = fresh(); /* who has it is not known, as in a free-threaded Python */
    end_s = some_steps(&j, 100, 200, -1, 0);
    add_samples(&j, end_s, (struct looks){.n = 100, .functions = 3, .waiting = 99, .gil_unknown = true});
    expect(&j, MOVES(USUAL));
}

static double creeps(int i) { return 1000 + 0.5 * i; }
static double creeps_less(int i) { return 4000 + 0.5 * i; }
static double steps_up(int i) { return i < 60 ? 1000 : 1200; }
static double warms_up(int i) { return i < 40 ? 1000 + 10 * i : 1400; }
static double unknown(int i) { return i < 0 ? 1 : NAN; }

static struct job remembering(double (*mb)(int)) {
    struct job j = fresh();
    double end_s = some_steps(&j, 700, 200, -1, 0);
    add_memory(&j, end_s - 119, 120, mb);
    return j;
}

static void memory_creep(void **state) {
    (void)state;
    static double (*const fine[])(int) = {creeps_less, steps_up, warms_up, unknown};
    struct job j = remembering(creeps);
    struct verdicts v = judge(&j);
    const struct verdict *creep = find(&v, "MEMORY CREEP");
    assert_non_null(creep);
    assert_string_equal(
        creep->text,
        "memory grows by 30.0 MiB a minute, 102 KiB a step (from 1000 MiB to 1.03 GiB in 119 s)");
    verdicts_fini(&v);
    job_remove(&j);
    for (size_t i = 0; i < sizeof fine / sizeof fine[0]; i++) {
        j = remembering(fine[i]);
        v = judge(&j);
        assert_null(find(&v, "MEMORY CREEP"));
        assert_non_null(find(&v, "MOVING"));
        verdicts_fini(&v);
        job_remove(&j);
    }
}

/* 100 steps, of which those from `from` on have numbers that are none. */
static struct job without_numbers(int from, int n, int what) {
    struct job j = fresh();
    struct steps s = begin_steps(&j);
    union ring_value v[RING_STEPS_COUNT];
    no_step(v);
    for (int i = 1; i <= 100; i++) {
        bool bad = i >= from && i < from + n;
        v[RING_STEPS_LOSS].f = bad && what != 2 ? NAN : 2.5;
        v[RING_STEPS_GRAD_NORM].f = bad && what != 1 ? NAN : 1.5;
        v[RING_STEPS_NONFINITE].i = bad ? what : 0;
        add_step(&s, v, 200);
    }
    ring_close(s.ring);
    return j;
}

static void not_a_number(void **state) {
    (void)state;
    struct job j = without_numbers(41, 60, 3);
    expect(&j, "NAN: the loss was not a finite number in 60 of the last 100 steps, first in step 41, last in "
               "step 100\n" MOVES(USUAL));
    j = without_numbers(77, 1, 1);
    expect(&j, "NAN: the loss was not a finite number in 1 of the last 100 steps, first in step 77, last in "
               "step 77\n" MOVES(USUAL));
    j = without_numbers(81, 20, 2);
    expect(&j,
           "NAN: the gradients were not finite in 20 of the last 100 steps, first in step 81\n" MOVES(USUAL));
    j = without_numbers(2, 19, 2); /* as a GradScaler has them at first */
    expect(&j, MOVES(USUAL));
    j = without_numbers(1, 0, 0);
    expect(&j, MOVES(USUAL));
    j = fresh(); /* an infinite one may be told as what it is */
    (void)some_steps(&j, 100, 200, RING_STEPS_LOSS, INFINITY);
    struct verdicts v = judge(&j);
    assert_non_null(find(&v, "NAN"));
    verdicts_fini(&v);
    job_remove(&j);
}

/* 100 steps, of which every `nth` was read: those up to `good` are finite, the others not, as nonfinite says. */
static struct job read_now_and_then(int nth, int good, int what) {
    struct job j = fresh();
    struct steps s = begin_steps(&j);
    union ring_value v[RING_STEPS_COUNT];
    for (int i = 1; i <= 100; i++) {
        no_step(v);
        if (i % nth == 0) {
            v[RING_STEPS_NONFINITE].i = i <= good ? 0 : what;
            v[RING_STEPS_LOSS].f = i <= good || what == 2 ? 2.5 : NAN;
            v[RING_STEPS_GRAD_NORM].f = i <= good || what == 1 ? 1.5 : NAN;
        }
        add_step(&s, v, 200);
    }
    ring_close(s.ring);
    return j;
}

/* Steps that were not read are not counted as finite. */
static void not_a_number_where_it_was_read(void **state) {
    (void)state;
    struct job j = read_now_and_then(14, 0, 1);
    expect(&j,
           "NAN: the loss was not a finite number in all 7 that were read, of the last 100 steps, first in "
           "step 14, last in step 98\n" MOVES(USUAL));
    j = read_now_and_then(14, 56, 3);
    expect(&j,
           "NAN: the loss was not a finite number in 3 of 7 that were read, of the last 100 steps, first in "
           "step 70, last in step 98\n" MOVES(USUAL));
    j = read_now_and_then(60, 0, 1);
    expect(&j, "NAN: the loss was not a finite number in the only one that was read, of the last 100 steps, "
               "first in step 60, last in step 60\n" MOVES(USUAL));
    j = read_now_and_then(10, 0, 2);
    expect(
        &j,
        "NAN: the gradients were not finite in all 10 that were read, of the last 100 steps, first in step "
        "10\n" MOVES(USUAL));
    j = read_now_and_then(10, 80, 2);
    expect(&j,
           "NAN: the gradients were not finite in 2 of 10 that were read, of the last 100 steps, first in "
           "step 90\n" MOVES(USUAL));
    j = read_now_and_then(14, 0, 2); /* too few, as a GradScaler may have them at first */
    expect(&j, MOVES(USUAL));
}

static void add_found(struct job *j, const union ring_value *v) {
    struct ring *r = job_table(j, &RING_TABLES[RING_NONFINITE], 256 * 1024);
    assert_int_equal(ring_append(r, v), 0);
    ring_close(r);
}

/* What the hunt for NaN has found comes before what the steps say of it, until one finds nothing. */
static void the_first_module(void **state) {
    (void)state;
    struct job j = without_numbers(41, 60, 3);
    union ring_value v[RING_NONFINITE_COUNT] = {
        {.f = T0 + 9},     {.i = 41}, {.s = "hidden.1"}, {.s = "Linear"}, {.i = 0},
        {.s = "output 0"}, {.i = 3},  {.i = 0},          {.i = 64},       {.f = -1.5},
        {.f = 2},          {.i = 0},  {.s = "weight"},   {.s = NULL}};
    add_found(&j, v);
    expect(
        &j,
        "NAN: step 41: the first number that is not finite is in output 0 of hidden.1 (Linear): 3 NaN of 64; "
        "it was called with numbers from -1.5 to 2; its weight is not finite either\n" MOVES(USUAL));
    j = without_numbers(41, 60, 3);
    v[RING_NONFINITE_STEP].i = v[RING_NONFINITE_INPUT_NONFINITE].i = RING_INT_NULL;
    v[RING_NONFINITE_STAGE].i = 1;
    v[RING_NONFINITE_MODULE].s = "";
    v[RING_NONFINITE_WHAT].s = "gradient of output 0";
    v[RING_NONFINITE_INF].i = 1;
    v[RING_NONFINITE_PARAMETER].s = NULL;
    add_found(&j, v);
    struct verdicts found = judge(&j);
    const struct verdict *one = find(&found, "NAN");
    assert_true(one && one->rule->level == VERDICT_WARN);
    assert_string_equal(
        one->text, "the first number that is not finite is in gradient of output 0 of the model (Linear): "
                   "3 NaN, 1 infinite of 64");
    verdicts_fini(&found);
    job_remove(&j);
    j = fresh();
    (void)some_steps(&j, 100, 200, -1, 0);
    v[RING_NONFINITE_STAGE].i = RING_NONFINITE_NONE;
    add_found(&j, v);
    expect(&j, MOVES(USUAL));
}

/* Fast steps: what is read stays bounded, and it is the newest. */
static void many_steps(void **state) {
    (void)state;
    struct job j = fresh();
    struct steps s = {job_table(&j, &RING_TABLES[RING_STEPS], (size_t)16 << 20), T0, 0};
    union ring_value v[RING_STEPS_COUNT];
    no_step(v);
    for (int i = 0; i < 60000; i++) {
        v[RING_STEPS_DATA_MS].f = i < 57000 ? 0 : 0.8;
        add_step(&s, v, 1);
    }
    ring_close(s.ring);
    expect(&j, "INPUT-BOUND: 80 % of a step waits for the loader (0.8 ms of 1 ms, last 2000 steps)\n"
               "MOVING: 1000 steps/s, 1 ms a step (median; 99 % within 1 ms; last 100 steps)\n");
}

/* No step was ever seen. A lock of the job, and nobody who could come from outside: it hangs. */
static void hung(void **state) {
    (void)state;
    const struct looks still = {.n = 100, .functions = 1, .asleep = true};
    const struct clocks locked = {.n = 20, .wchan = {"futex_do_wait", "futex_wait_queue_me"}};
    struct job j = fresh();
    add_samples(&j, T0, still);
    add_clocks(&j, T0, locked);
    expect(
        &j,
        "HUNG: no thread of 2 has run for 19 s; the main thread waits for a lock at func_1 (train.py:10)\n");
    struct clocks one = locked; /* the other thread waits for something from outside */
    one.wchan[1] = "do_epoll_wait";
    j = fresh();
    add_samples(&j, T0, still);
    add_clocks(&j, T0, one);
    expect(&j, "WAITS: no optimizer step was seen; the main thread waits in func_1 (train.py:10), 100 % of "
               "the last 5 s, 0.0 % of a core\n");
    one = locked; /* or runs */
    one.cpu_pct[1] = 5;
    j = fresh();
    add_samples(&j, T0, still);
    add_clocks(&j, T0, one);
    struct verdicts v = judge(&j);
    assert_true(!find(&v, "HUNG") && find(&v, "WAITS"));
    verdicts_fini(&v);
    job_remove(&j);
    one = locked; /* what the kernel does not show is not known */
    one.wchan[0] = one.wchan[1] = NULL;
    j = fresh();
    add_samples(&j, T0, still);
    add_clocks(&j, T0, one);
    v = judge(&j);
    assert_true(!find(&v, "HUNG") && find(&v, "WAITS"));
    verdicts_fini(&v);
    job_remove(&j);
}

/* What waits on purpose is not accused, by where it waits, or by what the kernel says. */
static void waits_on_purpose(void **state) {
    (void)state;
    static const struct {
        const char *file, *wchan, *purpose;
    } cases[] = {{"/usr/lib/python3.11/selectors.py", "do_epoll_wait", "for requests"},
                 {"/usr/lib/python3.11/asyncio/base_events.py", "do_epoll_wait", "for requests"},
                 {"/job/serve.py", "inet_csk_accept", "for connections"},
                 {"/job/serve.py", "hrtimer_nanosleep", "asleep"},
                 {"/job/serve.py", "do_wait", "for a child process"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job j = fresh();
        add_samples(&j, T0, (struct looks){.n = 100, .functions = 1, .asleep = true, .file = cases[i].file});
        add_clocks(&j, T0, (struct clocks){.n = 20, .wchan = {cases[i].wchan, "futex_do_wait"}});
        struct verdicts v = judge(&j);
        const struct verdict *idle = find(&v, "IDLE");
        assert_true(idle && idle->rule->level == VERDICT_NOTE && strstr(idle->text, cases[i].purpose));
        verdicts_fini(&v);
        job_remove(&j);
    }
    struct job j = fresh(); /* but not in a loader */
    add_samples(&j, T0,
                (struct looks){
                    .n = 100, .functions = 1, .asleep = true, .file = "/x/torch/utils/data/dataloader.py"});
    add_clocks(&j, T0, (struct clocks){.n = 20, .wchan = {"do_epoll_wait", "futex_do_wait"}});
    struct verdicts v = judge(&j);
    assert_true(!find(&v, "HUNG") && !find(&v, "IDLE") && find(&v, "WAITS")); /* workers may be busy */
    verdicts_fini(&v);
    job_remove(&j);
}

/* A job with torch that works a little, while its first step may still end: nothing is said of it before that could be seen. One that uses
 * no CPU waits, from the beginning. */
static void waits_before_its_first_step(void **state) {
    (void)state;
    static const struct {
        double cpu_pct, uptime_s;
        const char *wchan, *code;
    } cases[] = {{60, 2, "futex_do_wait", NULL},     {10, 2, "futex_do_wait", NULL},
                 {10, 2, "hrtimer_nanosleep", NULL}, {10, 5, "futex_do_wait", "WAITS"},
                 {0, 2, "futex_do_wait", "WAITS"},   {10, 5, "hrtimer_nanosleep", "IDLE"},
                 {0, 2, "hrtimer_nanosleep", "IDLE"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job j = fresh();
        add_status(&j, T0, cases[i].uptime_s);
        add_torch(&j);
        add_samples(&j, T0, (struct looks){.n = 100, .functions = 1, .asleep = true});
        add_clocks(&j, T0,
                   (struct clocks){.n = 20,
                                   .cpu_pct = {cases[i].cpu_pct, 0},
                                   .wchan = {cases[i].wchan, "do_epoll_wait"}});
        struct verdicts v = judge(&j);
        assert_true(!!find(&v, "WAITS") == (cases[i].code && strcmp(cases[i].code, "WAITS") == 0));
        assert_true(!!find(&v, "IDLE") == (cases[i].code && strcmp(cases[i].code, "IDLE") == 0));
        verdicts_fini(&v);
        job_remove(&j);
    }
}

/* By where its samples are: with and without steps before. */
static void what_it_does(void **state) {
    (void)state;
    static const struct {
        const char *code, *file;
    } cases[] = {{"COMPILING", "/x/torch/_dynamo/convert_frame.py"},
                 {"STARTING", "<frozen importlib._bootstrap>"},
                 {"EVALUATING", "/x/lightning/pytorch/loops/evaluation_loop.py"},
                 {"BUSY", "/job/train.py"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int steps = 0; steps < 2; steps++) {
            struct job j = fresh();
            if (steps && strcmp(cases[i].code, "STARTING") == 0)
                continue;
            double end_s = steps ? some_steps(&j, 100, 200, -1, 0) : T0;
            add_samples(&j, end_s + 8, (struct looks){.n = 80, .functions = 2, .file = cases[i].file});
            add_clocks(&j, end_s + 8, (struct clocks){.n = 8, .cpu_pct = {90, 0}});
            struct verdicts v = judge(&j);
            assert_true(find(&v, cases[i].code) && !find(&v, "STUCK") && !find(&v, "HUNG"));
            verdicts_fini(&v);
            job_remove(&j);
        }
    struct job j = fresh(); /* an evaluation whose clock stands still is none */
    double end_s = some_steps(&j, 100, 200, -1, 0);
    add_samples(&j, end_s + 20,
                (struct looks){.n = 200, .functions = 1, .asleep = true, .file = cases[2].file});
    add_clocks(&j, end_s + 20, (struct clocks){.n = 20, .wchan = {"pipe_read", "futex_do_wait"}});
    struct verdicts v = judge(&j);
    assert_true(find(&v, "STUCK") && !find(&v, "EVALUATING"));
    verdicts_fini(&v);
    job_remove(&j);
}

static void oversubscribed(void **state) {
    (void)state;
    struct job j = fresh();
    double end_s = some_steps(&j, 100, 200, -1, 0);
    add_clocks(&j, end_s, (struct clocks){.n = 15, .cpu_pct = {50, 50}, .wait_s = 0.5});
    add_process(&j, end_s, 1, 0);
    expect(&j, "OVERSUBSCRIBED: 2 threads want 1 CPUs: they run on 1.0 of them and want 2.0 at a time (last "
               "15 s)\n" MOVES(USUAL));
    j = fresh(); /* as many CPUs as threads: somebody else has them */
    end_s = some_steps(&j, 100, 200, -1, 0);
    add_clocks(&j, end_s, (struct clocks){.n = 15, .cpu_pct = {50, 50}, .wait_s = 0.5});
    add_process(&j, end_s, 4, 0);
    struct verdicts v = judge(&j);
    assert_null(find(&v, "OVERSUBSCRIBED"));
    assert_true(find(&v, "HOST BUSY") && find(&v, "HOST BUSY")->rule->level == VERDICT_NOTE);
    verdicts_fini(&v);
    job_remove(&j);
    j = fresh();
    end_s = some_steps(&j, 100, 200, -1, 0);
    add_clocks(&j, end_s, (struct clocks){.n = 15, .cpu_pct = {50, 50}, .wait_s = 0.1});
    add_process(&j, end_s, 1, 0);
    expect(&j, MOVES(USUAL));
}

static void throttled(void **state) {
    (void)state;
    struct job j = fresh();
    double end_s = some_steps(&j, 100, 200, -1, 0);
    add_process(&j, end_s, 1, 0.5);
    expect(
        &j,
        "THROTTLED: its control group was kept from running 50 % of the last 19 s: it may use 1 CPUs\n" MOVES(
            USUAL));
    j = fresh();
    end_s = some_steps(&j, 100, 200, -1, 0);
    add_process(&j, end_s, 1, 0.09);
    expect(&j, MOVES(USUAL));
}

/* What a GPU does in each of the last seconds. */
struct gpu {
    int device;
    double util; /* NAN unknown */
    double mem_used_mb;
    const char *throttle;
    int64_t xid, ecc; /* of the last second */
    int64_t ecc_before;
    int state;
    int seconds; /* that it is known; 0: 20 */
};

static void add_gpus(const struct job *j, double to_s, const struct gpu *list, size_t n) {
    struct ring *r = job_table(j, &RING_TABLES[RING_GPU], BYTES);
    for (int i = 0; i < 20; i++)
        for (size_t k = 0; k < n; k++) {
            union ring_value v[RING_GPU_COUNT];
            if (list[k].seconds && i < 20 - list[k].seconds)
                continue;
            for (size_t c = 0; c < RING_GPU_COUNT; c++)
                if (RING_TABLES[RING_GPU].columns[c].type == RING_DOUBLE)
                    v[c].f = NAN;
                else if (RING_TABLES[RING_GPU].columns[c].type == RING_TEXT)
                    v[c].s = NULL;
                else
                    v[c].i = RING_INT_NULL;
            v[RING_GPU_TIMESTAMP].f = to_s - (19 - i);
            v[RING_GPU_DEVICE].i = list[k].device;
            v[RING_GPU_NAME].s = "H100";
            v[RING_GPU_UUID].s = list[k].device ? "GPU-b" : "GPU-a";
            v[RING_GPU_UTIL].f = list[k].util;
            v[RING_GPU_MEM_USED].f = list[k].mem_used_mb;
            v[RING_GPU_MEM_TOTAL].f = 80000;
            v[RING_GPU_TEMPERATURE].f = 90;
            v[RING_GPU_SM_CLOCK].f = 1200;
            v[RING_GPU_THROTTLE].s = list[k].throttle;
            v[RING_GPU_ECC].i = i == 19 ? list[k].ecc : list[k].ecc_before;
            v[RING_GPU_XID].i = i == 19 && list[k].xid ? list[k].xid : RING_INT_NULL;
            v[RING_GPU_STATE].i = i == 19 ? list[k].state : 0;
            v[RING_GPU_SILENT_S].f = i == 19 && list[k].state == 1 ? 12 : NAN;
            assert_int_equal(ring_append(r, v), 0);
        }
    ring_close(r);
}

/* What torch has of its memory. `uuid` NULL: an old torch. */
static void add_gpu_memory(const struct job *j, double reserved_mb, int64_t retries, const char *uuid) {
    struct ring *r = job_table(j, &RING_TABLES[RING_GPU_MEMORY], BYTES);
    union ring_value v[RING_GPU_MEMORY_COUNT] = {[RING_GPU_MEMORY_UUID].s = uuid,
                                                 [RING_GPU_MEMORY_ALLOCATED].f = reserved_mb / 2,
                                                 [RING_GPU_MEMORY_RESERVED].f = reserved_mb,
                                                 [RING_GPU_MEMORY_PEAK].f = reserved_mb,
                                                 [RING_GPU_MEMORY_INACTIVE].f = reserved_mb / 4,
                                                 [RING_GPU_MEMORY_RETRIES].i = retries};
    assert_int_equal(ring_append(r, v), 0);
    ring_close(r);
}

#define FULL                                                                                                 \
    "GPU MEMORY: GPU 0 is full (76.2 GiB of 78.1 GiB): torch had to give back memory 3 times; 18.6 GiB are " \
    "pieces between others\n"

static void gpus(void **state) {
    (void)state;
    static const struct {
        struct gpu gpus[2];
        size_t n;
        double data_ms, reserved_mb; /* reserved_mb < 0: nothing is known of torch's memory */
        int64_t retries;
        struct looks looks;
        const char *said;
        const char *uuid; /* of the one where torch has it; NULL unknown */
    } cases[] = {
        /* busy enough, or torch has no memory on it, or another one is busy */
        {{{0, .util = 60}}, 1, 0, 1000, 0, {.n = 0}, ""},
        {{{0, .util = 10}}, 1, 0, 0, 0, {.n = 0}, ""},
        {{{0, .util = 10}, {1, .util = 95}}, 2, 0, 1000, 0, {.n = 0}, ""},
        {{{0, .util = NAN}}, 1, 0, 1000, 0, {.n = 0}, ""},
        {{{0, .util = 10}},
         1,
         0,
         1000,
         0,
         {.n = 0},
         "GPU IDLE: GPU 0 is busy 10 % of the time (last 19 s)\n"},
        {{{0, .util = 10}},
         1,
         30,
         1000,
         0,
         {.n = 0},
         "GPU IDLE: GPU 0 is busy 10 % "
         "of the time (last 19 s); 15 % "
         "of a step is waiting for batches\n"},
        {{{0, .util = 40}},
         1,
         0,
         1000,
         0,
         {.n = 150, .functions = 1},
         "LAUNCH-BOUND: GPU 0 is busy 40 % of the time (last 19 s), and the training thread always: it "
         "cannot launch fast enough, mostly "
         "in func_1 (train.py:10)\n"},
        {{{0, .util = 40}},
         1,
         0,
         1000,
         0,
         {.n = 150, .functions = 1, .asleep = true},
         "GPU IDLE: GPU 0 is busy 40 % of the time (last 19 s); the job is in func_1 (train.py:10) 100 % of "
         "the time\n"},
        {{{0, .util = 40}},
         1,
         0,
         1000,
         0,
         {.n = 150,
          .functions = 3,
          .same = 150,
          .asleep = true,
          .func = "recv",
          .file = "/usr/lib/python3.11/multiprocessing/connection.py"},
         "GPU IDLE: GPU 0 is busy 40 % of the time (last 19 s)\n"},
        {{{0, .util = 70}},
         1,
         0,
         1000,
         0,
         {.n = 150, .functions = 1, .func = "synchronize", .file = "/venv/torch/cuda/__init__.py"},
         "SYNC: 100 % of the time the training waits for the GPU, 200 ms of a step of 200 ms, in "
         "synchronize, while GPU 0 is busy 70 % of the time\n"},
        /* what is known by native frames: the line, and not that of launches, which wait for room */
        {{{0, .util = 70}},
         1,
         0,
         1000,
         0,
         {.n = 150, .functions = 4, .driver = "cuStreamSynchronize"},
         "SYNC: 25 % of the time the training waits for the GPU, 50.7 ms of a step of 200 ms, in "
         "synchronize, called by func_1 (train.py:10), while GPU 0 is busy 70 % of the time\n"},
        {{{0, .util = 70}}, 1, 0, 1000, 0, {.n = 150, .functions = 4, .driver = "cuLaunchKernel"}, ""},
        {{{0, .util = 95}}, 1, 0, 1000, 0, {.n = 150, .functions = 4, .driver = "cuStreamSynchronize"}, ""},
        {{{0, .util = 70}}, 1, 0, 1000, 0, {.n = 150, .functions = 20, .driver = "cuStreamSynchronize"}, ""},
        /* its processor is busy while it waits: that is not launching */
        {{{0, .util = 40}},
         1,
         0,
         1000,
         0,
         {.n = 150, .functions = 1, .driver = "cuMemcpyDtoHAsync_v2"},
         "SYNC: 100 % of the time the training waits for the GPU, 200 ms of a step of 200 ms, in a copy from "
         "the GPU, called by func_1 (train.py:10), while GPU 0 is busy 40 % of the time\n"},
        {{{0, .util = 97}},
         1,
         0,
         1000,
         0,
         {.n = 150, .functions = 1, .func = "synchronize", .file = "/venv/torch/cuda/__init__.py"},
         ""},
        {{{0, .util = 99, .throttle = "power"}}, 1, 0, 1000, 0, {.n = 0}, ""},
        {{{0, .util = 99, .throttle = "power,heat"}},
         1,
         0,
         1000,
         0,
         {.n = 0},
         "GPU THROTTLED: GPU 0 is slowed by heat or by its board 100 % of the time (90 C, 1200 MHz, last 19 "
         "s)\n"},
        /* a moment of one is too little, however much is known of all together */
        {{{0, .util = 99, .throttle = ""}, {1, .util = 99, .throttle = "heat", .seconds = 2}},
         2,
         0,
         1000,
         0,
         {.n = 0},
         ""},
        {{{0, .util = 99, .mem_used_mb = 78000}}, 1, 0, 70000, 0, {.n = 0}, ""},
        {{{0, .util = 99, .mem_used_mb = 78000}},
         1,
         0,
         76000,
         0,
         {.n = 0},
         "GPU MEMORY: tensors have needed up to 74.2 GiB of the 78.1 GiB of GPU 0\n"},
        {{{0, .util = 99, .mem_used_mb = 78000}}, 1, 0, 76000, 3, {.n = 0}, FULL},
        {{{0, .util = 99, .mem_used_mb = 78000}, {1, .util = 99}}, 2, 0, 76000, 3, {.n = 0}, FULL, "GPU-a"},
        /* another one, of which it is not known why it is full; a UUID that only torch has */
        {{{0, .util = 99, .mem_used_mb = 78000}, {1, .util = 99}}, 2, 0, 76000, 3, {.n = 0}, "", "GPU-b"},
        {{{0, .util = 99, .mem_used_mb = 78000}, {1, .util = 99}}, 2, 0, 76000, 3, {.n = 0}, FULL, "GPU-c"},
        {{{0, .util = 99, .xid = 79}},
         1,
         0,
         1000,
         0,
         {.n = 0},
         "GPU ERROR: GPU 0 reported Xid 79 0 ms ago: it has fallen off the bus\n"},
        {{{0, .util = 99}, {1, .util = 99, .ecc = 2}},
         2,
         0,
         1000,
         0,
         {.n = 0},
         "GPU ERROR: GPU 1 had 2 memory errors that could not be corrected while it was watched (2 since its "
         "driver was loaded)\n"},
        {{{0, .util = 99}, {1, .util = 99, .ecc_before = 7, .ecc = 9}},
         2,
         0,
         1000,
         0,
         {.n = 0},
         "GPU ERROR: GPU 1 had 2 memory errors that could not be corrected while it was watched (9 since its "
         "driver was loaded)\n"},
        /* a counter that was reset, also if it counts again */
        {{{0, .util = 99, .ecc_before = 7}, {1, .util = 99, .ecc_before = 7, .ecc = 2}},
         2,
         0,
         1000,
         0,
         {.n = 0},
         ""},
        {{{0, .util = 99, .state = 2}},
         1,
         0,
         1000,
         0,
         {.n = 0},
         "GPU ERROR: GPU 0 (H100) is gone for its driver: lost\n"},
        {{{0, .util = 99, .state = 1}},
         1,
         0,
         1000,
         0,
         {.n = 0},
         "GPU ERROR: GPU 0 does not answer, for 12 s\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job j = fresh();
        char said[1024];
        double end_s = some_steps(&j, 100, 200, RING_STEPS_DATA_MS, cases[i].data_ms);
        add_gpus(&j, end_s, cases[i].gpus, cases[i].n);
        add_gpu_memory(&j, cases[i].reserved_mb, cases[i].retries, cases[i].uuid);
        if (cases[i].looks.n)
            add_samples(&j, end_s, cases[i].looks);
        (void)snprintf(said, sizeof said, "%s%s", cases[i].said, MOVES(USUAL));
        expect(&j, said);
    }
}

/* Every statement can be run, over tables that are all there and empty. */
static void rules_are_whole(void **state) {
    (void)state;
    struct err e = {.text = ""};
    struct database *d = database_open(&e);
    assert_non_null(d);
    assert_int_equal(verdict_places_open(d, &e), 0);
    for (const struct verdict_rule *rule = verdict_rules; rule->code; rule++) {
        const char *const texts[] = {rule->sql, rule->more, rule->also};
        const char *const needs[] = {rule->needs, rule->more_needs, rule->also_needs};
        for (size_t i = 0; i < 3; i++) {
            /* the workers are copied, but others are of live jobs */
            if (needs[i] && strcmp(needs[i], "python.loader_workers") != 0)
                continue;
            char *rows = texts[i] ? job_query(database_sql(d), texts[i], &e) : strdup("");
            if (!rows)
                fail_msg("%s: %s", rule->code, e.text);
            free(rows);
        }
        assert_true(rule->help && rule->words && strlen(rule->help) < 140);
    }
    database_close(d);
}

static int scan_fails(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e) {
    int *scans = arg;
    (void)columns, (void)sink;
    ++*scans;
    return err_set(e, ERR_FAILED, "the agent in process 4711 does not answer");
}

/* A thread that waits for nothing. */
static int scan_is_against(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e) {
    int *scans = arg;
    union ring_value row[RING_THREADS_COUNT] = {[RING_THREADS_TID].i = PID};
    (void)columns, (void)e;
    ++*scans;
    return sql_sink_put(sink, row);
}

/* What came of DEADLOCK in a job that stands, whose threads are read by `scan`: "result (reason)", and what is said of its state. */
static void expect_deadlock(int (*scan)(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e),
                            const char *expected, const char *measured) {
    int scans = 0;
    const struct sql_provider threads = {.def = &RING_TABLES[RING_THREADS], .scan = scan, .arg = &scans};
    struct job j = fresh();
    double end_s = some_steps(&j, 100, 200, -1, 0);
    add_samples(&j, end_s + 30, (struct looks){.n = 200, .functions = 1, .asleep = true});
    struct err e = {.text = ""};
    struct verdicts v;
    struct database *d = database_open(&e);
    struct verdict_judge *judge = d ? verdict_judge_new(d) : NULL;
    assert_non_null(judge);
    const struct sql_target target = {.pid = PID,
                                      .rank = RING_INT_NULL,
                                      .ring_dir = j.dir,
                                      .owner = RING_ANY_UID,
                                      .providers = &threads,
                                      .n_providers = 1};
    if (sql_add_target(database_sql(d), &target, &e) != 0)
        fail_msg("%s", e.text);
    sql_set_now(database_sql(d), sql_newest(database_sql(d)));
    if (verdict_judge_ask(judge, &v, &e) != 0)
        fail_msg("%s", e.text);
    assert_true(scans > 0);
    struct strbuf got;
    strbuf_init(&got, 512);
    for (size_t i = 0; i < v.n_checks; i++)
        if (strcmp(v.checks[i].rule->code, "DEADLOCK") == 0) {
            strbuf_addf(&got, "%s (", verdict_result_name(v.checks[i].result));
            verdict_put_reason(&v.checks[i], &got);
            strbuf_adds(&got, ") ");
            verdict_put_measure(v.checks[i].rule, v.checks[i].measured, &got);
        }
    assert_non_null(strstr(strbuf_str(&got), expected));
    assert_non_null(strstr(strbuf_str(&got), measured));
    assert_null(find(&v, "DEADLOCK"));
    assert_non_null(find(&v, "STUCK")); /* it does without what could not be read */
    strbuf_fini(&got);
    verdicts_fini(&v);
    verdict_judge_free(judge);
    database_close(d);
    job_remove(&j);
}

/* Evidence that could not be read is not evidence against a verdict, nor for one. */
static void evidence_that_cannot_be_read(void **state) {
    (void)state;
    expect_deadlock(scan_fails,
                    "unknown (evidence could not be read: the agent in process 4711 does not answer)",
                    ") 100 %");
    expect_deadlock(scan_is_against, "fine (other evidence is against it)", ") 100 %");
}

/* Each code is in one place, with all its rows; rules of a code are in the order in which they are tested. */
static void checks_of_a_code_are_together(void **state) {
    (void)state;
    struct job jobs[2];
    for (size_t i = 0; i < 2; i++) {
        job_make(&jobs[i], PID + (int64_t)i, (int64_t)i);
        add_status(&jobs[i], T0, 2);
    }
    struct verdicts v = judge_many(jobs, 2);
    size_t busy = 0;
    for (size_t i = 1; i < v.n_checks; i++) {
        const struct verdict_check *c = &v.checks[i], *before = c - 1;
        busy += strcmp(c->rule->code, "BUSY") == 0;
        if (c->pid == before->pid && strcmp(c->rule->code, before->rule->code) == 0) {
            assert_true(c->rule > before->rule);
            continue;
        }
        for (size_t k = 0; k < i; k++)
            assert_false(v.checks[k].pid == c->pid && strcmp(v.checks[k].rule->code, c->rule->code) == 0);
    }
    assert_int_equal(busy, 2 * 3);
    verdicts_fini(&v);
    for (size_t i = 0; i < 2; i++)
        job_remove(&jobs[i]);
}

/* What was looked at: what was said, what is fine, what is not known and why. */
static void looks(void **state) {
    (void)state;
    struct job j = fresh();
    double end_s = some_steps(&j, 100, 200, RING_STEPS_DATA_MS, 142);
    add_samples(&j, end_s, (struct looks){.n = 100, .functions = 3, .waiting = 10});
    struct verdicts v = judge(&j);
    struct strbuf got;
    strbuf_init(&got, 4096);
    for (size_t i = 0; i < v.n_checks; i++) {
        static const char *const shown[] = {"STUCK",      "MOVING", "INPUT-BOUND",  "GIL CONTENTION",
                                            "CHECKPOINT", "STEAL",  "COMPUTE-BOUND"};
        for (size_t k = 0; k < sizeof shown / sizeof shown[0]; k++) {
            const struct verdict_check *one = &v.checks[i];
            if (strcmp(one->rule->code, shown[k]) != 0)
                continue;
            (void)strbuf_addf(&got, "%s %s ", one->rule->code, verdict_result_name(one->result));
            verdict_put_measure(one->rule, one->measured, &got);
            (void)strbuf_adds(&got, " of ");
            verdict_put_measure(one->rule, one->rule->threshold, &got);
            (void)strbuf_adds(&got, " ");
            verdict_put_reason(one, &got);
            (void)strbuf_adds(&got, "\n");
        }
    }
    assert_string_equal(strbuf_str(&got),
                        "STUCK fine 0 x of 1 x \n"
                        "MOVING said 5 steps/s of 0 steps/min \n"
                        "INPUT-BOUND said 71 % of 30 % \n"
                        "GIL CONTENTION fine 10 % of 20 % \n"
                        "CHECKPOINT fine 0.0 % of 10 % \n"
                        "STEAL unknown - of 20 % not enough data yet\n"
                        "COMPUTE-BOUND not asked - of 70 % only while steps end and nothing is wrong\n");
    strbuf_fini(&got);
    verdicts_fini(&v);
    job_remove(&j);
}

/* Each rule says what it looks at, in words that fit into a line. */
static void rules_say_what_they_look_at(void **state) {
    (void)state;
    for (const struct verdict_rule *rule = verdict_rules; rule->code; rule++)
        assert_true(rule->checks && rule->kind && strlen(rule->checks) < 100);
}

static void words(void **state) {
    (void)state;
    const struct verdict_value values[] = {
        {.name = "share", .kind = SQL_REAL, .number = 0.714},
        {.name = "gone", .kind = SQL_NULL, .number = NAN},
        {.name = "who", .kind = SQL_TEXT, .text = "/a/b/evil\033[2J.py"},
        {.name = "one", .kind = SQL_INTEGER, .number = 1},
        {.name = "two", .kind = SQL_INTEGER, .number = 2},
    };
    struct strbuf out;
    strbuf_init(&out, 1000);
    verdict_put_words("{share:%}[ of {gone:ms}][ by {who:file}], {gone}! {one:steps}, {two:steps}.", values,
                      5, &out);
    assert_non_null(strstr(strbuf_str(&out), "71 % by evil"));
    assert_null(strchr(strbuf_str(&out), '\033'));
    assert_non_null(strstr(strbuf_str(&out), ", ?! 1 step, 2 steps."));
    strbuf_fini(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_known_nothing_said),
        cmocka_unit_test(no_steps),
        cmocka_unit_test(a_job_that_is_fine),
        cmocka_unit_test(one_step_says_little),
        cmocka_unit_test(stuck),
        cmocka_unit_test(stuck_asleep),
        cmocka_unit_test(slow_beginnings_are_not_stuck),
        cmocka_unit_test(the_line_is_the_newest),
        cmocka_unit_test(each_of_two_has_its_own_stacks),
        cmocka_unit_test(stuck_for_the_gil),
        cmocka_unit_test(evaluation_is_not_stuck),
        cmocka_unit_test(slow),
        cmocka_unit_test(input_bound),
        cmocka_unit_test(input_bound_after_few_steps),
        cmocka_unit_test(compute_bound),
        cmocka_unit_test(compute_bound_but_for_the_gil),
        cmocka_unit_test(input_bound_for_a_moment),
        cmocka_unit_test(gc_pauses),
        cmocka_unit_test(gil_contention),
        cmocka_unit_test(memory_creep),
        cmocka_unit_test(not_a_number),
        cmocka_unit_test(not_a_number_where_it_was_read),
        cmocka_unit_test(the_first_module),
        cmocka_unit_test(many_steps),
        cmocka_unit_test(hung),
        cmocka_unit_test(waits_on_purpose),
        cmocka_unit_test(waits_before_its_first_step),
        cmocka_unit_test(what_it_does),
        cmocka_unit_test(oversubscribed),
        cmocka_unit_test(throttled),
        cmocka_unit_test(gpus),
        cmocka_unit_test(rules_are_whole),
        cmocka_unit_test(evidence_that_cannot_be_read),
        cmocka_unit_test(checks_of_a_code_are_together),
        cmocka_unit_test(looks),
        cmocka_unit_test(rules_say_what_they_look_at),
        cmocka_unit_test(words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
